//! A w, B w and C w.

use cuzk_field::{Field as _, Fr, Scalar};
use cuzk_formats::{AbMatrices, CoefficientTable, Matrix, R1cs};
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::Error;

/// A w and B w by rows, the rows that bind the inputs included: row (constraints + i) of A is input
/// i, of B zero. Equally long, at most n; what is missing up to n is zero. Wiped when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Rows {
    a: Vec<Fr>,
    b: Vec<Fr>,
}

impl Rows {
    /// From evaluated rows.
    ///
    /// # Errors
    /// [`Error::Circuit`] unless both are equally long.
    pub fn new(a: Vec<Fr>, b: Vec<Fr>) -> Result<Self, Error> {
        let rows = Self { a, b };
        let (a, b) = (rows.a.len(), rows.b.len());
        if a == b {
            Ok(rows)
        } else {
            Err(Error::Circuit {
                what: format!("{a} rows of A come with {b} rows of B"),
            })
        }
    }

    /// A w.
    pub(crate) fn a(&self) -> &[Fr] {
        &self.a
    }

    /// B w.
    pub(crate) fn b(&self) -> &[Fr] {
        &self.b
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.a.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.a.is_empty()
    }

    /// Evaluates a constraint system and appends the input rows.
    pub(crate) fn of_r1cs(r1cs: &R1cs, witness: &[Scalar], domain_size: usize) -> Self {
        let table = &r1cs.coefficients;
        let mut a = evaluate(&r1cs.a, table, witness, domain_size);
        let inputs = r1cs.num_constraints()..r1cs.num_constraints() + r1cs.num_inputs;
        for (row, input) in a[inputs].iter_mut().zip(witness) {
            *row = Fr::from(*input);
        }
        Self {
            a,
            b: evaluate(&r1cs.b, table, witness, domain_size),
        }
    }

    /// The first constraint whose product is not C w, or `None`; `self` is [`Self::of_r1cs`] of the
    /// same system and witness.
    pub(crate) fn first_violated(&self, r1cs: &R1cs, witness: &[Scalar]) -> Option<usize> {
        let coefficients = r1cs.coefficients.values();
        (0..r1cs.num_constraints())
            .into_par_iter()
            .find_first(|row| {
                let c = evaluate_row(&r1cs.c, *row, coefficients, witness);
                self.a[*row] * self.b[*row] != c
            })
    }

    /// Evaluates the matrices of a zkey, which have the input rows.
    pub(crate) fn of_matrices(
        matrices: &AbMatrices,
        witness: &[Scalar],
        domain_size: usize,
    ) -> Self {
        let table = &matrices.coefficients;
        Self {
            a: evaluate(&matrices.a, table, witness, domain_size),
            b: evaluate(&matrices.b, table, witness, domain_size),
        }
    }

    /// A w and B w with zero rows up to n.
    pub(crate) fn into_padded(mut self, domain_size: usize) -> (Vec<Fr>, Vec<Fr>) {
        (pad(&mut self.a, domain_size), pad(&mut self.b, domain_size))
    }
}

/// Takes the rows out; a list that has no room for zeros is copied, and the old one wiped.
fn pad(rows: &mut Vec<Fr>, domain_size: usize) -> Vec<Fr> {
    let mut padded = std::mem::take(rows);
    if padded.capacity() < domain_size {
        let old = Zeroizing::new(padded);
        padded = Vec::with_capacity(domain_size);
        padded.extend_from_slice(&old);
    }
    padded.resize(domain_size, Fr::ZERO);
    padded
}

/// Values of rows are witness data.
impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rows({})", self.len())
    }
}

/// Rows evaluated by one task.
const CHUNK_ROWS: usize = 1 << 10;

/// M w in Montgomery form, zero rows appended up to `len`.
fn evaluate(matrix: &Matrix, table: &CoefficientTable, witness: &[Scalar], len: usize) -> Vec<Fr> {
    let mut rows = vec![Fr::ZERO; len];
    let rows_present = matrix.num_rows();
    rows[..rows_present]
        .par_chunks_mut(CHUNK_ROWS)
        .enumerate()
        .for_each(|(chunk, values)| {
            for (row, value) in (chunk * CHUNK_ROWS..).zip(values) {
                *value = evaluate_row(matrix, row, table.values(), witness);
            }
        });
    rows
}

#[inline]
fn evaluate_row(matrix: &Matrix, row: usize, coefficients: &[Fr], witness: &[Scalar]) -> Fr {
    let mut sum = Fr::ZERO;
    for (column, coefficient) in matrix.row(row) {
        let value = witness[column as usize].over_r();
        match coefficient {
            CoefficientTable::ONE => sum += value,
            CoefficientTable::MINUS_ONE => sum -= value,
            _ => sum += coefficients[coefficient as usize] * value,
        }
    }
    sum * Fr::R
}
