//! Which pages are registered, by how many holders, and where copies must be cut.
//!
//! Only whole pages inside a range are registered; its ragged ends are copied as pageable memory.
//! So two ranges share a registered page only if they really overlap, that is, if both borrow the
//! same allocation: a page is never kept registered for a neighbour after its own allocation is
//! gone.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{HostInner, HostMemory};
use crate::Pod;
use crate::driver::{Code, DriverError, DriverResult};
use crate::pages::page_size;
use crate::stream::StreamCore;

/// A run of pages registered as one.
#[derive(Debug)]
struct Segment {
    end: usize,
    holders: usize,
    origin: Origin,
    /// Streams that have copied from or to it; waited for before it is unregistered.
    users: Vec<Arc<StreamCore>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Registered by us, to be unregistered by us.
    Ours,
    /// Found registered by other code of the process, whose extents are unknown; left alone.
    Foreign,
}

/// A stretch of host memory that one copy may cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Offset from the start of the range asked about.
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
    pub(crate) pinned: bool,
}

/// The registered ranges of a process: disjoint, by first address.
#[derive(Debug)]
pub(super) struct Registry {
    segments: Mutex<BTreeMap<usize, Segment>>,
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
    /// The range is mapped and stays mapped until [`Registry::release`] with the same range.
    pub(super) unsafe fn hold(
        &self,
        host: &HostInner,
        start: usize,
        bytes: usize,
    ) -> DriverResult<bool> {
        let (first, end) = inner_pages(start, bytes);
        if first == end {
            return Ok(false);
        }
        let mut segments = self.segments.lock();
        sweep(host, &mut segments);
        if touching(&mut segments, first, end).any(|segment| segment.holders == 0) {
            // The driver would not let go of these pages, which may no longer be what they were.
            return Err(DriverError::new(
                "cuMemHostUnregister",
                Code::OPERATING_SYSTEM,
            ));
        }
        for (from, to) in self.gaps(&segments, first, end) {
            // SAFETY: page-aligned, and mapped as the caller promises.
            let registered = unsafe { host.link.driver().host_register(from, to - from) };
            let origin = match registered {
                Ok(()) => Origin::Ours,
                Err(error) if error.code == Code::HOST_MEMORY_ALREADY_REGISTERED => Origin::Foreign,
                Err(error) => {
                    sweep(host, &mut segments); // the new ones have no holder yet
                    return Err(error);
                }
            };
            segments.insert(
                from,
                Segment {
                    end: to,
                    holders: 0,
                    origin,
                    users: Vec::new(),
                },
            );
        }
        for segment in touching(&mut segments, first, end) {
            segment.holders += 1;
        }
        Ok(true)
    }

    /// The stretches of `[first, end)` that no segment covers, cut into chunks.
    fn gaps(
        &self,
        segments: &BTreeMap<usize, Segment>,
        first: usize,
        end: usize,
    ) -> Vec<(usize, usize)> {
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

    /// One holder lets go of the pages of a range; those without a holder are unregistered, once.
    /// Says whether the driver has let go too of all that this holder was the last of.
    pub(super) fn release(&self, host: &HostInner, start: usize, bytes: usize) -> bool {
        let (first, end) = inner_pages(start, bytes);
        let mut segments = self.segments.lock();
        for segment in touching(&mut segments, first, end) {
            segment.holders -= 1;
        }
        sweep(host, &mut segments);
        touching(&mut segments, first, end).all(|segment| segment.holders > 0)
    }

    pub(super) fn pieces(
        &self,
        start: usize,
        bytes: usize,
        stream: &Arc<StreamCore>,
    ) -> Vec<Piece> {
        let mut segments = self.segments.lock();
        let end = start + bytes;
        let mut pieces = Vec::new();
        let mut at = start;
        for (from, segment) in segments_touching(&mut segments, start, end) {
            if at < from {
                pieces.push(Piece {
                    offset: at - start,
                    bytes: from - at,
                    pinned: false,
                });
                at = from;
            }
            let to = segment.end.min(end);
            // Inside a foreign segment the other code's borders are unknown, but a page is
            // registered whole or not at all.
            let stride = if segment.origin == Origin::Foreign {
                page_size()
            } else {
                usize::MAX
            };
            while at < to {
                let next = match stride {
                    usize::MAX => to,
                    page => ((at / page + 1) * page).min(to),
                };
                pieces.push(Piece {
                    offset: at - start,
                    bytes: next - at,
                    pinned: true,
                });
                at = next;
            }
            if !segment.users.iter().any(|user| user.id == stream.id) {
                segment.users.push(Arc::clone(stream));
            }
        }
        if at < end {
            pieces.push(Piece {
                offset: at - start,
                bytes: end - at,
                pinned: false,
            });
        }
        pieces
    }
}

fn touching(
    segments: &mut BTreeMap<usize, Segment>,
    first: usize,
    end: usize,
) -> impl Iterator<Item = &mut Segment> {
    segments_touching(segments, first, end).map(|(_, segment)| segment)
}

fn segments_touching(
    segments: &mut BTreeMap<usize, Segment>,
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

/// Unregisters the segments that have no holder. One that the driver does not let go of stays, for
/// the next sweep.
fn sweep(host: &HostInner, segments: &mut BTreeMap<usize, Segment>) {
    segments.retain(|&start, segment| segment.holders > 0 || !unregister(host, start, segment));
}

/// Waits for the copies that used the segment, then gives its pages back; says whether it could.
fn unregister(host: &HostInner, start: usize, segment: &Segment) -> bool {
    for user in &segment.users {
        if user.link.usable() {
            let _ = user.settle();
        }
    }
    if segment.origin == Origin::Foreign || !host.link.usable() {
        return true;
    }
    // SAFETY: registered by us under this address, and no copy uses it any more.
    host.link
        .run_in_drop(|driver| unsafe { driver.host_unregister(start) })
}

/// A share in the registrations of a range.
#[derive(Debug)]
struct Hold {
    host: HostMemory,
    start: usize,
    bytes: usize,
    held: bool,
}

impl Hold {
    /// # Safety
    /// The range is mapped and stays mapped while the hold lives.
    unsafe fn new(host: &HostMemory, start: usize, bytes: usize) -> Self {
        let inner = &host.inner;
        let held = if inner.link.usable() {
            // SAFETY: as the caller promises.
            match unsafe { inner.registry.hold(inner, start, bytes) } {
                Ok(held) => held,
                Err(error) => {
                    inner.degrade("a registered range", bytes, error);
                    false
                }
            }
        } else {
            false
        };
        Self {
            host: host.clone(),
            start,
            bytes,
            held,
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.held {
            self.host
                .inner
                .registry
                .release(&self.host.inner, self.start, self.bytes);
        }
    }
}

/// Memory of somebody else, page-locked while it is borrowed here.
///
/// Registrations of overlapping ranges share their pages, and the pages are unregistered when the
/// last holder goes, after the copies that used them. Where page-locking fails, the range stays
/// pageable and copies still work; one warning says so. Do not leak a registration: its pages would
/// stay locked, and be mistaken for those of whatever is mapped there next.
///
/// The memory cannot go away, grow or move while it is registered:
///
/// ```compile_fail,E0505
/// # fn f(host: &cuzk_gpu_mem::HostMemory) {
/// let rows = vec![0_u64; 1 << 20];
/// let registered = host.register(&rows);
/// drop(rows);
/// assert!(registered.is_pinned());
/// # }
/// ```
#[derive(Debug)]
pub struct HostRegistration<'a, T: Pod> {
    // Before the memory: the hold goes first.
    hold: Hold,
    memory: &'a [T],
}

/// [`HostRegistration`] of memory that is downloaded into.
#[derive(Debug)]
pub struct HostRegistrationMut<'a, T: Pod> {
    hold: Hold,
    memory: &'a mut [T],
}

impl HostMemory {
    /// Page-locks the whole pages inside `memory`. An empty or small range is no driver call.
    pub fn register<'a, T: Pod>(&self, memory: &'a [T]) -> HostRegistration<'a, T> {
        let start = memory.as_ptr().expose_provenance();
        // SAFETY: the range is borrowed, so mapped, for longer than the hold lives.
        let hold = unsafe { Hold::new(self, start, size_of_val(memory)) };
        HostRegistration { hold, memory }
    }

    /// [`HostMemory::register`] for memory that is downloaded into.
    pub fn register_mut<'a, T: Pod>(&self, memory: &'a mut [T]) -> HostRegistrationMut<'a, T> {
        let start = memory.as_mut_ptr().expose_provenance();
        // SAFETY: as in `register`.
        let hold = unsafe { Hold::new(self, start, size_of_val(memory)) };
        HostRegistrationMut { hold, memory }
    }
}

impl<T: Pod> HostRegistration<'_, T> {
    /// Whether its whole pages are page-locked.
    pub fn is_pinned(&self) -> bool {
        self.hold.held
    }
}

impl<T: Pod> HostRegistrationMut<'_, T> {
    /// Whether its whole pages are page-locked.
    pub fn is_pinned(&self) -> bool {
        self.hold.held
    }
}

impl<T: Pod> Deref for HostRegistration<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.memory
    }
}

impl<T: Pod> Deref for HostRegistrationMut<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.memory
    }
}

impl<T: Pod> DerefMut for HostRegistrationMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.memory
    }
}
