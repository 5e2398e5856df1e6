//! Copies between host and device. What a copy uses cannot be dropped, moved or changed before the
//! copy is done: the transfer owns it, or a scope borrows it and waits at its end.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use crate::PinnedBuf;
use crate::Pod;
use crate::driver::{Copy, DevicePtr};
use crate::error::{Error, Result};
use crate::recorder::Direction;
use crate::stream::{Event, Stream};
use crate::view::{DeviceView, DeviceViewMut};

/// A copy under way, and the pinned buffer it uses.
///
/// Dropped before it is done, it does not wait: the buffer returns to the pool behind the copy.
///
/// ```compile_fail,E0382
/// # fn f(stream: &cuzk_gpu_mem::Stream, mut rows: cuzk_gpu_mem::PinnedBuf<u64>,
/// #      d_a: &mut cuzk_gpu_mem::DeviceBuf<u64>) -> cuzk_gpu_mem::Result<()> {
/// let transfer = stream.upload(rows, d_a)?;
/// rows[0] = 1; // still being read by the device
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "wait for the transfer, or drop it knowingly"]
pub struct Transfer<T: Pod> {
    buffer: ManuallyDrop<PinnedBuf<T>>,
    event: ManuallyDrop<Event>,
}

impl<T: Pod> Transfer<T> {
    /// The end of the copy, for other streams to wait for.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Whether the copy is done.
    pub fn is_done(&self) -> Result<bool> {
        self.event.is_reached()
    }

    /// Waits for the copy and gives the buffer back.
    pub fn wait(self) -> Result<PinnedBuf<T>> {
        self.event.wait()?;
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, so each field is taken once.
        let buffer = unsafe {
            ManuallyDrop::drop(&mut this.event);
            ManuallyDrop::take(&mut this.buffer)
        };
        Ok(buffer)
    }
}

impl<T: Pod> Drop for Transfer<T> {
    fn drop(&mut self) {
        // SAFETY: the fields are taken here only, since `wait` does not drop the transfer.
        let (buffer, event) = unsafe {
            (
                ManuallyDrop::take(&mut self.buffer),
                ManuallyDrop::take(&mut self.event),
            )
        };
        buffer.retire_at(event);
    }
}

/// The host side of a copy.
#[derive(Clone, Copy)]
enum Host {
    From(*const u8),
    To(*mut u8),
}

impl Host {
    fn address(self) -> usize {
        match self {
            Self::From(start) => start.addr(),
            Self::To(start) => start.addr(),
        }
    }

    fn piece(self, device: DevicePtr, offset: usize, bytes: usize) -> Copy {
        let at = device.offset(offset as u64);
        match self {
            Self::From(start) => Copy::Upload {
                from: start.wrapping_add(offset),
                to: at,
                bytes,
            },
            Self::To(start) => Copy::Download {
                from: at,
                to: start.wrapping_add(offset),
                bytes,
            },
        }
    }
}

fn same_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found {
        Ok(())
    } else {
        Err(Error::Length {
            what,
            expected,
            found,
        })
    }
}

impl Stream {
    /// Copies a pinned buffer to the device, asynchronously.
    pub fn upload<'a, T: Pod>(
        &self,
        source: PinnedBuf<T>,
        target: impl Into<DeviceViewMut<'a, T>>,
    ) -> Result<Transfer<T>> {
        let target = target.into();
        same_length("upload", target.len(), source.len())?;
        let guard = target.on(self)?;
        let host = Host::From(source.as_ptr().cast());
        // SAFETY: the transfer owns `source` until the copy is done; the target is borrowed
        // mutably now, and later uses are ordered behind by its home stream.
        unsafe { self.copy_pieces(host, target.ptr(), target.bytes(), target.label())? };
        drop(guard);
        self.transfer(source)
    }

    /// Copies from the device into a pinned buffer, asynchronously.
    pub fn download<'a, T: Pod>(
        &self,
        source: impl Into<DeviceView<'a, T>>,
        mut target: PinnedBuf<T>,
    ) -> Result<Transfer<T>> {
        let source = source.into();
        same_length("download", source.len(), target.len())?;
        let guard = source.on(self)?;
        let host = Host::To(target.as_mut_ptr().cast());
        // SAFETY: the transfer owns `target` until the copy is done; the source's later writes are
        // ordered behind by its home stream.
        unsafe { self.copy_pieces(host, source.ptr(), source.bytes(), source.label())? };
        drop(guard);
        self.transfer(target)
    }

    fn transfer<T: Pod>(&self, buffer: PinnedBuf<T>) -> Result<Transfer<T>> {
        match self.core.mark() {
            Ok(event) => Ok(Transfer {
                buffer: ManuallyDrop::new(buffer),
                event: ManuallyDrop::new(event),
            }),
            Err(error) => {
                let _ = self.core.settle();
                Err(error)
            }
        }
    }

    /// Copies any host memory to the device; returns when it has been read.
    ///
    /// Memory that somebody has page-locked is copied by the device itself, behind the host's
    /// back; so this waits in any case.
    pub fn upload_slice<'a, T: Pod>(
        &self,
        source: &[T],
        target: impl Into<DeviceViewMut<'a, T>>,
    ) -> Result<()> {
        self.scope(|scope| scope.upload(source, target))?
    }

    /// Copies from the device to any host memory; returns when it is there.
    pub fn download_slice<'a, T: Pod>(
        &self,
        source: impl Into<DeviceView<'a, T>>,
        target: &mut [T],
    ) -> Result<()> {
        self.scope(|scope| scope.download(source, target))?
    }

    /// Runs `body`, whose transfers may borrow host memory, and waits for them all at its end.
    ///
    /// ```compile_fail,E0506
    /// # fn f(stream: &cuzk_gpu_mem::Stream, d_a: &mut cuzk_gpu_mem::DeviceBuf<u64>) {
    /// let mut rows = [1, 2, 3];
    /// stream.scope(|scope| {
    ///     scope.upload(&rows, d_a);
    ///     rows[0] = 9; // still being read by the device
    /// });
    /// # }
    /// ```
    pub fn scope<'env, R>(
        &'env self,
        body: impl for<'scope> FnOnce(&'scope TransferScope<'scope, 'env>) -> R,
    ) -> Result<R> {
        self.core.link.ready()?;
        let mut wait = WaitAtEnd {
            stream: self,
            waited: false,
        };
        let scope = TransferScope {
            stream: self,
            scope: PhantomData,
            env: PhantomData,
        };
        let result = body(&scope);
        wait.now().map(|()| result)
    }

    /// Copies within the device, asynchronously.
    pub fn copy<'a, 'b, T: Pod>(
        &self,
        source: impl Into<DeviceView<'a, T>>,
        target: impl Into<DeviceViewMut<'b, T>>,
    ) -> Result<()> {
        let (source, target) = (source.into(), target.into());
        same_length("device copy", target.len(), source.len())?;
        self.core.link.ready()?;
        if source.is_empty() {
            return Ok(());
        }
        let _guards = (source.on(self)?, target.on(self)?);
        let copy = Copy::Device {
            from: source.ptr(),
            to: target.ptr(),
            bytes: source.bytes(),
        };
        // SAFETY: both views lie in live blocks, whose frees are ordered behind by the guards.
        self.core
            .link
            .run(|driver| unsafe { driver.copy(copy, self.core.id) })
    }

    /// Overwrites a secret with zeros before its buffer's end, asynchronously: see
    /// [`DeviceBuf::mark_wiped_from`](crate::DeviceBuf::mark_wiped_from). Recorded as a wipe.
    pub fn wipe<'a, T: Pod>(&self, target: impl Into<DeviceViewMut<'a, T>>) -> Result<()> {
        let span = self.core.recorder();
        let span = span.and_then(|recorder| recorder.begin_wipe(&self.core));
        self.fill(target, 0)?;
        if let Some(span) = span {
            span.end(self);
        }
        Ok(())
    }

    /// Sets every byte of the target, asynchronously.
    pub fn fill<'a, T: Pod>(
        &self,
        target: impl Into<DeviceViewMut<'a, T>>,
        value: u8,
    ) -> Result<()> {
        let target = target.into();
        self.core.link.ready()?;
        if target.bytes() == 0 {
            return Ok(());
        }
        let _guard = target.on(self)?;
        let (ptr, bytes) = (target.ptr(), target.bytes());
        // SAFETY: the view lies in a live block, whose free is ordered behind by the guard.
        self.core
            .link
            .run(|driver| unsafe { driver.fill(ptr, value, bytes, self.core.id) })
    }

    /// Submits one copy, cut where host registrations begin and end, and counts it. If a part of
    /// it fails, what was submitted has completed when this returns.
    ///
    /// # Safety
    /// Both ranges are valid, and nobody uses them against the copy's direction, until the stream
    /// has passed it.
    unsafe fn copy_pieces(
        &self,
        host: Host,
        device: DevicePtr,
        bytes: usize,
        label: &'static str,
    ) -> Result<()> {
        let link = &self.core.link;
        link.ready()?;
        if bytes == 0 {
            return Ok(());
        }
        let pieces = self.device.host().pieces(host.address(), bytes, &self.core);
        let pinned = pieces
            .list
            .iter()
            .all(|piece| piece.pinned || piece.bytes < 4096);
        let direction = match host {
            Host::From(_) => Direction::Up,
            Host::To(_) => Direction::Down,
        };
        let open = match self.core.recorder() {
            Some(recorder) => {
                recorder.begin_transfer(label, direction, bytes as u64, pinned, &self.core)
            }
            None => None,
        };
        for piece in &pieces.list {
            let copy = host.piece(device, piece.offset, piece.bytes);
            // SAFETY: a part of the ranges the caller vouches for.
            let submitted = link.run(|driver| unsafe { driver.copy(copy, self.core.id) });
            if let Err(error) = submitted {
                let _ = self.core.settle();
                return Err(error);
            }
        }
        if let Some(open) = open {
            open.end(self);
        }
        Ok(())
    }
}

/// Waits for the stream when a scope ends, also by a panic.
struct WaitAtEnd<'a> {
    stream: &'a Stream,
    waited: bool,
}

impl WaitAtEnd<'_> {
    fn now(&mut self) -> Result<()> {
        self.waited = true;
        self.stream.core.settle()
    }
}

impl Drop for WaitAtEnd<'_> {
    fn drop(&mut self) {
        if !self.waited {
            let _ = self.now();
        }
    }
}

/// Transfers that borrow host memory for as long as the scope lasts. See [`Stream::scope`].
#[derive(Debug)]
pub struct TransferScope<'scope, 'env: 'scope> {
    stream: &'env Stream,
    /// Invariant, as in `std::thread::scope`.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'env> TransferScope<'_, 'env> {
    /// The stream that the copies are on.
    pub fn stream(&self) -> &'env Stream {
        self.stream
    }

    /// Copies host memory to the device. Registered memory is read by the device itself, at the
    /// speed of pinned memory.
    pub fn upload<'a, T: Pod>(
        &self,
        source: &'env [T],
        target: impl Into<DeviceViewMut<'a, T>>,
    ) -> Result<()> {
        let target = target.into();
        same_length("upload", target.len(), source.len())?;
        let _guard = target.on(self.stream)?;
        let host = Host::From(source.as_ptr().cast());
        // SAFETY: `source` is borrowed until the scope has waited; the target as in `upload`.
        unsafe {
            self.stream
                .copy_pieces(host, target.ptr(), target.bytes(), target.label())
        }
    }

    /// Copies from the device to host memory, which is there when the scope has ended.
    pub fn download<'a, T: Pod>(
        &self,
        source: impl Into<DeviceView<'a, T>>,
        target: &'env mut [T],
    ) -> Result<()> {
        let source = source.into();
        same_length("download", source.len(), target.len())?;
        let _guard = source.on(self.stream)?;
        let host = Host::To(target.as_mut_ptr().cast());
        // SAFETY: `target` is borrowed mutably until the scope has waited.
        unsafe {
            self.stream
                .copy_pieces(host, source.ptr(), source.bytes(), source.label())
        }
    }
}
