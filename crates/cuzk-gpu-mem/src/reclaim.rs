//! What happens to a block after its last use: wiped if it was secret, freed, and its bytes
//! returned to the ledger when, and only when, the free has completed.
//!
//! A step that fails is tried again by the next who asks; nothing is forgotten, nothing is freed
//! twice.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::budget::Reservation;
use crate::device::Device;
use crate::driver::{AllocKind, DevicePtr, DriverResult, EventId, MemInfo, Point};
use crate::error::Result;
use crate::link::Link;
use crate::permit::Side;
use crate::stream::StreamCore;

/// Above this many retired blocks, whoever retires one more looks which have completed.
const LOOK_AT: usize = 64;

/// A block without an owner, on its way back.
#[derive(Debug)]
pub(crate) struct Retired {
    pub(crate) ptr: DevicePtr,
    pub(crate) bytes: u64,
    pub(crate) kind: AllocKind,
    pub(crate) stream: Arc<StreamCore>,
    pub(crate) reservation: Reservation,
    pub(crate) step: Step,
}

/// What is to be done next. Stream-ordered: wipe, free, mark, wait for the fence. Synchronous:
/// wipe, mark, wait for the fence, free; so that dropping never blocks and never frees what the
/// device still uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Wipe,
    Free,
    Mark,
    Fence(EventId),
    Done,
}

/// How long reclaiming may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Issue what is next; ask nothing.
    IssueOnly,
    TakeWhatIsDone,
    Wait,
}

impl Retired {
    /// The first step of a block of that kind.
    pub(crate) fn first_step(kind: AllocKind, secret: bool) -> Step {
        match (secret, kind) {
            (true, _) => Step::Wipe,
            (false, AllocKind::StreamOrdered) => Step::Free,
            (false, AllocKind::Synchronous) => Step::Mark,
        }
    }

    /// Goes on as far as it can; `Ok(true)` when the block is gone. On an error the step stands.
    fn advance(&mut self, link: &Link, patience: Patience) -> DriverResult<bool> {
        let driver = &**link.driver();
        let stream = self.stream.id;
        let synchronous = self.kind == AllocKind::Synchronous;
        loop {
            self.step = match self.step {
                Step::Wipe => {
                    // SAFETY: the block is live and this entry its only owner.
                    unsafe { driver.fill(self.ptr, 0, self.bytes as usize, stream)? };
                    Self::first_step(self.kind, false)
                }
                Step::Free => {
                    // SAFETY: the block is live and this entry its only owner. Stream-ordered: its
                    // last use is ordered before this on its stream. Synchronous: the fence behind
                    // its last use has been reached. The step changes on success, so never twice.
                    unsafe { driver.free(self.kind, self.ptr, stream)? };
                    if synchronous { Step::Done } else { Step::Mark }
                }
                Step::Mark => {
                    let event = link.take_event()?;
                    // SAFETY: the stream is kept alive by this entry, the event is ours.
                    if let Err(error) = unsafe { driver.record(event, stream) } {
                        link.return_event(event);
                        return Err(error);
                    }
                    Step::Fence(event)
                }
                Step::Fence(event) => {
                    if patience == Patience::IssueOnly {
                        return Ok(false);
                    }
                    let point = Point::Event(event);
                    // SAFETY: the event is live and ours.
                    if patience == Patience::TakeWhatIsDone && !unsafe { driver.query(point)? } {
                        return Ok(false);
                    }
                    // Waiting, also for what has been reached, is what makes the driver count the
                    // bytes as idle: a query alone does not.
                    // SAFETY: as above.
                    unsafe { driver.wait(point)? };
                    link.return_event(event);
                    if synchronous { Step::Free } else { Step::Done }
                }
                Step::Done => return Ok(true),
            };
        }
    }
}

/// The retired blocks of one device.
#[derive(Debug, Default)]
pub(crate) struct Reclaimer {
    retired: Mutex<Vec<Retired>>,
    /// Held while somebody reclaims, so that another waits for the outcome instead of finding an
    /// empty list and concluding that nothing is pending.
    reclaiming: Mutex<()>,
}

impl Reclaimer {
    /// Takes a block over from its owner's `Drop`.
    pub(crate) fn retire(&self, link: &Link, mut block: Retired) {
        block.reservation.mark_pending();
        if !link.usable() {
            return; // The context took the memory with it.
        }
        // Issue what can be issued now, so that the free takes its place in the stream's order.
        if let Err(error) = block.advance(link, Patience::IssueOnly) {
            link.defer(error);
        }
        let many = {
            let mut retired = self.retired.lock();
            retired.push(block);
            retired.len() >= LOOK_AT
        };
        if many {
            self.reclaim(link, Patience::TakeWhatIsDone);
        }
    }

    /// Frees and returns what has completed; with patience, everything. Reports how many entries
    /// stay.
    pub(crate) fn reclaim(&self, link: &Link, patience: Patience) -> usize {
        let _one_at_a_time = self.reclaiming.lock();
        let mut list = std::mem::take(&mut *self.retired.lock());
        if !link.usable() {
            return 0;
        }
        list.retain_mut(|block| match block.advance(link, patience) {
            Ok(done) => !done,
            Err(error) => {
                link.defer(error);
                link.usable()
            }
        });
        let mut retired = self.retired.lock();
        list.append(&mut retired);
        *retired = list;
        retired.len()
    }

    /// The device closes: every block is freed, whatever it takes short of a live driver.
    pub(crate) fn finish(&self, link: &Link) {
        for _ in 0..3 {
            if self.reclaim(link, Patience::Wait) == 0 {
                return;
            }
        }
    }
}

/// How far a trim may go to make bytes available.
///
/// While another thread is in its compute section, anything beyond `Completed` is done as
/// `Completed`: waiting for that section is what the permit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrimPolicy {
    /// Release nothing; report.
    Never,
    /// Release what is known to be done; wait for nothing.
    Completed,
    /// Wait for the streams that have frees pending.
    Streams,
    /// Wait for the whole device.
    Device,
}

/// What a trim did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimReport {
    /// As far as it was allowed to go.
    pub applied: TrimPolicy,
    /// Bytes that became free to the synchronous allocator and to other processes.
    pub released: u64,
    /// Blocks whose free is still pending.
    pub still_pending: usize,
    /// Memory afterwards.
    pub after: MemInfo,
}

impl Device {
    /// Returns completed frees to the ledger and the pool's idle bytes to the device.
    pub fn trim(&self, policy: TrimPolicy) -> Result<TrimReport> {
        let link = &self.inner.link;
        link.ready()?;
        let before = link.run(|driver| driver.mem_info())?;
        let (applied, still_pending) = self.release(policy, Side::Outside)?;
        let after = link.run(|driver| driver.mem_info())?;
        let released = after.free.saturating_sub(before.free);
        tracing::debug!(?applied, released, still_pending, "trimmed");
        Ok(TrimReport {
            applied,
            released,
            still_pending,
            after,
        })
    }

    /// The work of [`Device::trim`]; also the path of an allocation that ran short.
    pub(crate) fn release(&self, policy: TrimPolicy, side: Side) -> Result<(TrimPolicy, usize)> {
        let link = &self.inner.link;
        let applied = self.inner.permit.at_most(policy, side);
        let patience = match applied {
            TrimPolicy::Never => {
                return Ok((applied, self.inner.reclaimer.retired.lock().len()));
            }
            TrimPolicy::Completed => Patience::TakeWhatIsDone,
            TrimPolicy::Streams => Patience::Wait,
            TrimPolicy::Device => {
                // SAFETY: no handle is involved.
                link.run(|driver| unsafe { driver.wait(Point::Device) })?;
                Patience::Wait
            }
        };
        let still_pending = self.inner.reclaimer.reclaim(link, patience);
        link.run(|driver| driver.trim(0))?;
        Ok((applied, still_pending))
    }

    /// Notices completed frees without trimming.
    pub(crate) fn reclaim(&self, patience: Patience) -> usize {
        self.inner.reclaimer.reclaim(&self.inner.link, patience)
    }
}
