//! Dense sums over bases that come from the host in batches.

use std::sync::Arc;

use cuzk_field::{Affine, Xyzz};
use cuzk_gpu_mem::{Carve, DeviceInfo, DeviceViewMut, PinnedBuf, Stream};
use cuzk_kernels::Launcher;
use cuzk_kernels::bucket_sort::Scalars;

use super::DeviceCurve;
use super::accumulate::{Existing, Pipeline, Streams};
use super::batches::Batches;
use super::error::{Error, Result};
use super::layout::{Keep, Layout, Terms};
use super::pending::Pending;
use super::plan::{MsmPlan, Streamed, check_size, lend_scalars, order, vectors_of};
use super::run::{Arrays, Queue, check, finish};
use super::tuning;
use super::uploads::{Ahead, Batch, HostBases, Next, Uploads};

/// Bytes of the first batch at least: 200 MB are on the device in 4 ms, in which nothing is computed.
const FIRST_BATCH_BYTES: usize = 200 << 20;
/// Points of the first batch for each five buckets: every batch adds a point more to each. 576 MiB for 12 windows in G1.
const FIRST_BATCH_POINTS: usize = 2;
/// Bytes of a batch at most.
const BATCH_BYTES: usize = 4 << 30;
/// The same where that is too much for the scratch, with the smallest first batch: 2^25 points of G1, whose windows are lists
/// as long as those of resident bases.
const SMALLER_BATCH_BYTES: usize = 3 << 30;
/// Bytes of a batch below which it had better have cut lists than be smaller.
const LEAST_ROOMY_BYTES: usize = 768 << 20;
/// Bytes of a batch at least, as far as the choice goes.
const LEAST_BATCH_BYTES: usize = 1 << 20;

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    bases: usize,
    vectors: usize,
    batch_bytes: BatchBytes,
}

/// Of the first batch, and of one at most.
#[derive(Clone, Copy, Debug)]
enum BatchBytes {
    Usual,
    These([usize; 2]),
}

impl<F: DeviceCurve> MsmPlan<F> {
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
            batch_bytes: BatchBytes::Usual,
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
        batch_bytes: [usize; 2],
        scratch_limit: u64,
    ) -> Result<Self> {
        let sizes = Sizes {
            bases,
            vectors,
            batch_bytes: BatchBytes::These(batch_bytes),
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
        let buckets = tuning.windows.first_bucket(tuning.windows.count());
        let by_buckets = FIRST_BATCH_POINTS * buckets / 5 * size;
        let (most, [first_bytes, largest_bytes]) = match sizes.batch_bytes {
            BatchBytes::Usual => (
                Some([by_buckets.max(FIRST_BATCH_BYTES), BATCH_BYTES]),
                [FIRST_BATCH_BYTES, SMALLER_BATCH_BYTES],
            ),
            BatchBytes::These(bytes) => (None, bytes),
        };
        let in_batches = |[first_bytes, bytes]: [usize; 2]| -> Result<Self> {
            let largest = (bytes / size).clamp(1, bases.max(1));
            let first = first_bytes.min(bytes) / size;
            let batches = Batches::new(bases, first, largest);
            let rest = limit.saturating_sub(batches.buffer_bytes::<F>());
            let (terms, keep) = (of_len(batches.largest()), Keep::ToTheEnd);
            let mut layout = Layout::new(device, &tuning, &terms, keep, order(streams), rest)?;
            let ranges = batches.ranges().iter();
            let layouts = ranges
                .map(|range| layout.for_batch(device, &of_len(range.len()), rest))
                .collect::<Result<Vec<_>>>()?;
            layout.cover(&layouts);
            let plan = Self {
                bases,
                points: bases,
                vectors,
                layout,
                streamed: Some(Streamed { batches, layouts }),
                streams: streams.cloned(),
                wipes: None,
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
        match most.map(&in_batches) {
            Some(Ok(plan)) if plan.layout.is_roomy() => return Ok(plan),
            None | Some(Ok(_) | Err(Error::TooLittleScratch { .. })) => {}
            Some(Err(error)) => return Err(error),
        }
        let mut bytes = largest_bytes;
        let mut cut_lists = None;
        loop {
            match in_batches([first_bytes, bytes]) {
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

    /// The sums of [`Self::run`] for a plan of streamed bases. The host is not far ahead of the device when this returns.
    pub fn run_streamed(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        bases: HostBases<'_, '_, '_, F>,
        scalars: &[Scalars<'_>],
        scratch: DeviceViewMut<'_, u8>,
        result: PinnedBuf<Xyzz<F>>,
    ) -> Result<Pending<F>> {
        let Some(Streamed { batches, layouts }) = &self.streamed else {
            return Err(Error::NotStreamed);
        };
        check("result", self.result_len(), result.len())?;
        self.check_scalars(scalars)?;
        let streams = self.streams();
        let mut all = vec![stream];
        all.extend(streams.into_iter().flat_map(Streams::all));
        let computing = all.clone();
        all.push(bases.uploads.stream());
        let scalars = lend_scalars(scalars, &computing)?;
        let mut scratch = scratch.lend(&all)?;
        let mut carve = Carve::new(scratch.view_mut());
        let mut uploads = Uploads::begin(bases, batches, &mut carve, &computing)?;
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
        let mut ahead_of_device = Ahead::new(bases.pace);
        for (index, (range, layout)) in batches.ranges().iter().zip(layouts).enumerate() {
            let vectors = vectors_of(&scalars, range.clone());
            let existing = existing_of(index);
            let first = match &pipeline {
                Some((_, ahead)) => ahead.stream,
                None => stream,
            };
            let Batch { bases, mut next } = uploads.batch(index, first, &computing)?;
            for slab in &layout.slabs {
                match &mut pipeline {
                    Some((pipeline, ahead)) => {
                        slab.push_to(pipeline, *ahead, bases, &vectors, existing, &mut arrays)?;
                    }
                    None => slab.accumulate(queue, bases, &vectors, existing, &mut arrays)?,
                }
                ahead_of_device.slab(first)?;
                next = next.map_or(Ok(None), Next::send_if_free)?;
            }
            next.map_or(Ok(()), Next::send)?;
        }
        if let Some((pipeline, _)) = pipeline {
            pipeline.join(stream)?;
        }
        arrays.pipeline = pipeline_scratch;
        finish(&self.layout, queue, &mut arrays, result)
    }
}

/// What becomes of the sums of earlier batches.
pub(super) fn existing_of(batch: usize) -> Existing {
    match batch {
        0 => Existing::Replace,
        _ => Existing::AddTo,
    }
}

#[cfg(test)]
mod tests {
    use cuzk_field::Fp;
    use cuzk_gpu_mem::driver::SimDriver;
    use cuzk_gpu_mem::{Device, GIB, Settings};

    use super::*;

    /// Bytes of the first batch and of the largest.
    fn batch_bytes(device: &Device, log_bases: u32, gib: u64) -> [usize; 2] {
        let streams = Arc::new(Streams::new(device).unwrap());
        let (info, limit) = (device.info(), gib << 30);
        let streams = Some(&streams);
        let plan = MsmPlan::<Fp>::streamed_beside(streams, info, 1 << log_bases, 1, limit);
        let batches = plan.unwrap().streamed.unwrap().batches;
        let size = size_of::<Affine<Fp>>();
        [batches.ranges()[0].len() * size, batches.largest() * size]
    }

    /// `docs/measurements.md` has the figures: 2^27 bases in 40 GiB, and those of fewer bases.
    #[test]
    fn first_batches_grow_with_the_buckets() {
        let device = Device::with_driver(Arc::new(SimDriver::new(GIB)), Settings::default());
        let device = device.unwrap();
        const MIB: usize = 1 << 20;
        for (log_bases, gib, first, largest) in [
            (27, 40, 570..=580, 2500..=4096),
            (27, 20, 199..=200, 2000..=3072),
            (26, 40, 570..=580, 1000..=4096),
            (24, 40, 200..=220, 400..=4096),
            (22, 40, 199..=200, 184..=200),
            (20, 40, 96..=96, 96..=96),
        ] {
            let [found, found_largest] = batch_bytes(&device, log_bases, gib);
            assert!(first.contains(&(found / MIB)), "2^{log_bases}: {found}");
            assert!(largest.contains(&(found_largest / MIB)), "{found_largest}");
        }
    }

    /// GP-03: plans for sizes and limits far from those that run in tests; only on paper.
    #[test]
    fn plans_keep_to_their_limit() {
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
