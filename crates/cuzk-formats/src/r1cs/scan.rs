//! Walking the constraint section.

use cuzk_field::Scalar;

use super::{CONSTRAINTS, ENTRY_BYTES, Header, R1CS, header};
use crate::container::Section;
use crate::cursor::fits;
use crate::error::{Error, ErrorKind, Note};
use crate::options::{LoadOptions, Meter};
use crate::source::ReadAt;
use crate::stream::{Stream, limbs_at, u32_at};

/// Told of each entry and each end of a linear combination; matrices are 0 (A), 1 (B), 2 (C).
pub(super) trait Visitor {
    /// `wire` is in range; `limbs` are as in the file, possibly not below r.
    fn entry(&mut self, matrix: usize, wire: u32, limbs: [u64; 4]) -> Result<(), Error>;
    fn end_combination(&mut self, matrix: usize) -> Result<(), Error>;
}

/// Walks all constraints, in memory of one block. The bytes used must be the section's.
pub(super) fn walk(
    source: &dyn ReadAt,
    section: Section,
    header: &Header,
    meter: &Meter<'_>,
    visitor: &mut impl Visitor,
) -> Result<(), Error> {
    let end = section.offset + section.len;
    let mut stream = Stream::new(source, section.offset, end, meter, "constraints");
    for constraint in 0..u64::from(header.num_constraints) {
        for matrix in 0..3 {
            let offset = stream.offset();
            combination(&mut stream, header, matrix, visitor).map_err(|error| {
                // Entries name their own offset.
                let at = error.place().offset.unwrap_or(offset);
                let place = R1CS.place(CONSTRAINTS).entry("constraint", constraint);
                relocate(&error, place.offset(at), matrix)
            })?;
        }
    }
    if stream.left() != 0 {
        return Err(Error::new(
            ErrorKind::BadLayout,
            format!(
                "{} constraints to fill the section's {} bytes",
                header.num_constraints, section.len
            ),
            format!("{} bytes left over", stream.left()),
        )
        .at(R1CS.place(CONSTRAINTS).offset(stream.offset())));
    }
    Ok(())
}

fn combination(
    stream: &mut Stream<'_>,
    header: &Header,
    matrix: usize,
    visitor: &mut impl Visitor,
) -> Result<(), Error> {
    let count = u32_at(stream.take::<4>()?, 0);
    if !fits(u64::from(count), ENTRY_BYTES, stream.left()) {
        return Err(Error::new(
            ErrorKind::Truncated,
            format!("{count} entries of {ENTRY_BYTES} bytes"),
            format!("{} bytes up to the end of the section", stream.left()),
        ));
    }
    for _ in 0..count {
        let record = stream.take::<{ ENTRY_BYTES as usize }>()?;
        let (wire, limbs) = (u32_at(record, 0), limbs_at(record, 4));
        let result = if wire < header.num_wires {
            visitor.entry(matrix, wire, limbs)
        } else {
            Err(Error::new(
                ErrorKind::OutOfRange,
                format!("a wire below {}", header.num_wires),
                wire.to_string(),
            ))
        };
        result.map_err(|error| {
            let offset = stream.offset() - ENTRY_BYTES;
            error.at(R1CS.place(CONSTRAINTS).offset(offset))
        })?;
    }
    visitor.end_combination(matrix)
}

fn relocate(error: &Error, place: crate::error::Place, matrix: usize) -> Error {
    if error.kind() == ErrorKind::Cancelled {
        return error.clone();
    }
    let name = ["A", "B", "C"][matrix];
    Error::new(
        error.kind(),
        format!("{} in {name}", error.expected()),
        error.found().to_owned(),
    )
    .at(place)
}

/// What a scan of the constraints finds, indexed by matrix (A, B, C) where there are three.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Entries as they stand in the file, zeros and repeats included.
    pub num_entries: [u64; 3],
    /// Entries of the longest linear combination.
    pub longest_row: [u64; 3],
    /// Linear combinations without an entry.
    pub num_empty_rows: [u64; 3],
    /// Entries whose coefficient is 1.
    pub num_ones: [u64; 3],
    /// Entries whose coefficient is -1.
    pub num_minus_ones: [u64; 3],
}

/// Walks all constraints and checks them as [`super::read`] does, in constant memory.
///
/// # Errors
/// As [`super::read`].
pub fn scan(
    source: &(impl ReadAt + ?Sized),
    options: &LoadOptions<'_>,
) -> Result<(Header, Statistics, Vec<Note>), Error> {
    scan_at(&source, options).map_err(|error| error.in_file(source.name()))
}

fn scan_at(
    source: &dyn ReadAt,
    options: &LoadOptions<'_>,
) -> Result<(Header, Statistics, Vec<Note>), Error> {
    let mut notes = Vec::new();
    let (header, section) = header::read_parts(source, options, &mut notes)?;
    let meter = Meter::new(options, section.len);
    let mut counter = Counter::default();
    walk(source, section, &header, &meter, &mut counter)?;
    Ok((header, counter.statistics, notes))
}

#[derive(Default)]
struct Counter {
    statistics: Statistics,
    row_len: u64,
}

impl Visitor for Counter {
    #[inline]
    fn entry(&mut self, matrix: usize, _wire: u32, limbs: [u64; 4]) -> Result<(), Error> {
        let value = Scalar::from_limbs(limbs).ok_or_else(crate::coefficients::not_canonical)?;
        self.row_len += 1;
        self.statistics.num_entries[matrix] += 1;
        self.statistics.num_ones[matrix] += u64::from(value.is_one());
        self.statistics.num_minus_ones[matrix] += u64::from(value == Scalar::MINUS_ONE);
        Ok(())
    }

    #[inline]
    fn end_combination(&mut self, matrix: usize) -> Result<(), Error> {
        let longest = &mut self.statistics.longest_row[matrix];
        *longest = self.row_len.max(*longest);
        self.statistics.num_empty_rows[matrix] += u64::from(self.row_len == 0);
        self.row_len = 0;
        Ok(())
    }
}
