//! What a proof needs of the circuit besides the key.

use cuzk_formats::{AbMatrices, CoefficientTable, Matrix, QueryLayout, QueryVariables, R1cs};
use rayon::prelude::*;

use crate::compare::first_differing_row;
use crate::error::Error;
use crate::key::KeyHeader;
use crate::rows::Rows;

/// The circuit, in one of the forms in which it comes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Circuit<'a> {
    /// A constraint system. The witness is checked against it: before proving on the CPU, on a device when a proof
    /// does not verify or is not to be verified.
    R1cs(&'a R1cs),
    /// The A and B matrices of a zkey, input rows included. Without C the witness cannot be checked
    /// beforehand; a violated constraint shows when the proof is verified.
    Matrices(&'a AbMatrices),
    /// Rows that the caller has evaluated.
    Rows {
        /// A w and B w, input rows included.
        rows: Rows,
        /// Which variables occur, for keys of [`QueryLayout::Compact`].
        variables: Option<&'a QueryVariables>,
    },
}

impl Circuit<'_> {
    /// Whether it is this constraint system, or the matrices of it. Rows are of none.
    pub fn is_of(&self, r1cs: &R1cs) -> bool {
        match self {
            Self::R1cs(own) => std::ptr::eq(*own, r1cs) || *own == r1cs,
            Self::Matrices(matrices) => first_differing_row(r1cs, matrices).is_none(),
            Self::Rows { .. } => false,
        }
    }

    /// Holds the circuit's counts against the key's.
    pub(crate) fn check(&self, key: &KeyHeader) -> Result<(), Error> {
        let same = |what, key, circuit| {
            if key == circuit {
                Ok(())
            } else {
                Err(Error::CircuitMismatch { what, key, circuit })
            }
        };
        match self {
            Self::R1cs(r1cs) => {
                same(
                    "inputs (public values and ONE)",
                    key.num_inputs(),
                    r1cs.num_inputs,
                )?;
                same("variables", key.num_variables, r1cs.num_variables)?;
                for matrix in [&r1cs.a, &r1cs.b, &r1cs.c] {
                    check_matrix(matrix, &r1cs.coefficients, r1cs.num_variables)?;
                    check_rows(r1cs.num_constraints(), matrix.num_rows())?;
                }
                // snarkjs has a domain of 2 where one row would do.
                if !(key.domain_size == 2 && r1cs.domain_size() == 1) {
                    same("rows in its domain", key.domain_size, r1cs.domain_size())?;
                }
            }
            Self::Matrices(matrices) => {
                if matrices.a.num_rows() > key.domain_size {
                    same("rows in its domain", key.domain_size, matrices.a.num_rows())?;
                }
                let fits = |matrix| check_matrix(matrix, &matrices.coefficients, key.num_variables);
                fits(&matrices.a)?;
                fits(&matrices.b)?;
                check_rows(matrices.a.num_rows(), matrices.b.num_rows())?;
            }
            Self::Rows { rows, .. } => {
                if rows.len() > key.domain_size {
                    same("rows in its domain", key.domain_size, rows.len())?;
                }
            }
        }
        Ok(())
    }

    /// The variables of a compact key's queries, their numbers held against the key's.
    /// `of_key` is what the key itself says of them.
    pub(crate) fn query_variables(
        &self,
        key: &KeyHeader,
        of_key: Option<&QueryVariables>,
    ) -> Result<Option<QueryVariables>, Error> {
        if key.query_layout == QueryLayout::Full {
            return Ok(None);
        }
        let variables = match self {
            _ if of_key.is_some() => of_key.cloned().unwrap_or_default(),
            Self::R1cs(r1cs) => QueryVariables::of(r1cs),
            Self::Rows {
                variables: Some(variables),
                ..
            } => (*variables).clone(),
            Self::Rows {
                variables: None, ..
            }
            | Self::Matrices(_) => {
                return Err(Error::Circuit {
                    what: "a key of the bellman family leaves out points at infinity; which \
                           variables its A and B points belong to is known from the constraint \
                           system: give the R1CS"
                        .into(),
                });
            }
        };
        let counts = [
            ("points in A", key.points_in_a, variables.a.len()),
            ("points in B", key.points_in_b, variables.b.len()),
        ];
        for (what, key, circuit) in counts {
            if key != circuit {
                return Err(Error::CircuitMismatch { what, key, circuit });
            }
        }
        let given = variables.a.iter().chain(&variables.b);
        match given
            .max()
            .filter(|index| **index as usize >= key.num_variables)
        {
            Some(index) => Err(Error::Circuit {
                what: format!("variable {index} is not one of {}", key.num_variables),
            }),
            None => Ok(Some(variables)),
        }
    }
}

/// That every entry names a variable and a coefficient that are there: the parts of a constraint
/// system can be put together by hand, and a zkey's matrices be given with another key.
fn check_matrix(matrix: &Matrix, table: &CoefficientTable, variables: usize) -> Result<(), Error> {
    let fault = |entry: usize, noun, index: u32, count: usize| Error::Circuit {
        what: format!("entry {entry} of a matrix names {noun} {index}, but there are {count}"),
    };
    let outside = |indices: &[u32], count: usize| {
        indices
            .par_iter()
            .position_first(|index| *index as usize >= count)
    };
    let coefficients = table.values().len();
    if let Some(entry) = outside(matrix.columns(), variables) {
        return Err(fault(entry, "variable", matrix.columns()[entry], variables));
    }
    if let Some(entry) = outside(matrix.coefficients(), coefficients) {
        return Err(fault(
            entry,
            "coefficient",
            matrix.coefficients()[entry],
            coefficients,
        ));
    }
    Ok(())
}

fn check_rows(expected: usize, found: usize) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Circuit {
        what: format!("its matrices have {expected} and {found} rows"),
    })
}
