//! The transform of `cuzk-ntt`, over points of G1 instead of numbers.

use cuzk_field::{Field as _, Fr, G1Affine, Scalar};
use cuzk_msm::{multiply_each, signed_sums};
use cuzk_ntt::bit_reverse_permute;

use crate::error::Error;

/// Told how many scalar multiplications have been done since it was last called.
pub type ProgressFn<'a> = &'a (dyn Fn(u64) + Sync);

/// Pairs of points handled together: bounds the memory beside the points, and a moment's work for many
/// threads.
const SLAB: usize = 1 << 15;

/// sum_i root^(ij) points_i for every j, in place and in natural order; `root` is a primitive root of
/// unity of the length, a power of two. The points are of order r. Unscaled.
///
/// Radix 2: stage s splits blocks modulo x^m - c^2 into x^(m/2) - c and x^(m/2) + c. The first block of
/// every stage has c = 1 and takes additions only: n/2 log n - n + 1 multiplications in all.
///
/// # Errors
/// [`Error::Domain`] unless there is a power of two of points.
pub fn transform(points: &mut [G1Affine], root: Fr, progress: ProgressFn<'_>) -> Result<(), Error> {
    let n = points.len();
    if !n.is_power_of_two() {
        return Err(cuzk_ntt::Error::Size { size: n }.into());
    }
    let mut twiddles: Vec<Scalar> = powers(root).take(n / 2).map(Scalar::from).collect();
    if !twiddles.is_empty() {
        bit_reverse_permute(&mut twiddles);
    }
    let mut half = n / 2;
    while half > 0 {
        for start in (0..n / 2).step_by(SLAB) {
            let pairs = start..(start + SLAB).min(n / 2);
            stage(points, half, pairs, &twiddles, progress)?;
        }
        half /= 2;
    }
    bit_reverse_permute(points);
    Ok(())
}

/// Some of the pairs of a stage: pair i is i mod half in block i / half.
fn stage(
    points: &mut [G1Affine],
    half: usize,
    pairs: std::ops::Range<usize>,
    twiddles: &[Scalar],
    progress: ProgressFn<'_>,
) -> Result<(), Error> {
    let low = |pair: usize| pair / half * 2 * half + pair % half;
    let count = pairs.len();
    let mut operands: Vec<G1Affine> = pairs.clone().map(|pair| points[low(pair)]).collect();
    operands.extend(pairs.clone().map(|pair| points[low(pair) + half]));
    // Those of the first block are multiplied by one.
    let first = half.clamp(pairs.start, pairs.end);
    let scalars: Vec<Scalar> = (first..pairs.end)
        .map(|pair| twiddles[pair / half])
        .collect();
    let at = count + (first - pairs.start);
    let products = multiply_each(&operands[at..], &scalars)?;
    operands[at..].copy_from_slice(&products);
    progress(scalars.len() as u64);
    // a + t and a - t.
    let terms: Vec<u32> = (0..count as u32)
        .flat_map(|i| {
            let (a, t) = (i << 1, (i + count as u32) << 1);
            [a, t, a, t | 1]
        })
        .collect();
    let offsets: Vec<usize> = (0..=2 * count).map(|run| 2 * run).collect();
    let sums = signed_sums(&operands, &terms, &offsets)?;
    for (pair, sums) in pairs.zip(sums.chunks_exact(2)) {
        points[low(pair)] = sums[0];
        points[low(pair) + half] = sums[1];
    }
    Ok(())
}

/// 1, base, base^2, ...
pub(super) fn powers(base: Fr) -> impl Iterator<Item = Fr> {
    std::iter::successors(Some(Fr::ONE), move |power| Some(*power * base))
}

/// `points[i]` becomes `first base^i points[i]`.
pub(super) fn scale(
    points: &mut [G1Affine],
    base: Fr,
    first: Fr,
    progress: ProgressFn<'_>,
) -> Result<(), Error> {
    let mut factors = powers(base).map(|power| Scalar::from(power * first));
    for slab in points.chunks_mut(SLAB) {
        let scalars: Vec<Scalar> = factors.by_ref().take(slab.len()).collect();
        let products = multiply_each(slab, &scalars)?;
        slab.copy_from_slice(&products);
        progress(slab.len() as u64);
    }
    Ok(())
}
