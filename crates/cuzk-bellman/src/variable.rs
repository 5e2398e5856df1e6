//! Variables as both libraries count them: inputs and the others apart.

use cuzk_field::Scalar;

/// A variable, by its number among those of its kind; input 0 is the constant ONE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Variable {
    Input(usize),
    Aux(usize),
}

/// A value by its canonical little-endian bytes, as both libraries give them.
pub(crate) fn canonical(bytes: &[u8; 32]) -> Scalar {
    Scalar::from_le_bytes(bytes).expect("the library's elements are below r")
}
