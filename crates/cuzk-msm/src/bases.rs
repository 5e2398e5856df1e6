//! Where the points come from.

use ark_ec::AffineRepr as _;
use cuzk_field::{Affine, CurveField, G1Affine, G2Affine};

/// A list of points to read from, whatever memory layout they have.
///
/// A caller who already holds a key in another library's types proves from it without a second copy;
/// the cost of a call per point (about 2 ns) vanishes beside an addition (150 ns and more).
pub trait Bases<F: CurveField>: Sync {
    /// How many points there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The point at `index`, which is below [`Self::len`].
    fn get(&self, index: usize) -> Affine<F>;

    /// Whether the point at `index` is infinity.
    fn is_infinity(&self, index: usize) -> bool {
        self.get(index).is_infinity()
    }
}

impl<F: CurveField> Bases<F> for [Affine<F>] {
    fn len(&self) -> usize {
        <[Affine<F>]>::len(self)
    }

    fn get(&self, index: usize) -> Affine<F> {
        self[index]
    }

    fn is_infinity(&self, index: usize) -> bool {
        self[index].is_infinity()
    }
}

impl<F: CurveField> Bases<F> for Vec<Affine<F>> {
    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn get(&self, index: usize) -> Affine<F> {
        self[index]
    }

    fn is_infinity(&self, index: usize) -> bool {
        self[index].is_infinity()
    }
}

macro_rules! ark_bases {
    ($name:ident, $ours:ty, $theirs:ty, $field:ty) => {
        /// Points held in `ark-bls12-381`'s affine type.
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'a>(pub &'a [$theirs]);

        impl Bases<$field> for $name<'_> {
            fn len(&self) -> usize {
                self.0.len()
            }

            fn get(&self, index: usize) -> $ours {
                self.0[index].into()
            }

            fn is_infinity(&self, index: usize) -> bool {
                self.0[index].is_zero()
            }
        }
    };
}

ark_bases!(
    ArkG1Bases,
    G1Affine,
    ark_bls12_381::G1Affine,
    cuzk_field::Fp
);
ark_bases!(
    ArkG2Bases,
    G2Affine,
    ark_bls12_381::G2Affine,
    cuzk_field::Fp2
);
