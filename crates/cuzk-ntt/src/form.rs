//! Which quotient a key asks for.

/// What the H sum of a key takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QuotientForm {
    /// h's coefficients: tau-power keys (bellman, arkworks). Six transforms, three arrays.
    Coefficients,
    /// (a b - c)(g w^j): keys of circom and snarkjs. Six transforms, three arrays.
    OddValues,
    /// (a b)(g w^j): prepared keys, into which c is folded. Four transforms, two arrays.
    OddProducts,
}

impl QuotientForm {
    /// Arrays of n elements of 32 bytes that it works in, the result's included.
    pub fn arrays(self) -> usize {
        match self {
            Self::Coefficients | Self::OddValues => 3,
            Self::OddProducts => 2,
        }
    }
}
