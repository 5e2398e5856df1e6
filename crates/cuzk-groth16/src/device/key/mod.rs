//! A key's points, on a device or beside it.

mod points;
mod query;

use cuzk_field::{Affine, Fp, Fp2, G1Affine, G2Affine, Scalar};
use cuzk_formats::QueryVariables;
use cuzk_formats::prepared::{Reader, Section};
use cuzk_gpu_mem::{DeviceBuf, DeviceViewMut, Lent, PinnedBuf, Stream};
use cuzk_kernels::DeviceCurve;
use cuzk_msm::Bases;
use cuzk_msm::device::Multiples;

#[cfg(test)]
pub(super) use query::Members;
pub(super) use query::SparseQuery;

use super::error::Result;
use super::generator::Generator;
use super::gpu::Gpu;
use super::load::load_points;
use super::plan::{KeyPlan, Part, Placement};
use crate::key::{KeyHeader, KeyRef};
use crate::synth::KeyExponents;
use query::{Query, queries};

/// The points of one part of a key.
#[derive(Debug)]
pub(super) enum Points<F: DeviceCurve> {
    /// On the device.
    Device(DeviceBuf<Affine<F>>),
    /// On the device, in the buffer of A, B1 and L, from this one on.
    Shared(usize),
    /// In pinned memory.
    Host(PinnedBuf<Affine<F>>),
}

/// The points of a key as its plan places them, those at infinity left out.
#[derive(Debug)]
pub struct DeviceKey {
    header: KeyHeader,
    plan: KeyPlan,
    pub(super) a_query: SparseQuery,
    pub(super) b_query: SparseQuery,
    pub(super) l_query: SparseQuery,
    /// Those of A, B in G1 and L that are on the device, one after another.
    pub(super) sparse_g1: DeviceBuf<G1Affine>,
    pub(super) a: Points<Fp>,
    pub(super) b_g1: Points<Fp>,
    pub(super) l: Points<Fp>,
    pub(super) b_g2: Points<Fp2>,
    /// Followed by the multiples that the plan keeps.
    pub(super) h: Points<Fp>,
}

/// A key whose points on the device are lent to some streams: what one of them does with it waits for none of the others.
/// (A key has one home stream, which follows all of them at the end.)
#[derive(Debug)]
pub(super) struct LentKey<'k> {
    pub(super) key: &'k DeviceKey,
    /// Of A, B1 and L.
    pub(super) sparse_g1: Lent<'k, G1Affine>,
    pub(super) b_g2: Option<Lent<'k, G2Affine>>,
    pub(super) h: Option<Lent<'k, G1Affine>>,
}

/// Where points are written: on the device, or in pinned memory.
enum Target<'a, F: DeviceCurve> {
    Device(DeviceViewMut<'a, Affine<F>>),
    Host(&'a mut [Affine<F>]),
}

/// Where the points of all parts go.
struct Targets<'a> {
    a: Target<'a, Fp>,
    b_g1: Target<'a, Fp>,
    l: Target<'a, Fp>,
    b_g2: Target<'a, Fp2>,
    h: Target<'a, Fp>,
}

/// Bytes of the densities of a key's queries at most: bitmaps over all variables, and ranks.
pub(super) fn density_bytes(header: &KeyHeader) -> u64 {
    3 * 8 * header.num_variables.div_ceil(32) as u64
}

impl DeviceKey {
    /// Puts a key where `plan` says. `variables` says which ones a compact key's queries cover. Returns when the last
    /// copy has been submitted.
    ///
    /// # Errors
    /// [`crate::Error::Circuit`] for variables that do not rise; when the device or the pinned pool has no room.
    pub fn upload(
        gpu: &Gpu,
        plan: KeyPlan,
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
        let stream = gpu.keys();
        let mut empty = Self::empty(stream, header, plan, [&a, &b, &l])?;
        let targets = empty.targets();
        let parts: [(&dyn Bases<Fp>, _, _); 4] = [
            (key.a_query, a.positions.as_deref(), targets.a),
            (key.b_g1_query, b.positions.as_deref(), targets.b_g1),
            (key.l_query, l.positions.as_deref(), targets.l),
            (key.h_query, None, targets.h),
        ];
        for (bases, positions, target) in parts {
            points::place(stream, bases, positions, target)?;
        }
        let positions = b.positions.as_deref();
        points::place(stream, key.b_g2_query, positions, targets.b_g2)?;
        empty.make_multiples(gpu)?;
        Ok(empty)
    }

    /// Reads the points of a prepared key from its file to where `plan` says, verified and checked on the way. Infinity
    /// stays where it is.
    ///
    /// # Errors
    /// As [`load_points`] and [`DeviceKey::upload`].
    pub fn load(
        gpu: &Gpu,
        plan: KeyPlan,
        header: KeyHeader,
        variables: &QueryVariables,
        reader: &Reader<'_>,
    ) -> Result<Self> {
        let [a, b, l] = queries(&header, Some(variables), |_| false, |_| false, |_| false)?;
        let mut empty = Self::empty(gpu.keys(), header, plan, [&a, &b, &l])?;
        let targets = empty.targets();
        for (section, target) in [
            (Section::A, targets.a),
            (Section::B1, targets.b_g1),
            (Section::L, targets.l),
            (Section::H, targets.h),
        ] {
            load(gpu, reader, section, target)?;
        }
        load(gpu, reader, Section::B2, targets.b_g2)?;
        empty.make_multiples(gpu)?;
        Ok(empty)
    }

    /// Makes the points of a synthetic key on the device itself. `variables` says which ones a compact
    /// key's queries cover.
    ///
    /// # Errors
    /// As [`DeviceKey::upload`].
    pub fn generate(
        gpu: &Gpu,
        plan: KeyPlan,
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
        let mut empty = Self::empty(gpu.keys(), header, plan, [&a, &b, &l])?;
        let targets = empty.targets();
        let most = exponents.h.len().max(exponents.a.len());
        let mut g1 = Generator::new(gpu, &G1Affine::generator(), most)?;
        for (exponents, positions, target) in [
            (&exponents.a, a.positions.as_deref(), targets.a),
            (&exponents.b, b.positions.as_deref(), targets.b_g1),
            (&exponents.l, l.positions.as_deref(), targets.l),
            (&exponents.h, None, targets.h),
        ] {
            generate(&mut g1, exponents, positions, target)?;
        }
        drop(g1);
        let most = exponents.b.len();
        let mut g2 = Generator::new(gpu, &G2Affine::generator(), most)?;
        let positions = b.positions.as_deref();
        generate(&mut g2, &exponents.b, positions, targets.b_g2)?;
        drop(g2);
        empty.make_multiples(gpu)?;
        Ok(empty)
    }

    /// Room for the points of a key, and the rest of it.
    fn empty(
        stream: &Stream,
        header: KeyHeader,
        plan: KeyPlan,
        [a, b, l]: [&Query; 3],
    ) -> cuzk_gpu_mem::Result<Self> {
        let device = stream.device();
        let mut shared = 0;
        let mut sparse = |part, query: &Query| match plan.placement(part) {
            Placement::Device => {
                shared += query.points;
                Ok(Points::Shared(shared - query.points))
            }
            Placement::Host => host_points(stream, "key A, B1, L", query.points),
        };
        let (in_a, in_b, in_l) = (
            sparse(Part::A, a)?,
            sparse(Part::B1, b)?,
            sparse(Part::L, l)?,
        );
        let h = header.flavour.h_len(header.domain_size);
        let with_multiples = plan.h_multiples().map_or(h, Multiples::table_len);
        Ok(Self {
            a_query: a.upload(stream)?,
            b_query: b.upload(stream)?,
            l_query: l.upload(stream)?,
            sparse_g1: device.alloc("key A, B1, L", shared, stream)?,
            a: in_a,
            b_g1: in_b,
            l: in_l,
            b_g2: match plan.placement(Part::B2) {
                Placement::Device => Points::Device(device.alloc("key B2", b.points, stream)?),
                Placement::Host => host_points(stream, "key B2", b.points)?,
            },
            h: match plan.placement(Part::H) {
                Placement::Device => {
                    Points::Device(device.alloc("key H", with_multiples, stream)?)
                }
                Placement::Host => host_points(stream, "key H", h)?,
            },
            header,
            plan,
        })
    }

    /// Where the points of the parts go.
    fn targets(&mut self) -> Targets<'_> {
        let h_len = self.h_len();
        let Self {
            a_query,
            b_query,
            l_query,
            sparse_g1,
            a,
            b_g1,
            l,
            b_g2,
            h,
            ..
        } = self;
        let mut rest = Some(sparse_g1.view_mut());
        let mut shared = |query: &SparseQuery| {
            let all = rest
                .take()
                .unwrap_or_else(|| unreachable!("put back below"));
            let (these, others) = all.split_at(query.points);
            rest = Some(others);
            Target::Device(these)
        };
        let [a, b_g1, l] = [(a, a_query), (b_g1, b_query), (l, l_query)].map(
            |(points, query): (&mut Points<Fp>, &mut SparseQuery)| match points {
                Points::Shared(_) => shared(query),
                points => whole(points),
            },
        );
        Targets {
            a,
            b_g1,
            l,
            b_g2: whole(b_g2),
            h: match whole(h) {
                Target::Device(table) => Target::Device(table.slice(..h_len)),
                host @ Target::Host(_) => host,
            },
        }
    }

    /// Fills the rest of H's table, if its plan keeps multiples.
    fn make_multiples(&mut self, gpu: &Gpu) -> Result<()> {
        if let (Some(kept), Points::Device(table)) = (self.plan.h_multiples(), &mut self.h) {
            kept.make(gpu.launcher(), gpu.keys(), table.view_mut())?;
        }
        Ok(())
    }

    /// Points of H, L, A and of each B.
    pub(super) fn points(&self) -> [usize; 4] {
        let [l, a, b] = [&self.l_query, &self.a_query, &self.b_query].map(|query| query.points);
        [self.h_len(), l, a, b]
    }

    /// Points of H.
    pub(super) fn h_len(&self) -> usize {
        self.header.flavour.h_len(self.header.domain_size)
    }

    /// Lends the points on the device to the streams of a section.
    pub(super) fn lend<'k>(&'k self, streams: &[&Stream]) -> cuzk_gpu_mem::Result<LentKey<'k>> {
        fn lend<'k, F: DeviceCurve>(
            points: &'k Points<F>,
            streams: &[&Stream],
        ) -> cuzk_gpu_mem::Result<Option<Lent<'k, Affine<F>>>> {
            match points {
                Points::Device(points) => points.view().lend(streams).map(Some),
                Points::Shared(_) | Points::Host(_) => Ok(None),
            }
        }
        Ok(LentKey {
            key: self,
            sparse_g1: self.sparse_g1.view().lend(streams)?,
            b_g2: lend(&self.b_g2, streams)?,
            h: lend(&self.h, streams)?,
        })
    }

    /// The key but for its points.
    pub fn header(&self) -> &KeyHeader {
        &self.header
    }

    /// Where its parts lie.
    pub fn plan(&self) -> &KeyPlan {
        &self.plan
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> u64 {
        let queries = [&self.a_query, &self.b_query, &self.l_query];
        let densities: u64 = queries.iter().map(|query| query.bytes()).sum();
        self.sparse_g1.bytes() + bytes_of(&self.b_g2).0 + bytes_of(&self.h).0 + densities
    }

    /// Bytes in pinned memory.
    pub fn host_bytes(&self) -> u64 {
        let sparse = [&self.a, &self.b_g1, &self.l, &self.h].map(|points| bytes_of(points).1);
        sparse.iter().sum::<u64>() + bytes_of(&self.b_g2).1
    }
}

fn generate<F: DeviceCurve>(
    generator: &mut Generator<'_, F>,
    exponents: &[Scalar],
    positions: Option<&[u32]>,
    target: Target<'_, F>,
) -> Result<()> {
    match target {
        Target::Device(target) => generator.multiply(exponents, positions, target),
        Target::Host(target) => generator.multiply_to_host(exponents, positions, target),
    }
}

fn load<F: DeviceCurve>(
    gpu: &Gpu,
    reader: &Reader<'_>,
    section: Section,
    target: Target<'_, F>,
) -> Result<()> {
    match target {
        Target::Device(target) => load_points(gpu, gpu.keys(), reader, section, target),
        Target::Host(target) => Ok(reader.read_points(section, target)?),
    }
}

fn host_points<F: DeviceCurve>(
    stream: &Stream,
    label: &'static str,
    points: usize,
) -> cuzk_gpu_mem::Result<Points<F>> {
    let points = stream.device().host().pinned(label, points)?;
    Ok(Points::Host(points))
}

fn whole<F: DeviceCurve>(points: &mut Points<F>) -> Target<'_, F> {
    match points {
        Points::Device(points) => Target::Device(points.view_mut()),
        Points::Host(points) => Target::Host(points),
        Points::Shared(_) => unreachable!("only A, B1 and L share a buffer"),
    }
}

/// Bytes on the device, but for shared buffers, and in pinned memory.
fn bytes_of<F: DeviceCurve>(points: &Points<F>) -> (u64, u64) {
    match points {
        Points::Device(points) => (points.bytes(), 0),
        Points::Shared(_) => (0, 0),
        Points::Host(points) => (0, size_of_val::<[Affine<F>]>(points) as u64),
    }
}
