//! Which pages are registered, by how many holders, and where copies must be cut.
//!
//! Only whole pages inside a range are registered; its ragged ends are copied as pageable memory.
//! So two ranges share a registered page only if they really overlap, that is, if both borrow the
//! same allocation: a page is never kept registered for a neighbour after its own allocation is
//! gone.
//!
//! Page-locking, unlocking and waiting for copies take long and happen without the lock: a segment
//! is entered first, as [`Phase::Arriving`] or [`Phase::Leaving`], and whoever needs the same pages
//! waits for the outcome; others go on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{HostInner, HostMemory};
use crate::driver::{Code, DriverError, DriverResult, Point};
use crate::pages::page_size;
use crate::stream::StreamCore;

type Segments = BTreeMap<usize, Segment>;

/// A run of pages registered as one.
#[derive(Debug)]
struct Segment {
    end: usize,
    holders: usize,
    phase: Phase,
    uses: Uses,
    /// Copies from or to it whose submission is under way.
    submitting: Arc<AtomicUsize>,
    /// Streams that have copied from or to it; waited for before it is unregistered.
    users: Vec<Arc<StreamCore>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Somebody is about to register it.
    Arriving,
    /// Registered by us, to be unregistered by us.
    Ours,
    /// Found registered by other code of the process, whose extents are unknown; left alone.
    Foreign,
    /// Somebody is about to unregister it. Nobody begins a copy from it.
    Leaving,
}

impl Phase {
    fn is_settled(self) -> bool {
        matches!(self, Self::Ours | Self::Foreign)
    }
}

/// Who sees to it that no copy uses a range any more when it is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uses {
    /// The holder: chunks of the pinned pool have fences.
    Fenced,
    /// The registry, which keeps the streams that copied.
    Kept,
}

/// A stretch of host memory that one copy may cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Offset from the start of the range asked about.
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
    pub(crate) pinned: bool,
}

/// The pieces of a range. While this lives, none of it is unregistered; what has been submitted by
/// then is waited for.
#[derive(Debug)]
pub(crate) struct Pieces {
    host: HostMemory,
    pub(crate) list: Vec<Piece>,
    submitting: Vec<Arc<AtomicUsize>>,
}

impl Drop for Pieces {
    fn drop(&mut self) {
        if self.submitting.is_empty() {
            return;
        }
        let registry = &self.host.inner.registry;
        let _segments = registry.segments.lock();
        for count in &self.submitting {
            count.fetch_sub(1, Ordering::Relaxed);
        }
        registry.changed.notify_all();
    }
}

/// The registered ranges of a process: disjoint, by first address.
#[derive(Debug)]
pub(super) struct Registry {
    segments: Mutex<Segments>,
    /// Rung when a segment has arrived or left, and when a copy has been submitted.
    changed: Condvar,
    chunk: usize,
}

/// The whole pages inside a range.
fn inner_pages(start: usize, bytes: usize) -> (usize, usize) {
    let page = page_size();
    let first = start.next_multiple_of(page);
    let end = (start + bytes) / page * page;
    (first, end.max(first))
}

impl Registry {
    pub(super) fn new(chunk: usize) -> Self {
        let page = page_size();
        Self {
            segments: Mutex::default(),
            changed: Condvar::new(),
            chunk: (chunk / page * page).max(page),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.segments.lock().len()
    }

    /// Registers the whole pages of a range: those registered already gain a holder, gaps become
    /// new segments of at most a chunk. On failure nothing has changed.
    ///
    /// # Safety
    /// The range is mapped and stays mapped until [`Registry::release`] with the same range; where
    /// `uses` is [`Uses::Fenced`], no copy uses it then.
    pub(super) unsafe fn hold(
        &self,
        host: &HostInner,
        start: usize,
        bytes: usize,
        uses: Uses,
    ) -> DriverResult<bool> {
        let (first, end) = inner_pages(start, bytes);
        if first == end {
            return Ok(false);
        }
        let mut segments = self.segments.lock();
        self.sweep(host, &mut segments);
        while touching(&mut segments, first, end).any(|s| !s.phase.is_settled()) {
            self.changed.wait(&mut segments);
        }
        if touching(&mut segments, first, end).any(|segment| segment.holders == 0) {
            // The driver would not let go of these pages, which may no longer be what they were.
            return Err(DriverError::new(
                "cuMemHostUnregister",
                Code::OPERATING_SYSTEM,
            ));
        }
        let gaps = self.gaps(&segments, first, end);
        for &(from, to) in &gaps {
            segments.insert(
                from,
                Segment {
                    end: to,
                    holders: 0,
                    phase: Phase::Arriving,
                    uses,
                    submitting: Arc::default(),
                    users: Vec::new(),
                },
            );
        }
        for segment in touching(&mut segments, first, end) {
            segment.holders += 1;
        }
        let mut failed = None;
        let phases = MutexGuard::unlocked(&mut segments, || {
            let register = |&(from, to): &(usize, usize)| {
                // SAFETY: page-aligned, and mapped as the caller promises.
                let registered = unsafe { host.link.driver().host_register(from, to - from) };
                match registered {
                    Ok(()) => Some((from, Phase::Ours)),
                    Err(error) if error.code == Code::HOST_MEMORY_ALREADY_REGISTERED => {
                        Some((from, Phase::Foreign))
                    }
                    Err(error) => {
                        failed = Some(error);
                        None
                    }
                }
            };
            gaps.iter().map_while(register).collect::<Vec<_>>()
        });
        for (from, phase) in phases {
            if let Some(segment) = segments.get_mut(&from) {
                segment.phase = phase;
            }
        }
        if let Some(error) = failed {
            for &(from, _) in &gaps {
                // Pages that were not registered need no unregistering.
                if segments
                    .get(&from)
                    .is_some_and(|s| s.phase == Phase::Arriving)
                {
                    segments.remove(&from);
                }
            }
            for segment in touching(&mut segments, first, end) {
                segment.holders -= 1;
            }
            self.changed.notify_all();
            self.sweep(host, &mut segments);
            return Err(error);
        }
        self.changed.notify_all();
        Ok(true)
    }

    /// The stretches of `[first, end)` that no segment covers, cut into chunks.
    fn gaps(&self, segments: &Segments, first: usize, end: usize) -> Vec<(usize, usize)> {
        let mut gaps = Vec::new();
        let mut at = first;
        let before = segments
            .range(..=first)
            .next_back()
            .map_or(first, |(_, s)| s.end);
        at = at.max(before);
        let later = segments
            .range(first + 1..end)
            .map(|(&start, segment)| (start, segment.end));
        for (start, segment_end) in later.chain([(end, end)]) {
            while at < start.min(end) {
                let to = start.min(end).min(at.saturating_add(self.chunk));
                gaps.push((at, to));
                at = to;
            }
            at = at.max(segment_end);
        }
        gaps
    }

    /// One holder lets go of the pages of a range; those without a holder are unregistered, once,
    /// after the copies that used them. Says whether the driver has let go too of all that this
    /// holder was the last of.
    pub(super) fn release(&self, host: &HostInner, start: usize, bytes: usize) -> bool {
        let (first, end) = inner_pages(start, bytes);
        let mut segments = self.segments.lock();
        for segment in touching(&mut segments, first, end) {
            segment.holders -= 1;
        }
        self.sweep(host, &mut segments);
        touching(&mut segments, first, end).all(|segment| segment.holders > 0)
    }

    /// Unregisters the segments that have no holder. One that the driver does not let go of stays,
    /// for the next sweep.
    fn sweep(&self, host: &HostInner, segments: &mut MutexGuard<'_, Segments>) {
        let mut leaving = Vec::new();
        for (&start, segment) in segments.iter_mut() {
            if segment.holders == 0 && segment.phase.is_settled() {
                leaving.push((start, segment.phase, Arc::clone(&segment.submitting)));
                segment.phase = Phase::Leaving;
            }
        }
        if leaving.is_empty() {
            return;
        }
        // No copy from it begins any more; one whose submission is under way becomes a user first.
        while leaving
            .iter()
            .any(|(.., submitting)| submitting.load(Ordering::Relaxed) > 0)
        {
            self.changed.wait(segments);
        }
        let work: Vec<_> = leaving
            .into_iter()
            .map(|(start, phase, _)| {
                let users = segments
                    .get_mut(&start)
                    .map(|s| std::mem::take(&mut s.users));
                (start, phase, users.unwrap_or_default())
            })
            .collect();
        let outcomes: Vec<_> = MutexGuard::unlocked(segments, || {
            work.into_iter()
                .map(|(start, phase, users)| (start, phase, unregister(host, start, phase, users)))
                .collect()
        });
        for (start, phase, gone) in outcomes {
            if gone {
                segments.remove(&start);
            } else if let Some(segment) = segments.get_mut(&start) {
                segment.phase = phase;
            }
        }
        self.changed.notify_all();
    }
}

impl HostMemory {
    /// Where a copy of that host range must be cut, each piece being registered whole or not at
    /// all. Registered pieces remember `stream`, so that they are not unregistered under it.
    pub(crate) fn pieces(&self, start: usize, bytes: usize, stream: &Arc<StreamCore>) -> Pieces {
        let registry = &self.inner.registry;
        let mut segments = registry.segments.lock();
        let end = start + bytes;
        while touching(&mut segments, start, end).any(|s| s.phase == Phase::Leaving) {
            registry.changed.wait(&mut segments);
        }
        let mut pieces = Pieces {
            host: self.clone(),
            list: Vec::new(),
            submitting: Vec::new(),
        };
        let mut idle = Vec::new();
        let mut at = start;
        for (from, segment) in segments_touching(&mut segments, start, end) {
            if at < from {
                pieces.push(at - start, from - at, false);
                at = from;
            }
            let to = segment.end.min(end);
            while at < to {
                // Inside a foreign segment the other code's borders are unknown, but a page is
                // registered whole or not at all.
                let next = if segment.phase == Phase::Foreign {
                    ((at / page_size() + 1) * page_size()).min(to)
                } else {
                    to
                };
                pieces.push(at - start, next - at, segment.phase.is_settled());
                at = next;
            }
            if segment.uses == Uses::Kept {
                segment.submitting.fetch_add(1, Ordering::Relaxed);
                pieces.submitting.push(Arc::clone(&segment.submitting));
                segment.used_by(stream, &mut idle);
            }
        }
        if at < end {
            pieces.push(at - start, end - at, false);
        }
        drop(segments);
        drop(idle); // May close streams.
        pieces
    }
}

impl Pieces {
    fn push(&mut self, offset: usize, bytes: usize, pinned: bool) {
        self.list.push(Piece {
            offset,
            bytes,
            pinned,
        });
    }
}

impl Segment {
    /// Notes a stream that copies. Streams that nobody else has any more, and that are done, are
    /// put into `idle`.
    fn used_by(&mut self, stream: &Arc<StreamCore>, idle: &mut Vec<Arc<StreamCore>>) {
        if self.users.iter().any(|user| Arc::ptr_eq(user, stream)) {
            return;
        }
        let done = |user: &Arc<StreamCore>| {
            // SAFETY: the stream is live while `user` is.
            let query = |driver: &dyn crate::driver::Driver| unsafe {
                driver.query(Point::Stream(user.id))
            };
            Arc::strong_count(user) == 1
                && (!user.link.usable() || user.link.run(query).is_ok_and(|idle| idle))
        };
        let (gone, kept) = std::mem::take(&mut self.users).into_iter().partition(done);
        self.users = kept;
        idle.extend::<Vec<_>>(gone);
        self.users.push(Arc::clone(stream));
    }
}

fn touching(
    segments: &mut Segments,
    first: usize,
    end: usize,
) -> impl Iterator<Item = &mut Segment> {
    segments_touching(segments, first, end).map(|(_, segment)| segment)
}

fn segments_touching(
    segments: &mut Segments,
    first: usize,
    end: usize,
) -> impl Iterator<Item = (usize, &mut Segment)> {
    let from = match segments.range(..=first).next_back() {
        Some((&start, segment)) if segment.end > first => start,
        _ => first,
    };
    segments
        .range_mut(from..end.max(from))
        .map(|(&start, segment)| (start, segment))
}

/// Waits for the copies that used the segment, then gives its pages back; says whether it could.
fn unregister(host: &HostInner, start: usize, phase: Phase, users: Vec<Arc<StreamCore>>) -> bool {
    for user in users {
        if user.link.usable() {
            let _ = user.settle();
        }
    }
    if phase == Phase::Foreign || !host.link.usable() {
        return true;
    }
    // SAFETY: registered by us under this address, and no copy uses it any more.
    host.link
        .run_in_drop(|driver| unsafe { driver.host_unregister(start) })
}
