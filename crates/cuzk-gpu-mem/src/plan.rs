//! Staging: which buffers may be filled while another worker computes.
//!
//! [`StagingPlan::choose`] is a pure function. [`Device::admit`] applies it to the ledger and to
//! the driver's figures under one lock, and promises what it decided.

use std::fmt;
use std::time::{Duration, Instant};

use crate::Pod;
use crate::alloc::{Source, bytes_of};
use crate::budget::{BudgetState, Claim, Reservation};
use crate::buffer::Staged;
use crate::device::Device;
use crate::driver::{AllocKind, MemInfo};
use crate::error::{Error, Result};
use crate::reclaim::Patience;
use crate::stream::Stream;
use crate::units::{Bytes, MIB};

/// How long [`Device::admit`] waits before it looks again for completed frees.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What a piece of work needs, in bytes, by kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Device memory.
    pub device: u64,
    /// Page-locked host memory.
    pub pinned: u64,
    /// Ordinary host memory.
    pub host: u64,
}

impl Footprint {
    /// Both at once.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            device: self.device.saturating_add(other.device),
            pinned: self.pinned.saturating_add(other.pinned),
            host: self.host.saturating_add(other.host),
        }
    }

    /// One after the other: the peak of the two.
    #[must_use]
    pub fn then(self, other: Self) -> Self {
        Self {
            device: self.device.max(other.device),
            pinned: self.pinned.max(other.pinned),
            host: self.host.max(other.host),
        }
    }

    /// Whether it fits in `room`, kind by kind.
    pub fn fits(self, room: Self) -> bool {
        self.device <= room.device && self.pinned <= room.pinned && self.host <= room.host
    }
}

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            device,
            pinned,
            host,
        } = *self;
        write!(
            f,
            "device {}, pinned {}, host {}",
            Bytes(device),
            Bytes(pinned),
            Bytes(host)
        )
    }
}

/// One buffer that a job would like to have on the device before its compute section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagingRequest {
    /// Its name: `d_a`, `d_b`, `witness`.
    pub label: &'static str,
    /// Its size.
    pub bytes: u64,
}

/// How much of what was asked for is staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// All of it.
    All,
    /// The first so many requests.
    Prefix(usize),
    /// None: the uploads run inside the compute section.
    None,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Prefix(count) => write!(f, "first {count}"),
            Self::None => f.write_str("none"),
        }
    }
}

/// The decision, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagingPlan {
    requests: Vec<StagingRequest>,
    staged: usize,
    usable: u64,
}

impl StagingPlan {
    /// Stages the longest prefix of `requests` that fits `usable` bytes: requests are in order of
    /// preference, and one that does not fit stops all behind it.
    ///
    /// ```
    /// use cuzk_gpu_mem::{StagingPlan, StagingRequest, Tier};
    ///
    /// let rows = [StagingRequest { label: "d_a", bytes: 4 }, StagingRequest { label: "d_b", bytes: 4 }];
    /// assert_eq!(StagingPlan::choose(&rows, 8).tier(), Tier::All);
    /// assert_eq!(StagingPlan::choose(&rows, 7).tier(), Tier::Prefix(1));
    /// assert_eq!(StagingPlan::choose(&rows, 3).tier(), Tier::None);
    /// ```
    pub fn choose(requests: &[StagingRequest], usable: u64) -> Self {
        let mut left = usable;
        let staged = requests
            .iter()
            .take_while(|request| match left.checked_sub(request.bytes) {
                Some(rest) => {
                    left = rest;
                    true
                }
                None => false,
            })
            .count();
        Self {
            requests: requests.to_vec(),
            staged,
            usable,
        }
    }

    /// The tier.
    pub fn tier(&self) -> Tier {
        match self.staged {
            staged if staged == self.requests.len() => Tier::All,
            0 => Tier::None,
            staged => Tier::Prefix(staged),
        }
    }

    /// What is staged.
    pub fn staged(&self) -> &[StagingRequest] {
        &self.requests[..self.staged]
    }

    /// What is uploaded inside the compute section.
    pub fn unstaged(&self) -> &[StagingRequest] {
        &self.requests[self.staged..]
    }

    /// The bytes staged.
    pub fn staged_bytes(&self) -> u64 {
        self.staged().iter().map(|request| request.bytes).sum()
    }

    /// The bytes it was chosen for.
    pub fn usable(&self) -> u64 {
        self.usable
    }
}

/// Bytes that a new job could use, were it to compute next: what the ledger or the device allows,
/// whichever is less, beside what is held outside. What the section now computing holds is counted
/// as free, since it will be.
///
/// The device allows what is free, what the pool has, in use or not, and what plain blocks of ours hold, less the
/// reserve. Which blocks of ours are in use does not matter: whoever waits in the driver to wipe and free a block, since its
/// stream takes no more work, has said so to the ledger, and not to the pool. What is in use there beyond all that we hold is
/// others': of a default pool, or of a driver that several devices share.
fn headroom(state: &BudgetState, info: &MemInfo, reserve: u64) -> u64 {
    let strangers = info.pool_used.saturating_sub(state.in_pool_at_most());
    let ours = info.pool_reserved.saturating_sub(strangers) + state.plain;
    let by_device = (info.free + ours).saturating_sub(reserve);
    state.limit.min(by_device).saturating_sub(state.outside)
}

/// A job's place on a device: what it may stage, and its claim on the compute section.
#[derive(Debug)]
pub struct Admission {
    device: Device,
    plan: StagingPlan,
    /// Of the plan's staged requests, those not staged yet.
    promises: Vec<Option<Reservation>>,
    claim: Claim,
}

impl Admission {
    /// What was decided.
    pub fn plan(&self) -> &StagingPlan {
        &self.plan
    }

    /// Allocates a request that the plan stages; `None` for one that it does not: upload that
    /// inside the section. On failure the promise stands, and may be asked for again.
    ///
    /// Of several requests with one label and size, each call takes the next. One that has been
    /// staged already, or was not among the requests, is [`Error::NotPromised`].
    pub fn stage<T: Pod>(
        &mut self,
        label: &'static str,
        len: usize,
        stream: &Stream,
    ) -> Result<Option<Staged<T>>> {
        let bytes = bytes_of::<T>(label, len)? as u64;
        let wanted = StagingRequest { label, bytes };
        let promise = self.promises.iter_mut().find(|promise| {
            promise
                .as_ref()
                .is_some_and(|p| (p.label(), p.bytes()) == (label, bytes))
        });
        if let Some(promise) = promise {
            let kind = AllocKind::StreamOrdered;
            let buffer =
                self.device
                    .alloc_from(Source::Promise(promise), label, len, kind, stream)?;
            *promise = None; // Still there if it was of no bytes.
            return Ok(Some(Staged::new(buffer)));
        }
        if self.plan.unstaged().contains(&wanted) {
            return Ok(None);
        }
        let reason = if self.plan.staged().contains(&wanted) {
            "it has been staged already"
        } else if self.plan.requests.iter().any(|r| r.label == label) {
            "it was requested with another size"
        } else {
            "it was not among the requests of the admission"
        };
        Err(Error::NotPromised {
            label,
            bytes,
            reason,
        })
    }

    pub(crate) fn into_claim(self) -> Claim {
        self.claim
    }
}

impl Device {
    /// Bytes that a plan may use now: what the device has beside what others hold and the reserve, within the ledger's
    /// limit, less what is held outside compute sections, promised or claimed.
    pub fn usable(&self) -> Result<u64> {
        let (room, claimed) = self.room_and_claims()?;
        Ok(room.saturating_sub(claimed))
    }

    /// Bytes that a job could have in its compute section, were it to compute next: [`Device::usable`] and
    /// what other sections have claimed, which will be given back before. A job for which
    /// [`Device::admit`] is asked fits if it needs no more.
    pub fn room(&self) -> Result<u64> {
        self.room_and_claims().map(|(room, _)| room)
    }

    fn room_and_claims(&self) -> Result<(u64, u64)> {
        self.inner.link.ready()?;
        self.reclaim(Patience::TakeWhatIsDone);
        let reserve = self.inner.settings.reserve;
        self.inner.budget.look(|state| {
            let info = self.inner.link.run(|driver| driver.mem_info())?;
            Ok((headroom(state, &info, reserve), state.largest_claim))
        })
    }

    /// Admits a job that would like `requests` staged and needs `compute_bytes` of scratch in its
    /// section, besides the requests themselves.
    ///
    /// A job is admitted when all of it would fit, could it compute next; the tier says how much
    /// may be staged beside the largest section claimed by others. The decision and the promises
    /// are one step, so two workers never plan for the same bytes. When there is no room yet, this
    /// waits up to `patience` for memory to return, then reports [`Error::OutOfMemory`].
    ///
    /// Admit before staging anything: an admitted job can always finish, so waiting here cannot
    /// deadlock.
    pub fn admit(
        &self,
        label: &'static str,
        requests: &[StagingRequest],
        compute_bytes: u64,
        patience: Duration,
    ) -> Result<Admission> {
        let staging = requests
            .iter()
            .try_fold(0_u64, |sum, r| sum.checked_add(r.bytes));
        let total = staging
            .and_then(|sum| sum.checked_add(compute_bytes))
            .unwrap_or(u64::MAX);
        let deadline = Instant::now().checked_add(patience); // None: as long as it takes
        let reserve = self.inner.settings.reserve;
        loop {
            self.inner.link.ready()?;
            self.reclaim(Patience::TakeWhatIsDone);
            let mut figures = Ok(MemInfo::default());
            let admitted = self.inner.budget.admit(|state| {
                // Read under the ledger's lock: figures older than the ledger would count bytes
                // twice that somebody has allocated in between.
                figures = self.inner.link.run(|driver| driver.mem_info());
                let room = headroom(state, figures.as_ref().ok()?, reserve);
                if total > room {
                    return None;
                }
                let plan = StagingPlan::choose(requests, room.saturating_sub(state.largest_claim));
                let staged: Vec<_> = plan.staged().iter().map(|r| (r.label, r.bytes)).collect();
                let claimed = total - plan.staged_bytes();
                Some((plan, staged, claimed))
            });
            let info = figures?;
            if let Some((plan, promises, claim)) = admitted {
                let mib = |bytes: u64| bytes / MIB;
                tracing::info!(
                    label,
                    free_mib = mib(info.free),
                    usable_mib = mib(plan.usable()),
                    tier = %plan.tier(),
                    "prestage"
                );
                return Ok(Admission {
                    device: self.clone(),
                    plan,
                    promises: promises.into_iter().map(Some).collect(),
                    claim,
                });
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(self.out_of_memory_for(label, total));
            }
            self.inner.budget.wait_for_change(LOOK_AGAIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a device of 16 units: what is free, what the pool has, and has in use.
    fn room(ours: BudgetState, [free, pool_reserved, pool_used]: [u64; 3]) -> u64 {
        let info = MemInfo {
            total: 16,
            free,
            pool_reserved,
            pool_used,
        };
        headroom(&ours, &info, 0)
    }

    #[test]
    fn room_is_what_others_and_outside_blocks_leave() {
        let nothing = BudgetState {
            limit: u64::MAX,
            ..BudgetState::default()
        };
        let scratch = BudgetState {
            drawn: 6,
            ..nothing.clone()
        };
        assert_eq!(room(nothing.clone(), [16, 0, 0]), 16);
        assert_eq!(room(scratch.clone(), [10, 6, 6]), 16);
        // Retired, and freed or not.
        let retired = BudgetState {
            pending: 6,
            ..scratch.clone()
        };
        for used in [0, 6] {
            assert_eq!(room(retired.clone(), [10, 6, used]), 16);
        }
        // Not delivered yet.
        let under_way = BudgetState {
            unbacked: 6,
            ..scratch.clone()
        };
        for figures in [[16, 0, 0], [10, 6, 6]] {
            assert_eq!(room(under_way.clone(), figures), 16);
        }
        // Others have 4 in the pool.
        assert_eq!(room(nothing.clone(), [12, 4, 4]), 12);
        assert_eq!(room(scratch, [6, 10, 10]), 12);
        let promised = BudgetState {
            outside: 2,
            promised: 2,
            unbacked: 2,
            ..nothing.clone()
        };
        assert_eq!(room(promised, [12, 4, 4]), 10);
        // A plain block is in no pool; retired, it is free only when it has been freed.
        let plain = BudgetState {
            outside: 3,
            plain: 3,
            ..nothing
        };
        assert_eq!(room(plain.clone(), [13, 0, 0]), 13);
        let retired = BudgetState {
            pending: 3,
            plain: 0,
            ..plain
        };
        assert_eq!(room(retired, [13, 0, 0]), 10);
    }
}
