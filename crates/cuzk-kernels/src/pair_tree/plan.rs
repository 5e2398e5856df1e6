//! `pair_plan.cu`.

use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use super::{MAX_BASES, SLAB_WORDS, SlabView};
use crate::declare::kernels;
use crate::device_type::{Ptr, PtrMut, Slab};
use crate::error::Result;
use crate::launcher::{Launcher, Shape};
use crate::lengths::{at_least, at_most, exactly};

/// Buckets that a block of [`sums`] and [`offsets`] looks at.
pub const TILE_BUCKETS: usize = 1024;
/// Pairs that a block of [`expand`] writes.
pub const EXPAND_PAIRS: usize = 2048;

kernels! {
    module "pair_plan";
    /// See [`slabs`].
    SLABS = cuzk_pair_plan_slabs[64](
        offsets: Ptr<u32>,
        buckets: u32,
        slab_entries: u32,
        slab_count: u32,
        entry_count: u32,
        slabs: PtrMut<Slab>,
    );
    /// See [`sums`].
    SUMS = cuzk_pair_plan_sums[256](
        offsets: Ptr<u32>,
        buckets: u32,
        slabs: Ptr<Slab>,
        slab: u32,
        existing: u32,
        rounds: u32,
        steps: u32,
        tile_sums: PtrMut<u32>,
    );
    /// See [`scan`].
    SCAN = cuzk_pair_plan_scan[256](tile_sums: PtrMut<u32>, tiles: u32, totals: PtrMut<u32>);
    /// See [`offsets`].
    OFFSETS = cuzk_pair_plan_offsets[256](
        offsets: Ptr<u32>,
        buckets: u32,
        slabs: Ptr<Slab>,
        slab: u32,
        existing: u32,
        rounds: u32,
        steps: u32,
        tile_sums: Ptr<u32>,
        item_offsets: PtrMut<u32>,
    );
    /// See [`expand`].
    EXPAND = cuzk_pair_plan_expand[256](
        entries: Ptr<u32>,
        entry_count: u32,
        offsets: Ptr<u32>,
        buckets: u32,
        slabs: Ptr<Slab>,
        slab: u32,
        existing: u32,
        level: u32,
        item_offsets: Ptr<u32>,
        totals: Ptr<u32>,
        pairs: PtrMut<u64>,
        owners: PtrMut<u32>,
        capacity: u32,
        node_capacity: u32,
    );
}

/// Describes the slabs of `slab_entries` entries each that the sorted entries are cut into, from the
/// position `offsets[0]` on; as many as `slabs` has room for.
pub fn slabs(
    launcher: &dyn Launcher,
    stream: &Stream,
    offsets: DeviceView<'_, u32>,
    entry_count: usize,
    slab_entries: usize,
    slabs: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let entry = SLABS.declaration().entry;
    at_least(entry, "offsets", 2, offsets.len())?;
    at_most(entry, "offsets", MAX_BASES, offsets.len())?;
    at_most(entry, "entries", u32::MAX as usize, entry_count)?;
    at_least(entry, "slab_entries", 1, slab_entries)?;
    at_most(entry, "slab_entries", MAX_BASES, slab_entries)?;
    let count = slabs.len() / SLAB_WORDS;
    exactly(entry, "slabs", count * SLAB_WORDS, slabs.len())?;
    at_most(entry, "slabs", MAX_BASES, count)?;
    let _guards = (offsets.on(stream)?, slabs.on(stream)?);
    // SAFETY: buckets + 1 offsets, slab_count slabs, as the lengths say; views to write alias no other;
    // the guards keep both.
    unsafe {
        SLABS.launch(
            launcher,
            stream,
            Shape::covering(count, 64),
            (
                (&offsets).into(),
                offsets.len() as u32 - 1,
                slab_entries as u32,
                count as u32,
                entry_count as u32,
                PtrMut::<u32>::from(&slabs).cast(),
            ),
        )
    }
}

/// Steps of a plan at most.
const MAX_STEPS: usize = 64;

/// Items of each tile of buckets (steps, tiles), of `rounds` rounds and then stages of the tail.
pub fn sums(
    launcher: &dyn Launcher,
    stream: &Stream,
    view: &SlabView<'_>,
    rounds: usize,
    steps: usize,
    tile_sums: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let entry = SUMS.declaration().entry;
    let buckets = view.buckets(entry)?;
    let tiles = (buckets as usize).div_ceil(TILE_BUCKETS);
    at_most(entry, "rounds", 31, rounds)?;
    at_most(entry, "steps", MAX_STEPS, steps)?;
    exactly(entry, "tile_sums", tiles * steps, tile_sums.len())?;
    let _guards = (
        view.offsets.on(stream)?,
        view.slabs.on(stream)?,
        tile_sums.on(stream)?,
    );
    // SAFETY: one block a tile, a row of tiles a step; offsets and slabs as SlabView checked; views to
    // write alias no other; the guards keep all.
    unsafe {
        SUMS.launch(
            launcher,
            stream,
            Shape::blocks(tiles as u32, 256),
            (
                (&view.offsets).into(),
                buckets,
                Ptr::<u32>::from(&view.slabs).cast(),
                view.slab,
                u32::from(view.existing),
                rounds as u32,
                steps as u32,
                (&tile_sums).into(),
            ),
        )
    }
}

/// Scans each row of `tile_sums`; the sums of the rows go to `totals` (steps).
pub fn scan(
    launcher: &dyn Launcher,
    stream: &Stream,
    tile_sums: DeviceViewMut<'_, u32>,
    totals: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let entry = SCAN.declaration().entry;
    let steps = totals.len();
    at_least(entry, "totals", 1, steps)?;
    let tiles = tile_sums.len() / steps;
    exactly(entry, "tile_sums", tiles * steps, tile_sums.len())?;
    at_most(entry, "tile_sums", MAX_BASES, tiles)?;
    let _guards = (tile_sums.on(stream)?, totals.on(stream)?);
    // SAFETY: one block of 256 a row of `tiles`; views to write alias no other; the guards keep both.
    unsafe {
        SCAN.launch(
            launcher,
            stream,
            Shape::blocks(steps as u32, 256),
            ((&tile_sums).into(), tiles as u32, (&totals).into()),
        )
    }
}

/// The items before each bucket (steps, buckets), from the scanned `tile_sums`.
pub fn offsets(
    launcher: &dyn Launcher,
    stream: &Stream,
    view: &SlabView<'_>,
    rounds: usize,
    steps: usize,
    tile_sums: DeviceView<'_, u32>,
    item_offsets: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let entry = OFFSETS.declaration().entry;
    let buckets = view.buckets(entry)?;
    let tiles = (buckets as usize).div_ceil(TILE_BUCKETS);
    at_most(entry, "rounds", 31, rounds)?;
    at_most(entry, "steps", MAX_STEPS, steps)?;
    exactly(entry, "tile_sums", tiles * steps, tile_sums.len())?;
    exactly(
        entry,
        "item_offsets",
        buckets as usize * steps,
        item_offsets.len(),
    )?;
    let _guards = (
        view.offsets.on(stream)?,
        view.slabs.on(stream)?,
        tile_sums.on(stream)?,
        item_offsets.on(stream)?,
    );
    // SAFETY: one block a tile, rows of tiles and of buckets a step; offsets and slabs as SlabView
    // checked; views to write alias no other; the guards keep all.
    unsafe {
        OFFSETS.launch(
            launcher,
            stream,
            Shape::blocks(tiles as u32, 256),
            (
                (&view.offsets).into(),
                buckets,
                Ptr::<u32>::from(&view.slabs).cast(),
                view.slab,
                u32::from(view.existing),
                rounds as u32,
                steps as u32,
                (&tile_sums).into(),
                (&item_offsets).into(),
            ),
        )
    }
}

/// The pairs of the round after `level`, with the owners of special ones; as many as `pairs` has room
/// for. `item_offsets` are those of all steps; `node_capacity` bounds the nodes that are named.
#[expect(clippy::too_many_arguments, reason = "a kernel's")]
pub fn expand(
    launcher: &dyn Launcher,
    stream: &Stream,
    entries: DeviceView<'_, u32>,
    view: &SlabView<'_>,
    level: usize,
    item_offsets: DeviceView<'_, u32>,
    totals: DeviceView<'_, u32>,
    pairs: DeviceViewMut<'_, u64>,
    owners: DeviceViewMut<'_, u32>,
    node_capacity: usize,
) -> Result<()> {
    let entry = EXPAND.declaration().entry;
    let buckets = view.buckets(entry)?;
    at_most(entry, "entries", u32::MAX as usize, entries.len())?;
    at_most(entry, "level", 30, level)?;
    at_least(
        entry,
        "item_offsets",
        buckets as usize * (level + 1),
        item_offsets.len(),
    )?;
    at_least(entry, "totals", level + 1, totals.len())?;
    exactly(entry, "owners", pairs.len(), owners.len())?;
    at_most(entry, "pairs", MAX_BASES, pairs.len())?;
    at_least(entry, "node_capacity", 1, node_capacity)?;
    at_most(entry, "node_capacity", MAX_BASES, node_capacity)?;
    let _guards = (
        (entries.on(stream)?, view.offsets.on(stream)?),
        (view.slabs.on(stream)?, item_offsets.on(stream)?),
        (totals.on(stream)?, pairs.on(stream)?, owners.on(stream)?),
    );
    // SAFETY: the arrays have the lengths passed along; one block for each 2048 pairs; views to write
    // alias no other; the guards keep all.
    unsafe {
        EXPAND.launch(
            launcher,
            stream,
            Shape::blocks(pairs.len().div_ceil(EXPAND_PAIRS) as u32, 256),
            (
                (&entries).into(),
                entries.len() as u32,
                (&view.offsets).into(),
                buckets,
                Ptr::<u32>::from(&view.slabs).cast(),
                view.slab,
                u32::from(view.existing),
                level as u32,
                (&item_offsets).into(),
                (&totals).into(),
                (&pairs).into(),
                (&owners).into(),
                pairs.len() as u32,
                node_capacity as u32,
            ),
        )
    }
}
