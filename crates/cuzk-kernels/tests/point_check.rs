//! Points on their curves and in the subgroup, and all kinds that are not: once on the emulator, and on the card where
//! there is one (`CUZK_REQUIRE_GPU=1` makes a missing one a failure).

use cuzk_field::constants::FP_MODULUS;
use cuzk_field::{Affine, CurveField, Fp, Fp2, G1Affine, G2Affine, Xyzz};
use cuzk_gpu_mem::DeviceBuf;
use cuzk_kernels::{DeviceCurve, point_check};
use cuzk_testkit::device::Rig;

cuzk_testkit::on_both!(curves, subgroup);

/// The first multiples of the generator.
fn multiples<F: CurveField>(generator: Affine<F>, count: usize) -> Vec<Affine<F>> {
    let mut sum = Xyzz::from(generator);
    let sums: Vec<Xyzz<F>> = (0..count)
        .map(|_| {
            let this = sum;
            sum.add_affine(&generator);
            this
        })
        .collect();
    Xyzz::normalize_all(&sums)
}

/// What a check leaves in `first_wrong`, which held `before`.
fn first_wrong<F: DeviceCurve>(
    rig: &Rig,
    points: &[Affine<F>],
    before: u32,
    check: impl Fn(&DeviceBuf<Affine<F>>, &mut DeviceBuf<u32>),
) -> u32 {
    let device_points = rig.upload(points);
    let mut word = rig.upload(&[before]);
    check(&device_points, &mut word);
    rig.download(&word)[0]
}

fn on_curve<F: DeviceCurve>(rig: &Rig, points: &[Affine<F>], before: u32) -> u32 {
    first_wrong(rig, points, before, |points, word| {
        let (launcher, stream) = (&*rig.launcher, &rig.stream);
        point_check::on_curve(launcher, stream, points.view(), word.view_mut()).unwrap();
    })
}

/// Both coordinates' first words changed: below p or not, but not on the curve, or not canonical.
fn curves(rig: &Rig) {
    let g1 = multiples(G1Affine::generator(), 300);
    let g2 = multiples(G2Affine::generator(), 300);
    assert_eq!(on_curve(rig, &g1, u32::MAX), u32::MAX);
    assert_eq!(on_curve(rig, &g2, u32::MAX), u32::MAX);
    assert_eq!(on_curve::<Fp>(rig, &[], 7), 7);
    // p is 0 and 2^384 - 1 is something, but neither is canonical; 1 is not the other coordinate of 0.
    let raw = |limbs| bytemuck::cast::<[u64; 6], Fp>(limbs);
    let p = raw(FP_MODULUS);
    let (zero, one) = (raw([0; 6]), raw([1, 0, 0, 0, 0, 0]));
    let most = raw([u64::MAX; 6]);
    let two = Fp2 { c0: zero, c1: zero };
    for at in [0, 1, 127, 128, 299] {
        for bad in [
            G1Affine { x: p, y: zero },
            G1Affine { x: zero, y: p },
            G1Affine {
                x: most,
                y: g1[at].y,
            },
            G1Affine {
                x: g1[at].x,
                y: most,
            },
            G1Affine { x: zero, y: one },
            G1Affine { x: one, y: zero },
            G1Affine {
                x: g1[at].y,
                y: g1[at].x,
            },
        ] {
            let mut points = g1.clone();
            points[at] = bad;
            points[299] = bad;
            points[200] = G1Affine::INFINITY;
            assert_eq!(on_curve(rig, &points, u32::MAX), at as u32);
            assert_eq!(on_curve(rig, &points, 5), 5.min(at as u32));
        }
        for bad in [
            G2Affine {
                x: Fp2 { c0: p, c1: zero },
                y: two,
            },
            G2Affine {
                x: two,
                y: Fp2 { c0: zero, c1: p },
            },
            G2Affine {
                x: Fp2 {
                    c1: most,
                    ..g2[at].x
                },
                y: g2[at].y,
            },
            G2Affine {
                x: g2[at].x,
                y: Fp2 {
                    c0: one,
                    ..g2[at].y
                },
            },
            G2Affine {
                x: two,
                y: Fp2 { c0: one, c1: zero },
            },
            G2Affine {
                x: Fp2 {
                    c0: g2[at].x.c1,
                    c1: g2[at].x.c0,
                },
                y: g2[at].y,
            },
        ] {
            let mut points = g2.clone();
            points[at] = bad;
            points[200.max(at)] = bad;
            if at > 100 {
                points[100] = G2Affine::INFINITY;
            }
            assert_eq!(on_curve(rig, &points, u32::MAX), at as u32);
        }
    }
}

fn subgroup(rig: &Rig) {
    let check = |points: &[G1Affine], before| {
        first_wrong(rig, points, before, |points, word| {
            let (launcher, stream) = (&*rig.launcher, &rig.stream);
            point_check::in_subgroup(launcher, stream, points.view(), word.view_mut()).unwrap();
        })
    };
    let mut points = multiples(G1Affine::generator(), 150);
    points[70] = G1Affine::INFINITY;
    points[71] = -points[71];
    assert_eq!(check(&points, u32::MAX), u32::MAX);
    // (0, 2), of order three, and points of the curve as they come.
    let order_three = G1Affine {
        x: Fp::from(0),
        y: Fp::from(2),
    };
    assert!(order_three.is_on_curve() && !order_three.is_in_subgroup());
    for at in [0, 149] {
        let mut points = points.clone();
        points[at] = order_three;
        assert_eq!(check(&points, u32::MAX), at as u32);
        // Of a composite order.
        let mut sum = Xyzz::from(order_three);
        sum.add_affine(&points[1]);
        points[at] = Xyzz::normalize_all(&[sum])[0];
        assert!(points[at].is_on_curve() && !points[at].is_in_subgroup());
        assert_eq!(check(&points, u32::MAX), at as u32);
    }
}
