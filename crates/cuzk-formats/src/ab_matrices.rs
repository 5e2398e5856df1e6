//! The matrices that a key carries with it.

use crate::model::{CoefficientTable, Matrix, R1cs, TooManyEntries};

/// The A and B matrices of a zkey or a prepared key, the rows for the inputs included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AbMatrices {
    /// The left factors.
    pub a: Matrix,
    /// The right factors.
    pub b: Matrix,
    /// The coefficients of both.
    pub coefficients: CoefficientTable,
}

impl AbMatrices {
    /// A and B of a constraint system with the rows that bind the inputs, and the coefficients of these
    /// two alone, so that their numbers stay small.
    ///
    /// # Errors
    /// [`TooManyEntries`] where the rows of the inputs make 2^32 entries or more.
    pub fn of(r1cs: &R1cs) -> Result<Self, TooManyEntries> {
        let mut coefficients = CoefficientTable::new();
        let mut a = copy(&r1cs.a, &r1cs.coefficients, &mut coefficients)?;
        let mut b = copy(&r1cs.b, &r1cs.coefficients, &mut coefficients)?;
        for input in 0..r1cs.num_inputs as u32 {
            a.push_entry(input, CoefficientTable::ONE);
            a.end_row()?;
            b.end_row()?;
        }
        Ok(Self { a, b, coefficients })
    }
}

fn copy(
    matrix: &Matrix,
    from: &CoefficientTable,
    into: &mut CoefficientTable,
) -> Result<Matrix, TooManyEntries> {
    const UNKNOWN: u32 = u32::MAX;
    let mut indices = vec![UNKNOWN; from.values().len()];
    let mut copy = Matrix::new();
    for row in 0..matrix.num_rows() {
        for (column, coefficient) in matrix.row(row) {
            let index = &mut indices[coefficient as usize];
            if *index == UNKNOWN {
                *index = into.intern(from.values()[coefficient as usize]);
            }
            copy.push_entry(column, *index);
        }
        copy.end_row()?;
    }
    Ok(copy)
}
