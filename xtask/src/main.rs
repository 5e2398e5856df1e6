//! `cargo xtask`: prove, test, bench, doctor and the checks behind them.
//!
//! It stays small and depends on no crate of ours: it builds what is needed and runs it.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool: what it prints is its result"
)]

mod bench;
mod cases;
mod container;
mod doctor;
mod edges;
mod interop;
mod licences;
mod node;
mod policy;
mod prove;
mod repo;
mod steps;
mod test;
mod testdata;
mod vk;

use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask COMMAND

  prove [OPTION ..]     build the cuzk binary and prove with it; without options the circuit of
                        testdata/merkle; the options are those of `cuzk prove`
  test [--quick] [--fixtures DIR]
                        what CI runs; --quick: format, lints, checks and tests alone;
                        --fixtures: the cases of DIR, in the layout of testdata/, instead of ours
  bench [NAME ..] [-- OPTION ..]
                        the Criterion benches, all or those named
  doctor                what this machine has of what cuzk can use
  check                 format, crate edges, licences and policy: no build
  interop [DIR]         prove the cases of testdata/ or DIR; cuzk and snarkjs judge the proofs
  testdata [NAME ..]    make the cases of testdata/ again with circom and snarkjs
  node [ARG ..]         run a tool of testdata/tools, e.g. `cargo xtask node snarkjs --help`
";

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let command = if args.is_empty() {
        String::new()
    } else {
        args.remove(0)
    };
    let result = match command.as_str() {
        "prove" => prove::run(&args),
        "test" => test::run(&args),
        "bench" => bench::run(&args),
        "doctor" => doctor::run(&args),
        "check" => test::check(&args),
        "interop" => interop::command(&args),
        "testdata" => testdata::run(&args),
        "node" => node::run(&args),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
