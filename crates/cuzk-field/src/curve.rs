//! Points of G1 and G2: affine as keys hold them, XYZZ as sums are kept.

use ark_ec::AffineRepr as _;
use zeroize::Zeroize;

use crate::constants::FP_MODULUS;
use crate::field::{Field, batch_invert};
use crate::fp::Fp;
use crate::fp2::Fp2;
use crate::fr::Scalar;
use crate::host;

/// A field over which one of the two curves y^2 = x^3 + b is defined.
pub trait CurveField: Field + Default {
    /// b: 4 for G1, 4 + 4u for G2.
    const B: Self;
    /// The degree over Fp.
    const DEGREE: usize;
    /// The coefficient of u^i, i below [`Self::DEGREE`].
    fn coefficient(&self, i: usize) -> &Fp;
    /// The coefficient of u^i, i below [`Self::DEGREE`].
    fn coefficient_mut(&mut self, i: usize) -> &mut Fp;
    /// Whether a point **on the curve** has order dividing r.
    fn in_subgroup(point: &Affine<Self>) -> bool;
    /// The standard generator of the subgroup.
    fn generator() -> Affine<Self>;
}

/// 4 in Montgomery form: R doubled twice modulo p.
const FOUR: Fp = Fp(four());

const fn four() -> [u64; 6] {
    let twice = double_mod_p(crate::constants::FP_R);
    double_mod_p(twice)
}

const fn double_mod_p(a: [u64; 6]) -> [u64; 6] {
    // p has 381 bits, so the doubled value does not leave six limbs.
    let mut doubled = [0u64; 6];
    let mut i = 0;
    while i < 6 {
        doubled[i] = (a[i] << 1) | if i > 0 { a[i - 1] >> 63 } else { 0 };
        i += 1;
    }
    if crate::field::limbs_less_than(&doubled, &FP_MODULUS) {
        return doubled;
    }
    let mut borrow = false;
    let mut i = 0;
    while i < 6 {
        let (d, b1) = doubled[i].overflowing_sub(FP_MODULUS[i]);
        let (d, b2) = d.overflowing_sub(borrow as u64);
        doubled[i] = d;
        borrow = b1 | b2;
        i += 1;
    }
    doubled
}

impl CurveField for Fp {
    const B: Self = FOUR;
    const DEGREE: usize = 1;

    #[inline]
    fn coefficient(&self, _: usize) -> &Fp {
        self
    }

    #[inline]
    fn coefficient_mut(&mut self, _: usize) -> &mut Fp {
        self
    }

    fn in_subgroup(point: &G1Affine) -> bool {
        host::g1_in_subgroup(point)
    }

    fn generator() -> G1Affine {
        ark_bls12_381::G1Affine::generator().into()
    }
}

impl CurveField for Fp2 {
    const B: Self = Self { c0: FOUR, c1: FOUR };
    const DEGREE: usize = 2;

    #[inline]
    fn coefficient(&self, i: usize) -> &Fp {
        if i == 0 { &self.c0 } else { &self.c1 }
    }

    #[inline]
    fn coefficient_mut(&mut self, i: usize) -> &mut Fp {
        if i == 0 { &mut self.c0 } else { &mut self.c1 }
    }

    fn in_subgroup(point: &G2Affine) -> bool {
        host::g2_in_subgroup(point)
    }

    fn generator() -> G2Affine {
        ark_bls12_381::G2Affine::generator().into()
    }
}

/// An affine point; infinity is x = y = 0, which is on neither curve.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash, Debug)]
#[repr(C, align(32))]
pub struct Affine<F> {
    /// The x coordinate.
    pub x: F,
    /// The y coordinate.
    pub y: F,
}

/// A point of E(Fp), 96 bytes.
pub type G1Affine = Affine<Fp>;
/// A point of the twist E'(Fp2), 192 bytes.
pub type G2Affine = Affine<Fp2>;

impl<F: CurveField> Affine<F> {
    /// The point at infinity.
    pub const INFINITY: Self = Self {
        x: F::ZERO,
        y: F::ZERO,
    };

    /// The standard generator of the subgroup of order r.
    pub fn generator() -> Self {
        F::generator()
    }

    /// Whether this is the point at infinity.
    #[inline]
    pub fn is_infinity(&self) -> bool {
        self.x.is_zero() && self.y.is_zero()
    }

    /// Whether y^2 = x^3 + b, or infinity.
    #[inline]
    pub fn is_on_curve(&self) -> bool {
        self.y.square() == self.x.square() * self.x + F::B || self.is_infinity()
    }

    /// Whether a point **on the curve** lies in the subgroup of order r.
    pub fn is_in_subgroup(&self) -> bool {
        F::in_subgroup(self)
    }
}

impl G1Affine {
    /// (beta x, y): for a point **of the subgroup** its multiple by
    /// [`G1_LAMBDA`](crate::constants::G1_LAMBDA).
    #[must_use]
    pub fn endomorphism(&self) -> Self {
        Self {
            x: self.x * Fp(crate::constants::G1_BETA),
            y: self.y,
        }
    }
}

impl<F: CurveField> std::ops::Neg for Affine<F> {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self {
            x: self.x,
            y: -self.y,
        }
    }
}

/// x = X/ZZ, y = Y/ZZZ with ZZ^3 = ZZZ^2; infinity is ZZ = ZZZ = 0.
///
/// The formulas are `madd-2008-s`, `add-2008-s` and `dbl-2008-s-1` of the Explicit-Formulas
/// Database, made complete: equal, opposite and infinite operands give the right sum.
#[derive(Clone, Copy, Default, Debug, Zeroize)]
#[repr(C, align(32))]
pub struct Xyzz<F> {
    /// X.
    pub x: F,
    /// Y.
    pub y: F,
    /// ZZ.
    pub zz: F,
    /// ZZZ.
    pub zzz: F,
}

/// XYZZ coordinates over G1, 192 bytes.
pub type G1Xyzz = Xyzz<Fp>;
/// XYZZ coordinates over G2, 384 bytes.
pub type G2Xyzz = Xyzz<Fp2>;

const _: () = {
    assert!(size_of::<Fp>() == 48 && align_of::<Fp>() == 16);
    assert!(size_of::<Fp2>() == 96 && align_of::<Fp2>() == 16);
    assert!(size_of::<Scalar>() == 32 && align_of::<Scalar>() == 16);
    assert!(size_of::<crate::Fr>() == 32 && align_of::<crate::Fr>() == 16);
    assert!(size_of::<G1Affine>() == 96 && align_of::<G1Affine>() == 32);
    assert!(size_of::<G2Affine>() == 192 && align_of::<G2Affine>() == 32);
    assert!(size_of::<G1Xyzz>() == 192 && align_of::<G1Xyzz>() == 32);
    assert!(size_of::<G2Xyzz>() == 384 && align_of::<G2Xyzz>() == 32);
};

impl<F: CurveField> Xyzz<F> {
    /// The point at infinity.
    pub const INFINITY: Self = Self {
        x: F::ZERO,
        y: F::ZERO,
        zz: F::ZERO,
        zzz: F::ZERO,
    };

    /// Whether this is the point at infinity.
    #[inline]
    pub fn is_infinity(&self) -> bool {
        self.zz.is_zero()
    }

    /// 2 self.
    #[must_use]
    pub fn double(&self) -> Self {
        let u = self.y.double();
        let v = u.square();
        let w = u * v;
        let s = self.x * v;
        let xx = self.x.square();
        let m = xx.double() + xx;
        let x = m.square() - s.double();
        // At infinity ZZ = 0 makes V*ZZ = 0; no point of order r has y = 0.
        Self {
            x,
            y: m * (s - x) - w * self.y,
            zz: v * self.zz,
            zzz: w * self.zzz,
        }
    }

    /// self += other.
    pub fn add_affine(&mut self, other: &Affine<F>) {
        if other.is_infinity() {
            return;
        }
        if self.is_infinity() {
            *self = (*other).into();
            return;
        }
        let p = other.x * self.zz - self.x;
        let r = other.y * self.zzz - self.y;
        if p.is_zero() {
            *self = if r.is_zero() {
                Self::from(*other).double()
            } else {
                Self::INFINITY
            };
            return;
        }
        let pp = p.square();
        let ppp = p * pp;
        let q = self.x * pp;
        let x = r.square() - ppp - q.double();
        self.y = r * (q - x) - self.y * ppp;
        self.x = x;
        self.zz = self.zz * pp;
        self.zzz = self.zzz * ppp;
    }

    /// self += other.
    pub fn add_xyzz(&mut self, other: &Self) {
        if other.is_infinity() {
            return;
        }
        if self.is_infinity() {
            *self = *other;
            return;
        }
        let u1 = self.x * other.zz;
        let s1 = self.y * other.zzz;
        let p = other.x * self.zz - u1;
        let r = other.y * self.zzz - s1;
        if p.is_zero() {
            *self = if r.is_zero() {
                self.double()
            } else {
                Self::INFINITY
            };
            return;
        }
        let pp = p.square();
        let ppp = p * pp;
        let q = u1 * pp;
        let x = r.square() - ppp - q.double();
        self.y = r * (q - x) - s1 * ppp;
        self.x = x;
        self.zz = self.zz * other.zz * pp;
        self.zzz = self.zzz * other.zzz * ppp;
    }

    /// scalar * self, by double and add. **Not constant time**: who can measure it closely learns bits
    /// of the scalar.
    #[must_use]
    pub fn mul_scalar(&self, scalar: &Scalar) -> Self {
        let mut sum = Self::INFINITY;
        for limb in scalar.limbs().iter().rev() {
            for bit in (0..64).rev() {
                sum = sum.double();
                if (limb >> bit) & 1 == 1 {
                    sum.add_xyzz(self);
                }
            }
        }
        sum
    }

    /// The affine points: one inversion for all of them.
    pub fn normalize_all(points: &[Self]) -> Vec<Affine<F>> {
        let mut inverses: Vec<F> = points.iter().map(|point| point.zzz).collect();
        batch_invert(&mut inverses, &mut Vec::new());
        points
            .iter()
            .zip(&inverses)
            .map(|(point, zzz_inv)| point.scaled(*zzz_inv))
            .collect()
    }

    /// The affine point: one inversion.
    pub fn to_affine(&self) -> Affine<F> {
        self.scaled(self.zzz.inverse().unwrap_or(F::ZERO))
    }

    /// The affine point, given 1/ZZZ, or zero for infinity.
    fn scaled(&self, zzz_inv: F) -> Affine<F> {
        // 1/ZZ = (ZZ/ZZZ)^2, since ZZ^3 = ZZZ^2.
        let zz_inv = (zzz_inv * self.zz).square();
        Affine {
            x: self.x * zz_inv,
            y: self.y * zzz_inv,
        }
    }
}

impl<F: CurveField> From<Affine<F>> for Xyzz<F> {
    #[inline]
    fn from(point: Affine<F>) -> Self {
        if point.is_infinity() {
            Self::INFINITY
        } else {
            Self {
                x: point.x,
                y: point.y,
                zz: F::ONE,
                zzz: F::ONE,
            }
        }
    }
}

/// Equality of the points, whatever their coordinates.
impl<F: CurveField> PartialEq for Xyzz<F> {
    fn eq(&self, other: &Self) -> bool {
        match (self.is_infinity(), other.is_infinity()) {
            (true, true) => true,
            (false, false) => {
                self.x * other.zz == other.x * self.zz && self.y * other.zzz == other.y * self.zzz
            }
            _ => false,
        }
    }
}

impl<F: CurveField> Eq for Xyzz<F> {}
