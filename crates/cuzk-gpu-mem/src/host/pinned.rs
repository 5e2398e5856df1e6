//! A recycling pool of page-locked buffers.
//!
//! Locking fresh pages is twenty times slower than copying them, so pages are mapped and locked
//! once, on huge pages, and handed out again and again. A buffer that comes back while a transfer
//! still uses it waits for its fence; one that held a secret is wiped first. Waits, wipes and the
//! driver's calls are made without the pool's lock.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::registry::Uses;
use super::{HostInner, HostMemory};
use crate::Pod;
use crate::alloc::bytes_of;
use crate::error::{Error, Result};
use crate::pages::{HUGE_PAGE, Pages};
use crate::stream::Event;

/// A mapping of the pool's, locked if the system allowed it.
#[derive(Debug)]
struct Chunk {
    pages: Pages,
    pinned: bool,
}

#[derive(Debug)]
struct Returning {
    chunk: Chunk,
    fence: Arc<Event>,
    wipe_bytes: usize,
}

impl Returning {
    /// Whether no copy uses the chunk any more. A question that fails is not an answer, unless the
    /// context is lost, which copies no more.
    fn is_over(&self) -> bool {
        match self.fence.is_reached() {
            Ok(reached) => reached,
            Err(_) => !self.fence.link.usable(),
        }
    }
}

#[derive(Debug, Default)]
struct PoolState {
    idle: Vec<Chunk>,
    returning: Vec<Returning>,
    /// Chunks that somebody wipes or unmaps now, without the lock.
    in_hand: usize,
    /// Bytes of all chunks, those in hand included.
    mapped: u64,
    in_use: u64,
}

#[derive(Debug)]
pub(super) struct Pool {
    limit: u64,
    state: Mutex<PoolState>,
    /// Rung when chunks in hand are put down.
    put_down: Condvar,
}

/// The pinned pool at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PinnedUse {
    /// The budget.
    pub limit: u64,
    /// Mapped in all.
    pub mapped: u64,
    /// Handed out, or still used by a transfer.
    pub in_use: u64,
}

/// Sizes are rounded so that chunks fit more than one request: powers of two up to a huge page,
/// whole huge pages above.
fn size_class(bytes: usize) -> usize {
    if bytes <= HUGE_PAGE {
        bytes.next_power_of_two().max(4096)
    } else {
        bytes.next_multiple_of(HUGE_PAGE)
    }
}

/// Whether a chunk serves for so many bytes, and wastes no more than half.
fn fits(chunk: &Chunk, bytes: usize) -> bool {
    (bytes..=bytes.saturating_mul(2)).contains(&chunk.pages.bytes())
}

/// Calls `work` with ranges of offsets that make up 0 to `bytes`, on several threads where that is much:
/// one alone zeroes pages at a tenth of the speed of the bus (1.3 GB/s; docs/measurements.md).
fn in_shares(bytes: usize, work: impl Fn(std::ops::Range<usize>) + Sync) {
    const SHARE: usize = 64 << 20;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (bytes / SHARE).clamp(1, cores.min(16));
    if threads == 1 {
        return work(0..bytes);
    }
    let share = bytes.div_ceil(threads).next_multiple_of(4096);
    std::thread::scope(|scope| {
        for from in (0..bytes).step_by(share) {
            let work = &work;
            scope.spawn(move || work(from..bytes.min(from + share)));
        }
    });
}

/// Makes the system back fresh pages with memory.
fn touch(pages: &Pages) {
    in_shares(pages.bytes(), |share| {
        for offset in share.step_by(4096) {
            // SAFETY: within the mapping, which nobody else has yet; volatile, so not elided.
            unsafe { pages.start().add(offset).write_volatile(0) };
        }
    });
}

/// Zeroes memory that is about to change hands.
fn wipe(chunk: &Chunk, bytes: usize) {
    in_shares(bytes.min(chunk.pages.bytes()), |share| {
        // SAFETY: the chunk is owned here, nobody else refers to it; the share lies within it, and the
        // other threads have others.
        unsafe {
            let start = chunk.pages.start().add(share.start).as_ptr();
            std::ptr::write_bytes(start, 0, share.len());
        }
    });
    // The pool hands the pages out again, so the zeroes are not dead; this keeps it certain.
    std::hint::black_box(chunk.pages.start());
}

impl Pool {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit,
            state: Mutex::default(),
            put_down: Condvar::new(),
        }
    }

    /// Makes chunks idle that no copy uses any more, secrets wiped.
    fn put_idle(&self, state: &mut MutexGuard<'_, PoolState>, over: Vec<(Chunk, usize)>) {
        if over.iter().any(|&(_, wipe_bytes)| wipe_bytes > 0) {
            state.in_hand += over.len();
            MutexGuard::unlocked(state, || {
                for (chunk, wipe_bytes) in &over {
                    wipe(chunk, *wipe_bytes);
                }
            });
            state.in_hand -= over.len();
            self.put_down.notify_all();
        }
        for (chunk, _) in over {
            state.in_use -= chunk.pages.bytes() as u64;
            state.idle.push(chunk);
        }
    }

    /// Takes back what transfers have let go of.
    fn settle(&self, state: &mut MutexGuard<'_, PoolState>) {
        self.take_back(state, Returning::is_over);
    }

    fn take_back(
        &self,
        state: &mut MutexGuard<'_, PoolState>,
        is_over: impl Fn(&Returning) -> bool,
    ) {
        let (over, returning) = std::mem::take(&mut state.returning)
            .into_iter()
            .partition(is_over);
        state.returning = returning;
        let over: Vec<Returning> = over;
        let over = over.into_iter().map(|r| (r.chunk, r.wipe_bytes)).collect();
        self.put_idle(state, over);
    }
}

impl PoolState {
    /// The smallest idle chunk that fits and wastes no more than half.
    fn take_idle(&mut self, bytes: usize) -> Option<Chunk> {
        let best = (0..self.idle.len())
            .filter(|&index| fits(&self.idle[index], bytes))
            .min_by_key(|&index| self.idle[index].pages.bytes())?;
        let chunk = self.idle.swap_remove(best);
        self.in_use += chunk.pages.bytes() as u64;
        Some(chunk)
    }
}

impl HostInner {
    fn take(&self, label: &'static str, bytes: usize) -> Result<Chunk> {
        self.link.same_process()?;
        let wanted = size_class(bytes);
        let limit = self.pool.limit;
        let mut state = self.pool.state.lock();
        loop {
            if let Some(chunk) = state.take_idle(wanted) {
                return Ok(chunk);
            }
            // Whoever asks may be inside a compute section: larger secrets are not wiped there.
            let before = state.returning.len();
            self.pool.take_back(&mut state, |returning| {
                fits(&returning.chunk, wanted) && returning.is_over()
            });
            if state.returning.len() < before {
                continue;
            }
            if state.mapped + wanted as u64 <= limit {
                break;
            }
            self.pool.settle(&mut state);
            if state.returning.len() < before {
                continue;
            }
            // Over budget: give up an idle chunk of the wrong size, else wait for a transfer.
            if let Some(chunk) = state.idle.pop() {
                self.give_up(&mut state, vec![chunk]);
            } else if let Some(returning) = state.returning.first() {
                let fence = Arc::clone(&returning.fence);
                let waited = MutexGuard::unlocked(&mut state, || fence.wait());
                if waited.is_err() && fence.link.usable() {
                    waited?;
                }
                self.pool
                    .take_back(&mut state, |r| Arc::ptr_eq(&r.fence, &fence));
            } else if state.in_hand > 0 {
                self.pool.put_down.wait(&mut state);
            } else {
                let (requested, in_use) = (wanted as u64, state.in_use);
                return Err(Error::PinnedBudget {
                    label,
                    requested,
                    in_use,
                    limit,
                });
            }
        }
        let refused = Error::HostMemory {
            label,
            requested: wanted as u64,
        };
        let pages = Pages::map(wanted).ok_or(refused)?;
        state.mapped += pages.bytes() as u64;
        state.in_use += pages.bytes() as u64;
        drop(state);
        Ok(self.lock_pages(pages))
    }

    /// Touches, then locks: locking touched huge pages is twenty times faster than untouched ones.
    fn lock_pages(&self, pages: Pages) -> Chunk {
        let (start, bytes) = (pages.start(), pages.bytes());
        touch(&pages);
        let address = start.as_ptr().expose_provenance();
        let registered = if self.link.usable() {
            // SAFETY: the mapping lives until `unmap` has released it.
            unsafe { self.registry.hold(self, address, bytes, Uses::Fenced) }
        } else {
            Ok(false)
        };
        let pinned = registered.unwrap_or_else(|error| {
            self.degrade("a pinned buffer", bytes, error);
            false
        });
        Chunk { pages, pinned }
    }

    /// Unmaps idle chunks, which leave the budget when they are gone.
    fn give_up(&self, state: &mut MutexGuard<'_, PoolState>, chunks: Vec<Chunk>) -> u64 {
        let bytes = chunks.iter().map(|chunk| chunk.pages.bytes() as u64).sum();
        let count = chunks.len();
        state.in_hand += count;
        MutexGuard::unlocked(state, || chunks.into_iter().for_each(|c| self.unmap(c)));
        state.in_hand -= count;
        state.mapped -= bytes;
        self.pool.put_down.notify_all();
        bytes
    }

    fn unmap(&self, chunk: Chunk) {
        if chunk.pinned {
            let start = chunk.pages.start().as_ptr().addr();
            if !self.registry.release(self, start, chunk.pages.bytes()) {
                // Pages that the driver still believes locked are never unmapped.
                std::mem::forget(chunk.pages);
            }
        }
    }

    fn put_back(&self, chunk: Chunk, fence: Option<Event>, wipe_bytes: usize) {
        let mut state = self.pool.state.lock();
        match fence {
            Some(fence) => state.returning.push(Returning {
                chunk,
                fence: Arc::new(fence),
                wipe_bytes,
            }),
            None => self.pool.put_idle(&mut state, vec![(chunk, wipe_bytes)]),
        }
    }
}

impl Drop for HostInner {
    fn drop(&mut self) {
        let state = std::mem::take(self.pool.state.get_mut());
        for returning in state.returning {
            const ATTEMPTS: usize = 3;
            let waited = (0..ATTEMPTS).any(|_| returning.fence.wait().is_ok());
            if !waited && !returning.is_over() {
                // A copy may still use the pages, so they stay what they are, for good.
                std::mem::forget(returning.chunk.pages);
                continue;
            }
            wipe(&returning.chunk, returning.wipe_bytes);
            self.unmap(returning.chunk);
        }
        for chunk in state.idle {
            self.unmap(chunk);
        }
    }
}

impl HostMemory {
    /// A pinned buffer of `len` elements. Its contents are those of an earlier user, or zero; the
    /// earlier user's secrets are not among them.
    ///
    /// Where the system refuses to lock pages, the buffer is ordinary memory and says so.
    pub fn pinned<T: Pod>(&self, label: &'static str, len: usize) -> Result<PinnedBuf<T>> {
        const { assert!(align_of::<T>() <= 4096, "chunks are aligned to pages") };
        let bytes = bytes_of::<T>(label, len)?;
        let chunk = if bytes == 0 {
            None
        } else {
            Some(self.inner.take(label, bytes)?)
        };
        Ok(PinnedBuf {
            host: self.clone(),
            chunk,
            len,
            capacity: len,
            fence: None,
            secret: false,
            element: PhantomData,
        })
    }

    /// A pinned buffer with a copy of `source`.
    pub fn pinned_from<T: Pod>(&self, label: &'static str, source: &[T]) -> Result<PinnedBuf<T>> {
        let mut buffer = self.pinned(label, source.len())?;
        buffer.copy_from_slice(source);
        Ok(buffer)
    }

    /// The pool's figures.
    pub fn pinned_use(&self) -> PinnedUse {
        let mut state = self.inner.pool.state.lock();
        self.inner.pool.settle(&mut state);
        PinnedUse {
            limit: self.inner.pool.limit,
            mapped: state.mapped,
            in_use: state.in_use,
        }
    }

    /// Takes back what transfers have let go of, secrets wiped: at a time when nobody waits for it. Whoever finds no
    /// idle buffer does it otherwise.
    pub fn take_back_pinned(&self) {
        let mut state = self.inner.pool.state.lock();
        self.inner.pool.settle(&mut state);
    }

    /// Unmaps idle pinned buffers; returns their bytes.
    pub fn trim_pinned(&self) -> u64 {
        let mut state = self.inner.pool.state.lock();
        self.inner.pool.settle(&mut state);
        let idle = std::mem::take(&mut state.idle);
        self.inner.give_up(&mut state, idle)
    }
}

/// A page-locked buffer of the pool; it goes back there when dropped.
#[derive(Debug)]
pub struct PinnedBuf<T: Pod> {
    host: HostMemory,
    /// `None` only for a buffer without bytes.
    chunk: Option<Chunk>,
    len: usize,
    /// Elements asked for at first; `len` never exceeds it.
    capacity: usize,
    /// A transfer that was let go of before it was done.
    fence: Option<Event>,
    secret: bool,
    element: PhantomData<T>,
}

impl<T: Pod> PinnedBuf<T> {
    /// Whether its pages are locked. A buffer without bytes is as good as locked.
    pub fn is_pinned(&self) -> bool {
        self.chunk.as_ref().is_none_or(|chunk| chunk.pinned)
    }

    /// The buffer holds a secret: it is wiped before anyone else gets it.
    pub fn mark_secret(&mut self) {
        self.secret = true;
    }

    /// Keeps the first `len` elements; a longer `len` changes nothing.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// A transfer that nobody waits for may still use the buffer until `fence`.
    pub(crate) fn retire_at(mut self, fence: Event) {
        self.fence = Some(fence);
    }

    fn start(&self) -> NonNull<T> {
        self.chunk
            .as_ref()
            .map_or(NonNull::dangling(), |chunk| chunk.pages.start().cast())
    }
}

impl<T: Pod> Deref for PinnedBuf<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the chunk holds `capacity >= len` elements, page-aligned, initialised (mapped
        // zeroed; any bytes are a valid `T: Pod`) and owned by this buffer.
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), self.len) }
    }
}

impl<T: Pod> DerefMut for PinnedBuf<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` is the only access.
        unsafe { std::slice::from_raw_parts_mut(self.start().as_ptr(), self.len) }
    }
}

impl<T: Pod> Drop for PinnedBuf<T> {
    fn drop(&mut self) {
        if let Some(chunk) = self.chunk.take() {
            let wipe_bytes = if self.secret {
                self.capacity * size_of::<T>()
            } else {
                0
            };
            self.host
                .inner
                .put_back(chunk, self.fence.take(), wipe_bytes);
        }
    }
}
