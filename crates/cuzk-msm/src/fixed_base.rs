//! Many multiples of one point, as key generation needs them.

use cuzk_field::{Affine, CurveField, Scalar, Xyzz};
use rayon::prelude::*;

use crate::digits::Windows;
use crate::pair_tree::PairTree;

/// Window width: 24 windows of 1024 points are 2.3 MiB in G1, about a core's second-level cache.
const WIDTH: u32 = 11;

/// Scalars reduced together, each a run of at most one point a window: 170 of 24 are
/// [`BLOCK_TERMS`](crate::pair_tree::BLOCK_TERMS).
const BLOCK_SCALARS: usize = 170;

/// A table of multiples of one point.
pub struct FixedBase<F: CurveField> {
    windows: Windows,
    /// (windows, buckets): `table[w][d - 1]` is d 2^(w WIDTH) base.
    table: Vec<Affine<F>>,
}

impl<F: CurveField> FixedBase<F> {
    /// The table for `base`.
    pub fn new(base: &Affine<F>) -> Self {
        let windows = Windows::new(WIDTH);
        let mut multiples = Vec::with_capacity(windows.count() as usize * windows.buckets());
        let mut step = Xyzz::from(*base);
        for _ in 0..windows.count() {
            let mut multiple = step;
            for _ in 0..windows.buckets() {
                multiples.push(multiple);
                multiple.add_xyzz(&step);
            }
            // The last multiple pushed is 2^(WIDTH - 1) step.
            step = multiples.last().map_or(step, Xyzz::double);
        }
        Self {
            windows,
            table: Xyzz::normalize_all(&multiples),
        }
    }

    /// `scalars[i] base` for every i.
    pub fn multiply_all(&self, scalars: &[Scalar]) -> Vec<Affine<F>> {
        let mut products = vec![Affine::INFINITY; scalars.len()];
        products
            .par_chunks_mut(BLOCK_SCALARS)
            .zip(scalars.par_chunks(BLOCK_SCALARS))
            .for_each_init(PairTree::default, |tree, (products, scalars)| {
                self.multiply_block(tree, scalars, products);
            });
        products
    }

    fn multiply_block(
        &self,
        tree: &mut PairTree<F>,
        scalars: &[Scalar],
        products: &mut [Affine<F>],
    ) {
        let mut signed_indices = Vec::with_capacity(scalars.len() * self.windows.count() as usize);
        let mut owners = Vec::with_capacity(signed_indices.capacity());
        for (owner, scalar) in (0..).zip(scalars) {
            let recoded = self.windows.recode(scalar);
            for window in 0..self.windows.count() {
                let digit = self.windows.digit(&recoded, window);
                if digit.bucket != 0 {
                    let index = window * self.windows.buckets() as u32 + digit.bucket - 1;
                    signed_indices.push((index << 1) | u32::from(digit.negative));
                    owners.push(owner);
                }
            }
        }
        for (owner, product) in tree.sum_runs(&self.table, &signed_indices, |i| owners[i]) {
            products[owner as usize] = product;
        }
    }
}

impl<F: CurveField> std::fmt::Debug for FixedBase<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FixedBase({} points)", self.table.len())
    }
}
