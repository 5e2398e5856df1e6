//! Arguments of `cuzk synth`.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};

use super::{Family, Shape};
use crate::device::DeviceChoice;
use crate::sizes;

/// What is made, and where it goes.
#[derive(Args, Clone, Debug)]
pub(crate) struct SynthArgs {
    /// The circuit has 2^LOG_N rows
    #[arg(value_name = "LOG_N", value_parser = clap::value_parser!(u32).range(1..=28))]
    pub(crate) log_n: u32,
    /// What the circuit looks like
    #[arg(long, value_enum, env = "CUZK_SHAPE", default_value = "porep")]
    pub(crate) shape: Shape,
    /// Whose conventions the key follows, and in which form it is written
    #[arg(long, value_enum, env = "CUZK_FAMILY", default_value = "circom")]
    pub(crate) family: Family,
    /// Equal seeds give equal files; `prove --synthetic` takes 1
    #[arg(long, value_name = "N", env = "CUZK_SEED", default_value = "1")]
    pub(crate) seed: u64,

    /// The folder for circuit.r1cs, circuit.wtns and the key: circuit.zkey, .params or .pk. It is made
    /// if need be
    #[arg(
        long,
        value_name = "FOLDER",
        env = "CUZK_OUT_DIR",
        help_heading = "Outputs"
    )]
    pub(crate) out_dir: PathBuf,
    /// Print the result as one JSON object
    #[arg(long, env = "CUZK_JSON", help_heading = "Outputs", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) json: bool,

    /// Where the key's points are made: auto, cpu, cuda, or cuda: and a number, UUID or PCI address
    /// of `cuzk devices`
    #[arg(
        long,
        env = "CUZK_DEVICE",
        default_value = "auto",
        help_heading = "Resources"
    )]
    pub(crate) device: DeviceChoice,
    /// Use no more GPU memory than this, as 16GiB [default: what the card has]
    #[arg(long, value_name = "SIZE", env = "CUZK_VRAM_LIMIT", help_heading = "Resources", value_parser = sizes::parse)]
    pub(crate) vram_limit: Option<u64>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", env = "CUZK_THREADS", help_heading = "Resources", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) threads: Option<u16>,
    /// Refuse what needs more host memory than this, as 24GiB [default: what the machine, the control
    /// group and ulimit leave]
    #[arg(long, value_name = "SIZE", env = "CUZK_HOST_LIMIT", help_heading = "Resources", value_parser = sizes::parse)]
    pub(crate) host_limit: Option<u64>,
}
