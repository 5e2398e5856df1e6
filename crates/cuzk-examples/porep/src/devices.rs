//! cuzk on a GPU.

use std::sync::Arc;

use anyhow::Result;
use cuzk_bellman::{Backend, Partitions};
use cuzk_formats::{ProvingKey, R1cs};
use cuzk_gpu_mem::{Device, Settings};
use cuzk_groth16::device::{DeviceProver, Gpu};
use cuzk_groth16::{Circuit, Verifier};
use cuzk_sched::{DeviceOptions, Place, Proofs, Scheduler};

use crate::compare::timed;

/// Puts key and circuit on the first GPU and calls `work` with what proves there.
pub fn with_gpu<T>(
    key: &ProvingKey,
    r1cs: &R1cs,
    work: impl FnOnce(&dyn Backend) -> Result<T>,
) -> Result<T> {
    let device = Device::open_first(&Settings::default())?;
    println!("  {}", device.info());
    let gpu = Gpu::new(&device)?;
    let (prover, time) = timed(|| DeviceProver::new(&gpu, key, Circuit::R1cs(r1cs)));
    let prover = prover?;
    println!("  key and circuit put on the GPU: {time}");
    let proofs = Arc::new(Proofs::on_gpus(Verifier::new(&key.vk)?).with_gpu(&gpu, prover));
    std::thread::scope(|scope| {
        let place = Place::Device(gpu.device().clone());
        let options = Partitions::options([DeviceOptions::new(place)]);
        let engine = Scheduler::start_in(scope, options)?;
        work(&Partitions::new(&engine, &proofs))
    })
}
