//! cuzk's provers, one technique more a row.

use std::sync::atomic::{AtomicUsize, Ordering};

use cuzk_groth16::device::{DeviceProver, Gpu, HostMatrices, Result};
use cuzk_groth16::synth::{Instance, KeyExponents};
use cuzk_groth16::{Circuit, ProveOptions, Rows};

use super::inputs;
use super::table::{Measured, Meter, Table};

pub(crate) fn ordinary(
    gpu: &Gpu,
    instance: &Instance,
    exponents: &KeyExponents,
    partitions: usize,
    table: &mut Table,
) {
    let Instance { r1cs, witness } = instance;
    let [a, b] = inputs::rows(gpu, HostMatrices::of_r1cs(r1cs), witness.values());
    let rows = Rows::new(a.to_vec(), b.to_vec()).expect("rows");
    drop((a, b));
    let prover = match DeviceProver::synthetic(gpu, exponents, Circuit::R1cs(r1cs)) {
        Ok(prover) => prover,
        Err(error) => return table.push("0/1 sums", Err(error.to_string())),
    };
    let residency = format!("key {}", prover.key().plan().residency());
    let mut row = |name: &str, rows, workers| {
        let measured = proofs(gpu, &prover, instance, rows, workers, partitions);
        let name = format!("{name}, {residency}");
        table.push(&name, measured.map_err(|error| error.to_string()));
    };
    row("0/1 sums, two workers", Some(&rows), 2);
    row("rows on the device", None, 1);
    row("two workers", None, 2);
}

pub(crate) fn four_transforms(
    gpu: &Gpu,
    instance: &Instance,
    exponents: &KeyExponents,
    partitions: usize,
    table: &mut Table,
) {
    let name = "four transforms";
    let prover = match DeviceProver::synthetic(gpu, exponents, Circuit::R1cs(&instance.r1cs)) {
        Ok(prover) => prover,
        Err(error) => return table.push(name, Err(error.to_string())),
    };
    let residency = prover.key().plan().residency().to_string();
    for (workers, name) in [(1, name), (2, "four transforms, two workers")] {
        let measured = proofs(gpu, &prover, instance, None, workers, partitions);
        let name = format!("{name}, key {residency}");
        table.push(&name, measured.map_err(|error| error.to_string()));
    }
}

/// A proof of each worker to warm up, then `partitions` in all. All are verified.
fn proofs(
    gpu: &Gpu,
    prover: &DeviceProver<'_, '_>,
    instance: &Instance,
    rows: Option<&Rows>,
    workers: usize,
    partitions: usize,
) -> Result<Measured> {
    let options = ProveOptions::default();
    let prove = |recorder: Option<&cuzk_gpu_mem::Recorder>| -> Result<()> {
        let witness = &instance.witness;
        let packed = match rows {
            Some(rows) => prover.pack_rows(rows, witness, &options)?,
            None => prover.pack(witness, &options)?,
        };
        let (admission, staged) = prover.stage(packed, &options)?;
        let computed = prover.compute(admission, staged, &options, recorder)?;
        let proved = prover.finish(computed, witness, &options)?;
        assert!(proved.verified);
        Ok(())
    };
    let all = |count: usize, recorder: Option<&cuzk_gpu_mem::Recorder>| -> Result<()> {
        let next = AtomicUsize::new(0);
        std::thread::scope(|threads| {
            let work = || -> Result<()> {
                while next.fetch_add(1, Ordering::Relaxed) < count {
                    prove(recorder)?;
                }
                Ok(())
            };
            let workers: Vec<_> = (0..workers).map(|_| threads.spawn(work)).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().expect("no panic"))
        })
    };
    all(workers, None)?;
    let meter = Meter::begin(gpu.device(), gpu.upload())?;
    gpu.upload().set_recorder(Some(meter.recorder().clone()));
    let done = all(partitions, Some(meter.recorder()));
    gpu.upload().set_recorder(None);
    done?;
    Ok(meter.end(partitions)?)
}
