//! The floor between the driver's calls and the safe types: whose process it is, whether the
//! context still lives, and what went wrong in a `Drop`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::driver::{Code, Driver, DriverError, DriverResult, EventId};
use crate::error::{Error, Result};

/// A driver with the state every user of it must respect. Shared by all that belongs to a device.
#[derive(Debug)]
pub(crate) struct Link {
    driver: Arc<dyn Driver>,
    pid: u32,
    /// Set with `faults`, so that the usual call reads one flag and takes no lock.
    troubled: AtomicBool,
    faults: Mutex<Faults>,
    spare_events: Mutex<Vec<EventId>>,
}

#[derive(Debug, Default)]
struct Faults {
    lost: Option<DriverError>,
    deferred: Option<DriverError>,
    deferred_count: usize,
}

impl Link {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Arc<Self> {
        Arc::new(Self {
            driver,
            pid: std::process::id(),
            troubled: AtomicBool::new(false),
            faults: Mutex::default(),
            spare_events: Mutex::default(),
        })
    }

    pub(crate) fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    pub(crate) fn ordinal(&self) -> u32 {
        self.driver.info().ordinal
    }

    /// Refuses work after a fork, on a lost context, and once for failures of earlier drops.
    pub(crate) fn ready(&self) -> Result<()> {
        self.same_process()?;
        if !self.troubled.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut faults = self.faults.lock();
        if let Some(cause) = faults.lost {
            return Err(Error::DeviceLost {
                device: self.ordinal(),
                cause,
            });
        }
        self.troubled.store(false, Ordering::Release);
        let count = std::mem::take(&mut faults.deferred_count);
        match faults.deferred.take() {
            Some(first) => Err(Error::Deferred {
                device: self.ordinal(),
                first,
                count,
            }),
            None => Ok(()),
        }
    }

    /// Refuses work in a child of the process that opened the device.
    pub(crate) fn same_process(&self) -> Result<()> {
        let here = std::process::id();
        if here == self.pid {
            return Ok(());
        }
        Err(Error::Forked {
            device: self.ordinal(),
            opened_by: self.pid,
            here,
        })
    }

    /// Whether driver calls can still do anything: not after a fork, not on a lost context.
    pub(crate) fn usable(&self) -> bool {
        std::process::id() == self.pid
            && !(self.troubled.load(Ordering::Acquire) && self.faults.lock().lost.is_some())
    }

    /// Gives a driver error its meaning; a fatal one makes the device lost.
    pub(crate) fn fail(&self, error: DriverError) -> Error {
        if !error.code.is_fatal() {
            return Error::Driver {
                device: self.ordinal(),
                error,
            };
        }
        self.lose(error)
    }

    /// Gives the device up: it neither works nor says why.
    pub(crate) fn lose(&self, error: DriverError) -> Error {
        let mut faults = self.faults.lock();
        let cause = *faults.lost.get_or_insert(error);
        self.troubled.store(true, Ordering::Release);
        Error::DeviceLost {
            device: self.ordinal(),
            cause,
        }
    }

    /// Keeps an error that a `Drop` could not return, for the next call to report.
    pub(crate) fn defer(&self, error: DriverError) {
        if error.code.is_fatal() {
            let _ = self.fail(error);
            return;
        }
        let mut faults = self.faults.lock();
        faults.deferred.get_or_insert(error);
        faults.deferred_count += 1;
        self.troubled.store(true, Ordering::Release);
    }

    /// One driver call on behalf of a caller who can be told of its failure. After a fork it is not
    /// made.
    pub(crate) fn run<T>(&self, call: impl FnOnce(&dyn Driver) -> DriverResult<T>) -> Result<T> {
        self.same_process()?;
        call(&*self.driver).map_err(|error| self.fail(error))
    }

    /// One driver call inside a `Drop`; says whether it was made and succeeded. A failed call leaves
    /// everything as it was, and there is no later occasion, so it is tried again.
    pub(crate) fn run_in_drop(&self, call: impl Fn(&dyn Driver) -> DriverResult<()>) -> bool {
        const ATTEMPTS: usize = 3;
        (0..ATTEMPTS).any(|_| {
            self.usable()
                && call(&*self.driver)
                    .map_err(|error| self.defer(error))
                    .is_ok()
        })
    }

    /// An untimed event, recycled where possible: creating one costs more than recording it.
    pub(crate) fn take_event(&self) -> DriverResult<EventId> {
        match self.spare_events.lock().pop() {
            Some(event) => Ok(event),
            None => self.driver.create_event(false),
        }
    }

    /// Takes an event from [`Link::take_event`] back. It may still be pending: a later record
    /// replaces the earlier one, and a stream that waits for the earlier one still does.
    pub(crate) fn return_event(&self, event: EventId) {
        self.spare_events.lock().push(event);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let events = std::mem::take(&mut *self.spare_events.lock());
        for event in events {
            // SAFETY: spare events are live and used by nobody.
            self.run_in_drop(|driver| unsafe { driver.destroy_event(event) });
        }
        if self.usable()
            && let Err(error) = self.ready()
        {
            // Nobody is left to call; the log is the last place to say so.
            tracing::warn!(%error, "device closed with an unreported failure");
        }
    }
}

/// Out of memory, as an allocator says it.
pub(crate) fn is_out_of_memory(error: DriverError) -> bool {
    error.code == Code::OUT_OF_MEMORY
}
