//! `kernels/src/bucket_reduce_g1.cu` and `bucket_reduce_g2.cu`: sums of the buckets of windows, weighted with
//! their numbers. `kernels/include/cuzk/bucket_reduce.cuh` has the terms.

use std::ops::Range;

use cuzk_field::{Affine, Fp, Fp2, Xyzz};
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use crate::curve::DeviceCurve;
use crate::declare::{Kernel, kernels};
use crate::device_type::{Ptr, PtrMut};
use crate::error::Result;
use crate::launcher::{Launcher, Shape};
use crate::lengths::{at_most, exactly};

/// Threads of a block, but of [`weigh`].
const THREADS: u32 = 128;
/// Blocks at most where each thread goes through an array.
const MAX_BLOCKS: usize = 1 << 16;

type SumParts<F> = (
    Ptr<Affine<F>>,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    PtrMut<Xyzz<F>>,
);
type SumLines<F> = (Ptr<Xyzz<F>>, u32, u32, u32, u32, u32, PtrMut<Xyzz<F>>);
type Lift<F> = (Ptr<Affine<F>>, u32, PtrMut<Xyzz<F>>);
type Weigh<F> = (Ptr<Xyzz<F>>, u32, u32, u32, u32, PtrMut<Xyzz<F>>);
type Join<F> = (Ptr<Xyzz<F>>, u32, u32, PtrMut<Xyzz<F>>);

/// The kernels in one group.
#[derive(Debug)]
pub(crate) struct ReduceKernels<F: DeviceCurve> {
    sum_parts: &'static Kernel<SumParts<F>>,
    sum_lines: &'static Kernel<SumLines<F>>,
    lift: &'static Kernel<Lift<F>>,
    weigh: &'static Kernel<Weigh<F>>,
    join: &'static Kernel<Join<F>>,
}

macro_rules! group {
    ($group:ident, $field:ty, $module:literal, $weigh_threads:literal, $($entry:ident)+) => {
        #[allow(unreachable_pub, reason = "declarations, which are listed")]
        pub(crate) mod $group {
            use super::*;

            group!(@kernels $field, $module, $weigh_threads, $($entry)+);

            pub(crate) const KERNELS: ReduceKernels<$field> = ReduceKernels {
                sum_parts: &SUM_PARTS,
                sum_lines: &SUM_LINES,
                lift: &LIFT,
                weigh: &WEIGH,
                join: &JOIN,
            };
        }
    };
    (@kernels $field:ty, $module:literal, $weigh_threads:literal,
     $sum_parts:ident $sum_lines:ident $lift:ident $weigh:ident $join:ident) => {
        kernels! {
            module $module;
            /// See [`sum_parts`].
            SUM_PARTS = $sum_parts[THREADS](
                sums: Ptr<Affine<$field>>, windows: u32, buckets: u32, log_columns: u32, rows: u32, part: u32,
                row_parts: u32, column_parts: u32, partial: PtrMut<Xyzz<$field>>,
            );
            /// See [`sum_lines`].
            SUM_LINES = $sum_lines[THREADS](
                partial: Ptr<Xyzz<$field>>, windows: u32, log_columns: u32, rows: u32, row_parts: u32,
                column_parts: u32, lines: PtrMut<Xyzz<$field>>,
            );
            /// See [`lift`].
            LIFT = $lift[THREADS](points: Ptr<Affine<$field>>, count: u32, lines: PtrMut<Xyzz<$field>>);
            /// See [`weigh`].
            WEIGH = $weigh[$weigh_threads](
                lines: Ptr<Xyzz<$field>>, log_columns: u32, rows: u32, log_per_row_thread: u32,
                log_per_column_thread: u32, pairs: PtrMut<Xyzz<$field>>,
            );
            /// See [`join`].
            JOIN = $join[THREADS](
                pairs: Ptr<Xyzz<$field>>, windows: u32, log_columns: u32, out: PtrMut<Xyzz<$field>>,
            );
        }
    };
}

group! { g1, Fp, "bucket_reduce_g1", 128,
    cuzk_bucket_reduce_g1_sum_parts
    cuzk_bucket_reduce_g1_sum_lines
    cuzk_bucket_reduce_g1_lift
    cuzk_bucket_reduce_g1_weigh
    cuzk_bucket_reduce_g1_join
}
group! { g2, Fp2, "bucket_reduce_g2", 64,
    cuzk_bucket_reduce_g2_sum_parts
    cuzk_bucket_reduce_g2_sum_lines
    cuzk_bucket_reduce_g2_lift
    cuzk_bucket_reduce_g2_weigh
    cuzk_bucket_reduce_g2_join
}

/// How each of some windows is cut: `rows` of `2^log_columns` buckets, the last ones maybe shorter, and lines in
/// parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    windows: usize,
    buckets: usize,
    log_columns: u32,
    part: usize,
}

impl Grid {
    /// Elements of any of the arrays at most: they are numbered in 31 bits.
    const MAX: usize = (1 << 31) - 1;

    /// `windows` of `buckets` each, 1 at least, or fewer; a thread adds up `part` of them, 1 at least.
    ///
    /// # Panics
    /// When there is no bucket, `part` is 0, or an array would have 2^31 elements.
    pub fn new(windows: usize, buckets: usize, log_columns: u32, part: usize) -> Self {
        assert!(buckets > 0 && part > 0 && part <= Self::MAX && log_columns < 31);
        let grid = Self {
            windows,
            buckets,
            log_columns,
            part,
        };
        let fits = |elements: Option<usize>| elements.is_some_and(|elements| elements <= Self::MAX);
        assert!(
            fits(buckets.checked_next_multiple_of(grid.columns()))
                && fits(windows.checked_mul(buckets))
                && fits(windows.checked_mul(grid.parts()))
                && fits(windows.checked_mul(grid.lines())),
            "{windows} windows of {buckets} buckets"
        );
        grid
    }

    /// Buckets of a row.
    pub fn columns(&self) -> usize {
        1 << self.log_columns
    }

    /// Rows of a window.
    pub fn rows(&self) -> usize {
        self.buckets.div_ceil(self.columns())
    }

    /// Lines of a window.
    pub fn lines(&self) -> usize {
        self.rows() + self.columns()
    }

    /// Parts of the lines of a window.
    pub fn parts(&self) -> usize {
        self.rows() * self.row_parts() + self.columns() * self.column_parts()
    }

    /// How long the longest line is.
    pub fn longest_line(&self) -> usize {
        self.columns().min(self.buckets).max(self.rows())
    }

    /// Fails where windows are not of this grid.
    fn holds(&self, entry: &'static str, equal: &EqualWindows) -> Result<()> {
        at_most(entry, "buckets of a window", self.buckets, equal.buckets)?;
        let Range { start, end } = equal.windows;
        at_most(entry, "first window", end, start)?;
        at_most(entry, "windows", self.windows, end)
    }

    fn row_parts(&self) -> usize {
        self.columns().div_ceil(self.part)
    }

    fn column_parts(&self) -> usize {
        self.rows().div_ceil(self.part)
    }
}

/// Windows of a grid that have equally many buckets, as many as the grid's or fewer, one after another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EqualWindows {
    /// Which of the grid.
    pub windows: Range<usize>,
    /// Buckets of each.
    pub buckets: usize,
    /// Buckets of all windows before them.
    pub first_bucket: usize,
}

impl EqualWindows {
    /// Their buckets, among those of all windows.
    pub fn all_buckets(&self) -> Range<usize> {
        self.first_bucket..self.first_bucket + self.windows.len() * self.buckets
    }
}

/// A grid in which each thread goes through an array of `count`.
fn walking(count: usize) -> Shape {
    Shape::blocks(
        count.div_ceil(THREADS as usize).min(MAX_BLOCKS) as u32,
        THREADS,
    )
}

#[allow(unreachable_pub, reason = "declarations, which are listed")]
mod lines {
    use super::*;

    kernels! {
        module "bucket_lines";
        /// See [`super::line_entries`].
        ENTRIES = cuzk_bucket_lines_entries[256](
            windows: u32, buckets: u32, first_bucket: u32, log_columns: u32, rows: u32, entries: PtrMut<u32>,
            offsets: PtrMut<u32>,
        );
    }
}
pub(crate) use lines::DECLARATIONS as LINES;

/// The lines of windows as sorted entries. Of all windows of the grid are `entries`, two for each bucket, and `offsets`
/// (windows, lines) and one more; those of `equal` are written.
pub fn line_entries(
    launcher: &dyn Launcher,
    stream: &Stream,
    grid: &Grid,
    equal: &EqualWindows,
    entries: DeviceViewMut<'_, u32>,
    offsets: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let kernel = &lines::ENTRIES;
    let entry = kernel.declaration().entry;
    let range = equal.all_buckets();
    let all = entries.len();
    grid.holds(entry, equal)?;
    at_most(entry, "entries", Grid::MAX, all)?;
    at_most(entry, "buckets", all / 2, range.end)?;
    let lines = grid.lines();
    exactly(entry, "offsets", grid.windows * lines + 1, offsets.len())?;
    let windows = equal.windows.clone();
    let entries = entries.slice(2 * range.start..2 * range.end);
    let offsets = offsets.slice(windows.start * lines..=windows.end * lines);
    let count = entries.len().max(offsets.len());
    let _guards = (entries.on(stream)?, offsets.on(stream)?);
    // SAFETY: both arrays have the lengths that the windows imply, below 2^31; the guards keep them.
    unsafe {
        kernel.launch(
            launcher,
            stream,
            Shape::blocks(count.div_ceil(256).min(MAX_BLOCKS) as u32, 256),
            (
                windows.len() as u32,
                equal.buckets as u32,
                range.start as u32,
                grid.log_columns,
                grid.rows() as u32,
                (&entries).into(),
                (&offsets).into(),
            ),
        )
    }
}

/// The parts of all lines of the windows `equal`, to `partial` (windows, parts). Of all windows of the grid are `partial` and
/// `sums`, the buckets of one window after another.
pub fn sum_parts<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    grid: &Grid,
    equal: &EqualWindows,
    sums: DeviceView<'_, Affine<F>>,
    partial: DeviceViewMut<'_, Xyzz<F>>,
) -> Result<()> {
    let kernel = F::kernels().reduce.sum_parts;
    let entry = kernel.declaration().entry;
    let range = equal.all_buckets();
    let parts = grid.parts();
    grid.holds(entry, equal)?;
    at_most(entry, "buckets", sums.len(), range.end)?;
    exactly(entry, "partial", grid.windows * parts, partial.len())?;
    let windows = equal.windows.clone();
    let sums = sums.slice(range);
    let partial = partial.slice(windows.start * parts..windows.end * parts);
    let _guards = (sums.on(stream)?, partial.on(stream)?);
    // SAFETY: both arrays have the lengths that the windows imply; the guards keep them.
    unsafe {
        kernel.launch(
            launcher,
            stream,
            walking(partial.len()),
            (
                (&sums).into(),
                windows.len() as u32,
                equal.buckets as u32,
                grid.log_columns,
                grid.rows() as u32,
                grid.part as u32,
                grid.row_parts() as u32,
                grid.column_parts() as u32,
                (&partial).into(),
            ),
        )
    }
}

/// The sums of the parts of each line, to `lines` (windows, lines).
pub fn sum_lines<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    grid: &Grid,
    partial: DeviceView<'_, Xyzz<F>>,
    lines: DeviceViewMut<'_, Xyzz<F>>,
) -> Result<()> {
    let kernel = F::kernels().reduce.sum_lines;
    let entry = kernel.declaration().entry;
    exactly(entry, "partial", grid.windows * grid.parts(), partial.len())?;
    exactly(entry, "lines", grid.windows * grid.lines(), lines.len())?;
    let _guards = (partial.on(stream)?, lines.on(stream)?);
    // SAFETY: both arrays have the lengths that the grid implies; the guards keep them.
    unsafe {
        kernel.launch(
            launcher,
            stream,
            walking(lines.len()),
            (
                (&partial).into(),
                grid.windows as u32,
                grid.log_columns,
                grid.rows() as u32,
                grid.row_parts() as u32,
                grid.column_parts() as u32,
                (&lines).into(),
            ),
        )
    }
}

/// Lines that are affine points, canonical, to `lines`.
pub fn lift<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    points: DeviceView<'_, Affine<F>>,
    lines: DeviceViewMut<'_, Xyzz<F>>,
) -> Result<()> {
    let kernel = F::kernels().reduce.lift;
    let entry = kernel.declaration().entry;
    exactly(entry, "lines", points.len(), lines.len())?;
    exactly(entry, "points", points.len().min(Grid::MAX), points.len())?;
    let _guards = (points.on(stream)?, lines.on(stream)?);
    // SAFETY: both arrays have `count` elements; the guards keep them.
    unsafe {
        kernel.launch(
            launcher,
            stream,
            walking(points.len()),
            ((&points).into(), points.len() as u32, (&lines).into()),
        )
    }
}

/// The weighted sums of each window's rows and columns, to `pairs` (windows, 2).
pub fn weigh<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    grid: &Grid,
    lines: DeviceView<'_, Xyzz<F>>,
    pairs: DeviceViewMut<'_, Xyzz<F>>,
) -> Result<()> {
    let kernel = F::kernels().reduce.weigh;
    let declaration = kernel.declaration();
    let entry = declaration.entry;
    exactly(entry, "lines", grid.windows * grid.lines(), lines.len())?;
    exactly(entry, "pairs", grid.windows * 2, pairs.len())?;
    let _guards = (lines.on(stream)?, pairs.on(stream)?);
    let log_per_thread = |lines: usize| {
        let per_thread = lines.div_ceil(declaration.threads as usize);
        per_thread.next_power_of_two().ilog2()
    };
    // SAFETY: both arrays have the lengths that the grid implies; blocks are whole; the threads of one have
    // all lines between them; the guards keep the arrays.
    unsafe {
        kernel.launch(
            launcher,
            stream,
            Shape::blocks(grid.windows as u32 * 2, declaration.threads),
            (
                (&lines).into(),
                grid.log_columns,
                grid.rows() as u32,
                log_per_thread(grid.rows()),
                log_per_thread(grid.columns()),
                (&pairs).into(),
            ),
        )
    }
}

/// The weighted sum of each window's buckets, to `out` (windows).
pub fn join<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    grid: &Grid,
    pairs: DeviceView<'_, Xyzz<F>>,
    out: DeviceViewMut<'_, Xyzz<F>>,
) -> Result<()> {
    let kernel = F::kernels().reduce.join;
    let entry = kernel.declaration().entry;
    exactly(entry, "pairs", grid.windows * 2, pairs.len())?;
    exactly(entry, "out", grid.windows, out.len())?;
    let _guards = (pairs.on(stream)?, out.on(stream)?);
    // SAFETY: both arrays have the lengths that the windows imply; the guards keep them.
    unsafe {
        kernel.launch(
            launcher,
            stream,
            walking(grid.windows),
            (
                (&pairs).into(),
                grid.windows as u32,
                grid.log_columns,
                (&out).into(),
            ),
        )
    }
}
