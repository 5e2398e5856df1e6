//! Proofs on a GPU, circuit and key synthetic and made in memory: `cargo xtask bench prove_device -- --log-n 24
//! --shape porep --partitions 10`. Wall time from a witness in memory to a verified proof, and what the device did.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench reports on its standard streams"
)]

mod device;

use std::time::{Duration, Instant};

use cuzk_gpu_mem::Recorder;
use cuzk_groth16::device::{DeviceProver, Gpu};
use cuzk_groth16::synth::{Instance, KeyExponents, KeyFamily, Shape};
use cuzk_groth16::{Circuit, ProveOptions};
use device::Bench;

fn main() {
    let mut bench = Bench::open("prove_device");
    let number = |name: &str, other: usize| {
        device::option(name).map_or(other, |text| text.parse().expect("a number"))
    };
    let log_n = number("--log-n", if bench.real { 20 } else { 4 }) as u32;
    let partitions = number("--partitions", if bench.real { 10 } else { 1 });
    let shape = match device::option("--shape").as_deref() {
        Some("dense") => Shape::Dense,
        _ => Shape::Porep,
    };
    let family = match device::option("--family").as_deref() {
        Some("circom") => KeyFamily::Circom,
        Some("arkworks") => KeyFamily::Arkworks,
        _ => KeyFamily::Bellman,
    };
    let gpu = Gpu::new(&bench.device).unwrap_or_else(|error| {
        eprintln!("prove_device: {error}");
        std::process::exit(1);
    });
    proofs(&mut bench, &gpu, shape, log_n, family, partitions);
    bench.finish();
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn proofs(
    bench: &mut Bench,
    gpu: &Gpu,
    shape: Shape,
    log_n: u32,
    family: KeyFamily,
    partitions: usize,
) {
    let name = format!("{shape:?} 2^{log_n}");
    let begun = Instant::now();
    let Instance { r1cs, witness } = Instance::new(shape, log_n, 1).expect("an instance");
    let seconds = begun.elapsed().as_secs_f64();
    bench.row(format!("{name}: circuit and witness made"), seconds, "s");
    let begun = Instant::now();
    let exponents = KeyExponents::new(&r1cs, family, 1).expect("exponents");
    let seconds = begun.elapsed().as_secs_f64();
    bench.row(format!("{name}: exponents of the key made"), seconds, "s");
    let begun = Instant::now();
    let prover = DeviceProver::synthetic(gpu, &exponents, Circuit::R1cs(&r1cs)).expect("a key");
    gpu.keys().synchronize().expect("a key");
    let seconds = begun.elapsed().as_secs_f64();
    bench.row(
        format!("{name}: key and matrices on the device"),
        seconds,
        "s",
    );
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    bench.row(format!("{name}: key"), gib(prover.key().bytes()), "GiB");
    drop(exponents);

    let (mut walls, mut spans) = (Vec::new(), Vec::new());
    let all = Instant::now();
    for round in 0..=partitions {
        let recorder = Recorder::new(gpu.upload()).expect("a recorder");
        let begun = Instant::now();
        let proved = prover
            .prove_recorded(&witness, &ProveOptions::default(), Some(&recorder))
            .expect("a proof");
        let wall = begun.elapsed();
        assert!(proved.verified);
        let stages: Vec<String> = proved
            .stages
            .as_slice()
            .iter()
            .map(|stage| format!("{} {:.1}", stage.name, ms(stage.elapsed)))
            .collect();
        println!("    {:.1} ms: {}", ms(wall), stages.join(", "));
        if round > 0 || partitions == 0 {
            walls.push(wall);
            spans.push(recorder.timeline().expect("times").spans);
        }
    }
    println!(
        "    {} proofs in {:.2} s",
        partitions + 1,
        all.elapsed().as_secs_f64()
    );
    bench.row(
        format!("{name}: a proof, median"),
        ms(device::median(walls)),
        "ms",
    );
    for (index, span) in spans[0].iter().enumerate() {
        let times = spans
            .iter()
            .map(|spans| {
                Duration::from_secs_f64((spans[index].end_ms - spans[index].begin_ms) / 1e3)
            })
            .collect();
        let label = format!("{name}: {}", span.label);
        bench.row(label, ms(device::median(times)), "ms");
    }
}
