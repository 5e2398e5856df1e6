//! Jobs: taken in, told of, ended.

use std::time::Instant;

use super::{Core, JobState, PartState, WorkerState};
use crate::error::JobError;
use crate::job::{Finished, PartitionReport};
use crate::message::{Event, NewJob, NewPart, Outcome, PartId, Report};
use crate::queue::Order;
use crate::work::Work;

impl<W: Work> Core<W> {
    pub(super) fn take_in(&mut self, new: NewJob<W>, now: Instant) {
        let id = new.shared.id.number();
        let submitted = self.since_epoch(now);
        let order = Order::new(submitted, new.options.priority, self.options.ageing, id);
        let devices = self.devices.len();
        let part = |part: NewPart<W>| PartState {
            input: part.input,
            demands: part.demands,
            attempts: 0,
            tries: 0,
            failures: vec![0; devices],
            wrong: vec![false; devices],
            avoid: vec![false; devices],
            only: None,
            not_before: None,
            waiting: None,
            short_since: None,
            last_error: None,
            output: None,
        };
        let job = JobState {
            shared: new.shared,
            work: new.work,
            parts: new.parts.into_iter().map(part).collect(),
            order,
            options: new.options,
            reply: new.reply,
            pass: new.pass,
            submitted: now,
            begun: None,
            in_flight: 0,
            done: 0,
            ending: None,
        };
        self.ready
            .extend((0..job.parts.len()).map(|index| order.part(index)));
        self.jobs.insert(id, job);
        if self.cancelling {
            self.end_job(id, JobError::ShutDown);
        }
    }

    /// A worker reports.
    pub(super) fn hear(&mut self, report: Report<W>, now: Instant) {
        match report {
            Report::Began { worker, phase } => {
                let WorkerState {
                    device, running, ..
                } = &mut self.workers[worker];
                let device = *device;
                // None: the attempt was given up.
                if let Some(running) = running {
                    running.phase = phase;
                    running.since = now;
                    let order = running.order;
                    if let Some(part) = self.id_of(order) {
                        let event = Event::Phase {
                            part,
                            device,
                            phase,
                        };
                        self.tell(order.job(), &event);
                    }
                }
            }
            Report::Ended { worker, outcome } => {
                let device = self.workers[worker].device;
                self.memory_came_back(device, now);
                self.workers[worker].is_stuck = false;
                let Some(running) = self.workers[worker].running.take() else {
                    return; // of an attempt that was given up: its result is nobody's
                };
                if let Some(job) = self.jobs.get_mut(&running.order.job()) {
                    job.in_flight -= 1;
                    if job.ending.is_some() {
                        self.end_if_home(running.order.job());
                    } else {
                        match outcome {
                            Outcome::Done(output) => {
                                let report = PartitionReport {
                                    device,
                                    attempts: 0,
                                    elapsed: now.saturating_duration_since(running.begun),
                                };
                                self.done(running.order, output, report, now);
                            }
                            outcome => self.failed(running.order, device, outcome, now),
                        }
                    }
                }
            }
        }
    }

    fn done(&mut self, order: Order, output: W::Output, report: PartitionReport, now: Instant) {
        let Some(job) = self.jobs.get_mut(&order.job()) else {
            return;
        };
        let part = &mut job.parts[order.index()];
        part.attempts += 1;
        let attempts = part.attempts;
        part.output = Some((output, PartitionReport { attempts, ..report }));
        let elsewhere: Vec<usize> = (0..part.wrong.len())
            .filter(|device| part.wrong[*device] && *device != report.device)
            .collect();
        job.done += 1;
        let event = Event::Done {
            part: PartId {
                job: job.shared.id,
                index: order.index(),
            },
            done: job.done,
            of: job.parts.len(),
        };
        job.tell(&event);
        let is_complete = job.done == job.parts.len();
        self.devices[report.device].strikes = 0;
        for device in elsewhere {
            self.prove_wrong(device);
        }
        if is_complete {
            self.complete(order.job(), now);
        }
    }

    fn complete(&mut self, job: u64, now: Instant) {
        let Some(job) = self.jobs.remove(&job) else {
            return;
        };
        let id = job.shared.id;
        job.tell(&Event::Ended {
            job: id,
            how: "done",
        });
        let begun = job.begun.unwrap_or(now);
        drop(job.pass);
        let (outputs, partitions) = job.parts.into_iter().filter_map(|p| p.output).unzip();
        // The handle may be gone.
        let _ = job.reply.try_send(Ok(Finished {
            job: id,
            outputs,
            partitions,
            queued: begun.saturating_duration_since(job.submitted),
            elapsed: now.saturating_duration_since(begun),
        }));
    }

    /// The job will have no result. What waits is dropped now; what runs is told to stop.
    pub(super) fn end_job(&mut self, id: u64, error: JobError<W::Error>) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        if job.ending.is_some() {
            return;
        }
        job.ending = Some(error);
        job.shared.cancel.set();
        for part in &mut job.parts {
            part.waiting = None;
        }
        self.ready.retain(|order| order.job() != id);
        for device in &mut self.devices {
            device.short.take_if(|short| short.order.job() == id);
            device.shared.turnstile.wake();
        }
        self.end_if_home(id);
    }

    /// Ends a job without result once nothing of it runs.
    pub(super) fn end_if_home(&mut self, id: u64) {
        let is_home = |job: &JobState<W>| job.ending.is_some() && job.in_flight == 0;
        if !self.jobs.get(&id).is_some_and(is_home) {
            return;
        }
        let Some(mut job) = self.jobs.remove(&id) else {
            return;
        };
        let Some(error) = job.ending.take() else {
            return;
        };
        job.tell(&Event::Ended {
            job: job.shared.id,
            how: error.how(),
        });
        // What it held is back before anybody learns of its end.
        drop((job.parts, job.work, job.pass));
        let _ = job.reply.try_send(Err(error));
    }

    pub(super) fn id_of(&self, order: Order) -> Option<PartId> {
        let job = self.jobs.get(&order.job())?;
        Some(PartId {
            job: job.shared.id,
            index: order.index(),
        })
    }
}
