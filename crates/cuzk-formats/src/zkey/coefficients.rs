//! Section 4: the entries of A and B.
//!
//! snarkjs writes them by rows, so that one pass makes both matrices. Files in another order are
//! legal: for these the entries are counted first and then put in their places, which reads the
//! section twice more and takes 8 bytes for each entry and each row of the domain beside the matrices.

use super::header::{ENTRY_BYTES, Header};
use super::{COEFFICIENTS, ZKEY};
use crate::ab_matrices::AbMatrices;
use crate::coefficients::{CoefficientForm, Interner, end_row_merged};
use crate::container::{Container, Section};
use crate::error::{Error, ErrorKind};
use crate::model::Matrix;
use crate::options::Meter;
use crate::source::ReadAt;
use crate::stream::{Stream, limbs_at, u32_at};

/// An entry whose matrix, row and signal are in range.
struct Entry {
    /// 0 for A, 1 for B.
    matrix: usize,
    row: u32,
    signal: u32,
    limbs: [u64; 4],
}

/// Reads the matrices. Both get one row more than the largest row that occurs in either.
pub(super) fn read(
    source: &dyn ReadAt,
    container: &Container,
    header: &Header,
    meter: &Meter<'_>,
) -> Result<AbMatrices, Error> {
    let section = container.require(COEFFICIENTS)?;
    match by_rows(source, section, header, meter)? {
        Some(matrices) => Ok(matrices),
        None => in_any_order(source, section, header, meter),
    }
}

/// Calls `visit` with each entry in the file's order until it returns `false`.
fn for_each(
    source: &dyn ReadAt,
    section: Section,
    header: &Header,
    meter: &Meter<'_>,
    mut visit: impl FnMut(Entry) -> Result<bool, Error>,
) -> Result<(), Error> {
    let start = section.offset + 4;
    let mut stream = Stream::new(source, start, section.end(), meter, "coefficients");
    for index in 0..u64::from(header.num_coefficients) {
        let record = stream.take::<{ ENTRY_BYTES as usize }>()?;
        let more = checked_entry(record, header).and_then(&mut visit);
        let more = more.map_err(|error| {
            let offset = start + index * ENTRY_BYTES;
            error.at(ZKEY
                .place(COEFFICIENTS)
                .entry("entry", index)
                .offset(offset))
        })?;
        if !more {
            return Ok(());
        }
    }
    Ok(())
}

#[inline]
fn checked_entry(record: &[u8; ENTRY_BYTES as usize], header: &Header) -> Result<Entry, Error> {
    let (matrix, row, signal) = (u32_at(record, 0), u32_at(record, 4), u32_at(record, 8));
    if matrix > 1 || row >= header.domain_size || signal >= header.num_variables {
        return Err(out_of_range(matrix, row, signal, header));
    }
    Ok(Entry {
        matrix: matrix as usize,
        row,
        signal,
        limbs: limbs_at(record, 12),
    })
}

#[cold]
fn out_of_range(matrix: u32, row: u32, signal: u32, header: &Header) -> Error {
    let (expected, found) = if matrix > 1 {
        ("matrix 0 or 1".to_owned(), matrix)
    } else if row >= header.domain_size {
        (format!("a row below {}", header.domain_size), row)
    } else {
        (format!("a signal below {}", header.num_variables), signal)
    };
    Error::new(ErrorKind::OutOfRange, expected, found.to_string())
}

fn new_matrix(rows: usize) -> Result<Matrix, Error> {
    Matrix::with_row_capacity(rows).map_err(|_| Error::out_of_memory(rows as u64 * 4))
}

/// `len` times `value`, where memory can be had.
fn filled<T: Copy>(len: usize, value: T) -> Result<Vec<T>, Error> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(len)
        .map_err(|_| Error::out_of_memory((len * size_of::<T>()) as u64))?;
    values.resize(len, value);
    Ok(values)
}

/// `None` when some matrix' rows do not come in order.
fn by_rows(
    source: &dyn ReadAt,
    section: Section,
    header: &Header,
    meter: &Meter<'_>,
) -> Result<Option<AbMatrices>, Error> {
    let domain_size = header.domain_size as usize;
    let mut matrices = [new_matrix(domain_size)?, new_matrix(domain_size)?];
    let mut interner = Interner::new(CoefficientForm::TimesRSquared);
    let mut scratch = Vec::new();
    let mut ordered = true;
    for_each(source, section, header, meter, |entry| {
        let matrix = &mut matrices[entry.matrix];
        let row = entry.row as usize;
        if row < matrix.num_rows() {
            ordered = false;
            return Ok(false);
        }
        while matrix.num_rows() < row {
            end_row_merged(matrix, interner.table_mut(), &mut scratch)?;
        }
        if let Some(coefficient) = interner.index(entry.limbs)? {
            matrix.push_entry(entry.signal, coefficient);
        }
        Ok(true)
    })?;
    if !ordered {
        return Ok(None);
    }
    // Each matrix has the last row it met still open.
    let rows = matrices.each_ref().map(Matrix::num_rows);
    let rows = match header.num_coefficients {
        0 => 0,
        _ => rows[0].max(rows[1]) + 1,
    };
    for matrix in &mut matrices {
        while matrix.num_rows() < rows {
            end_row_merged(matrix, interner.table_mut(), &mut scratch)?;
        }
    }
    let [a, b] = matrices;
    Ok(Some(AbMatrices {
        a,
        b,
        coefficients: interner.into_table(),
    }))
}

fn in_any_order(
    source: &dyn ReadAt,
    section: Section,
    header: &Header,
    meter: &Meter<'_>,
) -> Result<AbMatrices, Error> {
    // Pass one: the number of entries of each row, then where each row begins.
    let domain_size = header.domain_size as usize;
    let mut starts = [filled(domain_size + 1, 0u32)?, filled(domain_size + 1, 0)?];
    let mut rows = 0;
    for_each(source, section, header, meter, |entry| {
        // The count of all entries fits into 32 bits.
        starts[entry.matrix][entry.row as usize + 1] += 1;
        rows = rows.max(entry.row as usize + 1);
        Ok(true)
    })?;
    for starts in &mut starts {
        for row in 1..=domain_size {
            starts[row] += starts[row - 1];
        }
    }

    // Pass two: each entry into its row; `starts[row]` moves on to the row's end.
    let mut interner = Interner::new(CoefficientForm::TimesRSquared);
    let none = (0u32, u32::MAX);
    let [of_a, of_b] = starts.each_ref().map(|starts| starts[domain_size] as usize);
    let mut entries = [filled(of_a, none)?, filled(of_b, none)?];
    for_each(source, section, header, meter, |entry| {
        let at = &mut starts[entry.matrix][entry.row as usize];
        // Zero coefficients keep the mark of no coefficient.
        if let Some(coefficient) = interner.index(entry.limbs)? {
            entries[entry.matrix][*at as usize] = (entry.signal, coefficient);
        }
        *at += 1;
        Ok(true)
    })?;

    let mut matrices = [new_matrix(rows)?, new_matrix(rows)?];
    let mut scratch = Vec::new();
    for ((matrix, ends), entries) in matrices.iter_mut().zip(&starts).zip(&entries) {
        let mut start = 0;
        for end in &ends[..rows] {
            let end = *end as usize;
            for (signal, coefficient) in &entries[start..end] {
                if *coefficient != u32::MAX {
                    matrix.push_entry(*signal, *coefficient);
                }
            }
            end_row_merged(matrix, interner.table_mut(), &mut scratch)?;
            start = end;
        }
    }
    let [a, b] = matrices;
    Ok(AbMatrices {
        a,
        b,
        coefficients: interner.into_table(),
    })
}
