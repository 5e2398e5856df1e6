//! Buffers that several streams read.

use std::slice;
use std::sync::{Arc, OnceLock};

use crate::Pod;
use crate::buffer::DeviceBuf;
use crate::error::Result;
use crate::stream::{Stream, StreamCore};
use crate::view::DeviceView;

/// A buffer that is only read from now on, by any number of streams at a time.
///
/// [`DeviceView::on`] orders each use of a buffer behind all earlier ones, reads included. Here a stream waits
/// for what filled the buffer once, before its first read, and the free waits for all that have read. The
/// streams that have read are kept until then.
#[derive(Debug)]
pub struct SharedBuf<T: Pod> {
    buffer: DeviceBuf<T>,
    readers: Link,
}

/// The rest of the list of readers, which only grows.
type Link = OnceLock<Box<Reader>>;

#[derive(Debug)]
struct Reader {
    stream: Arc<StreamCore>,
    next: Link,
}

impl<T: Pod> SharedBuf<T> {
    /// Shares what has been queued into `buffer` on its home stream.
    pub fn new(buffer: DeviceBuf<T>) -> Self {
        Self {
            buffer,
            readers: Link::new(),
        }
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.buffer.bytes()
    }

    /// All of it, for `stream` to read: [`DeviceView::on`] of the view orders nothing more.
    ///
    /// # Errors
    /// A stream of another device; the driver's.
    pub fn view(&self, stream: &Stream) -> Result<DeviceView<'_, T>> {
        let raw = &self.buffer.raw;
        stream.same_device(&raw.device.inner.link)?;
        let mut link = &self.readers;
        loop {
            match link.get() {
                Some(reader) if reader.stream.id == stream.core.id => {
                    let lent = slice::from_ref(&reader.stream.id);
                    return Ok(self.buffer.view().lent_to(lent));
                }
                Some(reader) => link = &reader.next,
                None => {
                    stream.core.follow(&raw.stream)?;
                    let reader = Reader {
                        stream: Arc::clone(&stream.core),
                        next: Link::new(),
                    };
                    // If another was put here meanwhile, this one comes behind it.
                    if link.set(Box::new(reader)).is_ok() {
                        raw.lend_to(&stream.core);
                    }
                }
            }
        }
    }
}
