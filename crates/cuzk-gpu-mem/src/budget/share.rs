//! Shares of the ledger: reservations of blocks, claims of compute sections.

use std::sync::Arc;

use super::{Budget, Section};
use crate::driver::AllocKind;

/// Where a reservation's bytes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Outside,
    Promised,
    Section(u64),
}

/// A share of a device's memory; its bytes return to the budget when it is dropped.
///
/// A block carries its reservation until its free has *completed*, not merely been issued.
#[derive(Debug)]
pub struct Reservation {
    pub(super) budget: Arc<Budget>,
    pub(super) label: &'static str,
    pub(super) bytes: u64,
    pub(super) place: Place,
    /// By which allocator.
    pub(super) backed: Option<AllocKind>,
    pub(super) pending: bool,
}

/// The right to compute with up to so many bytes. Claims of several workers may stand at once.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(super) budget: Arc<Budget>,
    pub(super) id: u64,
}

impl Claim {
    pub(crate) fn is_of(&self, budget: &Arc<Budget>) -> bool {
        Arc::ptr_eq(&self.budget, budget)
    }

    /// Draws on the claim; beyond what was claimed only as far as the limit allows.
    pub(crate) fn draw(&self, label: &'static str, bytes: u64) -> Option<Reservation> {
        let mut ledger = self.budget.ledger.lock();
        let others = ledger.claims.iter().filter(|(id, _)| **id != self.id);
        let largest_other = others.map(|(_, section)| section.bytes).max().unwrap_or(0);
        let (outside, limit) = (ledger.outside, ledger.limit);
        let section = ledger.claims.get_mut(&self.id)?;
        let drawn = section.drawn.checked_add(bytes)?;
        let wanted = section.bytes.max(drawn);
        if wanted > section.bytes && outside.checked_add(wanted.max(largest_other))? > limit {
            return None;
        }
        *section = Section {
            bytes: wanted,
            drawn,
        };
        ledger.note(label, bytes);
        Some(
            self.budget
                .reservation(label, bytes, Place::Section(self.id)),
        )
    }

    /// Moves a staged block's bytes from outside into the section. Never exceeds: the sum stays.
    pub(crate) fn take_in(&self, reservation: &mut Reservation) {
        if reservation.place != Place::Outside {
            return;
        }
        let mut ledger = self.budget.ledger.lock();
        let bytes = reservation.bytes;
        if let Some(section) = ledger.claims.get_mut(&self.id) {
            section.bytes += bytes;
            section.drawn += bytes;
            ledger.outside -= bytes;
            reservation.place = Place::Section(self.id);
        }
        self.budget.changed(ledger);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut ledger = self.budget.ledger.lock();
        if let Some(section) = ledger.claims.remove(&self.id) {
            // What was leaked inside stays on the books, as outside bytes.
            ledger.outside += section.drawn;
        }
        self.budget.changed(ledger);
    }
}

impl Reservation {
    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What for.
    pub fn label(&self) -> &'static str {
        self.label
    }

    /// A promise is being made true by an allocation.
    pub(crate) fn fulfil(&mut self) {
        if self.place == Place::Promised {
            self.budget.ledger.lock().promised -= self.bytes;
            self.place = Place::Outside;
        }
    }

    /// The allocation came to nothing: the bytes are promised again.
    pub(crate) fn promise(&mut self) {
        if self.place == Place::Outside {
            self.budget.ledger.lock().promised += self.bytes;
            self.place = Place::Promised;
        }
    }

    /// The driver has delivered the block.
    pub(crate) fn back(&mut self, kind: AllocKind) {
        if self.backed.is_none() {
            let mut ledger = self.budget.ledger.lock();
            ledger.unbacked -= self.bytes;
            if kind == AllocKind::Synchronous {
                ledger.plain += self.bytes;
            }
            self.backed = Some(kind);
        }
    }

    /// The free has been issued; the bytes stay counted until it has completed.
    pub(crate) fn mark_pending(&mut self) {
        if !self.pending {
            let mut ledger = self.budget.ledger.lock();
            ledger.pending += self.bytes;
            if self.backed == Some(AllocKind::Synchronous) {
                ledger.plain -= self.bytes;
            }
            self.pending = true;
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut ledger = self.budget.ledger.lock();
        let bytes = self.bytes;
        match self.place {
            Place::Section(id) if ledger.claims.contains_key(&id) => {
                if let Some(section) = ledger.claims.get_mut(&id) {
                    section.drawn -= bytes;
                }
            }
            Place::Promised => {
                ledger.promised -= bytes;
                ledger.outside -= bytes;
            }
            Place::Outside | Place::Section(_) => ledger.outside -= bytes,
        }
        match self.backed {
            None => ledger.unbacked -= bytes,
            Some(AllocKind::Synchronous) if !self.pending => ledger.plain -= bytes,
            Some(_) => {}
        }
        if self.pending {
            ledger.pending -= bytes;
        }
        ledger.forget(self.label, bytes);
        self.budget.changed(ledger);
    }
}
