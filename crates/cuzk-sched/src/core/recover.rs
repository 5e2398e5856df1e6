//! What a failure leads to.

use std::time::{Duration, Instant};

use super::{Core, Short};
use crate::error::JobError;
use crate::message::{Event, Outcome};
use crate::options::OnDeviceError;
use crate::queue::Order;
use crate::work::{Fault, Place, Work};

/// How long a partition stays away from a device that had no memory for it.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

impl<W: Work> Core<W> {
    /// An attempt has ended without result; its job is still wanted.
    pub(super) fn failed(
        &mut self,
        order: Order,
        device: usize,
        outcome: Outcome<W>,
        now: Instant,
    ) {
        let partition = order.index();
        match outcome {
            Outcome::Done(_) => {}
            Outcome::NotAdmitted(error, waiting) => {
                if let Some(part) = self.part(order) {
                    part.tries -= 1;
                    part.waiting = Some((device, *waiting));
                }
                self.no_room(order, device, error.into(), now);
            }
            Outcome::Panicked(phase, what) => {
                tracing::error!(%phase, what, "a partition panicked");
                let error = JobError::Panicked {
                    partition,
                    phase,
                    what,
                };
                self.end_job(order.job(), error);
            }
            Outcome::Fault(Fault::Input(error)) => {
                let attempts = self.part(order).map_or(1, |part| part.attempts + 1);
                let error = JobError::Failed {
                    partition,
                    attempts,
                    error,
                };
                self.end_job(order.job(), error);
            }
            Outcome::Fault(Fault::Memory(error)) => self.no_room(order, device, error, now),
            Outcome::Fault(Fault::Stopped) => self.stopped(order, device),
            Outcome::Fault(Fault::Wrong(error)) => {
                if let Some(part) = self.part(order) {
                    part.wrong[device] = true;
                }
                self.try_again(order, device, error);
            }
            Outcome::Fault(Fault::Device(error)) => {
                if self.is_lost(device) {
                    self.quarantine(device, &error.to_string());
                } else {
                    self.strike(device);
                }
                self.try_again(order, device, error);
            }
        }
    }

    /// The job's flag is answered where it is set. Here the device was taken away, which is no fault
    /// of the partition.
    fn stopped(&mut self, order: Order, device: usize) {
        if self.devices[device].shared.out.is_set() {
            self.ready.insert(order);
        } else {
            self.end_job(order.job(), JobError::Cancelled);
        }
    }

    /// The device has no memory for it now. It stays first in line there, unless an earlier one is.
    fn no_room(&mut self, order: Order, device: usize, error: W::Error, now: Instant) {
        let is_alone = self.running_on(device) == 0;
        let patience = self.options.memory_patience;
        let Some(part) = self.part(order) else { return };
        if is_alone {
            let since = *part.short_since.get_or_insert(now);
            if now.saturating_duration_since(since) >= patience {
                part.avoid[device] = true;
                part.waiting = None;
                part.short_since = None;
                part.last_error = None;
                if self.is_homeless(order) {
                    let partition = order.index();
                    self.end_job(order.job(), JobError::OutOfMemory { partition, error });
                    return;
                }
                self.ready.insert(order);
                return;
            }
        } else {
            part.short_since = None;
        }
        let short = &mut self.devices[device].short;
        if short.as_ref().is_none_or(|short| order <= short.order) {
            *short = Some(Short {
                order,
                again: now + LOOK_AGAIN,
            });
        } else if let Some(part) = self.part(order) {
            part.not_before = Some(now + LOOK_AGAIN);
        }
        self.ready.insert(order);
    }

    /// Something was given back on the device: whoever is first in line there asks again.
    pub(super) fn memory_came_back(&mut self, device: usize, now: Instant) {
        if let Some(short) = &mut self.devices[device].short {
            short.again = now;
        }
    }

    /// Whether no device may do the partition any more.
    pub(super) fn is_homeless(&self, order: Order) -> bool {
        self.jobs
            .get(&order.job())
            .and_then(|job| job.parts.get(order.index()))
            .is_some_and(|part| !(0..self.devices.len()).any(|d| self.may_use(part, d)))
    }

    /// Once more on the same device, then elsewhere, as policy has it.
    fn try_again(&mut self, order: Order, device: usize, error: W::Error) {
        let (policy, most) = (self.options.on_device_error, self.options.attempts_max);
        let is_out = self.devices[device].quarantined.is_some();
        let id = self.id_of(order);
        let Some(part) = self.part(order) else { return };
        part.attempts += 1;
        part.failures[device] += 1;
        let why = error.to_string();
        let (attempts, failures) = (part.attempts, part.failures[device]);
        part.last_error = Some(error);
        part.only = None;
        if policy == OnDeviceError::Fail || attempts >= most {
            self.give_up(order);
            return;
        }
        if failures < 2 && !is_out {
            part.only = Some(device);
        } else {
            part.avoid[device] = true;
            if self.is_homeless(order) {
                // Where there is nothing else, the same device once more, if it is there.
                if is_out || policy == OnDeviceError::Cpu {
                    self.give_up(order);
                    return;
                }
                if let Some(part) = self.part(order) {
                    part.avoid[device] = false;
                }
            }
        }
        tracing::warn!(attempts, device, why, "a partition is tried again");
        if let Some(part) = id {
            self.tell(order.job(), &Event::Retry { part, device, why });
        }
        self.ready.insert(order);
    }

    /// The partition has failed for good, and its job with it.
    pub(super) fn give_up(&mut self, order: Order) {
        let partition = order.index();
        let Some(part) = self.part(order) else { return };
        let attempts = part.attempts;
        let error = match part.last_error.take() {
            Some(error) => JobError::Failed {
                partition,
                attempts,
                error,
            },
            None => JobError::NoDevice { partition },
        };
        self.end_job(order.job(), error);
    }

    /// Whether the device's context is gone for good.
    fn is_lost(&self, device: usize) -> bool {
        match &self.devices[device].shared.place {
            Place::Device(device) => !device.is_usable(),
            Place::Cpu => false,
        }
    }

    fn strike(&mut self, device: usize) {
        let state = &mut self.devices[device];
        state.strikes += 1;
        self.count_strikes(device);
    }

    /// A result that failed its verification here has come out right elsewhere.
    pub(super) fn prove_wrong(&mut self, device: usize) {
        self.devices[device].proved_wrong += 1;
        self.count_strikes(device);
    }

    fn count_strikes(&mut self, device: usize) {
        let state = &self.devices[device];
        if state.strikes + state.proved_wrong >= self.options.strikes_max {
            self.quarantine(device, "it failed too often");
        }
    }

    /// The device gets no more work. What waits there to compute is placed elsewhere.
    pub(super) fn quarantine(&mut self, device: usize, why: &str) {
        let state = &mut self.devices[device];
        if state.quarantined.is_some() {
            return;
        }
        tracing::error!(device, why, "a device is taken out of service");
        state.quarantined = Some(why.to_owned());
        state.short = None;
        state.shared.out.set();
        state.shared.turnstile.wake();
        for part in self.jobs.values_mut().flat_map(|job| &mut job.parts) {
            part.only.take_if(|only| *only == device);
            part.waiting.take_if(|(there, _)| *there == device);
        }
    }

    /// Gives the device work again, if it answers.
    pub(super) fn reinstate(&mut self, device: usize) -> bool {
        let Some(state) = self.devices.get_mut(device) else {
            return false;
        };
        let answers = match &state.shared.place {
            Place::Cpu => true,
            Place::Device(device) => device.is_usable(),
        };
        if answers {
            state.quarantined = None;
            state.strikes = 0;
            state.proved_wrong = 0;
            state.shared.out.clear();
        }
        answers
    }
}
