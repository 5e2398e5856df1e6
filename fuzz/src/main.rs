//! Mutation fuzzing of every parser: `cargo run -p cuzk-fuzz -- --seconds 20 [--target NAME]`.
//!
//! Each target starts from the files of `testdata/`, damages them systematically (truncation at
//! every border, hostile values in every count), then at random from a seed that is printed. A case
//! fails when the parser panics, holds more than four times the file plus 64 MiB, or does not end.
//! The smallest failing input found is written below the target folder; `--replay FILE` runs it.
#![deny(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool: what it prints is its result"
)]

mod alloc;
mod keys;
mod mutate;
mod prepared;
mod run;
mod targets;
mod timeline;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

const USAGE: &str =
    "Usage: cuzk-fuzz [--seconds N] [--target NAME] [--seed N] [--replay FILE --target NAME]";

struct Options {
    seconds: u64,
    seed: u64,
    target: Option<String>,
    replay: Option<String>,
}

fn parse() -> Result<Options, String> {
    let mut options = Options {
        seconds: 10,
        seed: 1,
        target: None,
        replay: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        let number = |text: String| text.parse().map_err(|e| format!("{text}: {e}"));
        match arg.as_str() {
            "--seconds" => options.seconds = number(value()?)?,
            "--seed" => options.seed = number(value()?)?,
            "--target" => options.target = Some(value()?),
            "--replay" => options.replay = Some(value()?),
            _ => return Err(format!("unknown option {arg}")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match parse() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let targets = || {
        let targets = targets::TARGETS.iter().chain(keys::TARGETS);
        targets.chain(prepared::TARGETS).chain(timeline::TARGETS)
    };
    let chosen: Vec<_> = targets()
        .filter(|target| {
            options
                .target
                .as_deref()
                .is_none_or(|name| name == target.name)
        })
        .collect();
    if chosen.is_empty() || (options.replay.is_some() && chosen.len() != 1) {
        let names: Vec<_> = targets().map(|target| target.name).collect();
        eprintln!("{USAGE}\ntargets: {}", names.join(", "));
        return ExitCode::from(2);
    }
    let fine = match &options.replay {
        Some(file) => run::replay(chosen[0], Path::new(file)),
        None => {
            println!("seed {}", options.seed);
            run::quieten_cases();
            let share =
                Duration::from_secs(options.seconds) / u32::try_from(chosen.len()).unwrap_or(1);
            // Every target runs, also after one has failed.
            let failed = chosen
                .iter()
                .filter(|target| !run::fuzz(target, share, options.seed))
                .count();
            failed == 0
        }
    };
    if fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
