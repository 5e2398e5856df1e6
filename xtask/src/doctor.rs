//! `cargo xtask doctor`: what this machine has of what cuzk can use.

use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::{kernels, node, repo};

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    if let Some(arg) = args.first() {
        bail!("doctor takes no argument, found {arg}");
    }
    let mut missing = 0;
    let mut needed = |name: &str, found: Option<String>, advice: &str| {
        if let Some(found) = found {
            println!("{name:12} {found}");
        } else {
            missing += 1;
            println!("{name:12} MISSING: {advice}");
        }
    };
    needed(
        "cargo",
        says(repo::cargo().arg("--version")),
        "install Rust with rustup",
    );
    needed(
        "rustc",
        says(&mut in_root("rustc", &["--version"])),
        "rustup installs the version in rust-toolchain.toml",
    );
    needed(
        "C compiler",
        says(&mut in_root(
            &std::env::var("CC").unwrap_or_else(|_| "cc".into()),
            &["--version"],
        )),
        "install gcc or clang; the field arithmetic in blst is built with it",
    );
    let python = says(&mut in_root("python3", &["--version"]));
    let node = node::installed_version();
    if node.is_none() {
        needed(
            "Python",
            python,
            "the tests take Node.js from a Python wheel where it is missing",
        );
    } else {
        println!(
            "{:12} {}",
            "Python",
            python
                .as_deref()
                .unwrap_or("none (not needed: Node.js is there)")
        );
    }
    println!(
        "{:12} {}",
        "Node.js",
        node.as_deref()
            .unwrap_or("none; tests take it from a Python wheel")
    );
    println!(
        "{:12} {}",
        "cores",
        std::thread::available_parallelism().map_or(1, usize::from)
    );
    if let Some(memory) = memory() {
        println!("{:12} {memory}", "memory");
    }
    if let Some(disk) = disk() {
        println!("{:12} {disk}", "disk");
    }
    println!(
        "{:12} {}",
        "nvcc",
        kernels::toolkit::Toolkit::installed().map_or_else(
            || "none; cargo xtask ptx takes it from Python wheels".to_owned(),
            |toolkit| format!("{} at {}", toolkit.version, toolkit.nvcc.display()),
        )
    );
    println!("{:12} {}", "GPU images", kernels::ptx::summary());
    println!(
        "{:12} {}",
        "GPU driver",
        driver().unwrap_or_else(|| "none (not needed to build or to test)".to_owned())
    );
    println!(
        "{:12} as `cuzk devices` says it (it is built first):",
        "devices"
    );
    repo::run(Command::new(repo::cuzk()?).arg("devices"))?;
    if missing > 0 {
        println!("{missing} missing");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The NVIDIA driver's version. Images that nvcc 13 makes need 580.
fn driver() -> Option<String> {
    const OLDEST: u32 = 580;
    let query = ["--query-gpu=driver_version", "--format=csv,noheader"];
    let version = says(Command::new("nvidia-smi").args(query))?;
    let major: u32 = version.split('.').next()?.parse().ok()?;
    Some(if major < OLDEST {
        format!("{version}: images of CUDA 13 need {OLDEST} or newer")
    } else {
        version
    })
}

fn in_root(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(repo::root());
    command
}

/// The first line a program prints; `None` when it cannot be run.
fn says(command: &mut Command) -> Option<String> {
    let text = repo::output(command).ok()?;
    text.lines().next().map(str::to_owned)
}

/// Total and available memory, where the system says it in `/proc`.
fn memory() -> Option<String> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let gib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: f64 = line
            .trim_start_matches(':')
            .split_whitespace()
            .next()?
            .parse()
            .ok()?;
        Some(kib / f64::from(1 << 20))
    };
    Some(format!(
        "{:.1} GiB, {:.1} GiB available",
        gib("MemTotal")?,
        gib("MemAvailable")?
    ))
}

/// Free space where the target folder lies.
fn disk() -> Option<String> {
    let text = repo::output(Command::new("df").args(["-Pk"]).arg(repo::root())).ok()?;
    let kib: f64 = text
        .lines()
        .nth(1)?
        .split_whitespace()
        .nth(3)?
        .parse()
        .ok()?;
    Some(format!(
        "{:.1} GiB free for the target folder",
        kib / f64::from(1 << 20)
    ))
}
