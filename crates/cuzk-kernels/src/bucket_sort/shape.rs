//! The sizes of a sort.

use std::ops::Range;

use cuzk_gpu_mem::Carve;

use super::{MAX_COLUMNS, PartShape, TILE};
use crate::error::{Error, Result};
use crate::windows::Windows;

/// log2 of the buckets of a column, and of the columns of a set, at most: tables in shared memory.
const MAX_LOG_BUCKETS: u32 = 12;
const MAX_LOG_COLUMNS: u32 = 11;
/// log2 of both, at most, where there is a choice: runs of a tile are then not too short in either pass.
const GOOD_LOG_BUCKETS: u32 = 11;
const GOOD_LOG_COLUMNS: u32 = 10;

/// Digits of a column, where scalars are random and many: the fewer columns, the longer the runs that a tile leaves in
/// each, and the tiles of one column write close to each other. H200, all windows of 2^24 scalars: columns of 2^14, 2^15,
/// 2^16 digits, 2^9, 2^10, 2^11 buckets, take 3.70, 3.05, 2.83 ms; of 2^26: of 2^15, 2^16, 2^17 digits, 2^10, 2^11, 2^12
/// buckets 15.7, 12.9, 15.1.
const COLUMN_DIGITS: usize = 1 << 16;
/// log2 of the columns from which on they have as many digits, rather than three quarters of a tile.
const FEW_LOG_COLUMNS: u32 = 6;

/// log2 of the columns of a window with so many digits, as far as there may be so many.
fn wanted_log_columns(digits: usize) -> u32 {
    let log = |columns: usize| columns.max(1).next_power_of_two().ilog2();
    let short = log(digits.div_ceil(TILE * 3 / 4));
    short
        .min(FEW_LOG_COLUMNS)
        .max(log(digits.div_ceil(COLUMN_DIGITS)))
}

/// The sizes of a sort. Buckets of all parts are numbered in one row: those of the first part's
/// windows, then those of the second's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortShape {
    pub(super) windows: Windows,
    pub(super) low_bits: u32,
    pub(super) parts: Vec<PartShape>,
}

impl SortShape {
    /// The sort of `parts`, none of which has more than 2^31 scalars; their digits together are fewer
    /// than 2^32.
    pub fn new(windows: Windows, parts: Vec<PartShape>) -> Result<Self> {
        let largest = parts.iter().map(|part| part.scalars).max().unwrap_or(0);
        // log2 of the buckets of a wide window: the choice is made for these.
        let most = windows.width() - 1;
        let wanted = wanted_log_columns(largest * windows.multiples() as usize);
        // Within the tables, and as far as can be within what is best.
        let high_bits = wanted
            .max(most.saturating_sub(GOOD_LOG_BUCKETS))
            .min(GOOD_LOG_COLUMNS)
            .max(most.saturating_sub(MAX_LOG_BUCKETS))
            .clamp(1, most.min(MAX_LOG_COLUMNS));
        let mut shape = Self {
            windows,
            low_bits: most - high_bits,
            parts,
        };
        while (0..shape.parts.len()).any(|part| shape.columns_of(part) > MAX_COLUMNS)
            && shape.low_bits < MAX_LOG_BUCKETS.min(most - 1)
        {
            shape.low_bits += 1;
        }
        let entry = super::COUNT.declaration().entry;
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

    /// With columns of 2^`log` buckets, for measurements.
    #[doc(hidden)]
    pub fn with_low_bits(mut self, log: u32) -> Self {
        self.low_bits = log;
        self
    }

    /// How scalars are cut.
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// The parts.
    pub fn parts(&self) -> &[PartShape] {
        &self.parts
    }

    pub(super) fn columns_of(&self, part: usize) -> usize {
        let Range { start, end } = self.parts[part].windows;
        (self.windows.first_bucket(end) - self.windows.first_bucket(start)) >> self.low_bits
    }

    pub(super) fn columns(&self) -> usize {
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
            .sum::<usize>()
            * self.multiples()
    }

    pub(super) fn max_tiles(&self) -> usize {
        self.columns() + self.max_entries() / TILE
    }

    fn multiples(&self) -> usize {
        self.windows.multiples() as usize
    }

    pub(super) fn tiles_of(&self, part: usize) -> usize {
        self.parts[part].scalars.div_ceil(TILE)
    }

    /// A row for each tile and group of windows.
    pub(super) fn rows_of(&self, part: usize) -> usize {
        self.tiles_of(part) * self.multiples()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The columns that took least on an H200, of those that were tried (`docs/measurements.md`): buckets of a column by sums
    /// of so many terms in so many windows.
    #[test]
    fn columns_are_those_that_were_fastest() {
        for (log_terms, windows, log_buckets) in [
            (20, 17, 8),
            (22, 15, 10),
            (24, 13, 11),
            (26, 12, 11),
            (27, 12, 11),
            (28, 12, 11),
        ] {
            let part = PartShape {
                scalars: 1 << log_terms,
                windows: 0..windows,
            };
            // All windows of 2^28 have too many entries for one sort; a slab has some of them.
            let part = match log_terms {
                28 => PartShape {
                    windows: 0..3,
                    ..part
                },
                _ => part,
            };
            let shape = SortShape::new(Windows::new(windows), vec![part]).unwrap();
            assert_eq!(shape.low_bits, log_buckets, "2^{log_terms}");
            assert!(shape.columns_of(0) <= MAX_COLUMNS);
        }
    }
}
