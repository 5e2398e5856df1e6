//! Batch-affine sums: rounds of pairwise additions that share one inversion.

use cuzk_field::{Affine, CurveField, Xyzz};

use crate::bases::{Bases, ByRef};
use crate::cpu;

/// Terms reduced together. 4096 G1 points take 384 KiB, or 512 KiB with vectors, so that a block and
/// its scratch stay in a core's second-level cache; and the inversion of a round, which vectors do not
/// speed up, is a few per cent of its additions.
pub(crate) const BLOCK_TERMS: usize = 4096;

/// The additions, for one kind of processor.
pub(crate) trait Sums<F: CurveField>: Send {
    /// Sums runs of terms: the first `lengths[0]` terms are the first run, and so on; no run is empty.
    /// `signed_indices` are as in [`crate::terms::Terms`]. Returns one point per run, in order;
    /// `lengths` are used up.
    fn sum_runs(
        &mut self,
        bases: &dyn Bases<F>,
        signed_indices: &[u32],
        lengths: &mut [u32],
    ) -> Vec<Affine<F>>;
}

/// The scratch of one worker.
pub(crate) struct PairTree<F: CurveField> {
    sums: Box<dyn Sums<F>>,
    buckets: Vec<u32>,
    lengths: Vec<u32>,
}

impl<F: CurveField> Default for PairTree<F> {
    fn default() -> Self {
        Self {
            sums: cpu::sums(),
            buckets: Vec::new(),
            lengths: Vec::new(),
        }
    }
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
        self.buckets.clear();
        self.lengths.clear();
        for i in 0..signed_indices.len() {
            let bucket = bucket_of(i);
            match (self.buckets.last(), self.lengths.last_mut()) {
                (Some(last), Some(length)) if *last == bucket => *length += 1,
                _ => {
                    self.buckets.push(bucket);
                    self.lengths.push(1);
                }
            }
        }
        let sums = self.sums.sum_runs(bases, signed_indices, &mut self.lengths);
        self.buckets.iter().copied().zip(sums).collect()
    }

    /// Sums `points[2i] + points[2i + 1]` over all of `points`, an even number.
    fn add_neighbours(&mut self, points: &[Affine<F>]) -> Vec<Affine<F>> {
        let mut sums = Vec::with_capacity(points.len() / 2);
        for block in points.chunks(BLOCK_TERMS) {
            let signed_indices: Vec<u32> = (0..block.len() as u32).map(|i| i << 1).collect();
            self.lengths.clear();
            self.lengths.resize(block.len() / 2, 2);
            sums.append(
                &mut self
                    .sums
                    .sum_runs(&ByRef(block), &signed_indices, &mut self.lengths),
            );
        }
        sums
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
            let mut sums = self.add_neighbours(&batch).into_iter();
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
