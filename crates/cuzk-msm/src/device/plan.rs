//! Dense sums: bases and scalars in, one point a scalar vector out.

use std::ops::Range;

use cuzk_field::{Affine, Xyzz};
use cuzk_gpu_mem::{
    Carve, DeviceInfo, DeviceView, DeviceViewMut, Footprint, PinnedBuf, Stream, TransferScope,
};
use cuzk_kernels::Launcher;
use cuzk_kernels::bucket_sort::{BaseIndices, Scalars};

use super::DeviceCurve;
use super::accumulate::Existing;
use super::error::{Error, Result};
use super::layout::{Keep, Layout, Terms};
use super::pending::Pending;
use super::run::{Arrays, Queue, Vector, check, run};
use super::tuning;

/// Bases of one sum at most: indices of entries have 30 bits.
const MAX_BASES: usize = (1 << 30) - 1;

/// Bytes of the first batch of streamed bases: 200 MB are on the device in 4 ms, in which nothing is computed.
const FIRST_BATCH_BYTES: usize = 200 << 20;
/// Bytes of a batch at most. Larger ones make no difference.
const BATCH_BYTES: usize = 1536 << 20;
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
}

impl<F: DeviceCurve> MsmPlan<F> {
    /// Sums over bases that are on the device, in at most `scratch_limit` bytes beside bases and scalars.
    ///
    /// # Errors
    /// [`Error::TooLittleScratch`] when nothing works in so few bytes, [`Error::TooLarge`] from 2^30 bases on.
    pub fn resident(
        device: &DeviceInfo,
        bases: usize,
        vectors: usize,
        scratch_limit: u64,
    ) -> Result<Self> {
        check_size(bases)?;
        let limit = usize::try_from(scratch_limit).unwrap_or(usize::MAX);
        let terms = Terms {
            vectors: vec![bases; vectors],
            ones: Vec::new(),
        };
        let windows = tuning::windows(device, bases);
        Ok(Self {
            bases,
            vectors,
            layout: Layout::new(device, windows, &terms, Keep::Slab, limit)?,
            batches: Vec::new(),
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
        Self::streamed_in(
            device,
            bases,
            vectors,
            FIRST_BATCH_BYTES,
            BATCH_BYTES,
            scratch_limit,
        )
    }

    /// The same with batches of these sizes, as far as the limit allows them: for tests and measurements.
    #[doc(hidden)]
    pub fn streamed_in(
        device: &DeviceInfo,
        bases: usize,
        vectors: usize,
        first_batch_bytes: usize,
        batch_bytes: usize,
        scratch_limit: u64,
    ) -> Result<Self> {
        check_size(bases)?;
        let limit = usize::try_from(scratch_limit).unwrap_or(usize::MAX);
        let windows = tuning::windows(device, bases);
        let of_len = |len| Terms {
            vectors: vec![len; vectors],
            ones: Vec::new(),
        };
        let size = size_of::<Affine<F>>();
        let mut bytes = batch_bytes;
        loop {
            let largest = (bytes / size).clamp(1, bases.max(1));
            let rest = limit.saturating_sub(2 * Carve::bytes_of::<Affine<F>>(largest));
            match Layout::new(device, windows, &of_len(largest), Keep::Batches, rest) {
                Ok(layout) => {
                    let first = (first_batch_bytes.min(bytes) / size).max(1);
                    let batches = cut(bases, first, largest)
                        .into_iter()
                        .map(|range| {
                            let terms = of_len(range.len());
                            Ok((range, layout.for_batch(device, &terms, rest)?))
                        })
                        .collect::<Result<_>>()?;
                    return Ok(Self {
                        bases,
                        vectors,
                        layout,
                        batches,
                    });
                }
                Err(Error::TooLittleScratch { .. }) if bytes > LEAST_BATCH_BYTES => bytes /= 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// Scratch on the device and the pinned result, in bytes.
    pub fn footprint(&self) -> Footprint {
        let largest = self.batches.iter().map(|(range, _)| range.len()).max();
        let batches = 2 * Carve::bytes_of::<Affine<F>>(largest.unwrap_or(0));
        let layouts = self.batches.iter().map(|(_, layout)| layout);
        let work = layouts.fold(self.layout.scratch_bytes(), |most, layout| {
            most.max(layout.scratch_bytes())
        });
        Footprint {
            device: (batches + work) as u64,
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

    /// How many parts the work is cut into for want of scratch: slabs of windows, and slabs of entries of those.
    pub fn slabs(&self) -> (usize, usize) {
        let calls = self.layout.slabs.iter().flat_map(|slab| &slab.calls);
        let entries = calls.map(|(_, call)| call.slab_count()).max();
        (self.layout.slabs.len(), entries.unwrap_or(0))
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
        let vectors = self.vectors_of(scalars, 0..self.bases)?;
        let arrays = Arrays::carve(&self.layout, &mut Carve::new(scratch))?;
        let queue = Queue { launcher, stream };
        run(&self.layout, queue, bases, &vectors, arrays, result)
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
        self.vectors_of(scalars, 0..self.bases)?;
        let uploading = uploads.stream();
        let queue = Queue { launcher, stream };
        // Ordered by events from here on: an upload waits for the batch that had its buffer, a batch for its upload.
        let mut scratch = scratch.lend(&[stream, uploading])?;
        let mut carve = Carve::new(scratch.view_mut());
        let largest = self.batches.iter().map(|(range, _)| range.len()).max();
        let mut buffers = Vec::with_capacity(2);
        for _ in 0..2 {
            buffers.push(carve.take::<Affine<F>>("a batch of bases", largest.unwrap_or(0))?);
        }
        let mut arrays = Arrays::carve(&self.layout, &mut carve)?;
        let mut uploaded = Vec::with_capacity(self.batches.len());
        let mut computed = Vec::with_capacity(self.batches.len());
        for (index, (range, layout)) in self.batches.iter().enumerate() {
            let buffer = buffers[index % 2].reborrow().slice(..range.len());
            if index >= 2 {
                uploading.wait_for(&computed[index - 2])?;
            }
            uploads.upload(&bases[range.clone()], buffer)?;
            uploaded.push(uploading.record()?);
            stream.wait_for(&uploaded[index])?;
            let vectors = self.vectors_of(scalars, range.clone())?;
            let existing = if index == 0 {
                Existing::Replace
            } else {
                Existing::AddTo
            };
            for slab in &layout.slabs {
                slab.sort(queue, &vectors, &mut arrays)?;
                let batch = buffers[index % 2].as_view().slice(..range.len());
                slab.accumulate(queue, batch, existing, &mut arrays)?;
            }
            computed.push(stream.record()?);
        }
        let mut point = 0;
        for slab in &self.layout.slabs {
            point += slab.reduce(queue, point, &mut arrays)?;
        }
        let transfer = stream.download(arrays.points.as_view(), result)?;
        Ok(Pending::new(transfer, &self.layout))
    }

    fn vectors_of<'a>(
        &self,
        scalars: &[Scalars<'a>],
        range: Range<usize>,
    ) -> Result<Vec<Vector<'a>>> {
        check("scalar vectors", self.vectors, scalars.len())?;
        scalars
            .iter()
            .map(|scalars| {
                check("scalars", self.bases, scalars.len())?;
                Ok(Vector {
                    scalars: scalars.slice(range.clone()),
                    bases: BaseIndices::From(0),
                })
            })
            .collect()
    }
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

/// Batches that grow from `first` elements to `largest`, each twice the one before: what is computed with one takes at
/// least as long as the next needs to come.
fn cut(bases: usize, first: usize, largest: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let (mut start, mut len) = (0, first.min(largest));
    while start < bases || ranges.is_empty() {
        let end = bases.min(start + len);
        ranges.push(start..end);
        start = end;
        len = largest.min(2 * len);
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
}
