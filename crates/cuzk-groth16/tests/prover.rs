//! Proofs of synthetic circuits with every key family, and what is refused.

mod small;

use cuzk_field::{Field as _, Fr, G1Affine, Scalar};
use cuzk_formats::{Matrix, R1cs, Witness};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};
use cuzk_groth16::{Blinding, Circuit, Error, ProveOptions, Prover, QueryVariables, Verifier};

use small::{InB, circuit};

const FAMILIES: [KeyFamily; 3] = [KeyFamily::Circom, KeyFamily::Arkworks, KeyFamily::Bellman];
const SHAPES: [Shape; 2] = [Shape::Dense, Shape::Porep];

fn fixed() -> ProveOptions {
    let (r, s) = (Fr::from(3).pow(12345), Fr::from(5).pow(54321));
    ProveOptions::default().with_blinding(Blinding::from_caller(r.into(), s.into()))
}

/// A copy of a matrix with one entry's coefficient index replaced.
fn with_entry(matrix: &Matrix, at: usize, coefficient: u32) -> Matrix {
    let mut copy = Matrix::new();
    let mut entry = 0;
    for row in 0..matrix.num_rows() {
        for (column, old) in matrix.row(row) {
            copy.push_entry(column, if entry == at { coefficient } else { old });
            entry += 1;
        }
        copy.end_row().unwrap();
    }
    copy
}

fn with_value(witness: &Witness, index: usize, value: Scalar) -> Witness {
    let mut values = witness.values().to_vec();
    values[index] = value;
    Witness::new(values)
}

#[test]
fn every_family_and_shape_proves_at_every_size() {
    for shape in SHAPES {
        for log_n in 1..=11 {
            let instance = Instance::new(shape, log_n, 7).unwrap();
            for family in FAMILIES {
                let key = proving_key(&instance.r1cs, family, 8).unwrap();
                assert_eq!(key.domain_size, 1 << log_n);
                let prover = Prover::new(&key).unwrap();
                let proved = prover
                    .prove(Circuit::R1cs(&instance.r1cs), &instance.witness, &fixed())
                    .unwrap_or_else(|error| panic!("{shape:?}, 2^{log_n}, {family:?}: {error}"));
                assert!(proved.verified);
                assert_eq!(proved.public_values.len(), instance.r1cs.num_inputs - 1);
            }
        }
    }
}

/// The proof is the same group elements whatever basis H stands in and whichever root is used,
/// where the rest of the key is: here, one key's H converted to the other family by exponents.
#[test]
fn bellman_and_arkworks_keys_give_equal_proofs() {
    let instance = Instance::new(Shape::Porep, 9, 3).unwrap();
    let proofs: Vec<_> = [KeyFamily::Arkworks, KeyFamily::Bellman]
        .iter()
        .map(|family| {
            let key = proving_key(&instance.r1cs, *family, 5).unwrap();
            let prover = Prover::new(&key).unwrap();
            prover
                .prove(Circuit::R1cs(&instance.r1cs), &instance.witness, &fixed())
                .unwrap()
                .proof
        })
        .collect();
    assert_eq!(proofs[0], proofs[1]);
}

#[test]
fn fresh_proofs_of_one_witness_differ() {
    let instance = Instance::new(Shape::Dense, 4, 1).unwrap();
    let key = proving_key(&instance.r1cs, KeyFamily::Circom, 1).unwrap();
    let prover = Prover::new(&key).unwrap();
    let prove = || {
        prover
            .prove(
                Circuit::R1cs(&instance.r1cs),
                &instance.witness,
                &ProveOptions::default(),
            )
            .unwrap()
            .proof
    };
    let (first, second) = (prove(), prove());
    assert_ne!(first.a, second.a);
    assert_ne!(first.b, second.b);
    assert_ne!(first.c, second.c);
}

#[test]
fn the_first_violated_constraint_is_named() {
    let instance = Instance::new(Shape::Dense, 8, 2).unwrap();
    let key = proving_key(&instance.r1cs, KeyFamily::Circom, 1).unwrap();
    let prover = Prover::new(&key).unwrap();
    // Variable 2 + k is made by constraint k and first used by constraint k + 1.
    let index = instance.r1cs.num_inputs + 100;
    let witness = with_value(&instance.witness, index, Scalar::from(9));
    let error = prover
        .prove(
            Circuit::R1cs(&instance.r1cs),
            &witness,
            &ProveOptions::default(),
        )
        .unwrap_err();
    assert_eq!(error, Error::Unsatisfied { constraint: 100 });
}

#[test]
fn witnesses_of_other_circuits_are_refused() {
    let instance = Instance::new(Shape::Dense, 5, 2).unwrap();
    let key = proving_key(&instance.r1cs, KeyFamily::Circom, 1).unwrap();
    let prover = Prover::new(&key).unwrap();
    let circuit = || Circuit::R1cs(&instance.r1cs);
    let options = ProveOptions::default();

    let short = Witness::new(instance.witness.values()[..20].to_vec());
    assert_eq!(
        prover.prove(circuit(), &short, &options).unwrap_err(),
        Error::WitnessLength {
            expected: 31,
            found: 20
        }
    );
    let not_one = with_value(&instance.witness, 0, Scalar::from(2));
    assert_eq!(
        prover.prove(circuit(), &not_one, &options).unwrap_err(),
        Error::WitnessOne
    );

    let other = Instance::new(Shape::Dense, 6, 2).unwrap();
    assert!(matches!(
        prover
            .prove(Circuit::R1cs(&other.r1cs), &other.witness, &options)
            .unwrap_err(),
        Error::CircuitMismatch {
            what: "variables",
            key: 31,
            circuit: 63
        }
    ));
}

/// A key of an older circuit with the same counts but one other coefficient.
#[test]
fn a_key_of_another_circuit_gives_no_proof() {
    let instance = Instance::new(Shape::Dense, 5, 2).unwrap();
    let mut older = instance.r1cs.clone();
    let other = older.coefficients.intern(Fr::from(1234));
    older.a = with_entry(&older.a, 7, other);
    for family in FAMILIES {
        let key = proving_key(&older, family, 1).unwrap();
        let prover = Prover::new(&key).unwrap();
        let error = prover
            .prove(
                Circuit::R1cs(&instance.r1cs),
                &instance.witness,
                &ProveOptions::default(),
            )
            .unwrap_err();
        assert_eq!(
            error,
            Error::ProofRejected {
                witness_checked: true
            }
        );
        assert!(error.to_string().contains("of another circuit"));
        // Asked not to verify, the prover says that it did not.
        let options = ProveOptions::default().without_verification();
        let proved = prover
            .prove(Circuit::R1cs(&instance.r1cs), &instance.witness, &options)
            .unwrap();
        assert!(!proved.verified);
        let verifier = Verifier::new(&key.vk).unwrap();
        assert_eq!(
            verifier
                .verify(&proved.public_values, &proved.proof)
                .unwrap_err(),
            Error::InvalidProof
        );
    }
}

#[test]
fn density_popcounts_are_compared_with_the_key() {
    let instance = Instance::new(Shape::Porep, 8, 4).unwrap();
    let mut key = proving_key(&instance.r1cs, KeyFamily::Bellman, 1).unwrap();
    let in_b = key.b_g1_query.len();
    key.b_g1_query.pop();
    key.b_g2_query.pop();
    let prover = Prover::new(&key).unwrap();
    let error = prover
        .prove(
            Circuit::R1cs(&instance.r1cs),
            &instance.witness,
            &ProveOptions::default(),
        )
        .unwrap_err();
    assert_eq!(
        error,
        Error::CircuitMismatch {
            what: "points in B",
            key: in_b - 1,
            circuit: in_b
        }
    );
}

#[test]
fn keys_with_lists_cut_short_are_refused() {
    let instance = Instance::new(Shape::Dense, 5, 4).unwrap();
    let good = proving_key(&instance.r1cs, KeyFamily::Arkworks, 1).unwrap();
    let mut keys = vec![good.clone(); 6];
    keys[0].a_query.pop();
    keys[1].b_g1_query.pop();
    keys[2].b_g2_query.pop();
    keys[3].h_query.pop();
    keys[4].domain_size = 48;
    keys[5].delta_g1 = G1Affine::INFINITY;
    for (case, key) in keys.iter().enumerate() {
        assert!(
            matches!(Prover::new(key), Err(Error::Key { .. })),
            "case {case}"
        );
    }
    let mut key = good;
    key.vk.delta_g2 = cuzk_field::G2Affine::INFINITY;
    assert!(Prover::new(&key).is_err());
}

/// Seam (a): rows from the caller.
#[test]
fn rows_from_the_caller_prove() {
    let instance = Instance::new(Shape::Porep, 7, 4).unwrap();
    let r1cs = &instance.r1cs;
    let values: Vec<Fr> = instance
        .witness
        .values()
        .iter()
        .map(|w| Fr::from(*w))
        .collect();
    let evaluate = |matrix: &Matrix| -> Vec<Fr> {
        (0..matrix.num_rows())
            .map(|row| {
                matrix
                    .row(row)
                    .fold(Fr::ZERO, |sum, (column, coefficient)| {
                        sum + r1cs.coefficients.values()[coefficient as usize]
                            * values[column as usize]
                    })
            })
            .collect()
    };
    let mut a = evaluate(&r1cs.a);
    a.extend_from_slice(&values[..r1cs.num_inputs]);
    let mut b = evaluate(&r1cs.b);
    b.resize(a.len(), Fr::ZERO);
    let variables = QueryVariables::of(r1cs);
    for family in FAMILIES {
        let key = proving_key(r1cs, family, 2).unwrap();
        let prover = Prover::new(&key).unwrap();
        let rows = cuzk_groth16::Rows::new(a.clone(), b.clone()).unwrap();
        let circuit = Circuit::Rows {
            rows,
            variables: Some(&variables),
        };
        let ours = prover.prove(circuit, &instance.witness, &fixed()).unwrap();
        let expected = prover
            .prove(Circuit::R1cs(r1cs), &instance.witness, &fixed())
            .unwrap();
        assert_eq!(ours.proof, expected.proof);
    }
}

#[test]
fn verification_checks_counts_points_and_values() {
    let instance = Instance::new(Shape::Dense, 4, 2).unwrap();
    let key = proving_key(&instance.r1cs, KeyFamily::Circom, 1).unwrap();
    let proved = Prover::new(&key)
        .unwrap()
        .prove(
            Circuit::R1cs(&instance.r1cs),
            &instance.witness,
            &ProveOptions::default(),
        )
        .unwrap();
    let verifier = Verifier::new(&key.vk).unwrap();
    let values = &proved.public_values;
    assert_eq!(values.len(), 1);
    verifier.verify(values, &proved.proof).unwrap();

    for wrong in [vec![], vec![values[0], Scalar::ZERO]] {
        let found = wrong.len();
        assert_eq!(
            verifier.verify(&wrong, &proved.proof).unwrap_err(),
            Error::PublicCount { expected: 1, found }
        );
    }
    assert_eq!(
        verifier
            .verify(&[Scalar::from(6)], &proved.proof)
            .unwrap_err(),
        Error::InvalidProof
    );
    let mut proof = proved.proof;
    proof.a = G1Affine::INFINITY;
    assert!(matches!(
        verifier.verify(values, &proof),
        Err(Error::Point { .. })
    ));
    let mut proof = proved.proof;
    proof.c.x = proof.a.x;
    assert!(matches!(
        verifier.verify(values, &proof),
        Err(Error::Point { .. })
    ));
    let mut proof = proved.proof;
    std::mem::swap(&mut proof.a, &mut proof.c);
    assert_eq!(
        verifier.verify(values, &proof).unwrap_err(),
        Error::InvalidProof
    );

    // A rerandomised proof (A times t, B by t) is valid too: proof bytes are no identifier.
    let t = Fr::from(77);
    let scale = |k: Fr| Scalar::from(k);
    let mut proof = proved.proof;
    proof.a = cuzk_field::G1Xyzz::from(proof.a)
        .mul_scalar(&scale(t))
        .to_affine();
    proof.b = cuzk_field::G2Xyzz::from(proof.b)
        .mul_scalar(&scale(t.inverse().unwrap()))
        .to_affine();
    verifier.verify(values, &proof).unwrap();
}

/// What design asks of the PoRep shape.
#[test]
fn the_porep_shape_has_the_statistics_of_a_real_partition() {
    let log_n = 15;
    let n = 1usize << log_n;
    let Instance { r1cs, witness } = Instance::new(Shape::Porep, log_n, 11).unwrap();
    assert_eq!(
        r1cs.num_constraints() + r1cs.num_inputs,
        (0.971 * n as f64).round() as usize
    );
    assert_eq!(r1cs.num_inputs, 328);
    let share = |part: usize, all: usize| part as f64 / all as f64;
    let rows = r1cs.num_constraints();
    let near = |got: f64, expected: f64, tolerance: f64, what: &str| {
        assert!(
            (got - expected).abs() <= tolerance,
            "{what}: {got}, expected {expected}"
        );
    };
    near(
        share(r1cs.a.num_entries(), rows),
        2.4,
        0.1,
        "A entries a row",
    );
    near(
        share(r1cs.b.num_entries(), rows),
        1.0,
        0.01,
        "B entries a row",
    );
    near(
        share(r1cs.c.num_entries(), rows),
        2.2,
        0.1,
        "C entries a row",
    );
    let longest = (0..rows).map(|row| r1cs.a.row(row).len()).max().unwrap();
    assert!((850..=929).contains(&longest), "longest row {longest}");

    let units = |matrix: &Matrix| {
        let units = matrix.coefficients().iter().filter(|id| **id < 2).count();
        share(units, matrix.num_entries())
    };
    near(units(&r1cs.a), 0.38, 0.03, "+-1 in A");
    near(units(&r1cs.b), 1.0, 0.0, "+-1 in B");
    near(units(&r1cs.c), 0.89, 0.03, "+-1 in C");
    let distinct = r1cs.coefficients.values().len();
    assert!(
        (2000..10_000).contains(&distinct),
        "{distinct} distinct coefficients"
    );

    let variables = QueryVariables::of(&r1cs);
    near(
        share(variables.a.len(), r1cs.num_variables),
        0.997,
        0.004,
        "A density",
    );
    near(
        share(variables.b.len(), r1cs.num_variables),
        0.254,
        0.01,
        "B density",
    );
    assert!(
        variables
            .b
            .iter()
            .filter(|v| (**v as usize) < r1cs.num_inputs)
            .all(|v| *v == 0)
    );

    let private = &witness.values()[r1cs.num_inputs..];
    let zeros = private.iter().filter(|w| w.is_zero()).count();
    let ones = private.iter().filter(|w| w.is_one()).count();
    near(share(zeros, private.len()), 0.515, 0.01, "zeros");
    near(share(ones, private.len()), 0.477, 0.01, "ones");
    let full_in_b = variables.b.iter().filter(|v| {
        let value = &witness.values()[**v as usize];
        !value.is_zero() && !value.is_one()
    });
    near(
        share(full_in_b.count(), variables.b.len()),
        0.023,
        0.004,
        "full-size in B",
    );

    // Rows and points pairwise distinct.
    let row = |i: usize| -> Vec<Vec<(u32, u32)>> {
        [&r1cs.a, &r1cs.b, &r1cs.c]
            .map(|matrix| matrix.row(i).collect())
            .into()
    };
    let distinct_rows: std::collections::HashSet<_> = (0..rows).map(row).collect();
    assert_eq!(distinct_rows.len(), rows);
    let key = proving_key(&r1cs, KeyFamily::Bellman, 1).unwrap();
    for query in [&key.a_query, &key.b_g1_query, &key.h_query, &key.l_query] {
        let distinct: std::collections::HashSet<_> = query.iter().collect();
        assert_eq!(distinct.len(), query.len());
    }
}

#[test]
fn the_dense_shape_is_dense() {
    let Instance { r1cs, witness } = Instance::new(Shape::Dense, 10, 11).unwrap();
    assert_eq!(r1cs.num_constraints() + r1cs.num_inputs, 1024);
    let variables = QueryVariables::of(&r1cs);
    assert_eq!(variables.a.len(), r1cs.num_variables);
    assert_eq!(variables.b.len(), r1cs.num_variables);
    assert!(
        witness.values()[1..]
            .iter()
            .all(|w| w.limbs()[2..].iter().any(|limb| *limb != 0))
    );
}

#[test]
fn unreasonable_sizes_are_refused() {
    for log_n in [0, 29, 64] {
        assert!(matches!(
            Instance::new(Shape::Dense, log_n, 1),
            Err(Error::Circuit { .. })
        ));
    }
}

/// Circuits at the edges: no constraint, no private variable, a domain of one.
#[test]
fn degenerate_circuits_prove() {
    let empty = |num_inputs, num_variables| R1cs {
        num_inputs,
        num_variables,
        a: Matrix::new(),
        b: Matrix::new(),
        c: Matrix::new(),
        coefficients: Default::default(),
    };
    for (inputs, variables) in [(1, 1), (2, 2), (6, 6), (1, 3), (6, 9)] {
        let r1cs = empty(inputs, variables);
        let values = (0..variables as u64).map(|i| Scalar::from(i + 1)).collect();
        let witness = Witness::new(values);
        for family in FAMILIES {
            let key = proving_key(&r1cs, family, 1).unwrap();
            let prover = Prover::new(&key).unwrap();
            let result = prover.prove(Circuit::R1cs(&r1cs), &witness, &fixed());
            assert!(
                result.is_ok(),
                "{inputs} inputs, {variables} variables: {result:?}"
            );
        }
    }
}

/// Systems put together by hand, and matrices of another key, are refused and never a panic.
#[test]
fn matrices_that_point_outside_are_refused() {
    let instance = Instance::new(Shape::Dense, 5, 2).unwrap();
    let key = proving_key(&instance.r1cs, KeyFamily::Circom, 1).unwrap();
    let prover = Prover::new(&key).unwrap();
    let refused = |circuit: Circuit<'_>| {
        let error = prover
            .prove(circuit, &instance.witness, &ProveOptions::default())
            .unwrap_err();
        assert!(matches!(error, Error::Circuit { .. }), "{error}");
    };
    let mut outside = Matrix::new();
    outside.push_entry(31, 0);
    outside.end_row().unwrap();
    let mut unknown = Matrix::new();
    unknown.push_entry(0, 1_000_000);
    unknown.end_row().unwrap();
    for wrong in [outside, unknown, Matrix::new(), Matrix::default()] {
        for which in 0..3 {
            let mut r1cs = instance.r1cs.clone();
            *[&mut r1cs.a, &mut r1cs.b, &mut r1cs.c][which] = wrong.clone();
            if which == 0 {
                // Fewer rows in A make another domain, which is told first.
                r1cs.b = wrong.clone();
                r1cs.c = wrong.clone();
                let error = prover
                    .prove(
                        Circuit::R1cs(&r1cs),
                        &instance.witness,
                        &ProveOptions::default(),
                    )
                    .unwrap_err();
                assert!(matches!(
                    error,
                    Error::Circuit { .. } | Error::CircuitMismatch { .. }
                ));
            } else {
                refused(Circuit::R1cs(&r1cs));
            }
        }
        if wrong.num_rows() > 0 {
            refused(Circuit::Matrices(&cuzk_formats::AbMatrices {
                a: wrong.clone(),
                b: wrong,
                coefficients: Default::default(),
            }));
        }
    }
}

/// WP-10: every small count of variables, with inputs in B, or not, or nothing, for the key family that leaves
/// points out.
#[test]
fn word_borders_and_empty_densities_prove() {
    for aux in [1, 2, 3, 63, 64, 65] {
        for inputs in 1..=3 {
            for in_b in [InB::Private, InB::Input, InB::Nothing] {
                let r1cs = circuit(aux, inputs, in_b);
                let witness = Witness::new(vec![Scalar::ONE; inputs + aux]);
                for family in FAMILIES {
                    let key = proving_key(&r1cs, family, 3).unwrap();
                    let proved =
                        Prover::new(&key)
                            .unwrap()
                            .prove(Circuit::R1cs(&r1cs), &witness, &fixed());
                    assert!(
                        proved.is_ok(),
                        "{aux} aux, {inputs} inputs, {in_b:?} in B, {family:?}: {proved:?}"
                    );
                }
            }
        }
    }
}

/// WP-11, WP-16: a batch after a failed call; each proof is for its own witness.
#[test]
fn a_failed_call_spoils_nothing_and_results_are_not_swapped() {
    let instance = &Instance::new(Shape::Dense, 5, 4).unwrap();
    let key = proving_key(&instance.r1cs, KeyFamily::Arkworks, 1).unwrap();
    let prover = Prover::new(&key).unwrap();
    let wrong = with_value(&instance.witness, 5, Scalar::from(9));
    for _ in 0..3 {
        assert!(
            prover
                .prove(Circuit::R1cs(&instance.r1cs), &wrong, &fixed())
                .is_err()
        );
        let proved = prover
            .prove(Circuit::R1cs(&instance.r1cs), &instance.witness, &fixed())
            .unwrap();
        assert_eq!(proved.public_values, instance.witness.values()[1..2]);
        for point in [proved.proof.a, proved.proof.c] {
            assert!(point.is_on_curve() && point.is_in_subgroup() && !point.is_infinity());
        }
        assert!(proved.proof.b.is_on_curve() && proved.proof.b.is_in_subgroup());
    }
}
