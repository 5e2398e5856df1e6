//! One view of bytes cut into typed parts.

use std::marker::PhantomData;

use super::DeviceViewMut;
use crate::Pod;
use crate::alloc::bytes_of;
use crate::error::{Error, Result};

/// Typed parts of a block of bytes, one after another, each aligned to [`Carve::ALIGN`].
///
/// An algorithm says how many bytes it wants ([`Carve::bytes_of`], summed) and is handed one view;
/// who owns the memory, and where it came from, is its caller's business.
///
/// ```
/// # use cuzk_gpu_mem::{Carve, Device, DeviceViewMut, Result};
/// fn halves(scratch: DeviceViewMut<'_, u8>) -> Result<()> {
///     let mut carve = Carve::new(scratch);
///     let sums: DeviceViewMut<'_, u64> = carve.take("sums", 100)?;
///     let offsets: DeviceViewMut<'_, u32> = carve.take("offsets", 101)?;
///     # drop((sums, offsets));
///     Ok(())
/// }
/// let bytes = Carve::bytes_of::<u64>(100) + Carve::bytes_of::<u32>(101);
/// assert_eq!(bytes, 1024 + 512);
/// ```
#[derive(Debug)]
pub struct Carve<'a> {
    rest: DeviceViewMut<'a, u8>,
    padding: usize,
}

impl<'a> Carve<'a> {
    /// What each part is aligned to: one transaction, and the start of an allocation.
    pub const ALIGN: usize = 256;

    /// Bytes that a part of `len` elements takes, saturating.
    pub const fn bytes_of<T: Pod>(len: usize) -> usize {
        let bytes = len.saturating_mul(size_of::<T>());
        match bytes.checked_next_multiple_of(Self::ALIGN) {
            Some(bytes) => bytes,
            None => usize::MAX,
        }
    }

    /// Parts of this view, which starts where an allocation does or at another multiple of the alignment.
    pub fn new(scratch: DeviceViewMut<'a, u8>) -> Self {
        let padding = scratch.offset.next_multiple_of(Self::ALIGN) - scratch.offset;
        Self {
            rest: scratch,
            padding,
        }
    }

    /// The next `len` elements. Their contents are undefined.
    ///
    /// # Errors
    /// [`Error::Length`] when less than that is left, [`Error::TooLarge`] for no address space.
    pub fn take<T: Pod>(
        &mut self,
        label: &'static str,
        len: usize,
    ) -> Result<DeviceViewMut<'a, T>> {
        let bytes = bytes_of::<T>(label, len)?;
        let end = self.padding.saturating_add(bytes);
        if end > self.rest.len {
            return Err(Error::Length {
                what: label,
                expected: len,
                found: self.rest.len.saturating_sub(self.padding) / size_of::<T>().max(1),
            });
        }
        let part = DeviceViewMut {
            raw: self.rest.raw,
            offset: self.rest.offset + self.padding,
            len,
            lent: self.rest.lent,
            element: PhantomData,
        };
        let next = self.rest.offset + end;
        self.padding = next.next_multiple_of(Self::ALIGN) - next;
        self.rest.offset = next;
        self.rest.len -= end;
        Ok(part)
    }

    /// What is left, to carve otherwise.
    pub fn rest(self) -> DeviceViewMut<'a, u8> {
        let skipped = self.padding.min(self.rest.len);
        self.rest.slice(skipped..)
    }
}
