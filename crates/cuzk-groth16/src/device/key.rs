//! A key's points on a device.

use std::ops::Range;

use cuzk_field::{Fp, G1Affine, G2Affine};
use cuzk_gpu_mem::{DeviceBuf, DeviceViewMut, Stream};
use cuzk_msm::Bases;

use super::error::Result;
use super::generator::Generator;
use super::gpu::Gpu;
use super::points::{self, Bitmap};
use crate::error::Error;
use crate::key::{KeyHeader, KeyRef};
use crate::synth::KeyExponents;
use cuzk_formats::QueryVariables;

/// A query whose sum is taken over witness values, and where its points begin.
#[derive(Debug)]
pub(super) struct SparseQuery {
    /// The variables it has points for.
    pub(super) members: Members,
    /// Where its points begin in the buffer.
    pub(super) first_point: usize,
    /// Points.
    pub(super) points: usize,
}

/// Which variables have a point.
#[derive(Debug)]
pub(super) enum Members {
    /// These.
    Range(Range<usize>),
    /// Those with a bit in a bitmap over all variables.
    Bitmap(Box<DeviceBitmap>),
}

/// A [`Bitmap`] on the device.
#[derive(Debug)]
pub(super) struct DeviceBitmap {
    pub(super) words: DeviceBuf<u32>,
    pub(super) ranks: DeviceBuf<u32>,
}

/// The points of a key on a device, those at infinity left out.
#[derive(Debug)]
pub struct DeviceKey {
    header: KeyHeader,
    /// The points of A, B in G1 and L, one after another.
    pub(super) sparse_g1: DeviceBuf<G1Affine>,
    pub(super) b_g2: DeviceBuf<G2Affine>,
    pub(super) h: DeviceBuf<G1Affine>,
    pub(super) a: SparseQuery,
    pub(super) b: SparseQuery,
    pub(super) l: SparseQuery,
}

/// Which points of a query there are.
struct Query {
    /// Variables that may have a point, if no bitmap says more.
    range: Range<usize>,
    bitmap: Option<Bitmap>,
    /// Positions of the points that are not at infinity; `None` if all are not.
    positions: Option<Vec<u32>>,
    points: usize,
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

    fn upload(&self, stream: &Stream, first_point: usize) -> cuzk_gpu_mem::Result<SparseQuery> {
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
            first_point,
            points: self.points,
        })
    }
}

/// Bytes of `bits` as bitmap and ranks.
fn bitmap_bytes(bits: usize) -> u64 {
    8 * bits.div_ceil(32) as u64
}

impl DeviceKey {
    /// Bytes on the device that a key takes at most.
    pub fn device_bytes(header: &KeyHeader) -> u64 {
        let private = header.num_variables - header.first_in_l();
        let h = header.flavour.h_len(header.domain_size);
        let g1 = (header.points_in_a + header.points_in_b + private + h) * size_of::<G1Affine>();
        let g2 = header.points_in_b * size_of::<G2Affine>();
        (g1 + g2) as u64 + 3 * bitmap_bytes(header.num_variables)
    }

    /// Uploads a key. `variables` says which ones a compact key's queries cover. Returns when the last
    /// copy has been submitted.
    ///
    /// # Errors
    /// [`Error::Circuit`] for variables that do not rise; when the device has no room.
    pub fn upload(
        stream: &Stream,
        key: &KeyRef<'_>,
        variables: Option<&QueryVariables>,
    ) -> Result<Self> {
        let header = key.header();
        let [a, b, l] = queries(
            &header,
            variables,
            |i| key.a_query.is_infinity(i),
            |i| key.b_g1_query.is_infinity(i) && key.b_g2_query.is_infinity(i),
            |i| key.l_query.is_infinity(i),
        )?;
        let mut empty = Self::empty(stream, header, [&a, &b, &l])?;
        let [to_a, to_b, to_l] = empty.sparse_g1();
        let parts: [(&dyn Bases<Fp>, _, _); 3] = [
            (key.a_query, &a, to_a),
            (key.b_g1_query, &b, to_b),
            (key.l_query, &l, to_l),
        ];
        for (bases, query, target) in parts {
            points::upload(stream, bases, query.positions.as_deref(), target)?;
        }
        let positions = b.positions.as_deref();
        points::upload(stream, key.b_g2_query, positions, empty.b_g2.view_mut())?;
        points::upload(stream, key.h_query, None, empty.h.view_mut())?;
        Ok(empty)
    }

    /// Makes the points of a synthetic key on the device itself. `variables` says which ones a compact
    /// key's queries cover.
    ///
    /// # Errors
    /// As [`DeviceKey::upload`].
    pub fn generate(
        gpu: &Gpu,
        exponents: &KeyExponents,
        variables: Option<&QueryVariables>,
    ) -> Result<Self> {
        let header = exponents.header();
        let [a, b, l] = queries(
            &header,
            variables,
            |i| exponents.a[i].is_zero(),
            |i| exponents.b[i].is_zero(),
            |i| exponents.l[i].is_zero(),
        )?;
        let mut empty = Self::empty(gpu.upload(), header, [&a, &b, &l])?;
        let most = exponents.h.len().max(exponents.a.len());
        let mut g1 = Generator::new(gpu, &G1Affine::generator(), most)?;
        let [to_a, to_b, to_l] = empty.sparse_g1();
        for (exponents, query, target) in [
            (&exponents.a, &a, to_a),
            (&exponents.b, &b, to_b),
            (&exponents.l, &l, to_l),
        ] {
            g1.multiply(exponents, query.positions.as_deref(), target)?;
        }
        g1.multiply(&exponents.h, None, empty.h.view_mut())?;
        drop(g1);
        let mut g2 = Generator::new(gpu, &G2Affine::generator(), exponents.b.len())?;
        let positions = b.positions.as_deref();
        g2.multiply(&exponents.b, positions, empty.b_g2.view_mut())?;
        drop(g2);
        Ok(empty)
    }

    /// Room for the points of a key, and the rest of it.
    fn empty(
        stream: &Stream,
        header: KeyHeader,
        [a, b, l]: [&Query; 3],
    ) -> cuzk_gpu_mem::Result<Self> {
        let device = stream.device();
        let sparse = a.points + b.points + l.points;
        let h = header.flavour.h_len(header.domain_size);
        Ok(Self {
            sparse_g1: device.alloc("key A, B1, L", sparse, stream)?,
            b_g2: device.alloc("key B2", b.points, stream)?,
            h: device.alloc("key H", h, stream)?,
            a: a.upload(stream, 0)?,
            b: b.upload(stream, a.points)?,
            l: l.upload(stream, a.points + b.points)?,
            header,
        })
    }

    /// Where the points of A, B in G1 and L go.
    fn sparse_g1(&mut self) -> [DeviceViewMut<'_, G1Affine>; 3] {
        let (a, rest) = self.sparse_g1.view_mut().split_at(self.a.points);
        let (b, l) = rest.split_at(self.b.points);
        [a, b, l]
    }

    /// The key but for its points.
    pub fn header(&self) -> &KeyHeader {
        &self.header
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> u64 {
        let densities = [&self.a, &self.b, &self.l].map(|query| match &query.members {
            Members::Range(_) => 0,
            Members::Bitmap(bitmap) => bitmap.words.bytes() + bitmap.ranks.bytes(),
        });
        let points = self.sparse_g1.bytes() + self.b_g2.bytes() + self.h.bytes();
        points + densities.iter().sum::<u64>()
    }
}

/// A, B and L.
fn queries(
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
