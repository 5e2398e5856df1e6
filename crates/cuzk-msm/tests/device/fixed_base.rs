//! Multiples of a point against the CPU's.

use cuzk_field::constants::FR_MODULUS;
use cuzk_field::{Affine, Fp, Fp2, Scalar, Xyzz};
use cuzk_msm::FixedBase;
use cuzk_msm::device::DeviceCurve;
use cuzk_msm::device::fixed_base::FixedBasePlan;
use cuzk_testkit::Words;

use crate::rig::Rig;

cuzk_testkit::on_both!(
    multiples,
    g2_multiples,
    another_point,
    table_of_a_large_plan
);

fn scalars(random: &mut Words, count: usize) -> Vec<Scalar> {
    let half = [
        0x7fff_ffff_8000_0000,
        0xa9de_d201_7fff_2dff,
        0x199c_ec04_04d0_ec02,
        0x39f6_d3a9_94ce_bea4,
    ];
    let mut scalars = vec![
        Scalar::ZERO,
        Scalar::ONE,
        Scalar::MINUS_ONE,
        Scalar::from(2u64),
        Scalar::from(u64::MAX),
    ];
    // Around r / 2, where the sign changes, and all ones.
    for limbs in [
        half,
        [half[0] + 1, half[1], half[2], half[3]],
        [u64::MAX, u64::MAX, u64::MAX, FR_MODULUS[3] - 1],
    ] {
        scalars.push(Scalar::from_limbs(limbs).unwrap());
    }
    while scalars.len() < count {
        let limbs = [
            random.next_word(),
            random.next_word(),
            random.next_word(),
            random.next_word() >> 1,
        ];
        scalars.extend(Scalar::from_limbs(limbs));
    }
    scalars.truncate(count);
    scalars
}

fn check<F: DeviceCurve>(
    rig: &Rig,
    plan: &FixedBasePlan<F>,
    table: &[Affine<F>],
    base: &Affine<F>,
    scalars: &[Scalar],
) {
    let table = rig.upload(table);
    let exponents = rig.upload(scalars);
    let mut out = rig.room::<Affine<F>>(scalars.len());
    let mut scratch = rig.room::<u8>(plan.scratch_bytes());
    plan.run(
        &*rig.launcher,
        &rig.stream,
        table.view(),
        exponents.view(),
        out.view_mut(),
        scratch.view_mut(),
    )
    .unwrap();
    let found = rig.download(&out);
    for ((found, expected), scalar) in found
        .iter()
        .zip(FixedBase::new(base).multiply_all(scalars))
        .zip(scalars)
    {
        assert_eq!(*found, expected, "{scalar:?}");
    }
}

fn check_small<F: DeviceCurve>(rig: &Rig, base: &Affine<F>, counts: &[usize], limit: usize) {
    let mut random = Words::new(1);
    for &count in counts {
        let plan = FixedBasePlan::<F>::small(rig.device().info(), count, limit).unwrap();
        assert!(plan.scratch_bytes() <= limit);
        let table = plan.host_table(base);
        check(rig, &plan, &table, base, &scalars(&mut random, count));
    }
}

fn multiples(rig: &Rig) {
    let g = Affine::generator();
    check_small::<Fp>(rig, &g, &[0, 1, 2, 5, 150], usize::MAX);
    // In several runs, the last one shorter.
    check_small::<Fp>(rig, &g, &[100], 200 << 10);
}

fn g2_multiples(rig: &Rig) {
    check_small::<Fp2>(rig, &Affine::generator(), &[1, 12], usize::MAX);
}

fn another_point(rig: &Rig) {
    let base = Xyzz::from(Affine::<Fp>::generator())
        .mul_scalar(&Scalar::from(12_345u64))
        .to_affine();
    check_small::<Fp>(rig, &base, &[20], usize::MAX);
    check_small::<Fp>(rig, &Affine::INFINITY, &[9], usize::MAX);
}

/// Some of the large table, and on the card all of it, made by the small plan.
fn table_of_a_large_plan(rig: &Rig) {
    let g = Affine::<Fp>::generator();
    let info = rig.device().info();
    let large = FixedBasePlan::<Fp>::large(info, 1000, usize::MAX).unwrap();
    let wanted = large.table_scalars();
    assert_eq!(wanted.len(), large.table_len());
    let wanted: Vec<Scalar> = if rig.is_card {
        wanted
    } else {
        wanted.into_iter().step_by(20_011).collect()
    };
    let small = FixedBasePlan::<Fp>::small(info, wanted.len(), usize::MAX).unwrap();
    check(rig, &small, &small.host_table(&g), &g, &wanted);
    if rig.is_card {
        let table = FixedBase::new(&g).multiply_all(&wanted);
        let mut random = Words::new(2);
        check(rig, &large, &table, &g, &scalars(&mut random, 1000));
    }
}
