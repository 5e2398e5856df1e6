//! The two halves of the work on a slab.

use cuzk_field::{Affine, Fp, Xyzz};
use cuzk_gpu_mem::{Carve, DeviceView, DeviceViewMut, Stream};
use cuzk_kernels::pair_tree::{self, Homes, Nodes, Operands, Pairs, SLAB_WORDS, SlabView, Tail};
use cuzk_kernels::{DeviceCurve, Launcher};

use super::super::error::Result;
use super::{AccumulatePlan, Existing, Sizes};

/// What describes all slabs of a job.
pub(super) struct Job<'a, F: DeviceCurve> {
    /// A copy of the caller's.
    pub(super) offsets: DeviceViewMut<'a, u32>,
    pub(super) slabs: DeviceViewMut<'a, u32>,
    /// The homes of buckets that began in an earlier slab.
    pub(super) borders: DeviceViewMut<'a, Affine<F>>,
}

/// What the first half of a slab leaves for the second.
pub(super) struct Slot<'a> {
    tile_sums: DeviceViewMut<'a, u32>,
    item_offsets: DeviceViewMut<'a, u32>,
    totals: DeviceViewMut<'a, u32>,
    /// Of all rounds, one after another.
    pairs: DeviceViewMut<'a, u64>,
    owners: DeviceViewMut<'a, u32>,
    prefixes: DeviceViewMut<'a, Fp>,
    products: DeviceViewMut<'a, Fp>,
    inversions: DeviceViewMut<'a, Fp>,
}

/// What the second half works in.
pub(super) struct Lane<'a, F: DeviceCurve> {
    nodes: [DeviceViewMut<'a, Fp>; 2],
    partial: [DeviceViewMut<'a, Xyzz<F>>; 2],
}

impl<'a, F: DeviceCurve> Job<'a, F> {
    pub(super) fn carve(sizes: &Sizes, carve: &mut Carve<'a>) -> Result<Self> {
        Ok(Self {
            offsets: carve.take("offsets", sizes.offsets)?,
            slabs: carve.take("slabs", sizes.slabs * SLAB_WORDS)?,
            borders: carve.take("borders", sizes.slabs)?,
        })
    }
}

impl<'a> Slot<'a> {
    pub(super) fn carve(sizes: &Sizes, carve: &mut Carve<'a>) -> Result<Self> {
        Ok(Self {
            tile_sums: carve.take("sums of tiles", sizes.tile_sums)?,
            item_offsets: carve.take("offsets of items", sizes.item_offsets)?,
            totals: carve.take("totals", sizes.steps)?,
            pairs: carve.take("pairs", sizes.pairs)?,
            owners: carve.take("owners", sizes.pairs)?,
            prefixes: carve.take("prefixes", sizes.prefixes)?,
            products: carve.take("products", sizes.products)?,
            inversions: carve.take("inversions", sizes.products)?,
        })
    }
}

impl<'a, F: DeviceCurve> Lane<'a, F> {
    pub(super) fn carve(sizes: &Sizes, carve: &mut Carve<'a>) -> Result<Self> {
        Ok(Self {
            nodes: [
                carve.take("nodes of odd levels", sizes.nodes[0])?,
                carve.take("nodes of even levels", sizes.nodes[1])?,
            ],
            partial: [
                carve.take("sums of odd stages", sizes.partial[0])?,
                carve.take("sums of even stages", sizes.partial[1])?,
            ],
        })
    }
}

/// A slab of a job on its way.
pub(super) struct Work<'a, 'w, F: DeviceCurve> {
    pub(super) plan: &'a AccumulatePlan<F>,
    pub(super) launcher: &'a dyn Launcher,
    pub(super) bases: DeviceView<'w, Affine<F>>,
    pub(super) existing: Existing,
    pub(super) slab: usize,
    pub(super) offsets: DeviceView<'w, u32>,
    pub(super) slabs: DeviceView<'w, u32>,
    pub(super) homes: Homes<'w, F>,
    pub(super) slot: &'w mut Slot<'a>,
    pub(super) launched: &'w mut dyn FnMut(&'static str),
}

impl<'w, F: DeviceCurve> Work<'_, 'w, F> {
    fn view(&self) -> SlabView<'w> {
        SlabView {
            offsets: self.offsets,
            slabs: self.slabs,
            slab: self.slab as u32,
            existing: self.existing == Existing::AddTo,
        }
    }

    /// Plans all rounds, and goes through the first as far as the products of its denominators.
    pub(super) fn begin(
        &mut self,
        stream: &Stream,
        entries: DeviceView<'_, u32>,
        blocks: usize,
    ) -> Result<()> {
        let (plan, launcher) = (self.plan, self.launcher);
        let (rounds, steps) = (plan.rounds.len(), plan.steps());
        let view = self.view();
        let buckets = plan.buckets;
        let tiles = buckets.div_ceil(pair_tree::TILE_BUCKETS);
        let slot = &mut *self.slot;
        let mut tile_sums = slot.tile_sums.reborrow().slice(..steps * tiles);
        let mut item_offsets = slot.item_offsets.reborrow().slice(..steps * buckets);
        let mut totals = slot.totals.reborrow().slice(..steps);
        pair_tree::sums(launcher, stream, &view, rounds, steps, tile_sums.reborrow())?;
        pair_tree::scan(launcher, stream, tile_sums.reborrow(), totals.reborrow())?;
        pair_tree::offsets(
            launcher,
            stream,
            &view,
            rounds,
            steps,
            tile_sums.as_view(),
            item_offsets.reborrow(),
        )?;
        (self.launched)("plan");
        pair_tree::wait_bases(
            launcher,
            stream,
            self.bases,
            entries,
            &view,
            &mut self.homes,
        )?;
        (self.launched)("wait");
        let mut first = 0;
        for (level, round) in plan.rounds.iter().enumerate() {
            let range = first..first + round.pairs;
            first = range.end;
            // Nodes lie at the numbers of the pairs of the round before.
            let node_capacity = if level == 0 {
                1
            } else {
                plan.rounds[level - 1].pairs
            };
            pair_tree::expand(
                launcher,
                stream,
                entries,
                &view,
                level,
                item_offsets.as_view(),
                totals.as_view(),
                slot.pairs.reborrow().slice(range.clone()),
                slot.owners.reborrow().slice(range),
                node_capacity,
            )?;
        }
        (self.launched)("expand");
        let first_round = plan.rounds[0];
        let pairs = Pairs {
            pairs: slot.pairs.as_view().slice(..first_round.pairs),
            owners: slot.owners.as_view().slice(..first_round.pairs),
            total: totals.as_view().slice(..1),
            per_thread: first_round.per_thread,
        };
        pair_tree::forward(
            launcher,
            stream,
            Operands::Bases(self.bases),
            &pairs,
            &mut self.homes,
            slot.prefixes.reborrow(),
            slot.products.reborrow(),
            blocks,
        )?;
        (self.launched)("forward");
        Ok(())
    }

    /// Goes through the rounds to their ends, and sums what they leave.
    pub(super) fn finish(&mut self, stream: &Stream, lane: &mut Lane<'_, F>) -> Result<()> {
        let (plan, launcher) = (self.plan, self.launcher);
        let slot = &mut *self.slot;
        let totals = slot.totals.as_view().slice(..plan.steps());
        let mut first = 0;
        for (level, round) in plan.rounds.iter().enumerate() {
            let range = first..first + round.pairs;
            first = range.end;
            let pairs = Pairs {
                pairs: slot.pairs.as_view().slice(range.clone()),
                owners: slot.owners.as_view().slice(range),
                total: totals.slice(level..=level),
                per_thread: round.per_thread,
            };
            // Level 1 is in the first array.
            let [odd, even] = &mut lane.nodes;
            let (from, out) = if level % 2 == 0 {
                (even, odd)
            } else {
                (odd, even)
            };
            let operands = if level == 0 {
                Operands::Bases(self.bases)
            } else {
                Operands::Nodes(Nodes(from.as_view()))
            };
            if level > 0 {
                pair_tree::forward(
                    launcher,
                    stream,
                    operands,
                    &pairs,
                    &mut self.homes,
                    slot.prefixes.reborrow(),
                    slot.products.reborrow(),
                    usize::MAX,
                )?;
                (self.launched)("forward");
            }
            pair_tree::invert::<F>(
                launcher,
                stream,
                &pairs,
                slot.products.reborrow(),
                slot.inversions.reborrow(),
                round.chain,
            )?;
            (self.launched)("invert");
            pair_tree::backward(
                launcher,
                stream,
                operands,
                &pairs,
                &mut self.homes,
                slot.prefixes.reborrow(),
                slot.products.reborrow(),
                out.reborrow(),
            )?;
            (self.launched)("backward");
        }
        self.tail(stream, lane)
    }

    fn tail(&mut self, stream: &Stream, lane: &mut Lane<'_, F>) -> Result<()> {
        let (plan, launcher) = (self.plan, self.launcher);
        let rounds = plan.rounds.len();
        let view = self.view();
        let tail = Tail {
            rounds,
            item_offsets: self
                .slot
                .item_offsets
                .as_view()
                .slice(..plan.steps() * plan.buckets),
            totals: self.slot.totals.as_view().slice(..plan.steps()),
        };
        let homes = &mut self.homes;
        for (index, &chunks) in plan.stages.iter().enumerate() {
            let [odd, even] = &mut lane.partial;
            let (from, to) = if index % 2 == 0 {
                (even, odd)
            } else {
                (odd, even)
            };
            let partial = to.reborrow().slice(..chunks);
            if index == 0 {
                let nodes = Nodes(lane.nodes[(rounds + 1) % 2].as_view());
                pair_tree::sum_nodes(launcher, stream, nodes, &view, &tail, homes, partial)?;
            } else {
                let from = from.as_view().slice(..plan.stages[index - 1]);
                pair_tree::sum_sums(
                    launcher,
                    stream,
                    from,
                    &view,
                    &tail,
                    index + 1,
                    homes,
                    partial,
                )?;
            }
            (self.launched)("tail");
        }
        Ok(())
    }
}
