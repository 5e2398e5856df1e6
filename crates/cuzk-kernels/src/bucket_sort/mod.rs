//! Digits of scalars sorted by bucket: `kernels/include/cuzk/bucket_sort.cuh`.

mod parts;
pub mod second;
mod shape;

use cuzk_gpu_mem::{Carve, DeviceViewMut, Stream};

use crate::declare::kernels;
use crate::error::Result;
use crate::launcher::{Launcher, Shape};
use crate::lengths::exactly;
use crate::windows::Windows;
use crate::{Ptr, PtrMut};

pub use parts::{BaseIndices, Part, PartShape, Scalars, SortTarget};
pub use shape::SortShape;

/// Threads of a block of the kernels that move.
const THREADS: u32 = 512;

/// Digits that a block moves at a time.
pub const TILE: usize = 28 * THREADS as usize;

/// Columns of one part, at most: the counters of a block, two of which share a multiprocessor.
pub const MAX_COLUMNS: usize = 24_576;

kernels! {
    module "bucket_sort";
    /// See [`sort`].
    COUNT = cuzk_bucket_sort_count[THREADS](
        scalars: Ptr<u32>, form: u32, count: u32, windows: Windows, first_set: u32, set_count: u32,
        low_bits: u32, columns: u32, counts: PtrMut<u32>, recoded: PtrMut<u32>,
    );
    /// See [`sort`].
    COLUMN_TOTALS = cuzk_bucket_sort_column_totals[1024](
        counts: Ptr<u32>, totals: PtrMut<u32>, rows: u32, columns: u32,
    );
    /// See [`sort`].
    COLUMN_STARTS = cuzk_bucket_sort_column_starts[1024](
        totals: Ptr<u32>, starts: PtrMut<u32>, tile_starts: PtrMut<u32>, columns: u32,
    );
    /// See [`sort`].
    TILE_COLUMNS = cuzk_bucket_sort_tile_columns[256](
        tile_starts: Ptr<u32>, tile_columns: PtrMut<u32>, columns: u32,
    );
    /// See [`sort`].
    RUN_STARTS = cuzk_bucket_sort_run_starts[1024](
        counts: PtrMut<u32>, starts: Ptr<u32>, rows: u32, columns: u32,
    );
    /// See [`sort`].
    PLANES_TO_COLUMNS = cuzk_bucket_sort_planes_to_columns[THREADS](
        scalars: Ptr<u32>, count: u32, windows: Windows, first_set: u32, set_count: u32, low_bits: u32,
        columns: u32, run_starts: Ptr<u32>, bases: Ptr<u32>, first_base: u32, multiple_stride: u32,
        indices: PtrMut<u32>, lows: PtrMut<u16>,
    );
    /// See [`sort`].
    TO_COLUMNS = cuzk_bucket_sort_to_columns[THREADS](
        scalars: Ptr<u32>, form: u32, count: u32, windows: Windows, first_set: u32, set_count: u32,
        low_bits: u32, columns: u32, run_starts: Ptr<u32>, bases: Ptr<u32>, first_base: u32,
        multiple_stride: u32, indices: PtrMut<u32>, lows: PtrMut<u16>,
    );
}

fn length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    exactly(COUNT.declaration().entry, what, expected, found)
}

/// Sorts the digits of all parts by bucket, within a bucket in an order of chance. Digits of zero have
/// no entry. `scratch` has [`SortShape::scratch_bytes`].
pub fn sort(
    launcher: &dyn Launcher,
    stream: &Stream,
    shape: &SortShape,
    parts: &[Part<'_>],
    target: SortTarget<'_>,
    scratch: DeviceViewMut<'_, u8>,
) -> Result<()> {
    let SortTarget {
        first_entry,
        entries,
        offsets,
    } = target;
    length("parts", shape.parts.len(), parts.len())?;
    length("entries", shape.max_entries(), entries.len())?;
    length("offsets", shape.buckets() + 1, offsets.len())?;
    for (part, sizes) in parts.iter().zip(&shape.parts) {
        length("scalars", sizes.scalars, part.scalars.len())?;
        if let BaseIndices::Listed(list) = &part.bases {
            length("bases", sizes.scalars, list.len())?;
        }
        if let Some(recoded) = &part.recoded {
            length("recoded", 8 * sizes.scalars, recoded.len())?;
        }
    }
    let all_columns = shape.columns();
    let columns = all_columns as u32;
    let low_bits = shape.low_bits;
    let max_tiles = shape.max_tiles();
    let mut carve = Carve::new(scratch);
    let mut totals: DeviceViewMut<'_, u32> = carve.take("column totals", all_columns)?;
    let starts: DeviceViewMut<'_, u32> = carve.take("column starts", all_columns + 1)?;
    let tile_starts: DeviceViewMut<'_, u32> = carve.take("tile starts", all_columns + 1)?;
    let tile_columns: DeviceViewMut<'_, u32> = carve.take("tile columns", max_tiles)?;
    let bucket_counts: DeviceViewMut<'_, u32> =
        carve.take("bucket counts", max_tiles << low_bits)?;
    let indices: DeviceViewMut<'_, u32> = carve.take("indices", shape.max_entries())?;
    let lows: DeviceViewMut<'_, u16> = carve.take("lows", shape.max_entries())?;
    let mut tables: Vec<DeviceViewMut<'_, u32>> = Vec::with_capacity(parts.len());
    for part in 0..parts.len() {
        let len = (shape.rows_of(part) + 1) * shape.columns_of(part);
        tables.push(carve.take("digit counts", len)?);
    }

    // The guards of scratch keep all of its parts: they are one buffer.
    let mut guards = vec![totals.on(stream)?, entries.on(stream)?, offsets.on(stream)?];
    for part in parts {
        guards.push(part.scalars.on(stream)?);
        if let BaseIndices::Listed(list) = &part.bases {
            guards.push(list.on(stream)?);
        }
        if let Some(recoded) = &part.recoded {
            guards.push(recoded.on(stream)?);
        }
    }

    let windows = shape.windows;
    let mut other_totals = totals.reborrow();
    for (index, (part, table)) in parts.iter().zip(&tables).enumerate() {
        let sizes = &shape.parts[index];
        let part_columns = shape.columns_of(index);
        let rows = shape.rows_of(index) as u32;
        let (scalars, form) = part.scalars.words();
        let count_shape = Shape {
            grid: [shape.tiles_of(index) as u32, windows.multiples(), 1],
            ..Shape::blocks(1, THREADS).with_shared(4 * (8 * THREADS + part_columns as u32))
        };
        let (part_totals, others) = other_totals.split_at(part_columns);
        other_totals = others;
        // SAFETY: `scalars` are of the part's length, in the form named, and are read alike by the
        // kernel that moves; table and totals have the sizes of the shape, disjoint parts of scratch;
        // recoded is null or eight words for each scalar, aliasing nothing. Digits lie in the columns
        // of their windows whatever the scalars. The guards keep all buffers.
        unsafe {
            COUNT.launch(
                launcher,
                stream,
                count_shape,
                (
                    scalars,
                    form,
                    sizes.scalars as u32,
                    windows,
                    sizes.windows.start,
                    sizes.windows.len() as u32,
                    low_bits,
                    part_columns as u32,
                    table.into(),
                    part.recoded.as_ref().map_or(PtrMut::NULL, PtrMut::from),
                ),
            )?;
            COLUMN_TOTALS.launch(
                launcher,
                stream,
                Shape::blocks(part_columns.div_ceil(32) as u32, 1024),
                (
                    (&table.as_view()).into(),
                    (&part_totals).into(),
                    rows,
                    part_columns as u32,
                ),
            )?;
        }
    }
    // SAFETY: one element a column, one more where the contract says so; tiles of the second pass are
    // at most one a column and one for each TILE entries.
    unsafe {
        COLUMN_STARTS.launch(
            launcher,
            stream,
            Shape::blocks(1, 1024),
            (
                (&totals.as_view()).into(),
                (&starts).into(),
                (&tile_starts).into(),
                columns,
            ),
        )?;
        TILE_COLUMNS.launch(
            launcher,
            stream,
            Shape::covering(32 * all_columns, 256),
            (
                (&tile_starts.as_view()).into(),
                (&tile_columns).into(),
                columns,
            ),
        )?;
    }
    let mut other_starts = starts.as_view();
    for (index, (part, table)) in parts.iter().zip(&tables).enumerate() {
        let sizes = &shape.parts[index];
        let part_columns = shape.columns_of(index);
        let rows = shape.rows_of(index) as u32;
        let recoded = part.recoded.as_ref().map(DeviceViewMut::as_view);
        let scalars = recoded.map_or(part.scalars, Scalars::Recoded);
        let is_planes = matches!(scalars, Scalars::Recoded(_));
        let (scalars, form) = scalars.words();
        let (part_starts, others) = other_starts.split_at(part_columns);
        other_starts = others;
        let (bases, first_base) = match &part.bases {
            BaseIndices::From(first) => (Ptr::NULL, *first),
            BaseIndices::Listed(list) => (list.into(), 0),
        };
        let widest = windows.width_of(sizes.windows.start) - 1 - low_bits;
        let move_shape = Shape {
            grid: [
                shape.tiles_of(index) as u32,
                windows.multiples() * sizes.windows.len() as u32,
                1,
            ],
            ..Shape::blocks(1, THREADS).with_shared(6 * TILE as u32 + (8 << widest))
        };
        let first_set = sizes.windows.start;
        let set_count = sizes.windows.len() as u32;
        let table_view = table.as_view();
        // SAFETY: as above; the counts are those of the same scalars, so every place that they lead to
        // lies within the entries counted, which are at most `max_entries`.
        unsafe {
            RUN_STARTS.launch(
                launcher,
                stream,
                Shape::blocks(part_columns.div_ceil(32) as u32, 1024),
                (
                    table.into(),
                    (&part_starts).into(),
                    rows,
                    part_columns as u32,
                ),
            )?;
            if is_planes {
                PLANES_TO_COLUMNS.launch(
                    launcher,
                    stream,
                    move_shape,
                    (
                        scalars,
                        sizes.scalars as u32,
                        windows,
                        first_set,
                        set_count,
                        low_bits,
                        part_columns as u32,
                        (&table_view).into(),
                        bases,
                        first_base,
                        part.multiple_stride,
                        (&indices).into(),
                        (&lows).into(),
                    ),
                )?;
            } else {
                TO_COLUMNS.launch(
                    launcher,
                    stream,
                    move_shape,
                    (
                        scalars,
                        form,
                        sizes.scalars as u32,
                        windows,
                        first_set,
                        set_count,
                        low_bits,
                        part_columns as u32,
                        (&table_view).into(),
                        bases,
                        first_base,
                        part.multiple_stride,
                        (&indices).into(),
                        (&lows).into(),
                    ),
                )?;
            }
        }
    }
    let (starts, tile_starts) = (starts.as_view(), tile_starts.as_view());
    let (tile_columns, lows) = (tile_columns.as_view(), lows.as_view());
    // SAFETY: `lows` are below 2^low_bits, since the first pass wrote them all; counts have a row for
    // each tile there can be; places lie within the column, so within `entries`.
    unsafe {
        second::COUNT_BUCKETS.launch(
            launcher,
            stream,
            Shape::blocks(max_tiles as u32, THREADS).with_shared(4 << low_bits),
            (
                (&lows).into(),
                (&starts).into(),
                (&tile_starts).into(),
                (&tile_columns).into(),
                (&bucket_counts).into(),
                columns,
                low_bits,
            ),
        )?;
        second::OFFSETS.launch(
            launcher,
            stream,
            Shape::blocks(columns, THREADS).with_shared(4 << low_bits),
            (
                (&bucket_counts).into(),
                (&starts).into(),
                (&tile_starts).into(),
                (&offsets).into(),
                columns,
                low_bits,
                first_entry,
            ),
        )?;
        second::TO_BUCKETS.launch(
            launcher,
            stream,
            Shape::blocks(max_tiles as u32, THREADS).with_shared(6 * TILE as u32 + (8 << low_bits)),
            (
                (&indices.as_view()).into(),
                (&lows).into(),
                (&starts).into(),
                (&tile_starts).into(),
                (&tile_columns).into(),
                (&bucket_counts.as_view()).into(),
                (&offsets.as_view()).into(),
                (&entries).into(),
                columns,
                low_bits,
                first_entry,
            ),
        )
    }
}
