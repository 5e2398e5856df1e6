//! Bases and scalars, kind and hostile.

use cuzk_field::{Affine, CurveField, Field as _, Fr, Scalar, Xyzz};

/// Full-size scalars, distinct.
pub(crate) fn scalars(n: usize, seed: u64) -> Vec<Scalar> {
    let step = Fr::from(seed + 5).pow(0x9876_5432_1012_3457);
    let mut value = Fr::from(seed + 2).pow(0xabcd_ef12_3456_7891);
    (0..n)
        .map(|_| {
            value = value * step + Fr::ONE;
            value.into()
        })
        .collect()
}

/// G, 2G, 3G, ...
pub(crate) fn multiples<F: CurveField>(count: usize) -> Vec<Affine<F>> {
    let mut sum = Xyzz::INFINITY;
    let sums: Vec<Xyzz<F>> = (0..count)
        .map(|_| {
            sum.add_affine(&Affine::generator());
            sum
        })
        .collect();
    Xyzz::normalize_all(&sums)
}

/// Every distribution of scalars that has hurt somebody (PF-01, PF-03, PF-04).
pub(crate) fn hostile_scalars(n: usize) -> Vec<(&'static str, Vec<Scalar>)> {
    let random = scalars(n, 9);
    let small = |i: usize, below: u64| Scalar::from((i as u64).wrapping_mul(0x9e37_79b9) % below);
    let mix = [Scalar::ZERO, Scalar::ONE, Scalar::MINUS_ONE];
    let half = Fr::from(2).inverse().unwrap();
    let all = |value: &dyn Fn(usize) -> Scalar| (0..n).map(value).collect::<Vec<_>>();
    vec![
        ("all zero", all(&|_| Scalar::ZERO)),
        ("all one", all(&|_| Scalar::ONE)),
        ("all r - 1", all(&|_| Scalar::MINUS_ONE)),
        ("all equal", all(&|_| random[0])),
        ("all (r + 1) / 2", all(&|_| half.into())),
        ("all (r - 1) / 2", all(&|_| (half - Fr::ONE).into())),
        ("0, 1, -1", all(&|i| mix[i % 3])),
        (
            "99% one value",
            all(&|i| random[if i % 100 == 0 { i } else { 0 }]),
        ),
        (
            "99% bits",
            all(&|i| if i % 100 == 0 { random[i] } else { small(i, 2) }),
        ),
        ("below 2^16", all(&|i| small(i, 1 << 16))),
        (
            "powers of two",
            all(&|i| Fr::from(2).pow(i as u64 % 254).into()),
        ),
        ("sorted", {
            let mut sorted = random.clone();
            sorted.sort_by_key(|s| s.limbs().iter().rev().copied().collect::<Vec<_>>());
            sorted
        }),
        (
            "one term",
            all(&|i| if i == n - 1 { random[i] } else { Scalar::ZERO }),
        ),
    ]
}

/// Equal, opposite and infinite bases, which meet in one bucket and cancel (GP-01).
pub(crate) fn hostile_bases<F: CurveField>(n: usize) -> Vec<(&'static str, Vec<Affine<F>>)> {
    let points = multiples::<F>(n);
    let all = |base: &dyn Fn(usize) -> Affine<F>| (0..n).map(base).collect::<Vec<_>>();
    vec![
        ("equal", all(&|_| points[0])),
        (
            "opposite",
            all(&|i| if i % 2 == 0 { points[0] } else { -points[0] }),
        ),
        (
            "pairs",
            all(&|i| {
                if i % 2 == 0 {
                    points[i / 2]
                } else {
                    -points[i / 2]
                }
            }),
        ),
        (
            "holes",
            all(&|i| {
                if i % 7 == 0 {
                    Affine::INFINITY
                } else {
                    points[i]
                }
            }),
        ),
        ("all infinity", all(&|_| Affine::INFINITY)),
    ]
}
