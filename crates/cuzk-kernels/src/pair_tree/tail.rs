//! `pair_tail_g1.cu` and `pair_tail_g2.cu`.

use cuzk_field::{Affine, Fp, Fp2, Xyzz};
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use super::{Homes, MAX_BASES, Nodes, SLAB_WORDS, SlabView};
use crate::curve::DeviceCurve;
use crate::declare::{Kernel, kernels};
use crate::device_type::{Chunk, Ptr, PtrMut, Slab};
use crate::error::Result;
use crate::launcher::{Launcher, Shape};
use crate::lengths::{at_least, at_most, exactly};

/// Threads of a block of these kernels.
const THREADS: u32 = 128;
/// Blocks at most where each thread goes through an array.
const MAX_BLOCKS: usize = 1 << 16;

type ClearEmpty<F> = (Ptr<u32>, u32, PtrMut<Affine<F>>);
type WaitBases<F> = (
    Ptr<Affine<F>>,
    u32,
    Ptr<u32>,
    u32,
    Ptr<u32>,
    u32,
    Ptr<Slab>,
    u32,
    u32,
    PtrMut<Affine<F>>,
    PtrMut<Affine<F>>,
);
type SumNodes<F> = (
    Ptr<Chunk>,
    u32,
    Ptr<u32>,
    u32,
    Ptr<Slab>,
    u32,
    u32,
    u32,
    Ptr<u32>,
    Ptr<u32>,
    PtrMut<Affine<F>>,
    PtrMut<Affine<F>>,
    PtrMut<Xyzz<F>>,
    u32,
);
type SumSums<F> = (
    Ptr<Xyzz<F>>,
    u32,
    Ptr<u32>,
    u32,
    Ptr<Slab>,
    u32,
    u32,
    u32,
    u32,
    Ptr<u32>,
    Ptr<u32>,
    PtrMut<Affine<F>>,
    PtrMut<Affine<F>>,
    PtrMut<Xyzz<F>>,
    u32,
);
type AddBorders<F> = (
    Ptr<u32>,
    u32,
    Ptr<Slab>,
    u32,
    Ptr<Affine<F>>,
    PtrMut<Affine<F>>,
);

/// The kernels around the rounds in one group.
#[derive(Debug)]
pub(crate) struct TailKernels<F: DeviceCurve> {
    clear_empty: &'static Kernel<ClearEmpty<F>>,
    wait_bases: &'static Kernel<WaitBases<F>>,
    sum_nodes: &'static Kernel<SumNodes<F>>,
    sum_sums: &'static Kernel<SumSums<F>>,
    add_borders: &'static Kernel<AddBorders<F>>,
}

macro_rules! group {
    ($group:ident, $field:ty, $module:literal, $($entry:ident)+) => {
        pub(crate) mod $group {
            use super::*;

            group!(@kernels $field, $module, $($entry)+);

            pub(crate) const KERNELS: TailKernels<$field> = TailKernels {
                clear_empty: &CLEAR_EMPTY,
                wait_bases: &WAIT_BASES,
                sum_nodes: &SUM_NODES,
                sum_sums: &SUM_SUMS,
                add_borders: &ADD_BORDERS,
            };
        }
    };
    (@kernels $field:ty, $module:literal,
     $clear_empty:ident $wait_bases:ident $sum_nodes:ident $sum_sums:ident $add_borders:ident) => {
        kernels! {
            module $module;
            /// See [`clear_empty`].
            CLEAR_EMPTY = $clear_empty[THREADS](offsets: Ptr<u32>, buckets: u32, sums: PtrMut<Affine<$field>>);
            /// See [`wait_bases`].
            WAIT_BASES = $wait_bases[THREADS](
                points: Ptr<Affine<$field>>, point_count: u32, entries: Ptr<u32>, entry_count: u32,
                offsets: Ptr<u32>, buckets: u32, slabs: Ptr<Slab>, slab: u32, existing: u32,
                sums: PtrMut<Affine<$field>>, border: PtrMut<Affine<$field>>,
            );
            /// See [`sum_nodes`].
            SUM_NODES = $sum_nodes[THREADS](
                nodes: Ptr<Chunk>, node_stride: u32,
                offsets: Ptr<u32>, buckets: u32, slabs: Ptr<Slab>, slab: u32, existing: u32,
                rounds: u32, item_offsets: Ptr<u32>, totals: Ptr<u32>,
                sums: PtrMut<Affine<$field>>, border: PtrMut<Affine<$field>>,
                partial: PtrMut<Xyzz<$field>>, capacity: u32,
            );
            /// See [`sum_sums`].
            SUM_SUMS = $sum_sums[THREADS](
                from: Ptr<Xyzz<$field>>, from_count: u32,
                offsets: Ptr<u32>, buckets: u32, slabs: Ptr<Slab>, slab: u32, existing: u32,
                rounds: u32, stage: u32, item_offsets: Ptr<u32>, totals: Ptr<u32>,
                sums: PtrMut<Affine<$field>>, border: PtrMut<Affine<$field>>,
                partial: PtrMut<Xyzz<$field>>, capacity: u32,
            );
            /// See [`add_borders`].
            ADD_BORDERS = $add_borders[THREADS](
                offsets: Ptr<u32>, buckets: u32, slabs: Ptr<Slab>, slab_count: u32,
                borders: Ptr<Affine<$field>>, sums: PtrMut<Affine<$field>>,
            );
        }
    };
}

group! { g1, Fp, "pair_tail_g1",
    cuzk_pair_tail_g1_clear_empty
    cuzk_pair_tail_g1_wait_bases
    cuzk_pair_tail_g1_sum_nodes
    cuzk_pair_tail_g1_sum_sums
    cuzk_pair_tail_g1_add_borders
}
group! { g2, Fp2, "pair_tail_g2",
    cuzk_pair_tail_g2_clear_empty
    cuzk_pair_tail_g2_wait_bases
    cuzk_pair_tail_g2_sum_nodes
    cuzk_pair_tail_g2_sum_sums
    cuzk_pair_tail_g2_add_borders
}

/// A grid in which each thread goes through an array of `count`.
fn walking(count: usize) -> Shape {
    Shape::blocks(
        count.div_ceil(THREADS as usize).min(MAX_BLOCKS) as u32,
        THREADS,
    )
}

fn slab_ptr(slabs: &DeviceView<'_, u32>) -> Ptr<Slab> {
    Ptr::<u32>::from(slabs).cast()
}

/// Sets the sums of buckets without entries to infinity.
pub fn clear_empty<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    offsets: DeviceView<'_, u32>,
    sums: DeviceViewMut<'_, Affine<F>>,
) -> Result<()> {
    let kernel = F::kernels().tail.clear_empty;
    let entry = kernel.declaration().entry;
    exactly(entry, "offsets", sums.len() + 1, offsets.len())?;
    at_most(entry, "offsets", MAX_BASES, offsets.len())?;
    let _guards = (offsets.on(stream)?, sums.on(stream)?);
    // SAFETY: a sum a bucket, an offset more; the guards keep both.
    unsafe {
        kernel.launch(
            launcher,
            stream,
            walking(sums.len()),
            ((&offsets).into(), sums.len() as u32, (&sums).into()),
        )
    }
}

/// Puts the last entry of each bucket home that goes there before the first round.
pub fn wait_bases<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    points: DeviceView<'_, Affine<F>>,
    entries: DeviceView<'_, u32>,
    view: &SlabView<'_>,
    homes: &mut Homes<'_, F>,
) -> Result<()> {
    let kernel = F::kernels().tail.wait_bases;
    let entry = kernel.declaration().entry;
    let buckets = view.buckets(entry)?;
    exactly(entry, "sums", buckets as usize, homes.sums.len())?;
    exactly(entry, "border", 1, homes.border.len())?;
    at_most(entry, "points", MAX_BASES, points.len())?;
    at_most(entry, "entries", u32::MAX as usize, entries.len())?;
    let _guards = (
        (points.on(stream)?, entries.on(stream)?),
        (view.offsets.on(stream)?, view.slabs.on(stream)?),
        (homes.sums.on(stream)?, homes.border.on(stream)?),
    );
    // SAFETY: the arrays have the lengths passed along; views to write alias no other; the guards keep all.
    unsafe {
        kernel.launch(
            launcher,
            stream,
            walking(buckets as usize),
            (
                (&points).into(),
                points.len() as u32,
                (&entries).into(),
                entries.len() as u32,
                (&view.offsets).into(),
                buckets,
                slab_ptr(&view.slabs),
                view.slab,
                u32::from(view.existing),
                (&homes.sums).into(),
                (&homes.border).into(),
            ),
        )
    }
}

/// What a plan says of the tail.
#[derive(Clone, Copy, Debug)]
pub struct Tail<'a> {
    /// Rounds of the tree.
    pub rounds: usize,
    /// The items before each bucket (steps, buckets).
    pub item_offsets: DeviceView<'a, u32>,
    /// All items (steps).
    pub totals: DeviceView<'a, u32>,
}

impl Tail<'_> {
    fn check(&self, entry: &'static str, buckets: u32, steps: usize) -> Result<()> {
        at_least(entry, "rounds", 1, self.rounds)?;
        at_most(entry, "rounds", 31, self.rounds)?;
        at_least(
            entry,
            "item_offsets",
            buckets as usize * steps,
            self.item_offsets.len(),
        )?;
        at_least(entry, "totals", steps, self.totals.len())
    }
}

/// The first stage of the tail: what is left of each bucket in chunks of [`TAIL_ARITY`](super::TAIL_ARITY).
/// The sum of a single chunk goes home, others to `partial`.
pub fn sum_nodes<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    nodes: Nodes<'_>,
    view: &SlabView<'_>,
    tail: &Tail<'_>,
    homes: &mut Homes<'_, F>,
    partial: DeviceViewMut<'_, Xyzz<F>>,
) -> Result<()> {
    let kernel = F::kernels().tail.sum_nodes;
    let entry = kernel.declaration().entry;
    let buckets = view.buckets(entry)?;
    let stride = nodes.stride::<F>(entry)?;
    tail.check(entry, buckets, tail.rounds + 1)?;
    exactly(entry, "sums", buckets as usize, homes.sums.len())?;
    exactly(entry, "border", 1, homes.border.len())?;
    at_most(entry, "partial", MAX_BASES, partial.len())?;
    let _guards = (
        (nodes.0.on(stream)?, partial.on(stream)?),
        (view.offsets.on(stream)?, view.slabs.on(stream)?),
        (tail.item_offsets.on(stream)?, tail.totals.on(stream)?),
        (homes.sums.on(stream)?, homes.border.on(stream)?),
    );
    // SAFETY: the arrays have the lengths passed along; views to write alias no other; the guards keep all.
    unsafe {
        kernel.launch(
            launcher,
            stream,
            walking(partial.len()),
            (
                nodes.ptr(),
                stride,
                (&view.offsets).into(),
                buckets,
                slab_ptr(&view.slabs),
                view.slab,
                u32::from(view.existing),
                tail.rounds as u32,
                (&tail.item_offsets).into(),
                (&tail.totals).into(),
                (&homes.sums).into(),
                (&homes.border).into(),
                (&partial).into(),
                partial.len() as u32,
            ),
        )
    }
}

/// A later stage of the tail, 2 or more: the sums of the stage before in chunks.
#[expect(clippy::too_many_arguments, reason = "a kernel's")]
pub fn sum_sums<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    from: DeviceView<'_, Xyzz<F>>,
    view: &SlabView<'_>,
    tail: &Tail<'_>,
    stage: usize,
    homes: &mut Homes<'_, F>,
    partial: DeviceViewMut<'_, Xyzz<F>>,
) -> Result<()> {
    let kernel = F::kernels().tail.sum_sums;
    let entry = kernel.declaration().entry;
    let buckets = view.buckets(entry)?;
    at_least(entry, "stage", 2, stage)?;
    at_most(entry, "stage", 8, stage)?;
    tail.check(entry, buckets, tail.rounds + stage)?;
    exactly(entry, "sums", buckets as usize, homes.sums.len())?;
    exactly(entry, "border", 1, homes.border.len())?;
    at_most(entry, "from", MAX_BASES, from.len())?;
    at_most(entry, "partial", MAX_BASES, partial.len())?;
    let _guards = (
        (from.on(stream)?, partial.on(stream)?),
        (view.offsets.on(stream)?, view.slabs.on(stream)?),
        (tail.item_offsets.on(stream)?, tail.totals.on(stream)?),
        (homes.sums.on(stream)?, homes.border.on(stream)?),
    );
    // SAFETY: the arrays have the lengths passed along; views to write alias no other; the guards keep all.
    unsafe {
        kernel.launch(
            launcher,
            stream,
            walking(partial.len()),
            (
                (&from).into(),
                from.len() as u32,
                (&view.offsets).into(),
                buckets,
                slab_ptr(&view.slabs),
                view.slab,
                u32::from(view.existing),
                tail.rounds as u32,
                stage as u32,
                (&tail.item_offsets).into(),
                (&tail.totals).into(),
                (&homes.sums).into(),
                (&homes.border).into(),
                (&partial).into(),
                partial.len() as u32,
            ),
        )
    }
}

/// Adds to each sum that several slabs share what the later ones left in `borders` (slabs).
pub fn add_borders<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    offsets: DeviceView<'_, u32>,
    slabs: DeviceView<'_, u32>,
    borders: DeviceView<'_, Affine<F>>,
    sums: DeviceViewMut<'_, Affine<F>>,
) -> Result<()> {
    let kernel = F::kernels().tail.add_borders;
    let entry = kernel.declaration().entry;
    exactly(entry, "offsets", sums.len() + 1, offsets.len())?;
    at_most(entry, "offsets", MAX_BASES, offsets.len())?;
    exactly(entry, "slabs", borders.len() * SLAB_WORDS, slabs.len())?;
    at_most(entry, "borders", MAX_BASES, borders.len())?;
    let _guards = (
        (offsets.on(stream)?, slabs.on(stream)?),
        (borders.on(stream)?, sums.on(stream)?),
    );
    // SAFETY: the arrays have the lengths passed along; views to write alias no other; the guards keep all.
    unsafe {
        kernel.launch(
            launcher,
            stream,
            walking(borders.len()),
            (
                (&offsets).into(),
                sums.len() as u32,
                slab_ptr(&slabs),
                borders.len() as u32,
                (&borders).into(),
                (&sums).into(),
            ),
        )
    }
}
