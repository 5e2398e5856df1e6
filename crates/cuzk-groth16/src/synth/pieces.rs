//! Matrices made block by block in parallel, and put together.

use cuzk_field::{Field as _, Fr};
use cuzk_formats::{CoefficientTable, Matrix};
use rayon::prelude::*;

use crate::error::Error;

/// Coefficient indices from here on are a piece's own.
const OWN: u32 = 1 << 31;

/// Some rows of a matrix.
#[derive(Default)]
pub(super) struct Piece {
    /// The row under construction: (variable, coefficient index), in any order, equal variables summed.
    pub(super) open: Vec<(u32, u32)>,
    lengths: Vec<u32>,
    columns: Vec<u32>,
    coefficients: Vec<u32>,
    /// Coefficients that came of sums.
    own: Vec<Fr>,
}

impl Piece {
    /// Ends the row under construction: columns rise, zero coefficients are left out.
    pub(super) fn end_row(&mut self, table: &CoefficientTable) {
        let mut entries = std::mem::take(&mut self.open);
        if entries.len() > 1 {
            entries.sort_unstable_by_key(|(variable, _)| *variable);
        }
        let before = self.columns.len();
        for run in entries.chunk_by(|a, b| a.0 == b.0) {
            let (variable, mut index) = run[0];
            if run.len() > 1 {
                let values = table.values();
                let sum =
                    (run.iter()).fold(Fr::ZERO, |sum, (_, index)| sum + values[*index as usize]);
                if sum.is_zero() {
                    continue;
                }
                index = OWN + self.own.len() as u32;
                self.own.push(sum);
            }
            self.columns.push(variable);
            self.coefficients.push(index);
        }
        self.lengths.push((self.columns.len() - before) as u32);
        entries.clear();
        self.open = entries;
    }
}

/// The matrices whose rows the pieces are, in order. Coefficients are numbered as they first occur,
/// row by row, as a reader of the circuit's file would; the table loses those that do not occur.
pub(super) fn join(
    pieces: Vec<[Piece; 3]>,
    table: &mut CoefficientTable,
) -> Result<[Matrix; 3], Error> {
    let numbering = Numbering::of(&pieces, table);
    let mut matrices: [Vec<Piece>; 3] = std::array::from_fn(|_| Vec::with_capacity(pieces.len()));
    for block in pieces {
        for (matrix, piece) in matrices.iter_mut().zip(block) {
            matrix.push(piece);
        }
    }
    let [a, b, c] = matrices.map(|pieces| matrix(pieces, &numbering));
    *table = numbering.table;
    Ok([a?, b?, c?])
}

struct Numbering {
    table: CoefficientTable,
    /// The new index of an old one; `None` until it occurs.
    index: Vec<Option<u32>>,
}

impl Numbering {
    fn of(pieces: &[[Piece; 3]], old: &CoefficientTable) -> Self {
        let mut table = CoefficientTable::new();
        let mut index = vec![None; old.values().len()];
        let mut missing = index.len();
        for block in pieces {
            let own: usize = block.iter().map(|piece| piece.own.len()).sum();
            if missing == 0 && own == 0 {
                continue;
            }
            let mut at = [0; 3];
            for row in 0..block[0].lengths.len() {
                for (piece, at) in block.iter().zip(&mut at) {
                    let end = *at + piece.lengths[row] as usize;
                    for coefficient in &piece.coefficients[*at..end] {
                        if *coefficient >= OWN {
                            table.intern(piece.own[(*coefficient - OWN) as usize]);
                        } else if let slot @ None = &mut index[*coefficient as usize] {
                            let value = old.values()[*coefficient as usize];
                            *slot = Some(table.intern(value));
                            missing -= 1;
                        }
                    }
                    *at = end;
                }
            }
        }
        Self { table, index }
    }

    fn renumber(&self, coefficient: u32, piece: &Piece, own: &[u32]) -> u32 {
        debug_assert_eq!(own.len(), piece.own.len());
        match coefficient.checked_sub(OWN) {
            Some(index) => own[index as usize],
            None => self.index[coefficient as usize].unwrap_or_default(),
        }
    }
}

fn matrix(pieces: Vec<Piece>, numbering: &Numbering) -> Result<Matrix, Error> {
    let rows: usize = pieces.iter().map(|piece| piece.lengths.len()).sum();
    let entries: usize = pieces.iter().map(|piece| piece.columns.len()).sum();
    let too_many = || Error::Circuit {
        what: "it has 2^32 entries or more".into(),
    };
    u32::try_from(entries).map_err(|_| too_many())?;
    let mut offsets = Vec::with_capacity(rows + 1);
    let mut end = 0;
    offsets.push(0);
    for length in pieces.iter().flat_map(|piece| &piece.lengths) {
        end += length;
        offsets.push(end);
    }
    // Own sums may be equal to a coefficient that is there: the table knows their numbers.
    let mut table = numbering.table.clone();
    let own: Vec<Vec<u32>> = pieces
        .iter()
        .map(|piece| piece.own.iter().map(|value| table.intern(*value)).collect())
        .collect();
    let (mut columns, mut coefficients) = (vec![0; entries], vec![0; entries]);
    let mut shares = Vec::with_capacity(pieces.len());
    let (mut columns_left, mut coefficients_left) = (&mut columns[..], &mut coefficients[..]);
    for piece in &pieces {
        let len = piece.columns.len();
        let (columns, coefficients);
        (columns, columns_left) = columns_left.split_at_mut(len);
        (coefficients, coefficients_left) = coefficients_left.split_at_mut(len);
        shares.push((columns, coefficients));
    }
    pieces.into_par_iter().zip(own).zip(shares).for_each(
        |((piece, own), (columns, coefficients))| {
            columns.copy_from_slice(&piece.columns);
            for (new, old) in coefficients.iter_mut().zip(&piece.coefficients) {
                *new = numbering.renumber(*old, &piece, &own);
            }
        },
    );
    Matrix::from_parts(offsets, columns, coefficients).map_err(|_| too_many())
}
