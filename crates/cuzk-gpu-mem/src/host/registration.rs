//! Memory of somebody else, page-locked while it is borrowed.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use parking_lot::Mutex;

use super::HostMemory;
use super::registry::Uses;
use crate::Pod;

/// A share in the registrations of a range.
#[derive(Debug)]
struct Hold {
    host: HostMemory,
    start: usize,
    bytes: usize,
}

impl Hold {
    /// `None` where there is nothing to lock, or it cannot be locked.
    ///
    /// # Safety
    /// The range is mapped and stays mapped while the hold lives.
    unsafe fn new(host: &HostMemory, start: usize, bytes: usize) -> Option<Self> {
        let inner = &host.inner;
        if !inner.link.usable() {
            return None;
        }
        // SAFETY: as the caller promises.
        let held = unsafe { inner.registry.hold(inner, start, bytes, Uses::Kept) };
        match held {
            Ok(held) => held.then(|| Self {
                host: host.clone(),
                start,
                bytes,
            }),
            Err(error) => {
                inner.degrade("a registered range", bytes, error);
                None
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let inner = &self.host.inner;
        inner.registry.release(inner, self.start, self.bytes);
    }
}

/// A hold that two may end: the registration, and the scope it was made in.
type SharedHold = Arc<Mutex<Option<Hold>>>;

/// Ends a hold without keeping the lock while it waits.
fn end(hold: &SharedHold) {
    let hold = hold.lock().take();
    drop(hold);
}

/// Where memory is registered; all of it is unregistered when the scope ends. See
/// [`HostMemory::scope`].
#[derive(Debug)]
pub struct RegistrationScope<'scope, 'env: 'scope> {
    host: &'env HostMemory,
    holds: Mutex<Vec<SharedHold>>,
    /// Invariant, as in `std::thread::scope`.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Memory of somebody else, page-locked until this is dropped, at the latest until its scope ends.
///
/// Registrations of overlapping ranges share their pages, and the pages are unregistered when the
/// last holder goes, after the copies that used them. Where page-locking fails, the range stays
/// pageable and copies still work; one warning says so.
#[derive(Debug)]
pub struct HostRegistration<'env, T: Pod> {
    hold: SharedHold,
    memory: &'env [T],
}

/// [`HostRegistration`] of memory that is downloaded into.
#[derive(Debug)]
pub struct HostRegistrationMut<'env, T: Pod> {
    hold: SharedHold,
    memory: &'env mut [T],
}

impl HostMemory {
    /// Runs `body`, which may register memory that it borrows from outside.
    ///
    /// All of it is unregistered when this returns, also by a panic, and whatever became of the
    /// registrations: so page-locked memory cannot be freed, and what is mapped at its address next
    /// is not mistaken for it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use cuzk_gpu_mem::{Device, Settings, driver::SimDriver};
    /// # let device = Device::with_driver(Arc::new(SimDriver::new(1 << 30)), Settings::default())?;
    /// # let stream = device.stream("main")?;
    /// let rows = vec![7_u64; 1 << 16];
    /// let mut buffer = device.alloc::<u64>("rows", rows.len(), &stream)?;
    /// device.host().scope(|scope| {
    ///     let rows = scope.register(&rows);
    ///     assert!(rows.is_pinned());
    ///     stream.upload_slice(&rows, &mut buffer)
    /// })?;
    /// # Ok::<(), cuzk_gpu_mem::Error>(())
    /// ```
    ///
    /// The memory cannot go away, grow or move meanwhile:
    ///
    /// ```compile_fail,E0505
    /// # fn f(host: &cuzk_gpu_mem::HostMemory) {
    /// let rows = vec![0_u64; 1 << 20];
    /// host.scope(|scope| {
    ///     std::mem::forget(scope.register(&rows));
    ///     drop(rows);
    /// });
    /// # }
    /// ```
    ///
    /// and cannot belong to the body, which ends before the scope does:
    ///
    /// ```compile_fail,E0597
    /// # fn f(host: &cuzk_gpu_mem::HostMemory) {
    /// host.scope(|scope| {
    ///     let rows = vec![0_u64; 1 << 20];
    ///     std::mem::forget(scope.register(&rows));
    /// });
    /// # }
    /// ```
    pub fn scope<'env, R>(
        &'env self,
        body: impl for<'scope> FnOnce(&'scope RegistrationScope<'scope, 'env>) -> R,
    ) -> R {
        let scope = RegistrationScope {
            host: self,
            holds: Mutex::default(),
            scope: PhantomData,
            env: PhantomData,
        };
        let _end = EndOfScope(&scope.holds);
        body(&scope)
    }
}

/// Ends all holds of a scope, also when its body panics.
struct EndOfScope<'a>(&'a Mutex<Vec<SharedHold>>);

impl Drop for EndOfScope<'_> {
    fn drop(&mut self) {
        std::mem::take(&mut *self.0.lock()).iter().for_each(end);
    }
}

impl<'env> RegistrationScope<'_, 'env> {
    /// Page-locks the whole pages inside `memory`. An empty or small range is no driver call.
    pub fn register<T: Pod>(&self, memory: &'env [T]) -> HostRegistration<'env, T> {
        let start = memory.as_ptr().expose_provenance();
        let hold = self.hold(start, size_of_val(memory));
        HostRegistration { hold, memory }
    }

    /// [`RegistrationScope::register`] for memory that is downloaded into.
    pub fn register_mut<T: Pod>(&self, memory: &'env mut [T]) -> HostRegistrationMut<'env, T> {
        let start = memory.as_mut_ptr().expose_provenance();
        let hold = self.hold(start, size_of_val(memory));
        HostRegistrationMut { hold, memory }
    }

    /// Holds a range that is borrowed for `'env`.
    fn hold(&self, start: usize, bytes: usize) -> SharedHold {
        // SAFETY: borrowed for `'env`, which outlives the scope, and the hold ends with the scope
        // at the latest: `HostMemory::scope` sees to that, on whatever way it is left.
        let hold = unsafe { Hold::new(self.host, start, bytes) };
        let shared = Arc::new(Mutex::new(hold));
        let mut holds = self.holds.lock();
        holds.retain(|hold| Arc::strong_count(hold) > 1 || hold.lock().is_some());
        holds.push(Arc::clone(&shared));
        shared
    }
}

macro_rules! registration {
    ($name:ident) => {
        impl<T: Pod> $name<'_, T> {
            /// Whether its whole pages are page-locked.
            pub fn is_pinned(&self) -> bool {
                self.hold.lock().is_some()
            }
        }

        impl<T: Pod> Deref for $name<'_, T> {
            type Target = [T];

            fn deref(&self) -> &[T] {
                self.memory
            }
        }

        impl<T: Pod> Drop for $name<'_, T> {
            fn drop(&mut self) {
                end(&self.hold);
            }
        }
    };
}

registration!(HostRegistration);
registration!(HostRegistrationMut);

impl<T: Pod> DerefMut for HostRegistrationMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.memory
    }
}
