//! Programs that come as Python wheels, pinned by version and hash, in a private environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repo;

/// The folder of packages of a list of wheels, installed below `dir` if that very list is not there yet.
/// `program` is what there must be in the folder.
pub(crate) fn install(dir: &Path, requirements: &Path, program: &str) -> Result<PathBuf> {
    let wanted = fs::read(requirements)?;
    let (site, stamp) = (dir.join("site"), dir.join("installed-from.txt"));
    let program = site.join(program);
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) && program.is_file() {
        return Ok(site);
    }
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    fs::create_dir_all(dir)?;
    println!("installing Python wheels into {}", dir.display());
    let venv = dir.join("venv");
    repo::output(Command::new("python3").args(["-m", "venv"]).arg(&venv))
        .context("python3 -m venv (on Debian: package python3-venv)")?;
    let pip = || {
        let mut command = Command::new(venv.join("bin/python"));
        command.args(["-m", "pip", "install", "--quiet"]);
        command.args(["--disable-pip-version-check", "--only-binary=:all:"]);
        command.args(["--no-deps", "--require-hashes", "--target"]);
        repo::output(command.arg(&site).arg("-r").arg(requirements))
    };
    // A registry may be out of reach for a moment.
    pip().or_else(|_| pip())?;
    if !program.is_file() {
        bail!("the wheels have no {}", program.display());
    }
    fs::write(&stamp, wanted)?;
    Ok(site)
}
