//! A block of points under pairwise addition, sixteen pairs at a time.
//!
//! Coordinates lie in rows, one vector of eight limbs each, reduced; y may have signed limbs. Infinity
//! is all zero, and nothing else is: no point of order r has x = 0.
//!
//! Ranges, as multiples of p, in the worse case of Fp2 and with c < 0.1016: denominators and
//! numerators are below 3.001; prefixes and inverses of products below 3.3, the fixed point of
//! 1 + c (3.001 x + 4 * 3.001); inverses of denominators below 1 + c (3.3^2 + 4 * 3.3) < 3.5; slopes
//! below 1 + c (3.5 + 4) 3.001 < 3.3; their squares below 1 + c 5.4^2 < 4; and slope (x - x3) below
//! 1 + c (3.3 + 4) 3.001 < 3.3. So all factors are below 4 and x3, y3 are in reach of `reduced`.

use std::arch::x86_64::*;

use cuzk_field::{Affine, CurveField};

use super::fp8::{Fp8, element_of, negated_row, row_of, transpose};
use super::lanes::Lanes;
use crate::bases::Bases;

/// Vectors worked on together: a product waits for its own carries, two are done at the same time.
const GROUPS: usize = 2;

/// Pairs in as many vectors.
const BUNDLE: usize = 8 * GROUPS;

/// Points asked for before they are needed: they lie scattered, and each is a few instructions' work.
const PREFETCH_DISTANCE: usize = 16;

/// Asks for the cache lines of a point.
#[inline]
fn prefetch<F>(point: &Affine<F>) {
    let address = std::ptr::from_ref(point).cast::<i8>();
    for line in (0..size_of::<Affine<F>>()).step_by(64) {
        // SAFETY: the address is inside the point; and a prefetch does not fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.add(line)) };
    }
}

/// The scratch of one worker.
pub(super) struct Tree<const D: usize> {
    /// (points, 2 D): the coefficients of x, then those of y.
    rows: Vec<__m512i>,
    /// Where the points of each run are that are left, run after run.
    live: Vec<u32>,
    /// First and second operands; sums take the place of the first.
    pairs: Vec<[u32; 2]>,
    /// (pairs / 8), as are the others, or longer: what was used by a larger round stays.
    denominators: Vec<Lanes<D>>,
    /// One, and the products of the denominators GROUPS, 2 GROUPS, ... vectors before; GROUPS more.
    prefixes: Vec<Lanes<D>>,
    exceptions: Vec<Exceptions>,
}

/// Lanes whose sums are not those of the chord.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Exceptions {
    /// Both operands are the same point.
    double: __mmask8,
    /// The sum is infinity.
    cancel: __mmask8,
    /// The second operand is infinity.
    first: __mmask8,
    /// The first operand is infinity.
    second: __mmask8,
}

impl<const D: usize> Default for Tree<D> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            live: Vec::new(),
            pairs: Vec::new(),
            denominators: Vec::new(),
            prefixes: Vec::new(),
            exceptions: Vec::new(),
        }
    }
}

impl<const D: usize> Tree<D> {
    /// As [`crate::pair_tree::Sums::sum_runs`].
    #[target_feature(enable = "avx512f,avx512bw,avx512ifma,avx512vbmi")]
    pub(super) fn sum_runs<F: CurveField>(
        &mut self,
        bases: &dyn Bases<F>,
        signed_indices: &[u32],
        lengths: &mut [u32],
    ) -> Vec<Affine<F>> {
        self.rows.clear();
        self.rows.reserve(2 * D * signed_indices.len());
        if let Some(points) = bases.as_points() {
            for (i, signed) in signed_indices.iter().enumerate() {
                if let Some(ahead) = signed_indices.get(i + PREFETCH_DISTANCE) {
                    prefetch(&points[(ahead >> 1) as usize]);
                }
                self.enter(&points[(signed >> 1) as usize], signed & 1 == 1);
            }
        } else {
            for signed in signed_indices {
                self.enter(&bases.get((signed >> 1) as usize), signed & 1 == 1);
            }
        }
        self.live.clear();
        self.live.extend(0..signed_indices.len() as u32);
        while self.pair_neighbours(lengths) {
            self.add_pairs::<F>();
        }
        let mut sums = Vec::with_capacity(lengths.len());
        for at in &self.live {
            let rows = &self.rows[2 * D * *at as usize..][..2 * D];
            let mut sum = Affine::<F>::INFINITY;
            for i in 0..D {
                *sum.x.coefficient_mut(i) = element_of(rows[i]);
                *sum.y.coefficient_mut(i) = element_of(rows[D + i]);
            }
            sums.push(sum);
        }
        sums
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn enter<F: CurveField>(&mut self, point: &Affine<F>, is_negated: bool) {
        for i in 0..D {
            self.rows.push(row_of(point.x.coefficient(i)));
        }
        for i in 0..D {
            let row = row_of(point.y.coefficient(i));
            self.rows
                .push(if is_negated { negated_row(row) } else { row });
        }
    }

    /// Pairs up the neighbours in every run, whose lengths are halved: an odd last point stays. Whether
    /// there are any.
    fn pair_neighbours(&mut self, lengths: &mut [u32]) -> bool {
        self.pairs.clear();
        let (mut at, mut out) = (0, 0);
        for length in lengths {
            let end = at + *length as usize;
            while at < end {
                let first = self.live[at];
                if at + 1 < end {
                    self.pairs.push([first, self.live[at + 1]]);
                }
                self.live[out] = first;
                (at, out) = (at + 2, out + 1);
            }
            at = end;
            *length = length.div_ceil(2);
        }
        self.live.truncate(out);
        // The last bundle is filled up with its last pair: the same sum is written again.
        if let Some(last) = self.pairs.last().copied() {
            let full = self.pairs.len().next_multiple_of(BUNDLE);
            self.pairs.resize(full, last);
        }
        !self.pairs.is_empty()
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add_pairs<F: CurveField>(&mut self) {
        let (groups, _) = self.pairs.as_chunks::<8>();
        let (bundles, _) = groups.as_chunks::<GROUPS>();
        if self.denominators.len() < groups.len() {
            self.denominators.resize(groups.len(), Lanes::one());
            self.prefixes.resize(groups.len() + GROUPS, Lanes::one());
        }
        self.exceptions.clear();
        for (at, pairs) in groups.iter().enumerate() {
            let x1 = gather::<D>(&self.rows, pairs, 0, 0);
            let x2 = gather::<D>(&self.rows, pairs, 1, 0);
            let denominator = &mut self.denominators[at];
            *denominator = x2.minus_plus_2p(&x1);
            let mut exceptions = Exceptions::default();
            if denominator.may_vanish() | x1.may_be_all_zero() | x2.may_be_all_zero() != 0 {
                let y1 = gather::<D>(&self.rows, pairs, 0, D);
                let y2 = gather::<D>(&self.rows, pairs, 1, D);
                exceptions = Exceptions::of(denominator, &x1, &y1, &x2, &y2);
                *denominator = denominator
                    .replaced(exceptions.double, &y1.plus(&y1))
                    .replaced(exceptions.without_slope(), &Lanes::one());
            }
            self.exceptions.push(exceptions);
            let (before, after) = self.prefixes.split_at_mut(at + GROUPS);
            Lanes::product_into(&mut after[0], &before[at], denominator);
        }
        let products = &self.prefixes[groups.len()..];
        let mut inverses = inverses_of::<D, F>(&products[0], &products[1]);
        let [mut next, mut slopes, mut x3, mut y1, mut y3] = [inverses; 5];
        for (b, bundle) in bundles.iter().enumerate().rev() {
            let at = b * GROUPS;
            for g in 0..GROUPS {
                Lanes::product_into(&mut x3[g], &self.prefixes[at + g], &inverses[g]);
            }
            for g in 0..GROUPS {
                Lanes::product_into(&mut next[g], &inverses[g], &self.denominators[at + g]);
            }
            std::mem::swap(&mut inverses, &mut next);
            for g in 0..GROUPS {
                y1[g] = gather::<D>(&self.rows, &bundle[g], 0, D);
                let y2 = gather::<D>(&self.rows, &bundle[g], 1, D);
                let mut numerator = y2.minus_plus_2p(&y1[g]);
                let double = self.exceptions[at + g].double;
                if double != 0 {
                    let x1 = gather::<D>(&self.rows, &bundle[g], 0, 0);
                    let xx = x1.times(&x1);
                    numerator = numerator.replaced(double, &xx.plus(&xx).plus(&xx));
                }
                Lanes::product_into(&mut slopes[g], &x3[g], &numerator);
            }
            for g in 0..GROUPS {
                Lanes::square_into(&mut x3[g], &slopes[g]);
            }
            for g in 0..GROUPS {
                let x1 = gather::<D>(&self.rows, &bundle[g], 0, 0);
                let x2 = gather::<D>(&self.rows, &bundle[g], 1, 0);
                x3[g] = x3[g].minus(&x1).minus(&x2).reduced();
                let run = x1.minus_plus_2p(&x3[g]);
                Lanes::product_into(&mut y3[g], &slopes[g], &run);
            }
            for g in 0..GROUPS {
                y3[g] = y3[g].minus(&y1[g]).reduced();
                let exceptions = self.exceptions[at + g];
                if exceptions.without_slope() != 0 {
                    for (sum, offset) in [(&mut x3[g], 0), (&mut y3[g], D)] {
                        let first = gather::<D>(&self.rows, &bundle[g], 0, offset);
                        let second = gather::<D>(&self.rows, &bundle[g], 1, offset);
                        *sum = sum
                            .replaced(exceptions.first, &first)
                            .replaced(exceptions.second, &second)
                            .replaced(exceptions.cancel, &Lanes([Fp8::zero(); D]));
                    }
                }
            }
            for g in 0..GROUPS {
                scatter::<D>(&mut self.rows, &bundle[g], 0, &x3[g]);
                scatter::<D>(&mut self.rows, &bundle[g], D, &y3[g]);
            }
        }
    }
}

impl Exceptions {
    /// Of reduced coordinates and x2 - x1 + 2p.
    #[target_feature(enable = "avx512f")]
    fn of<const D: usize>(
        denominator: &Lanes<D>,
        x1: &Lanes<D>,
        y1: &Lanes<D>,
        x2: &Lanes<D>,
        y2: &Lanes<D>,
    ) -> Self {
        let infinite = |x: &Lanes<D>, y: &Lanes<D>| x.is_all_zero() & y.is_all_zero();
        let (infinite1, infinite2) = (infinite(x1, y1), infinite(x2, y2));
        let same_x = denominator.vanishes();
        let same_y = y2.minus_plus_2p(y1).vanishes();
        // Not 2 infinity; and a y of zero would be its own opposite.
        let y_is_zero = y1.minus_plus_2p(&Lanes([Fp8::zero(); D])).vanishes();
        let double = same_x & same_y & !y_is_zero;
        Self {
            double,
            cancel: same_x & !double,
            first: !same_x & infinite2,
            second: !same_x & infinite1,
        }
    }

    /// Lanes with neither chord nor tangent.
    fn without_slope(self) -> __mmask8 {
        self.cancel | self.first | self.second
    }
}

/// The inverses of the two products of each lane, by one inversion.
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverses_of<const D: usize, F: CurveField>(a: &Lanes<D>, b: &Lanes<D>) -> [Lanes<D>; GROUPS] {
    let (a, b) = (a.reduced(), b.reduced());
    // Lane i of `of2` is a product of two lanes, and so on; all lanes of `of16` are the whole product.
    let of2 = a.times(&b);
    let of4 = of2.times(&of2.rotated::<4>());
    let of8 = of4.times(&of4.rotated::<2>());
    let of16 = of8.times(&of8.rotated::<1>());
    // No denominator is zero.
    let inverse: F = of16.first::<F>().inverse().unwrap_or(F::ONE);
    let inverse = Lanes::<D>::broadcast(&inverse)
        .times(&of8.rotated::<1>())
        .times(&of4.rotated::<2>())
        .times(&of2.rotated::<4>());
    [inverse.times(&b), inverse.times(&a)]
}

/// A coordinate of eight operands: x at offset 0, y at offset D.
#[inline]
#[target_feature(enable = "avx512f")]
fn gather<const D: usize>(
    rows: &[__m512i],
    pairs: &[[u32; 2]; 8],
    operand: usize,
    offset: usize,
) -> Lanes<D> {
    let mut coordinate = [Fp8::zero(); D];
    for (i, coefficient) in coordinate.iter_mut().enumerate() {
        let mut gathered = [_mm512_setzero_si512(); 8];
        for lane in 0..8 {
            gathered[lane] = rows[2 * D * pairs[lane][operand] as usize + offset + i];
        }
        *coefficient = Fp8(transpose(&gathered));
    }
    Lanes(coordinate)
}

/// Writes a coordinate of eight sums.
#[inline]
#[target_feature(enable = "avx512f")]
fn scatter<const D: usize>(
    rows: &mut [__m512i],
    pairs: &[[u32; 2]; 8],
    offset: usize,
    coordinate: &Lanes<D>,
) {
    for (i, coefficient) in coordinate.0.iter().enumerate() {
        let transposed = transpose(&coefficient.0);
        for lane in 0..8 {
            rows[2 * D * pairs[lane][0] as usize + offset + i] = transposed[lane];
        }
    }
}
