//! Roots of unity of the scalar field. There are two families in the wild, and they do not mix.

use crate::constants::{FR_TWO_ADICITY, ROOT_2_32_OF_5, ROOT_2_32_OF_7};
use crate::fr::{Fr, Scalar};

/// The non-residue from which a key's roots of unity come.
///
/// The 2^k-th roots of the two families agree only for k <= 2; a proof computed with the other
/// family's roots is well-formed and invalid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RootGenerator {
    /// circom and snarkjs keys on BLS12-381.
    Five,
    /// arkworks, bellman, bellperson, blst and zkcrypto keys.
    Seven,
}

impl RootGenerator {
    /// A primitive 2^`log_order`-th root of unity, or `None` above 2^32.
    pub fn root_of_unity(self, log_order: u32) -> Option<Fr> {
        let limbs = match self {
            Self::Five => ROOT_2_32_OF_5,
            Self::Seven => ROOT_2_32_OF_7,
        };
        let doublings = FR_TWO_ADICITY.checked_sub(log_order)?;
        let mut root = Fr::from(Scalar::from_limbs(limbs)?);
        for _ in 0..doublings {
            root = root * root;
        }
        Some(root)
    }

    /// The non-residue itself.
    pub fn generator(self) -> u64 {
        match self {
            Self::Five => 5,
            Self::Seven => 7,
        }
    }
}
