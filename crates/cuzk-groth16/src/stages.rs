//! Where the time of a proof went.

use std::sync::Arc;
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
}

/// Told the name of each stage of a proof as it begins.
#[derive(Clone)]
pub struct StageCallback(Arc<dyn Fn(&'static str) + Send + Sync>);

impl StageCallback {
    /// A callback. It delays the proof for as long as it takes.
    pub fn new(callback: impl Fn(&'static str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }
}

impl std::fmt::Debug for StageCallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StageCallback(..)")
    }
}

/// Times the stages of a proof under way.
pub(crate) struct Clock {
    stages: Stages,
    callback: Option<StageCallback>,
}

impl Clock {
    pub(crate) fn new(callback: Option<StageCallback>) -> Self {
        Self {
            stages: Stages::default(),
            callback,
        }
    }

    /// Runs `work` as a stage.
    pub(crate) fn run<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        if let Some(StageCallback(callback)) = &self.callback {
            callback(name);
        }
        let start = Instant::now();
        let result = work();
        let elapsed = start.elapsed();
        tracing::debug!(stage = name, elapsed_ms = elapsed.as_secs_f64() * 1e3);
        self.stages.0.push(Stage { name, elapsed });
        result
    }

    /// The stages so far.
    pub(crate) fn finish(self) -> Stages {
        self.stages
    }
}
