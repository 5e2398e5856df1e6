//! `kernels/src/bucket_sort.cu`: digits of scalars sorted by bucket.

use std::ops::Range;

use cuzk_field::{Fr, Scalar};
use cuzk_gpu_mem::{Carve, DeviceView, DeviceViewMut, Stream};

use crate::declare::kernels;
use crate::error::{Error, Result};
use crate::launcher::{Launcher, Shape};
use crate::lengths::exactly;
use crate::windows::Windows;
use crate::{Ptr, PtrMut};

/// Threads of a block of the kernels that move.
const THREADS: u32 = 512;

/// Digits that a block moves at a time.
pub const TILE: usize = 28 * THREADS as usize;

/// log2 of the buckets of a column and of the columns of a window, at most: tables in shared memory.
const MAX_LOG: u32 = 11;

/// Columns of one part, at most: the counters of a block, two of which share a multiprocessor.
pub const MAX_COLUMNS: usize = 24_576;

kernels! {
    module "bucket_sort";
    /// See [`sort`].
    COUNT = cuzk_bucket_sort_count[THREADS](
        scalars: Ptr<u32>, form: u32, count: u32, windows: Windows, first_window: u32, window_count: u32,
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
    TO_COLUMNS = cuzk_bucket_sort_to_columns[THREADS](
        scalars: Ptr<u32>, form: u32, count: u32, windows: Windows, first_window: u32, low_bits: u32,
        columns: u32, run_starts: Ptr<u32>, bases: Ptr<u32>, first_base: u32, indices: PtrMut<u32>,
        lows: PtrMut<u16>,
    );
    /// See [`sort`].
    COUNT_BUCKETS = cuzk_bucket_sort_count_buckets[THREADS](
        lows: Ptr<u16>, starts: Ptr<u32>, tile_starts: Ptr<u32>, tile_columns: Ptr<u32>,
        counts: PtrMut<u32>, columns: u32, low_bits: u32,
    );
    /// See [`sort`].
    OFFSETS = cuzk_bucket_sort_offsets[THREADS](
        counts: PtrMut<u32>, starts: Ptr<u32>, tile_starts: Ptr<u32>, offsets: PtrMut<u32>, columns: u32,
        low_bits: u32, first_entry: u32,
    );
    /// See [`sort`].
    TO_BUCKETS = cuzk_bucket_sort_to_buckets[THREADS](
        indices: Ptr<u32>, lows: Ptr<u16>, starts: Ptr<u32>, tile_starts: Ptr<u32>,
        tile_columns: Ptr<u32>, run_starts: Ptr<u32>, offsets: Ptr<u32>, entries: PtrMut<u32>,
        columns: u32, low_bits: u32, first_entry: u32,
    );
}

/// A vector of scalars on the device, 32 bytes each.
#[derive(Clone, Copy, Debug)]
pub enum Scalars<'a> {
    /// Integers below r.
    Canonical(DeviceView<'a, Scalar>),
    /// Field elements in Montgomery form.
    Montgomery(DeviceView<'a, Fr>),
    /// What [`Part::recoded`] was given, for the same windows: eight planes of one word of each.
    Recoded(DeviceView<'a, u32>),
}

impl<'a> Scalars<'a> {
    /// How many scalars.
    pub fn len(&self) -> usize {
        match self {
            Self::Canonical(view) => view.len(),
            Self::Montgomery(view) => view.len(),
            Self::Recoded(view) => view.len() / 8,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those from `range`.
    ///
    /// # Panics
    /// When the range does not lie within them, or when they are recoded.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Self {
        match self {
            Self::Canonical(view) => Self::Canonical(view.slice(range)),
            Self::Montgomery(view) => Self::Montgomery(view.slice(range)),
            Self::Recoded(_) => panic!("planes of recoded scalars have no slices"),
        }
    }

    /// Address and form, as the kernels take them.
    pub(crate) fn words(&self) -> (Ptr<u32>, u32) {
        match self {
            Self::Canonical(view) => (Ptr::words(view), 0),
            Self::Montgomery(view) => (Ptr::words(view), 1),
            Self::Recoded(view) => (Ptr::words(view), 2),
        }
    }

    /// Address and form of scalars that are not recoded.
    pub(crate) fn elements(&self) -> Option<(Ptr<Fr>, u32)> {
        match self {
            Self::Canonical(view) => Some((Ptr::elements(view), 0)),
            Self::Montgomery(view) => Some((view.into(), 1)),
            Self::Recoded(_) => None,
        }
    }

    pub(crate) fn on(&self, stream: &Stream) -> Result<cuzk_gpu_mem::OnStream<'a>> {
        Ok(match self {
            Self::Canonical(view) => view.on(stream)?,
            Self::Montgomery(view) => view.on(stream)?,
            Self::Recoded(view) => view.on(stream)?,
        })
    }
}

/// Which base goes with scalar i of a part.
#[derive(Clone, Copy, Debug)]
pub enum BaseIndices<'a> {
    /// This one + i.
    From(u32),
    /// What the list says. Its values are the caller's promise; they go into the entries as they are,
    /// so each is below 2^31.
    Listed(DeviceView<'a, u32>),
}

/// The sizes of a part: one scalar vector, or some windows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartShape {
    /// How many scalars.
    pub scalars: usize,
    /// Which windows.
    pub windows: Range<u32>,
}

/// What a part consists of.
#[derive(Debug)]
pub struct Part<'a> {
    /// The scalars.
    pub scalars: Scalars<'a>,
    /// Their bases.
    pub bases: BaseIndices<'a>,
    /// Gets the scalars recoded, eight words for each. With more than two windows that is faster than
    /// recoding for each, and other sorts may take them from there.
    pub recoded: Option<DeviceViewMut<'a, u32>>,
}

/// The sizes of a sort. Buckets of all parts are numbered in one row: those of the first part's
/// windows, then those of the second's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortShape {
    windows: Windows,
    low_bits: u32,
    parts: Vec<PartShape>,
}

impl SortShape {
    /// The sort of `parts`, none of which has more than 2^31 scalars; their digits together are fewer
    /// than 2^32.
    pub fn new(windows: Windows, parts: Vec<PartShape>) -> Result<Self> {
        let largest = parts.iter().map(|part| part.scalars).max().unwrap_or(0);
        let narrow = windows.width() - 1;
        // Columns of three quarters of a tile, where scalars are random.
        let wanted = (largest.div_ceil(TILE * 3 / 4).max(1))
            .next_power_of_two()
            .ilog2();
        let high_bits = wanted.clamp(1.max(narrow.saturating_sub(MAX_LOG)), narrow.min(MAX_LOG));
        let mut shape = Self {
            windows,
            low_bits: narrow - high_bits,
            parts,
        };
        while (0..shape.parts.len()).any(|part| shape.columns_of(part) > MAX_COLUMNS)
            && shape.low_bits < MAX_LOG.min(narrow - 1)
        {
            shape.low_bits += 1;
        }
        let entry = COUNT.declaration().entry;
        let length = |what, expected, found| {
            Err(Error::Length {
                entry,
                what,
                expected,
                found,
            })
        };
        for (index, part) in shape.parts.iter().enumerate() {
            if part.scalars > 1 << 31 {
                return length("scalars", 1 << 31, part.scalars);
            }
            if part.windows.end > windows.count() || part.windows.is_empty() {
                return length(
                    "windows",
                    windows.count() as usize,
                    part.windows.end as usize,
                );
            }
            if shape.columns_of(index) > MAX_COLUMNS {
                return length("columns", MAX_COLUMNS, shape.columns_of(index));
            }
        }
        if shape.max_entries() > u32::MAX as usize {
            return length("entries", u32::MAX as usize, shape.max_entries());
        }
        Ok(shape)
    }

    /// How scalars are cut.
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// The parts.
    pub fn parts(&self) -> &[PartShape] {
        &self.parts
    }

    fn columns_of(&self, part: usize) -> usize {
        let Range { start, end } = self.parts[part].windows;
        (self.windows.first_bucket(end) - self.windows.first_bucket(start)) >> self.low_bits
    }

    fn columns(&self) -> usize {
        (0..self.parts.len())
            .map(|part| self.columns_of(part))
            .sum()
    }

    /// How many buckets: `offsets` has one more.
    pub fn buckets(&self) -> usize {
        self.columns() << self.low_bits
    }

    /// How many entries there can be.
    pub fn max_entries(&self) -> usize {
        self.parts
            .iter()
            .map(|part| part.scalars * part.windows.len())
            .sum()
    }

    fn max_tiles(&self) -> usize {
        self.columns() + self.max_entries() / TILE
    }

    fn rows_of(&self, part: usize) -> usize {
        self.parts[part].scalars.div_ceil(TILE)
    }

    /// Scratch, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        let columns = self.columns();
        let counts: usize = (0..self.parts.len())
            .map(|part| Carve::bytes_of::<u32>((self.rows_of(part) + 1) * self.columns_of(part)))
            .sum();
        counts
            + Carve::bytes_of::<u32>(columns)
            + 2 * Carve::bytes_of::<u32>(columns + 1)
            + Carve::bytes_of::<u32>(self.max_tiles())
            + Carve::bytes_of::<u32>(self.max_tiles() << self.low_bits)
            + Carve::bytes_of::<u32>(self.max_entries())
            + Carve::bytes_of::<u16>(self.max_entries())
    }
}

fn length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    exactly(COUNT.declaration().entry, what, expected, found)
}

/// Where sorted digits go.
#[derive(Debug)]
pub struct SortTarget<'a> {
    /// What the offsets begin with.
    pub first_entry: u32,
    /// An entry is a base's index, with bit 31 set where the base is subtracted. There are
    /// [`SortShape::max_entries`] elements, of which `offsets[buckets] - first_entry` are written.
    pub entries: DeviceViewMut<'a, u32>,
    /// The entries of bucket b are those from `offsets[b] - first_entry` to
    /// `offsets[b + 1] - first_entry`; one element more than there are buckets.
    pub offsets: DeviceViewMut<'a, u32>,
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
        let count_shape =
            Shape::blocks(rows, THREADS).with_shared(4 * (8 * THREADS + part_columns as u32));
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
        let (scalars, form) = scalars.words();
        let (part_starts, others) = other_starts.split_at(part_columns);
        other_starts = others;
        let (bases, first_base) = match &part.bases {
            BaseIndices::From(first) => (Ptr::NULL, *first),
            BaseIndices::Listed(list) => (list.into(), 0),
        };
        let widest = windows.width_of(sizes.windows.start) - 1 - low_bits;
        let move_shape = Shape {
            grid: [rows, sizes.windows.len() as u32, 1],
            ..Shape::blocks(1, THREADS).with_shared(6 * TILE as u32 + (8 << widest))
        };
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
            TO_COLUMNS.launch(
                launcher,
                stream,
                move_shape,
                (
                    scalars,
                    form,
                    sizes.scalars as u32,
                    windows,
                    sizes.windows.start,
                    low_bits,
                    part_columns as u32,
                    (&table.as_view()).into(),
                    bases,
                    first_base,
                    (&indices).into(),
                    (&lows).into(),
                ),
            )?;
        }
    }
    let (starts, tile_starts) = (starts.as_view(), tile_starts.as_view());
    let (tile_columns, lows) = (tile_columns.as_view(), lows.as_view());
    // SAFETY: `lows` are below 2^low_bits, since the first pass wrote them all; counts have a row for
    // each tile there can be; places lie within the column, so within `entries`.
    unsafe {
        COUNT_BUCKETS.launch(
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
        OFFSETS.launch(
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
        TO_BUCKETS.launch(
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
