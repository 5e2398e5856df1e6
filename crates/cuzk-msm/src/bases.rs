//! Where the points come from.

use ark_ec::AffineRepr as _;
use cuzk_field::{Affine, CurveField, G1Affine, G2Affine};

/// A list of points to read from, whatever memory layout they have.
///
/// A caller who already holds a key in another library's types proves from it without a second copy;
/// a call per point costs little beside an addition.
pub trait Bases<F: CurveField>: Sync {
    /// How many points there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The point at `index`, which is below [`Self::len`].
    fn get(&self, index: usize) -> Affine<F>;

    /// All of them as a slice, where they lie in memory as one: they need not be copied one by one, and
    /// can be fetched ahead.
    fn as_points(&self) -> Option<&[Affine<F>]> {
        None
    }

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

    fn as_points(&self) -> Option<&[Affine<F>]> {
        Some(self)
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

    fn as_points(&self) -> Option<&[Affine<F>]> {
        Some(self)
    }

    fn is_infinity(&self, index: usize) -> bool {
        self[index].is_infinity()
    }
}

/// Makes an unsized list an object.
pub(crate) struct ByRef<'a, B: ?Sized>(pub(crate) &'a B);

impl<F: CurveField, B: Bases<F> + ?Sized> Bases<F> for ByRef<'_, B> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Affine<F> {
        self.0.get(index)
    }

    fn as_points(&self) -> Option<&[Affine<F>]> {
        self.0.as_points()
    }

    fn is_infinity(&self, index: usize) -> bool {
        self.0.is_infinity(index)
    }
}

/// A key held in `ark-bls12-381`'s affine types.
macro_rules! ark_bases {
    ($ours:ty, $theirs:ty, $field:ty) => {
        impl Bases<$field> for Vec<$theirs> {
            fn len(&self) -> usize {
                self.as_slice().len()
            }

            fn get(&self, index: usize) -> $ours {
                self[index].into()
            }

            fn is_infinity(&self, index: usize) -> bool {
                self[index].is_zero()
            }
        }
    };
}

ark_bases!(G1Affine, ark_bls12_381::G1Affine, cuzk_field::Fp);
ark_bases!(G2Affine, ark_bls12_381::G2Affine, cuzk_field::Fp2);
