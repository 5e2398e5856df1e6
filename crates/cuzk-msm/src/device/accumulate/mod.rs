//! Sums of buckets of sorted entries.
//!
//! An *entry* is a base index in 30 bits with the sign in bit 31; entries of one bucket are neighbours, and
//! `offsets` say where each bucket begins. Every bucket is a pair tree: in each round neighbours are added in
//! affine coordinates, all the additions of a round in all buckets sharing inversions. Which pairs there are is
//! worked out on the device (`pair_plan.cuh`), so that the host knows no count and waits for none: it launches
//! for the most there can be. A hot bucket is a tree like any other. What the rounds leave of long buckets is
//! summed in XYZZ coordinates, which have less latency.
//!
//! Entries are cut into *slabs* as large as the scratch allows. A bucket that crosses from one into the next gets
//! its parts added at the end. A slab is worked on in two halves: the first plans all rounds and gathers the points once
//! for their denominators, bound by random accesses; the second does the additions, bound by arithmetic. A
//! [`Pipeline`] runs first halves ahead of second ones, on a stream of their own.
//!
//! # Sizes of a slab
//! Let a slab have N points, sums that are added to counted as points, in B buckets, and let t points of a bucket
//! be ceil(t / 2^(r-1)) before round r. The round has sum floor(ceil(t / 2^(r-1)) / 2) pairs. That is at most
//! N / (2^(r-1) + 1), since a bucket with a pair has more than 2^(r-1) points, and the quotient is largest there;
//! and at most (N / 2^(r-1) + B) / 2.

mod pipeline;
mod slab;

use std::marker::PhantomData;

use cuzk_field::{Affine, Fp, Xyzz};
use cuzk_gpu_mem::{Carve, DeviceInfo, DeviceView, DeviceViewMut, Stream};
use cuzk_kernels::pair_tree::{self, MAX_BASES, SLAB_WORDS, TAIL_ARITY, TILE_BUCKETS};
use cuzk_kernels::{DeviceCurve, Launcher};

use super::error::{Error, Result};

pub use pipeline::{Pipeline, PipelineShape, Streams};

/// Pairs that a thread goes through at most. H200, 2^25 pairs: 8 and 32 are 2% and 1% slower.
const MAX_PER_THREAD: usize = 16;
/// Products that share an inversion at most; with 16 pairs a thread, inversions take 5% of a round.
const MAX_CHAIN: usize = 32;
/// Blocks of the backward kernel on one multiprocessor, and threads of the inversion that fill one.
const BLOCKS_PER_MULTIPROCESSOR: usize = 4;
const INVERT_THREADS_PER_MULTIPROCESSOR: usize = 128;
/// Points that are left to the tail: below, a round costs more by the latency of its inversion.
const TAIL_POINTS: usize = 1 << 17;
/// Entries of a slab at most: pairs and nodes are numbered in 30 bits.
const MAX_SLAB: usize = 1 << 29;
/// Entries of a slab at least; sensible ones have 2^24, where a round is much longer than an inversion.
const LEAST_SLAB: usize = 1 << 6;
/// Buckets at most.
const MAX_BUCKETS: usize = MAX_BASES - 1;

/// What becomes of the sums that are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existing {
    /// They are overwritten; a bucket without entries becomes infinity.
    Replace,
    /// They are added to.
    AddTo,
}

/// How the buckets of one sorted list are summed.
#[derive(Clone, Debug)]
pub struct AccumulatePlan<F> {
    max_entries: usize,
    buckets: usize,
    slab_entries: usize,
    slab_count: usize,
    /// Pairs of each round at most.
    rounds: Vec<Round>,
    /// Chunks of each stage of the tail at most.
    stages: Vec<usize>,
    group: PhantomData<fn(F)>,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    pairs: usize,
    per_thread: usize,
    chain: usize,
}

impl<F: DeviceCurve> AccumulatePlan<F> {
    /// A plan for at most `max_entries` entries in `buckets` buckets, in at most `scratch_limit` bytes.
    pub fn new(
        device: &DeviceInfo,
        max_entries: usize,
        buckets: usize,
        scratch_limit: usize,
    ) -> Result<Self> {
        Self::planned(device, max_entries, buckets, Depth::Usual, scratch_limit)
    }

    /// The same where no bucket has more than `longest` entries: the tree then goes to the end of each.
    pub fn with_longest(
        device: &DeviceInfo,
        max_entries: usize,
        buckets: usize,
        longest: usize,
        scratch_limit: usize,
    ) -> Result<Self> {
        Self::planned(
            device,
            max_entries,
            buckets,
            Depth::Longest(longest),
            scratch_limit,
        )
    }

    /// A plan with this many rounds, at least one, before the tail: for tests and measurements.
    #[doc(hidden)]
    pub fn with_rounds(
        device: &DeviceInfo,
        max_entries: usize,
        buckets: usize,
        rounds: usize,
        scratch_limit: usize,
    ) -> Result<Self> {
        Self::planned(
            device,
            max_entries,
            buckets,
            Depth::Rounds(rounds),
            scratch_limit,
        )
    }

    fn planned(
        device: &DeviceInfo,
        max_entries: usize,
        buckets: usize,
        depth: Depth,
        scratch_limit: usize,
    ) -> Result<Self> {
        for (what, most, found) in [
            ("buckets", MAX_BUCKETS, buckets),
            ("entries", u32::MAX as usize, max_entries),
        ] {
            if found > most {
                return Err(Error::TooLarge { what, most, found });
            }
        }
        let sized = |slab_entries| Self::sized(device, max_entries, buckets, depth, slab_entries);
        let fits = |plan: &Self| plan.scratch_bytes() <= scratch_limit;
        let whole = sized(max_entries.clamp(1, MAX_SLAB));
        if fits(&whole) {
            return Ok(whole);
        }
        // The fewest slabs that fit; more slabs are smaller.
        let (mut too_few, mut slabs) = (whole.slab_count, whole.slab_count);
        let plan = loop {
            slabs *= 2;
            let slab_entries = max_entries.div_ceil(slabs).max(1);
            let plan = sized(slab_entries);
            if fits(&plan) {
                break plan;
            }
            if slab_entries <= LEAST_SLAB {
                return Err(Error::TooLittleScratch {
                    what: "the accumulation of buckets",
                    needed: plan.scratch_bytes(),
                    limit: scratch_limit,
                });
            }
            too_few = slabs;
        };
        let mut best = plan;
        while slabs - too_few > 1 {
            let middle = too_few + (slabs - too_few) / 2;
            let plan = sized(max_entries.div_ceil(middle));
            if fits(&plan) {
                (best, slabs) = (plan, middle);
            } else {
                too_few = middle;
            }
        }
        Ok(best)
    }

    fn sized(
        device: &DeviceInfo,
        max_entries: usize,
        buckets: usize,
        depth: Depth,
        slab_entries: usize,
    ) -> Self {
        let multiprocessors = usize::try_from(device.multiprocessors).unwrap_or(0).max(1);
        let filled = buckets.min(slab_entries).max(1);
        let points = slab_entries + filled;
        let round_count = depth.rounds(slab_entries, filled);
        // With a sum that is there.
        let longest = match depth {
            Depth::Longest(longest) => longest.clamp(1, slab_entries) + 1,
            Depth::Usual | Depth::Rounds(_) => slab_entries + 1,
        };
        let groups = pair_tree::THREADS / F::LANES;
        let mut most = points / 2;
        let rounds = (0..round_count).map(|level| {
            most = most
                .min(points / ((1 << level) + 1))
                .min(((points >> level) + filled) / 2 + 1);
            let pairs = most.max(1);
            let per_thread = (pairs / (groups * BLOCKS_PER_MULTIPROCESSOR * multiprocessors))
                .clamp(1, MAX_PER_THREAD);
            let products = pair_tree::products_of::<F>(pairs, per_thread);
            let chain = (products / (INVERT_THREADS_PER_MULTIPROCESSOR * multiprocessors))
                .clamp(1, MAX_CHAIN);
            Round {
                pairs,
                per_thread,
                chain,
            }
        });
        let rounds = rounds.collect();
        let mut stages = Vec::new();
        let mut left = longest.div_ceil(1 << round_count);
        let mut span = 1 << round_count;
        while left > 1 {
            stages.push((points / (span + 1)).max(1));
            left = left.div_ceil(TAIL_ARITY);
            span *= TAIL_ARITY;
        }
        Self {
            max_entries,
            buckets,
            slab_entries,
            slab_count: max_entries.div_ceil(slab_entries).max(1),
            rounds,
            stages,
            group: PhantomData,
        }
    }

    /// Bytes of scratch of [`Self::run`].
    pub fn scratch_bytes(&self) -> usize {
        PipelineShape::new([self], 1, 1).scratch_bytes()
    }

    /// Entries in all at most.
    pub fn max_entries(&self) -> usize {
        self.max_entries
    }

    /// Buckets.
    pub fn buckets(&self) -> usize {
        self.buckets
    }

    /// Entries of a slab.
    pub fn slab_entries(&self) -> usize {
        self.slab_entries
    }

    /// Slabs.
    pub fn slab_count(&self) -> usize {
        self.slab_count
    }

    fn steps(&self) -> usize {
        self.rounds.len() + self.stages.len()
    }

    fn sizes(&self) -> Sizes {
        let first = self.rounds[0].pairs;
        let products = |round: &Round| pair_tree::products_of::<F>(round.pairs, round.per_thread);
        Sizes {
            offsets: self.buckets + 1,
            slabs: self.slab_count,
            tile_sums: self.steps() * self.buckets.div_ceil(TILE_BUCKETS),
            item_offsets: self.steps() * self.buckets,
            steps: self.steps(),
            pairs: self.rounds.iter().map(|round| round.pairs).sum(),
            prefixes: F::LANES * first,
            products: F::LANES * self.rounds.iter().map(products).max().unwrap_or(1),
            nodes: [
                2 * F::LANES * first,
                2 * F::LANES * self.rounds.get(1).map_or(1, |round| round.pairs),
            ],
            partial: [0, 1].map(|stage| self.stages.get(stage).copied().unwrap_or(1)),
        }
    }

    /// Leaves one point a bucket in `sums`, canonical, infinity where there is nothing to add.
    ///
    /// `bases` are canonical points on the curve, infinity (0, 0), at most [`MAX_BASES`] of them; every
    /// pair of them may be equal or opposite. `entries` are positions 0 and on of which bucket k has
    /// `offsets[k]` to `offsets[k + 1] - 1`; offsets do not descend, and the last is at most `max_entries`
    /// above the first. An index without a base counts as infinity. The sums do not depend on the order of
    /// entries in a bucket.
    #[expect(clippy::too_many_arguments, reason = "what there is to say")]
    pub fn run(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        bases: DeviceView<'_, Affine<F>>,
        entries: DeviceView<'_, u32>,
        offsets: DeviceView<'_, u32>,
        sums: DeviceViewMut<'_, Affine<F>>,
        existing: Existing,
        scratch: DeviceViewMut<'_, u8>,
    ) -> Result<()> {
        self.run_observed(
            launcher,
            stream,
            bases,
            entries,
            offsets,
            sums,
            existing,
            scratch,
            &mut |_| (),
        )
    }

    /// [`Self::run`] that names each launch after it, for measurements.
    #[doc(hidden)]
    #[expect(clippy::too_many_arguments, reason = "what there is to say")]
    pub fn run_observed(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        bases: DeviceView<'_, Affine<F>>,
        entries: DeviceView<'_, u32>,
        offsets: DeviceView<'_, u32>,
        sums: DeviceViewMut<'_, Affine<F>>,
        existing: Existing,
        scratch: DeviceViewMut<'_, u8>,
        launched: &mut dyn FnMut(&'static str),
    ) -> Result<()> {
        let bases = bases.lend(&[stream])?;
        let entries = entries.lend(&[stream])?;
        let offsets = offsets.lend(&[stream])?;
        let mut sums = sums.lend(&[stream])?;
        let mut scratch = scratch.lend(&[stream])?;
        let shape = PipelineShape::new([self], 1, 1);
        let lanes = [stream];
        let mut pipeline = Pipeline::on(
            launcher,
            stream,
            &lanes,
            bases.view(),
            &shape,
            scratch.view_mut(),
        )?;
        pipeline.push_observed(
            bases.view(),
            self,
            entries.view(),
            offsets.view(),
            sums.view_mut(),
            existing,
            launched,
        )
    }
}

/// What the number of rounds follows from.
#[derive(Clone, Copy, Debug)]
enum Depth {
    /// As many as nearly all buckets of a uniform distribution need, but not so many that fewer than
    /// [`TAIL_POINTS`] points are left between them.
    Usual,
    /// As many as a bucket of this length needs.
    Longest(usize),
    /// This many.
    Rounds(usize),
}

impl Depth {
    fn rounds(self, entries: usize, buckets: usize) -> usize {
        let log = |points: f64| points.max(2.0).log2().ceil() as usize;
        let rounds = match self {
            Self::Usual => {
                let mean = entries as f64 / buckets as f64;
                let by_distribution = log(mean + 4.0 * mean.sqrt());
                by_distribution.min(log(entries as f64 / TAIL_POINTS as f64))
            }
            Self::Longest(longest) => log(longest as f64),
            Self::Rounds(rounds) => rounds,
        };
        rounds.clamp(1, 30)
    }
}

/// Elements of each array of scratch.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    offsets: usize,
    slabs: usize,
    tile_sums: usize,
    item_offsets: usize,
    steps: usize,
    /// Of all rounds.
    pairs: usize,
    prefixes: usize,
    products: usize,
    /// Of odd levels, and of even ones.
    nodes: [usize; 2],
    /// Sums of the first, third, .. stage of the tail, and of the others.
    partial: [usize; 2],
}

impl Sizes {
    /// What is enough for both.
    fn max(self, other: Self) -> Self {
        Self {
            offsets: self.offsets.max(other.offsets),
            slabs: self.slabs.max(other.slabs),
            tile_sums: self.tile_sums.max(other.tile_sums),
            item_offsets: self.item_offsets.max(other.item_offsets),
            steps: self.steps.max(other.steps),
            pairs: self.pairs.max(other.pairs),
            prefixes: self.prefixes.max(other.prefixes),
            products: self.products.max(other.products),
            nodes: [0, 1].map(|i| self.nodes[i].max(other.nodes[i])),
            partial: [0, 1].map(|i| self.partial[i].max(other.partial[i])),
        }
    }

    /// Bytes of a [`Slot`](slab::Slot).
    fn slot_bytes<F: DeviceCurve>(&self) -> usize {
        [
            Carve::bytes_of::<u32>(self.offsets),
            Carve::bytes_of::<u32>(self.slabs * SLAB_WORDS),
            Carve::bytes_of::<Affine<F>>(self.slabs),
            Carve::bytes_of::<u32>(self.tile_sums),
            Carve::bytes_of::<u32>(self.item_offsets),
            Carve::bytes_of::<u32>(self.steps),
            Carve::bytes_of::<u64>(self.pairs),
            Carve::bytes_of::<u32>(self.pairs),
            Carve::bytes_of::<Fp>(self.prefixes),
            Carve::bytes_of::<Fp>(self.products),
            Carve::bytes_of::<Fp>(self.products),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }

    /// Bytes of a [`Lane`](slab::Lane).
    fn lane_bytes<F: DeviceCurve>(&self) -> usize {
        [
            Carve::bytes_of::<Fp>(self.nodes[0]),
            Carve::bytes_of::<Fp>(self.nodes[1]),
            Carve::bytes_of::<Xyzz<F>>(self.partial[0]),
            Carve::bytes_of::<Xyzz<F>>(self.partial[1]),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }
}
