//! Parts of device buffers: typed views, and views lent to several streams.

mod carve;

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::Pod;
use crate::alloc::RawBlock;
use crate::buffer::DeviceBuf;
use crate::driver::{DevicePtr, StreamId};
use crate::error::Result;
use crate::stream::{Stream, StreamCore};

pub use self::carve::Carve;

/// A part of a buffer, to read.
#[derive(Debug)]
pub struct DeviceView<'a, T: Pod> {
    raw: &'a RawBlock,
    /// Bytes before its first element.
    offset: usize,
    len: usize,
    lent: &'a [StreamId],
    element: PhantomData<&'a T>,
}

/// A part of a buffer, to write. At most one exists for any element.
#[derive(Debug)]
pub struct DeviceViewMut<'a, T: Pod> {
    raw: &'a RawBlock,
    offset: usize,
    len: usize,
    lent: &'a [StreamId],
    element: PhantomData<&'a mut T>,
}

impl<'a, T: Pod> DeviceView<'a, T> {
    /// The same, ordered already for `streams`.
    pub(crate) fn lent_to(self, streams: &'a [StreamId]) -> Self {
        Self {
            lent: streams,
            ..self
        }
    }
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
    ($view:ident, $lent:ident) => {
        impl<'a, T: Pod> $view<'a, T> {
            pub(crate) fn whole(raw: &'a RawBlock, len: usize) -> Self {
                Self {
                    raw,
                    offset: 0,
                    len,
                    lent: &[],
                    element: PhantomData,
                }
            }

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
                self.raw.ptr.offset(self.offset as u64)
            }

            /// What the buffer was allocated as.
            pub fn label(&self) -> &'static str {
                self.raw.label
            }

            /// Orders work on `stream` into the buffer's life: what is submitted while the guard
            /// lives comes after all earlier uses, and before all later ones and the free. A view
            /// lent to `stream` is ordered already.
            pub fn on(&self, stream: &Stream) -> Result<OnStream<'a>> {
                stream.same_device(&self.raw.device.inner.link)?;
                if self.lent.contains(&stream.core.id) {
                    return Ok(OnStream { ordered: None });
                }
                OnStream::new(&self.raw.stream, stream)
            }

            /// Orders work on each of `streams` into the buffer's life once, for as long as the
            /// result lives: between them the views made from it have no order but what the caller
            /// sets with events, so that several streams can work in parts of one buffer at a
            /// time. Where the caller sets none, values may be stale or torn; memory stays valid.
            pub fn lend(self, streams: &[&Stream]) -> Result<$lent<'a, T>> {
                let mut loans = Vec::with_capacity(streams.len());
                for stream in streams {
                    loans.push(Loan::new(self.raw, self.on(stream)?));
                }
                Ok($lent {
                    streams: streams.iter().map(|stream| stream.core.id).collect(),
                    _loans: loans,
                    view: self,
                })
            }

            /// A part of it.
            ///
            /// # Panics
            /// When the range does not lie within the view.
            pub fn slice(self, range: impl RangeBounds<usize>) -> Self {
                let (start, len) = resolve(range, self.len);
                Self {
                    offset: self.offset + start * size_of::<T>(),
                    len,
                    ..self
                }
            }

            /// The same memory as elements of another type of the same size.
            pub fn cast<U: Pod>(self) -> $view<'a, U> {
                const { assert!(size_of::<T>() == size_of::<U>()) };
                $view {
                    raw: self.raw,
                    offset: self.offset,
                    len: self.len,
                    lent: self.lent,
                    element: PhantomData,
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
                    offset,
                    len,
                    lent,
                    element,
                } = self;
                let part = |offset, len| Self {
                    raw,
                    offset,
                    len,
                    lent,
                    element,
                };
                (
                    part(offset, mid),
                    part(offset + mid * size_of::<T>(), len - mid),
                )
            }
        }
    };
}

view!(DeviceView, Lent);
view!(DeviceViewMut, LentMut);

impl<'a, T: Pod> DeviceViewMut<'a, T> {
    /// The same part for a shorter time.
    pub fn reborrow(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut { ..*self }
    }

    /// The same part, to read.
    pub fn as_view(&self) -> DeviceView<'_, T> {
        let Self {
            raw,
            offset,
            len,
            lent,
            ..
        } = *self;
        DeviceView {
            raw,
            offset,
            len,
            lent,
            element: PhantomData,
        }
    }

    /// The same part, to read and no longer to write, for as long as it was borrowed.
    pub fn into_view(self) -> DeviceView<'a, T> {
        DeviceView {
            raw: self.raw,
            offset: self.offset,
            len: self.len,
            lent: self.lent,
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

/// One stream's part in a loan. The buffer knows of it, so that its free comes after what the stream has
/// done even if the loan is never given back (`mem::forget`).
#[derive(Debug)]
struct Loan<'a> {
    raw: &'a RawBlock,
    guard: Option<OnStream<'a>>,
}

impl<'a> Loan<'a> {
    fn new(raw: &'a RawBlock, guard: OnStream<'a>) -> Self {
        if let Some((_, stream)) = &guard.ordered {
            raw.lend_to(stream);
        }
        Self {
            raw,
            guard: Some(guard),
        }
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let Some(guard) = self.guard.take() else {
            return;
        };
        let stream = guard.ordered.as_ref().map(|(_, stream)| Arc::clone(stream));
        drop(guard); // The home stream follows.
        if let Some(stream) = stream {
            self.raw.given_back_by(&stream);
        }
    }
}

/// A view lent to several streams, to read. See [`DeviceView::lend`].
#[derive(Debug)]
pub struct Lent<'a, T: Pod> {
    view: DeviceView<'a, T>,
    streams: Box<[StreamId]>,
    _loans: Vec<Loan<'a>>,
}

impl<T: Pod> Lent<'_, T> {
    /// The view.
    pub fn view(&self) -> DeviceView<'_, T> {
        DeviceView {
            lent: &self.streams,
            ..self.view
        }
    }
}

/// A view lent to several streams, to write. See [`DeviceViewMut::lend`].
#[derive(Debug)]
pub struct LentMut<'a, T: Pod> {
    view: DeviceViewMut<'a, T>,
    streams: Box<[StreamId]>,
    _loans: Vec<Loan<'a>>,
}

impl<T: Pod> LentMut<'_, T> {
    /// The view.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut {
            lent: &self.streams,
            ..self.view.reborrow()
        }
    }
}

/// While it lives, work on a stream is ordered into a buffer's life. See [`DeviceView::on`].
#[derive(Debug)]
pub struct OnStream<'a> {
    ordered: Option<(&'a Arc<StreamCore>, Arc<StreamCore>)>,
}

impl<'a> OnStream<'a> {
    fn new(home: &'a Arc<StreamCore>, stream: &Stream) -> Result<Self> {
        stream.core.follow(home)?;
        Ok(Self {
            ordered: Some((home, Arc::clone(&stream.core))),
        })
    }
}

impl Drop for OnStream<'_> {
    fn drop(&mut self) {
        let Some((home, stream)) = &self.ordered else {
            return;
        };
        if home.link.usable() {
            home.follow_or_settle(stream);
        }
    }
}
