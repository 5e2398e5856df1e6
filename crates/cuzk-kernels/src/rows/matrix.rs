//! The matrix of these kernels: checked, cut into rows and segments, uploaded.

use cuzk_field::Fr;
use cuzk_gpu_mem::{Device, DeviceBuf, Stream};

use super::WARP;
use crate::error::{Error, Result};

/// Entries a row has at most that a thread sums alone. PoRep rows have 2.4 on average.
const SHORT_MAX: usize = 48;
/// Entries of a segment at most.
const SEGMENT: usize = 512;
/// The length of rows that are cut into segments, as in `rows.cu`.
const SEGMENTED: u8 = 255;

/// A sparse matrix in host memory, and how many rows it gets.
#[derive(Clone, Copy, Debug)]
pub struct SparseRows<'a> {
    /// One more than rows: where each row's entries begin in the two arrays below, and the end.
    pub row_offsets: &'a [u32],
    /// The variable of each entry.
    pub columns: &'a [u32],
    /// The index of each entry's coefficient in the table.
    pub coefficients: &'a [u32],
    /// So many rows follow that are variable 0, 1, and so on, with coefficient one: those that bind
    /// the inputs.
    pub input_rows: usize,
    /// Rows in all; those not given are zero.
    pub num_rows: usize,
    /// Variables there are.
    pub num_variables: usize,
}

/// The distinct coefficients on the device, each twice: c in Montgomery form, and c R.
#[derive(Debug)]
pub struct Coefficients {
    pub(super) table: DeviceBuf<Fr>,
}

impl Coefficients {
    /// Bytes on the device of a table of `count` coefficients.
    pub fn device_bytes(count: usize) -> u64 {
        (2 * count * size_of::<Fr>()) as u64
    }

    /// Uploads a table. Its first coefficient is one, as [`SparseRows::input_rows`] need it.
    pub fn new(stream: &Stream, values: &[Fr]) -> Result<Self> {
        let twice: Vec<Fr> = values.iter().flat_map(|c| [*c, *c * Fr::R]).collect();
        let mut table = stream.device().alloc("coefficients", twice.len(), stream)?;
        stream.upload_slice(&twice, &mut table)?;
        Ok(Self { table })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.table.len() / 2
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

/// Indices into the table, as narrow as it allows.
#[derive(Debug)]
pub(super) enum Ids {
    Narrow(DeviceBuf<u16>),
    Wide(DeviceBuf<u32>),
}

/// A sparse matrix on the device, every index in it known to be in bounds.
#[derive(Debug)]
pub struct RowMatrix {
    pub(super) lengths: DeviceBuf<u8>,
    pub(super) starts: DeviceBuf<u32>,
    pub(super) columns: DeviceBuf<u32>,
    pub(super) ids: Ids,
    /// Pairs of first entry and end.
    pub(super) segments: DeviceBuf<u32>,
    /// Rows that are cut, and the first segment of each, and the end.
    pub(super) cut_rows: DeviceBuf<u32>,
    pub(super) cut_first: DeviceBuf<u32>,
    pub(super) num_variables: usize,
    pub(super) num_coefficients: usize,
}

/// Row lengths, entries' places and segments, before they are uploaded.
struct Layout {
    lengths: Vec<u8>,
    starts: Vec<u32>,
    segments: Vec<u32>,
    cut_rows: Vec<u32>,
    cut_first: Vec<u32>,
}

fn layout(rows: &SparseRows<'_>) -> Layout {
    let given = rows.row_offsets.len() - 1;
    let entries = rows.columns.len();
    // Where row i begins; beyond the rows that are given, one entry a row as long as there are inputs.
    let offset = |row: usize| match row.checked_sub(given) {
        None => rows.row_offsets[row] as usize,
        Some(input) => entries + input.min(rows.input_rows),
    };
    let mut layout = Layout {
        lengths: Vec::with_capacity(rows.num_rows),
        starts: Vec::with_capacity(rows.num_rows.div_ceil(WARP)),
        segments: Vec::new(),
        cut_rows: Vec::new(),
        cut_first: Vec::new(),
    };
    for first in (0..rows.num_rows).step_by(WARP) {
        let warp = first..rows.num_rows.min(first + WARP);
        let offsets: [usize; WARP + 1] = std::array::from_fn(|i| offset((first + i).min(warp.end)));
        let lengths = offsets.windows(2).map(|pair| pair[1] - pair[0]);
        layout.starts.push(offsets[0] as u32);
        if lengths.clone().all(|length| length <= SHORT_MAX) {
            let lengths = lengths.map(|length| length as u8);
            layout.lengths.extend(lengths.take(warp.len()));
            continue;
        }
        for (row, pair) in warp.zip(offsets.windows(2)) {
            layout.lengths.push(SEGMENTED);
            layout.cut_rows.push(row as u32);
            layout.cut_first.push((layout.segments.len() / 2) as u32);
            for begin in (pair[0]..pair[1]).step_by(SEGMENT) {
                let end = pair[1].min(begin + SEGMENT);
                layout.segments.extend([begin as u32, end as u32]);
            }
        }
    }
    layout.cut_first.push((layout.segments.len() / 2) as u32);
    layout
}

impl RowMatrix {
    /// Bytes on the device, the few for long rows apart.
    pub fn device_bytes(rows: &SparseRows<'_>, num_coefficients: usize) -> u64 {
        let entries = (rows.columns.len() + rows.input_rows) as u64;
        let id = if narrow(num_coefficients) { 2 } else { 4 };
        (rows.num_rows + 4 * rows.num_rows.div_ceil(WARP)) as u64 + entries * (4 + id)
    }

    /// Checks a matrix and uploads it.
    ///
    /// # Errors
    /// [`Error::Matrix`] where offsets do not rise, or an index has nothing to name.
    pub fn new(stream: &Stream, rows: &SparseRows<'_>, num_coefficients: usize) -> Result<Self> {
        check(rows, num_coefficients)?;
        let layout = layout(rows);
        let device = stream.device();
        let inputs: Vec<u32> = (0..rows.input_rows as u32).collect();
        let entries = rows.columns.len() + inputs.len();
        let mut columns = device.alloc("matrix columns", entries, stream)?;
        let (given, own) = columns.view_mut().split_at(rows.columns.len());
        stream.upload_slice(rows.columns, given)?;
        stream.upload_slice(&inputs, own)?;
        let ids = if narrow(num_coefficients) {
            let narrow = rows.coefficients.iter().map(|id| *id as u16);
            let ids: Vec<u16> = narrow.chain(inputs.iter().map(|_| 0)).collect();
            Ids::Narrow(upload(device, stream, "matrix coefficients", &ids)?)
        } else {
            let mut ids = device.alloc("matrix coefficients", entries, stream)?;
            stream.fill(&mut ids, 0)?;
            let given = ids.view_mut().slice(..rows.coefficients.len());
            stream.upload_slice(rows.coefficients, given)?;
            Ids::Wide(ids)
        };
        Ok(Self {
            lengths: upload(device, stream, "matrix lengths", &layout.lengths)?,
            starts: upload(device, stream, "matrix offsets", &layout.starts)?,
            columns,
            ids,
            segments: upload(device, stream, "matrix segments", &layout.segments)?,
            cut_rows: upload(device, stream, "matrix long rows", &layout.cut_rows)?,
            cut_first: upload(device, stream, "matrix long rows", &layout.cut_first)?,
            num_variables: rows.num_variables,
            num_coefficients,
        })
    }

    /// Rows, zero ones included.
    pub fn num_rows(&self) -> usize {
        self.lengths.len()
    }

    /// Elements of scratch that [`multiply`](super::multiply) takes; they come to hold sums of the witness.
    pub fn scratch_len(&self) -> usize {
        self.segments.len() / 2
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> u64 {
        let ids = match &self.ids {
            Ids::Narrow(ids) => ids.bytes(),
            Ids::Wide(ids) => ids.bytes(),
        };
        let words = [
            &self.starts,
            &self.columns,
            &self.segments,
            &self.cut_rows,
            &self.cut_first,
        ];
        self.lengths.bytes() + ids + words.iter().map(|buffer| buffer.bytes()).sum::<u64>()
    }
}

/// Whether ids take 16 bits.
fn narrow(num_coefficients: usize) -> bool {
    num_coefficients <= 1 << 16
}

fn upload<T: cuzk_gpu_mem::Pod>(
    device: &Device,
    stream: &Stream,
    label: &'static str,
    values: &[T],
) -> Result<DeviceBuf<T>> {
    let mut buffer = device.alloc(label, values.len(), stream)?;
    stream.upload_slice(values, &mut buffer)?;
    Ok(buffer)
}

fn check(rows: &SparseRows<'_>, num_coefficients: usize) -> Result<()> {
    let refuse = |what: String| Err(Error::Matrix { what });
    let SparseRows {
        row_offsets,
        columns,
        coefficients,
        input_rows,
        num_rows,
        num_variables,
    } = *rows;
    let entries = columns.len();
    if coefficients.len() != entries {
        return refuse(format!(
            "{entries} columns come with {} coefficients",
            coefficients.len()
        ));
    }
    let bounds = (row_offsets.first().copied(), row_offsets.last().copied());
    if bounds != (Some(0), u32::try_from(entries).ok()) || !row_offsets.is_sorted() {
        return refuse("row offsets do not rise from 0 to the number of entries".into());
    }
    if entries.saturating_add(input_rows) > u32::MAX as usize {
        return refuse(format!(
            "{entries} entries and {input_rows} inputs: too many"
        ));
    }
    let given = row_offsets.len() - 1 + input_rows;
    if given > num_rows || num_rows > 1 << 31 {
        return refuse(format!("{given} rows are given for {num_rows}"));
    }
    if input_rows > num_variables || num_variables > u32::MAX as usize {
        return refuse(format!(
            "{input_rows} inputs among {num_variables} variables"
        ));
    }
    if input_rows > 0 && num_coefficients == 0 {
        return refuse("inputs, but no coefficients".into());
    }
    for (noun, indices, count) in [
        ("variable", columns, num_variables),
        ("coefficient", coefficients, num_coefficients),
    ] {
        if let Some(max) = indices.iter().max()
            && *max as usize >= count
        {
            return refuse(format!(
                "an entry names {noun} {max}, but there are {count}"
            ));
        }
    }
    Ok(())
}
