//! Where keys lie, what stays on the device, and what happens where there is little.

use cuzk_groth16::device::{DeviceProver, Gpu, Part, Residency};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};
use cuzk_groth16::{Circuit, Prover};

use crate::fixed;

on_both!(
    nothing_stays_on_the_device,
    keys_beside_the_device_prove_as_on_it
);

fn nothing_stays_on_the_device(gpu: &Gpu, is_card: bool) {
    let Instance { r1cs, witness } = Instance::new(Shape::Porep, 3, 2).unwrap();
    let key = proving_key(&r1cs, KeyFamily::Bellman, 1).unwrap();
    // What the device has done with is given back when somebody looks.
    let held = || {
        gpu.device().usable().unwrap();
        gpu.device().budget().state().held()
    };
    gpu.keys().synchronize().unwrap();
    let before = held();
    let prover = DeviceProver::new(gpu, &key, Circuit::R1cs(&r1cs)).unwrap();
    prover.prove(&witness, &fixed()).unwrap();
    let with_key = held();
    assert!(with_key > before);
    for _ in 0..if is_card { 200 } else { 0 } {
        prover.prove(&witness, &fixed()).unwrap();
        assert_eq!(held(), with_key);
    }
    drop(prover);
    gpu.forget_tables();
    gpu.keys().synchronize().unwrap();
    gpu.device().check().unwrap();
    assert_eq!(held(), before);
}

/// Parts of the key on the host: the proofs are the same, and nothing else of the key is on the device.
fn keys_beside_the_device_prove_as_on_it(gpu: &Gpu, is_card: bool) {
    let sizes: &[u32] = if is_card { &[1, 2, 5, 9, 13, 16] } else { &[3] };
    let all: &[&[Part]] = &[
        &[Part::B1, Part::H],
        &[],
        &[Part::A, Part::L, Part::B2],
        &[Part::A, Part::B2],
        &[Part::L],
    ];
    for &log_n in sizes {
        for (i, shape) in [Shape::Porep, Shape::Dense].into_iter().enumerate() {
            if !is_card && i > 0 {
                continue;
            }
            let family = [KeyFamily::Bellman, KeyFamily::Circom, KeyFamily::Arkworks]
                [(log_n as usize + i) % 3];
            let Instance { r1cs, witness } = Instance::new(shape, log_n, 5).unwrap();
            let key = proving_key(&r1cs, family, 1).unwrap();
            let circuit = || Circuit::R1cs(&r1cs);
            let expected = Prover::new(&key)
                .and_then(|prover| prover.prove(circuit(), &witness, &fixed()))
                .unwrap();
            for parts in &all[..if is_card { all.len() } else { 2 }] {
                let prover = DeviceProver::with_parts(gpu, &key, circuit(), parts).unwrap();
                let residency = prover.key().plan().residency();
                assert_eq!(residency == Residency::Streamed, parts.is_empty());
                for _ in 0..if is_card { 2 } else { 1 } {
                    let found = prover.prove(&witness, &fixed()).unwrap();
                    assert_eq!(found.proof, expected.proof, "{shape:?} 2^{log_n} {parts:?}");
                }
            }
        }
    }
}
