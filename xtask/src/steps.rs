//! A run of named steps: a header line each, none hidden by an earlier failure, a summary at the end.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;

/// The steps run so far.
pub(crate) struct Steps {
    begun: Instant,
    passed: usize,
    failed: Vec<String>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            passed: 0,
            failed: Vec::new(),
        }
    }

    /// Runs one step; prints a header, what it prints itself, and its outcome if it failed.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<()>) {
        println!("\n[{}] {name}", clock(self.begun.elapsed()));
        let begun = Instant::now();
        match work() {
            Ok(()) => {
                self.passed += 1;
                println!("ok: {name}, {:.1} s", begun.elapsed().as_secs_f64());
            }
            Err(error) => {
                println!(
                    "FAILED: {name}, {:.1} s\n{error:#}",
                    begun.elapsed().as_secs_f64()
                );
                self.failed.push(name.to_owned());
            }
        }
    }

    /// The summary; the exit code says whether every step passed.
    pub(crate) fn finish(self) -> ExitCode {
        println!("\n[{}] end", clock(self.begun.elapsed()));
        for name in &self.failed {
            println!("failed step: {name}");
        }
        println!("{} passed, {} failed", self.passed, self.failed.len());
        if self.failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

fn clock(elapsed: Duration) -> String {
    format!("{:3}:{:02}", elapsed.as_secs() / 60, elapsed.as_secs() % 60)
}
