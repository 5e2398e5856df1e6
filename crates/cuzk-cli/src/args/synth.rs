//! Arguments of `cuzk synth`.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};

use super::{Family, ResourceArgs, Shape};

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

    #[command(flatten)]
    pub(crate) resources: ResourceArgs,
}
