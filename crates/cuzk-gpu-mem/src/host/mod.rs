//! Host memory that the device can copy from and to without a detour: a pool of pinned buffers, and
//! registrations of memory that belongs to somebody else.

mod pinned;
mod registration;
mod registry;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

pub use pinned::{PinnedBuf, PinnedUse};
pub use registration::{HostRegistration, HostRegistrationMut, RegistrationScope};

use crate::driver::cuda::CudaDriver;
use crate::driver::{Driver, DriverError};
use crate::link::Link;
use crate::units::GIB;
use registry::Registry;

/// Pinned and registered host memory of one driver; clones share it, and so may several devices.
#[derive(Clone, Debug)]
pub struct HostMemory {
    inner: Arc<HostInner>,
}

#[derive(Debug)]
struct HostInner {
    link: Arc<Link>,
    registry: Registry,
    pool: pinned::Pool,
    /// How often something that should be pinned is not; the first time is a warning.
    degraded: AtomicU64,
}

impl HostInner {
    /// Copies will work all the same, at a tenth of the speed. Said once.
    fn degrade(&self, what: &str, bytes: usize, error: DriverError) {
        if self.degraded.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(
                bytes,
                %error,
                "{what} could not be page-locked; transfers fall back to pageable memory and are \
                 slower (raise the memlock limit, or lower the pinned limit); said once"
            );
        }
    }
}

impl HostMemory {
    /// Bytes of pinned buffers unless another budget is given.
    pub const DEFAULT_LIMIT: u64 = 64 * GIB;

    /// Longest single registration: drivers refuse very long ones (512 GiB has been seen).
    pub const REGISTRATION_CHUNK: usize = 64 << 30;

    /// Pinned memory with a budget of `limit` bytes.
    pub fn new(driver: Arc<dyn Driver>, limit: u64) -> Self {
        Self::with_chunk(driver, limit, Self::REGISTRATION_CHUNK)
    }

    /// The same with another longest registration, in bytes.
    pub fn with_chunk(driver: Arc<dyn Driver>, limit: u64, chunk: usize) -> Self {
        let inner = HostInner {
            link: Link::new(driver),
            registry: Registry::new(chunk),
            pool: pinned::Pool::new(limit),
            degraded: AtomicU64::new(0),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The one that CUDA devices of this process share: page-locking is a matter of the process,
    /// not of a device, and the registry must see all of it.
    pub(crate) fn of_process(driver: &Arc<CudaDriver>, limit: u64) -> Self {
        static SHARED: Mutex<Weak<HostInner>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock();
        if let Some(inner) = shared.upgrade()
            && inner.link.usable()
        {
            return Self { inner };
        }
        let host = Self::new(Arc::clone(driver) as Arc<dyn Driver>, limit);
        *shared = Arc::downgrade(&host.inner);
        host
    }

    /// How often page-locking failed and pageable memory served instead.
    pub fn degraded(&self) -> u64 {
        self.inner.degraded.load(Ordering::Relaxed)
    }

    /// Live registrations, those of pinned buffers included.
    pub fn registered_ranges(&self) -> usize {
        self.inner.registry.len()
    }
}
