//! Typed buffers on the device, and views into them.
//!
//! Three owners differ in where they may go. [`DeviceBuf`] lives across compute sections.
//! [`Staged`] is filled outside and enters one section, by value. [`Scoped`](crate::Scoped) lives
//! within a section and cannot leave it.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::PinnedBuf;
use crate::Pod;
use crate::alloc::RawBlock;
use crate::device::Device;
use crate::driver::DevicePtr;
use crate::error::{Error, Result};
use crate::stream::{Stream, StreamCore};
use crate::transfer::Transfer;

/// A buffer of `T` in device memory, freed in stream order when dropped.
///
/// Each buffer has a home stream, the one it was allocated on. Work of this crate on another
/// stream waits for the home stream first, and the home stream for it after, so a drop never
/// overtakes a use.
#[derive(Debug)]
pub struct DeviceBuf<T: Pod> {
    pub(crate) raw: RawBlock,
    pub(crate) len: usize,
    pub(crate) element: PhantomData<T>,
}

impl<T: Pod> DeviceBuf<T> {
    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.raw.bytes
    }

    /// What it was allocated as.
    pub fn label(&self) -> &'static str {
        self.raw.label
    }

    /// The device it lies on.
    pub fn device(&self) -> &Device {
        &self.raw.device
    }

    /// All of it, to read.
    pub fn view(&self) -> DeviceView<'_, T> {
        DeviceView {
            raw: &self.raw,
            start: 0,
            len: self.len,
            element: PhantomData,
        }
    }

    /// All of it, to write.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut {
            raw: &self.raw,
            start: 0,
            len: self.len,
            element: PhantomData,
        }
    }

    /// The buffer holds a secret: it is zeroed on the device before its memory can be reused.
    pub fn mark_secret(&mut self) {
        self.raw.secret = true;
    }

    /// Makes `stream` the buffer's home: it waits for the former home, and the buffer will be freed
    /// on it.
    pub fn move_to(&mut self, stream: &Stream) -> Result<()> {
        stream.core.link.ready()?;
        stream.same_device(&self.raw.device.inner.link)?;
        self.raw.move_to(&stream.core)
    }
}

/// A part of a buffer, to read.
#[derive(Debug)]
pub struct DeviceView<'a, T: Pod> {
    pub(crate) raw: &'a RawBlock,
    start: usize,
    len: usize,
    element: PhantomData<&'a T>,
}

/// A part of a buffer, to write. At most one exists for any element.
#[derive(Debug)]
pub struct DeviceViewMut<'a, T: Pod> {
    pub(crate) raw: &'a RawBlock,
    start: usize,
    len: usize,
    element: PhantomData<&'a mut T>,
}

impl<T: Pod> Clone for DeviceView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Pod> Copy for DeviceView<'_, T> {}

/// Start and length of `range` within `len` elements.
///
/// # Panics
/// When the range does not lie within them, as slices do.
fn resolve(range: impl RangeBounds<usize>, len: usize) -> (usize, usize) {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before + 1,
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last + 1,
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    assert!(
        start <= end && end <= len,
        "range {start}..{end} of a device view of {len} elements"
    );
    (start, end - start)
}

macro_rules! view {
    ($view:ident) => {
        impl<'a, T: Pod> $view<'a, T> {
            /// Elements.
            pub fn len(&self) -> usize {
                self.len
            }

            /// Whether it has no elements.
            pub fn is_empty(&self) -> bool {
                self.len == 0
            }

            /// Its size in bytes.
            pub fn bytes(&self) -> usize {
                self.len * size_of::<T>()
            }

            /// The address of its first element, for a kernel's argument list. Using it is up to
            /// the launcher's `unsafe`; keep an [`OnStream`] of the view around the launch.
            pub fn ptr(&self) -> DevicePtr {
                self.raw.ptr.offset((self.start * size_of::<T>()) as u64)
            }

            /// What the buffer was allocated as.
            pub fn label(&self) -> &'static str {
                self.raw.label
            }

            /// Orders work on `stream` into the buffer's life: what is submitted while the guard
            /// lives comes after all earlier uses, and before all later ones and the free.
            pub fn on(&self, stream: &Stream) -> Result<OnStream<'a>> {
                stream.same_device(&self.raw.device.inner.link)?;
                stream.core.follow(&self.raw.stream)?;
                Ok(OnStream {
                    home: &self.raw.stream,
                    stream: Arc::clone(&stream.core),
                })
            }

            /// A part of it.
            ///
            /// # Panics
            /// When the range does not lie within the view.
            pub fn slice(self, range: impl RangeBounds<usize>) -> Self {
                let (start, len) = resolve(range, self.len);
                Self {
                    start: self.start + start,
                    len,
                    ..self
                }
            }

            /// The first `mid` elements and the rest.
            ///
            /// # Panics
            /// When `mid` exceeds the length.
            pub fn split_at(self, mid: usize) -> (Self, Self) {
                assert!(
                    mid <= self.len,
                    "split at {mid} of a device view of {} elements",
                    self.len
                );
                let Self {
                    raw,
                    start,
                    len,
                    element,
                } = self;
                (
                    Self {
                        raw,
                        start,
                        len: mid,
                        element,
                    },
                    Self {
                        raw,
                        start: start + mid,
                        len: len - mid,
                        element,
                    },
                )
            }
        }
    };
}

view!(DeviceView);
view!(DeviceViewMut);

impl<T: Pod> DeviceViewMut<'_, T> {
    /// The same part for a shorter time.
    pub fn reborrow(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut {
            raw: self.raw,
            start: self.start,
            len: self.len,
            element: PhantomData,
        }
    }

    /// The same part, to read.
    pub fn as_view(&self) -> DeviceView<'_, T> {
        DeviceView {
            raw: self.raw,
            start: self.start,
            len: self.len,
            element: PhantomData,
        }
    }
}

impl<'a, T: Pod> From<&'a DeviceBuf<T>> for DeviceView<'a, T> {
    fn from(buffer: &'a DeviceBuf<T>) -> Self {
        buffer.view()
    }
}

impl<'a, T: Pod> From<&'a mut DeviceBuf<T>> for DeviceViewMut<'a, T> {
    fn from(buffer: &'a mut DeviceBuf<T>) -> Self {
        buffer.view_mut()
    }
}

/// While it lives, work on a stream is ordered into a buffer's life. See [`DeviceView::on`].
#[derive(Debug)]
pub struct OnStream<'a> {
    home: &'a Arc<StreamCore>,
    stream: Arc<StreamCore>,
}

impl Drop for OnStream<'_> {
    fn drop(&mut self) {
        if !self.home.link.usable() {
            return;
        }
        // Where the device cannot be told to wait, the host waits instead.
        if let Err(Error::Driver { error, .. }) = self.home.follow(&self.stream) {
            self.home.link.defer(error);
            let _ = self.stream.settle();
        }
    }
}

/// A buffer that is being filled for a compute section.
///
/// It can be written, and it can enter a section by value, with
/// [`Compute::enter`](crate::Compute::enter); it cannot be read or computed on outside. So the
/// section that uses it also frees it, before the permit is given up.
#[derive(Debug)]
pub struct Staged<T: Pod> {
    buffer: DeviceBuf<T>,
}

impl<T: Pod> Staged<T> {
    pub(crate) fn new(buffer: DeviceBuf<T>) -> Self {
        Self { buffer }
    }

    pub(crate) fn into_buffer(self) -> DeviceBuf<T> {
        self.buffer
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.buffer.bytes()
    }

    /// See [`DeviceBuf::mark_secret`].
    pub fn mark_secret(&mut self) {
        self.buffer.mark_secret();
    }

    /// Fills it from element `start` on, asynchronously, from a pinned buffer that the returned
    /// transfer owns meanwhile.
    ///
    /// # Panics
    /// When `start` exceeds the length.
    pub fn upload(&mut self, start: usize, source: PinnedBuf<T>) -> Result<Transfer<T>> {
        let stream = self.home();
        let end = start.saturating_add(source.len()).min(self.len());
        stream.upload(source, self.buffer.view_mut().slice(start..end))
    }

    /// Fills it whole from any host memory; returns when that has been read.
    pub fn upload_slice(&mut self, source: &[T]) -> Result<()> {
        let stream = self.home();
        stream.upload_slice(source, self.buffer.view_mut())
    }

    /// Sets every byte.
    pub fn fill(&mut self, value: u8) -> Result<()> {
        let stream = self.home();
        stream.fill(self.buffer.view_mut(), value)
    }

    fn home(&self) -> Stream {
        let raw = &self.buffer.raw;
        Stream {
            device: raw.device.clone(),
            core: Arc::clone(&raw.stream),
        }
    }
}
