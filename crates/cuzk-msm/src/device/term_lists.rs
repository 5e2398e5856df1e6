//! What of a witness goes into which sum: counts for plans, lists for the device.

use std::ops::Range;

use cuzk_field::Scalar;
use cuzk_gpu_mem::{Carve, DeviceViewMut, Event, PinnedBuf, Stream, Transfer};
use cuzk_kernels::Launcher;
use cuzk_kernels::bucket_sort::{BaseIndices, Scalars};
use cuzk_kernels::sparse_terms::{self, ALL_BASES, BaseSet, ListTarget};
use cuzk_kernels::witness::{PackedWitness, WORD};

use super::DeviceCurve;
use super::batches::Batches;
use super::error::Result;
use super::run::{Arrays, Queue, Vector};

/// How many terms of a base set cost what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TermCounts {
    /// Scalars that are one.
    pub ones: usize,
    /// Scalars that are neither zero nor one.
    pub rest: usize,
}

/// Counts that are on their way to the host.
#[derive(Debug)]
#[must_use = "wait for the counts"]
pub struct PendingCounts {
    transfer: Transfer<u32>,
}

impl PendingCounts {
    /// Where the stream is done with them.
    pub fn event(&self) -> &Event {
        self.transfer.event()
    }

    /// Waits; one for each set.
    pub fn wait(self) -> Result<Vec<TermCounts>> {
        let words = self.transfer.wait()?;
        let counts = words.chunks(2).map(|pair| TermCounts {
            ones: pair[0] as usize,
            rest: pair[1] as usize,
        });
        Ok(counts.collect())
    }
}

fn starts_len(words: usize) -> usize {
    2 * sparse_terms::tiles(words * WORD)
}

/// Bytes of scratch that [`count_terms`] wants for so many sets.
pub fn count_scratch_bytes(sets: usize) -> usize {
    Carve::bytes_of::<u32>(2 * sets)
}

/// Bytes of scratch that [`count_terms_in`] wants for so many pairs of witness and set.
pub fn count_terms_in_scratch_bytes(batches: &Batches, sums: usize) -> usize {
    count_scratch_bytes(batches.len() * sums)
}

/// Counts the terms of each set, which [`SparsePlan::new`](super::SparsePlan::new) wants to know. Put it on the stream as
/// soon as the witness is on the device; `counts` has two words a set.
pub fn count_terms(
    launcher: &dyn Launcher,
    stream: &Stream,
    witness: PackedWitness<'_>,
    sets: &[BaseSet<'_>],
    scratch: DeviceViewMut<'_, u8>,
    counts: PinnedBuf<u32>,
) -> Result<PendingCounts> {
    let queue = Queue { launcher, stream };
    let bounds = [ALL_BASES.start, ALL_BASES.end];
    count_batches(queue, &bounds, &[witness], sets, scratch, counts)
}

/// Counts the terms of each witness and set in each batch of the array of bases, which
/// [`StreamedSparsePlan::new`](super::StreamedSparsePlan::new) wants to know: batch by batch, in it witness by witness, and
/// set by set. `counts` has two words for each.
pub fn count_terms_in(
    launcher: &dyn Launcher,
    stream: &Stream,
    batches: &Batches,
    witnesses: &[PackedWitness<'_>],
    sets: &[BaseSet<'_>],
    scratch: DeviceViewMut<'_, u8>,
    counts: PinnedBuf<u32>,
) -> Result<PendingCounts> {
    let queue = Queue { launcher, stream };
    let starts = batches.ranges().iter().map(|range| range.start);
    let bounds: Vec<u32> = starts.chain([batches.bases()]).map(base_index).collect();
    count_batches(queue, &bounds, witnesses, sets, scratch, counts)
}

/// Plans are for fewer bases than 2^30.
fn base_index(base: usize) -> u32 {
    u32::try_from(base).unwrap_or(u32::MAX)
}

pub(super) fn base_range(range: &Range<usize>) -> Range<u32> {
    base_index(range.start)..base_index(range.end)
}

fn count_batches(
    queue: Queue<'_>,
    bounds: &[u32],
    witnesses: &[PackedWitness<'_>],
    sets: &[BaseSet<'_>],
    scratch: DeviceViewMut<'_, u8>,
    counts: PinnedBuf<u32>,
) -> Result<PendingCounts> {
    let Queue { launcher, stream } = queue;
    let mut carve = Carve::new(scratch);
    let stride = 2 * witnesses.len() * sets.len();
    let batches = bounds.len() - 1;
    let mut totals = carve.take::<u32>("counts of terms", batches * stride)?;
    stream.fill(totals.reborrow(), 0)?;
    let pairs = witnesses
        .iter()
        .flat_map(|witness| sets.iter().map(move |set| (*witness, set)));
    for (index, (witness, set)) in pairs.enumerate() {
        let first = 2 * index;
        let counts = totals
            .reborrow()
            .slice(first..first + stride * (batches - 1) + 2);
        sparse_terms::count_batches(launcher, stream, witness, set, bounds, stride, counts)?;
    }
    let transfer = stream.download(totals.as_view(), counts)?;
    Ok(PendingCounts { transfer })
}

/// The lists of the terms of several witnesses and sets, in scratch.
pub(super) struct Lists<'a> {
    starts: DeviceViewMut<'a, u32>,
    totals: DeviceViewMut<'a, u32>,
    rest_bases: DeviceViewMut<'a, u32>,
    rest_scalars: DeviceViewMut<'a, Scalar>,
}

impl<'a> Lists<'a> {
    /// Bytes, for witnesses of so many words, so many pairs of witness and set, and so many terms that are neither zero nor
    /// one.
    pub(super) fn bytes(words: usize, sums: usize, rest: usize) -> usize {
        Carve::bytes_of::<u32>(starts_len(words))
            + Carve::bytes_of::<u32>(2 * sums)
            + Carve::bytes_of::<u32>(rest)
            + Carve::bytes_of::<Scalar>(rest)
    }

    pub(super) fn carve(
        words: usize,
        sums: usize,
        rest: usize,
        carve: &mut Carve<'a>,
    ) -> Result<Self> {
        Ok(Self {
            starts: carve.take("starts of tiles", starts_len(words))?,
            totals: carve.take("counts of terms", 2 * sums)?,
            rest_bases: carve.take("bases of the rest", rest)?,
            rest_scalars: carve.take("scalars of the rest", rest)?,
        })
    }

    /// Lists the terms whose bases lie in a range, as counted; ones as the first entries of `arrays`. Sets with none are not
    /// looked at.
    pub(super) fn make<F: DeviceCurve>(
        &mut self,
        queue: Queue<'_>,
        range: &Range<u32>,
        witnesses: &[PackedWitness<'_>],
        sets: &[BaseSet<'_>],
        counts: &[TermCounts],
        arrays: &mut Arrays<'_, F>,
    ) -> Result<()> {
        let Queue { launcher, stream } = queue;
        let (mut ones, mut rest) = (0, 0);
        let pairs = witnesses
            .iter()
            .flat_map(|witness| sets.iter().map(move |set| (*witness, set)));
        stream.fill(self.totals.reborrow(), 0)?;
        for (index, ((witness, set), counts)) in pairs.zip(counts).enumerate() {
            if counts.ones + counts.rest == 0 {
                continue;
            }
            sparse_terms::count(
                launcher,
                stream,
                witness,
                set,
                range,
                self.starts.reborrow(),
                self.totals.reborrow().slice(2 * index..2 * index + 2),
            )?;
            let rest_range = rest..rest + counts.rest;
            let target = ListTarget {
                ones: arrays.entries.reborrow().slice(ones..ones + counts.ones),
                rest_bases: self.rest_bases.reborrow().slice(rest_range.clone()),
                rest_scalars: self.rest_scalars.reborrow().slice(rest_range),
            };
            let starts = self.starts.as_view();
            sparse_terms::list(launcher, stream, witness, set, range, starts, target)?;
            ones += counts.ones;
            rest += counts.rest;
        }
        let offsets = arrays.offsets.reborrow().slice(..=counts.len());
        sparse_terms::ones_offsets(launcher, stream, self.totals.as_view(), offsets)?;
        Ok(())
    }

    /// The terms that are neither zero nor one, of each witness and set.
    pub(super) fn vectors(&self, counts: &[TermCounts]) -> Vec<Vector<'_>> {
        let (bases, scalars) = (self.rest_bases.as_view(), self.rest_scalars.as_view());
        let mut start = 0;
        let vectors = counts.iter().map(|counts| {
            let range = start..start + counts.rest;
            start = range.end;
            Vector {
                scalars: Scalars::Canonical(scalars.slice(range.clone())),
                bases: BaseIndices::Listed(bases.slice(range)),
                multiple_stride: 0,
            }
        });
        vectors.collect()
    }
}
