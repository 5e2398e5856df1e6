//! Host memory and places in the queue: counted when given, counted back when dropped. Neither is
//! waited for: who is refused is told so.

use cuzk_gpu_mem::Footprint;

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Page-locked and ordinary host memory that partitions in flight may hold. Device memory is the
/// business of each device's own ledger.
#[derive(Debug)]
pub(crate) struct Ledger {
    limit: Footprint,
    state: Mutex<Held>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    now: Footprint,
    peak: Footprint,
}

/// Host memory held by one partition; returned when dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    ledger: Arc<Ledger>,
    bytes: Footprint,
}

impl Ledger {
    /// `limit.device` is not looked at.
    pub(crate) fn new(limit: Footprint) -> Arc<Self> {
        Arc::new(Self {
            limit,
            state: Mutex::new(Held::default()),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `bytes` fit while nobody holds anything.
    pub(crate) fn could_hold(&self, bytes: Footprint, keep: Footprint) -> bool {
        fits(bytes.plus(keep), self.limit)
    }

    /// Holds `bytes`, if they fit and leave `keep` free.
    pub(crate) fn try_hold(self: &Arc<Self>, bytes: Footprint, keep: Footprint) -> Option<Hold> {
        let mut held = self.lock();
        let after = held.now.plus(bytes);
        if !fits(after.plus(keep), self.limit) {
            return None;
        }
        held.now = after;
        held.peak = held.peak.then(after);
        Some(Hold {
            ledger: Arc::clone(self),
            bytes,
        })
    }

    /// What is held now, and the most that ever was.
    pub(crate) fn held(&self) -> (Footprint, Footprint) {
        let held = self.lock();
        (held.now, held.peak)
    }
}

fn fits(bytes: Footprint, limit: Footprint) -> bool {
    bytes.pinned <= limit.pinned && bytes.host <= limit.host
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = self.ledger.lock();
        held.now.device -= self.bytes.device;
        held.now.pinned -= self.bytes.pinned;
        held.now.host -= self.bytes.host;
    }
}

/// The bound on jobs in the engine, those being worked on included.
#[derive(Debug)]
pub(crate) struct Gate {
    places: usize,
    state: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    count: usize,
    closed: bool,
}

/// A job's place in the engine; given back when dropped.
#[derive(Debug)]
pub(crate) struct Pass {
    gate: Arc<Gate>,
}

/// Why there is no pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Full,
    Closed,
}

impl Gate {
    pub(crate) fn new(places: usize) -> Arc<Self> {
        let inside = Inside {
            count: 0,
            closed: false,
        };
        Arc::new(Self {
            places,
            state: Mutex::new(inside),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(self: &Arc<Self>) -> Result<Pass, Refused> {
        let mut inside = self.lock();
        if inside.closed {
            return Err(Refused::Closed);
        }
        if inside.count == self.places {
            return Err(Refused::Full);
        }
        inside.count += 1;
        Ok(Pass {
            gate: Arc::clone(self),
        })
    }

    /// Nobody enters any more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
    }

    /// Jobs inside.
    pub(crate) fn count(&self) -> usize {
        self.lock().count
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.gate.lock().count -= 1;
    }
}
