//! Sums of buckets of sorted entries.
//!
//! An *entry* is a base index in 30 bits with the sign in bit 31; entries of one bucket are neighbours, and
//! `offsets` say where each bucket begins. Every bucket is a pair tree: in each round neighbours are added in
//! affine coordinates, all the additions of a round in all buckets sharing inversions. Which pairs there are is
//! worked out on the device (`pair_plan.cuh`), so that the host knows no count and waits for none: it launches
//! for the most there can be. A hot bucket is a tree like any other. What the rounds leave of long buckets is
//! summed in XYZZ coordinates, which have less latency.
//!
//! Entries are cut into *slabs* as large as the scratch allows, one after another on the stream. A bucket that
//! crosses from one into the next gets its parts added at the end.
//!
//! # Sizes of a slab
//! Let a slab have N points, sums that are added to counted as points, in B buckets, and let t points of a bucket
//! be ceil(t / 2^(r-1)) before round r. The round has sum floor(ceil(t / 2^(r-1)) / 2) pairs. That is at most
//! N / (2^(r-1) + 1), since a bucket with a pair has more than 2^(r-1) points, and the quotient is largest there;
//! and at most (N / 2^(r-1) + B) / 2.

use std::marker::PhantomData;

use cuzk_field::{Affine, Fp, Xyzz};
use cuzk_gpu_mem::{Carve, DeviceInfo, DeviceView, DeviceViewMut, Stream};
use cuzk_kernels::pair_tree::{
    self, Homes, MAX_BASES, Nodes, Operands, Pairs, SLAB_WORDS, SlabView, TAIL_ARITY, TILE_BUCKETS,
    Tail,
};
use cuzk_kernels::{DeviceCurve, Launcher};

use super::error::{Error, Result};

/// Pairs that a thread goes through at most. H200, 2^25 pairs: 8 and 32 are 2% and 1% slower.
const MAX_PER_THREAD: usize = 16;
/// Products that share an inversion at most; with 16 pairs a thread, inversions take 5% of a round.
const MAX_CHAIN: usize = 32;
/// Blocks of the backward kernel on one multiprocessor, and threads of the inversion that fill one.
const BLOCKS_PER_MULTIPROCESSOR: usize = 4;
const INVERT_THREADS_PER_MULTIPROCESSOR: usize = 256;
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
            let slab_entries = max_entries.div_ceil(slabs);
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

    /// Bytes of scratch of a run.
    pub fn scratch_bytes(&self) -> usize {
        let sizes = self.sizes();
        [
            Carve::bytes_of::<u32>(sizes.slab_words),
            Carve::bytes_of::<Affine<F>>(self.slab_count),
            Carve::bytes_of::<u32>(sizes.tile_sums),
            Carve::bytes_of::<u32>(sizes.item_offsets),
            Carve::bytes_of::<u32>(sizes.steps),
            Carve::bytes_of::<u64>(sizes.pairs),
            Carve::bytes_of::<u32>(sizes.pairs),
            Carve::bytes_of::<Fp>(sizes.prefixes),
            Carve::bytes_of::<Fp>(sizes.products),
            Carve::bytes_of::<Fp>(sizes.products),
            Carve::bytes_of::<Fp>(sizes.odd_nodes),
            Carve::bytes_of::<Fp>(sizes.even_nodes),
            Carve::bytes_of::<Xyzz<F>>(sizes.odd_partial),
            Carve::bytes_of::<Xyzz<F>>(sizes.even_partial),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }

    /// Entries of a slab.
    pub fn slab_entries(&self) -> usize {
        self.slab_entries
    }

    /// Slabs, one after another.
    pub fn slab_count(&self) -> usize {
        self.slab_count
    }

    fn sizes(&self) -> Sizes {
        let steps = self.rounds.len() + self.stages.len();
        let pairs = self.rounds[0].pairs;
        Sizes {
            steps,
            slab_words: self.slab_count * SLAB_WORDS,
            tile_sums: steps * self.buckets.div_ceil(TILE_BUCKETS),
            item_offsets: steps * self.buckets,
            pairs,
            prefixes: F::LANES * pairs,
            products: F::LANES
                * self
                    .rounds
                    .iter()
                    .map(|round| pair_tree::products_of::<F>(round.pairs, round.per_thread))
                    .max()
                    .unwrap_or(1),
            odd_nodes: 2 * F::LANES * pairs,
            even_nodes: 2 * F::LANES * self.rounds.get(1).map_or(1, |round| round.pairs),
            odd_partial: self.stages.first().copied().unwrap_or(1),
            even_partial: self.stages.get(1).copied().unwrap_or(1),
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
        for (what, expected, found) in [
            ("sums", self.buckets, sums.len()),
            ("offsets", self.buckets + 1, offsets.len()),
        ] {
            if expected != found {
                return Err(Error::Length {
                    what,
                    expected,
                    found,
                });
            }
        }
        if self.buckets == 0 {
            return Ok(());
        }
        let bases = bases.lend(&[stream])?;
        let entries = entries.lend(&[stream])?;
        let offsets = offsets.lend(&[stream])?;
        let mut sums = sums.lend(&[stream])?;
        let mut scratch = scratch.lend(&[stream])?;
        let mut run = Run {
            plan: self,
            launcher,
            stream,
            bases: bases.view(),
            entries: entries.view(),
            offsets: offsets.view(),
            existing,
            sums: sums.view_mut(),
            scratch: Scratch::carve(&self.sizes(), self.slab_count, scratch.view_mut())?,
        };
        run.all_slabs()
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

struct Sizes {
    steps: usize,
    slab_words: usize,
    tile_sums: usize,
    item_offsets: usize,
    pairs: usize,
    prefixes: usize,
    products: usize,
    odd_nodes: usize,
    even_nodes: usize,
    odd_partial: usize,
    even_partial: usize,
}

/// The arrays of a run, in the order of [`AccumulatePlan::scratch_bytes`].
struct Scratch<'a, F: DeviceCurve> {
    slabs: DeviceViewMut<'a, u32>,
    borders: DeviceViewMut<'a, Affine<F>>,
    tile_sums: DeviceViewMut<'a, u32>,
    item_offsets: DeviceViewMut<'a, u32>,
    totals: DeviceViewMut<'a, u32>,
    pairs: DeviceViewMut<'a, u64>,
    owners: DeviceViewMut<'a, u32>,
    prefixes: DeviceViewMut<'a, Fp>,
    products: DeviceViewMut<'a, Fp>,
    inversions: DeviceViewMut<'a, Fp>,
    /// Nodes of odd levels, and of even ones.
    nodes: [DeviceViewMut<'a, Fp>; 2],
    /// Sums of the first, third, .. stage of the tail, and of the others.
    partial: [DeviceViewMut<'a, Xyzz<F>>; 2],
}

impl<'a, F: DeviceCurve> Scratch<'a, F> {
    fn carve(sizes: &Sizes, slab_count: usize, bytes: DeviceViewMut<'a, u8>) -> Result<Self> {
        let mut carve = Carve::new(bytes);
        Ok(Self {
            slabs: carve.take("slabs", sizes.slab_words)?,
            borders: carve.take("borders", slab_count)?,
            tile_sums: carve.take("sums of tiles", sizes.tile_sums)?,
            item_offsets: carve.take("offsets of items", sizes.item_offsets)?,
            totals: carve.take("totals", sizes.steps)?,
            pairs: carve.take("pairs", sizes.pairs)?,
            owners: carve.take("owners", sizes.pairs)?,
            prefixes: carve.take("prefixes", sizes.prefixes)?,
            products: carve.take("products", sizes.products)?,
            inversions: carve.take("inversions", sizes.products)?,
            nodes: [
                carve.take("nodes of odd levels", sizes.odd_nodes)?,
                carve.take("nodes of even levels", sizes.even_nodes)?,
            ],
            partial: [
                carve.take("sums of odd stages", sizes.odd_partial)?,
                carve.take("sums of even stages", sizes.even_partial)?,
            ],
        })
    }
}

struct Run<'a, F: DeviceCurve> {
    plan: &'a AccumulatePlan<F>,
    launcher: &'a dyn Launcher,
    stream: &'a Stream,
    bases: DeviceView<'a, Affine<F>>,
    entries: DeviceView<'a, u32>,
    offsets: DeviceView<'a, u32>,
    existing: Existing,
    sums: DeviceViewMut<'a, Affine<F>>,
    scratch: Scratch<'a, F>,
}

impl<F: DeviceCurve> Run<'_, F> {
    fn all_slabs(&mut self) -> Result<()> {
        let (launcher, stream) = (self.launcher, self.stream);
        pair_tree::slabs(
            launcher,
            stream,
            self.offsets,
            self.entries.len(),
            self.plan.slab_entries,
            self.scratch.slabs.reborrow(),
        )?;
        if self.existing == Existing::Replace {
            pair_tree::clear_empty(launcher, stream, self.offsets, self.sums.reborrow())?;
        }
        for slab in 0..self.plan.slab_count {
            self.slab(slab)?;
        }
        if self.plan.slab_count > 1 {
            pair_tree::add_borders(
                launcher,
                stream,
                self.offsets,
                self.scratch.slabs.as_view(),
                self.scratch.borders.as_view(),
                self.sums.reborrow(),
            )?;
        }
        Ok(())
    }

    fn slab(&mut self, slab: usize) -> Result<()> {
        let (launcher, stream) = (self.launcher, self.stream);
        let Self { plan, scratch, .. } = self;
        let view = SlabView {
            offsets: self.offsets,
            slabs: scratch.slabs.as_view(),
            slab: slab as u32,
            existing: self.existing == Existing::AddTo,
        };
        let mut homes = Homes {
            sums: self.sums.reborrow(),
            border: scratch.borders.reborrow().slice(slab..=slab),
        };
        let round_count = plan.rounds.len();
        let steps = round_count + plan.stages.len();
        let tile_sums = &mut scratch.tile_sums;
        pair_tree::sums(
            launcher,
            stream,
            &view,
            round_count,
            steps,
            tile_sums.reborrow(),
        )?;
        pair_tree::scan(
            launcher,
            stream,
            tile_sums.reborrow(),
            scratch.totals.reborrow(),
        )?;
        pair_tree::offsets(
            launcher,
            stream,
            &view,
            round_count,
            steps,
            tile_sums.as_view(),
            scratch.item_offsets.reborrow(),
        )?;
        let item_offsets = scratch.item_offsets.as_view();
        let totals = scratch.totals.as_view();
        for (level, round) in plan.rounds.iter().enumerate() {
            // Level 1 is in the first array.
            let [odd, even] = &mut scratch.nodes;
            let (from, out) = if level % 2 == 0 {
                (even, odd)
            } else {
                (odd, even)
            };
            let operands = if level == 0 {
                pair_tree::wait_bases(
                    launcher,
                    stream,
                    self.bases,
                    self.entries,
                    &view,
                    &mut homes,
                )?;
                Operands::Bases(self.bases)
            } else {
                let nodes = Nodes(from.as_view());
                pair_tree::wait_nodes(
                    launcher,
                    stream,
                    nodes,
                    &view,
                    level,
                    item_offsets,
                    &mut homes,
                )?;
                Operands::Nodes(nodes)
            };
            let node_capacity = match operands {
                Operands::Bases(_) => 1,
                Operands::Nodes(nodes) => nodes.places::<F>(),
            };
            pair_tree::expand(
                launcher,
                stream,
                self.entries,
                &view,
                level,
                item_offsets,
                totals,
                scratch.pairs.reborrow().slice(..round.pairs),
                scratch.owners.reborrow().slice(..round.pairs),
                node_capacity,
            )?;
            let pairs = Pairs {
                pairs: scratch.pairs.as_view().slice(..round.pairs),
                owners: scratch.owners.as_view().slice(..round.pairs),
                total: totals.slice(level..=level),
                per_thread: round.per_thread,
            };
            pair_tree::forward(
                launcher,
                stream,
                operands,
                &pairs,
                &mut homes,
                scratch.prefixes.reborrow(),
                scratch.products.reborrow(),
                usize::MAX,
            )?;
            pair_tree::invert::<F>(
                launcher,
                stream,
                &pairs,
                scratch.products.reborrow(),
                scratch.inversions.reborrow(),
                round.chain,
            )?;
            pair_tree::backward(
                launcher,
                stream,
                operands,
                &pairs,
                &mut homes,
                scratch.prefixes.reborrow(),
                scratch.products.reborrow(),
                out.reborrow(),
            )?;
        }
        let tail = Tail {
            rounds: round_count,
            item_offsets,
            totals,
        };
        for (index, &chunks) in plan.stages.iter().enumerate() {
            let [first, second] = &mut scratch.partial;
            let (from, to) = if index % 2 == 0 {
                (second, first)
            } else {
                (first, second)
            };
            let partial = to.reborrow().slice(..chunks);
            if index == 0 {
                let nodes = Nodes(scratch.nodes[(round_count + 1) % 2].as_view());
                pair_tree::sum_nodes(launcher, stream, nodes, &view, &tail, &mut homes, partial)?;
            } else {
                let from = from.as_view().slice(..plan.stages[index - 1]);
                let stage = index + 1;
                pair_tree::sum_sums(
                    launcher, stream, from, &view, &tail, stage, &mut homes, partial,
                )?;
            }
        }
        Ok(())
    }
}

impl<F> AccumulatePlan<F> {
    /// Entries in all at most.
    pub fn max_entries(&self) -> usize {
        self.max_entries
    }

    /// Buckets.
    pub fn buckets(&self) -> usize {
        self.buckets
    }
}
