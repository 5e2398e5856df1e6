//! `cargo xtask sanitize`: the emulator's tests with the C++ objects under each sanitizer.
//!
//! The Rust side is not instrumented. The thread sanitizer's build runs one OS thread for each CUDA
//! thread; the others run fibers.

use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::repo;

const SANITIZERS: [&str; 3] = ["address", "undefined", "thread"];

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let wanted: Vec<&str> = match args {
        [] => SANITIZERS.to_vec(),
        names => names.iter().map(String::as_str).collect(),
    };
    let suppressions = repo::root().join("crates/cuzk-kernels/emulator/thread-sanitizer.txt");
    for name in wanted {
        if !SANITIZERS.contains(&name) {
            bail!("no sanitizer {name}; there are: {}", SANITIZERS.join(", "));
        }
        println!("{name} sanitizer");
        let mut command = repo::cargo();
        command
            .args(["test", "--quiet", "-p", "cuzk-kernels"])
            .args(["--test", "emulator", "--test", "kernels", "--"])
            // Rust's locks are not instrumented: what one test gives the next must not look like a race.
            .arg("--test-threads=1")
            .env("CUZK_SANITIZE", name)
            // Fibers of a kernel that was stopped keep what they held.
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .env("UBSAN_OPTIONS", "print_stacktrace=1")
            .env(
                "TSAN_OPTIONS",
                format!("halt_on_error=1:suppressions={}", suppressions.display()),
            );
        if let Some(runner) = fixed_addresses() {
            command.env(format!("CARGO_TARGET_{}_RUNNER", host()?), runner);
        }
        repo::run(&mut command)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Sanitizers of older compilers fail where the kernel spreads addresses widely.
fn fixed_addresses() -> Option<&'static str> {
    let works = Command::new("setarch").args(["-R", "true"]).status();
    works
        .is_ok_and(|status| status.success())
        .then_some("setarch -R")
}

/// The host's target triple as cargo spells it in variables.
fn host() -> Result<String> {
    let text = repo::output(Command::new("rustc").arg("-vV").current_dir(repo::root()))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    match host {
        Some(host) => Ok(host.to_uppercase().replace('-', "_")),
        None => bail!("rustc -vV names no host"),
    }
}
