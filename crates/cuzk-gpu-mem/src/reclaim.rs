//! What happens to a block after its last use: wiped if it was secret, freed, and its bytes
//! returned to the ledger when, and only when, the free has completed.
//!
//! A step that fails is tried again by the next who asks; nothing is forgotten, nothing is freed
//! twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::budget::Reservation;
use crate::device::Device;
use crate::driver::{AllocKind, DevicePtr, DriverResult, MemInfo, Point, StreamId};
use crate::error::Result;
use crate::link::Link;
use crate::permit::Side;
use crate::stream::{Event, StreamCore};
use crate::units::MIB;

/// From this many retired blocks on, whoever retires one more looks which have completed; and then
/// again when they have doubled, so that a busy stream is not asked over and over.
const LOOK_AT: usize = 64;

/// Blocks of this size get a fence of their own at once, so that they come back as early as can be.
/// Smaller ones share the fence that the next look records: an event costs as much as an allocation
/// from a warm pool, and 64 small blocks are little memory.
const FENCE_AT_ONCE: u64 = 16 * MIB;

/// A block without an owner, on its way back.
#[derive(Debug)]
pub(crate) struct Retired {
    pub(crate) ptr: DevicePtr,
    pub(crate) bytes: u64,
    pub(crate) wipe_bytes: u64,
    pub(crate) kind: AllocKind,
    pub(crate) stream: Arc<StreamCore>,
    pub(crate) reservation: Reservation,
    pub(crate) step: Step,
}

/// What is to be done next. Stream-ordered: wipe, free, mark, wait for the fence. Synchronous:
/// wipe, mark, wait for the fence, free; so that dropping never blocks and never frees what the
/// device still uses.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Wipe,
    Free,
    Mark,
    Fence(Arc<Fence>),
    Done,
}

/// A place in a stream behind the last uses, or the frees, of one or more blocks.
#[derive(Debug)]
pub(crate) struct Fence {
    event: Event,
    stream: Arc<StreamCore>,
    /// Fences of a stream are passed in this order, so one that is passed answers for all before.
    order: u64,
}

/// How long reclaiming may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    TakeWhatIsDone,
    Wait,
}

impl Fence {
    fn record(stream: &Arc<StreamCore>) -> DriverResult<Arc<Self>> {
        let (event, order) = stream.mark_in_order()?;
        Ok(Arc::new(Self {
            event,
            stream: Arc::clone(stream),
            order,
        }))
    }

    /// Whether the stream has got past it, now or after waiting.
    ///
    /// What has been reached is waited for as well: a query alone does not make the driver count
    /// the bytes as idle.
    fn passed(&self, link: &Link, patience: Patience) -> DriverResult<bool> {
        if self.stream.passed.load(Ordering::Acquire) >= self.order {
            return Ok(true);
        }
        let (driver, point) = (link.driver(), Point::Event(self.event.id));
        // SAFETY: the event is live while `self` is.
        unsafe {
            if patience == Patience::TakeWhatIsDone && !driver.query(point)? {
                return Ok(false);
            }
            driver.wait(point)?;
        }
        self.stream.passed.fetch_max(self.order, Ordering::AcqRel);
        Ok(true)
    }
}

impl Retired {
    /// The first step of a block of that kind.
    pub(crate) fn first_step(kind: AllocKind, secret_bytes: u64) -> Step {
        match (secret_bytes > 0, kind) {
            (true, _) => Step::Wipe,
            (false, AllocKind::StreamOrdered) => Step::Free,
            (false, AllocKind::Synchronous) => Step::Mark,
        }
    }

    /// Whether something is to be issued before the fence: at once, or again after a failure.
    fn is_unissued(&self) -> bool {
        match self.step {
            Step::Wipe => true,
            Step::Free => self.kind == AllocKind::StreamOrdered,
            Step::Mark | Step::Fence(_) | Step::Done => false,
        }
    }

    /// Issues what stands before the fence. On an error the step stands.
    fn issue(&mut self, link: &Link) -> DriverResult<()> {
        let (driver, stream) = (link.driver(), self.stream.id);
        if matches!(self.step, Step::Wipe) {
            let recorder = self.stream.recorder();
            let span = recorder.and_then(|recorder| recorder.begin_wipe(&self.stream));
            // SAFETY: the block is live and this entry its only owner.
            unsafe { driver.fill(self.ptr, 0, self.wipe_bytes as usize, stream)? };
            if let Some(span) = span {
                span.end_on(&self.stream);
            }
            self.step = Self::first_step(self.kind, 0);
        }
        if matches!(self.step, Step::Free) && self.kind == AllocKind::StreamOrdered {
            // SAFETY: the block is live, this entry its only owner, its last use ordered before
            // this on its stream. The step changes on success, so it is never freed twice.
            unsafe { driver.free(self.kind, self.ptr, stream)? };
            self.step = Step::Mark;
        }
        Ok(())
    }

    /// Goes on behind what was issued, as far as it can. On an error the step stands.
    /// `fences` are those recorded by this look, one a stream.
    fn advance(
        &mut self,
        link: &Link,
        patience: Patience,
        fences: &mut BTreeMap<StreamId, Arc<Fence>>,
    ) -> DriverResult<()> {
        if matches!(self.step, Step::Mark) {
            let fence = match fences.get(&self.stream.id) {
                Some(fence) => Arc::clone(fence),
                None => Fence::record(&self.stream)?,
            };
            fences.insert(self.stream.id, Arc::clone(&fence));
            self.step = Step::Fence(fence);
        }
        if let Step::Fence(fence) = &self.step {
            if !fence.passed(link, patience)? {
                return Ok(());
            }
            self.step = match self.kind {
                AllocKind::StreamOrdered => Step::Done,
                AllocKind::Synchronous => Step::Free,
            };
        }
        if matches!(self.step, Step::Free) {
            // SAFETY: the block is live, this entry its only owner, and the fence behind its last
            // use has been passed. The step changes on success, so it is never freed twice.
            unsafe { link.driver().free(self.kind, self.ptr, self.stream.id)? };
            self.step = Step::Done;
        }
        Ok(())
    }
}

/// The retired blocks of one device.
#[derive(Debug, Default)]
pub(crate) struct Reclaimer {
    retired: Mutex<Vec<Retired>>,
    /// How many there must be before a drop looks again.
    look_at: AtomicUsize,
    /// Held while somebody reclaims, so that another waits for the outcome instead of finding an
    /// empty list and concluding that nothing is pending.
    reclaiming: Mutex<()>,
}

impl Reclaimer {
    /// Takes a block over from its owner's `Drop`.
    pub(crate) fn retire(&self, link: &Link, mut block: Retired) {
        block.reservation.mark_pending();
        if !link.usable() {
            self.retired.lock().clear(); // The context took the memory with it.
            return;
        }
        // Issued now, so that the free takes its place in the stream's order.
        let mut issued = block.issue(link);
        if issued.is_ok() && block.bytes >= FENCE_AT_ONCE {
            issued = Fence::record(&block.stream).map(|fence| block.step = Step::Fence(fence));
        }
        if let Err(error) = issued {
            link.defer(error);
        }
        let many = {
            let mut retired = self.retired.lock();
            retired.push(block);
            retired.len() >= self.look_at.load(Ordering::Relaxed).max(LOOK_AT)
        };
        // Whoever is at it already, perhaps waiting, does it for this one too: a drop never waits.
        if many && let Some(_one_at_a_time) = self.reclaiming.try_lock() {
            self.look(link, Patience::TakeWhatIsDone);
        }
    }

    /// Frees and returns what has completed; with patience, everything. Reports how many entries
    /// stay.
    pub(crate) fn reclaim(&self, link: &Link, patience: Patience) -> usize {
        let _one_at_a_time = self.reclaiming.lock();
        self.look(link, patience)
    }

    /// [`Reclaimer::reclaim`], by whoever holds `reclaiming`.
    fn look(&self, link: &Link, patience: Patience) -> usize {
        let mut list = std::mem::take(&mut *self.retired.lock());
        if list.is_empty() || !link.usable() {
            return 0;
        }
        // All that failed to be issued first: a fence recorded here is behind every free before it.
        for block in list.iter_mut().filter(|block| block.is_unissued()) {
            if let Err(error) = block.issue(link) {
                link.defer(error);
            }
        }
        let mut fences = BTreeMap::new();
        // The newest first: a fence that is passed answers for those before it.
        for block in list.iter_mut().rev().filter(|block| !block.is_unissued()) {
            if let Err(error) = block.advance(link, patience, &mut fences) {
                link.defer(error);
            }
        }
        let usable = link.usable();
        list.retain(|block| usable && !matches!(block.step, Step::Done));
        let mut retired = self.retired.lock();
        list.append(&mut retired);
        *retired = list;
        self.look_at.store(2 * retired.len(), Ordering::Relaxed);
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
