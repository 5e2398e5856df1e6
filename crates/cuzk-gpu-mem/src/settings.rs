//! How a device is opened.

use std::time::Duration;

use crate::driver::cuda::PoolSettings;
use crate::host::HostMemory;
use crate::units::MIB;

/// Whether other processes work on the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// The card is ours: freed bytes stay in the pool, and the next section has them at once.
    #[default]
    Exclusive,
    /// Others need room too: after each compute section the pool's idle bytes go back to the
    /// device, and the next section maps them anew (about 2 ms a GiB).
    Shared,
}

/// Settings of a [`Device`](crate::Device).
#[derive(Clone, Debug)]
pub struct Settings {
    /// Most bytes of device memory to commit; `None` is the whole device.
    pub limit: Option<u64>,
    /// Bytes of device memory left alone, for the display and for what the driver needs itself.
    pub reserve: u64,
    /// The stream-ordered pool of a CUDA device.
    pub pool: PoolSettings,
    /// Whether other processes work on the card.
    pub sharing: Sharing,
    /// How long an allocation keeps asking while other processes hold what it needs, before it
    /// reports out of memory. Keep it short where they run jobs like ours: two processes that wait
    /// with memory in hand wait for each other. On out of memory, let go of what is staged and
    /// admit again.
    pub wait_for_memory: Duration,
    /// Budget of the pinned pool in bytes, where this device makes one.
    pub pinned_limit: u64,
    /// Pinned memory and registrations. `None`: CUDA devices of one process share theirs, whose
    /// budget the first of them sets; other devices get their own.
    pub host: Option<HostMemory>,
}

impl Settings {
    /// The reserve unless another is given.
    pub const DEFAULT_RESERVE: u64 = 512 * MIB;
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limit: None,
            reserve: Self::DEFAULT_RESERVE,
            pool: PoolSettings::default(),
            sharing: Sharing::Exclusive,
            wait_for_memory: Duration::ZERO,
            pinned_limit: HostMemory::DEFAULT_LIMIT,
            host: None,
        }
    }
}
