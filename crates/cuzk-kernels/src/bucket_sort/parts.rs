//! What is sorted: scalar vectors, and the bases that go with them.

use std::ops::Range;

use cuzk_field::{Fr, Scalar};
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use crate::Ptr;
use crate::error::Result;

/// A vector of scalars on the device, 32 bytes each.
#[derive(Clone, Copy, Debug)]
pub enum Scalars<'a> {
    /// Integers below r.
    Canonical(DeviceView<'a, Scalar>),
    /// Field elements in Montgomery form.
    Montgomery(DeviceView<'a, Fr>),
    /// What [`Part::recoded`] was given, for the same windows: eight planes of one word of each.
    Recoded(DeviceView<'a, u32>),
}

impl<'a> Scalars<'a> {
    /// How many scalars.
    pub fn len(&self) -> usize {
        match self {
            Self::Canonical(view) => view.len(),
            Self::Montgomery(view) => view.len(),
            Self::Recoded(view) => view.len() / 8,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those from `range`.
    ///
    /// # Panics
    /// When the range does not lie within them, or when they are recoded.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Self {
        match self {
            Self::Canonical(view) => Self::Canonical(view.slice(range)),
            Self::Montgomery(view) => Self::Montgomery(view.slice(range)),
            Self::Recoded(_) => panic!("planes of recoded scalars have no slices"),
        }
    }

    /// Address and form, as the kernels take them.
    pub(crate) fn words(&self) -> (Ptr<u32>, u32) {
        match self {
            Self::Canonical(view) => (Ptr::words(view), 0),
            Self::Montgomery(view) => (Ptr::words(view), 1),
            Self::Recoded(view) => (Ptr::words(view), 2),
        }
    }

    /// Address and form of scalars that are not recoded.
    pub(crate) fn elements(&self) -> Option<(Ptr<Fr>, u32)> {
        match self {
            Self::Canonical(view) => Some((Ptr::elements(view), 0)),
            Self::Montgomery(view) => Some((view.into(), 1)),
            Self::Recoded(_) => None,
        }
    }

    pub(crate) fn on(&self, stream: &Stream) -> Result<cuzk_gpu_mem::OnStream<'a>> {
        Ok(match self {
            Self::Canonical(view) => view.on(stream)?,
            Self::Montgomery(view) => view.on(stream)?,
            Self::Recoded(view) => view.on(stream)?,
        })
    }
}

/// Which base goes with scalar i of a part.
#[derive(Clone, Copy, Debug)]
pub enum BaseIndices<'a> {
    /// This one + i.
    From(u32),
    /// What the list says. Its values are the caller's promise; they go into the entries as they are,
    /// so each is below 2^31.
    Listed(DeviceView<'a, u32>),
}

/// The sizes of a part: one scalar vector, or some windows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartShape {
    /// How many scalars.
    pub scalars: usize,
    /// Which sets of buckets of [`crate::windows::Windows`]: with one group, which windows.
    pub windows: Range<u32>,
}

/// What a part consists of.
#[derive(Debug)]
pub struct Part<'a> {
    /// The scalars.
    pub scalars: Scalars<'a>,
    /// Their bases.
    pub bases: BaseIndices<'a>,
    /// How far a multiple of a base is behind the one before it, where windows are in several groups.
    pub multiple_stride: u32,
    /// Gets the scalars recoded, eight words for each. With more than two windows that is faster than
    /// recoding for each, and other sorts may take them from there.
    pub recoded: Option<DeviceViewMut<'a, u32>>,
}

/// Where sorted digits go.
#[derive(Debug)]
pub struct SortTarget<'a> {
    /// What the offsets begin with.
    pub first_entry: u32,
    /// An entry is a base's index, with bit 31 set where the base is subtracted. There are
    /// [`super::SortShape::max_entries`] elements, of which `offsets[buckets] - first_entry` are written.
    pub entries: DeviceViewMut<'a, u32>,
    /// The entries of bucket b are those from `offsets[b] - first_entry` to
    /// `offsets[b + 1] - first_entry`; one element more than there are buckets.
    pub offsets: DeviceViewMut<'a, u32>,
}
