//! Whether a constraint system is the one that a zkey was made for.

use cuzk_field::{Field as _, Fr};
use cuzk_formats::{AbMatrices, Matrix, R1cs};
use rayon::prelude::*;

/// A row in which a constraint system and the matrices of a key differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DifferingRow {
    /// "A" or "B".
    pub matrix: &'static str,
    /// The row: a constraint, or behind the last one the row of an input.
    pub row: usize,
}

/// The first row in which the constraint system, with a row appended for each input, differs from
/// the A and B matrices of a zkey; `None` when they are equal. C is not compared: a zkey has none.
///
/// In both, columns rise within a row and no coefficient is zero, as their readers leave them.
pub fn first_differing_row(r1cs: &R1cs, matrices: &AbMatrices) -> Option<DifferingRow> {
    let constraints = r1cs.num_constraints();
    let rows = (constraints + r1cs.num_inputs)
        .max(matrices.a.num_rows())
        .max(matrices.b.num_rows());
    let table = r1cs.coefficients.values();
    let key_table = matrices.coefficients.values();
    let input_entry = |row: usize| {
        let input = row.checked_sub(constraints)?;
        (input < r1cs.num_inputs).then_some((input as u32, Fr::ONE))
    };
    (0..rows).into_par_iter().find_map_first(|row| {
        let a = entries(&r1cs.a, row, table).chain(input_entry(row));
        let matrix = if !a.eq(entries(&matrices.a, row, key_table)) {
            "A"
        } else if !entries(&r1cs.b, row, table).eq(entries(&matrices.b, row, key_table)) {
            "B"
        } else {
            return None;
        };
        Some(DifferingRow { matrix, row })
    })
}

/// Columns and coefficients of a row; of a row beyond the last, nothing.
fn entries<'a>(
    matrix: &'a Matrix,
    row: usize,
    table: &'a [Fr],
) -> impl Iterator<Item = (u32, Fr)> + 'a {
    (row < matrix.num_rows())
        .then(|| matrix.row(row))
        .into_iter()
        .flatten()
        .map(|(column, coefficient)| (column, table[coefficient as usize]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_formats::CoefficientTable;

    use crate::synth::{Instance, Shape};

    /// The matrices that a key for the system carries.
    fn matrices(r1cs: &R1cs) -> AbMatrices {
        let mut a = r1cs.a.clone();
        for input in 0..r1cs.num_inputs as u32 {
            a.push_entry(input, CoefficientTable::ONE);
            a.end_row().unwrap();
        }
        AbMatrices {
            a,
            b: r1cs.b.clone(),
            coefficients: r1cs.coefficients.clone(),
        }
    }

    #[test]
    fn the_first_difference_is_found() {
        let r1cs = Instance::new(Shape::Porep, 8, 1).unwrap().r1cs;
        let equal = matrices(&r1cs);
        assert_eq!(first_differing_row(&r1cs, &equal), None);

        let mut longer = equal.clone();
        longer.b.push_entry(0, CoefficientTable::ONE);
        longer.b.end_row().unwrap();
        let row = r1cs.num_constraints();
        let expected = DifferingRow { matrix: "B", row };
        assert_eq!(first_differing_row(&r1cs, &longer), Some(expected));

        let mut other = r1cs.clone();
        other.num_inputs -= 1;
        let row = row + other.num_inputs;
        let expected = DifferingRow { matrix: "A", row };
        assert_eq!(first_differing_row(&other, &equal), Some(expected));
    }

    #[test]
    fn equal_values_under_other_indices_are_equal() {
        let r1cs = Instance::new(Shape::Dense, 5, 1).unwrap().r1cs;
        let mut other = matrices(&r1cs);
        let values = r1cs.coefficients.values();
        let mut table = CoefficientTable::new();
        for value in values.iter().rev() {
            table.intern(*value);
        }
        let renumbered = |matrix: &Matrix, table: &mut CoefficientTable| {
            let mut copy = Matrix::new();
            for row in 0..matrix.num_rows() {
                for (column, index) in matrix.row(row) {
                    copy.push_entry(column, table.intern(values[index as usize]));
                }
                copy.end_row().unwrap();
            }
            copy
        };
        other.a = renumbered(&other.a, &mut table);
        other.b = renumbered(&other.b, &mut table);
        other.coefficients = table;
        assert_eq!(first_differing_row(&r1cs, &other), None);
    }
}
