//! Arguments of `cuzk prepare`.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};

use super::{Family, LoadArgs, ResourceArgs, Shape};

/// What to prepare, and where it goes.
#[derive(Args, Clone, Debug)]
pub(crate) struct PrepareArgs {
    /// Proving key of circom and snarkjs
    #[arg(long, value_name = "FILE", env = "CUZK_ZKEY", help_heading = "Inputs")]
    pub(crate) zkey: Option<PathBuf>,
    /// Parameters of bellman, bellperson, Filecoin or Zcash; they need --r1cs
    #[arg(
        long,
        value_name = "FILE",
        env = "CUZK_PARAMS",
        help_heading = "Inputs"
    )]
    pub(crate) params: Option<PathBuf>,
    /// Proving key of arkworks, compressed or not; it needs --r1cs
    #[arg(long, value_name = "FILE", env = "CUZK_PK", help_heading = "Inputs")]
    pub(crate) pk: Option<PathBuf>,
    /// Constraint system (.r1cs). A zkey needs it for --four-transforms alone
    #[arg(long, value_name = "FILE", env = "CUZK_R1CS", help_heading = "Inputs")]
    pub(crate) r1cs: Option<PathBuf>,
    /// Make a circuit of 2^LOG_N rows and its key in memory, those of `prove --synthetic`
    #[arg(long, value_name = "LOG_N", env = "CUZK_SYNTHETIC", help_heading = "Inputs", value_parser = clap::value_parser!(u32).range(1..=28))]
    pub(crate) synthetic: Option<u32>,
    /// What the synthetic circuit looks like [default: porep]
    #[arg(long, value_enum, env = "CUZK_SHAPE", help_heading = "Inputs")]
    pub(crate) shape: Option<Shape>,
    /// Whose conventions the synthetic key follows [default: circom]
    #[arg(long, value_enum, env = "CUZK_FAMILY", help_heading = "Inputs")]
    pub(crate) family: Option<Family>,

    /// Where the prepared key goes
    #[arg(long, value_name = "FILE", env = "CUZK_OUT", help_heading = "Outputs")]
    pub(crate) out: PathBuf,
    /// Make the bases of the quotient of four transforms: it takes two transforms over the points of
    /// the key, once, and every later proof needs four transforms over numbers instead of six
    #[arg(long, env = "CUZK_FOUR_TRANSFORMS", help_heading = "Outputs", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) four_transforms: bool,
    /// Print the result as one JSON object
    #[arg(long, env = "CUZK_JSON", help_heading = "Outputs", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    #[command(flatten)]
    pub(crate) resources: ResourceArgs,
}
