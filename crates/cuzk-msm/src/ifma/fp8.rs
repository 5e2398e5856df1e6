//! Eight elements of Fp at a time, one in each 64-bit lane.
//!
//! A value is sum_i limb_i 2^(52 i), eight limbs of 52 bits, and stands for the same number as the
//! six words of an [`Fp`]: Montgomery form with R = 2^384. `vpmadd52` reduces by 2^416, so a product
//! first shifts one factor up by 32 bits: (a 2^32) b / 2^416 = a b / 2^384. Nothing is converted on
//! the way in or out but the width of the limbs.
//!
//! # Ranges
//!
//! Values are kept in ranges, not canonical. "Carried" means every limb in [0, 2^52), as a factor must
//! be; sums and differences of a few carried values have signed limbs until [`Fp8::carried`]. With
//! factors below alpha p and beta p, alpha < 9.8 so that a 2^32 fits 416 bits, a product is below
//! (1 + c sum alpha beta) p, c = p / 2^384 < 0.1016. "Reduced" is what [`Fp8::reduced`] gives: in
//! [0, p + 2^-12 p), carried.

use std::arch::x86_64::*;

use cuzk_field::Fp;
use cuzk_field::constants::{FP_INV, FP_MODULUS, FP_R};

pub(super) const LIMBS: usize = 8;
const LIMB_BITS: u32 = 52;
pub(super) const LIMB_MASK: u64 = (1 << LIMB_BITS) - 1;

/// 416 - 384, see above.
const SHIFT: u32 = 32;

/// Six words of 64 bits as eight of 52.
const fn split(words: &[u64; 6]) -> [u64; LIMBS] {
    let mut limbs = [0; LIMBS];
    let mut i = 0;
    while i < LIMBS {
        let bit = LIMB_BITS as usize * i;
        let (word, shift) = (bit / 64, bit % 64);
        let mut limb = words[word] >> shift;
        if shift > 12 && word < 5 {
            limb |= words[word + 1] << (64 - shift);
        }
        limbs[i] = limb & LIMB_MASK;
        i += 1;
    }
    limbs
}

/// p.
pub(super) const P: [u64; LIMBS] = split(&FP_MODULUS);

/// k p for k = 0 to 4, carried.
pub(super) const MULTIPLES: [[u64; LIMBS]; 5] = {
    let mut multiples = [[0; LIMBS]; 5];
    let mut k = 0;
    while k < 5 {
        let mut carry = 0;
        let mut i = 0;
        while i < LIMBS {
            let limb = P[i] * k as u64 + carry;
            multiples[k][i] = limb & LIMB_MASK;
            carry = limb >> LIMB_BITS;
            i += 1;
        }
        k += 1;
    }
    multiples
};

/// -1/p mod 2^52.
pub(super) const INV: u64 = FP_INV & LIMB_MASK;

/// ceil(p / 2^364): the top limb of p, rounded up.
pub(super) const P_TOP: u64 = P[LIMBS - 1] + 1;

/// ceil(2^52 / P_TOP): the high half of a product with it divides by `P_TOP`.
pub(super) const P_TOP_INVERSE: u64 = (1 << LIMB_BITS) / P_TOP + 1;

/// `REDUCTIONS[i][k]` is limb i of (3 - k) p, not carried.
pub(super) const REDUCTIONS: [[i64; 8]; LIMBS] = {
    let mut rows = [[0; 8]; LIMBS];
    let mut i = 0;
    while i < LIMBS {
        let mut k = 0;
        while k < 8 {
            rows[i][k] = (3 - k as i64) * P[i] as i64;
            k += 1;
        }
        i += 1;
    }
    rows
};

/// Eight field elements: vector i holds limb i of each.
#[derive(Clone, Copy)]
pub(super) struct Fp8(pub(super) [__m512i; LIMBS]);

#[inline]
#[target_feature(enable = "avx512f")]
fn splat(value: u64) -> __m512i {
    _mm512_set1_epi64(value as i64)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn vector(lanes: &[i64; 8]) -> __m512i {
    // SAFETY: 64 bytes are read from an array of 64 bytes; no alignment is asked for.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}

/// The row of an element: its eight limbs in one vector.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) fn row_of(value: &Fp) -> __m512i {
    // SAFETY: the mask selects the six words that the array has.
    let words =
        unsafe { _mm512_maskz_loadu_epi64(0b11_1111, value.montgomery_limbs().as_ptr().cast()) };
    // Limb i starts at bit 52 i: byte 13 i / 2, and four bits further where i is odd.
    const BYTES: [i64; 8] = {
        let mut words = [0; 8];
        let mut i = 0;
        while i < 8 {
            // Bytes s, s + 1, ... s + 7.
            words[i] = 0x0706_0504_0302_0100 + 0x0101_0101_0101_0101 * (13 * i as i64 / 2);
            i += 1;
        }
        words
    };
    let spread = _mm512_permutexvar_epi8(vector(&BYTES), words);
    let limbs = _mm512_srlv_epi64(spread, vector(&[0, 4, 0, 4, 0, 4, 0, 4]));
    _mm512_and_si512(limbs, splat(LIMB_MASK))
}

/// p - value by limbs, signed; zero stays zero. `row` is canonical.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn negated_row(row: __m512i) -> __m512i {
    let nonzero = _mm512_test_epi64_mask(row, row);
    if nonzero == 0 {
        return row;
    }
    const P_ROW: [i64; 8] = {
        let mut row = [0; 8];
        let mut i = 0;
        while i < 8 {
            row[i] = P[i] as i64;
            i += 1;
        }
        row
    };
    _mm512_sub_epi64(vector(&P_ROW), row)
}

/// The element of a row with a value in [0, 2p), limbs signed.
#[target_feature(enable = "avx512f")]
pub(super) fn element_of(row: __m512i) -> Fp {
    let mut limbs = [0i64; LIMBS];
    // SAFETY: 64 bytes are written to an array of 64 bytes; no alignment is asked for.
    unsafe { _mm512_storeu_si512(limbs.as_mut_ptr().cast(), row) };
    element_of_limbs(limbs)
}

/// The element with a value in [0, 2p).
pub(super) fn element_of_limbs(limbs: [i64; LIMBS]) -> Fp {
    let mut words = [0u64; 6];
    let mut carry = 0i64;
    for (i, limb) in limbs.iter().enumerate() {
        let limb = limb + carry;
        carry = limb >> LIMB_BITS;
        let limb = limb as u64 & LIMB_MASK;
        let bit = LIMB_BITS as usize * i;
        let (word, shift) = (bit / 64, bit % 64);
        words[word] |= limb << shift;
        if shift > 12 && word < 5 {
            words[word + 1] |= limb >> (64 - shift);
        }
    }
    Fp::from_montgomery_limbs(words).unwrap_or_else(|| {
        let mut borrow = false;
        for (word, modulus) in words.iter_mut().zip(&FP_MODULUS) {
            let (difference, b1) = word.overflowing_sub(*modulus);
            let (difference, b2) = difference.overflowing_sub(u64::from(borrow));
            (*word, borrow) = (difference, b1 | b2);
        }
        Fp::from_montgomery_limbs(words).unwrap_or_default()
    })
}

/// Rows to vectors of limbs, and back.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transpose(r: &[__m512i; 8]) -> [__m512i; 8] {
    // Each of the first eight holds, in 128-bit part k, the words 2k (lo) or 2k + 1 (hi) of two rows.
    let lo = [
        _mm512_unpacklo_epi64(r[0], r[1]),
        _mm512_unpacklo_epi64(r[2], r[3]),
        _mm512_unpacklo_epi64(r[4], r[5]),
        _mm512_unpacklo_epi64(r[6], r[7]),
    ];
    let hi = [
        _mm512_unpackhi_epi64(r[0], r[1]),
        _mm512_unpackhi_epi64(r[2], r[3]),
        _mm512_unpackhi_epi64(r[4], r[5]),
        _mm512_unpackhi_epi64(r[6], r[7]),
    ];
    let even = transpose_parts(&lo);
    let odd = transpose_parts(&hi);
    [
        even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3],
    ]
}

/// The same for 128-bit parts, four by four.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_parts(r: &[__m512i; 4]) -> [__m512i; 4] {
    let low = [
        _mm512_shuffle_i64x2::<0x44>(r[0], r[1]),
        _mm512_shuffle_i64x2::<0x44>(r[2], r[3]),
    ];
    let high = [
        _mm512_shuffle_i64x2::<0xee>(r[0], r[1]),
        _mm512_shuffle_i64x2::<0xee>(r[2], r[3]),
    ];
    [
        _mm512_shuffle_i64x2::<0x88>(low[0], low[1]),
        _mm512_shuffle_i64x2::<0xdd>(low[0], low[1]),
        _mm512_shuffle_i64x2::<0x88>(high[0], high[1]),
        _mm512_shuffle_i64x2::<0xdd>(high[0], high[1]),
    ]
}

/// t += a 2^32 b, by columns.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn accumulate(t: &mut [__m512i; 2 * LIMBS], a: &Fp8, b: &Fp8) {
    let a = a.shifted();
    for i in 0..LIMBS {
        for j in 0..LIMBS {
            t[i + j] = _mm512_madd52lo_epu64(t[i + j], a[i], b.0[j]);
        }
        for j in 0..LIMBS {
            t[i + j + 1] = _mm512_madd52hi_epu64(t[i + j + 1], a[i], b.0[j]);
        }
    }
}

/// `out` = (sum_n a_n b_n) / 2^384, of carried factors; N is 1 or 2. A column holds at most 16 N + 17 halves
/// below 2^52, far from 2^64. The result is carried.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn sum_of_products<const N: usize>(out: &mut Fp8, a: [&Fp8; N], b: [&Fp8; N]) {
    let zero = _mm512_setzero_si512();
    let mut t = [zero; 2 * LIMBS];
    accumulate(&mut t, a[0], b[0]);
    if N == 2 {
        accumulate(&mut t, a[1], b[1]);
    }
    let inv = splat(INV);
    for i in 0..LIMBS {
        let q = _mm512_madd52lo_epu64(zero, t[i], inv);
        // The next quotient waits for column i + 1, so what that takes is added by the shortest way.
        let cancelled = _mm512_madd52lo_epu64(t[i], q, splat(P[0]));
        let high = _mm512_madd52hi_epu64(zero, q, splat(P[0]));
        t[i + 1] = _mm512_madd52lo_epu64(t[i + 1], q, splat(P[1]));
        let carry = _mm512_add_epi64(_mm512_srli_epi64::<LIMB_BITS>(cancelled), high);
        t[i + 1] = _mm512_add_epi64(t[i + 1], carry);
        for j in 1..LIMBS {
            t[i + j + 1] = _mm512_madd52hi_epu64(t[i + j + 1], q, splat(P[j]));
        }
        for j in 2..LIMBS {
            t[i + j] = _mm512_madd52lo_epu64(t[i + j], q, splat(P[j]));
        }
    }
    *out = Fp8([t[8], t[9], t[10], t[11], t[12], t[13], t[14], t[15]]).carried();
}

impl Fp8 {
    /// The same value in every lane.
    #[target_feature(enable = "avx512f")]
    pub(super) fn broadcast(value: &Fp) -> Self {
        let limbs = split(value.montgomery_limbs());
        let mut vectors = [_mm512_setzero_si512(); LIMBS];
        for (vector, limb) in vectors.iter_mut().zip(limbs) {
            *vector = splat(limb);
        }
        Self(vectors)
    }

    /// Zero.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn zero() -> Self {
        Self([_mm512_setzero_si512(); LIMBS])
    }

    /// One.
    #[target_feature(enable = "avx512f")]
    pub(super) fn one() -> Self {
        const ONE: [u64; LIMBS] = split(&FP_R);
        let mut vectors = [_mm512_setzero_si512(); LIMBS];
        for (vector, limb) in vectors.iter_mut().zip(ONE) {
            *vector = splat(limb);
        }
        Self(vectors)
    }

    /// The value in lane 0, which is in [0, 2p).
    #[target_feature(enable = "avx512f")]
    pub(super) fn first(&self) -> Fp {
        let mut limbs = [0; LIMBS];
        for (limb, vector) in limbs.iter_mut().zip(&self.0) {
            *limb = _mm_cvtsi128_si64(_mm512_castsi512_si128(*vector));
        }
        element_of_limbs(limbs)
    }

    /// Limbs of self 2^32, the bits beyond 52 of a limb to be ignored.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn shifted(&self) -> [__m512i; LIMBS] {
        let a = &self.0;
        let mut shifted = [_mm512_slli_epi64::<SHIFT>(a[0]); LIMBS];
        for i in 1..LIMBS {
            shifted[i] = _mm512_or_si512(
                _mm512_slli_epi64::<SHIFT>(a[i]),
                _mm512_srli_epi64::<{ LIMB_BITS - SHIFT }>(a[i - 1]),
            );
        }
        shifted
    }

    /// Limbs in [0, 2^52), of a value that is not negative.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn carried(mut self) -> Self {
        let mask = splat(LIMB_MASK);
        for i in 0..LIMBS - 1 {
            let carry = _mm512_srai_epi64::<LIMB_BITS>(self.0[i]);
            self.0[i] = _mm512_and_si512(self.0[i], mask);
            self.0[i + 1] = _mm512_add_epi64(self.0[i + 1], carry);
        }
        self
    }

    /// self + other, not carried.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut sum = *self;
        for i in 0..LIMBS {
            sum.0[i] = _mm512_add_epi64(self.0[i], other.0[i]);
        }
        sum
    }

    /// self - other, not carried.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn minus(&self, other: &Self) -> Self {
        let mut difference = *self;
        for i in 0..LIMBS {
            difference.0[i] = _mm512_sub_epi64(self.0[i], other.0[i]);
        }
        difference
    }

    /// self - other + k p, carried. The value must not be negative.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn minus_plus_p<const K: usize>(&self, other: &Self) -> Self {
        let mut difference = *self;
        for i in 0..LIMBS {
            let raised = _mm512_add_epi64(self.0[i], splat(MULTIPLES[K][i]));
            difference.0[i] = _mm512_sub_epi64(raised, other.0[i]);
        }
        difference.carried()
    }

    /// k p - self, carried. The value must not be negative.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn negated<const K: usize>(&self) -> Self {
        let mut negated = *self;
        for i in 0..LIMBS {
            negated.0[i] = _mm512_sub_epi64(splat(MULTIPLES[K][i]), self.0[i]);
        }
        negated.carried()
    }

    /// A value in (-2.01 p, 5 p) with limbs in (-2^54, 2^54), reduced.
    ///
    /// With top limb t the value is in ((t - 5) 2^364, (t + 5) 2^364). k = floor((t - 8) / `P_TOP`),
    /// taken of t - 8 + 3 `P_TOP` > 0, makes k p at most the value: k p <= (t - 8 + 3) 2^364, the 3
    /// for negative k, as p > (`P_TOP` - 1) 2^364. And the value less k p is below p + 18 2^364.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn reduced(mut self) -> Self {
        let top = _mm512_add_epi64(self.0[LIMBS - 1], splat(3 * P_TOP - 8));
        let k = _mm512_madd52hi_epu64(_mm512_setzero_si512(), top, splat(P_TOP_INVERSE));
        for i in 0..LIMBS {
            let multiple = _mm512_permutexvar_epi64(k, vector(&REDUCTIONS[i]));
            self.0[i] = _mm512_add_epi64(self.0[i], multiple);
        }
        self.carried()
    }

    /// Lanes where the lowest limb is that of p, 2p or 3p: all that are 0 modulo p, of carried values
    /// above 0 and below 4p, and hardly another.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn may_vanish(&self) -> __mmask8 {
        _mm512_cmpeq_epi64_mask(self.0[0], splat(MULTIPLES[1][0]))
            | _mm512_cmpeq_epi64_mask(self.0[0], splat(MULTIPLES[2][0]))
            | _mm512_cmpeq_epi64_mask(self.0[0], splat(MULTIPLES[3][0]))
    }

    /// Lanes that are 0 modulo p, of carried values in [0, 5p).
    #[target_feature(enable = "avx512f")]
    pub(super) fn vanishes(&self) -> __mmask8 {
        let mut vanishing = 0;
        for multiple in &MULTIPLES {
            let mut equal = 0xff;
            for (limb, expected) in self.0.iter().zip(multiple) {
                equal &= _mm512_cmpeq_epi64_mask(*limb, splat(*expected));
            }
            vanishing |= equal;
        }
        vanishing
    }

    /// `other` in the lanes of the mask.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn replaced(mut self, lanes: __mmask8, other: &Self) -> Self {
        for i in 0..LIMBS {
            self.0[i] = _mm512_mask_mov_epi64(self.0[i], lanes, other.0[i]);
        }
        self
    }

    /// Lane i + K modulo 8 in lane i.
    #[target_feature(enable = "avx512f")]
    pub(super) fn rotated<const K: i32>(&self) -> Self {
        let mut rotated = *self;
        for i in 0..LIMBS {
            rotated.0[i] = _mm512_alignr_epi64::<K>(self.0[i], self.0[i]);
        }
        rotated
    }
}
