//! Dense sums: bases and scalars in, one point a scalar vector out.

use std::ops::Range;
use std::sync::Arc;

use cuzk_field::{Affine, Xyzz};
use cuzk_gpu_mem::{
    Carve, DeviceInfo, DeviceView, DeviceViewMut, Footprint, PinnedBuf, Stream, TransferScope,
};
use cuzk_kernels::Launcher;
use cuzk_kernels::bucket_sort::{BaseIndices, Scalars};
use cuzk_kernels::windows::Windows;

use super::DeviceCurve;
use super::accumulate::{AccumulatePlan, Existing, Pipeline, Streams};
use super::error::{Error, Result};
use super::layout::{Keep, Layout, Order, Terms};
use super::pending::Pending;
use super::run::{Arrays, LentScalars, Queue, Vector, check, finish, run};
use super::tuning::{self, Tuning};

/// Bases of one sum at most: indices of entries have 30 bits.
const MAX_BASES: usize = (1 << 30) - 1;

/// Bytes of the first batch of streamed bases: 200 MB are on the device in 4 ms, in which nothing is computed.
const FIRST_BATCH_BYTES: usize = 200 << 20;
/// Bytes of a batch at most: 2^25 points of G1, whose windows are lists as long as those of resident bases.
const BATCH_BYTES: usize = 3 << 30;
/// Bytes of a batch below which it had better have cut lists than be smaller.
const LEAST_ROOMY_BYTES: usize = 768 << 20;
/// Bytes of a batch at least, as far as the choice goes.
const LEAST_BATCH_BYTES: usize = 1 << 20;

/// How sums over one list of bases are computed, one for each of several scalar vectors: data, made from sizes.
#[derive(Debug)]
pub struct MsmPlan<F: DeviceCurve> {
    bases: usize,
    vectors: usize,
    /// The layout of the largest batch.
    layout: Layout<F>,
    /// Of streamed bases: how they are cut, each with its layout.
    batches: Vec<(Range<usize>, Layout<F>)>,
    streams: Option<Arc<Streams>>,
}

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    bases: usize,
    vectors: usize,
    first_batch_bytes: usize,
    batch_bytes: usize,
}

fn order(streams: Option<&Arc<Streams>>) -> Order {
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
            vectors,
            layout: Layout::new(device, tuning, &terms, keep, order, limit)?,
            batches: Vec::new(),
            streams: streams.cloned(),
        })
    }

    /// Sums over bases that come from the host in batches, while earlier ones are computed with. Scratch holds two
    /// batches and the sums of all buckets.
    ///
    /// # Errors
    /// As [`Self::resident`].
    pub fn streamed(
        device: &DeviceInfo,
        bases: usize,
        vectors: usize,
        scratch_limit: u64,
    ) -> Result<Self> {
        Self::streamed_beside(None, device, bases, vectors, scratch_limit)
    }

    /// The same with streams of their own, as in [`Self::resident_beside`].
    ///
    /// # Errors
    /// As [`Self::resident`].
    pub fn streamed_beside(
        streams: Option<&Arc<Streams>>,
        device: &DeviceInfo,
        bases: usize,
        vectors: usize,
        scratch_limit: u64,
    ) -> Result<Self> {
        let sizes = Sizes {
            bases,
            vectors,
            first_batch_bytes: FIRST_BATCH_BYTES,
            batch_bytes: BATCH_BYTES,
        };
        Self::streamed_of(streams, device, sizes, scratch_limit)
    }

    /// The same with batches of these sizes, as far as the limit allows them: for tests and measurements.
    #[doc(hidden)]
    pub fn streamed_in(
        streams: Option<&Arc<Streams>>,
        device: &DeviceInfo,
        bases: usize,
        vectors: usize,
        [first_batch_bytes, batch_bytes]: [usize; 2],
        scratch_limit: u64,
    ) -> Result<Self> {
        let sizes = Sizes {
            bases,
            vectors,
            first_batch_bytes,
            batch_bytes,
        };
        Self::streamed_of(streams, device, sizes, scratch_limit)
    }

    fn streamed_of(
        streams: Option<&Arc<Streams>>,
        device: &DeviceInfo,
        sizes: Sizes,
        scratch_limit: u64,
    ) -> Result<Self> {
        let Sizes { bases, vectors, .. } = sizes;
        check_size(bases)?;
        let limit = usize::try_from(scratch_limit).unwrap_or(usize::MAX);
        let tuning = tuning::tuning(device, bases);
        let of_len = |len| Terms {
            vectors: vec![len; vectors],
            ones: Vec::new(),
        };
        let size = size_of::<Affine<F>>();
        let in_batches = |bytes: usize| -> Result<Self> {
            let largest = (bytes / size).clamp(1, bases.max(1));
            let first = (sizes.first_batch_bytes.min(bytes) / size).max(1);
            let rest = limit.saturating_sub(2 * Carve::bytes_of::<Affine<F>>(largest));
            let (terms, keep) = (of_len(largest), Keep::ToTheEnd);
            let mut layout = Layout::new(device, &tuning, &terms, keep, order(streams), rest)?;
            let batches: Vec<(Range<usize>, Layout<F>)> = cut(bases, first, largest)
                .into_iter()
                .map(|range| {
                    let terms = of_len(range.len());
                    Ok((range, layout.for_batch(device, &terms, rest)?))
                })
                .collect::<Result<_>>()?;
            layout.cover(&batches);
            let plan = Self {
                bases,
                vectors,
                layout,
                batches,
                streams: streams.cloned(),
            };
            let needed = usize::try_from(plan.footprint().device).unwrap_or(usize::MAX);
            if needed > limit {
                return Err(Error::TooLittleScratch {
                    what: "a sum over streamed bases",
                    needed,
                    limit,
                });
            }
            Ok(plan)
        };
        // Batches so large that lists have to be cut are slower than smaller ones.
        let mut bytes = sizes.batch_bytes;
        let mut cut_lists = None;
        loop {
            match in_batches(bytes) {
                Ok(plan) if plan.layout.is_roomy() => return Ok(plan),
                Ok(plan) => cut_lists = cut_lists.or(Some(plan)),
                Err(Error::TooLittleScratch { .. }) if bytes > LEAST_BATCH_BYTES => {}
                Err(error) => return cut_lists.ok_or(error),
            }
            if bytes <= LEAST_ROOMY_BYTES
                && let Some(plan) = cut_lists
            {
                return Ok(plan);
            }
            bytes /= 2;
        }
    }

    /// Scratch on the device and the pinned result, in bytes.
    pub fn footprint(&self) -> Footprint {
        let batches = 2 * Carve::bytes_of::<Affine<F>>(self.largest_batch());
        Footprint {
            device: (batches + self.layout.scratch_bytes()) as u64,
            pinned: (self.result_len() * size_of::<Xyzz<F>>()) as u64,
            host: 0,
        }
    }

    fn largest_batch(&self) -> usize {
        let lens = self.batches.iter().map(|(range, _)| range.len());
        lens.max().unwrap_or(0)
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
    fn streams(&self) -> Option<&Streams> {
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
        check("bases", self.bases, bases.len())?;
        self.check_scalars(scalars)?;
        let streams = self.streams();
        let mut all = vec![stream];
        all.extend(streams.into_iter().flat_map(Streams::all));
        let bases = bases.lend(&all)?;
        let scalars = lend_scalars(scalars, &all)?;
        let mut scratch = scratch.lend(&all)?;
        let vectors = vectors_of(&scalars, 0..self.bases);
        let arrays = Arrays::carve(&self.layout, &mut Carve::new(scratch.view_mut()))?;
        let queue = Queue { launcher, stream };
        let bases = bases.view();
        run(
            &self.layout,
            queue,
            streams,
            bases,
            &vectors,
            arrays,
            result,
        )
    }

    /// The same for a plan of streamed bases, which `uploads` copies to the device beside the computation on `stream`.
    /// The scope's end waits for the last of them: put it where the sum is waited for, or later.
    #[expect(clippy::too_many_arguments, reason = "what there is to say")]
    pub fn run_streamed<'env>(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        uploads: &TransferScope<'_, 'env>,
        bases: &'env [Affine<F>],
        scalars: &[Scalars<'_>],
        scratch: DeviceViewMut<'_, u8>,
        result: PinnedBuf<Xyzz<F>>,
    ) -> Result<Pending<F>> {
        check("bases", self.bases, bases.len())?;
        check("result", self.result_len(), result.len())?;
        self.check_scalars(scalars)?;
        let streams = self.streams();
        let uploading = uploads.stream();
        let mut all = vec![stream];
        all.extend(streams.into_iter().flat_map(Streams::all));
        let computing = all.clone();
        all.push(uploading);
        let scalars = lend_scalars(scalars, &computing)?;
        // Ordered by events from here on: an upload comes after the batch that had its buffer, a batch after its upload.
        let mut scratch = scratch.lend(&all)?;
        let mut carve = Carve::new(scratch.view_mut());
        let half = self.largest_batch();
        let mut buffers = [
            carve.take::<Affine<F>>("a batch of bases", half)?,
            carve.take::<Affine<F>>("another batch of bases", half)?,
        ];
        let none = carve.take::<Affine<F>>("no bases", 0)?.into_view();
        let (mut arrays, mut pipeline_scratch) = Arrays::carve(&self.layout, &mut carve)?.split();
        let queue = Queue { launcher, stream };
        let mut pipeline = match (streams, &self.layout.pipeline) {
            (Some(streams), Some(shape)) => Some((
                Pipeline::new(
                    launcher,
                    stream,
                    streams,
                    none,
                    shape,
                    pipeline_scratch.reborrow(),
                )?,
                Queue {
                    launcher,
                    stream: streams.ahead(),
                },
            )),
            _ => None,
        };
        let mut uploaded = Vec::with_capacity(self.batches.len());
        for index in 0..self.batches.len() {
            // The first batch, and always the one after.
            for next in uploaded.len()..self.batches.len().min(index + 2) {
                let range = self.batches[next].0.clone();
                let buffer = buffers[next % 2].reborrow().slice(..range.len());
                if next >= 2 {
                    for stream in &computing {
                        uploading.follow(stream)?;
                    }
                }
                uploads.upload(&bases[range], buffer)?;
                uploaded.push(uploading.record()?);
            }
            let (range, layout) = &self.batches[index];
            let batch = buffers[index % 2].as_view().slice(..range.len());
            let vectors = vectors_of(&scalars, range.clone());
            let existing = if index == 0 {
                Existing::Replace
            } else {
                Existing::AddTo
            };
            match &mut pipeline {
                Some((pipeline, ahead)) => {
                    ahead.stream.wait_for(&uploaded[index])?;
                    for slab in &layout.slabs {
                        slab.push_to(pipeline, *ahead, batch, &vectors, existing, &mut arrays)?;
                    }
                }
                None => {
                    stream.wait_for(&uploaded[index])?;
                    for slab in &layout.slabs {
                        slab.accumulate(queue, batch, &vectors, existing, &mut arrays)?;
                    }
                }
            }
        }
        if let Some((pipeline, _)) = pipeline {
            pipeline.join(stream)?;
        }
        arrays.pipeline = pipeline_scratch;
        finish(&self.layout, queue, &mut arrays, result)
    }

    fn check_scalars(&self, scalars: &[Scalars<'_>]) -> Result<()> {
        check("scalar vectors", self.vectors, scalars.len())?;
        let mut lens = scalars.iter().map(Scalars::len);
        lens.try_for_each(|len| check("scalars", self.bases, len))
    }
}

fn lend_scalars<'a>(scalars: &[Scalars<'a>], streams: &[&Stream]) -> Result<Vec<LentScalars<'a>>> {
    let lent = scalars
        .iter()
        .map(|scalars| LentScalars::new(*scalars, streams));
    lent.collect()
}

/// A range of each vector; base i of the range is base i of what the kernels see.
fn vectors_of<'a>(scalars: &'a [LentScalars<'_>], range: Range<usize>) -> Vec<Vector<'a>> {
    let vectors = scalars.iter().map(|scalars| Vector {
        scalars: scalars.scalars().slice(range.clone()),
        bases: BaseIndices::From(0),
    });
    vectors.collect()
}

fn check_size(bases: usize) -> Result<()> {
    if bases <= MAX_BASES {
        return Ok(());
    }
    Err(Error::TooLarge {
        what: "bases",
        most: MAX_BASES,
        found: bases,
    })
}

/// Batches that grow from `first` elements to `largest`, each at most twice the one before: what is computed with one takes
/// at least as long as the next needs to come. Those that no longer grow are equal, since small ones are slow.
fn cut(bases: usize, first: usize, largest: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let (mut start, mut len) = (0, first.min(largest));
    while len < largest && start + len < bases {
        ranges.push(start..start + len);
        start += len;
        len = largest.min(2 * len);
    }
    let rest = bases - start;
    let count = rest.div_ceil(len).max(1);
    for index in 0..count {
        ranges.push(start + rest * index / count..start + rest * (index + 1) / count);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_and_cover() {
        for (bases, first, largest) in [
            (0, 1, 1),
            (1, 5, 9),
            (100, 3, 10),
            (64, 64, 64),
            (65, 1, 64),
        ] {
            let ranges = cut(bases, first, largest);
            assert_eq!(ranges[0].start, 0);
            assert_eq!(ranges.last().unwrap().end, bases);
            for pair in ranges.windows(2) {
                assert_eq!(pair[0].end, pair[1].start);
                assert!(pair[1].len() <= 2 * pair[0].len());
            }
            assert!(ranges.iter().all(|range| range.len() <= largest));
        }
    }

    /// Plans for sizes and limits far from those that run in tests; only on paper.
    #[test]
    fn plans_keep_to_their_limit() {
        use std::sync::Arc;

        use cuzk_field::Fp;
        use cuzk_gpu_mem::driver::SimDriver;
        use cuzk_gpu_mem::{Device, GIB, Settings};

        let device = Device::with_driver(Arc::new(SimDriver::new(GIB)), Settings::default());
        let device = device.unwrap();
        let info = device.info();
        let streams = Arc::new(Streams::new(&device).unwrap());
        for streams in [None, Some(&streams)] {
            for bases in [1_usize << 20, 1 << 24, 1 << 27, 130_000_001] {
                for gib in [5_u64, 16, 40] {
                    let limit = gib << 30;
                    let plan = MsmPlan::<Fp>::resident_beside(streams, info, bases, 1, limit);
                    assert!(plan.unwrap().footprint().device <= limit, "{bases}, {gib}");
                    let plan = MsmPlan::<Fp>::streamed_beside(streams, info, bases, 1, limit);
                    assert!(plan.unwrap().footprint().device <= limit, "{bases}, {gib}");
                }
            }
            let plan = MsmPlan::<Fp>::resident_beside(streams, info, 1 << 20, 10, 1 << 30);
            assert!(plan.unwrap().footprint().device <= 1 << 30);
        }
    }
}
