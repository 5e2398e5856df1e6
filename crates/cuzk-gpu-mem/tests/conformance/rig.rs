//! A device with exactly sixteen units of memory, emulated or real.

use std::sync::Arc;
use std::time::Duration;

use cuzk_gpu_mem::driver::{AllocKind, CudaDriver, DevicePtr, Driver, SimDriver, StreamId};
use cuzk_gpu_mem::{Device, GIB, MIB, MemInfo, PoolSettings, Priority, Settings, Sharing, list};
use parking_lot::{Mutex, MutexGuard};

/// Units that the ballast leaves.
pub(crate) const UNITS: u64 = 16;

/// Tests of a card have it to themselves.
static CARD: Mutex<()> = Mutex::new(());

pub(crate) struct Rig {
    pub(crate) driver: Arc<dyn Driver>,
    /// Bytes of one unit.
    pub(crate) unit: u64,
    /// Free with the ballast in place and nothing else.
    pub(crate) empty: u64,
    pub(crate) sim: Option<Arc<SimDriver>>,
    ballast: Option<(DevicePtr, StreamId)>,
    alone: Option<MutexGuard<'static, ()>>,
}

impl Rig {
    /// A small unit: some tests touch every byte.
    pub(crate) fn simulated() -> Self {
        let unit = 16 * MIB;
        let sim = Arc::new(SimDriver::new(4 * UNITS * unit));
        let mut rig = Self {
            driver: Arc::clone(&sim) as _,
            unit,
            empty: 0,
            sim: Some(sim),
            ballast: None,
            alone: None,
        };
        let stream = rig.driver.create_stream(Priority::Normal).unwrap();
        rig.place_ballast(stream);
        rig
    }

    /// A card with a ballast, or the reason why not.
    pub(crate) fn card(test: &str) -> Option<Self> {
        if !card_is_there() {
            return None;
        }
        let alone = CARD.lock();
        let driver = CudaDriver::open(0, PoolSettings::default()).unwrap();
        let mut rig = Self {
            driver,
            unit: GIB,
            empty: 0,
            sim: None,
            ballast: None,
            alone: Some(alone),
        };
        let stream = rig.warm_up();
        rig.place_ballast(stream);
        say(&format!(
            "{test}: on {}, unit {} MiB",
            rig.driver.info(),
            rig.unit / MIB
        ));
        Some(rig)
    }

    /// A context's first stream and pool take some memory of their own. Chooses the unit.
    fn warm_up(&mut self) -> StreamId {
        let stream = self.driver.create_stream(Priority::Normal).unwrap();
        // SAFETY: the stream is live; the block is freed once, here.
        unsafe {
            let warm = self
                .driver
                .alloc(AllocKind::StreamOrdered, MIB, stream)
                .unwrap();
            self.driver
                .free(AllocKind::StreamOrdered, warm, stream)
                .unwrap();
            self.driver
                .wait(cuzk_gpu_mem::driver::Point::Stream(stream))
                .unwrap();
        }
        self.driver.trim(0).unwrap();
        self.unit = (self.info().free / (UNITS + 1) / (64 * MIB) * (64 * MIB)).min(GIB);
        stream
    }

    fn place_ballast(&mut self, stream: StreamId) {
        let free = self.info().free;
        let ballast = (free - UNITS * self.unit) / (2 * MIB) * (2 * MIB);
        // SAFETY: the stream is live; freed when the rig is dropped.
        let block = unsafe { self.driver.alloc(AllocKind::Synchronous, ballast, stream) }.unwrap();
        self.ballast = Some((block, stream));
        self.empty = self.info().free;
    }

    /// Gives the rig up and keeps only the right to be alone on the card.
    pub(crate) fn into_guard(mut self) -> Option<MutexGuard<'static, ()>> {
        self.alone.take()
    }

    pub(crate) fn info(&self) -> MemInfo {
        self.driver.mem_info().unwrap()
    }

    /// A device over the rig's driver, limited to what the ballast leaves.
    pub(crate) fn device(&self) -> Device {
        self.device_with(|_| ())
    }

    pub(crate) fn device_with(&self, change: impl FnOnce(&mut Settings)) -> Device {
        self.driver.set_release_threshold(u64::MAX).unwrap();
        let mut settings = Settings {
            limit: Some(UNITS * self.unit),
            reserve: self.unit / 2,
            ..Settings::default()
        };
        change(&mut settings);
        Device::with_driver(Arc::clone(&self.driver), settings).unwrap()
    }

    /// Settings of a process that shares the card with another of its kind.
    pub(crate) fn shared(&self, settings: &mut Settings) {
        settings.sharing = Sharing::Shared;
        settings.wait_for_memory = Duration::from_millis(50);
    }

    /// Elements of `u64` in so many units.
    pub(crate) fn len(&self, units: u64) -> usize {
        (units * self.unit / 8) as usize
    }

    /// Bytes in units, to one decimal: how figures of the two drivers are compared.
    pub(crate) fn units(&self, bytes: u64) -> f64 {
        (bytes as f64 / self.unit as f64 * 10.0).round() / 10.0
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some((block, stream)) = self.ballast.take() {
            let _ = self.driver.trim(0);
            // SAFETY: both are live and used by nobody.
            unsafe {
                let _ = self.driver.free(AllocKind::Synchronous, block, stream);
                let _ = self.driver.destroy_stream(stream);
            }
        }
    }
}

/// Whether there is a card; where there must be one, that there is.
pub(crate) fn card_is_there() -> bool {
    let Err(reason) = list() else { return true };
    cuzk_testkit::no_gpu(&reason);
    false
}

/// Tests talk to whoever runs them.
#[allow(clippy::print_stderr)]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}
