//! Where things are, and how programs are run.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies below the root")
        .to_owned()
}

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) if !dir.is_empty() => root().join(dir),
        _ => root().join("target"),
    }
}

/// `cargo` in the root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command whose output the user sees; an error unless it exits with 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs a command quietly. The error holds its output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{} ended with {}\n{}\n{}",
            shown(command),
            output.status,
            stdout.trim_end(),
            stderr.trim_end()
        );
    }
    Ok(stdout)
}

/// A command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(program)
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// `cargo metadata`, this workspace's packages only.
pub(crate) fn metadata() -> Result<serde_json::Value> {
    let text = output(cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
    Ok(serde_json::from_str(&text)?)
}

/// Builds the `cuzk` binary for speed and gives its path.
pub(crate) fn cuzk() -> Result<PathBuf> {
    run(cargo().args([
        "build",
        "--release",
        "--quiet",
        "-p",
        "cuzk-cli",
        "--bin",
        "cuzk",
    ]))?;
    let path = target()
        .join("release")
        .join(format!("cuzk{}", std::env::consts::EXE_SUFFIX));
    if !path.is_file() {
        bail!("cargo built no {}", path.display());
    }
    Ok(path)
}

/// Builds a program of the workspace as its tests have it, and gives its path: with the same profile, and with the same
/// features, since `--example` brings the development dependencies along. After the tests all it is made of is there.
pub(crate) fn built_as_tested(kind: &str, name: &str) -> Result<PathBuf> {
    let example = ["--example", "declarations"];
    run(cargo()
        .args(["build", "--quiet", "--workspace", kind, name])
        .args(if kind == example[0] {
            &[][..]
        } else {
            &example
        }))?;
    let path = target()
        .join("debug")
        .join(if kind == example[0] { "examples" } else { "" })
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !path.is_file() {
        bail!("cargo built no {}", path.display());
    }
    Ok(path)
}

/// A command without the caller's `CUZK_*` variables, each of which stands for a flag.
pub(crate) fn without_settings(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CUZK_") {
            command.env_remove(name);
        }
    }
    command
}

/// A scratch folder below the target folder, emptied.
pub(crate) fn scratch(name: &str) -> Result<PathBuf> {
    let dir = target().join("xtask").join(name);
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot empty {}", dir.display()))?;
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    Ok(dir)
}
