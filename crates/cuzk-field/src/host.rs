//! Host arithmetic through `blst`: with `plain`, what of this crate has `unsafe` in it.
//!
//! blst's functions are total on canonical operands: no error, no allocation. Products, squares and
//! inversions of field elements take the same time for all values; what this crate builds on them
//! (points, decoding, pairings of public data) does not. Feature `portable` of that crate picks the ADX
//! code at run time, so a binary built on one machine runs on another; `no-threads` keeps its thread
//! pool out.
#![allow(unsafe_code)]

use crate::curve::{G1Affine, G2Affine};
use crate::fp::Fp;
use crate::fp2::Fp2;
use blst::{blst_fp, blst_fp2, blst_p1_affine, blst_p2_affine};

// The casts below rely on these: blst's types are `repr(C)` arrays of 64-bit limbs in Montgomery
// form with the same radix, in the same order.
const _: () = {
    assert!(size_of::<Fp>() == size_of::<blst_fp>() && align_of::<Fp>() >= align_of::<blst_fp>());
    assert!(size_of::<Fp2>() == size_of::<blst_fp2>());
    assert!(size_of::<G1Affine>() == size_of::<blst_p1_affine>());
    assert!(size_of::<G2Affine>() == size_of::<blst_p2_affine>());
};

#[inline]
fn fp(x: &Fp) -> *const blst_fp {
    std::ptr::from_ref(x).cast()
}

#[inline]
fn fp2(x: &Fp2) -> *const blst_fp2 {
    std::ptr::from_ref(x).cast()
}

// Results are written where the caller wants them. A result that is copied right after the call costs
// a stall: blst stores words of 8 bytes, and a copy loads 16, which no store buffer forwards
// (docs/measurements.md, CPU proofs). For the same reason the by-value forms are not inlined:
// a called function writes straight into its caller's variable.

macro_rules! binary {
    ($into:ident, $by_value:ident, $t:ident, $ptr:ident, $raw:ident) => {
        #[inline]
        pub(crate) fn $into(out: &mut $t, a: &$t, b: &$t) {
            // SAFETY: all three are valid, of blst's layout (asserted above); canonical operands give
            // a canonical result.
            unsafe { blst::$raw(std::ptr::from_mut(out).cast(), $ptr(a), $ptr(b)) };
        }

        #[inline(never)]
        pub(crate) fn $by_value(a: &$t, b: &$t) -> $t {
            let mut out = $t::default();
            $into(&mut out, a, b);
            out
        }
    };
}

macro_rules! in_place {
    ($name:ident, $t:ident, $ptr:ident, $raw:ident) => {
        #[inline]
        pub(crate) fn $name(a: &mut $t, b: &$t) {
            let out = std::ptr::from_mut(a);
            // SAFETY: as above; blst's products may overwrite an operand, which its own code relies
            // on throughout.
            unsafe { blst::$raw(out.cast(), out.cast_const().cast(), $ptr(b)) };
        }
    };
}

macro_rules! unary {
    ($into:ident, $by_value:ident, $t:ident, $ptr:ident, $raw:ident) => {
        #[inline]
        pub(crate) fn $into(out: &mut $t, a: &$t) {
            // SAFETY: as for the binary operations.
            unsafe { blst::$raw(std::ptr::from_mut(out).cast(), $ptr(a)) };
        }

        #[inline(never)]
        pub(crate) fn $by_value(a: &$t) -> $t {
            let mut out = $t::default();
            $into(&mut out, a);
            out
        }
    };
}

binary!(fp_mul_into, fp_mul, Fp, fp, blst_fp_mul);
in_place!(fp_mul_assign, Fp, fp, blst_fp_mul);
unary!(fp_sqr_into, fp_sqr, Fp, fp, blst_fp_sqr);
unary!(fp_inverse_into, fp_inverse, Fp, fp, blst_fp_inverse);

binary!(fp2_mul_into, fp2_mul, Fp2, fp2, blst_fp2_mul);
in_place!(fp2_mul_assign, Fp2, fp2, blst_fp2_mul);
unary!(fp2_sqr_into, fp2_sqr, Fp2, fp2, blst_fp2_sqr);
unary!(fp2_inverse_into, fp2_inverse, Fp2, fp2, blst_fp2_inverse);

/// Whether a point of the curve lies in the subgroup of order r. Infinity does.
pub(crate) fn g1_in_subgroup(point: &G1Affine) -> bool {
    // SAFETY: valid pointer of blst's layout; blst too writes infinity as (0, 0).
    unsafe { blst::blst_p1_affine_in_g1(std::ptr::from_ref(point).cast()) }
}

/// Whether a point of the twist lies in the subgroup of order r. Infinity does.
pub(crate) fn g2_in_subgroup(point: &G2Affine) -> bool {
    // SAFETY: as for G1.
    unsafe { blst::blst_p2_affine_in_g2(std::ptr::from_ref(point).cast()) }
}

/// blst writes the point and reports "not in group" where x = 0: on the curve, which is all that
/// decoding asks.
fn uncompressed<T>(point: T, status: blst::BLST_ERROR) -> Result<T, blst::BLST_ERROR> {
    match status {
        blst::BLST_ERROR::BLST_SUCCESS | blst::BLST_ERROR::BLST_POINT_NOT_IN_GROUP => Ok(point),
        error => Err(error),
    }
}

/// Decompresses 48 bytes in the Zcash encoding; the flags have been checked by the caller.
pub(crate) fn g1_uncompress(bytes: &[u8; 48]) -> Result<G1Affine, blst::BLST_ERROR> {
    let mut out = G1Affine::default();
    // SAFETY: blst reads 48 bytes and writes one affine point of its layout.
    let status = unsafe { blst::blst_p1_uncompress((&raw mut out).cast(), bytes.as_ptr()) };
    uncompressed(out, status)
}

/// Decompresses 96 bytes in the Zcash encoding; the flags have been checked by the caller.
pub(crate) fn g2_uncompress(bytes: &[u8; 96]) -> Result<G2Affine, blst::BLST_ERROR> {
    let mut out = G2Affine::default();
    // SAFETY: blst reads 96 bytes and writes one affine point of its layout.
    let status = unsafe { blst::blst_p2_uncompress((&raw mut out).cast(), bytes.as_ptr()) };
    uncompressed(out, status)
}

fn as_blst(p: &G1Affine, q: &G2Affine) -> (blst_p1_affine, blst_p2_affine) {
    let fp = |x: &Fp| blst_fp { l: x.0 };
    let fp2 = |x: &Fp2| blst_fp2 {
        fp: [fp(&x.c0), fp(&x.c1)],
    };
    let p = blst_p1_affine {
        x: fp(&p.x),
        y: fp(&p.y),
    };
    let q = blst_p2_affine {
        x: fp2(&q.x),
        y: fp2(&q.y),
    };
    (p, q)
}

/// A product of pairings e(p, q) before the final exponentiation, so that its parts can be computed apart, and kept.
///
/// All points must be on their curves and in their subgroups. Pairs with a point at infinity contribute one.
#[derive(Clone, Copy, Debug)]
pub struct PairingProduct(blst::blst_fp12);

impl PairingProduct {
    /// e(p, q).
    pub fn of(p: &G1Affine, q: &G2Affine) -> Self {
        if p.is_infinity() || q.is_infinity() {
            return Self(blst::blst_fp12::default());
        }
        let (p, q) = as_blst(p, q);
        Self(blst::blst_fp12::miller_loop(&q, &p))
    }

    /// The product of both.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }

    /// Whether it is one.
    pub fn is_one(&self) -> bool {
        self.0.final_exp() == blst::blst_fp12::default()
    }
}

/// Whether the product of e(p, q) over all pairs is one. Pairs with a point at infinity contribute one.
///
/// All points must be on their curves and in their subgroups.
pub fn pairing_product_is_one(pairs: &[(G1Affine, G2Affine)]) -> bool {
    let finite = pairs
        .iter()
        .filter(|(p, q)| !p.is_infinity() && !q.is_infinity());
    let (ps, qs): (Vec<_>, Vec<_>) = finite.map(|(p, q)| as_blst(p, q)).unzip();
    if ps.is_empty() {
        return true;
    }
    PairingProduct(blst::blst_fp12::miller_loop_n(&qs, &ps)).is_one()
}
