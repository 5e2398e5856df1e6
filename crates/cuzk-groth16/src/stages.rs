//! Where the time of a proof went.

use std::time::{Duration, Instant};

/// A stage with its wall time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stage {
    /// What was done.
    pub name: &'static str,
    /// How long it took.
    pub elapsed: Duration,
}

/// The stages of one proof, in the order in which they ran.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Stages(Vec<Stage>);

impl Stages {
    /// The stages in order.
    pub fn as_slice(&self) -> &[Stage] {
        &self.0
    }

    /// Their sum.
    pub fn total(&self) -> Duration {
        self.0.iter().map(|stage| stage.elapsed).sum()
    }

    /// Runs `work` as a stage.
    pub(crate) fn run<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        let elapsed = start.elapsed();
        tracing::debug!(stage = name, elapsed_ms = elapsed.as_secs_f64() * 1e3);
        self.0.push(Stage { name, elapsed });
        result
    }
}
