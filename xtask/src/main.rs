//! `cargo xtask`: prove, test, bench, doctor, device code, and the checks behind them.
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
mod dropin;
mod edges;
mod interop;
mod kernels;
mod licences;
mod node;
mod policy;
mod porep;
mod prove;
mod repo;
mod steps;
mod test;
mod testdata;
mod vk;
mod wheels;

use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask COMMAND

  prove [OPTION ..]     build the cuzk binary and prove with it; without options the circuit of
                        testdata/merkle; the options are those of `cuzk prove`
  test [--quick] [--fixtures DIR]
                        what CI runs; --quick: format, lints, checks and tests alone;
                        --fixtures: the cases of DIR, in the layout of testdata/, instead of ours
  bench [NAME ..] [-- OPTION ..]
                        the benches, all or those named; `field` runs the host's and the device's
  ptx [--sm N[,N ..]] [--ptx] [--all] [--nvcc PATH]
                        compile kernels/ for the cards here, or sm_90 where there is none; --all: for
                        every supported card, and PTX for the oldest; nvcc comes from --nvcc,
                        CUZK_NVCC, CUDA_HOME, PATH, the usual folders, or the public Python wheels
  ptx --check [--sm N] [--ptx]
                        whether the images are of the present sources; compiles nothing
  abi                   compare the device code's entries with their Rust declarations
  resources [--accept]  registers, spills, code and multiplications of each kernel against
                        kernels/resources.json; --accept records them
  sanitize [address] [undefined] [thread]
                        the emulator's tests under sanitizers
  doctor                what this machine has of what cuzk can use
  dropin [TEST ..]      bellperson's own tests mimc, minroot and groth16_aggregation with feature
                        cuda-supraseal and our supraseal-c2 patched in; builds some 200 crates
  dropin porep [OPTION ..]
                        the circuits of `cargo xtask porep` through it, beside both other provers
  porep [OPTION ..]     Filecoin's PoRep at a sector of 2 KiB, and its PoSt: sealed, proved by cuzk and by
                        bellperson, compared; builds some 250 crates; the options: porep --help
  check                 format, crate edges, licences and policy: no build
  interop [DIR]         prove the cases of testdata/ or DIR; cuzk and snarkjs judge the proofs
  testdata [NAME ..]    make the cases of testdata/ again with circom and snarkjs
  node [ARG ..]         run a tool of testdata/tools, e.g. `cargo xtask node snarkjs --help`
";

/// What [`HELP`] says of one command, or all of it.
fn help_of(command: &str) -> String {
    let mut of_command = false;
    let mut text = String::new();
    for line in HELP.lines() {
        if let Some(first) = line
            .strip_prefix("  ")
            .filter(|rest| !rest.starts_with(' '))
        {
            of_command = first.split(' ').next() == Some(command);
        }
        if of_command {
            text += line;
            text += "\n";
        }
    }
    if text.is_empty() {
        HELP.to_owned()
    } else {
        format!("Usage: cargo xtask\n{text}")
    }
}

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let command = if args.is_empty() {
        String::new()
    } else {
        args.remove(0)
    };
    // These hand all options on, others those behind `--`: to what has a help of its own.
    let hands_on = matches!(command.as_str(), "prove" | "node" | "porep");
    let mut own = args.iter().take_while(|arg| *arg != "--");
    if !hands_on && own.any(|arg| arg == "--help" || arg == "-h") {
        print!("{}", help_of(&command));
        return ExitCode::SUCCESS;
    }
    let result = match command.as_str() {
        "prove" => prove::run(&args),
        "test" => test::run(&args),
        "bench" => bench::run(&args),
        "ptx" => kernels::ptx::run(&args),
        "abi" => kernels::abi::run(&args),
        "resources" => kernels::resources::run(&args),
        "sanitize" => kernels::sanitize::run(&args),
        "doctor" => doctor::run(&args),
        "dropin" => dropin::run(&args),
        "porep" => porep::run(&args, None),
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
