//! Which points of a query there are, and for which variables.

use std::ops::Range;

use cuzk_formats::QueryVariables;
use cuzk_gpu_mem::{DeviceBuf, Stream};
use cuzk_kernels::sparse_terms::{self, BaseSet};

use super::points::{self, Bitmap};
use crate::error::Error;
use crate::key::KeyHeader;

/// Which variables have a point, on the device.
#[derive(Debug)]
pub(in super::super) enum Members {
    /// These.
    Range(Range<usize>),
    /// Those with a bit in a bitmap over all variables.
    Bitmap(Box<DeviceBitmap>),
}

/// A [`Bitmap`] on the device.
#[derive(Debug)]
pub(in super::super) struct DeviceBitmap {
    pub(in super::super) words: DeviceBuf<u32>,
    pub(in super::super) ranks: DeviceBuf<u32>,
}

/// A query whose sum is taken over witness values.
#[derive(Debug)]
pub(in super::super) struct SparseQuery {
    /// The variables it has points for.
    pub(in super::super) members: Members,
    /// How many.
    pub(in super::super) points: usize,
}

impl SparseQuery {
    /// The query's points as a list that begins at `first_point` of an array.
    pub(in super::super) fn set(&self, first_point: usize) -> BaseSet<'_> {
        let members = match &self.members {
            Members::Range(range) => sparse_terms::Members::Range(range.clone()),
            Members::Bitmap(bitmap) => sparse_terms::Members::Bitmap {
                words: bitmap.words.view(),
                ranks: bitmap.ranks.view(),
            },
        };
        BaseSet {
            members,
            // Arrays have fewer points than 2^30, or no plan would have been made.
            first_base: first_point as u32,
        }
    }

    /// Bytes on the device.
    pub(super) fn bytes(&self) -> u64 {
        match &self.members {
            Members::Range(_) => 0,
            Members::Bitmap(bitmap) => bitmap.words.bytes() + bitmap.ranks.bytes(),
        }
    }
}

/// Which points of a query there are.
pub(super) struct Query {
    /// Variables that may have a point, if no bitmap says more.
    range: Range<usize>,
    bitmap: Option<Bitmap>,
    /// Positions of the points that are not at infinity; `None` if all are not.
    pub(super) positions: Option<Vec<u32>>,
    pub(super) points: usize,
}

impl Query {
    /// A query of `count` points for the variables of `range`, or for those `chosen` among them, of
    /// `all` variables.
    fn new(
        all: usize,
        range: Range<usize>,
        chosen: Option<&[u32]>,
        count: usize,
        is_infinity: impl Fn(usize) -> bool + Sync,
    ) -> Result<Self, Error> {
        let positions = points::finite(count, is_infinity);
        let points = positions.as_ref().map_or(count, Vec::len);
        if let Some(chosen) = chosen
            && !chosen.is_sorted_by(|a, b| a < b)
        {
            return Err(Error::Circuit {
                what: "the variables of a query do not rise".into(),
            });
        }
        let variable = |position: usize| match chosen {
            Some(chosen) => chosen[position] as usize,
            None => range.start + position,
        };
        let bitmap = match &positions {
            _ if points == range.len() => None,
            Some(positions) => {
                let present = positions.iter().map(|position| *position as usize);
                Some(Bitmap::of(all, present.map(variable)))
            }
            None => Some(Bitmap::of(all, (0..count).map(variable))),
        };
        Ok(Self {
            range,
            bitmap,
            positions,
            points,
        })
    }

    pub(super) fn upload(&self, stream: &Stream) -> cuzk_gpu_mem::Result<SparseQuery> {
        let send = |words: &[u32]| {
            let mut buffer = stream
                .device()
                .alloc("query density", words.len(), stream)?;
            stream.upload_slice(words, &mut buffer)?;
            Ok::<_, cuzk_gpu_mem::Error>(buffer)
        };
        let members = match &self.bitmap {
            None => Members::Range(self.range.clone()),
            Some(bitmap) => Members::Bitmap(Box::new(DeviceBitmap {
                words: send(&bitmap.words)?,
                ranks: send(&bitmap.ranks)?,
            })),
        };
        Ok(SparseQuery {
            members,
            points: self.points,
        })
    }
}

/// A, B and L.
pub(super) fn queries(
    header: &KeyHeader,
    variables: Option<&QueryVariables>,
    a_is_infinity: impl Fn(usize) -> bool + Sync,
    b_is_infinity: impl Fn(usize) -> bool + Sync,
    l_is_infinity: impl Fn(usize) -> bool + Sync,
) -> Result<[Query; 3], Error> {
    let (all, first_in_l) = (header.num_variables, header.first_in_l());
    let chosen = |of: fn(&QueryVariables) -> &Vec<u32>| variables.map(|v| of(v).as_slice());
    let (in_a, in_b) = (chosen(|v| &v.a), chosen(|v| &v.b));
    Ok([
        Query::new(all, 0..all, in_a, header.points_in_a, a_is_infinity)?,
        Query::new(all, 0..all, in_b, header.points_in_b, b_is_infinity)?,
        Query::new(all, first_in_l..all, None, all - first_in_l, l_is_infinity)?,
    ])
}
