//! The engine's state, and what changes it. Only the engine's thread is in here, so there are no
//! locks: what other threads do comes as messages.

mod dispatch;
mod jobs;
mod recover;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use crate::error::JobError;
use crate::job::{PartitionReport, Shared};
use crate::ledger::{Ledger, Pass};
use crate::message::{Event, Phase, Reply, ToEngine, ToWorker, Waiting};
use crate::options::{JobOptions, Options, Role};
use crate::queue::Order;
use crate::work::{Demand, Flag, Work};
use crate::worker::DeviceShared;

/// Everything the engine knows.
pub(crate) struct Core<W: Work> {
    options: Options,
    epoch: Instant,
    ledger: Arc<Ledger>,
    jobs: BTreeMap<u64, JobState<W>>,
    devices: Vec<DeviceState>,
    workers: Vec<WorkerState<W>>,
    /// Partitions that wait for a worker.
    ready: BTreeSet<Order>,
    any_cancelled: Arc<Flag>,
    /// Set when nothing more is to come; jobs that are on their way still do.
    stopping: bool,
    cancelling: bool,
}

struct DeviceState {
    role: Role,
    shared: Arc<DeviceShared>,
    /// Who is first in line for this device's memory: nobody overtakes it there.
    short: Option<Short>,
    quarantined: Option<String>,
    /// Failures in a row.
    strikes: u32,
    /// Results that failed here and succeeded elsewhere.
    proved_wrong: u32,
}

struct Short {
    order: Order,
    /// When to ask the device again, unless something comes back before.
    again: Instant,
}

struct WorkerState<W: Work> {
    device: usize,
    /// Takes small urgent partitions only.
    is_lane: bool,
    inbox: Sender<ToWorker<W>>,
    running: Option<Running>,
    /// Its attempt was given up; it reports when it comes back, if ever.
    is_stuck: bool,
}

struct Running {
    order: Order,
    phase: Phase,
    since: Instant,
    begun: Instant,
    stop: Arc<Flag>,
}

struct JobState<W: Work> {
    shared: Arc<Shared>,
    work: Arc<W>,
    parts: Vec<PartState<W>>,
    order: Order,
    options: JobOptions,
    reply: Reply<W>,
    /// Given back when the job has ended, before that is told.
    pass: Pass,
    submitted: Instant,
    begun: Option<Instant>,
    in_flight: usize,
    done: usize,
    /// It has no result; it ends when its last partition has come home.
    ending: Option<JobError<W::Error>>,
}

struct PartState<W: Work> {
    input: Arc<W::Part>,
    demands: Vec<Option<Arc<Demand>>>,
    /// Attempts that came to an end of their own, good or bad.
    attempts: u32,
    /// Attempts admitted, also those that found their memory gone or were taken off their device.
    tries: u32,
    /// By device, how often it failed there.
    failures: Vec<u32>,
    /// By device, whether it gave a wrong result there.
    wrong: Vec<bool>,
    /// By device, whether it is not to be tried there again.
    avoid: Vec<bool>,
    /// The device on which it is tried again.
    only: Option<usize>,
    not_before: Option<Instant>,
    /// Prepared for this device, whose memory it waits for.
    waiting: Option<(usize, Waiting<W>)>,
    /// Since when device memory that was there in the plan has been missing.
    short_since: Option<Instant>,
    last_error: Option<W::Error>,
    output: Option<(W::Output, PartitionReport)>,
}

/// A worker as the engine is told of it.
pub(crate) struct NewWorker<W: Work> {
    pub(crate) device: usize,
    pub(crate) is_lane: bool,
    pub(crate) inbox: Sender<ToWorker<W>>,
}

impl<W: Work> Core<W> {
    pub(crate) fn new(
        options: Options,
        epoch: Instant,
        ledger: Arc<Ledger>,
        devices: Vec<Arc<DeviceShared>>,
        workers: Vec<NewWorker<W>>,
        any_cancelled: Arc<Flag>,
    ) -> Self {
        let devices = devices
            .into_iter()
            .zip(&options.devices)
            .map(|(shared, options)| DeviceState {
                role: options.role,
                shared,
                short: None,
                quarantined: None,
                strikes: 0,
                proved_wrong: 0,
            })
            .collect();
        let workers = workers.into_iter().map(|worker| WorkerState {
            device: worker.device,
            is_lane: worker.is_lane,
            inbox: worker.inbox,
            running: None,
            is_stuck: false,
        });
        Self {
            workers: workers.collect(),
            options,
            epoch,
            ledger,
            jobs: BTreeMap::new(),
            devices,
            ready: BTreeSet::new(),
            any_cancelled,
            stopping: false,
            cancelling: false,
        }
    }

    /// Takes one message in.
    pub(crate) fn handle(&mut self, message: ToEngine<W>, now: Instant) {
        match message {
            ToEngine::Submit(job) => self.take_in(*job, now),
            ToEngine::Report(report) => self.hear(report, now),
            ToEngine::Reinstate { device, reply } => {
                let _ = reply.send(self.reinstate(device));
            }
            ToEngine::Stop { cancel } => {
                self.stopping = true;
                if cancel {
                    self.cancelling = true;
                    let all: Vec<u64> = self.jobs.keys().copied().collect();
                    for job in all {
                        self.end_job(job, JobError::ShutDown);
                    }
                }
            }
        }
    }

    /// Whether there is nothing left to do, and nothing will come.
    pub(crate) fn is_over(&self) -> bool {
        self.stopping && self.jobs.is_empty()
    }

    /// Tells every worker to go home; gives those that will.
    pub(crate) fn dismiss(&self) -> Vec<usize> {
        let mut leaving = Vec::new();
        for (number, worker) in self.workers.iter().enumerate() {
            // The inbox of an idle worker is empty; so is that of one that is stuck, which reads it
            // when it comes back.
            let told = worker.inbox.try_send(ToWorker::End).is_ok();
            if told && !worker.is_stuck {
                leaving.push(number);
            }
        }
        leaving
    }

    fn part(&mut self, order: Order) -> Option<&mut PartState<W>> {
        self.jobs
            .get_mut(&order.job())?
            .parts
            .get_mut(order.index())
    }

    /// Tells the job's observer, whose panics are its own.
    fn tell(&self, job: u64, event: &Event) {
        if let Some(job) = self.jobs.get(&job) {
            job.tell(event);
        }
    }

    /// Time since the engine's start.
    fn since_epoch(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.epoch)
    }
}

impl<W: Work> JobState<W> {
    fn tell(&self, event: &Event) {
        if let Some(observer) = &self.options.observer {
            let tell = std::panic::AssertUnwindSafe(|| (observer.0)(event));
            if std::panic::catch_unwind(tell).is_err() {
                tracing::error!("an observer of {} panicked", self.shared.id);
            }
        }
    }
}
