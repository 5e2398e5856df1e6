//! Against the CPU prover's: byte for byte, for equal r and s.

use cuzk_field::{Field as _, Fr};
use cuzk_formats::{
    BytesSource, LoadOptions, ProvingKey, R1cs, Witness, bellman, r1cs, wtns, zkey,
};
use cuzk_groth16::device::{DeviceProver, Error as DeviceError, Gpu};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};
use cuzk_groth16::{Circuit, Error, Prover, QueryVariables, Rows};
use cuzk_testkit::{Case, cases};

use crate::fixed;

const FAMILIES: [KeyFamily; 3] = [KeyFamily::Circom, KeyFamily::Arkworks, KeyFamily::Bellman];

on_both!(
    every_file_proves_as_on_the_cpu,
    synthetic_circuits_prove_as_on_the_cpu,
    rows_from_the_caller_prove_as_on_the_cpu,
    a_violated_constraint_is_named,
);

/// Proves on both and compares.
pub(crate) fn compare(
    gpu: &Gpu,
    key: &ProvingKey,
    circuit: Circuit<'_>,
    witness: &Witness,
    name: &str,
) {
    let expected = Prover::new(key)
        .and_then(|prover| prover.prove(circuit.clone(), witness, &fixed()))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let found = DeviceProver::new(gpu, key, circuit)
        .and_then(|prover| prover.prove(witness, &fixed()))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(found.proof, expected.proof, "{name}");
    assert!(found.public_values == expected.public_values, "{name}");
    assert!(found.verified, "{name}");
}

fn options() -> LoadOptions<'static> {
    LoadOptions::default()
}

fn circuit_of(case: &Case) -> Option<R1cs> {
    let bytes = case.r1cs()?;
    let file = r1cs::read(&BytesSource::new("circuit.r1cs", &bytes), &options());
    Some(file.unwrap().r1cs)
}

fn witness_of(case: &Case) -> Option<Witness> {
    let bytes = case.wtns()?;
    let file = wtns::read(&BytesSource::new("witness.wtns", &bytes), &options());
    Some(file.unwrap().witness)
}

fn every_file_proves_as_on_the_cpu(gpu: &Gpu, is_card: bool) {
    for case in cases() {
        // An emulated proof takes seconds.
        if !is_card && case.name != "mul1" {
            continue;
        }
        let (Some(r1cs), Some(witness)) = (circuit_of(&case), witness_of(&case)) else {
            continue;
        };
        let name = &case.name;
        if let Some(bytes) = case.zkey() {
            let file = zkey::read(&BytesSource::new("circuit.zkey", &bytes), &options()).unwrap();
            let matrices = Circuit::Matrices(&file.matrices);
            compare(gpu, &file.key, matrices, &witness, name);
            if is_card {
                compare(gpu, &file.key, Circuit::R1cs(&r1cs), &witness, name);
            }
        }
        if let Some(bytes) = case.params() {
            let source = BytesSource::new("circuit.params", &bytes);
            let file = bellman::read_params(&source, &options()).unwrap();
            compare(gpu, &file.key, Circuit::R1cs(&r1cs), &witness, name);
        }
    }
}

fn synthetic_circuits_prove_as_on_the_cpu(gpu: &Gpu, is_card: bool) {
    let sizes: &[u32] = match is_card {
        true => &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 17, 20],
        false => &[5],
    };
    for shape in [Shape::Porep, Shape::Dense] {
        if !is_card && shape == Shape::Dense {
            continue;
        }
        for &log_n in sizes {
            let Instance { r1cs, witness } = Instance::new(shape, log_n, 7).unwrap();
            let n = 1_usize << if is_card { log_n } else { 2 };
            let beside = if is_card {
                [n - 1, n, n + 1]
            } else {
                [0, 0, n + 1]
            };
            let family = FAMILIES[log_n as usize % 3];
            for rows in beside.into_iter().filter(|rows| *rows >= 2) {
                let Instance { r1cs, witness } = Instance::with_rows(shape, rows, 9).unwrap();
                let key = proving_key(&r1cs, family, 5).unwrap();
                let name = format!("{shape:?}, {rows} rows, {family:?}");
                compare(gpu, &key, Circuit::R1cs(&r1cs), &witness, &name);
            }
            for (i, family) in FAMILIES.into_iter().enumerate() {
                // The large ones once each.
                let turn = (log_n as usize + usize::from(shape == Shape::Dense)) % 3;
                if (log_n > 8 && i != turn) || (!is_card && family != KeyFamily::Bellman) {
                    continue;
                }
                let key = proving_key(&r1cs, family, 3).unwrap();
                let name = format!("{shape:?} 2^{log_n} {family:?}");
                compare(gpu, &key, Circuit::R1cs(&r1cs), &witness, &name);
            }
        }
    }
}

#[test]
fn kept_multiples_change_no_proof_on_a_card() {
    let _running = crate::CARD.read();
    let Some(gpu) = crate::card() else { return };
    let gpu = gpu.with_multiples(true);
    for (log_n, least) in [(1, 1), (9, 1), (16, 1), (20, 2)] {
        let Instance { r1cs, witness } = Instance::new(Shape::Porep, log_n, 6).unwrap();
        let key = proving_key(&r1cs, KeyFamily::Circom, 2).unwrap();
        let prover = DeviceProver::new(&gpu, &key, Circuit::R1cs(&r1cs)).unwrap();
        let plan = prover.key().plan();
        let kept = plan.h_multiples().map_or(1, |kept| kept.count());
        assert!((least..=3).contains(&kept), "2^{log_n}: {kept}");
        let found = prover.prove(&witness, &fixed()).unwrap();
        let expected = Prover::new(&key).unwrap();
        let expected = expected.prove(Circuit::R1cs(&r1cs), &witness, &fixed());
        assert_eq!(found.proof, expected.unwrap().proof, "2^{log_n}");
    }
}

fn rows_from_the_caller_prove_as_on_the_cpu(gpu: &Gpu, is_card: bool) {
    let log_n = if is_card { 7 } else { 3 };
    let Instance { r1cs, witness } = Instance::new(Shape::Porep, log_n, 4).unwrap();
    let values: Vec<Fr> = witness.values().iter().map(|w| Fr::from(*w)).collect();
    let evaluate = |matrix: &cuzk_formats::Matrix| -> Vec<Fr> {
        (0..matrix.num_rows())
            .map(|row| {
                matrix.row(row).fold(Fr::ZERO, |sum, (column, id)| {
                    sum + r1cs.coefficients.values()[id as usize] * values[column as usize]
                })
            })
            .collect()
    };
    let mut a = evaluate(&r1cs.a);
    a.extend_from_slice(&values[..r1cs.num_inputs]);
    let mut b = evaluate(&r1cs.b);
    b.resize(a.len(), Fr::ZERO);
    let rows = Rows::new(a, b).unwrap();
    let variables = QueryVariables::of(&r1cs);
    for family in &FAMILIES[..if is_card { 3 } else { 1 }] {
        let key = proving_key(&r1cs, *family, 2).unwrap();
        let circuit = Circuit::Rows {
            rows: rows.clone(),
            variables: Some(&variables),
        };
        let expected = Prover::new(&key)
            .and_then(|prover| prover.prove(circuit.clone(), &witness, &fixed()))
            .unwrap();
        let prover = DeviceProver::new(gpu, &key, circuit).unwrap();
        let found = prover.prove_rows(&rows, &witness, &fixed()).unwrap();
        assert_eq!(found.proof, expected.proof, "{family:?}");
        assert!(prover.prove(&witness, &fixed()).is_err());
    }
}

fn a_violated_constraint_is_named(gpu: &Gpu, is_card: bool) {
    let Instance { r1cs, witness } = Instance::new(Shape::Dense, 4, 2).unwrap();
    let key = proving_key(&r1cs, KeyFamily::Circom, 1).unwrap();
    let prover = DeviceProver::new(gpu, &key, Circuit::R1cs(&r1cs)).unwrap();
    let mut values = witness.values().to_vec();
    values[7] = Fr::from(5).into();
    let cpu = Prover::new(&key).unwrap();
    let wrong = Witness::new(values);
    let expected = cpu
        .prove(Circuit::R1cs(&r1cs), &wrong, &fixed())
        .unwrap_err();
    assert!(matches!(expected, Error::Unsatisfied { .. }));
    // Whether the proof is verified or not.
    for options in [fixed(), fixed().without_verification()] {
        match prover.prove(&wrong, &options) {
            Err(DeviceError::Proof(found)) => assert_eq!(found, expected),
            other => panic!("{other:?}"),
        }
    }
    // And the next one is fine.
    if is_card {
        prover.prove(&witness, &fixed()).unwrap();
    }
}
