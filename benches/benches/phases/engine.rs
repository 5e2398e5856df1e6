//! cuzk's provers, one technique more a row.

use std::sync::atomic::{AtomicUsize, Ordering};

use cuzk_groth16::device::{DeviceProver, Gpu, HostMatrices, Result};
use cuzk_groth16::synth::{Instance, KeyExponents};
use cuzk_groth16::{Circuit, ProveOptions, QueryVariables, Rows};

use super::inputs;
use super::table::{Measured, Meter, Table};

/// What all rows share.
pub(crate) struct Engine<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) instance: &'a Instance,
    pub(crate) partitions: usize,
}

impl Engine<'_> {
    /// The rows of one prover: names, and how many workers.
    fn rows(
        &self,
        table: &mut Table,
        prover: Result<DeviceProver<'_, '_>>,
        given: Option<&Rows>,
        rows: &[(&str, usize)],
    ) {
        let prover = match prover {
            Ok(prover) => prover,
            Err(error) => return table.push(rows[0].0, Err(error.to_string())),
        };
        let residency = prover.key().plan().residency();
        for (name, workers) in rows {
            let measured = self.proofs(&prover, given, *workers);
            let name = format!("{name}, key {residency}");
            table.push(&name, measured.map_err(|error| error.to_string()));
        }
    }

    pub(crate) fn ordinary(&self, exponents: &KeyExponents, table: &mut Table) {
        let (gpu, Instance { r1cs, witness }) = (self.gpu, self.instance);
        let [a, b] = inputs::rows(gpu, HostMatrices::of_r1cs(r1cs), witness.values());
        let rows = Rows::new(a.to_vec(), b.to_vec()).expect("rows");
        drop((a, b));
        // Its variables alone: no matrices on the device.
        let variables = QueryVariables::of(r1cs);
        let given = Circuit::Rows {
            rows: Rows::new(Vec::new(), Vec::new()).expect("no rows"),
            variables: Some(&variables),
        };
        let prover = DeviceProver::synthetic(gpu, exponents, given);
        self.rows(table, prover, Some(&rows), &[("0/1 sums, two workers", 2)]);
        drop(rows);
        let prover = DeviceProver::synthetic(gpu, exponents, Circuit::R1cs(r1cs));
        let names = [("rows on the device", 1), ("two workers", 2)];
        self.rows(table, prover, None, &names);
    }

    pub(crate) fn four_transforms(&self, exponents: &KeyExponents, table: &mut Table) {
        let circuit = Circuit::R1cs(&self.instance.r1cs);
        let prover = DeviceProver::synthetic(self.gpu, exponents, circuit);
        let names = [("four transforms", 1), ("four transforms, two workers", 2)];
        self.rows(table, prover, None, &names);
    }

    /// A proof of each worker to warm up, then `partitions` in all. All are verified.
    fn proofs(
        &self,
        prover: &DeviceProver<'_, '_>,
        rows: Option<&Rows>,
        workers: usize,
    ) -> Result<Measured> {
        let Self {
            gpu,
            instance,
            partitions,
        } = *self;
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
}
