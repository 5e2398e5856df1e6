//! Allocation: the ledger first, then the driver, and before anyone hears "out of memory",
//! everything that can be had has been waited for and trimmed.

use std::marker::PhantomData;
use std::mem::size_of;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::Pod;
use crate::budget::{Claim, Reservation};
use crate::buffer::DeviceBuf;
use crate::device::Device;
use crate::driver::{AllocKind, DevicePtr};
use crate::error::{Error, OutOfMemory, Result};
use crate::link::is_out_of_memory;
use crate::permit::Side;
use crate::reclaim::{Patience, Retired, TrimPolicy};
use crate::stream::{Stream, StreamCore};

/// How often an allocation that waits for other processes asks again.
const ASK_AGAIN: Duration = Duration::from_millis(5);

/// Whose bytes an allocation uses.
pub(crate) enum Source<'a> {
    /// The budget's, across compute sections.
    Outside,
    /// A promise made at admission; on failure it is there again.
    Promise(&'a mut Option<Reservation>),
    /// A compute section's claim.
    Claim(&'a Claim),
}

struct Request {
    label: &'static str,
    bytes: u64,
    kind: AllocKind,
}

/// One block of device memory, untyped: the part of a buffer that owns.
///
/// Invariant: `ptr` is a live block of `bytes` bytes from allocator `kind`, owned by this value
/// alone and counted by `reservation`; all uses of it so far are ordered before the present end of
/// `stream`, or of one of `borrowers`. A block of no bytes has no reservation and is never freed.
#[derive(Debug)]
pub(crate) struct RawBlock {
    pub(crate) device: Device,
    pub(crate) ptr: DevicePtr,
    pub(crate) bytes: u64,
    pub(crate) stream: Arc<StreamCore>,
    pub(crate) label: &'static str,
    /// Bytes from its start on that hold a secret.
    pub(crate) secret_bytes: u64,
    kind: AllocKind,
    pub(crate) reservation: Option<Reservation>,
    /// Streams that it is lent to.
    borrowers: Mutex<Vec<Arc<StreamCore>>>,
}

impl Drop for RawBlock {
    fn drop(&mut self) {
        // Loans that were never given back.
        let link = &self.device.inner.link;
        for borrower in self.borrowers.get_mut().drain(..) {
            if link.usable() {
                self.stream.follow_or_settle(&borrower);
            }
        }
        if let Some(reservation) = self.reservation.take() {
            let retired = Retired {
                ptr: self.ptr,
                bytes: self.bytes,
                kind: self.kind,
                stream: Arc::clone(&self.stream),
                reservation,
                wipe_bytes: self.secret_bytes,
                step: Retired::first_step(self.kind, self.secret_bytes),
            };
            self.device
                .inner
                .reclaimer
                .retire(&self.device.inner.link, retired);
        }
    }
}

impl RawBlock {
    /// Makes `stream` the one that all uses so far are ordered before, and the block is freed on.
    pub(crate) fn move_to(&mut self, stream: &Arc<StreamCore>) -> Result<()> {
        stream.follow(&self.stream)?;
        self.stream = Arc::clone(stream);
        Ok(())
    }

    /// `stream` may use the block from now on, and is not ordered before `self.stream`.
    pub(crate) fn lend_to(&self, stream: &Arc<StreamCore>) {
        self.borrowers.lock().push(Arc::clone(stream));
    }

    /// What `stream` was lent for once is ordered before `self.stream` now.
    pub(crate) fn given_back_by(&self, stream: &Arc<StreamCore>) {
        let mut borrowers = self.borrowers.lock();
        if let Some(i) = borrowers.iter().position(|known| known.id == stream.id) {
            borrowers.swap_remove(i);
        }
    }
}

/// `len` elements in bytes, when they fit the address space.
pub(crate) fn bytes_of<T>(label: &'static str, len: usize) -> Result<usize> {
    len.checked_mul(size_of::<T>())
        .filter(|&bytes| bytes <= isize::MAX as usize)
        .ok_or(Error::TooLarge {
            label,
            len,
            size: size_of::<T>(),
        })
}

impl Device {
    pub(crate) fn alloc_from<T: Pod>(
        &self,
        mut source: Source<'_>,
        label: &'static str,
        len: usize,
        kind: AllocKind,
        stream: &Stream,
    ) -> Result<DeviceBuf<T>> {
        let link = &self.inner.link;
        link.ready()?;
        stream.same_device(link)?;
        let bytes = bytes_of::<T>(label, len)? as u64;
        let request = Request { label, bytes, kind };
        let side = match source {
            Source::Claim(_) => Side::Inside,
            Source::Outside | Source::Promise(_) => Side::Outside,
        };
        let (ptr, reservation) = if bytes == 0 {
            (DevicePtr::NULL, None)
        } else {
            let mut reservation = self.reserve_for(&request, &mut source, side)?;
            match self.obtain(&request, stream, side) {
                Ok(ptr) => {
                    reservation.back(kind);
                    (ptr, Some(reservation))
                }
                Err(error) => {
                    if let Source::Promise(promise) = source {
                        reservation.promise();
                        *promise = Some(reservation);
                    }
                    return Err(error);
                }
            }
        };
        let raw = RawBlock {
            device: self.clone(),
            ptr,
            bytes,
            stream: Arc::clone(&stream.core),
            label,
            secret_bytes: 0,
            kind,
            reservation,
            borrowers: Mutex::default(),
        };
        Ok(DeviceBuf {
            raw,
            len,
            element: PhantomData,
        })
    }

    /// Gets the ledger's leave. Pending frees are waited for before it is refused, as far as the
    /// permit allows.
    fn reserve_for(
        &self,
        request: &Request,
        source: &mut Source<'_>,
        side: Side,
    ) -> Result<Reservation> {
        let &Request { label, bytes, .. } = request;
        let budget = &self.inner.budget;
        let claim = match source {
            Source::Promise(promise) => match promise.take() {
                Some(mut promise) => {
                    promise.fulfil();
                    return Ok(promise);
                }
                None => None,
            },
            Source::Outside => None,
            Source::Claim(claim) => Some(*claim),
        };
        let ask = || match claim {
            Some(claim) => claim.draw(label, bytes),
            None => budget.reserve(label, bytes),
        };
        if let Some(reservation) = ask() {
            return Ok(reservation);
        }
        for (policy, patience) in [
            (TrimPolicy::Completed, Patience::TakeWhatIsDone),
            (TrimPolicy::Streams, Patience::Wait),
        ] {
            if self.inner.permit.at_most(policy, side) == policy {
                self.reclaim(patience);
                if let Some(reservation) = ask() {
                    return Ok(reservation);
                }
            }
        }
        Err(self.out_of_memory(request))
    }

    /// Gets the driver to deliver. What it refuses at first is asked for again after ever more
    /// thorough trimming; what other processes hold, for as long as the settings say.
    fn obtain(&self, request: &Request, stream: &Stream, side: Side) -> Result<DevicePtr> {
        if let Some(ptr) = self.try_obtain(request, stream)? {
            return Ok(ptr);
        }
        for policy in [
            TrimPolicy::Completed,
            TrimPolicy::Streams,
            TrimPolicy::Device,
        ] {
            let (applied, _) = self.release(policy, side)?;
            if applied != policy {
                break;
            }
            if let Some(ptr) = self.try_obtain(request, stream)? {
                return Ok(ptr);
            }
        }
        // None: as long as it takes.
        let deadline = Instant::now().checked_add(self.inner.settings.wait_for_memory);
        while deadline.is_none_or(|deadline| Instant::now() < deadline) {
            std::thread::sleep(ASK_AGAIN);
            self.release(TrimPolicy::Completed, side)?;
            if let Some(ptr) = self.try_obtain(request, stream)? {
                return Ok(ptr);
            }
        }
        Err(self.out_of_memory(request))
    }

    /// Counts bytes that other code takes from this device: a library's workspace, loaded kernels.
    pub fn reserve(&self, label: &'static str, bytes: u64) -> Result<Reservation> {
        self.inner.link.ready()?;
        let request = Request {
            label,
            bytes,
            kind: AllocKind::Synchronous,
        };
        let mut reservation = self.reserve_for(&request, &mut Source::Outside, Side::Outside)?;
        reservation.back(AllocKind::Synchronous);
        Ok(reservation)
    }

    fn try_obtain(&self, request: &Request, stream: &Stream) -> Result<Option<DevicePtr>> {
        let driver = self.driver();
        // SAFETY: `stream` is live and of this device's driver (checked by the caller).
        match unsafe { driver.alloc(request.kind, request.bytes, stream.core.id) } {
            Ok(ptr) => Ok(Some(ptr)),
            Err(error) if is_out_of_memory(error) => Ok(None),
            Err(error) => Err(self.inner.link.fail(error)),
        }
    }

    fn out_of_memory(&self, request: &Request) -> Error {
        self.out_of_memory_for(request.label, request.bytes)
    }

    pub(crate) fn out_of_memory_for(&self, label: &'static str, requested: u64) -> Error {
        let info = self.driver().mem_info().unwrap_or_default();
        let state = self.inner.budget.state();
        Error::OutOfMemory(Box::new(OutOfMemory {
            device: self.info().ordinal,
            label,
            requested,
            free: info.free,
            cached: info.cached(),
            pending: state.pending,
            limit: state.limit,
            reserved_by: self.inner.budget.holders(),
        }))
    }
}
