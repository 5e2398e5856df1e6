//! Circuits of a few rows, of which every count is one that is easily got wrong.

use cuzk_formats::{Matrix, R1cs};

/// What a row has in B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InB {
    /// Its own private variable.
    Private,
    /// An input that is one, so that the private variable may be anything.
    Input,
    /// Nothing: no variable has a point there.
    Nothing,
}

/// x y = x for each private variable x and what is in B, or x 0 = 0.
pub(crate) fn circuit(aux: usize, inputs: usize, in_b: InB) -> R1cs {
    let mut r1cs = R1cs {
        num_inputs: inputs,
        num_variables: inputs + aux,
        a: Matrix::new(),
        b: Matrix::new(),
        c: Matrix::new(),
        coefficients: Default::default(),
    };
    for row in 0..aux {
        let variable = (inputs + row) as u32;
        let (right, product) = match in_b {
            InB::Private => (Some(variable), Some(variable)),
            InB::Input => (Some((row % inputs) as u32), Some(variable)),
            InB::Nothing => (None, None),
        };
        for (matrix, column) in [
            (&mut r1cs.a, Some(variable)),
            (&mut r1cs.b, right),
            (&mut r1cs.c, product),
        ] {
            if let Some(column) = column {
                matrix.push_entry(column, 0);
            }
            matrix.end_row().unwrap();
        }
    }
    r1cs
}
