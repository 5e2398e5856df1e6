//! Dense sums: bases and scalars in, one point a scalar vector out.

use std::ops::Range;
use std::sync::Arc;

use cuzk_field::{Affine, Xyzz};
use cuzk_gpu_mem::{Carve, DeviceInfo, DeviceView, DeviceViewMut, Footprint, PinnedBuf, Stream};
use cuzk_kernels::Launcher;
use cuzk_kernels::bucket_sort::{BaseIndices, Scalars};
use cuzk_kernels::windows::Windows;

use super::DeviceCurve;
use super::accumulate::{AccumulatePlan, Streams};
use super::batches::Batches;
use super::error::{Error, Result};
use super::layout::{Keep, Layout, Order, Terms};
use super::multiples::Multiples;
use super::pending::Pending;
use super::run::{Arrays, LentScalars, Queue, Vector, check, run};
use super::tuning::{self, Tuning};

/// Bases of one sum at most: indices of entries have 30 bits.
pub(super) const MAX_BASES: usize = (1 << 30) - 1;

/// How sums over one list of bases are computed, one for each of several scalar vectors: data, made from sizes.
#[derive(Debug)]
pub struct MsmPlan<F: DeviceCurve> {
    /// Terms of a sum.
    pub(super) bases: usize,
    /// Points that a run takes: with their multiples, if there are any.
    pub(super) points: usize,
    pub(super) vectors: usize,
    /// The layout of all bases, or of the largest batch.
    pub(super) layout: Layout<F>,
    /// Of streamed bases.
    pub(super) streamed: Option<Streamed<F>>,
    pub(super) streams: Option<Arc<Streams>>,
    /// From how many bytes on runs over resident bases wipe what they can of their scratch.
    pub(super) wipes: Option<usize>,
}

/// How streamed bases are cut, and the layout of each batch.
#[derive(Debug)]
pub(super) struct Streamed<F> {
    pub(super) batches: Batches,
    pub(super) layouts: Vec<Layout<F>>,
}

/// Fewer bytes are not worth launches of their own.
const LEAST_WIPE_BYTES: usize = 64 << 20;

pub(super) fn order(streams: Option<&Arc<Streams>>) -> Order {
    match streams {
        Some(_) => Order::Pipeline,
        None => Order::Sequence,
    }
}

impl<F: DeviceCurve> MsmPlan<F> {
    /// Sums over bases that are on the device, in at most `scratch_limit` bytes beside bases and scalars. All work is on
    /// the stream given to [`Self::run`].
    ///
    /// # Errors
    /// [`Error::TooLittleScratch`] when nothing works in so few bytes, [`Error::TooLarge`] from 2^30 bases on.
    pub fn resident(
        device: &DeviceInfo,
        bases: usize,
        vectors: usize,
        scratch_limit: u64,
    ) -> Result<Self> {
        Self::resident_beside(None, device, bases, vectors, scratch_limit)
    }

    /// The same with streams of their own for what may run beside each other, which is a tenth faster for large sums and
    /// takes twice the scratch; the stream given to [`Self::run`] waits for them. With too little scratch they are left
    /// alone.
    ///
    /// # Errors
    /// As [`Self::resident`].
    pub fn resident_beside(
        streams: Option<&Arc<Streams>>,
        device: &DeviceInfo,
        bases: usize,
        vectors: usize,
        scratch_limit: u64,
    ) -> Result<Self> {
        let tuning = tuning::tuning(device, bases);
        Self::resident_of(streams, device, [bases, vectors], &tuning, scratch_limit)
    }

    /// The same over bases and their multiples, which [`Multiples::make`] makes: [`Self::run`] takes the whole table.
    ///
    /// # Errors
    /// As [`Self::resident`].
    pub fn with_multiples(
        streams: Option<&Arc<Streams>>,
        device: &DeviceInfo,
        multiples: &Multiples<F>,
        vectors: usize,
        scratch_limit: u64,
    ) -> Result<Self> {
        let tuning = Tuning::of(multiples.windows());
        let sizes = [multiples.bases(), vectors];
        Self::resident_of(streams, device, sizes, &tuning, scratch_limit)
    }

    /// The same with other windows, and other lists: for measurements.
    #[doc(hidden)]
    pub fn resident_tuned(
        streams: Option<&Arc<Streams>>,
        device: &DeviceInfo,
        [bases, vectors]: [usize; 2],
        windows: u32,
        list_entries: usize,
        scratch_limit: u64,
    ) -> Result<Self> {
        let tuning = Tuning {
            windows: Windows::new(windows),
            list_entries,
        };
        Self::resident_of(streams, device, [bases, vectors], &tuning, scratch_limit)
    }

    fn resident_of(
        streams: Option<&Arc<Streams>>,
        device: &DeviceInfo,
        [bases, vectors]: [usize; 2],
        tuning: &Tuning,
        scratch_limit: u64,
    ) -> Result<Self> {
        check_size(bases)?;
        let limit = usize::try_from(scratch_limit).unwrap_or(usize::MAX);
        let terms = Terms {
            vectors: vec![bases; vectors],
            ones: Vec::new(),
        };
        let (keep, order) = (Keep::UntilReduced, order(streams));
        Ok(Self {
            bases,
            points: bases * tuning.windows.multiples() as usize,
            vectors,
            layout: Layout::new(device, tuning, &terms, keep, order, limit)?,
            streamed: None,
            streams: streams.cloned(),
            wipes: None,
        })
    }

    /// The same plan for secret scalars: [`Self::run_lent`] overwrites most of the scratch with zeros beside the reduction of
    /// the buckets, which leaves the device idle for the most part; [`Pending::wiped_from`] says how much. Only where the
    /// plan has streams of its own.
    #[must_use]
    pub fn wiping(self) -> Self {
        self.wiping_at_least(LEAST_WIPE_BYTES)
    }

    /// The same where that is so many bytes: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn wiping_at_least(self, bytes: usize) -> Self {
        Self {
            wipes: Some(bytes),
            ..self
        }
    }

    /// Scratch on the device and the pinned result, in bytes.
    pub fn footprint(&self) -> Footprint {
        let batches = self.streamed.as_ref();
        let batches = batches.map_or(0, |streamed| streamed.batches.buffer_bytes::<F>());
        Footprint {
            device: (batches + self.layout.scratch_bytes()) as u64,
            pinned: (self.result_len() * size_of::<Xyzz<F>>()) as u64,
            host: 0,
        }
    }

    /// Elements of the pinned result.
    pub fn result_len(&self) -> usize {
        self.layout.labels.len()
    }

    /// How scalars are cut: windows, and bits of the widest.
    pub fn windows(&self) -> (u32, u32) {
        (self.layout.windows.count(), self.layout.windows.width())
    }

    /// How many parts the work is cut into: slabs of windows, and slabs of entries of a list.
    pub fn slabs(&self) -> (usize, usize) {
        let entries = self.layout.plans().map(AccumulatePlan::slab_count);
        (self.layout.slabs.len(), entries.max().unwrap_or(0))
    }

    /// The streams that are in use beside the one given to [`Self::run`].
    pub(super) fn streams(&self) -> Option<&Streams> {
        self.layout.pipeline.as_ref().and(self.streams.as_deref())
    }

    /// Computes `sum_i scalars[v][i] bases[i]` for each v. `bases` are canonical points of the group of order r, equal,
    /// opposite and infinite ones among them; `scratch` has the bytes of [`Self::footprint`], `result` the elements of
    /// [`Self::result_len`].
    pub fn run(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        bases: DeviceView<'_, Affine<F>>,
        scalars: &[Scalars<'_>],
        scratch: DeviceViewMut<'_, u8>,
        result: PinnedBuf<Xyzz<F>>,
    ) -> Result<Pending<F>> {
        let mut scratch = scratch.lend(&self.streams_beside(stream))?;
        self.run_lent(launcher, stream, bases, scalars, scratch.view_mut(), result)
    }

    /// The streams that a run on `stream` is on.
    pub fn streams_beside<'s>(&'s self, stream: &'s Stream) -> Vec<&'s Stream> {
        let own = self.streams().into_iter().flat_map(Streams::all);
        std::iter::once(stream).chain(own).collect()
    }

    /// [`Self::run`] in scratch that is lent to [`Self::streams_beside`]. `stream` is not made to wait for what other streams
    /// do in it behind the sum; giving the loan back is.
    pub fn run_lent(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        bases: DeviceView<'_, Affine<F>>,
        scalars: &[Scalars<'_>],
        mut scratch: DeviceViewMut<'_, u8>,
        result: PinnedBuf<Xyzz<F>>,
    ) -> Result<Pending<F>> {
        check("bases", self.points, bases.len())?;
        self.check_scalars(scalars)?;
        let streams = self.streams();
        // Bases and scalars are given back before anything is wiped: their home streams wait for what is on the others then.
        let pending = {
            let all = self.streams_beside(stream);
            let bases = bases.lend(&all)?;
            let scalars = lend_scalars(scalars, &all)?;
            let vectors = vectors_of(&scalars, 0..self.bases);
            let arrays = Arrays::carve(&self.layout, &mut Carve::new(scratch.reborrow()))?;
            let (queue, bases) = (Queue { launcher, stream }, bases.view());
            run(
                &self.layout,
                queue,
                streams,
                bases,
                &vectors,
                arrays,
                result,
            )?
        };
        let kept = self.layout.bytes_beside_reductions();
        match (streams, self.wipes) {
            (Some(streams), Some(least)) if scratch.len() >= kept + least => {
                let (len, mut carve) = (scratch.len(), Carve::new(scratch));
                carve.take::<u8>("what reductions use", kept)?;
                let rest = carve.rest();
                let first = len - rest.len();
                streams.wipe(rest)?;
                Ok(pending.with_wiped_from(first))
            }
            _ => Ok(pending),
        }
    }

    pub(super) fn check_scalars(&self, scalars: &[Scalars<'_>]) -> Result<()> {
        check("scalar vectors", self.vectors, scalars.len())?;
        let mut lens = scalars.iter().map(Scalars::len);
        lens.try_for_each(|len| check("scalars", self.bases, len))
    }
}

pub(super) fn lend_scalars<'a>(
    scalars: &[Scalars<'a>],
    streams: &[&Stream],
) -> Result<Vec<LentScalars<'a>>> {
    let lent = scalars
        .iter()
        .map(|scalars| LentScalars::new(*scalars, streams));
    lent.collect()
}

/// A range of each vector; base i of the range is base i of what the kernels see.
pub(super) fn vectors_of<'a>(
    scalars: &'a [LentScalars<'_>],
    range: Range<usize>,
) -> Vec<Vector<'a>> {
    let vectors = scalars.iter().map(|scalars| Vector {
        scalars: scalars.scalars().slice(range.clone()),
        bases: BaseIndices::From(0),
        // Sums have fewer terms than 2^30.
        multiple_stride: scalars.scalars().len() as u32,
    });
    vectors.collect()
}

pub(super) fn check_size(bases: usize) -> Result<()> {
    if bases <= MAX_BASES {
        return Ok(());
    }
    Err(Error::TooLarge {
        what: "bases",
        most: MAX_BASES,
        found: bases,
    })
}

#[cfg(test)]
mod tests {
    use super::super::slab::Reduction;
    use super::*;
    use crate::device::accumulate::PipelineShape;
    use cuzk_field::Fp;
    use cuzk_gpu_mem::driver::SimDriver;
    use cuzk_gpu_mem::{Device, Settings};

    /// Few windows have so many buckets that their reduction works in the pipeline's memory: that part is not wiped beside it.
    #[test]
    fn what_reductions_use_is_not_wiped_beside_them() {
        let device = Device::with_driver(Arc::new(SimDriver::new(1 << 30)), Settings::default());
        let device = device.unwrap();
        let streams = Arc::new(Streams::new(&device).unwrap());
        let info = DeviceInfo {
            multiprocessors: 132,
            ..device.info().clone()
        };
        for (windows, in_pipeline) in [(12, true), (13, true), (20, false)] {
            let plan = MsmPlan::<Fp>::resident_tuned(
                Some(&streams),
                &info,
                [1 << 18, 1],
                windows,
                1 << 26,
                u64::MAX,
            );
            let layout = plan.unwrap().layout;
            let before = layout.scratch_bytes() - Carve::bytes_of::<u8>(layout.pipeline_bytes());
            let of_reductions = layout.reductions.iter().map(Reduction::scratch_bytes);
            let largest = of_reductions.max().unwrap();
            assert_eq!(
                largest > layout.work_bytes,
                in_pipeline,
                "{windows} windows"
            );
            let kept = layout.bytes_beside_reductions();
            match in_pipeline {
                true => assert!(kept >= before + largest && kept < layout.scratch_bytes()),
                false => assert_eq!(kept, before),
            }
        }
    }

    /// Scratch is wiped after each sum, so what is not used costs time.
    #[test]
    fn a_pipeline_has_memory_for_the_slabs_there_are() {
        let driver = Arc::new(SimDriver::new(1 << 30));
        let device = Device::with_driver(driver, Settings::default()).unwrap();
        let streams = Arc::new(Streams::new(&device).unwrap());
        // Few terms are one slab; windows of 2^24 - 1 terms, an H query's, are lists of their own.
        for (bases, lists, lanes, slots) in [(1000, 1, 1, 1), ((1 << 24) - 1, 13, 2, 3)] {
            let info = device.info();
            let plan =
                MsmPlan::<Fp>::resident_tuned(Some(&streams), info, [bases, 1], 13, 1 << 26, !0)
                    .unwrap();
            let slabs = plan.layout.plans().map(AccumulatePlan::slab_count);
            assert_eq!(slabs.sum::<usize>(), lists);
            let shape = PipelineShape::new(plan.layout.plans(), lanes, slots);
            assert_eq!(plan.layout.pipeline_bytes(), shape.scratch_bytes());
        }
    }
}
