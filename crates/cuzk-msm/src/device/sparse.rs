//! Sums over witnesses that are mostly zeros and ones, for several base sets at a time.
//!
//! The bases whose scalar is one are a bucket: their sum is a pair tree without windows. The others make a small sum of
//! the usual kind. All sets over one array of bases share their rounds.

use std::sync::Arc;

use cuzk_field::{Affine, Scalar, Xyzz};
use cuzk_gpu_mem::{
    Carve, DeviceInfo, DeviceView, DeviceViewMut, Event, Footprint, PinnedBuf, Stream, Transfer,
};
use cuzk_kernels::Launcher;
use cuzk_kernels::bucket_sort::{BaseIndices, Scalars};
use cuzk_kernels::sparse_terms::{self, BaseSet, ListTarget};
use cuzk_kernels::witness::{PackedWitness, WORD};

use super::DeviceCurve;
use super::accumulate::Streams;
use super::error::Result;
use super::layout::{Keep, Layout, Order, Terms};
use super::pending::Pending;
use super::run::{Arrays, Queue, Vector, check, run};
use super::tuning;

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

/// Bytes of scratch that [`count_terms`] wants for a witness of so many variables.
pub fn count_scratch_bytes(variables: usize, sets: usize) -> usize {
    Carve::bytes_of::<u32>(starts_len(variables.div_ceil(WORD))) + Carve::bytes_of::<u32>(2 * sets)
}

/// Counts the terms of each set, which [`SparsePlan::new`] wants to know. Put it on the stream as soon as the witness is
/// on the device; `counts` has two words a set.
pub fn count_terms(
    launcher: &dyn Launcher,
    stream: &Stream,
    witness: PackedWitness<'_>,
    sets: &[BaseSet<'_>],
    scratch: DeviceViewMut<'_, u8>,
    counts: PinnedBuf<u32>,
) -> Result<PendingCounts> {
    let mut carve = Carve::new(scratch);
    let mut starts = carve.take("starts of tiles", starts_len(witness.bits.len()))?;
    let mut totals = carve.take("counts of terms", 2 * sets.len())?;
    for (index, set) in sets.iter().enumerate() {
        sparse_terms::count(
            launcher,
            stream,
            witness,
            set,
            starts.reborrow(),
            totals.reborrow().slice(2 * index..2 * index + 2),
        )?;
    }
    let transfer = stream.download(totals.as_view(), counts)?;
    Ok(PendingCounts { transfer })
}

/// How the sums of several base sets, which are parts of one array of bases, are computed for one witness.
#[derive(Debug)]
pub struct SparsePlan<F: DeviceCurve> {
    layout: Layout<F>,
    counts: Vec<TermCounts>,
    words: usize,
    rest: usize,
    streams: Option<Arc<Streams>>,
}

impl<F: DeviceCurve> SparsePlan<F> {
    /// A plan for a witness of so many variables and sets with these terms, in at most `scratch_limit` bytes.
    ///
    /// # Errors
    /// [`Error::TooLittleScratch`](super::Error::TooLittleScratch) when nothing works in so few bytes.
    pub fn new(
        device: &DeviceInfo,
        variables: usize,
        counts: &[TermCounts],
        scratch_limit: u64,
    ) -> Result<Self> {
        Self::beside(None, device, variables, counts, scratch_limit)
    }

    /// The same with streams of their own, as in [`MsmPlan::resident_beside`](super::MsmPlan::resident_beside).
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn beside(
        streams: Option<&Arc<Streams>>,
        device: &DeviceInfo,
        variables: usize,
        counts: &[TermCounts],
        scratch_limit: u64,
    ) -> Result<Self> {
        let limit = usize::try_from(scratch_limit).unwrap_or(usize::MAX);
        let words = variables.div_ceil(WORD);
        let rest: usize = counts.iter().map(|counts| counts.rest).sum();
        let most = counts.iter().map(|counts| counts.rest).max().unwrap_or(0);
        let terms = Terms {
            vectors: counts.iter().map(|counts| counts.rest).collect(),
            ones: counts.iter().map(|counts| counts.ones).collect(),
        };
        let tuning = tuning::tuning(device, most);
        let lists = lists_bytes(words, counts.len(), rest);
        let layout = Layout::new(
            device,
            &tuning,
            &terms,
            Keep::UntilReduced,
            match streams {
                Some(_) => Order::Pipeline,
                None => Order::Sequence,
            },
            limit.saturating_sub(lists),
        )?;
        Ok(Self {
            layout,
            counts: counts.to_vec(),
            words,
            rest,
            streams: streams.cloned(),
        })
    }

    /// Scratch on the device and the pinned result, in bytes.
    pub fn footprint(&self) -> Footprint {
        let lists = lists_bytes(self.words, self.counts.len(), self.rest);
        Footprint {
            device: (lists + self.layout.scratch_bytes()) as u64,
            pinned: (self.result_len() * size_of::<Xyzz<F>>()) as u64,
            host: 0,
        }
    }

    /// Elements of the pinned result.
    pub fn result_len(&self) -> usize {
        self.layout.labels.len()
    }

    /// Computes, for each set, the sum over its members of their values times their bases. Witness and sets are those
    /// that were counted; otherwise terms are left out, and sums are wrong.
    #[expect(clippy::too_many_arguments, reason = "what there is to say")]
    pub fn run(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        bases: DeviceView<'_, Affine<F>>,
        witness: PackedWitness<'_>,
        sets: &[BaseSet<'_>],
        scratch: DeviceViewMut<'_, u8>,
        result: PinnedBuf<Xyzz<F>>,
    ) -> Result<Pending<F>> {
        check("sets", self.counts.len(), sets.len())?;
        check("words of the witness", self.words, witness.bits.len())?;
        let streams = self.layout.pipeline.as_ref().and(self.streams.as_deref());
        let mut all = vec![stream];
        all.extend(streams.into_iter().flat_map(Streams::all));
        let bases = bases.lend(&all)?;
        let mut scratch = scratch.lend(&all)?;
        let mut carve = Carve::new(scratch.view_mut());
        let mut starts = carve.take::<u32>("starts of tiles", starts_len(self.words))?;
        let mut totals = carve.take::<u32>("counts of terms", 2 * sets.len())?;
        let mut rest_bases = carve.take::<u32>("bases of the rest", self.rest)?;
        let mut rest_scalars = carve.take::<Scalar>("scalars of the rest", self.rest)?;
        let mut arrays = Arrays::carve(&self.layout, &mut carve)?;
        let (mut ones, mut rest) = (0, 0);
        for (index, (set, counts)) in sets.iter().zip(&self.counts).enumerate() {
            sparse_terms::count(
                launcher,
                stream,
                witness,
                set,
                starts.reborrow(),
                totals.reborrow().slice(2 * index..2 * index + 2),
            )?;
            let target = ListTarget {
                ones: arrays.entries.reborrow().slice(ones..ones + counts.ones),
                rest_bases: rest_bases.reborrow().slice(rest..rest + counts.rest),
                rest_scalars: rest_scalars.reborrow().slice(rest..rest + counts.rest),
            };
            sparse_terms::list(launcher, stream, witness, set, starts.as_view(), target)?;
            ones += counts.ones;
            rest += counts.rest;
        }
        sparse_terms::ones_offsets(
            launcher,
            stream,
            totals.as_view(),
            arrays.offsets.reborrow().slice(..=sets.len()),
        )?;
        let (rest_bases, rest_scalars) = (rest_bases.as_view(), rest_scalars.as_view());
        let mut start = 0;
        let vectors = self.counts.iter().map(|counts| {
            let range = start..start + counts.rest;
            start = range.end;
            Vector {
                scalars: Scalars::Canonical(rest_scalars.slice(range.clone())),
                bases: BaseIndices::Listed(rest_bases.slice(range)),
            }
        });
        let vectors: Vec<Vector<'_>> = vectors.collect();
        let queue = Queue { launcher, stream };
        run(
            &self.layout,
            queue,
            streams,
            bases.view(),
            &vectors,
            arrays,
            result,
        )
    }
}

/// Bytes of the lists that a run makes beside what a dense sum needs.
fn lists_bytes(words: usize, sets: usize, rest: usize) -> usize {
    count_scratch_bytes(words * WORD, sets)
        + Carve::bytes_of::<u32>(rest)
        + Carve::bytes_of::<Scalar>(rest)
}
