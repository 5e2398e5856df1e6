//! Every case proved with the `cuzk` binary; the proof judged by `cuzk verify` and by snarkjs, and
//! snarkjs's own proof judged by `cuzk verify`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::cases::{self, Case};
use crate::node::Tools;
use crate::{repo, vk};

/// `cargo xtask interop [DIR]`.
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let dir = match args {
        [] => repo::root().join("testdata"),
        [dir] => std::path::absolute(dir)?,
        _ => bail!("interop takes one folder"),
    };
    run(&repo::cuzk()?, &dir)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs over the cases below `dir`, as many at a time as there are cores; prints a table; an error when any case failed.
pub(crate) fn run(cuzk: &Path, dir: &Path) -> Result<()> {
    let tools = Tools::install()?;
    let scratch = repo::scratch("interop")?;
    let cases = cases::list(dir)?;
    let width = cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
    println!(
        "{:width$}  key      prove s  cuzk  snarkjs  proof of the folder",
        "case"
    );
    let next = AtomicUsize::new(0);
    let results = Mutex::new((0, Vec::new()));
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let scratch = scratch.join(&case.name);
            let result = fs::create_dir_all(&scratch)
                .map_err(Into::into)
                .and_then(|()| row(case, cuzk, &tools, &scratch));
            let (judged, failures) = &mut *results.lock().expect("no panic under the lock");
            match result {
                Ok(Some(row)) => {
                    *judged += 1;
                    println!("{:width$}  {row}", case.name);
                }
                Ok(None) => println!("{:width$}  the folder has no key", case.name),
                Err(error) => {
                    println!("{:width$}  FAILED", case.name);
                    failures.push(format!("{}: {error:#}", case.name));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let (judged, failures) = results.into_inner()?;
    println!("{judged} of {} cases proved and judged", cases.len());
    if !failures.is_empty() {
        bail!("{}", failures.join("\n"));
    }
    if judged == 0 {
        bail!("no case has a key");
    }
    Ok(())
}

fn row(case: &Case, cuzk: &Path, tools: &Tools, scratch: &Path) -> Result<Option<String>> {
    let file = |name: &str| case.file(name, scratch);
    let (kind, flag, key) = match (file("circuit.zkey")?, file("circuit.params")?) {
        (Some(zkey), _) => ("zkey", "--zkey", zkey),
        (None, Some(params)) => ("params", "--params", params),
        (None, None) if case.name == cases::SAPLING => {
            ("params", "--params", sapling_params(scratch)?)
        }
        (None, None) => return Ok(None),
    };
    let needed = |name: &str| file(name)?.with_context(|| format!("the case has no {name}"));
    let (proof, public) = (scratch.join("proof.json"), scratch.join("public.json"));
    let mut prove = repo::without_settings(cuzk);
    prove.arg("prove").arg(flag).arg(&key);
    prove.arg("--wtns").arg(needed("witness.wtns")?);
    prove.arg("--r1cs").arg(needed("circuit.r1cs")?);
    prove
        .arg("--proof")
        .arg(&proof)
        .arg("--public")
        .arg(&public);
    let begun = Instant::now();
    repo::output(&mut prove)?;
    let seconds = begun.elapsed().as_secs_f64();

    let theirs = needed("public.json")?;
    if json(&public)? != json(&theirs)? {
        bail!("the public values differ from those of the folder");
    }
    let vk = match file("verification_key.json")? {
        Some(vk) => vk,
        None => {
            let path = scratch.join("verification_key.json");
            fs::write(&path, vk::from_params(&key)?)?;
            path
        }
    };
    verify(cuzk, &vk, &public, &proof).context("cuzk rejects its own proof")?;
    if !tools.verify(&vk, &public, &proof)? {
        bail!("snarkjs rejects the proof");
    }
    // A judge that accepts everything would be no judge.
    if let Some(wrong) = other_public(&public)? {
        let path = scratch.join("other_public.json");
        fs::write(&path, wrong)?;
        if tools.verify(&vk, &path, &proof)? {
            bail!("snarkjs accepts the proof for other public values");
        }
        if verify(cuzk, &vk, &path, &proof).is_ok() {
            bail!("cuzk accepts the proof for other public values");
        }
    }
    let foreign = match [file("proof.json")?, file("proof.bin")?] {
        [None, None] => "none",
        [Some(foreign), _] | [None, Some(foreign)] => {
            verify(cuzk, &vk, &theirs, &foreign).context("cuzk rejects the folder's proof")?;
            "ok"
        }
    };
    Ok(Some(format!(
        "{kind:6} {seconds:9.2}  ok    ok       {foreign}"
    )))
}

/// The key of the Sapling circuit, which a crate carries.
fn sapling_params(scratch: &Path) -> Result<PathBuf> {
    let path = scratch.join("circuit.params");
    let mut command = repo::cargo();
    command.args([
        "run",
        "--quiet",
        "-p",
        "cuzk-testkit",
        "--features",
        "sapling",
    ]);
    command
        .args(["--example", "sapling_params", "--"])
        .arg(&path);
    repo::output(&mut command)?;
    Ok(path)
}

fn verify(cuzk: &Path, vk: &Path, public: &Path, proof: &Path) -> Result<()> {
    let mut command = repo::without_settings(cuzk);
    command.arg("verify").arg("--vk").arg(vk);
    command
        .arg("--public")
        .arg(public)
        .arg("--proof")
        .arg(proof);
    repo::output(&mut command).map(drop)
}

fn json(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

/// The public values with the last one replaced; `None` when there is none.
fn other_public(path: &Path) -> Result<Option<String>> {
    let mut values = json(path)?;
    let Some(last) = values.as_array_mut().and_then(|values| values.last_mut()) else {
        return Ok(None);
    };
    *last = Value::from(if *last == "77" { "78" } else { "77" });
    Ok(Some(values.to_string()))
}
