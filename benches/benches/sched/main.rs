//! `cargo xtask bench sched`: proofs per minute against workers, concurrency and partitions, on the CPU
//! or on GPUs: `-- --device cuda --gpus all --log-n 20,22,24 --svg sched.svg`.
//!
//! Circuits are synthetic, as are their keys; each row is an engine of its own that proves the same
//! number of partitions, each of them verified. The first row of a size is the prover without an engine,
//! one proof after the other.
#![allow(clippy::print_stdout, reason = "a bench reports on standard output")]

mod args;
mod engine;
mod gpus;
mod picture;
mod table;

use std::sync::Arc;

use cuzk_groth16::device::{DeviceProver, Gpu};
use cuzk_groth16::synth::Instance;
use cuzk_groth16::{Circuit, Prover};
use cuzk_sched::Proofs;

use args::Wanted;
use engine::Setting;
use gpus::Key;
use table::Table;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Fallible<()> {
    let wanted = Wanted::of(std::env::args().skip(1))?;
    rayon::ThreadPoolBuilder::new()
        .num_threads(wanted.threads)
        .build_global()?;
    let gpus = gpus::open(&wanted)?;
    let ballast = gpus.iter().filter(|_| wanted.ballast).map(gpus::ballast);
    let _ballast = ballast.collect::<Fallible<Vec<_>>>()?;
    if !wanted.json {
        println!(
            "{} threads, {:?} shape, every proof verified",
            rayon::current_num_threads(),
            wanted.shape
        );
        for gpu in &gpus {
            println!("{}", gpu.device().info());
        }
    }
    let mut table = Table::new(&wanted);
    for &log_n in &wanted.log_n {
        of_size(&mut table, &gpus, log_n)?;
    }
    if let Some(path) = &wanted.svg {
        std::fs::write(path, picture::picture(table.rows()))?;
    }
    Ok(())
}

/// The rows of one size.
fn of_size(table: &mut Table<'_>, gpus: &[Gpu], log_n: u32) -> Fallible<()> {
    let wanted = table.wanted;
    let instance = Instance::new(wanted.shape, log_n, 1)?;
    let witness = Arc::new(instance.witness.clone());
    match Key::of(wanted, &instance)? {
        Key::Host(key) => {
            let circuit = Circuit::R1cs(&instance.r1cs);
            let prover = Prover::new(&*key)?;
            let setting = Setting::new(wanted, &[], log_n, witness);
            table.push(setting.alone(|witness, options| {
                Ok(prover.prove(circuit.clone(), witness, options)?)
            })?);
            let proofs = Proofs::new(Prover::new(&*key)?, circuit);
            table.of_engines(&setting, &Arc::new(proofs))
        }
        Key::Exponents(exponents) => {
            let (verifier, provers) = gpus::provers(gpus, &instance, &exponents)?;
            drop(exponents);
            let setting = Setting::new(wanted, gpus, log_n, witness);
            table.note(|| residency(&provers));
            table.push(setting.alone(|witness, options| Ok(provers[0].prove(witness, options)?))?);
            let proofs = gpus::proofs(gpus, verifier, provers);
            table.of_engines(&setting, &Arc::new(proofs))?;
            gpus.iter().for_each(Gpu::forget_tables);
            Ok(())
        }
    }
}

/// How the keys lie.
fn residency(provers: &[DeviceProver<'_, '_>]) -> String {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let lines = provers.iter().map(|prover| {
        let key = prover.key();
        format!(
            "     key {}: {:.2} GiB on the device, {:.2} GiB on the host",
            key.plan().residency(),
            gib(key.bytes()),
            gib(key.host_bytes())
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}
