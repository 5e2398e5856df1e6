//! `cargo xtask prove`: the `cuzk` binary, built and run; without options on a shipped circuit.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use crate::{cases, repo};

/// The circuit that is proved when none is named.
const SHIPPED: &str = "merkle";

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let cuzk = repo::cuzk()?;
    let mut command = Command::new(cuzk);
    command.arg("prove").args(args);
    if args.is_empty() {
        let scratch = repo::scratch("prove")?;
        let case = cases::own(SHIPPED)?;
        for (flag, name) in [
            ("--zkey", "circuit.zkey"),
            ("--wtns", "witness.wtns"),
            ("--r1cs", "circuit.r1cs"),
        ] {
            let path = case
                .file(name, &scratch)?
                .with_context(|| format!("testdata/{SHIPPED} has no {name}"))?;
            command.arg(flag).arg(path);
        }
        command.arg("--proof").arg(scratch.join("proof.json"));
        command.arg("--public").arg(scratch.join("public.json"));
        eprintln!(
            "proving testdata/{SHIPPED}; proof and public values go to {}",
            scratch.display()
        );
    }
    replace(command)
}

/// Becomes the program, so that signals and exit codes are exactly its own.
#[cfg(unix)]
fn replace(mut command: Command) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;
    Err(command.exec()).with_context(|| format!("cannot run {}", repo::shown(&command)))
}

#[cfg(not(unix))]
fn replace(mut command: Command) -> Result<ExitCode> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", repo::shown(&command)))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(7)))
}
