//! Which partition goes to which worker.

use std::sync::Arc;
use std::time::Instant;

use super::{Core, JobState, PartState, Running};
use crate::message::{Phase, Task, ToWorker};
use crate::options::{OnDeviceError, Priority, Role};
use crate::queue::Order;
use crate::work::{Flag, Work};

/// What is to become of a partition that waits.
enum Verdict {
    Run {
        worker: usize,
    },
    Later,
    /// No device is left.
    Never,
}

impl<W: Work> Core<W> {
    /// Gives work to idle workers, in order. A partition that finds no host memory holds up those
    /// behind it, so that it is not starved by smaller ones; the lane for small urgent jobs is
    /// exempt.
    pub(crate) fn dispatch(&mut self, now: Instant) {
        let mut held_up = false;
        let mut cursor: Option<Order> = None;
        // By order: a job may begin if fewer than `concurrency` begun ones are ahead of it.
        let mut begun_ahead: Vec<Order> = self
            .jobs
            .values()
            .filter(|job| job.begun.is_some())
            .map(|job| job.order)
            .collect();
        begun_ahead.sort();
        while self.has_idle_worker() {
            let next = match cursor {
                None => self.ready.first(),
                Some(seen) => self
                    .ready
                    .range((std::ops::Bound::Excluded(seen), std::ops::Bound::Unbounded))
                    .next(),
            };
            let Some(order) = next.copied() else { return };
            cursor = Some(order);
            let Some(job) = self.jobs.get(&order.job()) else {
                continue;
            };
            let part = &job.parts[order.index()];
            let is_lane = self.is_for_lane(job, part);
            let ahead = begun_ahead.partition_point(|begun| *begun < job.order);
            let may_begin = job.begun.is_some() || is_lane || ahead < self.options.concurrency;
            // One that waits for device memory has its host memory already.
            let is_held_up = held_up && !is_lane && part.waiting.is_none();
            if !may_begin || is_held_up {
                continue;
            }
            match self.place(part, order, is_lane, now) {
                Verdict::Later => {}
                Verdict::Never => self.give_up(order),
                Verdict::Run { worker } => {
                    let is_new = job.begun.is_none();
                    let job_order = job.order;
                    if !self.run(order, worker, is_lane, now) {
                        held_up = true;
                    } else if is_new {
                        let at = begun_ahead.partition_point(|begun| *begun < job_order);
                        begun_ahead.insert(at, job_order);
                    }
                }
            }
        }
    }

    fn has_idle_worker(&self) -> bool {
        self.workers
            .iter()
            .any(|worker| worker.running.is_none() && !worker.is_stuck)
    }

    /// Small and urgent, wherever it could be done.
    fn is_for_lane(&self, job: &JobState<W>, part: &PartState<W>) -> bool {
        let Some(lane) = &self.options.lane else {
            return false;
        };
        let mut demands = part.demands.iter().flatten().peekable();
        job.options.priority == Priority::Urgent
            && demands.peek().is_some()
            && demands.all(|demand| demand.footprint().fits(lane.most))
    }

    /// Whether the device could ever do the partition.
    fn is_able(&self, part: &PartState<W>, device: usize) -> bool {
        let is_out = self.devices[device].quarantined.is_some();
        !is_out && !part.avoid[device] && part.demands[device].is_some()
    }

    /// Whether it may: a fallback device only if that is allowed and no other is able.
    pub(super) fn may_use(&self, part: &PartState<W>, device: usize) -> bool {
        if !self.is_able(part, device) {
            return false;
        }
        match self.devices[device].role {
            Role::Primary => true,
            Role::Fallback => {
                let by_primary = |device: usize| {
                    self.devices[device].role == Role::Primary && self.is_able(part, device)
                };
                self.options.on_device_error == OnDeviceError::Cpu
                    && !(0..self.devices.len()).any(by_primary)
            }
        }
    }

    /// Of the devices that may do it and have an idle worker, the one with the least to do; of
    /// those the smallest, so that the large ones stay free for what fits nowhere else.
    fn place(&self, part: &PartState<W>, order: Order, is_lane: bool, now: Instant) -> Verdict {
        if part.not_before.is_some_and(|time| now < time) {
            return Verdict::Later;
        }
        let mut verdict = Verdict::Never;
        let mut best = None;
        for (device, state) in self.devices.iter().enumerate() {
            if !self.may_use(part, device) {
                continue;
            }
            if matches!(verdict, Verdict::Never) {
                verdict = Verdict::Later;
            }
            let is_elsewhere = part.only.is_some_and(|only| only != device);
            let must_wait = state.short.as_ref().is_some_and(|short| {
                (short.order < order && !is_lane) || (short.order == order && now < short.again)
            });
            if is_elsewhere || must_wait {
                continue;
            }
            let Some(worker) = self.idle_worker(device, is_lane) else {
                continue;
            };
            let score = (self.running_on(device), state.shared.place.device_bytes());
            if best.is_none_or(|(least, _)| score < least) {
                best = Some((score, worker));
            }
        }
        match best {
            Some((_, worker)) => Verdict::Run { worker },
            None => verdict,
        }
    }

    pub(super) fn running_on(&self, device: usize) -> usize {
        self.workers
            .iter()
            .filter(|worker| worker.device == device && worker.running.is_some())
            .count()
    }

    /// An ordinary worker, or the lane's where that is allowed.
    fn idle_worker(&self, device: usize, is_lane: bool) -> Option<usize> {
        let idle = |with_lane: bool| {
            self.workers.iter().position(|worker| {
                worker.device == device
                    && worker.is_lane == with_lane
                    && worker.running.is_none()
                    && !worker.is_stuck
            })
        };
        idle(false).or_else(|| is_lane.then(|| idle(true)).flatten())
    }

    /// Hands a partition to a worker; says whether the host had memory for it.
    fn run(&mut self, order: Order, worker: usize, is_lane: bool, now: Instant) -> bool {
        let device = self.workers[worker].device;
        let Some(job) = self.jobs.get_mut(&order.job()) else {
            return true;
        };
        let part = &mut job.parts[order.index()];
        let Some(estimate) = part.demands[device].clone() else {
            return true;
        };
        let keep = match (&self.options.lane, is_lane) {
            (Some(lane), false) => lane.most,
            _ => cuzk_gpu_mem::Footprint::default(),
        };
        // What was prepared for another device is of no use here.
        let waiting = part.waiting.take().filter(|(there, _)| *there == device);
        let (demand, prepared, hold) = match waiting {
            Some((_, waiting)) => (waiting.demand, Some(waiting.prepared), waiting.hold),
            None => match self.ledger.try_hold(estimate.footprint(), keep) {
                Some(hold) => (estimate, None, hold),
                None => return false,
            },
        };
        let stop = Arc::new(Flag::default());
        let shared = &self.devices[device].shared;
        let task = Task {
            id: crate::PartId {
                job: job.shared.id,
                index: order.index(),
            },
            order,
            attempt: part.tries,
            work: Arc::clone(&job.work),
            input: Arc::clone(&part.input),
            demand,
            prepared,
            keep_device_bytes: keep.device,
            stop: [
                Arc::clone(&job.shared.cancel),
                Arc::clone(&stop),
                Arc::clone(&shared.out),
            ],
            hold,
            verify: self.options.verify,
        };
        let state = &mut self.workers[worker];
        if state.inbox.try_send(ToWorker::Run(Box::new(task))).is_err() {
            // Its thread has gone, which takes a bug of ours; others go on.
            tracing::error!("worker {worker} is gone");
            state.is_stuck = true;
            return true;
        }
        state.running = Some(Running {
            order,
            phase: Phase::Stage,
            since: now,
            begun: now,
            stop,
        });
        job.begun.get_or_insert(now);
        job.in_flight += 1;
        part.not_before = None;
        part.tries += 1;
        self.ready.remove(&order);
        for device in &mut self.devices {
            device.short.take_if(|short| short.order == order);
        }
        true
    }
}
