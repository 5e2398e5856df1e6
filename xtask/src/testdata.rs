//! `cargo xtask testdata`.

use std::process::ExitCode;

use anyhow::{Result, bail};

pub(crate) fn run(_args: &[String]) -> Result<ExitCode> {
    bail!("not yet");
}
