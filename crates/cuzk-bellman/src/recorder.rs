//! A constraint system as it is recorded.

use cuzk_field::{Fr, Scalar};
use cuzk_formats::{CoefficientTable, Matrix, R1cs};

use crate::error::Error;
use crate::sink::Sink;
use crate::variable::Variable;

/// Columns of auxiliary variables have this bit until the number of inputs is known.
const AUX: u32 = 1 << 31;

/// Takes constraints, in the library's own terms: entries stay in their order, a variable that occurs
/// twice in a combination is entered twice, and only entries whose coefficient is zero are left out.
/// So a variable occurs in a matrix exactly where the library's prover would set its density bit:
/// bellpepper has merged equal variables by then, bellman has not.
#[derive(Debug)]
pub(crate) struct Recorder {
    inputs: usize,
    aux: usize,
    matrices: [Matrix; 3],
    table: CoefficientTable,
    fault: Option<Error>,
}

impl Recorder {
    /// A system with the constant ONE.
    pub(crate) fn new() -> Self {
        Self {
            inputs: 1,
            aux: 0,
            matrices: [Matrix::new(), Matrix::new(), Matrix::new()],
            table: CoefficientTable::new(),
            fault: None,
        }
    }

    /// The constraint system, variables in the order of a witness: inputs, then the others.
    pub(crate) fn finish(self) -> Result<R1cs, Error> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let variables = self.inputs + self.aux;
        let Some(inputs) = u32::try_from(variables).ok().map(|_| self.inputs as u32) else {
            return Err(Error::TooLarge {
                what: "variables",
                limit: 1 << 32,
            });
        };
        let [a, b, c] = self.matrices.map(|matrix| numbered(&matrix, inputs));
        Ok(R1cs {
            num_inputs: self.inputs,
            num_variables: variables,
            a,
            b,
            c,
            coefficients: self.table,
        })
    }
}

/// Like the key generation of both libraries it takes no parts: the order of variables and constraints is
/// that of a synthesis on one thread.
impl Sink for Recorder {
    const VALUES: bool = false;
    const COMBINATIONS: bool = true;
    const EXTENSIBLE: bool = false;

    fn part() -> Self {
        Self::new()
    }

    fn extend(&mut self, _: &Self) {
        self.fault.get_or_insert(Error::Parts);
    }

    fn input(&mut self, _: Option<Scalar>) -> usize {
        self.inputs += 1;
        self.inputs - 1
    }

    fn aux(&mut self, _: Option<Scalar>) -> usize {
        self.aux += 1;
        self.aux - 1
    }

    fn entry(&mut self, matrix: usize, variable: Variable, coefficient: Scalar) {
        if coefficient.is_zero() {
            return;
        }
        let (kind, index, count) = match variable {
            Variable::Input(index) => ("input", index, self.inputs),
            Variable::Aux(index) => ("auxiliary", index, self.aux),
        };
        if index >= count {
            let constraint = self.matrices[0].num_rows();
            self.fault.get_or_insert(Error::NoSuchVariable {
                constraint,
                kind,
                index,
                count,
            });
            return;
        }
        let column = match variable {
            Variable::Input(index) => u32::try_from(index).ok().filter(|index| *index < AUX),
            Variable::Aux(index) => u32::try_from(index)
                .ok()
                .filter(|index| *index < AUX)
                .map(|index| index | AUX),
        };
        let Some(column) = column else {
            self.fault.get_or_insert(Error::TooLarge {
                what: "variables",
                limit: u64::from(AUX),
            });
            return;
        };
        let coefficient = if coefficient.is_one() {
            CoefficientTable::ONE
        } else {
            self.table.intern(Fr::from(coefficient))
        };
        self.matrices[matrix].push_entry(column, coefficient);
    }

    fn end_constraint(&mut self) {
        for matrix in &mut self.matrices {
            if matrix.end_row().is_err() {
                self.fault.get_or_insert(Error::TooLarge {
                    what: "entries of a matrix",
                    limit: 1 << 32,
                });
            }
        }
    }
}

/// The matrix with auxiliary variables behind the inputs.
fn numbered(matrix: &Matrix, inputs: u32) -> Matrix {
    let number = |column: &u32| match column & AUX {
        0 => *column,
        _ => (column & !AUX) + inputs,
    };
    Matrix::from_parts(
        matrix.row_offsets().to_vec(),
        matrix.columns().iter().map(number).collect(),
        matrix.coefficients().to_vec(),
    )
    .expect("the arrays are those of a matrix")
}
