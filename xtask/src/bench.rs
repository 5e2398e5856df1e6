//! `cargo xtask bench [NAME ..]`: the Criterion benches.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::repo;

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let names = names()?;
    let split = args
        .iter()
        .position(|arg| arg == "--")
        .unwrap_or(args.len());
    let (wanted, options) = args.split_at(split);
    let mut command = repo::cargo();
    command.args(["bench", "-p", "cuzk-benches"]);
    for name in wanted {
        if !names.contains(name) {
            bail!("no bench {name}; there are: {}", names.join(", "));
        }
        command.args(["--bench", name]);
        // What there is of it on a device.
        let on_device = format!("{name}_device");
        if names.contains(&on_device) {
            command.args(["--bench", &on_device]);
        }
    }
    repo::run(command.args(options))?;
    Ok(ExitCode::SUCCESS)
}

/// The benches, one file or folder each.
fn names() -> Result<Vec<String>> {
    let mut names: Vec<String> = std::fs::read_dir(repo::root().join("benches/benches"))?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_bench = path.extension().is_some_and(|extension| extension == "rs")
                || path.join("main.rs").exists();
            is_bench.then(|| path.file_stem()?.to_str().map(str::to_owned))?
        })
        .collect();
    names.sort();
    Ok(names)
}
