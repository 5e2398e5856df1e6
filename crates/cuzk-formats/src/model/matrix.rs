//! Sparse matrices by rows, and the table of their coefficients.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use cuzk_field::{Field as _, Fr};

/// The distinct coefficients of a constraint system; matrices hold indices into it.
///
/// Index 0 is always 1 and index 1 is always -1, so that evaluators can skip the multiplication.
///
/// Tables are equal when they hold the same values under the same indices.
#[derive(Clone, Debug)]
pub struct CoefficientTable {
    values: Vec<Fr>,
    /// An open-addressed hash set of indices plus one, 0 for an empty slot: some 13 bytes a value,
    /// where a map would hold every value twice. A power of two, at most three quarters full.
    slots: Vec<u32>,
    /// Keyed at random, so that no file can choose values that collide.
    hasher: RandomState,
}

impl CoefficientTable {
    /// The index of 1.
    pub const ONE: u32 = 0;
    /// The index of -1.
    pub const MINUS_ONE: u32 = 1;

    /// The table that holds 1 and -1.
    pub fn new() -> Self {
        let mut table = Self {
            values: Vec::new(),
            slots: vec![0; 16],
            hasher: RandomState::new(),
        };
        table.intern(Fr::ONE);
        table.intern(-Fr::ONE);
        table
    }

    /// The index of `value`, entered if it is new.
    ///
    /// # Panics
    /// When 2^32 - 1 distinct values are held, 128 GiB of them.
    pub fn intern(&mut self, value: Fr) -> u32 {
        let slot = match self.slot(&value) {
            Ok(index) => return index,
            Err(slot) => slot,
        };
        let index = self.values.len();
        let mark = u32::try_from(index + 1).expect("fewer than 2^32 - 1 coefficients");
        if self.values.capacity() == index {
            // By half, not double: the values are most of the memory.
            self.values.reserve_exact(index / 2 + 16);
        }
        self.values.push(value);
        self.slots[slot] = mark;
        if self.values.len() * 4 > self.slots.len() * 3 {
            self.grow();
        }
        mark - 1
    }

    /// The distinct values by index.
    pub fn values(&self) -> &[Fr] {
        &self.values
    }

    /// The index of `value`, or the slot where it belongs.
    fn slot(&self, value: &Fr) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = self.hasher.hash_one(value) as usize & mask;
        while self.slots[slot] != 0 {
            let index = self.slots[slot] - 1;
            if self.values[index as usize] == *value {
                return Ok(index);
            }
            slot = (slot + 1) & mask;
        }
        Err(slot)
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 2];
        for (value, mark) in self.values.iter().zip(1..) {
            if let Err(slot) = self.slot(value) {
                self.slots[slot] = mark;
            }
        }
    }
}

impl PartialEq for CoefficientTable {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Eq for CoefficientTable {}

impl Default for CoefficientTable {
    fn default() -> Self {
        Self::new()
    }
}

/// A sparse matrix by rows. Repeated columns within a row are sums; zero coefficients do not occur.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matrix {
    /// `num_rows + 1` positions into the two arrays below, the first 0.
    row_offsets: Vec<u32>,
    /// Variable of each entry.
    columns: Vec<u32>,
    /// Index of each entry's coefficient in the system's [`CoefficientTable`].
    coefficients: Vec<u32>,
}

impl Default for Matrix {
    fn default() -> Self {
        Self::new()
    }
}

/// More entries than a [`Matrix`] can index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyEntries;

impl fmt::Display for TooManyEntries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a matrix has 2^32 entries or more")
    }
}

impl std::error::Error for TooManyEntries {}

/// Arrays that are not those of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartsMismatch;

impl fmt::Display for PartsMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "row offsets do not rise from 0 to the number of entries, or columns and coefficients are not as many",
        )
    }
}

impl std::error::Error for PartsMismatch {}

impl Matrix {
    /// A matrix without rows.
    pub fn new() -> Self {
        Self {
            row_offsets: vec![0],
            columns: Vec::new(),
            coefficients: Vec::new(),
        }
    }

    /// A matrix from its arrays: `row_offsets` one more than rows, from 0 up to the number of entries.
    ///
    /// # Errors
    /// When the arrays contradict each other.
    pub fn from_parts(
        row_offsets: Vec<u32>,
        columns: Vec<u32>,
        coefficients: Vec<u32>,
    ) -> Result<Self, PartsMismatch> {
        let ends = (row_offsets.first().copied(), row_offsets.last().copied());
        let fits = ends == (Some(0), u32::try_from(columns.len()).ok())
            && row_offsets.is_sorted()
            && columns.len() == coefficients.len();
        if !fits {
            return Err(PartsMismatch);
        }
        Ok(Self {
            row_offsets,
            columns,
            coefficients,
        })
    }

    /// A matrix without rows and with memory for `rows` of them.
    ///
    /// # Errors
    /// When the memory cannot be had.
    pub(crate) fn with_row_capacity(
        rows: usize,
    ) -> Result<Self, std::collections::TryReserveError> {
        let mut matrix = Self::default();
        matrix.row_offsets.try_reserve_exact(rows + 1)?;
        Ok(matrix)
    }

    /// Columns and coefficients of the row under construction.
    pub(crate) fn open_row(&self) -> (&[u32], &[u32]) {
        let start = self.row_offsets.last().map_or(0, |start| *start as usize);
        (&self.columns[start..], &self.coefficients[start..])
    }

    /// Removes the entries of the row under construction.
    pub(crate) fn clear_open_row(&mut self) {
        let start = self.row_offsets.last().map_or(0, |start| *start as usize);
        self.columns.truncate(start);
        self.coefficients.truncate(start);
    }

    /// Appends an entry to the row under construction.
    #[inline]
    pub fn push_entry(&mut self, column: u32, coefficient: u32) {
        self.columns.push(column);
        self.coefficients.push(coefficient);
    }

    /// Ends the row under construction.
    ///
    /// # Errors
    /// [`TooManyEntries`] when 2^32 or more entries are held.
    #[inline]
    pub fn end_row(&mut self) -> Result<(), TooManyEntries> {
        self.row_offsets
            .push(u32::try_from(self.columns.len()).map_err(|_| TooManyEntries)?);
        Ok(())
    }

    /// Rows ended so far.
    pub fn num_rows(&self) -> usize {
        self.row_offsets.len().saturating_sub(1)
    }

    /// Entries held.
    pub fn num_entries(&self) -> usize {
        self.columns.len()
    }

    /// The entries of a row as (column, coefficient index).
    #[inline]
    pub fn row(&self, row: usize) -> impl ExactSizeIterator<Item = (u32, u32)> {
        let range = self.row_offsets[row] as usize..self.row_offsets[row + 1] as usize;
        self.columns[range.clone()]
            .iter()
            .copied()
            .zip(self.coefficients[range].iter().copied())
    }

    /// Positions of the rows' first entries, and the end: `num_rows + 1` values.
    pub fn row_offsets(&self) -> &[u32] {
        &self.row_offsets
    }

    /// The variable of each entry.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The coefficient index of each entry.
    pub fn coefficients(&self) -> &[u32] {
        &self.coefficients
    }
}
