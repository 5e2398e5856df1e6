//! Sums over sparse witnesses, with bases that come from the host in batches.
//!
//! Each batch has the terms whose bases it holds: ones are added to the sums of ones so far, the others to the buckets of
//! their windows, which are reduced once. What is listed of a batch uses the scratch of the one before.

use cuzk_field::{Affine, Xyzz};
use cuzk_gpu_mem::{Carve, DeviceInfo, DeviceViewMut, Footprint, PinnedBuf, Stream};
use cuzk_kernels::Launcher;
use cuzk_kernels::sparse_terms::BaseSet;
use cuzk_kernels::witness::{PackedWitness, WORD};

use super::DeviceCurve;
use super::batches::Batches;
use super::error::{Error, Result};
use super::layout::{Keep, Layout, Order, Terms};
use super::pending::Pending;
use super::plan::check_size;
use super::run::{Arrays, Queue, check, finish};
use super::streamed::existing_of;
use super::term_lists::{Lists, TermCounts, base_range};
use super::tuning;
use super::uploads::{Batch, HostBases, Next, Uploads};

/// The share of the scratch that the kept sums of buckets take at most: the bus is waited for, so narrower windows cost
/// less than smaller batches.
const KEPT_SHARE: usize = 4;

/// How the sums of several witnesses and base sets, which are parts of one array of bases, are computed while that array
/// crosses the bus once.
#[derive(Debug)]
pub struct StreamedSparsePlan<F: DeviceCurve> {
    batches: Batches,
    /// Of each batch: of each witness, of each set.
    counts: Vec<Vec<TermCounts>>,
    witnesses: usize,
    words: usize,
    /// Terms that are neither zero nor one, of a batch at most.
    rest: usize,
    /// Of a batch with the most terms of each kind.
    layout: Layout<F>,
    layouts: Vec<Layout<F>>,
}

impl<F: DeviceCurve> StreamedSparsePlan<F> {
    /// A plan for so many witnesses of so many variables each, with the terms that
    /// [`count_terms_in`](super::count_terms_in) found, in at most `scratch_limit` bytes, two batches of bases included.
    ///
    /// # Errors
    /// [`Error::TooLittleScratch`] when nothing works in so few bytes, [`Error::Length`] when the counts are not those
    /// of the batches.
    pub fn new(
        device: &DeviceInfo,
        variables: usize,
        batches: &Batches,
        witnesses: usize,
        counts: &[TermCounts],
        scratch_limit: u64,
    ) -> Result<Self> {
        check_size(batches.bases())?;
        let limit = usize::try_from(scratch_limit).unwrap_or(usize::MAX);
        let sums = counts.len() / batches.len();
        check("counts", batches.len() * sums, counts.len())?;
        if witnesses == 0 || !sums.is_multiple_of(witnesses) {
            check("counts of a batch", witnesses, sums)?;
        }
        let words = variables.div_ceil(WORD);
        let counts: Vec<Vec<TermCounts>> = match sums {
            0 => vec![Vec::new(); batches.len()],
            _ => counts.chunks(sums).map(<[_]>::to_vec).collect(),
        };
        let rest_of = |counts: &Vec<TermCounts>| counts.iter().map(|c| c.rest).sum::<usize>();
        let rest = counts.iter().map(rest_of).max().unwrap_or(0);
        let most = |of: &dyn Fn(&TermCounts) -> usize| -> Vec<usize> {
            let largest = |sum: usize| counts.iter().map(|counts| of(&counts[sum])).max();
            (0..sums).map(|sum| largest(sum).unwrap_or(0)).collect()
        };
        let terms = Terms {
            vectors: most(&|counts| counts.rest),
            ones: most(&|counts| counts.ones),
        };
        // Windows are those of a whole sum.
        let whole = |sum: usize| counts.iter().map(|counts| counts[sum].rest).sum::<usize>();
        let longest = (0..sums).map(whole).max().unwrap_or(0);
        let own = batches.buffer_bytes::<F>() + Lists::bytes(words, sums, rest);
        let left = limit.saturating_sub(own);
        let vectors = terms.vectors.iter().filter(|len| **len > 0).count();
        let most = left / KEPT_SHARE / (vectors.max(1) * size_of::<Affine<F>>());
        let tuning = tuning::within_buckets(device, longest, most);
        let (keep, order) = (Keep::ToTheEnd, Order::Sequence);
        let layout = Layout::new(device, &tuning, &terms, keep, order, left);
        let mut layout = layout.map_err(|error| match error {
            Error::TooLittleScratch { needed, .. } => Error::TooLittleScratch {
                what: "sums over streamed bases",
                needed: own.saturating_add(needed),
                limit,
            },
            other => other,
        })?;
        let layouts = counts
            .iter()
            .map(|counts| layout.for_batch(device, &Terms::sparse(counts), left))
            .collect::<Result<Vec<_>>>()?;
        layout.cover(&layouts);
        let plan = Self {
            batches: batches.clone(),
            counts,
            witnesses,
            words,
            rest,
            layout,
            layouts,
        };
        let needed = usize::try_from(plan.footprint().device).unwrap_or(usize::MAX);
        if needed > limit {
            return Err(Error::TooLittleScratch {
                what: "sums over streamed bases",
                needed,
                limit,
            });
        }
        Ok(plan)
    }

    fn sums(&self) -> usize {
        self.layout.terms.ones.len()
    }

    /// Scratch on the device, two batches in it, and the pinned result, in bytes.
    pub fn footprint(&self) -> Footprint {
        let lists = Lists::bytes(self.words, self.sums(), self.rest);
        let own = self.batches.buffer_bytes::<F>() + lists;
        Footprint {
            device: (own + self.layout.scratch_bytes()) as u64,
            pinned: (self.result_len() * size_of::<Xyzz<F>>()) as u64,
            host: 0,
        }
    }

    /// Elements of the pinned result.
    pub fn result_len(&self) -> usize {
        self.layout.labels.len()
    }

    /// Computes, for each witness and each set, the sum over its members of their values times their bases: witness by
    /// witness. Witnesses and sets are those that were counted; otherwise terms are left out, and sums are wrong.
    #[expect(clippy::too_many_arguments, reason = "what there is to say")]
    pub fn run(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        bases: HostBases<'_, '_, '_, F>,
        witnesses: &[PackedWitness<'_>],
        sets: &[BaseSet<'_>],
        scratch: DeviceViewMut<'_, u8>,
        result: PinnedBuf<Xyzz<F>>,
    ) -> Result<Pending<F>> {
        check("witnesses", self.witnesses, witnesses.len())?;
        check("sets", self.sums() / self.witnesses, sets.len())?;
        for witness in witnesses {
            check("words of a witness", self.words, witness.bits.len())?;
        }
        check("result", self.result_len(), result.len())?;
        let mut scratch = scratch.lend(&[stream, bases.uploads.stream()])?;
        let mut carve = Carve::new(scratch.view_mut());
        let mut uploads = Uploads::begin(bases, &self.batches, &mut carve, &[stream])?;
        let mut lists = Lists::carve(self.words, self.sums(), self.rest, &mut carve)?;
        let mut arrays = Arrays::carve(&self.layout, &mut carve)?;
        let queue = Queue { launcher, stream };
        let ranges = self.batches.ranges().iter().map(base_range);
        let batches = ranges.zip(&self.counts).zip(&self.layouts);
        for (index, ((range, counts), layout)) in batches.enumerate() {
            lists.make(queue, &range, witnesses, sets, counts, &mut arrays)?;
            let vectors = lists.vectors(counts);
            let Batch { bases, next } = uploads.batch(index, stream, &[stream])?;
            for slab in &layout.slabs {
                slab.accumulate(queue, bases, &vectors, existing_of(index), &mut arrays)?;
            }
            // The host is one batch ahead of the device when this one is off.
            next.map_or(Ok(()), Next::send)?;
        }
        finish(&self.layout, queue, &mut arrays, result)
    }
}
