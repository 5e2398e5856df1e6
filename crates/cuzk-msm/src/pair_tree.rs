//! Batch-affine sums: rounds of pairwise additions that share one inversion.

use cuzk_field::{Affine, CurveField, Xyzz};

use crate::bases::Bases;

/// Terms reduced together. 2048 G1 points take 192 KiB, so that a block and its scratch stay in a
/// core's second-level cache, and the inversion of a round is a few per cent of its additions.
pub(crate) const BLOCK_TERMS: usize = 2048;

/// The scratch of one worker.
#[derive(Default)]
pub(crate) struct PairTree<F: CurveField> {
    points: Vec<Affine<F>>,
    segments: Vec<Segment>,
    denominators: Vec<F>,
    prefixes: Vec<F>,
}

/// A run of points with one bucket.
#[derive(Clone, Copy)]
struct Segment {
    bucket: u32,
    len: u32,
}

impl<F: CurveField> PairTree<F> {
    /// Sums runs of terms. `signed_indices` are as in [`crate::terms::Terms`]; `bucket_of(i)` is the
    /// bucket of term i, equal ones adjacent. Returns one point per run, in order.
    pub(crate) fn sum_runs(
        &mut self,
        bases: &dyn Bases<F>,
        signed_indices: &[u32],
        bucket_of: impl Fn(usize) -> u32,
    ) -> Vec<(u32, Affine<F>)> {
        // Points first, alone in their loop, so that many of these scattered reads are under way at
        // once.
        self.points.clear();
        self.points.extend(
            signed_indices
                .iter()
                .map(|signed| bases.get((signed >> 1) as usize)),
        );
        self.segments.clear();
        for (i, (signed, point)) in signed_indices.iter().zip(&mut self.points).enumerate() {
            if signed & 1 == 1 {
                point.y = -point.y;
            }
            let bucket = bucket_of(i);
            match self.segments.last_mut() {
                Some(segment) if segment.bucket == bucket => segment.len += 1,
                _ => self.segments.push(Segment { bucket, len: 1 }),
            }
        }
        while self.points.len() > self.segments.len() {
            self.round();
        }
        let buckets = self.segments.iter().map(|segment| segment.bucket);
        buckets.zip(self.points.iter().copied()).collect()
    }

    /// Halves every run: neighbours are added, an odd last point is kept.
    fn round(&mut self) {
        self.denominators.clear();
        self.prefixes.clear();
        let mut product = F::ONE;
        let mut at = 0;
        for segment in &self.segments {
            let end = at + segment.len as usize;
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
        for segment in &mut self.segments {
            let end = at + segment.len as usize;
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
            segment.len = segment.len.div_ceil(2);
        }
        points.truncate(out);
    }

    /// Sums `points[2i] + points[2i + 1]` over all of `points`, an even number.
    fn add_neighbours(&mut self, points: &mut Vec<Affine<F>>) {
        self.points.clear();
        self.points.append(points);
        self.segments.clear();
        self.segments
            .extend((0..self.points.len() / 2).map(|i| Segment {
                bucket: i as u32,
                len: 2,
            }));
        if !self.segments.is_empty() {
            self.round();
        }
        points.append(&mut self.points);
    }

    /// sum_i (i + 1) buckets[i], for a power of two of buckets.
    ///
    /// With m buckets numbered from 0, sum_i i B_i = 2 sum_j j (B_2j + B_2j+1) + sum_j B_2j+1, and
    /// the halved list is treated likewise: two additions a bucket, all of them in rounds of
    /// independent ones.
    pub(crate) fn weighted_sum(&mut self, buckets: Vec<Affine<F>>) -> Xyzz<F> {
        // `lists[0]` is the list still weighted; `lists[1 + l]` are the odd entries of level l, to
        // be summed plainly. All lists are halved in every round, until each is one point.
        let mut level = buckets;
        let mut odd_lists: Vec<Vec<Affine<F>>> = Vec::new();
        while level.len() > 1 || odd_lists.iter().any(|list| list.len() > 1) {
            let odd = (level.len() > 1).then(|| level.iter().skip(1).step_by(2).copied().collect());
            // One batch: every list of more than one point, one after the other.
            let mut batch = Vec::with_capacity(2 * level.len());
            for list in std::iter::once(&level).chain(&odd_lists) {
                if list.len() > 1 {
                    batch.extend_from_slice(list);
                }
            }
            self.add_neighbours(&mut batch);
            let mut sums = batch.into_iter();
            for list in std::iter::once(&mut level).chain(&mut odd_lists) {
                if list.len() > 1 {
                    let half = list.len() / 2;
                    list.clear();
                    list.extend(sums.by_ref().take(half));
                }
            }
            odd_lists.extend(odd);
        }
        // sum (i + 1) B_i = sum B_i + sum_l 2^l (odd sum of level l).
        let mut sum = Xyzz::INFINITY;
        for list in odd_lists.iter().rev() {
            sum = sum.double();
            for point in list {
                sum.add_affine(point);
            }
        }
        for point in &level {
            sum.add_affine(point);
        }
        sum
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
