//! What the tests share: emulated devices and a check that nothing leaks.
#![allow(dead_code)] // each test binary uses its part

use std::sync::Arc;

use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::driver::sim::SimCounts;
use cuzk_gpu_mem::{Device, Error, GIB, MIB, OutOfMemory, Settings};

/// The reserve of the devices made here.
pub(crate) const RESERVE: u64 = 512 * MIB;

/// Elements of `u64` in so many GiB.
pub(crate) const fn gib(count: usize) -> usize {
    (count << 30) / 8
}

/// A device over `driver`, with settings as a test wants them.
pub(crate) fn open_with(driver: &Arc<SimDriver>, change: impl FnOnce(&mut Settings)) -> Device {
    let mut settings = Settings::default();
    change(&mut settings);
    Device::with_driver(Arc::clone(driver) as _, settings).unwrap()
}

/// A device over `driver` without a reserve, whose pool keeps everything.
pub(crate) fn open(driver: &Arc<SimDriver>) -> Device {
    use cuzk_gpu_mem::driver::Driver;
    driver.set_release_threshold(u64::MAX).unwrap();
    open_with(driver, |settings| settings.reserve = 0)
}

/// A 16 GiB card of today.
pub(crate) fn card16() -> Arc<SimDriver> {
    Arc::new(SimDriver::new(16 * GIB))
}

/// The out-of-memory inside an error.
pub(crate) fn out_of_memory<T: std::fmt::Debug>(result: Result<T, Error>) -> OutOfMemory {
    match result {
        Err(Error::OutOfMemory(report)) => *report,
        other => panic!("expected out of memory, got {other:?}"),
    }
}

/// Nothing is alive on the device any more.
pub(crate) fn assert_empty(driver: &SimDriver) {
    let none = SimCounts {
        blocks: 0,
        streams: 0,
        events: 0,
        registrations: 0,
    };
    assert_eq!(driver.counts(), none);
}

/// Runs `work` on a thread of its own; whether it ended without waiting for anything that only the
/// caller can bring about.
pub(crate) fn ends_by_itself<'scope, 'env>(
    threads: &'scope std::thread::Scope<'scope, 'env>,
    work: impl FnOnce() + Send + 'scope,
) -> bool {
    let (done, ended) = std::sync::mpsc::channel();
    threads.spawn(move || {
        work();
        let _ = done.send(());
    });
    ended
        .recv_timeout(std::time::Duration::from_secs(10))
        .is_ok()
}
