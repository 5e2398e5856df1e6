//! The clock: deadlines, watchdogs, cancellations.

use std::time::Instant;

use super::Core;
use crate::error::JobError;
use crate::message::Event;
use crate::options::OnDeviceError;
use crate::work::Work;

impl<W: Work> Core<W> {
    /// Does what is due.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.any_cancelled.is_set() {
            // Cleared first: a flag set from now on is seen next time.
            self.any_cancelled.clear();
            let cancelled: Vec<u64> = self
                .jobs
                .iter()
                .filter(|(_, job)| job.ending.is_none() && job.shared.cancel.is_set())
                .map(|(id, _)| *id)
                .collect();
            for id in cancelled {
                self.end_job(id, JobError::Cancelled);
            }
        }
        let late: Vec<u64> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.options.deadline.is_some_and(|deadline| deadline <= now))
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            self.end_job(id, JobError::Deadline);
        }
        for worker in 0..self.workers.len() {
            if self.expiry(worker).is_some_and(|expiry| expiry <= now) {
                self.give_up_attempt(worker);
            }
        }
    }

    /// When to look again, if nothing is heard before.
    pub(crate) fn next_wake(&self, now: Instant) -> Option<Instant> {
        let deadlines = self
            .jobs
            .values()
            .filter(|job| job.ending.is_none())
            .filter_map(|job| job.options.deadline);
        let expiries = (0..self.workers.len()).filter_map(|worker| self.expiry(worker));
        let shortages = self
            .devices
            .iter()
            .filter_map(|device| device.short.as_ref().map(|short| short.again));
        let pauses = self
            .jobs
            .values()
            .flat_map(|job| &job.parts)
            .filter_map(|part| part.not_before);
        // What is due and not done waits for something else than time.
        deadlines
            .chain(expiries)
            .chain(shortages)
            .chain(pauses)
            .filter(|time| *time > now)
            .min()
    }

    /// When the phase that the worker is in becomes too long.
    fn expiry(&self, worker: usize) -> Option<Instant> {
        let running = self.workers[worker].running.as_ref()?;
        let limit = self.options.watchdog.limit(running.phase)?;
        running.since.checked_add(limit)
    }

    /// A phase takes too long: its worker is left alone until it comes back, its device is taken out
    /// of service, and the partition goes elsewhere. What the worker holds stays counted until then.
    fn give_up_attempt(&mut self, worker: usize) {
        let device = self.workers[worker].device;
        let Some(running) = self.workers[worker].running.take() else {
            return;
        };
        self.workers[worker].is_stuck = true;
        running.stop.set();
        let (order, phase) = (running.order, running.phase);
        self.quarantine(device, "a phase took too long there");
        let id = self.id_of(order);
        let Some(job) = self.jobs.get_mut(&order.job()) else {
            return;
        };
        job.in_flight -= 1;
        if job.ending.is_some() {
            self.end_if_home(order.job());
            return;
        }
        let partition = order.index();
        let part = &mut job.parts[partition];
        part.attempts += 1;
        part.avoid[device] = true;
        let attempts = part.attempts;
        let is_last = self.options.on_device_error == OnDeviceError::Fail
            || attempts >= self.options.attempts_max
            || self.is_homeless(order);
        if is_last {
            let error = JobError::TimedOut {
                partition,
                phase,
                attempts,
            };
            self.end_job(order.job(), error);
            return;
        }
        if let Some(part) = id {
            let why = format!("{phase} took too long");
            self.tell(order.job(), &Event::Retry { part, device, why });
        }
        self.ready.insert(order);
    }
}
