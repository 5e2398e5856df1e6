//! Pair trees in portable code, with the products of `cuzk-field`.

use cuzk_field::{Affine, CurveField};

use crate::bases::Bases;
use crate::pair_tree::Sums;

/// The scratch of one worker.
#[derive(Default)]
pub(crate) struct Portable<F: CurveField> {
    points: Vec<Affine<F>>,
    denominators: Vec<F>,
    prefixes: Vec<F>,
}

impl<F: CurveField> Sums<F> for Portable<F> {
    fn sum_runs(
        &mut self,
        bases: &dyn Bases<F>,
        signed_indices: &[u32],
        lengths: &mut [u32],
    ) -> Vec<Affine<F>> {
        // Points first, alone in their loop, so that many of these scattered reads are under way at
        // once.
        self.points.clear();
        self.points.extend(
            signed_indices
                .iter()
                .map(|signed| bases.get((signed >> 1) as usize)),
        );
        for (signed, point) in signed_indices.iter().zip(&mut self.points) {
            if signed & 1 == 1 {
                point.y = -point.y;
            }
        }
        while self.points.len() > lengths.len() {
            self.round(lengths);
        }
        self.points.clone()
    }
}

impl<F: CurveField> Portable<F> {
    /// Halves every run: neighbours are added, an odd last point is kept.
    fn round(&mut self, lengths: &mut [u32]) {
        self.denominators.clear();
        self.prefixes.clear();
        let mut product = F::ONE;
        let mut at = 0;
        for length in &*lengths {
            let end = at + *length as usize;
            for pair in self.points[at..end].as_chunks::<2>().0 {
                let denominator = chord_denominator(&pair[0], &pair[1]);
                self.prefixes.push(product);
                product.multiply_by(&denominator);
                self.denominators.push(denominator);
            }
            at = end;
        }
        // No denominator is zero. Each prefix becomes the inverse of its denominator.
        let mut inverse = product.inverse().unwrap_or(F::ONE);
        for (denominator, prefix) in self.denominators.iter().zip(&mut self.prefixes).rev() {
            prefix.multiply_by(&inverse);
            inverse.multiply_by(denominator);
        }
        // In place: a sum is written no later than where its first operand stood.
        let points = &mut self.points;
        let mut inverses = self.prefixes.iter();
        let (mut at, mut out) = (0, 0);
        for length in lengths {
            let end = at + *length as usize;
            while at + 1 < end {
                if let Some(inverse) = inverses.next() {
                    points[out] = chord_sum(&points[at], &points[at + 1], inverse);
                }
                (at, out) = (at + 2, out + 1);
            }
            if at < end {
                points[out] = points[at];
                (at, out) = (at + 1, out + 1);
            }
            *length = length.div_ceil(2);
        }
        points.truncate(out);
    }
}

/// What the slope of the line through two points is divided by; one where there is no slope.
#[inline]
fn chord_denominator<F: CurveField>(p: &Affine<F>, q: &Affine<F>) -> F {
    if p.x != q.x {
        return if p.is_infinity() || q.is_infinity() {
            F::ONE
        } else {
            q.x - p.x
        };
    }
    // Equal x: the same point, or opposite ones. No point of order r has y = 0 but infinity.
    if p.y == q.y && !p.y.is_zero() {
        p.y.double()
    } else {
        F::ONE
    }
}

/// p + q, given the inverse of their [`chord_denominator`].
#[inline]
fn chord_sum<F: CurveField>(p: &Affine<F>, q: &Affine<F>, inverse: &F) -> Affine<F> {
    let mut slope;
    if p.x != q.x {
        if p.is_infinity() {
            return *q;
        }
        if q.is_infinity() {
            return *p;
        }
        slope = q.y - p.y;
    } else if p.y == q.y && !p.y.is_zero() {
        let xx = p.x.square();
        slope = xx.double() + xx;
    } else {
        return Affine::INFINITY;
    }
    slope.multiply_by(inverse);
    let mut x = F::ZERO;
    F::square_into(&mut x, &slope);
    x = x - p.x - q.x;
    let mut y = p.x - x;
    y.multiply_by(&slope);
    Affine { x, y: y - p.y }
}
