//! Sums over witnesses that are mostly zeros and ones, for several base sets at a time.
//!
//! The bases whose scalar is one are a bucket: their sum is a pair tree without windows. The others make a small sum of
//! the usual kind. All sets over one array of bases share their rounds.

use std::sync::Arc;

use cuzk_field::{Affine, Xyzz};
use cuzk_gpu_mem::{Carve, DeviceInfo, DeviceView, DeviceViewMut, Footprint, PinnedBuf, Stream};
use cuzk_kernels::Launcher;
use cuzk_kernels::sparse_terms::{ALL_BASES, BaseSet};
use cuzk_kernels::witness::{PackedWitness, WORD};

use super::DeviceCurve;
use super::accumulate::Streams;
use super::error::Result;
use super::layout::{Keep, Layout, Order, Terms};
use super::pending::Pending;
use super::run::{Arrays, Queue, check, run};
use super::term_lists::{Lists, TermCounts};
use super::tuning;

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
        let terms = Terms::sparse(counts);
        let tuning = tuning::tuning(device, most);
        let lists = Lists::bytes(words, counts.len(), rest);
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
        let lists = Lists::bytes(self.words, self.counts.len(), self.rest);
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
        let mut lists = Lists::carve(self.words, sets.len(), self.rest, &mut carve)?;
        let mut arrays = Arrays::carve(&self.layout, &mut carve)?;
        let queue = Queue { launcher, stream };
        let witnesses = [witness];
        lists.make(
            queue,
            &ALL_BASES,
            &witnesses,
            sets,
            &self.counts,
            &mut arrays,
        )?;
        let vectors = lists.vectors(&self.counts);
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
