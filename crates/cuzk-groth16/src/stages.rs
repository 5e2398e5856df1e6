//! Where the time of a proof went.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::prover::ProveOptions;

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

    /// Tells it of a stage.
    pub fn tell(&self, stage: &'static str) {
        (self.0)(stage);
    }
}

impl std::fmt::Debug for StageCallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StageCallback(..)")
    }
}

/// Asked before each stage of a proof whether to stop.
#[derive(Clone)]
pub struct StopCheck(Arc<dyn Fn() -> bool + Send + Sync>);

impl StopCheck {
    /// A question; yes ends the proof.
    pub fn new(is_stopped: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_stopped))
    }

    /// The answer.
    pub fn is_stopped(&self) -> bool {
        (self.0)()
    }
}

impl std::fmt::Debug for StopCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StopCheck(..)")
    }
}

/// Times the stages of a proof under way.
#[derive(Debug)]
pub(crate) struct Clock {
    stages: Stages,
    callback: Option<StageCallback>,
    stop: Option<StopCheck>,
}

impl Clock {
    pub(crate) fn new(options: &ProveOptions) -> Self {
        Self {
            stages: Stages::default(),
            callback: options.on_stage.clone(),
            stop: options.stop.clone(),
        }
    }

    /// Goes on with the options of another phase.
    pub(crate) fn resume(&mut self, options: &ProveOptions) {
        self.callback.clone_from(&options.on_stage);
        self.stop.clone_from(&options.stop);
    }

    /// Runs `work` as a stage, unless the proof is to stop.
    pub(crate) fn run<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> T,
    ) -> Result<T, Error> {
        if self.stop.as_ref().is_some_and(StopCheck::is_stopped) {
            return Err(Error::Stopped);
        }
        if let Some(callback) = &self.callback {
            callback.tell(name);
        }
        let start = Instant::now();
        let result = work();
        let elapsed = start.elapsed();
        tracing::debug!(stage = name, elapsed_ms = elapsed.as_secs_f64() * 1e3);
        self.stages.0.push(Stage { name, elapsed });
        Ok(result)
    }

    /// The stages so far.
    pub(crate) fn finish(self) -> Stages {
        self.stages
    }
}
