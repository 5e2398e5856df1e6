//! Real proofs on the emulated device, and on a card where there is one.

use std::collections::BTreeSet;
use std::sync::Arc;

use cuzk_field::{Fr, Scalar};
use cuzk_formats::{BytesSource, LoadOptions, Witness, r1cs, zkey};
use cuzk_gpu_mem::{GIB, WIPE};
use cuzk_groth16::device::{DeviceProver, Gpu};
use cuzk_groth16::{Circuit, Error as Groth16, Verifier};
use cuzk_sched::timeline::Report;
use cuzk_sched::{
    DeviceOptions, JobError, JobOptions, Options, Phase, Place, ProofError, Proofs, Scheduler,
    Statement,
};
use cuzk_testkit::device;

#[test]
fn partitions_are_proved_on_the_emulator() {
    let device = device::emulated(2 * GIB);
    // An emulated proof takes seconds.
    partitions_are_proved_in_order(&Gpu::new(&device).unwrap(), 1);
}

#[test]
fn partitions_are_proved_on_a_card() {
    let Some(device) = device::card() else {
        return;
    };
    partitions_are_proved_in_order(&Gpu::new(&device).unwrap(), 20);
}

fn product(a: u64, b: u64) -> Scalar {
    (Fr::from(a) * Fr::from(b)).into()
}

/// `testdata/mul1`: c = a b, with c public; a wrong c where that is asked for.
fn statement(a: u64, b: u64, wrong: u64) -> Statement<'static> {
    Statement::Witness(Arc::new(Witness::new(vec![
        Scalar::ONE,
        product(a, b + wrong),
        Fr::from(a).into(),
        Fr::from(b).into(),
    ])))
}

fn partitions_are_proved_in_order(gpu: &Gpu, count: u64) {
    let case = cuzk_testkit::case("mul1");
    let (key, r1cs) = (case.zkey().unwrap(), case.r1cs().unwrap());
    let load = LoadOptions::default();
    let key = zkey::read(&BytesSource::new("circuit.zkey", &key), &load).unwrap();
    let r1cs = r1cs::read(&BytesSource::new("circuit.r1cs", &r1cs), &load)
        .unwrap()
        .r1cs;
    let verifier = Verifier::new(&key.key.vk).unwrap();
    let prover = DeviceProver::new(gpu, &key.key, Circuit::R1cs(&r1cs)).unwrap();
    let proofs = Arc::new(Proofs::on_gpus(verifier.clone()).with_gpu(gpu, prover));
    let run = std::thread::scope(|scope| {
        let place = Place::Device(gpu.device().clone());
        let mut options = Options::new([DeviceOptions::new(place)]);
        options.timeline = true;
        let scheduler = Scheduler::start_in(scope, options).unwrap();
        let submit = |statements| {
            scheduler
                .submit(&proofs, statements, JobOptions::default())
                .unwrap()
        };
        let good = submit(
            (0..count)
                .map(|index| statement(index + 2, 99, 0))
                .collect(),
        );
        let bad = submit(vec![statement(3, 4, 1)]);
        let finished = good.wait().unwrap();
        for (index, proved) in finished.outputs.iter().enumerate() {
            assert!(proved.verified);
            let expected = [product(index as u64 + 2, 99)];
            assert_eq!(proved.public_values, expected);
            verifier.verify(&expected, &proved.proof).unwrap();
        }
        match bad.wait() {
            Err(JobError::Failed {
                attempts: 1,
                error: ProofError::Groth16(Groth16::Unsatisfied { constraint: 0 }),
                ..
            }) => {}
            other => panic!("{other:?}"),
        }
        scheduler.drain();
        scheduler.timeline().unwrap()
    });
    assert_eq!(run.notes, [""; 0]);
    let report = Report::of(&run);
    let device = &report.devices[0];
    assert!(device.has_kernels, "{report}");
    assert!(device.busy_ms > 0.0 && device.busy_ms <= device.total_ms);
    // What the device did for a worker is that worker's.
    let computing: BTreeSet<usize> = run
        .host
        .iter()
        .filter(|span| span.phase == Some(Phase::Compute))
        .map(|span| span.worker)
        .collect();
    let labelled = |is_wipe: bool| -> BTreeSet<usize> {
        let spans = run.kernels.iter();
        let spans = spans.filter(|span| (span.label == WIPE) == is_wipe);
        spans.map(|span| span.worker).collect()
    };
    assert_eq!(computing.len(), 2);
    assert_eq!(
        (labelled(false), labelled(true)),
        (computing.clone(), computing)
    );
    assert!(run.transfers.iter().any(|copy| copy.is_upload));
    assert!(!run.transfers.iter().all(|copy| copy.is_upload));
}
