//! The interface as bellperson calls it, against cuzk's own prover for equal r and s.

mod case;

use std::io::Write as _;

use case::{
    Case, Proof, panic_of, randomness, refuses_a_damaged_key, refuses_what_does_not_belong,
};
use cuzk_field::{Field as _, Fr};
use cuzk_formats::bellman;
use cuzk_groth16::synth::Shape;
use supraseal_c2::{Assignment, Error, SRS, generate_groth16_proofs};

#[test]
fn both_functions_give_the_provers_proofs() {
    for (shape, log_n) in [(Shape::Porep, 9), (Shape::Dense, 3), (Shape::Dense, 1)] {
        let case = Case::new(shape, log_n);
        let srs = case.srs();
        let (r, s) = randomness(3);
        let expected: Vec<Proof> = (0..3).map(|i| case.expected(r[i], s[i])).collect();
        let before = supraseal_c2::proofs_made();
        let on_gpus = supraseal_c2::proofs_made_on_gpus();
        assert_eq!(case.first(&srs, &r, &s), expected);
        let mut proofs = vec![[0; 48]; 3];
        let assignments = [case.assignment(), case.assignment(), case.assignment()];
        generate_groth16_proofs(&assignments, &r, &s, &mut proofs, &srs);
        assert_eq!(proofs, expected);
        assert!(supraseal_c2::proofs_made() >= before + 6);
        match cuzk_gpu_mem::list() {
            Ok(_) => assert!(supraseal_c2::proofs_made_on_gpus() >= on_gpus + 6),
            Err(_) => assert_eq!(supraseal_c2::proofs_made_on_gpus(), 0),
        }
    }
}

/// Callers without randomness give zeros.
#[test]
fn zero_blinding_is_honoured() {
    let case = Case::new(Shape::Porep, 8);
    let zero = [Fr::ZERO];
    let proofs = case.first(&case.srs(), &zero, &zero);
    assert_eq!(proofs, [case.expected(Fr::ZERO, Fr::ZERO)]);
}

#[test]
fn calls_side_by_side_do_not_mix() {
    let case = Case::new(Shape::Porep, 8);
    let srs = case.srs();
    let (r, s) = randomness(4);
    std::thread::scope(|scope| {
        for i in 0..4 {
            let (case, srs, r, s) = (&case, srs.clone(), &r, &s);
            scope.spawn(move || {
                let proofs = case.first(&srs, &r[i..=i], &s[i..=i]);
                assert_eq!(proofs, [case.expected(r[i], s[i])]);
            });
        }
    });
}

#[test]
fn failures_are_panics_with_a_reason() {
    let mut case = Case::new(Shape::Dense, 4);
    let srs = case.srs();
    let one = [Fr::ONE];
    let fails = |case: &Case, srs: &SRS| panic_of(|| drop(case.first(srs, &one, &one)));

    case.popcounts[1] += 1;
    assert!(fails(&case, &srs).contains("set bits of the B density of inputs: expected"));
    case.popcounts[1] -= 1;

    assert!(fails(&case, &SRS::default()).contains("these parameters are empty"));

    refuses_what_does_not_belong(&mut case);

    let mut proofs = [[0u64; 47]];
    let assignment = [case.assignment()];
    let error = panic_of(|| generate_groth16_proofs(&assignment, &one, &one, &mut proofs, &srs));
    assert_eq!(error, "cuzk: bytes of a proof: expected 384, found 376");
    let mut proofs = [[0u64; 48]];
    let error = panic_of(|| generate_groth16_proofs(&assignment, &[], &one, &mut proofs, &srs));
    assert_eq!(error, "cuzk: values of r: expected at least 1, found 0");
    let mut null = case.assignment();
    null.aux_assignment_data = std::ptr::null();
    let error = panic_of(|| generate_groth16_proofs(&[null], &one, &one, &mut proofs, &srs));
    assert_eq!(
        error,
        "cuzk: other variables: expected an aligned pointer, found 0x0"
    );

    let words = vec![[u64::MAX; 4]; case.values.len().max(case.rows[0].len())];
    let assignment = of_words(&case.assignment(), words.as_ptr());
    let zero = [[0; 4]];
    let error =
        panic_of(|| generate_groth16_proofs(&[assignment], &zero, &zero, &mut proofs, &srs));
    assert_eq!(error, "cuzk: circuit 0: element 0 of A is not below r");
    // Nothing was written, and the key still proves.
    assert_eq!(proofs, [[0; 48]]);
    case.first(&srs, &one, &one);
}

/// Whatever lengths are claimed, nothing is read by them that the key does not say.
#[test]
fn lengths_are_held_against_the_key_before_anything_is_read() {
    let case = Case::new(Shape::Dense, 4);
    let srs = case.srs();
    let one = [Fr::ONE];
    let mut proofs = [[0u64; 48]];
    let mut refused = |change: &dyn Fn(&mut Assignment<Fr>)| {
        let mut assignment = case.assignment();
        change(&mut assignment);
        panic_of(|| generate_groth16_proofs(&[assignment], &one, &one, &mut proofs, &srs))
    };
    let (inputs, aux) = (case.inputs(), case.values.len() - case.inputs());
    assert_eq!(
        refused(&|case| case.abc_size = usize::MAX),
        "cuzk: A: expected a length that memory has room for, found 18446744073709551615"
    );
    let other = |key, what, circuit| {
        format!(
            "cuzk: circuit 0: the key was not made for this circuit: the key has {key} {what}, the circuit {circuit}"
        )
    };
    let rows = 1 << 40;
    assert_eq!(
        refused(&|case| case.abc_size = rows),
        other(16, "rows in its domain", rows)
    );
    assert_eq!(
        refused(&|case| case.abc_size = 0),
        other(16, "rows in its domain", 1)
    );
    for variables in [0, aux - 1, aux + 1, 1 << 40] {
        let change = |case: &mut Assignment<Fr>| {
            case.aux_assignment_size = variables;
            (case.a_aux_bit_len, case.b_aux_bit_len) = (variables, variables);
        };
        assert_eq!(refused(&change), other(aux, "other variables", variables));
    }
    for variables in [0, inputs - 1, inputs + 1, 1 << 40] {
        let change = |case: &mut Assignment<Fr>| {
            (case.inp_assignment_size, case.b_inp_bit_len) = (variables, variables);
        };
        assert_eq!(refused(&change), other(inputs, "inputs", variables));
    }
    assert_eq!(proofs, [[0; 48]]);
}

/// Bit vectors leave anything behind their last bit.
#[test]
fn what_lies_behind_the_last_bit_of_a_density_is_nothing() {
    let case = Case::new(Shape::Dense, 4);
    let (r, s) = randomness(2);
    let mut words = case.a_aux.clone();
    let aux = case.values.len() - case.inputs();
    assert!(!aux.is_multiple_of(64));
    *words.last_mut().unwrap() |= usize::MAX << (aux % 64);
    let mut other = case.assignment();
    other.a_aux_density = words.as_ptr();
    let mut proofs = [[0; 48]; 2];
    let assignments = [case.assignment(), other];
    generate_groth16_proofs(&assignments, &r, &s, &mut proofs, &case.srs());
    assert_eq!(proofs, [0, 1].map(|i| case.expected(r[i], s[i])));
}

/// An assignment whose elements are words, all of them at `data`.
fn of_words(other: &Assignment<Fr>, data: *const [u64; 4]) -> Assignment<[u64; 4]> {
    Assignment {
        a_aux_density: other.a_aux_density,
        a_aux_bit_len: other.a_aux_bit_len,
        a_aux_popcount: other.a_aux_popcount,
        b_inp_density: other.b_inp_density,
        b_inp_bit_len: other.b_inp_bit_len,
        b_inp_popcount: other.b_inp_popcount,
        b_aux_density: other.b_aux_density,
        b_aux_bit_len: other.b_aux_bit_len,
        b_aux_popcount: other.b_aux_popcount,
        a: data,
        b: data,
        c: data,
        abc_size: other.abc_size,
        inp_assignment_data: data,
        inp_assignment_size: other.inp_assignment_size,
        aux_assignment_data: data,
        aux_assignment_size: other.aux_assignment_size,
    }
}

#[test]
fn a_damaged_key_gives_no_proof() {
    refuses_a_damaged_key(Case::new(Shape::Porep, 7));
}

#[test]
fn files_are_refused_with_a_reason() {
    let missing = SRS::try_new("no/such.params".into(), false).unwrap_err();
    assert!(missing.to_string().contains("no/such.params"), "{missing}");
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&[1; 2000]).unwrap();
    let error = SRS::try_new(file.path().to_owned(), true).unwrap_err();
    assert!(matches!(error, Error::File(_)), "{error}");
}

/// CS-08: a cached key is shared, and evicted ones go on working.
#[test]
fn a_cached_key_outlives_its_file_and_its_eviction() {
    let case = Case::new(Shape::Dense, 3);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    bellman::write_params(&case.key, &mut file).unwrap();
    file.flush().unwrap();
    let path = file.path().to_owned();
    let first = SRS::try_new(path.clone(), true).unwrap();
    let second = SRS::try_new(path.clone(), true).unwrap();
    first.evict();
    first.evict();
    let one = [Fr::ONE];
    assert_eq!(
        case.first(&second, &one, &one),
        [case.expected(Fr::ONE, Fr::ONE)]
    );
    drop(file);
    SRS::try_new(path, true).unwrap_err();
}
