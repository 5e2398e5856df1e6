//! Weighted sums of buckets against double-and-add.

use cuzk_field::{Affine, Fp, Fp2, Scalar, Xyzz};
use cuzk_msm::device::DeviceCurve;
use cuzk_msm::device::reduce::ReducePlan;
use cuzk_testkit::Words;

use crate::rig::Rig;

cuzk_testkit::on_both!(
    every_size,
    several_sizes,
    equal_and_opposite_buckets,
    g2_sizes
);

/// So many windows of so many buckets each, and then others.
type Sizes<'a> = &'a [(usize, usize)];

fn run<F: DeviceCurve>(rig: &Rig, sizes: Sizes<'_>, sums: &[Affine<F>]) -> Vec<Xyzz<F>> {
    let info = rig.device().info();
    let plain = ReducePlan::<F>::new(info, sizes).unwrap();
    let found = run_plan(rig, &plain, sums);
    let trees = plain.with_trees(info, usize::MAX).unwrap();
    let by_trees = run_plan(rig, &trees, sums);
    for (one, other) in found.iter().zip(&by_trees) {
        assert_eq!(one.to_affine(), other.to_affine(), "pair trees, {sizes:?}");
    }
    found
}

fn run_plan<F: DeviceCurve>(rig: &Rig, plan: &ReducePlan<F>, sums: &[Affine<F>]) -> Vec<Xyzz<F>> {
    let windows = plan.windows();
    let sums = rig.upload(sums);
    let mut out = rig.room(windows);
    let mut scratch = rig.room::<u8>(plan.scratch_bytes());
    let (sums, out_view) = (sums.view(), out.view_mut());
    plan.run(
        &*rig.launcher,
        &rig.stream,
        sums,
        out_view,
        scratch.view_mut(),
    )
    .unwrap();
    rig.download(&out)
}

/// Buckets are multiples e G of the generator, so that the sum is (sum of (k + 1) e) G.
fn check<F: DeviceCurve>(
    rig: &Rig,
    sizes: Sizes<'_>,
    multiples: &[u64],
    multiple_of: impl Fn(u64) -> Affine<F>,
) {
    let sums: Vec<Affine<F>> = multiples.iter().map(|&e| multiple_of(e)).collect();
    let found = run(rig, sizes, &sums);
    let windows = sizes
        .iter()
        .flat_map(|&(count, buckets)| std::iter::repeat_n(buckets, count));
    assert_eq!(found.len(), windows.clone().count());
    let mut rest = multiples;
    for (found, buckets) in found.iter().zip(windows) {
        let (own, others) = rest.split_at(buckets);
        rest = others;
        let e: u64 = own.iter().zip(1..).map(|(e, k)| e * k).sum();
        let expected = Xyzz::from(Affine::<F>::generator()).mul_scalar(&Scalar::from(e));
        assert_eq!(
            found.to_affine(),
            expected.to_affine(),
            "{buckets} buckets of {sizes:?}"
        );
    }
    assert!(rest.is_empty());
}

fn check_random<F: DeviceCurve>(
    rig: &Rig,
    sizes: Sizes<'_>,
    random: &mut Words,
    multiple_of: impl Fn(u64) -> Affine<F>,
) {
    let all = sizes.iter().map(|(count, buckets)| count * buckets).sum();
    let multiples: Vec<u64> = (0..all).map(|_| random.below(64) as u64).collect();
    check(rig, sizes, &multiples, multiple_of);
}

fn table<F: DeviceCurve>() -> impl Fn(u64) -> Affine<F> {
    let mut sum = Xyzz::INFINITY;
    let sums: Vec<Xyzz<F>> = (0..64)
        .map(|_| {
            let before = sum;
            sum.add_affine(&Affine::generator());
            before
        })
        .collect();
    let points = Xyzz::normalize_all(&sums);
    move |e| points[e as usize]
}

fn every_size(rig: &Rig) {
    let multiple_of = table::<Fp>();
    let mut random = Words::new(1);
    let mut sizes = vec![
        (0, 0),
        (1, 1),
        (3, 1),
        (1, 2),
        (2, 3),
        (1, 4),
        (2, 5),
        (1, 31),
        (3, 64),
        (2, 100),
        (1, 129),
        (1, 1024),
    ];
    if rig.is_card {
        sizes.extend([
            (1, 1 << 15),
            (16, 1 << 15),
            (3, 1 << 18),
            (2, (1 << 17) + 1),
        ]);
    }
    for size in sizes {
        check_random(rig, &[size], &mut random, &multiple_of);
    }
    // Windows without buckets.
    let plan = ReducePlan::<Fp>::new(rig.device().info(), &[(2, 0)]).unwrap();
    let none = rig.room::<Affine<Fp>>(0);
    let mut out = rig.room::<Xyzz<Fp>>(2);
    let mut scratch = rig.room::<u8>(plan.scratch_bytes());
    plan.run(
        &*rig.launcher,
        &rig.stream,
        none.view(),
        out.view_mut(),
        scratch.view_mut(),
    )
    .unwrap();
    assert!(rig.download(&out).iter().all(Xyzz::is_infinity));
}

/// Windows of other sizes in one reduction: of two widths, sums of ones before them, more than one vector; larger ones first
/// or last, rows and columns that smaller ones do not have.
fn several_sizes(rig: &Rig) {
    let multiple_of = table::<Fp>();
    let mut random = Words::new(3);
    let mut all: Vec<Sizes<'_>> = vec![
        &[(2, 64), (3, 32)],
        &[(3, 1), (1, 128), (2, 64), (1, 128), (2, 64)],
        &[(1, 5), (1, 0), (2, 100), (0, 7), (1, 17)],
        &[(1, 1), (1, 2), (1, 3), (1, 31), (1, 33)],
    ];
    if rig.is_card {
        all.extend([
            &[(8, 1 << 16), (5, 1 << 15)][..],
            &[(2, 1), (3, 1 << 18), (2, 1 << 17), (1, (1 << 17) + 1)],
        ]);
    }
    for sizes in all {
        check_random(rig, sizes, &mut random, &multiple_of);
    }
    let multiple_of = table::<Fp2>();
    check_random(rig, &[(1, 1), (1, 16), (2, 8)], &mut random, &multiple_of);
}

fn g2_sizes(rig: &Rig) {
    let multiple_of = table::<Fp2>();
    let mut random = Words::new(2);
    for size in [(1, 1), (2, 3), (1, 70), (1, 200)] {
        check_random(rig, &[size], &mut random, &multiple_of);
    }
}

/// Sums in which points meet themselves, their opposites and infinity at every step.
fn equal_and_opposite_buckets(rig: &Rig) {
    let multiple_of = table::<Fp>();
    for pattern in [&[0][..], &[1], &[1, 0], &[0, 1], &[7, 7, 0]] {
        let multiples: Vec<u64> = pattern.iter().copied().cycle().take(2 * 130).collect();
        check(rig, &[(2, 130)], &multiples, &multiple_of);
    }
    // G and -G in turn: pairs cancel, and the sum is 130/2 times -G or G.
    let g = Affine::<Fp>::generator();
    let sums: Vec<Affine<Fp>> = (0..130).map(|k| if k % 2 == 0 { g } else { -g }).collect();
    let found = run(rig, &[(1, 130)], &sums)[0].to_affine();
    let expected = Xyzz::from(-g).mul_scalar(&Scalar::from(65u64)).to_affine();
    assert_eq!(found, expected);
}
