//! A Sapling Spend of Zcash with the parameters of its ceremony, by cuzk and by bellman's groth16 in turn,
//! verified with the ceremony's verifying key. With a GPU cuzk proves there as well, and a batch through the scheduler.
//!
//! `cargo run --release -p cuzk-examples --features sapling --example sapling_spend -- [ROUNDS] [--device cpu|cuda]`
#![allow(clippy::print_stdout, reason = "what it prints is its result")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bls12_381::{Bls12, Scalar};
use cuzk_bellman::{Histogram, Partitions, Shape, bellman as ours, to_bytes};
use cuzk_examples::sapling::{blank, spend};
use cuzk_examples::{Bytes, median, shares, timed};
use cuzk_formats::{BytesSource, LoadOptions, ProvingKey, bellman as params};
use cuzk_gpu_mem::{Device, Settings};
use cuzk_groth16::device::{DeviceProver, Gpu};
use cuzk_groth16::{Blinding, Circuit, ProveOptions, Prover, Verifier};
use cuzk_sched::{DeviceOptions, Place, Proofs, Scheduler};

/// Proofs of the batch.
const BATCH: u64 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let device = args.iter().position(|arg| arg == "--device").map(|at| {
        args.remove(at);
        (at < args.len()).then(|| args.remove(at))
    });
    let gpu = match device.flatten().as_deref() {
        None | Some("cpu") => None,
        Some("cuda") => Some(Gpu::new(&Device::open_first(&Settings::default())?)?),
        Some(other) => return Err(format!("--device cpu or cuda, not {other}").into()),
    };
    let rounds: u64 = args.first().map_or(Ok(3), |text| text.parse())?;
    let (file, _) = wagyu_zcash_parameters::load_sapling_parameters();

    let source = BytesSource::new("sapling-spend.params", &file);
    let (loaded, time) = timed(|| params::read_params(&source, &LoadOptions::default()));
    let loaded = loaded?;
    println!(
        "key of {} bytes read and checked by cuzk: {time:.2?}",
        file.len()
    );
    for note in &loaded.notes {
        println!("  {note}");
    }
    let (theirs, time) = timed(|| groth16::Parameters::<Bls12>::read(&file[..], false));
    let theirs = theirs?;
    println!("the same by groth16, unchecked: {time:.2?}");
    let verifying_key = groth16::prepare_verifying_key(&theirs.vk);

    let (shape, time) = timed(|| ours::record(blank()));
    let shape = shape?;
    let r1cs = shape.r1cs();
    println!(
        "circuit recorded: {time:.2?}; {} constraints, {} variables, {} inputs, domain {}",
        r1cs.num_constraints(),
        r1cs.num_variables,
        r1cs.num_inputs,
        r1cs.domain_size()
    );
    let witness = ours::witness(&shape, spend(1)?)?;
    println!("witness: {}", shares(&Histogram::of(&witness)));

    let prover = Prover::new(&loaded.key)?;
    let on_gpu = match &gpu {
        None => None,
        Some(gpu) => {
            let circuit = Circuit::R1cs(r1cs);
            let (prover, time) = timed(|| DeviceProver::new(gpu, &loaded.key, circuit));
            println!("key and circuit put on {}: {time:.2?}", gpu.device().info());
            Some(prover?)
        }
    };
    let (mut times, mut proving, mut their_times) = (Vec::new(), Vec::new(), Vec::new());
    let mut gpu_times = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        let circuit = spend(2 + round)?;
        let mut bytes = Bytes::new(1000 + round);
        let (r, s) = (
            Scalar::from_bytes_wide(&bytes.take()),
            Scalar::from_bytes_wide(&bytes.take()),
        );
        let given = |value: Scalar| {
            cuzk_field::Scalar::from_le_bytes(&value.to_bytes()).ok_or("an element below r")
        };
        let blinding = Blinding::from_caller(given(r)?, given(s)?);
        let options = ProveOptions::default().with_blinding(blinding);

        let (proved, time) = timed(|| ours::prove(&prover, &shape, circuit.clone(), &options));
        let proved = proved?;
        times.push(time);
        proving.push(proved.stages.total());
        if let Some(prover) = &on_gpu {
            let (other, time) = timed(|| ours::prove(prover, &shape, circuit.clone(), &options));
            let other = other?;
            if !other.verified || to_bytes([&other]) != to_bytes([&proved]) {
                return Err("the proofs of the GPU and the CPU differ".into());
            }
            gpu_times[0].push(time);
            gpu_times[1].push(other.stages.total());
        }
        let (proof, time) = timed(|| groth16::create_proof(circuit, &theirs, r, s));
        let proof = proof.map_err(|error| error.to_string())?;
        their_times.push(time);

        let mut expected = Vec::new();
        proof.write(&mut expected)?;
        if to_bytes([&proved]) != expected {
            return Err("the proofs differ".into());
        }
        let public: Option<Vec<Scalar>> = proved
            .public_values
            .iter()
            .map(|value| Scalar::from_bytes(&value.to_le_bytes()).into())
            .collect();
        let proof = ours::to_proof(&proved.proof)?;
        groth16::verify_proof(&verifying_key, &proof, &public.ok_or("a value below r")?)
            .map_err(|error| error.to_string())?;
    }
    println!(
        "{rounds} proofs byte for byte equal for equal r and s, and valid under the ceremony's key"
    );
    println!("threads: {}", std::thread::available_parallelism()?);
    println!(
        "cuzk, synthesis to verified proof, median: {:.2?} (of it proving and verifying {:.2?})",
        median(times),
        median(proving)
    );
    if let (Some(gpu), Some(prover)) = (&gpu, on_gpu) {
        let [times, proving] = gpu_times;
        println!(
            "cuzk on the GPU, synthesis to verified proof, median: {:.2?} (of it proving and verifying {:.2?})",
            median(times),
            median(proving)
        );
        let each = batch(gpu, prover, &loaded.key, &shape)?;
        println!("cuzk on the GPU, {BATCH} proofs through the scheduler: {each:.2?} each");
    }
    println!(
        "groth16 0.2, synthesis to proof, median: {:.2?}",
        median(their_times)
    );
    Ok(())
}

/// The time of a proof in a batch: while one computes, the next is synthesised and staged.
fn batch(
    gpu: &Gpu,
    prover: DeviceProver<'_, '_>,
    key: &ProvingKey,
    shape: &Shape,
) -> Result<Duration, Box<dyn Error>> {
    let proofs = Arc::new(Proofs::on_gpus(Verifier::new(&key.vk)?).with_gpu(gpu, prover));
    let circuits: Vec<_> = (0..BATCH).map(spend).collect::<Result<_, _>>()?;
    std::thread::scope(|scope| {
        let device = DeviceOptions::new(Place::Device(gpu.device().clone()));
        let engine = Scheduler::start_in(scope, Partitions::options([device]))?;
        let partitions = Partitions::new(&engine, &proofs);
        let options = ProveOptions::default();
        let (proved, time) = timed(|| ours::prove_all(&partitions, shape, circuits, &options));
        if proved?.iter().any(|proved| !proved.verified) {
            return Err("a proof was not verified".into());
        }
        Ok(time / BATCH as u32)
    })
}
