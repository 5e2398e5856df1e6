//! One device: its driver, its ledger, its pinned memory, its compute permit.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::Pod;
use crate::alloc::Source;
use crate::budget::Budget;
use crate::buffer::{DeviceBuf, Staged};
use crate::driver::cuda::CudaDriver;
use crate::driver::{AllocKind, Driver, MemInfo, Priority};
use crate::error::{Result, Unavailable};
use crate::host::HostMemory;
use crate::info::DeviceInfo;
use crate::link::Link;
use crate::permit::Permit;
use crate::reclaim::Reclaimer;
use crate::select::Selector;
use crate::settings::Settings;
use crate::stream::{Stream, StreamCore};

/// A handle to an open device; clones share it, any thread may use it.
///
/// Buffers, streams and events keep their device open; it closes with the last of them, in
/// whatever order they go.
#[derive(Clone)]
pub struct Device {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) link: Arc<Link>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) reclaimer: Reclaimer,
    pub(crate) permit: Permit,
    pub(crate) host: HostMemory,
    pub(crate) settings: Settings,
    /// The stream of compute sections. One for all, so that a section's allocations are ordered
    /// behind the frees of the one before it.
    pub(crate) compute_stream: Arc<StreamCore>,
}

/// CUDA devices that this process has opened, by ordinal.
static OPENED: Mutex<Vec<(u32, Weak<Inner>)>> = Mutex::new(Vec::new());

impl Device {
    /// Opens the CUDA device that `selector` names. This creates (or joins) its primary context.
    ///
    /// Open a device once and clone the handle. Opened twice it has two ledgers and two permits, which share it as two
    /// processes would: each finds what the other has allocated gone, and knows nothing of what it has promised. A log
    /// line warns of that.
    pub fn open(selector: &Selector, settings: Settings) -> Result<Self> {
        let ordinal = match selector {
            Selector::Ordinal(ordinal) => *ordinal,
            Selector::Uuid(_) | Selector::Pci(_) => selector.pick(&crate::list()?)?.ordinal,
        };
        let driver = CudaDriver::open(ordinal, settings.pool)?;
        let mut settings = settings;
        let host = settings.host.take();
        settings.host =
            Some(host.unwrap_or_else(|| HostMemory::of_process(&driver, settings.pinned_limit)));
        let device = Self::with_driver(driver, settings)?;
        if note_opened(&mut OPENED.lock(), ordinal, &device) {
            tracing::warn!(
                device = ordinal,
                "opened twice: the two ledgers know nothing of each other; clone one handle instead"
            );
        }
        Ok(device)
    }

    /// Opens the first device that works. The error says why none did.
    pub fn open_first(settings: &Settings) -> Result<Self> {
        let mut first_error = None;
        for info in crate::list()? {
            match Self::open(&Selector::Ordinal(info.ordinal), settings.clone()) {
                Ok(device) => return Ok(device),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or(
            Unavailable::NoDevice {
                visible_devices: None,
            }
            .into(),
        ))
    }

    /// A device over any driver: the emulated one in tests, a CUDA one opened by hand.
    pub fn with_driver(driver: Arc<dyn Driver>, settings: Settings) -> Result<Self> {
        let link = Link::new(driver);
        let total = link.driver().info().total_bytes;
        let limit = settings
            .limit
            .unwrap_or(total)
            .min(total.saturating_sub(settings.reserve));
        let host = match &settings.host {
            Some(host) => host.clone(),
            None => HostMemory::new(Arc::clone(link.driver()), settings.pinned_limit),
        };
        let compute_stream = StreamCore::create(&link, "compute", Priority::Normal)?;
        let inner = Inner {
            budget: Budget::new(limit),
            reclaimer: Reclaimer::default(),
            permit: Permit::default(),
            host,
            settings,
            compute_stream,
            link,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The device's facts.
    pub fn info(&self) -> &DeviceInfo {
        self.inner.link.driver().info()
    }

    /// The driver below; kernels are launched through [`Driver::as_cuda`], or emulated through
    /// [`Driver::enqueue`].
    pub fn driver(&self) -> &Arc<dyn Driver> {
        self.inner.link.driver()
    }

    /// The ledger.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.inner.budget
    }

    /// Pinned memory and registrations that this device's transfers use.
    pub fn host(&self) -> &HostMemory {
        &self.inner.host
    }

    /// The settings it was opened with.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Whether the device can be used at all: not after a fork, not with a lost context.
    pub fn is_usable(&self) -> bool {
        self.inner.link.usable()
    }

    /// What every call that can fail begins with: refuses a device that is not usable, and reports,
    /// once, a failure of an earlier drop.
    pub fn check(&self) -> Result<()> {
        self.inner.link.ready()
    }

    /// Reads the driver's view of memory.
    pub fn mem_info(&self) -> Result<MemInfo> {
        self.inner.link.ready()?;
        self.inner.link.run(|driver| driver.mem_info())
    }

    /// A new stream.
    pub fn stream(&self, label: &'static str) -> Result<Stream> {
        self.stream_with(label, Priority::Normal)
    }

    /// A new stream whose blocks start before, or after, those of other streams that wait as well.
    pub fn stream_with(&self, label: &'static str, priority: Priority) -> Result<Stream> {
        self.inner.link.ready()?;
        let core = StreamCore::create(&self.inner.link, label, priority)?;
        Ok(Stream {
            device: self.clone(),
            core,
        })
    }

    pub(crate) fn compute_stream(&self) -> Stream {
        Stream {
            device: self.clone(),
            core: Arc::clone(&self.inner.compute_stream),
        }
    }

    /// Allocates a resident buffer of `len` elements in stream order on `stream`: keys, tables, and
    /// whatever lives across compute sections. Its contents are undefined until written.
    ///
    /// A thread inside its own compute section is refused: scratch comes from
    /// [`Compute::alloc`](crate::Compute::alloc), and
    /// [`Compute::alloc_resident`](crate::Compute::alloc_resident) says that it will stay.
    pub fn alloc<T: Pod>(
        &self,
        label: &'static str,
        len: usize,
        stream: &Stream,
    ) -> Result<DeviceBuf<T>> {
        self.alloc_with(label, len, AllocKind::StreamOrdered, stream)
    }

    /// [`Device::alloc`] from the allocator of your choice. The synchronous one waits for pending
    /// frees and trims the pool before it reports out of memory.
    pub fn alloc_with<T: Pod>(
        &self,
        label: &'static str,
        len: usize,
        kind: AllocKind,
        stream: &Stream,
    ) -> Result<DeviceBuf<T>> {
        self.inner.permit.refuse_inside(
            self.info().ordinal,
            "allocate scratch with Compute::alloc, or say that it stays with Compute::alloc_resident",
        )?;
        self.alloc_from(Source::Outside, label, len, kind, stream)
    }

    /// Allocates a buffer to be filled now and used in a compute section later. See [`Staged`].
    pub fn stage<T: Pod>(
        &self,
        label: &'static str,
        len: usize,
        stream: &Stream,
    ) -> Result<Staged<T>> {
        self.inner.permit.refuse_inside(
            self.info().ordinal,
            "inside the section, allocate with Compute::alloc and upload there",
        )?;
        self.alloc_from(
            Source::Outside,
            label,
            len,
            AllocKind::StreamOrdered,
            stream,
        )
        .map(Staged::new)
    }
}

/// Adds a device to those that are open; says whether that ordinal is among them already.
fn note_opened(opened: &mut Vec<(u32, Weak<Inner>)>, ordinal: u32, device: &Device) -> bool {
    opened.retain(|(_, inner)| inner.strong_count() > 0);
    let is_second = opened.iter().any(|(other, _)| *other == ordinal);
    opened.push((ordinal, Arc::downgrade(&device.inner)));
    is_second
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("info", self.info())
            .field("budget", &self.inner.budget.state())
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // All blocks are gone, since each holds the device; what they left behind is freed here.
        self.reclaimer.finish(&self.link);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::SimDriver;

    #[test]
    fn a_second_handle_is_noticed_while_the_first_lives() {
        let device = || {
            let driver = Arc::new(SimDriver::new(1 << 30));
            Device::with_driver(driver, Settings::default()).unwrap()
        };
        let mut opened = Vec::new();
        let (first, other) = (device(), device());
        assert!(!note_opened(&mut opened, 0, &first));
        assert!(!note_opened(&mut opened, 1, &other));
        let second = device();
        assert!(note_opened(&mut opened, 0, &second));
        let clone = second.clone();
        drop((first, second));
        assert!(note_opened(&mut opened, 0, &device()));
        drop(clone);
        assert!(!note_opened(&mut opened, 0, &device()));
        assert_eq!(opened.len(), 2);
    }
}
