//! `cargo xtask porep`: Filecoin's circuits, in a package with a lock of its own.

use std::process::ExitCode;

use anyhow::Result;

use crate::{licences, repo};

const MANIFEST: &str = "crates/cuzk-examples/porep/Cargo.toml";

/// Builds it as tests are built, with this feature, and runs it.
pub(crate) fn run(args: &[String], feature: Option<&str>) -> Result<ExitCode> {
    let mut command = repo::cargo();
    command.env("CARGO_TARGET_DIR", repo::target()).args([
        "run",
        "--locked",
        "--manifest-path",
        MANIFEST,
    ]);
    if let Some(feature) = feature {
        command.args(["--features", feature]);
    }
    repo::run(command.arg("--").args(args))?;
    Ok(ExitCode::SUCCESS)
}

/// What the checks hold the workspace to, without a build.
pub(crate) fn check() -> Result<()> {
    let mut metadata = vec!["metadata", "--locked", "--format-version=1"];
    metadata.extend(["--all-features", "--manifest-path", MANIFEST]);
    // blake2s_simd 0.5 of neptune brings constant_time_eq 0.1.
    licences::check_of(&metadata, &["CC0-1.0"])?;
    repo::run(repo::cargo().args(["fmt", "--check", "--manifest-path", MANIFEST]))
}
