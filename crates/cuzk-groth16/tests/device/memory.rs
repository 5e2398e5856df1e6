//! Where keys lie, what stays on the device, and what happens where there is little.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuzk_gpu_mem::driver::Code;
use cuzk_gpu_mem::{Error as Memory, GIB, Recorder, TrimPolicy, WIPE};
use cuzk_groth16::device::{DeviceProver, Error as DeviceError, Gpu, KeyCache, Part, Residency};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};
use cuzk_groth16::{Circuit, Error, ProveOptions, Prover, StopCheck, Verifier};
use cuzk_testkit::device;

use crate::fixed;
use crate::proofs::compare;

on_both!(
    keys_beside_the_device_prove_as_on_it,
    keys_share_a_budget,
    two_threads_prove_where_there_is_room_for_one,
    scratch_that_is_wiped_early_spoils_no_proof,
    a_proof_over_a_streamed_key_stops_wherever_it_is_told,
);

/// Beside the end of the H sum, where small sums have usually too little to wipe.
fn scratch_that_is_wiped_early_spoils_no_proof(gpu: &Gpu, is_card: bool) {
    let gpu = Gpu::new(gpu.device()).unwrap().wiping_at_least(1);
    let log_n = if is_card { 14 } else { 4 };
    let Instance { r1cs, witness } = Instance::new(Shape::Dense, log_n, 1).unwrap();
    let key = proving_key(&r1cs, KeyFamily::Bellman, 1).unwrap();
    let circuit = Circuit::R1cs(&r1cs);
    compare(&gpu, &key, circuit.clone(), &witness, "wiped early");
    let prover = DeviceProver::new(&gpu, &key, circuit).unwrap();
    let recorder = Recorder::new(gpu.upload()).unwrap();
    let proved = prover.prove_recorded(&witness, &fixed(), Some(&recorder));
    assert!(proved.unwrap().verified);
    let spans = recorder.timeline().unwrap().spans;
    let wiped: Vec<&str> = spans
        .iter()
        .filter(|span| span.label == WIPE)
        .map(|span| span.stream)
        .collect();
    assert!(wiped.contains(&"add"), "{wiped:?}");
    assert!(wiped.contains(&"compute"), "the rest: {wiped:?}");
}

/// Sums over points in host memory ask as they go: whichever question is answered with no, all memory is back.
fn a_proof_over_a_streamed_key_stops_wherever_it_is_told(gpu: &Gpu, is_card: bool) {
    let log_n = if is_card { 12 } else { 3 };
    let Instance { r1cs, witness } = Instance::new(Shape::Porep, log_n, 3).unwrap();
    let key = proving_key(&r1cs, KeyFamily::Bellman, 1).unwrap();
    let prover = DeviceProver::with_parts(gpu, &key, Circuit::R1cs(&r1cs), &[]).unwrap();
    prover.prove(&witness, &fixed()).unwrap();
    // The key's points are in pinned memory.
    let all_held = || (held(gpu), gpu.device().host().pinned_use().in_use);
    let before = all_held();
    let mut stopped = 0;
    loop {
        let (asked, no) = (AtomicUsize::new(0), stopped);
        let stop = StopCheck::new(move || asked.fetch_add(1, Ordering::Relaxed) == no);
        let outcome = prover.prove(&witness, &fixed().with_stop_check(stop));
        assert_eq!(all_held(), before, "question {stopped}");
        match outcome {
            Err(DeviceError::Proof(Error::Stopped)) => stopped += 1,
            proved => {
                assert!(proved.unwrap().verified);
                break;
            }
        }
    }
    assert!(stopped > 8, "asked {stopped} times");
}

/// Bytes that blocks hold, when what is done with has been given back.
fn held(gpu: &Gpu) -> u64 {
    gpu.device().trim(TrimPolicy::Device).unwrap();
    gpu.device().budget().state().held()
}

#[test]
fn nothing_stays_on_the_emulator() {
    nothing_stays_on_the_device(&crate::emulated(), false);
}

#[test]
fn nothing_stays_on_a_card() {
    let _alone = crate::CARD.write();
    if let Some(gpu) = crate::card() {
        nothing_stays_on_the_device(&gpu, true);
    }
}

fn nothing_stays_on_the_device(gpu: &Gpu, is_card: bool) {
    let Instance { r1cs, witness } = Instance::new(Shape::Porep, 3, 2).unwrap();
    let key = proving_key(&r1cs, KeyFamily::Bellman, 1).unwrap();
    let held = || held(gpu);
    // Tables of tests before.
    gpu.forget_tables();
    gpu.keys().synchronize().unwrap();
    let before = held();
    let prover = DeviceProver::new(gpu, &key, Circuit::R1cs(&r1cs)).unwrap();
    prover.prove(&witness, &fixed()).unwrap();
    let with_key = held();
    assert!(with_key > before);
    let pinned = || gpu.device().host().pinned_use();
    prover.prove(&witness, &fixed()).unwrap();
    let mapped = pinned().mapped;
    let free = gpu.device().mem_info().unwrap().obtainable();
    for round in 0..if is_card { 200 } else { 4 } {
        // Every tenth is called off on its way, a step later each time.
        let asked = Arc::new(AtomicUsize::new(0));
        let last = 1 + round / 10 % 8;
        let stop = StopCheck::new(move || asked.fetch_add(1, Ordering::Relaxed) >= last);
        match round % 10 {
            3 => {
                let stopped = prover.prove(&witness, &fixed().with_stop_check(stop));
                assert!(matches!(stopped, Err(DeviceError::Proof(Error::Stopped))));
            }
            _ => drop(prover.prove(&witness, &fixed()).unwrap()),
        }
        assert_eq!(held(), with_key, "{round}");
        assert_eq!((pinned().in_use, pinned().mapped), (0, mapped), "{round}");
        assert_eq!(
            gpu.device().mem_info().unwrap().obtainable(),
            free,
            "{round}"
        );
    }
    drop(prover);
    gpu.forget_tables();
    gpu.keys().synchronize().unwrap();
    gpu.device().check().unwrap();
    assert_eq!(held(), before);
}

/// WP-06: parts of the key on the host: the proofs are the same, and nothing else of the key is on the device.
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

/// CS-08: of two keys one has room: the one that is not in use goes, whatever file it came from; one in use never does.
fn keys_share_a_budget(gpu: &Gpu, is_card: bool) {
    let log_n = if is_card { 10 } else { 3 };
    let Instance { r1cs, witness } = Instance::new(Shape::Porep, log_n, 8).unwrap();
    let keys = [1, 2].map(|seed| proving_key(&r1cs, KeyFamily::Bellman, seed).unwrap());
    let circuit = || Circuit::R1cs(&r1cs);
    let cache = KeyCache::new(gpu);
    // Tables of tests before.
    gpu.forget_tables();
    gpu.keys().synchronize().unwrap();
    let (before, limit) = (held(gpu), gpu.device().budget().state().limit);
    let first = cache.prover(&keys[0], circuit()).unwrap();
    let with_one = held(gpu);
    let again = cache.prover(&keys[0].clone(), circuit()).unwrap();
    assert!(
        std::ptr::eq(first.key(), again.key()),
        "it is there already"
    );
    assert!(
        held(gpu) - with_one < with_one - before,
        "matrices are the circuit's"
    );
    drop(again);
    // Room for one key and its proofs, and for less than another key.
    let plan = first.key().plan();
    let needed = with_one + plan.section_bytes() + plan.key_bytes() / 4 * 3;
    gpu.device().budget().set_limit(needed);
    drop(first);
    let second = cache.prover(&keys[1], circuit()).unwrap();
    assert_eq!(cache.len(), 1, "the first has gone");
    match cache.prover(&keys[0], circuit()) {
        // With less scratch, or with parts of it on the host.
        Ok(_) => assert_eq!(cache.len(), 2),
        Err(DeviceError::TooSmall { needed, free }) => assert!(needed > free),
        Err(DeviceError::Memory(Memory::OutOfMemory(_))) => {}
        Err(error) => panic!("{error}"),
    }
    let proved = second.prove(&witness, &fixed()).unwrap();
    let verifier = Verifier::new(&keys[1].vk).unwrap();
    verifier
        .verify(&proved.public_values, &proved.proof)
        .unwrap();
    drop(second);
    gpu.device().budget().set_limit(limit);
    cache.let_go().unwrap();
    assert!(cache.is_empty());
    gpu.forget_tables();
    gpu.keys().synchronize().unwrap();
    assert_eq!(held(gpu), before);
}

/// WP-08, WP-15, GP-37: the second waits until the first is done.
fn two_threads_prove_where_there_is_room_for_one(gpu: &Gpu, is_card: bool) {
    let log_n = if is_card { 12 } else { 2 };
    let Instance { r1cs, witness } = Instance::new(Shape::Dense, log_n, 9).unwrap();
    let key = proving_key(&r1cs, KeyFamily::Circom, 6).unwrap();
    let prover = DeviceProver::new(gpu, &key, Circuit::R1cs(&r1cs)).unwrap();
    let limit = gpu.device().budget().state().limit;
    let needed = held(gpu) + prover.key().plan().section_bytes();
    gpu.device().budget().set_limit(needed);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..if is_card { 20 } else { 1 } {
                    assert!(prover.prove(&witness, &fixed()).unwrap().verified);
                }
            });
        }
    });
    let state = gpu.device().budget().state();
    assert_eq!(state.largest_claim, 0);
    gpu.device().budget().set_limit(limit);
    drop(prover);
    gpu.forget_tables();
}

/// Whichever call of the driver fails, the error is typed, all memory is back, and the next
/// proof is right.
#[test]
fn a_proof_that_fails_leaves_nothing_behind() {
    let (device, driver) = device::emulated_at(0, 2 * GIB);
    let gpu = Gpu::new(&device).unwrap();
    let Instance { r1cs, witness } = Instance::new(Shape::Porep, 1, 2).unwrap();
    let key = proving_key(&r1cs, KeyFamily::Circom, 1).unwrap();
    let prover = DeviceProver::new(&gpu, &key, Circuit::R1cs(&r1cs)).unwrap();
    let options = ProveOptions::default;
    prover.prove(&witness, &options()).unwrap();
    let (with_key, counts) = (held(&gpu), driver.counts());
    let before = driver.calls();
    prover.prove(&witness, &options()).unwrap();
    let calls = driver.calls() - before;
    for round in 0..8 {
        driver.fail_nth(1 + calls * (2 * round + 1) / 17, Code::INVALID_VALUE);
        let failed = prover.prove(&witness, &options());
        // An event that is asked for no time may fail unseen.
        if let Err(error) = &failed {
            assert!(!matches!(error, DeviceError::Proof(_)), "{round}: {error}");
        }
        driver.heal();
        // What could not be freed is freed by who looks next, who is told of it once.
        let _ = device.check();
        assert_eq!(held(&gpu), with_key, "{round}");
        assert!(
            prover.prove(&witness, &options()).unwrap().verified,
            "{round}"
        );
        assert_eq!(held(&gpu), with_key, "{round}");
        assert_eq!(driver.counts().blocks, counts.blocks, "{round}");
        assert_eq!(device.host().pinned_use().in_use, 0, "{round}");
    }
    // Somebody else has the card: an error with the bytes, and a proof when they have gone.
    driver.set_tenants(2 * GIB);
    match prover.prove(&witness, &options()) {
        Err(DeviceError::Memory(Memory::OutOfMemory(error))) => {
            assert!(error.requested > error.free)
        }
        other => panic!("{:?}", other.map(|_| ())),
    }
    driver.set_tenants(0);
    assert!(prover.prove(&witness, &options()).unwrap().verified);
    assert_eq!(held(&gpu), with_key);
}
