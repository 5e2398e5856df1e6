//! Arguments of many proofs at once.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cuzk_sched::OnDeviceError;

/// Many witnesses, and what of the engine can be set.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Many proofs")]
pub(crate) struct ManyArgs {
    /// Prove every witness of this folder (its *.wtns, by name), or of this list (a text file, one
    /// path a line). Each is reported and written as soon as it is proved; one that fails leaves the
    /// others alone
    #[arg(long, value_name = "FOLDER|LIST", env = "CUZK_WITNESSES")]
    pub(crate) witnesses: Option<PathBuf>,
    /// Where their results go: NAME.proof.json (or .bin) and NAME.public.json for NAME.wtns
    #[arg(long, value_name = "FOLDER", env = "CUZK_OUT_DIR")]
    pub(crate) out_dir: Option<PathBuf>,
    /// Witnesses that make one proof together, in the order of their names: written all or not at
    /// all. With --synthetic, how many are proved [default: 1]
    #[arg(long, value_name = "N", env = "CUZK_PARTITIONS", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) partitions: Option<u32>,
    /// Threads that each have a partition in hand: while one computes, another loads its witness or
    /// finishes its proof [default: 2]
    #[arg(long, value_name = "N", env = "CUZK_WORKERS_PER_DEVICE", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) workers_per_device: Option<u16>,
    /// Proofs worked on at once [default: 2]
    #[arg(long, value_name = "N", env = "CUZK_CONCURRENCY", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) concurrency: Option<u16>,
    /// What to do when the GPU fails, or a proof made there does not verify: fail, retry there, or cpu
    /// (retry, then prove on the CPU) [default: retry; of one proof alone, fail]
    #[arg(long, value_enum, env = "CUZK_ON_GPU_ERROR")]
    pub(crate) on_gpu_error: Option<OnGpuError>,
    /// Write what happened when to this file, for `cuzk timeline`
    #[arg(long, value_name = "FILE", env = "CUZK_TIMELINE")]
    pub(crate) timeline: Option<PathBuf>,
}

/// What to do when a GPU fails.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnGpuError {
    /// Report it
    Fail,
    /// Try again there
    Retry,
    /// Try again, then on the CPU
    Cpu,
}

impl ManyArgs {
    /// The policy.
    pub(crate) fn on_gpu_error(&self) -> OnDeviceError {
        match self.on_gpu_error {
            Some(OnGpuError::Fail) => OnDeviceError::Fail,
            None | Some(OnGpuError::Retry) => OnDeviceError::Retry,
            Some(OnGpuError::Cpu) => OnDeviceError::Cpu,
        }
    }

    /// Whether something of the engine is set, so that one proof goes through it as well.
    pub(crate) fn sets_engine(&self) -> bool {
        self.timeline.is_some()
            || self.workers_per_device.is_some()
            || self.concurrency.is_some()
            || self.on_gpu_error.is_some()
    }

    /// Whether there may be more than one partition.
    pub(crate) fn is_batch(&self) -> bool {
        self.witnesses.is_some() || self.partitions.is_some()
    }
}
