//! The GPUs, and the provers on them.

use std::sync::Arc;

use cuzk_formats::ProvingKey;
use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::{AllocKind, Device, DeviceBuf, DeviceInfo, GIB, Selector, Settings};
use cuzk_groth16::device::{DeviceProver, Gpu};
use cuzk_groth16::synth::{Instance, KeyExponents, KeyFamily};
use cuzk_groth16::{Circuit, Verifier};
use cuzk_sched::Proofs;

use super::Fallible;
use super::args::{Wanted, Where};

/// Opens as many GPUs as are wanted, tested. Those emulated are all alike.
pub(crate) fn open(wanted: &Wanted) -> Fallible<Vec<Gpu>> {
    let settings = Settings {
        limit: wanted.vram_limit,
        ..Settings::default()
    };
    let at_most = wanted.gpus.iter().copied().max();
    let devices: Vec<Device> = match wanted.device {
        Where::Cpu => Vec::new(),
        Where::Emulator => (0..at_most.unwrap_or(2) as u32)
            .map(|ordinal| {
                let info = DeviceInfo {
                    ordinal,
                    ..DeviceInfo::simulated(2 * GIB)
                };
                let driver = Arc::new(SimDriver::with_info(info, true));
                Device::with_driver(driver, settings.clone())
            })
            .collect::<Result<_, _>>()?,
        Where::Cuda => {
            let found = cuzk_gpu_mem::list()?;
            let count = at_most.unwrap_or(found.len());
            if found.len() < count {
                return Err(format!("{count} GPUs are wanted, {} are here", found.len()).into());
            }
            found
                .iter()
                .take(count)
                .map(|info| Device::open(&Selector::Ordinal(info.ordinal), settings.clone()))
                .collect::<Result<_, _>>()?
        }
    };
    let gpus = devices.iter().map(Gpu::new).collect::<Result<_, _>>()?;
    Ok(gpus)
}

/// Takes all of a GPU beyond the limit, as another program would.
pub(crate) fn ballast(gpu: &Gpu) -> Fallible<DeviceBuf<u8>> {
    let device = gpu.device();
    let settings = Settings {
        reserve: 0,
        ..Settings::default()
    };
    let stranger = Device::open(&Selector::Ordinal(device.info().ordinal), settings)?;
    let stream = stranger.stream("ballast")?;
    let leave = device.budget().state().limit + device.settings().reserve;
    let len = stranger.mem_info()?.free.saturating_sub(leave);
    let kind = AllocKind::Synchronous;
    Ok(stranger.alloc_with("ballast", usize::try_from(len)?, kind, &stream)?)
}

/// What proves one circuit, with a synthetic key.
pub(crate) enum Key {
    /// On the host.
    Host(Box<ProvingKey>),
    /// What each GPU makes its points from.
    Exponents(Box<KeyExponents>),
}

impl Key {
    pub(crate) fn of(wanted: &Wanted, instance: &Instance) -> Fallible<Self> {
        // The keys of the PoRep circuits are bellman's.
        let family = match wanted.device {
            Where::Cpu => KeyFamily::Circom,
            Where::Cuda | Where::Emulator => KeyFamily::Bellman,
        };
        Ok(match wanted.device {
            Where::Cpu => {
                let key = cuzk_groth16::synth::proving_key(&instance.r1cs, family, 1)?;
                Self::Host(Box::new(key))
            }
            Where::Cuda | Where::Emulator => {
                let exponents = KeyExponents::new(&instance.r1cs, family, 1)?;
                Self::Exponents(Box::new(exponents))
            }
        })
    }
}

/// A prover of this key on each GPU.
pub(crate) fn provers<'k>(
    gpus: &'k [Gpu],
    instance: &'k Instance,
    exponents: &KeyExponents,
) -> Fallible<(Verifier, Vec<DeviceProver<'k, 'k>>)> {
    let mut provers = Vec::new();
    for gpu in gpus {
        let circuit = Circuit::R1cs(&instance.r1cs);
        let prover = DeviceProver::synthetic(gpu, exponents, circuit)?;
        gpu.keys().synchronize()?;
        provers.push(prover);
    }
    let first: &DeviceProver<'_, '_> = provers.first().ok_or("no GPU is wanted")?;
    let verifier = Verifier::new(&first.key().header().vk)?;
    Ok((verifier, provers))
}

/// The engine's work on them.
pub(crate) fn proofs<'k>(
    gpus: &'k [Gpu],
    verifier: Verifier,
    provers: Vec<DeviceProver<'k, 'k>>,
) -> Proofs<'k> {
    let together = gpus.iter().zip(provers);
    together.fold(Proofs::on_gpus(verifier), |proofs, (gpu, prover)| {
        proofs.with_gpu(gpu, prover)
    })
}
