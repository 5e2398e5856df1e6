//! `kernels/src/rows.cu`: a sparse matrix by rows times a packed witness.

mod matrix;

use cuzk_field::{Fr, Scalar};
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use self::matrix::Ids;
pub use self::matrix::{Coefficients, RowMatrix, SparseRows};
use crate::declare::kernels;
use crate::device_type::{Ptr, PtrMut};
use crate::error::{Error, Result};
use crate::launcher::{Launcher, Shape};
use crate::witness::PackedWitness;

/// Threads of a block of these kernels.
const THREADS: u32 = 256;
/// Lanes of a warp, and rows that share a first entry.
const WARP: usize = 32;

kernels! {
    module "rows";
    /// See [`multiply`].
    SHORT_U16 = cuzk_rows_short_u16[THREADS](
        lengths: Ptr<u8>,
        starts: Ptr<u32>,
        columns: Ptr<u32>,
        ids: Ptr<u16>,
        table: Ptr<Fr>,
        bits: Ptr<u64>,
        ranks: Ptr<u32>,
        full: Ptr<Scalar>,
        full_count: u32,
        out: PtrMut<Fr>,
        count: u32,
    );
    /// See [`multiply`].
    SHORT_U32 = cuzk_rows_short_u32[THREADS](
        lengths: Ptr<u8>,
        starts: Ptr<u32>,
        columns: Ptr<u32>,
        ids: Ptr<u32>,
        table: Ptr<Fr>,
        bits: Ptr<u64>,
        ranks: Ptr<u32>,
        full: Ptr<Scalar>,
        full_count: u32,
        out: PtrMut<Fr>,
        count: u32,
    );
    /// See [`multiply`].
    SEGMENTS_U16 = cuzk_rows_segments_u16[THREADS](
        ranges: Ptr<u32>,
        columns: Ptr<u32>,
        ids: Ptr<u16>,
        table: Ptr<Fr>,
        bits: Ptr<u64>,
        ranks: Ptr<u32>,
        full: Ptr<Scalar>,
        full_count: u32,
        partial: PtrMut<Fr>,
        count: u32,
    );
    /// See [`multiply`].
    SEGMENTS_U32 = cuzk_rows_segments_u32[THREADS](
        ranges: Ptr<u32>,
        columns: Ptr<u32>,
        ids: Ptr<u32>,
        table: Ptr<Fr>,
        bits: Ptr<u64>,
        ranks: Ptr<u32>,
        full: Ptr<Scalar>,
        full_count: u32,
        partial: PtrMut<Fr>,
        count: u32,
    );
    /// See [`multiply`].
    JOIN = cuzk_rows_join[THREADS](
        rows: Ptr<u32>,
        first: Ptr<u32>,
        partial: Ptr<Fr>,
        out: PtrMut<Fr>,
        count: u32,
    );
}

/// `out` = matrix times witness, Montgomery form. `scratch` has [`RowMatrix::scratch_len`] elements or
/// more.
pub fn multiply(
    launcher: &dyn Launcher,
    stream: &Stream,
    matrix: &RowMatrix,
    coefficients: &Coefficients,
    witness: PackedWitness<'_>,
    mut scratch: DeviceViewMut<'_, Fr>,
    mut out: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let entry = SHORT_U16.declaration().entry;
    witness.check(entry, matrix.num_variables)?;
    let (rows, segments) = (matrix.num_rows(), matrix.scratch_len());
    let table = coefficients.len();
    for (what, fine, expected, found) in [
        ("out", out.len() == rows, rows, out.len()),
        (
            "scratch",
            scratch.len() >= segments,
            segments,
            scratch.len(),
        ),
        (
            "table",
            table >= matrix.num_coefficients,
            matrix.num_coefficients,
            table,
        ),
    ] {
        if !fine {
            return Err(Error::Length {
                entry,
                what,
                expected,
                found,
            });
        }
    }
    let operands = Operands {
        columns: matrix.columns.view(),
        table: coefficients.table.view(),
        witness,
    };
    operands.short(launcher, stream, matrix, out.reborrow())?;
    if matrix.cut_rows.is_empty() {
        return Ok(());
    }
    operands.segments(launcher, stream, matrix, scratch.reborrow())?;
    join(launcher, stream, matrix, scratch, out)
}

/// What both kernels read.
struct Operands<'a> {
    columns: DeviceView<'a, u32>,
    table: DeviceView<'a, Fr>,
    witness: PackedWitness<'a>,
}

impl Operands<'_> {
    fn short(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        matrix: &RowMatrix,
        out: DeviceViewMut<'_, Fr>,
    ) -> Result<()> {
        let Self {
            columns,
            table,
            witness: PackedWitness { bits, ranks, full },
        } = self;
        let (lengths, starts) = (matrix.lengths.view(), matrix.starts.view());
        let _guards = (
            (lengths.on(stream)?, starts.on(stream)?, columns.on(stream)?),
            (table.on(stream)?, out.on(stream)?),
            (bits.on(stream)?, ranks.on(stream)?, full.on(stream)?),
        );
        let shape = Shape::covering(out.len(), THREADS);
        let (full_count, count) = (self.witness.full_count(), out.len() as u32);
        macro_rules! launch {
            ($kernel:ident, $ids:expr) => {{
                let ids = $ids.view();
                let _guard = ids.on(stream)?;
                // SAFETY: the matrix was checked when it was made: lengths and first entries agree
                // with the entries there are, columns are below the number of variables, for which
                // the witness has words, ids below that of the coefficients; `out` has a row for each
                // length; a view to write aliases no other; the guards keep the buffers.
                unsafe {
                    $kernel.launch(
                        launcher,
                        stream,
                        shape,
                        (
                            (&lengths).into(),
                            (&starts).into(),
                            columns.into(),
                            (&ids).into(),
                            table.into(),
                            bits.into(),
                            ranks.into(),
                            full.into(),
                            full_count,
                            (&out).into(),
                            count,
                        ),
                    )
                }
            }};
        }
        match &matrix.ids {
            Ids::Narrow(ids) => launch!(SHORT_U16, ids),
            Ids::Wide(ids) => launch!(SHORT_U32, ids),
        }
    }

    fn segments(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        matrix: &RowMatrix,
        partial: DeviceViewMut<'_, Fr>,
    ) -> Result<()> {
        let Self {
            columns,
            table,
            witness: PackedWitness { bits, ranks, full },
        } = self;
        let ranges = matrix.segments.view();
        let _guards = (
            (ranges.on(stream)?, columns.on(stream)?),
            (table.on(stream)?, partial.on(stream)?),
            (bits.on(stream)?, ranks.on(stream)?, full.on(stream)?),
        );
        let segments = matrix.scratch_len();
        let shape = Shape::covering(segments * WARP, THREADS);
        let (full_count, count) = (self.witness.full_count(), segments as u32);
        macro_rules! launch {
            ($kernel:ident, $ids:expr) => {{
                let ids = $ids.view();
                let _guard = ids.on(stream)?;
                // SAFETY: as in `short`; segments lie within the entries; `partial` has an element for
                // each.
                unsafe {
                    $kernel.launch(
                        launcher,
                        stream,
                        shape,
                        (
                            (&ranges).into(),
                            columns.into(),
                            (&ids).into(),
                            table.into(),
                            bits.into(),
                            ranks.into(),
                            full.into(),
                            full_count,
                            (&partial).into(),
                            count,
                        ),
                    )
                }
            }};
        }
        match &matrix.ids {
            Ids::Narrow(ids) => launch!(SEGMENTS_U16, ids),
            Ids::Wide(ids) => launch!(SEGMENTS_U32, ids),
        }
    }
}

fn join(
    launcher: &dyn Launcher,
    stream: &Stream,
    matrix: &RowMatrix,
    partial: DeviceViewMut<'_, Fr>,
    out: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let (rows, first) = (matrix.cut_rows.view(), matrix.cut_first.view());
    let partial = partial.as_view();
    let _guards = (
        (rows.on(stream)?, first.on(stream)?),
        (partial.on(stream)?, out.on(stream)?),
    );
    let shape = Shape::covering(rows.len() * WARP, THREADS);
    // SAFETY: the matrix was checked when it was made: rows are below the length of `out`, segments
    // below that of `partial`; the guards keep the buffers.
    unsafe {
        JOIN.launch(
            launcher,
            stream,
            shape,
            (
                (&rows).into(),
                (&first).into(),
                (&partial).into(),
                (&out).into(),
                rows.len() as u32,
            ),
        )
    }
}
