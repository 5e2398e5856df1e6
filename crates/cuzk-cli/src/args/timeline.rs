//! Arguments of `cuzk timeline`.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};

/// What to make of a recorded run.
#[derive(Args, Clone, Debug)]
pub(crate) struct TimelineArgs {
    /// A run, as `cuzk prove --timeline` writes it
    pub(crate) file: PathBuf,
    /// Write a trace that chrome://tracing and Perfetto open
    #[arg(long, value_name = "FILE", env = "CUZK_TRACE")]
    pub(crate) trace: Option<PathBuf>,
    /// Draw it: one lane for each worker and stream
    #[arg(long, value_name = "FILE", env = "CUZK_SVG")]
    pub(crate) svg: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long, env = "CUZK_JSON", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) json: bool,
}
