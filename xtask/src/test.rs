//! `cargo xtask test`: what CI runs.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::kernels::{abi, ptx, resources};
use crate::steps::Steps;
use crate::{cases, edges, interop, licences, policy, porep, repo};

/// How long the fuzz targets run in all.
const FUZZ_SECONDS: &str = "33";

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let options = Options::parse(args)?;
    let mut steps = Steps::new();
    checks(&mut steps);
    cargo(
        &mut steps,
        "clippy",
        &[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    );
    cargo(
        &mut steps,
        "clippy without the arkworks adapter",
        &[
            "clippy",
            "--quiet",
            "-p",
            "cuzk-groth16",
            "--no-default-features",
            "--",
            "-D",
            "warnings",
        ],
    );
    if !options.quick {
        steps.step("docs", || {
            repo::run(
                repo::cargo()
                    .args(["doc", "--quiet", "--keep-going", "--workspace", "--no-deps"])
                    .env("RUSTDOCFLAGS", "-D warnings"),
            )
        });
    }
    let fixtures = options.fixtures.as_ref();
    steps.step("tests", || {
        let mut command = repo::cargo();
        command.args([
            "test",
            "--workspace",
            "--quiet",
            "--no-fail-fast",
            "--lib",
            "--bins",
            "--tests",
        ]);
        if let Some(dir) = fixtures {
            command.env("CUZK_FIXTURES", dir);
            if dir.join(cases::SAPLING).is_dir() {
                command.args(["--features", "cuzk-testkit/sapling"]);
            }
        }
        repo::run(&mut command)
    });
    cargo(
        &mut steps,
        "doc tests",
        &["test", "--workspace", "--quiet", "--no-fail-fast", "--doc"],
    );
    if !options.quick {
        steps.step(
            "device code for sm_90, and PTX, from nothing",
            ptx::from_nothing,
        );
        steps.step("device code against its declarations", abi::check);
        steps.step("device code against its recorded cost", resources::check);
        let testdata = repo::root().join("testdata");
        let dir = fixtures.unwrap_or(&testdata);
        steps.step("proofs, judged by cuzk and by snarkjs", || {
            interop::run(&repo::built_as_tested("--bin", "cuzk")?, dir)
        });
        steps.step("fuzz targets", || {
            let fuzz = repo::built_as_tested("--bin", "cuzk-fuzz")?;
            repo::run(
                Command::new(fuzz)
                    .current_dir(repo::root())
                    .args(["--seconds", FUZZ_SECONDS]),
            )
        });
        // In the tests' profile, in which all but the benches themselves is built.
        cargo(
            &mut steps,
            "bench bodies, once",
            &[
                "test",
                "--workspace",
                "--quiet",
                "--no-fail-fast",
                "--bench",
                "*",
                "--",
                "--test",
            ],
        );
    }
    Ok(steps.finish())
}

/// The checks that need no build.
pub(crate) fn check(args: &[String]) -> Result<ExitCode> {
    if let Some(arg) = args.first() {
        bail!("check takes no argument, found {arg}");
    }
    let mut steps = Steps::new();
    checks(&mut steps);
    Ok(steps.finish())
}

fn checks(steps: &mut Steps) {
    // First, since every later call of cargo would complete it.
    steps.step("Cargo.lock is complete", || {
        repo::output(repo::cargo().args(["metadata", "--locked", "--format-version=1"])).map(drop)
    });
    cargo(steps, "format", &["fmt", "--all", "--check"]);
    steps.step("crate edges", edges::check);
    steps.step("licences of dependencies", licences::check);
    steps.step("the package of Filecoin's circuits", porep::check);
    steps.step(
        "policy: registry hosts, machine paths, links",
        policy::check,
    );
}

fn cargo(steps: &mut Steps, name: &str, args: &[&str]) {
    steps.step(name, || repo::run(repo::cargo().args(args)));
}

struct Options {
    quick: bool,
    fixtures: Option<PathBuf>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self {
            quick: false,
            fixtures: None,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--quick" => options.quick = true,
                "--fixtures" => {
                    let Some(dir) = args.next() else {
                        bail!("--fixtures needs a folder");
                    };
                    // Tests run in their crates' folders, so the path must not be relative.
                    let dir = std::path::absolute(dir)?;
                    if !dir.is_dir() {
                        bail!("--fixtures: {} is not a folder", dir.display());
                    }
                    options.fixtures = Some(dir);
                }
                _ => bail!("unknown option {arg}; see cargo xtask help"),
            }
        }
        Ok(options)
    }
}
