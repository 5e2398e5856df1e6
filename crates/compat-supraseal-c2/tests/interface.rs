//! The interface as bellperson calls it, against cuzk's own prover for equal r and s.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cuzk_field::encoding::PointEncoding as _;
use cuzk_field::{Field as _, Fr};
use cuzk_formats::{Matrix, ProvingKey, bellman};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};
use cuzk_groth16::{Blinding, Circuit, ProveOptions, Prover, QueryVariables};
use supraseal_c2::{Assignment, Error, SRS, generate_groth16_proof, generate_groth16_proofs};

type Proof = [u64; 48];

/// A circuit with its key, evaluated as bellperson does.
struct Case {
    instance: Instance,
    key: ProvingKey,
    rows: [Vec<Fr>; 3],
    values: Vec<Fr>,
    a_aux: Vec<usize>,
    b_input: Vec<usize>,
    b_aux: Vec<usize>,
    popcounts: [usize; 3],
}

fn words(bits: impl Iterator<Item = bool>) -> Vec<usize> {
    let mut words = Vec::new();
    for (index, bit) in bits.enumerate() {
        if index % 64 == 0 {
            words.push(0);
        }
        *words.last_mut().unwrap() |= usize::from(bit) << (index % 64);
    }
    words
}

impl Case {
    fn new(shape: Shape, log_n: u32) -> Self {
        let instance = Instance::new(shape, log_n, 3).unwrap();
        let r1cs = &instance.r1cs;
        let key = proving_key(r1cs, KeyFamily::Bellman, 4).unwrap();
        let values: Vec<Fr> = instance
            .witness
            .values()
            .iter()
            .map(|v| Fr::from(*v))
            .collect();
        let evaluate = |matrix: &Matrix| -> Vec<Fr> {
            let row = |row| {
                matrix
                    .row(row)
                    .fold(Fr::ZERO, |sum, (column, coefficient)| {
                        sum + r1cs.coefficients.values()[coefficient as usize]
                            * values[column as usize]
                    })
            };
            (0..matrix.num_rows()).map(row).collect()
        };
        let mut rows = [&r1cs.a, &r1cs.b, &r1cs.c].map(evaluate);
        for input in &values[..r1cs.num_inputs] {
            rows[0].push(*input);
            rows[1].push(Fr::ZERO);
            rows[2].push(Fr::ZERO);
        }
        let variables = QueryVariables::of(r1cs);
        let inputs = 0..r1cs.num_inputs as u32;
        let aux = inputs.end..r1cs.num_variables as u32;
        let set = |list: &[u32], range: std::ops::Range<u32>| -> Vec<usize> {
            words(range.map(|index| list.binary_search(&index).is_ok()))
        };
        let count = |words: &[usize]| words.iter().map(|word| word.count_ones() as usize).sum();
        let a_aux = set(&variables.a, aux.clone());
        let (b_input, b_aux) = (set(&variables.b, inputs), set(&variables.b, aux));
        Self {
            popcounts: [count(&a_aux), count(&b_input), count(&b_aux)],
            a_aux,
            b_input,
            b_aux,
            rows,
            values,
            key,
            instance,
        }
    }

    fn inputs(&self) -> usize {
        self.instance.r1cs.num_inputs
    }

    fn srs(&self) -> SRS {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        bellman::write_params(&self.key, &mut file).unwrap();
        file.flush().unwrap();
        // The file is gone when this returns, as in bellperson's tests.
        SRS::try_new(file.path().to_owned(), false).unwrap()
    }

    /// The first function, for `circuits` copies.
    fn first(&self, srs: &SRS, r: &[Fr], s: &[Fr]) -> Vec<Proof> {
        let circuits = r.len();
        let mut proofs = vec![[0; 48]; circuits];
        let pointers = |list: &[Fr]| vec![list.as_ptr(); circuits];
        let (inputs, aux) = self.values.split_at(self.inputs());
        generate_groth16_proof(
            &pointers(&self.rows[0]),
            &pointers(&self.rows[1]),
            &pointers(&self.rows[2]),
            self.rows[0].len(),
            &pointers(inputs),
            &pointers(aux),
            inputs.len(),
            aux.len(),
            &self.a_aux,
            &self.b_input,
            &self.b_aux,
            self.popcounts[0],
            self.popcounts[1],
            self.popcounts[2],
            circuits,
            r,
            s,
            &mut proofs,
            srs,
        );
        proofs
    }

    fn assignment(&self) -> Assignment<Fr> {
        let (inputs, aux) = self.values.split_at(self.inputs());
        Assignment {
            a_aux_density: self.a_aux.as_ptr(),
            a_aux_bit_len: aux.len(),
            a_aux_popcount: self.popcounts[0],
            b_inp_density: self.b_input.as_ptr(),
            b_inp_bit_len: inputs.len(),
            b_inp_popcount: self.popcounts[1],
            b_aux_density: self.b_aux.as_ptr(),
            b_aux_bit_len: aux.len(),
            b_aux_popcount: self.popcounts[2],
            a: self.rows[0].as_ptr(),
            b: self.rows[1].as_ptr(),
            c: self.rows[2].as_ptr(),
            abc_size: self.rows[0].len(),
            inp_assignment_data: inputs.as_ptr(),
            inp_assignment_size: inputs.len(),
            aux_assignment_data: aux.as_ptr(),
            aux_assignment_size: aux.len(),
        }
    }

    fn expected(&self, r: Fr, s: Fr) -> Proof {
        let blinding = Blinding::from_caller(r.into(), s.into());
        let options = ProveOptions::default().with_blinding(blinding);
        let proof = Prover::new(&self.key)
            .unwrap()
            .prove(
                Circuit::R1cs(&self.instance.r1cs),
                &self.instance.witness,
                &options,
            )
            .unwrap()
            .proof;
        let bytes = [proof.a.to_iden3(), proof.b.to_iden3(), proof.c.to_iden3()].concat();
        let mut words = bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        std::array::from_fn(|_| words.next().unwrap())
    }
}

fn randomness(circuits: usize) -> (Vec<Fr>, Vec<Fr>) {
    let power = |base: u64| {
        (0..circuits as u64)
            .map(|i| Fr::from(base).pow(1000 + i))
            .collect()
    };
    (power(3), power(5))
}

/// The text of a panic.
fn panic_of(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
    payload.downcast_ref::<String>().unwrap().clone()
}

#[test]
fn both_functions_give_the_provers_proofs() {
    for (shape, log_n) in [(Shape::Porep, 9), (Shape::Dense, 3), (Shape::Dense, 1)] {
        let case = Case::new(shape, log_n);
        let srs = case.srs();
        let (r, s) = randomness(3);
        let expected: Vec<Proof> = (0..3).map(|i| case.expected(r[i], s[i])).collect();
        let before = supraseal_c2::proofs_made();
        assert_eq!(case.first(&srs, &r, &s), expected);
        let mut proofs = vec![[0; 48]; 3];
        let assignments = [case.assignment(), case.assignment(), case.assignment()];
        generate_groth16_proofs(&assignments, &r, &s, &mut proofs, &srs);
        assert_eq!(proofs, expected);
        assert!(supraseal_c2::proofs_made() >= before + 6);
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

    let other = Case::new(Shape::Dense, 5).srs();
    assert!(fails(&case, &other).contains("not made for this circuit: the key has 32 rows"));

    case.rows[2][3] += Fr::ONE;
    assert!(fails(&case, &srs).contains("constraint 3 (counted from 0)"));
    case.rows[2][3] += -Fr::ONE;

    // A density of another circuit with equal counts.
    let words = case.a_aux.clone();
    case.a_aux[0] ^= 1;
    case.popcounts[0] = case.a_aux[0].count_ones() as usize;
    assert!(fails(&case, &srs).contains("points in A"));
    (case.a_aux, case.popcounts[0]) = (words, case.popcounts[0] + 1);

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

    let unreduced = [[u64::MAX; 4]];
    let error = panic_of(|| {
        let rows = Assignment {
            a: unreduced.as_ptr(),
            abc_size: 1,
            ..empty()
        };
        generate_groth16_proofs(&[rows], &[[0; 4]], &[[0; 4]], &mut proofs, &srs);
    });
    assert_eq!(error, "cuzk: circuit 0: element 0 of A is not below r");
    // Nothing was written, and the key still proves.
    assert_eq!(proofs, [[0; 48]]);
    case.first(&srs, &one, &one);
}

/// An assignment of nothing, whose elements are words.
fn empty() -> Assignment<[u64; 4]> {
    Assignment {
        a_aux_density: std::ptr::null(),
        a_aux_bit_len: 0,
        a_aux_popcount: 0,
        b_inp_density: std::ptr::null(),
        b_inp_bit_len: 0,
        b_inp_popcount: 0,
        b_aux_density: std::ptr::null(),
        b_aux_bit_len: 0,
        b_aux_popcount: 0,
        a: std::ptr::null(),
        b: std::ptr::null(),
        c: std::ptr::null(),
        abc_size: 0,
        inp_assignment_data: std::ptr::null(),
        inp_assignment_size: 0,
        aux_assignment_data: std::ptr::null(),
        aux_assignment_size: 0,
    }
}

/// A proof that would not verify is not handed out.
#[test]
fn a_damaged_key_gives_no_proof() {
    let mut case = Case::new(Shape::Porep, 7);
    case.key.l_query.swap(5, 6);
    let srs = case.srs();
    let error = panic_of(|| drop(case.first(&srs, &[Fr::ONE], &[Fr::ONE])));
    assert!(error.contains("failed its own verification"), "{error}");
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
