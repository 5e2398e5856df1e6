//! `cargo xtask dropin`: bellperson's own tests with the drop-in for `supraseal-c2` patched in.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{porep, repo};

/// The tests of bellperson that prove with feature `cuda-supraseal`.
const TESTS: &[&str] = &["mimc", "minroot", "groth16_aggregation"];

/// Runs last, since tests run by name on one thread.
const COUNT: &str = r#"
#[test]
fn zzz_proofs_made_by_cuzk() {
    let (all, on_gpus) = (supraseal_c2::proofs_made(), supraseal_c2::proofs_made_on_gpus());
    println!("proofs made and verified by cuzk: {all}, {on_gpus} of them on GPUs");
    assert!(supraseal_c2::proofs_made() > 0);
}
"#;

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    if let Some((first, options)) = args.split_first()
        && first == "porep"
    {
        return porep::run(options, Some("dropin"));
    }
    if let Some(unknown) = args.iter().find(|arg| !TESTS.contains(&arg.as_str())) {
        bail!(
            "unknown test {unknown}; there are {}, and porep",
            TESTS.join(", ")
        );
    }
    let chosen: Vec<&str> = TESTS
        .iter()
        .copied()
        .filter(|test| args.is_empty() || args.iter().any(|arg| arg == test))
        .collect();
    let copy = patched_copy(&bellperson()?)?;
    let mut command = repo::cargo();
    command
        .current_dir(&copy)
        .env("CARGO_TARGET_DIR", repo::target())
        .args(["test", "--features", "cuda-supraseal"]);
    for test in chosen {
        command.args(["--test", test]);
    }
    command.args(["--", "--test-threads=1", "--nocapture"]);
    repo::run(&mut command)?;
    Ok(ExitCode::SUCCESS)
}

/// Where cargo keeps bellperson's source.
fn bellperson() -> Result<PathBuf> {
    let arguments = ["metadata", "--all-features", "--format-version=1"];
    let metadata: Value = serde_json::from_str(&repo::output(repo::cargo().args(arguments))?)?;
    let package = metadata["packages"]
        .as_array()
        .and_then(|packages| packages.iter().find(|p| p["name"] == "bellperson"))
        .context("bellperson is no dependency of this workspace")?;
    let manifest = package["manifest_path"]
        .as_str()
        .context("no manifest_path")?;
    let dir = Path::new(manifest).parent().context("no folder")?;
    Ok(dir.to_owned())
}

/// A copy of its sources and tests with the patch, our profile, and the count.
fn patched_copy(source: &Path) -> Result<PathBuf> {
    let copy = repo::scratch("bellperson")?;
    for folder in ["src", "tests"] {
        copy_folder(&source.join(folder), &copy.join(folder))?;
    }
    fs::copy(source.join("build.rs"), copy.join("build.rs"))?;
    // The versions that we have, where it allows them.
    fs::copy(repo::root().join("Cargo.lock"), copy.join("Cargo.lock"))?;
    let mut manifest = fs::read_to_string(source.join("Cargo.toml"))?;
    let dropin = repo::root().join("crates").join("compat-supraseal-c2");
    write!(
        manifest,
        "\n[workspace]\n\n[patch.crates-io]\nsupraseal-c2 = {{ path = {:?} }}\n\n[profile.dev]\nopt-level = \
         2\ndebug = \"line-tables-only\"\n\n[profile.dev.package.\"*\"]\nopt-level = 3\ndebug = false\n",
        dropin
    )?;
    fs::write(copy.join("Cargo.toml"), manifest)?;
    for test in TESTS {
        let path = copy.join("tests").join(format!("{test}.rs"));
        let mut text = fs::read_to_string(&path)?;
        text += COUNT;
        fs::write(&path, text)?;
    }
    Ok(copy)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
