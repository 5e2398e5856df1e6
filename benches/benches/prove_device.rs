//! Proofs on a GPU, circuit and key synthetic and made in memory: `cargo xtask bench prove_device -- --log-n 24
//! --shape porep --partitions 10`. Wall time from a witness in memory to a verified proof, and what the device did.
//!
//! `--room full,16` measures once with the whole card and once with 16 GiB of it: the rest is taken by somebody else, and the
//! limit is set to that. `--threads 2` proves on so many threads at once as well. `--four-transforms` takes a key with the bases
//! of four transforms, `--multiples` keeps multiples of H's points.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench reports on its standard streams"
)]

mod device;

use std::time::{Duration, Instant};

use cuzk_formats::Witness;
use cuzk_gpu_mem::{AllocKind, Device, DeviceBuf, Recorder, Selector, Settings, TrimPolicy};
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
    let flag = |name: &str| std::env::args().any(|arg| arg == name);
    let gpu = Gpu::new(&bench.device).unwrap_or_else(|error| {
        eprintln!("prove_device: {error}");
        std::process::exit(1);
    });
    let gpu = gpu.with_multiples(flag("--multiples"));
    let rooms = device::option("--room").unwrap_or_else(|| "full".to_owned());
    let job = Job {
        rooms: rooms
            .split(',')
            .map(|room| room.parse().ok().map(|gib: u64| gib << 30))
            .collect(),
        threads: number("--threads", 1),
        shape,
        log_n,
        family,
        four_transforms: flag("--four-transforms"),
        partitions,
    };
    job.run(&mut bench, &gpu);
    bench.finish();
}

/// What is measured.
struct Job {
    /// Bytes that are left free, if not all.
    rooms: Vec<Option<u64>>,
    threads: usize,
    shape: Shape,
    log_n: u32,
    family: KeyFamily,
    /// Whether the key has the bases of four transforms.
    four_transforms: bool,
    partitions: usize,
}

/// Takes all memory of the card but so many bytes, as another process would.
fn ballast(bench: &Bench, leave: u64) -> Option<DeviceBuf<u8>> {
    if !bench.real {
        return None;
    }
    let settings = Settings {
        reserve: 0,
        ..Settings::default()
    };
    let ordinal = Selector::Ordinal(bench.device.info().ordinal);
    let stranger = Device::open(&ordinal, settings).expect("the card once more");
    let stream = stranger.stream("ballast").expect("a stream");
    bench.device.trim(TrimPolicy::Device).expect("a trim");
    let free = stranger.mem_info().expect("figures").free;
    let len = free.saturating_sub(leave) as usize;
    let buffer = stranger.alloc_with("ballast", len, AllocKind::Synchronous, &stream);
    Some(buffer.expect("ballast"))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl Job {
    fn run(&self, bench: &mut Bench, gpu: &Gpu) {
        let (shape, log_n) = (self.shape, self.log_n);
        let transforms = if self.four_transforms {
            ", four transforms"
        } else {
            ""
        };
        let name = format!("{shape:?} 2^{log_n}{transforms}");
        let begun = Instant::now();
        let Instance { r1cs, witness } = Instance::new(shape, log_n, 1).expect("an instance");
        let seconds = begun.elapsed().as_secs_f64();
        bench.row(format!("{name}: circuit and witness made"), seconds, "s");
        let begun = Instant::now();
        let exponents = match self.four_transforms {
            true => KeyExponents::for_four_transforms(&r1cs, self.family, 1),
            false => KeyExponents::new(&r1cs, self.family, 1),
        };
        let exponents = exponents.expect("exponents");
        let seconds = begun.elapsed().as_secs_f64();
        bench.row(format!("{name}: exponents of the key made"), seconds, "s");
        let whole = bench.device.budget().state().limit;
        for room in &self.rooms {
            let _ballast = room.and_then(|bytes| ballast(bench, bytes));
            gpu.device().budget().set_limit(room.unwrap_or(whole));
            let name = match room {
                None => name.clone(),
                Some(bytes) => format!("{name} in {} GiB", bytes >> 30),
            };
            let begun = Instant::now();
            let circuit = Circuit::R1cs(&r1cs);
            let prover = DeviceProver::synthetic(gpu, &exponents, circuit).expect("a key");
            gpu.keys().synchronize().expect("a key");
            let key = prover.key();
            let label = format!(
                "{name}: key ({}) and matrices placed",
                key.plan().residency()
            );
            bench.row(label, begun.elapsed().as_secs_f64(), "s");
            let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
            bench.row(
                format!("{name}: key on the device"),
                gib(key.bytes()),
                "GiB",
            );
            bench.row(
                format!("{name}: key on the host"),
                gib(key.host_bytes()),
                "GiB",
            );
            let room = || gib(gpu.device().room().expect("figures"));
            bench.row(format!("{name}: room for sections"), room(), "GiB");
            self.proofs(bench, gpu, &prover, &witness, &name);
            bench.row(format!("{name}: and after proofs"), room(), "GiB");
            let peak = gpu.device().budget().state().peak_committed;
            bench.row(
                format!("{name}: committed at most so far"),
                gib(peak),
                "GiB",
            );
            drop(prover);
            gpu.forget_tables();
        }
    }

    fn proofs(
        &self,
        bench: &mut Bench,
        gpu: &Gpu,
        prover: &DeviceProver<'_, '_>,
        witness: &Witness,
        name: &str,
    ) {
        let (mut walls, mut spans) = (Vec::new(), Vec::new());
        for round in 0..=self.partitions {
            let recorder = Recorder::new(gpu.upload()).expect("a recorder");
            let begun = Instant::now();
            let proved = prover
                .prove_recorded(witness, &ProveOptions::default(), Some(&recorder))
                .expect("a proof");
            let wall = begun.elapsed();
            assert!(proved.verified);
            let stages: Vec<String> = proved
                .stages
                .as_slice()
                .iter()
                .map(|stage| format!("{} {:.2}", stage.name, ms(stage.elapsed)))
                .collect();
            println!("    {:.2} ms: {}", ms(wall), stages.join(", "));
            if round > 0 || self.partitions == 0 {
                walls.push(wall);
                let mut found = recorder.timeline().expect("times").spans;
                // Sums are begun by two threads: which span comes first is chance.
                found.sort_by_key(|span| span.label);
                spans.push(found);
            }
        }
        bench.row(
            format!("{name}: a proof, median"),
            ms(device::median(walls)),
            "ms",
        );
        for (index, span) in spans[0].iter().enumerate() {
            let times = spans.iter().map(|spans| {
                let span = &spans[index];
                Duration::from_secs_f64((span.end_ms - span.begin_ms) / 1e3)
            });
            let label = format!("{name}: {} ({})", span.label, span.stream);
            bench.row(label, ms(device::median(times.collect())), "ms");
        }
        let many = self.threads.max(1);
        for threads in [1, many] {
            if threads == many && many == 1 || self.partitions == 0 {
                break;
            }
            let begun = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for _ in 0..self.partitions {
                            let proved = prover.prove(witness, &ProveOptions::default());
                            assert!(proved.expect("a proof").verified);
                        }
                    });
                }
            });
            let each = begun.elapsed() / (threads * self.partitions) as u32;
            let label = format!(
                "{name}: each of {} on {threads} threads",
                threads * self.partitions
            );
            bench.row(label, ms(each), "ms");
        }
    }
}
