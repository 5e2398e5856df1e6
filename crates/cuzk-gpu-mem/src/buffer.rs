//! Typed buffers on the device.
//!
//! Three owners differ in where they may go. [`DeviceBuf`] lives across compute sections.
//! [`Staged`] is filled outside and enters one section, by value. [`Scoped`](crate::Scoped) lives
//! within a section and cannot leave it.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::PinnedBuf;
use crate::Pod;
use crate::alloc::RawBlock;
use crate::device::Device;
use crate::error::Result;
use crate::stream::Stream;
use crate::transfer::Transfer;
use crate::view::{DeviceView, DeviceViewMut};

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
        DeviceView::whole(&self.raw, self.len)
    }

    /// All of it, to write.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut::whole(&self.raw, self.len)
    }

    /// The buffer holds a secret: it is zeroed on the device before its memory can be reused.
    pub fn mark_secret(&mut self) {
        self.raw.secret_bytes = self.raw.bytes;
    }

    /// What of a secret lay from this element on has been overwritten, by work that is ordered before all that the home
    /// stream is given from now on: where other streams are idle, that need not be done at the end of the buffer's life.
    pub fn mark_wiped_from(&mut self, element: usize) {
        let bytes = element.saturating_mul(size_of::<T>()) as u64;
        self.raw.secret_bytes = self.raw.secret_bytes.min(bytes);
    }

    /// Makes `stream` the buffer's home: it waits for the former home, and the buffer will be freed
    /// on it.
    pub fn move_to(&mut self, stream: &Stream) -> Result<()> {
        stream.core.link.ready()?;
        stream.same_device(&self.raw.device.inner.link)?;
        self.raw.move_to(&stream.core)
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
