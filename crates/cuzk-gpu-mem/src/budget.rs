//! The ledger: who holds how many bytes of a device, and who has been promised how many.
//!
//! Two kinds of bytes are kept apart. *Outside* bytes are blocks that live across compute sections:
//! resident keys, buffers being staged, promises of them. *Claims* are what compute sections will
//! need or hold; as sections exclude each other, claims count by the largest, not by their sum:
//!
//! ```text
//! committed = outside + max(claim.bytes over all claims)      committed <= limit
//! ```
//!
//! Nothing that is reserved, drawn or admitted exceeds the limit. Only [`Budget::set_limit`] can put
//! the limit below what is committed already: then nothing more is given out until enough is back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

mod share;

pub(crate) use share::Claim;
use share::Place;
pub use share::Reservation;

/// The ledger of one device. Obtained from [`Device::budget`](crate::Device::budget).
#[derive(Debug)]
pub struct Budget {
    ledger: Mutex<Ledger>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Ledger {
    limit: u64,
    outside: u64,
    /// Of `outside`: promised by an admission, not allocated yet.
    promised: u64,
    /// Of `outside` and the claims' `drawn`: the driver has not delivered the block yet.
    unbacked: u64,
    /// Freed, and not known to have completed; a part of `outside` and of the claims' `drawn`.
    pending: u64,
    /// Delivered by the synchronous allocator, and not freed.
    plain: u64,
    claims: BTreeMap<u64, Section>,
    next_claim: u64,
    labels: BTreeMap<&'static str, u64>,
    peak_committed: u64,
}

/// One claim: what a compute section may hold, and holds.
#[derive(Clone, Copy, Debug, Default)]
struct Section {
    bytes: u64,
    drawn: u64,
}

/// The ledger at one moment, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetState {
    /// What may be committed in all.
    pub limit: u64,
    /// Held or promised outside compute sections.
    pub outside: u64,
    /// Of `outside`, promised and not allocated yet.
    pub promised: u64,
    /// Counted, and not delivered by the driver yet: promises and allocations under way.
    pub unbacked: u64,
    /// The largest claim of a compute section.
    pub largest_claim: u64,
    /// Held inside compute sections.
    pub drawn: u64,
    /// Freed but not completed; still counted above.
    pub pending: u64,
    /// Blocks of the synchronous allocator, which are in no pool; still counted above.
    pub plain: u64,
    /// The most ever committed.
    pub peak_committed: u64,
}

impl BudgetState {
    /// Bytes that blocks hold now, pending frees included.
    pub fn held(&self) -> u64 {
        self.outside - self.promised + self.drawn
    }

    /// Bytes of the pool that our blocks may be using: those on their way from the driver or back to it included.
    pub(crate) fn in_pool_at_most(&self) -> u64 {
        self.held().saturating_sub(self.plain)
    }

    /// Bytes that nobody else may count on.
    pub fn committed(&self) -> u64 {
        self.outside + self.largest_claim
    }
}

impl Ledger {
    fn largest_claim(&self) -> u64 {
        self.claims
            .values()
            .map(|section| section.bytes)
            .max()
            .unwrap_or(0)
    }

    fn committed(&self) -> u64 {
        self.outside + self.largest_claim()
    }

    /// A reservation of `bytes` is made; no block stands behind it yet.
    fn note(&mut self, label: &'static str, bytes: u64) {
        self.unbacked += bytes;
        *self.labels.entry(label).or_insert(0) += bytes;
        self.peak_committed = self.peak_committed.max(self.committed());
    }

    fn forget(&mut self, label: &'static str, bytes: u64) {
        if let Some(held) = self.labels.get_mut(label) {
            *held -= bytes;
            if *held == 0 {
                self.labels.remove(label);
            }
        }
    }

    fn state(&self) -> BudgetState {
        BudgetState {
            limit: self.limit,
            outside: self.outside,
            promised: self.promised,
            unbacked: self.unbacked,
            largest_claim: self.largest_claim(),
            drawn: self.claims.values().map(|section| section.drawn).sum(),
            pending: self.pending,
            plain: self.plain,
            peak_committed: self.peak_committed,
        }
    }
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        let ledger = Ledger {
            limit,
            ..Ledger::default()
        };
        Arc::new(Self {
            ledger: Mutex::new(ledger),
            changed: Condvar::new(),
        })
    }

    /// The ledger as it stands.
    pub fn state(&self) -> BudgetState {
        self.ledger.lock().state()
    }

    /// Looks at the ledger while it cannot change. What else `look` reads then fits it: a plain block that
    /// the device counts and the ledger not yet makes the two err on the safe side.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&BudgetState) -> T) -> T {
        look(&self.ledger.lock().state())
    }

    /// Who holds bytes, largest first.
    pub fn holders(&self) -> Vec<(&'static str, u64)> {
        let mut holders: Vec<_> = self
            .ledger
            .lock()
            .labels
            .iter()
            .map(|(&l, &b)| (l, b))
            .collect();
        holders.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
        holders
    }

    /// Lowers or raises the limit; what is held, promised or claimed stays so, and may exceed a
    /// lowered limit until it is returned.
    pub fn set_limit(&self, bytes: u64) {
        self.ledger.lock().limit = bytes;
        self.changed.notify_all();
    }

    /// Waits until something is returned, at most that long; completed frees are noticed only by
    /// those who ask the device, so callers wait in short turns.
    pub(crate) fn wait_for_change(&self, at_most: Duration) {
        self.changed.wait_for(&mut self.ledger.lock(), at_most);
    }

    fn changed(&self, ledger: MutexGuard<'_, Ledger>) {
        drop(ledger);
        self.changed.notify_all();
    }

    /// Reserves bytes that live across compute sections; `None` when they would exceed the limit.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        label: &'static str,
        bytes: u64,
    ) -> Option<Reservation> {
        let mut ledger = self.ledger.lock();
        if ledger.committed().checked_add(bytes)? > ledger.limit {
            return None;
        }
        ledger.outside += bytes;
        ledger.note(label, bytes);
        Some(self.reservation(label, bytes, Place::Outside))
    }

    fn reservation(self: &Arc<Self>, label: &'static str, bytes: u64, place: Place) -> Reservation {
        Reservation {
            budget: Arc::clone(self),
            label,
            bytes,
            place,
            backed: None,
            pending: false,
        }
    }

    /// Decides about a whole job under one lock: `decide` sees the ledger and answers with what to
    /// promise outside and what to claim for the compute section, or refuses.
    pub(crate) fn admit<T>(
        self: &Arc<Self>,
        decide: impl FnOnce(&BudgetState) -> Option<(T, Vec<(&'static str, u64)>, u64)>,
    ) -> Option<(T, Vec<Reservation>, Claim)> {
        let mut ledger = self.ledger.lock();
        let (plan, staged, compute) = decide(&ledger.state())?;
        let id = ledger.next_claim;
        ledger.next_claim += 1;
        ledger.claims.insert(
            id,
            Section {
                bytes: compute,
                drawn: 0,
            },
        );
        let mut promises = Vec::with_capacity(staged.len());
        for (label, bytes) in staged {
            ledger.outside += bytes;
            ledger.promised += bytes;
            ledger.note(label, bytes);
            promises.push(self.reservation(label, bytes, Place::Promised));
        }
        ledger.peak_committed = ledger.peak_committed.max(ledger.committed());
        Some((
            plan,
            promises,
            Claim {
                budget: Arc::clone(self),
                id,
            },
        ))
    }

    /// A claim of nothing, which grows as it is drawn on.
    pub(crate) fn open_claim(self: &Arc<Self>) -> Claim {
        let mut ledger = self.ledger.lock();
        let id = ledger.next_claim;
        ledger.next_claim += 1;
        ledger.claims.insert(id, Section::default());
        Claim {
            budget: Arc::clone(self),
            id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_returns_its_bytes() {
        let budget = Budget::new(10);
        let first = budget.reserve("a", 6).unwrap();
        assert!(budget.reserve("b", 5).is_none());
        assert_eq!(budget.holders(), [("a", 6)]);
        drop(first);
        assert_eq!(
            budget.state(),
            BudgetState {
                limit: 10,
                peak_committed: 6,
                ..Default::default()
            }
        );
        assert!(budget.holders().is_empty());
    }

    #[test]
    fn claims_count_by_the_largest() {
        let budget = Budget::new(16);
        let job = |compute| move |_: &BudgetState| Some(((), vec![("staged", 2)], compute));
        let (_, first, claim) = budget.admit(job(8)).unwrap();
        let (_, second, other) = budget.admit(job(10)).unwrap();
        assert_eq!(budget.state().committed(), 2 + 2 + 10);
        // The second may draw 10 and not 13; 2 + 2 are outside, so 12 is the end.
        let drawn = other.draw("scratch", 10).unwrap();
        assert!(other.draw("scratch", 3).is_none());
        let more = other.draw("scratch", 2).unwrap();
        assert_eq!(budget.state().committed(), 16);
        drop((drawn, more, other));
        assert_eq!(budget.state().committed(), 2 + 2 + 8);
        drop((first, second, claim));
        assert_eq!(budget.state().committed(), 0);
    }

    #[test]
    fn taking_a_staged_block_in_keeps_the_sum() {
        let budget = Budget::new(12);
        let (_, mut staged, claim) = budget.admit(|_| Some(((), vec![("d_a", 4)], 8))).unwrap();
        staged[0].fulfil();
        assert_eq!(budget.state().committed(), 12);
        claim.take_in(&mut staged[0]);
        let state = budget.state();
        assert_eq!(
            (state.outside, state.largest_claim, state.drawn),
            (0, 12, 4)
        );
        // A block leaked in a section stays on the books.
        drop(claim);
        assert_eq!(budget.state().held(), 4);
        drop(staged);
        assert_eq!(budget.state().held(), 0);
    }

    #[test]
    fn a_lowered_limit_gives_out_nothing_until_enough_is_back() {
        let budget = Budget::new(10);
        let first = budget.reserve("a", 6).unwrap();
        let claim = budget.open_claim();
        let drawn = claim.draw("b", 4).unwrap();
        budget.set_limit(5);
        assert_eq!(budget.state().committed(), 10);
        assert!(budget.reserve("c", 1).is_none() && claim.draw("c", 1).is_none());
        drop((drawn, claim));
        assert!(budget.reserve("c", 1).is_none());
        drop(first);
        assert!(budget.reserve("c", 5).is_some());
    }

    #[test]
    fn hostile_sizes_do_not_wrap() {
        let budget = Budget::new(u64::MAX);
        let _one = budget.reserve("one", 1).unwrap();
        assert!(budget.reserve("all", u64::MAX).is_none());
        assert!(budget.open_claim().draw("all", u64::MAX).is_none());
    }
}
