//! Partitions through the scheduler.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use blstrs::{Bls12, Scalar};
use cuzk_bellman::{
    Backend as _, Error, Job, Partitions, Shape, bellpepper, bellperson as ours, to_bytes,
};
use cuzk_formats::ProvingKey;
use cuzk_groth16::device::{DeviceProver, Gpu};
use cuzk_groth16::{
    Blinding, Circuit as CuzkCircuit, Error as ProverError, ProveOptions, Prover, Verifier,
};
use cuzk_sched::{DeviceOptions, Place, Proofs, Scheduler};
use rand_chacha_03::ChaCha20Rng;
use rand_chacha_03::rand_core::SeedableRng as _;

use crate::common::{self, Fault};
use crate::{FORM, Rig, circuits, emulated_gpu};

circuits!(bellpepper_core, Scalar);

struct Case {
    shape: Shape,
    key: ProvingKey,
}

impl Case {
    fn new() -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let parameters = bellperson::groth16::generate_random_parameters::<Bls12, _, _>(
            Chain::blank(FORM),
            &mut rng,
        );
        Self {
            shape: bellpepper::record(Chain::blank(FORM)).unwrap(),
            key: ours::proving_key(&parameters.unwrap()).unwrap(),
        }
    }

    /// Jobs with r and s of their own; `drawn` counts.
    fn jobs<'c>(
        &'c self,
        count: u64,
        faulty: Option<u64>,
        drawn: &'c Cell<u64>,
    ) -> impl Iterator<Item = Result<Job, Error>> + 'c {
        (1..=count).map(move |first| {
            drawn.set(drawn.get() + 1);
            let mut circuit = Chain::with(FORM, first);
            if faulty == Some(first) {
                circuit.fault = Fault::Value;
            }
            Ok(Job {
                witness: bellpepper::witness(&self.shape, circuit)?,
                options: blinded(first),
            })
        })
    }

    /// What the CPU's prover makes of them.
    fn expected(&self, count: u64) -> Vec<u8> {
        let prover = Prover::new(&self.key).unwrap();
        let drawn = Cell::default();
        let mut jobs = self.jobs(count, None, &drawn);
        to_bytes(&prover.prove_all(self.shape.r1cs(), &mut jobs).unwrap())
    }

    fn on_gpus<'k>(&'k self, gpus: &[&'k Gpu]) -> Arc<Proofs<'k>> {
        let proofs = Proofs::on_gpus(Verifier::new(&self.key.vk).unwrap());
        let proofs = gpus.iter().fold(proofs, |proofs, gpu| {
            let circuit = CuzkCircuit::R1cs(self.shape.r1cs());
            proofs.with_gpu(gpu, DeviceProver::new(gpu, &self.key, circuit).unwrap())
        });
        Arc::new(proofs)
    }
}

fn blinded(number: u64) -> ProveOptions {
    let [r, s] = [3_u64, 5].map(|base| cuzk_field::Fr::from(base).pow(1000 + number).into());
    ProveOptions::default().with_blinding(Blinding::from_caller(r, s))
}

fn device(gpu: &Gpu) -> DeviceOptions {
    DeviceOptions::new(Place::Device(gpu.device().clone()))
}

#[test]
fn partitions_over_two_emulated_devices_come_in_order() {
    let case = Case::new();
    let other = emulated_gpu(1);
    let gpus = [Rig::emulated().gpu, &other];
    let proofs = case.on_gpus(&gpus);
    let proved = thread::scope(|scope| {
        let engine = Scheduler::start_in(scope, Partitions::options(gpus.map(device))).unwrap();
        let partitions = Partitions::new(&engine, &proofs);
        let drawn = Cell::default();
        let mut jobs = case.jobs(3, None, &drawn);
        partitions.prove_all(case.shape.r1cs(), &mut jobs).unwrap()
    });
    assert!(proved.iter().all(|proved| proved.verified));
    assert_eq!(to_bytes(&proved), case.expected(3));
}

#[test]
fn partitions_on_a_card_come_in_order() {
    let Some(rig) = Rig::card() else { return };
    let case = Case::new();
    let proofs = case.on_gpus(&[rig.gpu]);
    let proved = thread::scope(|scope| {
        let options = Partitions::options([device(rig.gpu)]);
        let engine = Scheduler::start_in(scope, options).unwrap();
        let drawn = Cell::default();
        Partitions::new(&engine, &proofs)
            .prove_all(case.shape.r1cs(), &mut case.jobs(40, None, &drawn))
            .unwrap()
    });
    assert_eq!(to_bytes(&proved), case.expected(40));
}

/// On the CPU's workers: two of them, so that three partitions at most are in memory.
#[test]
fn one_is_drawn_at_a_time_and_the_first_failure_ends_it() {
    let case = Case::new();
    let circuit = || CuzkCircuit::R1cs(case.shape.r1cs());
    let proofs = Arc::new(Proofs::new(Prover::new(&case.key).unwrap(), circuit()));
    thread::scope(|scope| {
        let options = Partitions::options([DeviceOptions::new(Place::Cpu)]);
        let engine = Scheduler::start_in(scope, options).unwrap();
        let partitions = Partitions::new(&engine, &proofs);
        let r1cs = case.shape.r1cs();
        let drawn = Cell::default();
        let proved = partitions
            .prove_all(r1cs, &mut case.jobs(9, None, &drawn))
            .unwrap();
        assert_eq!(to_bytes(&proved), case.expected(9));
        assert_eq!(drawn.get(), 9);

        drawn.set(0);
        let error = partitions
            .prove_all(r1cs, &mut case.jobs(9, Some(2), &drawn))
            .unwrap_err();
        assert_eq!(error, ProverError::Unsatisfied { constraint: 1 }.into());
        assert!(drawn.get() <= 4, "{}", drawn.get());
        assert_eq!(engine.status().jobs, 0);

        // Of another shape: an engine's proofs are of one circuit.
        let form = common::Form { aux: 8, ..FORM };
        let other = bellpepper::record(Chain::blank(form)).unwrap();
        let error = bellpepper::prove(&partitions, &other, Chain::with(form, 1), &blinded(1));
        assert_eq!(error.unwrap_err(), Error::OtherCircuit);

        // None at all, and one that is stopped.
        assert_eq!(
            partitions
                .prove_all(r1cs, &mut std::iter::empty())
                .unwrap()
                .len(),
            0
        );
        let stop = cuzk_groth16::StopCheck::new(|| true);
        let options = blinded(1).with_stop_check(stop);
        let error = bellpepper::prove(&partitions, &case.shape, Chain::with(FORM, 1), &options);
        assert_eq!(error.unwrap_err(), ProverError::Stopped.into());
    });
}

/// A circuit that panics takes nobody else's proofs with it: what was begun for it is over when the panic is out.
#[test]
fn a_circuit_that_panics_leaves_the_engine_at_work() {
    let case = Case::new();
    let circuit = CuzkCircuit::R1cs(case.shape.r1cs());
    let proofs = Arc::new(Proofs::new(Prover::new(&case.key).unwrap(), circuit));
    thread::scope(|scope| {
        let options = Partitions::options([DeviceOptions::new(Place::Cpu)]);
        let engine = Scheduler::start_in(scope, options).unwrap();
        let partitions = Partitions::new(&engine, &proofs);
        let drawn = Cell::default();
        let mut jobs = case.jobs(3, None, &drawn).enumerate().map(|(i, job)| {
            assert!(i < 2, "no value");
            job
        });
        let prove = || partitions.prove_all(case.shape.r1cs(), &mut jobs);
        let panic = catch_unwind(AssertUnwindSafe(prove)).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"no value"));
        assert_eq!(engine.status().jobs, 0);
        let mut jobs = case.jobs(2, None, &drawn);
        let proved = partitions.prove_all(case.shape.r1cs(), &mut jobs).unwrap();
        assert_eq!(to_bytes(&proved), case.expected(2));
    });
}

/// WP-15: threads with keys of their own through one engine.
#[test]
fn keys_side_by_side_do_not_mix() {
    let cases = [Case::new(), Case::new()];
    let proofs: Vec<_> = cases
        .iter()
        .map(|case| {
            let circuit = CuzkCircuit::R1cs(case.shape.r1cs());
            Arc::new(Proofs::new(Prover::new(&case.key).unwrap(), circuit))
        })
        .collect();
    thread::scope(|scope| {
        let mut options = Partitions::options([DeviceOptions::new(Place::Cpu)]);
        options.jobs_max = 3;
        let engine = Scheduler::start_in(scope, options).unwrap();
        thread::scope(|threads| {
            for (case, proofs) in cases.iter().zip(&proofs) {
                let engine = &engine;
                threads.spawn(move || {
                    let drawn = Cell::default();
                    let mut jobs = case.jobs(6, None, &drawn);
                    let partitions = Partitions::new(engine, proofs);
                    let proved = partitions.prove_all(case.shape.r1cs(), &mut jobs).unwrap();
                    assert_eq!(to_bytes(&proved), case.expected(6));
                });
            }
        });
    });
}
