//! The bases of four transforms: where they are made, what that costs, and the making.

use std::io::Write as _;
use std::time::Duration;

use cuzk_formats::{KeyFlavour, ProvingKey, R1cs};
use cuzk_gpu_mem::Bytes;
use cuzk_groth16::device::Gpu;
use cuzk_groth16::prepared::device::{self as on_device, DeviceCost};
use cuzk_groth16::prepared::{self, Cost};

use crate::device::{DeviceUsed, Taken};
use crate::exit::Failure;
use crate::load::Loader;
use crate::memory::Limit;
use crate::progress::Bar;
use crate::report::StageTime;

/// Rows from which on a GPU is worth its start: the CPU takes as long for their scalar multiplications.
const WORTH_A_GPU: usize = 1 << 11;

/// What makes the bases.
pub(super) struct Maker {
    /// For the result.
    pub(super) used: DeviceUsed,
    gpu: Option<Gpu>,
    multiplications: u64,
}

impl Maker {
    /// Settles on a device, says what is to come, and refuses what does not fit. `needed_bytes` of host
    /// memory are needed in any case.
    pub(super) fn new(
        taken: Taken,
        flavour: KeyFlavour,
        domain_size: usize,
        r1cs: &R1cs,
        needed_bytes: u64,
        limit: Option<Limit>,
    ) -> Result<Self, Failure> {
        let is_named = taken.is_named();
        let (mut used, gpus) = taken.settle_worth(domain_size, WORTH_A_GPU);
        if let Some(gpu) = gpus.into_iter().next() {
            let cost = DeviceCost::of(&gpu, flavour, domain_size, r1cs)?;
            let usable = gpu.device().usable().map_err(on_device_error)?;
            if cost.device_bytes <= usable {
                let time = cost.time(on_device::measure_multiplication(&gpu)?);
                let all_bytes = needed_bytes + cost.host_bytes;
                say(&format!(
                    "four transforms: {} scalar multiplications, about {} on {}; about {} of its memory \
                     and {} of host memory",
                    cost.multiplications,
                    duration(time),
                    used.used,
                    Bytes(cost.device_bytes),
                    Bytes(all_bytes)
                ));
                Limit::check(limit, all_bytes)?;
                return Ok(Self {
                    used,
                    gpu: Some(gpu),
                    multiplications: cost.multiplications,
                });
            }
            let text = format!(
                "out of GPU memory: about {} are needed for the bases of four transforms ({} bytes), {} has \
                 {} ({usable} bytes)",
                Bytes(cost.device_bytes),
                cost.device_bytes,
                used.used,
                Bytes(usable)
            );
            if is_named {
                return Err(Failure::OutOfMemory(text));
            }
            used.reason = text;
            used.used = "cpu".to_owned();
        }
        let cost = Cost::of(flavour, domain_size, r1cs);
        let time = cost.time(prepared::measure_multiplication()?);
        let all_bytes = needed_bytes + cost.host_bytes;
        say(&format!(
            "four transforms: {} scalar multiplications, about {} on {} threads; about {} of host memory",
            cost.multiplications,
            duration(time),
            used.threads,
            Bytes(all_bytes)
        ));
        Limit::check(limit, all_bytes)?;
        Ok(Self {
            used,
            gpu: None,
            multiplications: cost.multiplications,
        })
    }

    /// Makes them.
    pub(super) fn make(
        &self,
        key: &mut ProvingKey,
        r1cs: &R1cs,
        loader: &mut Loader,
    ) -> Result<(), Failure> {
        let bar = Bar::counting("transforming the key", self.multiplications);
        let advance = |done| bar.advance(done);
        StageTime::of(
            &mut loader.stages,
            "bases of four transforms",
            || match &self.gpu {
                Some(gpu) => Ok(on_device::four_transform_bases(gpu, key, r1cs, &advance)?),
                None => Ok(prepared::four_transform_bases(key, r1cs, &advance)?),
            },
        )
    }
}

fn on_device_error(error: cuzk_gpu_mem::Error) -> Failure {
    cuzk_groth16::device::Error::from(error).into()
}

/// For who waits; the result has it as stages.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn duration(time: Duration) -> String {
    match time.as_secs() {
        0..120 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}
