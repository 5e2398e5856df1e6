//! Prepared keys give the proofs of the keys they were made from, byte for byte, for equal r and s.

use std::sync::atomic::{AtomicU64, Ordering};

use cuzk_field::{Field as _, Fr, Scalar};
use cuzk_formats::{
    BytesSource, HBasis, LoadOptions, Matrix, ProvingKey, R1cs, Witness, bellman, prepared as file,
    r1cs, wtns, zkey,
};
use cuzk_groth16::prepared::{
    Cost, Origin, PreparedKey, Rows, four_transform_bases, prepare, transform,
};
use cuzk_groth16::synth::{Instance, KeyExponents, KeyFamily, Shape, proving_key};
use cuzk_groth16::{Blinding, Circuit, Error, KeyRef, ProveOptions, Prover};
use cuzk_msm::FixedBase;
use cuzk_testkit::cases;

const FAMILIES: [KeyFamily; 3] = [KeyFamily::Circom, KeyFamily::Arkworks, KeyFamily::Bellman];

fn fixed() -> ProveOptions {
    let (r, s) = (Fr::from(3).pow(12345), Fr::from(5).pow(54321));
    ProveOptions::default().with_blinding(Blinding::from_caller(r.into(), s.into()))
}

fn with_bases(key: &ProvingKey, r1cs: &R1cs) -> ProvingKey {
    let mut key = key.clone();
    let done = AtomicU64::new(0);
    let cost = Cost::of(key.flavour, key.domain_size, r1cs);
    four_transform_bases(&mut key, r1cs, &|count| {
        done.fetch_add(count, Ordering::Relaxed);
    })
    .unwrap();
    assert_eq!(done.into_inner(), cost.multiplications);
    assert!(matches!(key.flavour.h_basis, HBasis::CosetLagrange { .. }));
    key
}

/// Written and read again, and the same.
fn through_a_file(key: PreparedKey) -> PreparedKey {
    let mut bytes = Vec::new();
    file::write(&key, &mut bytes, None).unwrap();
    let read = file::read(&BytesSource::new("key", &bytes), &LoadOptions::default()).unwrap();
    assert_eq!(read.key, key);
    assert!(read.notes.is_empty());
    read.key
}

/// Ordinary and prepared, with six transforms and with four.
fn check(name: &str, key: &ProvingKey, r1cs: &R1cs, witness: &Witness) {
    let prove = |key: KeyRef<'_>, circuit: Circuit<'_>| {
        Prover::new(key)
            .and_then(|prover| prover.prove(circuit, witness, &fixed()))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
            .proof
    };
    let expected = prove(key.into(), Circuit::R1cs(r1cs));
    let four = with_bases(key, r1cs);
    assert_eq!(
        prove((&four).into(), Circuit::R1cs(r1cs)),
        expected,
        "{name}"
    );
    for key in [key.clone(), four] {
        let prepared = prepare(key, Rows::Of(r1cs), Origin::SYNTHETIC).unwrap();
        let prepared = through_a_file(prepared);
        for circuit in [Circuit::Matrices(&prepared.matrices), Circuit::R1cs(r1cs)] {
            assert_eq!(prove((&prepared).into(), circuit), expected, "{name}");
        }
    }
}

#[test]
fn synthetic_keys_of_every_family_and_shape() {
    // Dense circuits fill their domain, PoRep-shaped ones leave rows empty.
    for (shape, log_n) in [
        (Shape::Dense, 1),
        (Shape::Dense, 2),
        (Shape::Dense, 5),
        (Shape::Porep, 1),
        (Shape::Porep, 3),
        (Shape::Porep, 8),
    ] {
        let instance = Instance::new(shape, log_n, 7).unwrap();
        for family in FAMILIES {
            let key = proving_key(&instance.r1cs, family, 8).unwrap();
            let name = format!("{shape:?}, 2^{log_n}, {family:?}");
            check(&name, &key, &instance.r1cs, &instance.witness);
        }
    }
}

/// No constraint, no private variable, a domain of one.
#[test]
fn degenerate_circuits() {
    for (inputs, variables) in [(1, 1), (2, 2), (6, 6), (1, 3), (6, 9)] {
        let r1cs = R1cs {
            num_inputs: inputs,
            num_variables: variables,
            a: Matrix::new(),
            b: Matrix::new(),
            c: Matrix::new(),
            coefficients: Default::default(),
        };
        let values: Vec<Scalar> = (0..variables as u64).map(|i| Scalar::from(i + 1)).collect();
        for family in FAMILIES {
            let key = proving_key(&r1cs, family, 1).unwrap();
            let name = format!("{inputs} of {variables}, {family:?}");
            check(&name, &key, &r1cs, &Witness::new(Vec::clone(&values)));
        }
    }
}

/// ONE and public values in C, with every kind of coefficient, twice in a row, and in the last row of a
/// full domain.
#[test]
fn public_variables_in_c() {
    let mut r1cs = R1cs {
        num_inputs: 3,
        num_variables: 6,
        a: Matrix::new(),
        b: Matrix::new(),
        c: Matrix::new(),
        coefficients: Default::default(),
    };
    // w = 1, x y, x + 3, x, y, z = (x y)^2 with x = 5, y = 7.
    let w: Vec<u64> = vec![1, 35, 8, 5, 7, 1225];
    let (one, minus_one) = (0, 1);
    let three = r1cs.coefficients.intern(Fr::from(3));
    let minus_two = r1cs.coefficients.intern(-Fr::from(2));
    let rows: [[&[(u32, u32)]; 3]; 5] = [
        // x y = public 1.
        [&[(3, one)], &[(4, one)], &[(1, one)]],
        // x + 3 = public 2.
        [&[(3, one), (0, three)], &[(0, one)], &[(2, one)]],
        // public 1 squared = z.
        [&[(1, one)], &[(1, one)], &[(5, one)]],
        // (3 - 2)(x + 3) = 3 public 2 - 2 public 2: one column twice.
        [
            &[(0, three), (0, minus_two)],
            &[(2, one)],
            &[(2, three), (2, minus_two)],
        ],
        // -1 = -ONE, a full domain of 8 with the three inputs.
        [&[(0, minus_one)], &[(0, one)], &[(0, minus_one)]],
    ];
    for row in rows {
        for (matrix, entries) in [&mut r1cs.a, &mut r1cs.b, &mut r1cs.c].into_iter().zip(row) {
            for (column, coefficient) in entries {
                matrix.push_entry(*column, *coefficient);
            }
            matrix.end_row().unwrap();
        }
    }
    assert_eq!(r1cs.domain_size(), 8);
    let witness = Witness::new(w.into_iter().map(Scalar::from).collect());
    for family in FAMILIES {
        let key = proving_key(&r1cs, family, 3).unwrap();
        check(&format!("{family:?}"), &key, &r1cs, &witness);
    }
}

/// Every case of `testdata/`, or of the folder that `CUZK_FIXTURES` names.
#[test]
fn keys_of_other_tools() {
    let options = LoadOptions::default();
    let mut checked = 0;
    for case in cases() {
        let (Some(r1cs), Some(witness)) = (case.r1cs(), case.wtns()) else {
            continue;
        };
        let r1cs = r1cs::read(&BytesSource::new("r1cs", &r1cs), &options).unwrap();
        let witness = wtns::read(&BytesSource::new("wtns", &witness), &options).unwrap();
        let zkey = case
            .zkey()
            .map(|bytes| zkey::read(&BytesSource::new("zkey", &bytes), &options).unwrap());
        if let Some(zkey) = &zkey {
            check(&case.name, &zkey.key, &r1cs.r1cs, &witness.witness);
            // Without the R1CS: the matrices are the zkey's own.
            let rows = Rows::Zkey(&zkey.matrices);
            let prepared = prepare(zkey.key.clone(), rows, Origin::SYNTHETIC).unwrap();
            let prepared = through_a_file(prepared);
            let prove = |prover: Prover<'_>, circuit| {
                let proved = prover.prove(circuit, &witness.witness, &fixed());
                proved.unwrap().proof
            };
            assert_eq!(
                prove(
                    Prover::new(&prepared).unwrap(),
                    Circuit::Matrices(&prepared.matrices)
                ),
                prove(Prover::new(&zkey.key).unwrap(), Circuit::R1cs(&r1cs.r1cs)),
                "{}",
                case.name
            );
            checked += 1;
        }
        if let Some(params) = case.params() {
            let params = bellman::read_params(&BytesSource::new("params", &params), &options);
            let key = params.unwrap().key;
            check(&case.name, &key, &r1cs.r1cs, &witness.witness);
            checked += 1;
        }
    }
    assert!(checked > 0);
}

/// From the secrets and from the points: one key.
#[test]
fn closed_form_and_group_transforms_agree() {
    for (shape, log_n) in [(Shape::Dense, 1), (Shape::Dense, 4), (Shape::Porep, 7)] {
        let instance = Instance::new(shape, log_n, 7).unwrap();
        for family in FAMILIES {
            let key = proving_key(&instance.r1cs, family, 8).unwrap();
            let exponents = KeyExponents::for_four_transforms(&instance.r1cs, family, 8);
            let expected = exponents.unwrap().points();
            assert_eq!(expected.l_query.len(), instance.r1cs.num_variables);
            assert!(
                with_bases(&key, &instance.r1cs) == expected,
                "{shape:?}, 2^{log_n}, {family:?}"
            );
        }
    }
}

/// The transform of points is that of their logarithms.
#[test]
fn transforms_of_points_are_transforms_of_exponents() {
    let g = FixedBase::new(&cuzk_field::G1Affine::generator());
    for (family, log_n) in [
        (cuzk_field::RootGenerator::Five, 0),
        (cuzk_field::RootGenerator::Five, 1),
        (cuzk_field::RootGenerator::Seven, 2),
        (cuzk_field::RootGenerator::Seven, 6),
    ] {
        let n = 1usize << log_n;
        let root = family.root_of_unity(log_n).unwrap();
        let mut exponents: Vec<Fr> = (0..n as u64)
            .map(|i| Fr::from(i + 2).pow(0x1_0001_0001))
            .collect();
        // Infinity, and equal and opposite points.
        exponents[0] = Fr::ZERO;
        if n >= 8 {
            exponents[4] = exponents[3];
            exponents[5] = -exponents[3];
        }
        let scalars =
            |values: &[Fr]| -> Vec<Scalar> { values.iter().map(|v| (*v).into()).collect() };
        let mut points = g.multiply_all(&scalars(&exponents));
        transform(&mut points, root, &|_| {}).unwrap();
        let expected: Vec<Fr> = (0..n as u64)
            .map(|j| {
                let base = root.pow(j);
                exponents
                    .iter()
                    .rev()
                    .fold(Fr::ZERO, |sum, e| sum * base + *e)
            })
            .collect();
        assert_eq!(points, g.multiply_all(&scalars(&expected)), "2^{log_n}");
    }
    let mut three = vec![cuzk_field::G1Affine::generator(); 3];
    assert!(matches!(
        transform(&mut three, Fr::ONE, &|_| {}),
        Err(Error::Domain(_))
    ));
}

#[test]
fn what_cannot_be_prepared_is_refused_and_left_alone() {
    let instance = Instance::new(Shape::Dense, 4, 2).unwrap();
    let other = Instance::new(Shape::Dense, 5, 2).unwrap();
    let key = proving_key(&instance.r1cs, KeyFamily::Arkworks, 1).unwrap();
    let refused = |mut key: ProvingKey, r1cs: &R1cs| {
        let before = key.clone();
        let error = four_transform_bases(&mut key, r1cs, &|_| {}).unwrap_err();
        assert_eq!(key, before);
        error
    };
    assert!(matches!(
        refused(key.clone(), &other.r1cs),
        Error::CircuitMismatch { .. }
    ));
    let four = with_bases(&key, &instance.r1cs);
    let error = refused(four, &instance.r1cs);
    assert!(error.to_string().contains("already"), "{error}");
    // On the curve, not of order r: x = 4.
    let mut stray = key.clone();
    let mut x = [0; 48];
    (x[0], x[47]) = (0x80, 4);
    stray.h_query[9] = cuzk_field::encoding::PointEncoding::from_zcash_compressed(&x).unwrap();
    let error = refused(stray, &instance.r1cs);
    assert!(error.to_string().starts_with("H[9]"), "{error}");

    assert!(matches!(
        prepare(key.clone(), Rows::Of(&other.r1cs), Origin::SYNTHETIC),
        Err(Error::CircuitMismatch { .. })
    ));
    let mut short = key;
    short.h_query.pop();
    assert!(matches!(
        prepare(short, Rows::Of(&instance.r1cs), Origin::SYNTHETIC),
        Err(Error::Key { .. })
    ));
}
