//! The memory of an emulated device: who has which bytes, and where they really lie.
//!
//! The model is the one measured on a card (docs/memory.md): a stream-ordered block that is freed
//! is *pending* until the host has seen its stream get past the free; then it is *cached* in the
//! pool, down to the release threshold; only trimming, or a driver that gives back by itself, makes
//! cached bytes *free* to the synchronous allocator again.

use std::collections::BTreeMap;
use std::ptr::NonNull;

use crate::driver::{AllocKind, MemInfo};
use crate::pages::Pages;

/// Device addresses are aligned as the real allocators do.
const ALIGN: usize = 256;
/// Blocks up to this size come from the heap and start out poisoned.
const SMALL: usize = 64 << 10;
/// What fresh device memory looks like, so that a read before a write shows.
const POISON: u8 = 0xa5;

/// The bytes behind one block.
#[derive(Debug)]
enum Backing {
    Heap { bytes: Box<[u8]>, skip: usize },
    Mapped(Pages),
}

impl Backing {
    fn new(bytes: u64) -> Option<Self> {
        let bytes = usize::try_from(bytes).ok()?;
        if bytes <= SMALL {
            let bytes = vec![POISON; bytes + ALIGN - 1].into_boxed_slice();
            let skip = bytes.as_ptr().align_offset(ALIGN);
            Some(Self::Heap { bytes, skip })
        } else {
            Pages::map(bytes).map(Self::Mapped)
        }
    }

    fn start(&mut self) -> u64 {
        let start = match self {
            Self::Heap { bytes, skip } => bytes.as_mut_ptr().wrapping_add(*skip),
            Self::Mapped(pages) => NonNull::as_ptr(pages.start()),
        };
        start.expose_provenance() as u64
    }
}

#[derive(Debug)]
struct Block {
    kind: AllocKind,
    bytes: u64,
    /// A stream-ordered free has been issued and not executed yet.
    freed: bool,
    _backing: Backing,
}

/// A stream-ordered free that the host has not seen complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingFree {
    pub(super) stream: u64,
    pub(super) seq: u64,
    pub(super) executed: bool,
    bytes: u64,
}

#[derive(Debug)]
pub(super) struct Memory {
    total: u64,
    /// What this driver does when the synchronous allocator runs short: take cached bytes back by
    /// itself (drivers of today), or fail (older ones).
    gives_back: bool,
    threshold: u64,
    tenants: u64,
    synchronous: u64,
    pool_used: u64,
    pool_cached: u64,
    pending: Vec<PendingFree>,
    blocks: BTreeMap<u64, Block>,
    peak: u64,
}

impl Memory {
    pub(super) fn new(total: u64, gives_back: bool) -> Self {
        Self {
            total,
            gives_back,
            threshold: 0,
            tenants: 0,
            synchronous: 0,
            pool_used: 0,
            pool_cached: 0,
            pending: Vec::new(),
            blocks: BTreeMap::new(),
            peak: 0,
        }
    }

    fn pending_bytes(&self) -> u64 {
        self.pending.iter().map(|free| free.bytes).sum()
    }

    fn reserved(&self) -> u64 {
        self.pool_used + self.pool_cached + self.pending_bytes()
    }

    fn free(&self) -> u64 {
        self.total - self.tenants - self.synchronous - self.reserved()
    }

    pub(super) fn info(&self) -> MemInfo {
        MemInfo {
            total: self.total,
            free: self.free(),
            pool_reserved: self.reserved(),
            pool_used: self.pool_used,
        }
    }

    pub(super) fn live_blocks(&self) -> usize {
        self.blocks.values().filter(|block| !block.freed).count()
    }

    pub(super) fn peak(&self) -> u64 {
        self.peak
    }

    /// Other programs take memory up to what is free, or give some up.
    pub(super) fn set_tenants(&mut self, bytes: u64) {
        self.tenants = bytes.min(self.tenants + self.free());
    }

    pub(super) fn set_threshold(&mut self, bytes: u64) {
        self.threshold = bytes;
    }

    /// `None` is out of memory.
    pub(super) fn alloc(&mut self, kind: AllocKind, bytes: u64, stream: u64) -> Option<u64> {
        match kind {
            AllocKind::Synchronous => {
                if self.gives_back && self.free() < bytes {
                    self.pool_cached = 0; // all of it, not only what is missing (measured)
                }
                if self.free() < bytes {
                    return None;
                }
                self.synchronous += bytes;
            }
            AllocKind::StreamOrdered => self.draw_from_pool(bytes, stream)?,
        }
        let Some(mut backing) = Backing::new(bytes) else {
            // The host has no memory left: the same answer, and the books as before.
            match kind {
                AllocKind::Synchronous => self.synchronous -= bytes,
                AllocKind::StreamOrdered => {
                    self.pool_used -= bytes;
                    self.pool_cached += bytes;
                }
            }
            return None;
        };
        let start = backing.start();
        self.blocks.insert(
            start,
            Block {
                kind,
                bytes,
                freed: false,
                _backing: backing,
            },
        );
        self.peak = self.peak.max(self.synchronous + self.pool_used);
        Some(start)
    }

    /// Cached bytes first, then frees this stream is ordered behind or that have executed, then
    /// growth.
    fn draw_from_pool(&mut self, bytes: u64, stream: u64) -> Option<()> {
        let reusable = |free: &PendingFree| free.stream == stream || free.executed;
        let pending: u64 = self
            .pending
            .iter()
            .filter(|free| reusable(free))
            .map(|free| free.bytes)
            .sum();
        if self.pool_cached + pending + self.free() < bytes {
            return None;
        }
        let mut wanted = bytes;
        let from_cache = wanted.min(self.pool_cached);
        self.pool_cached -= from_cache;
        wanted -= from_cache;
        for free in self.pending.iter_mut().filter(|free| reusable(free)) {
            let taken = wanted.min(free.bytes);
            free.bytes -= taken;
            wanted -= taken;
        }
        self.pending.retain(|free| free.bytes > 0);
        self.pool_used += bytes;
        Some(())
    }

    /// Whether `ptr` is a live block of that kind.
    pub(super) fn owns(&self, kind: AllocKind, ptr: u64) -> bool {
        self.blocks
            .get(&ptr)
            .is_some_and(|block| block.kind == kind && !block.freed)
    }

    /// Whether the range lies in one live block.
    pub(super) fn contains(&self, ptr: u64, bytes: usize) -> bool {
        self.blocks
            .range(..=ptr)
            .next_back()
            .is_some_and(|(&start, block)| {
                !block.freed && ptr - start + bytes as u64 <= block.bytes
            })
    }

    pub(super) fn free_synchronous(&mut self, ptr: u64) {
        if let Some(block) = self.blocks.remove(&ptr) {
            self.synchronous -= block.bytes;
        }
    }

    /// The free is issued: its bytes leave `pool_used` now, its contents live on until
    /// [`Memory::execute_free`].
    pub(super) fn issue_free(&mut self, ptr: u64, stream: u64, seq: u64) {
        if let Some(block) = self.blocks.get_mut(&ptr) {
            block.freed = true;
            self.pool_used -= block.bytes;
            self.pending.push(PendingFree {
                stream,
                seq,
                executed: false,
                bytes: block.bytes,
            });
        }
    }

    pub(super) fn execute_free(&mut self, ptr: u64, stream: u64, seq: u64) {
        self.blocks.remove(&ptr);
        for free in &mut self.pending {
            free.executed |= free.stream == stream && free.seq == seq;
        }
    }

    /// The host has seen these frees complete; the pool keeps no more than its threshold.
    pub(super) fn observe(&mut self, seen: impl Fn(&PendingFree) -> bool) {
        let (done, pending): (Vec<_>, Vec<_>) = self.pending.iter().partition(|free| seen(free));
        self.pending = pending;
        self.pool_cached += done.iter().map(|free| free.bytes).sum::<u64>();
        self.trim(self.threshold);
    }

    pub(super) fn trim(&mut self, keep: u64) {
        let excess = self.reserved().saturating_sub(keep);
        self.pool_cached -= excess.min(self.pool_cached);
    }
}
