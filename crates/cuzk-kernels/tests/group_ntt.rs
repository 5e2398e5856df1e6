//! Multiples of points and butterflies over them, against arkworks: once on the emulator, and on the card where there
//! is one (`CUZK_REQUIRE_GPU=1` makes a missing one a failure).

use ark_bls12_381::{Fr as ArkFr, G1Affine as ArkG1Affine, G1Projective};
use ark_ec::{AffineRepr as _, CurveGroup as _};
use ark_ff::{AdditiveGroup as _, BigInt, PrimeField as _};
use cuzk_field::constants::G1_LAMBDA;
use cuzk_field::{Fp, Fr, G1Affine, Scalar};
use cuzk_kernels::group_ntt::{butterflies, multiply, scale, scratch_len};
use cuzk_testkit::Words;
use cuzk_testkit::device::Rig;

cuzk_testkit::on_both!(scalars_of_every_kind, pairs_of_every_kind, stages);

fn scalar(words: &mut Words) -> Scalar {
    let fr = Fr::from(words.next_word()) * Fr::from(words.next_word());
    let fr = fr
        * Fr::from(words.next_word())
        * Fr::from(words.next_word())
        * Fr::from(words.next_word());
    fr.into()
}

/// Borders of the division by lambda, of the digits, of the group.
fn hostile_scalars() -> Vec<Scalar> {
    let lambda = Scalar::from_limbs([G1_LAMBDA as u64, (G1_LAMBDA >> 64) as u64, 0, 0]).unwrap();
    let (lambda, one) = (Fr::from(lambda), Fr::from(1));
    let mut values = vec![Fr::from(0), one, -one, Fr::from(2), -Fr::from(2)];
    for value in [lambda, lambda * lambda, lambda * lambda + lambda, -lambda] {
        values.extend([value - one, value, value + one]);
    }
    let mut scalars: Vec<Scalar> = values.into_iter().map(Scalar::from).collect();
    // Digits at the ends of their range, carries through all of them, halves of ones and of zeros.
    for limbs in [
        [0xaaaa_aaaa_aaaa_aaaa; 4],
        [0x5555_5555_5555_5555; 4],
        [0x8888_8888_8888_8888; 4],
        [0xf0f0_f0f0_f0f0_f0f0; 4],
        [u64::MAX; 4],
        [u64::MAX, u64::MAX, 0, 0],
        [0, 0, u64::MAX, u64::MAX >> 2],
        [1 << 63, 0, 0, 1 << 62],
        [15, 0, 1 << 60, 0],
        [16, 0, 0, 0],
        [17, 0, 0, 0],
        [31, 0, 0, 0],
        [32, 0, 0, 0],
    ] {
        let [a, b, c, d] = limbs;
        scalars.extend(Scalar::from_limbs([a, b, c, d & (u64::MAX >> 2)]));
    }
    assert!(scalars.len() > 25);
    scalars
}

fn to_ark(scalar: &Scalar) -> ArkFr {
    ArkFr::from_bigint(BigInt(*scalar.limbs())).unwrap()
}

fn point_to_ark(point: &G1Affine) -> G1Projective {
    ArkG1Affine::from(*point).into_group()
}

fn from_ark(points: &[G1Projective]) -> Vec<G1Affine> {
    let points: Vec<ArkG1Affine> = G1Projective::normalize_batch(points);
    points.into_iter().map(G1Affine::from).collect()
}

/// Multiples of the generator, some at infinity, some equal, some opposite.
fn points(words: &mut Words, count: usize) -> Vec<G1Affine> {
    let generator = ArkG1Affine::generator();
    let mut points: Vec<G1Projective> = (0..count)
        .map(|_| generator * to_ark(&scalar(words)))
        .collect();
    for i in (0..count).step_by(5) {
        points[i] = match i / 5 % 4 {
            0 => G1Projective::ZERO,
            1 => points[i - 1],
            2 => -points[i - 1],
            _ => points[i],
        };
    }
    from_ark(&points)
}

fn count(rig: &Rig, emulated: usize, on_card: usize) -> usize {
    if rig.is_card { on_card } else { emulated }
}

fn scalars_of_every_kind(rig: &Rig) {
    let mut words = Words::new(1);
    let mut scalars = hostile_scalars();
    scalars.resize_with(count(rig, 48, 1 << 12), || scalar(&mut words));
    let points = points(&mut words, 33);
    let n = scalars.len();
    let indices: Vec<u32> = (0..n as u32).map(|i| 32 - i * 7 % 33).collect();
    let ids: Vec<u32> = (0..n as u32).collect();
    let expected: Vec<G1Projective> = ids
        .iter()
        .zip(&indices)
        .map(|(id, index)| point_to_ark(&points[*index as usize]) * to_ark(&scalars[*id as usize]))
        .collect();
    let (device_points, device_scalars) = (rig.upload(&points), rig.upload(&scalars));
    let mut out = rig.room::<G1Affine>(n);
    let mut scratch = rig.room::<Fp>(scratch_len(&*rig.launcher, n));
    multiply(
        &*rig.launcher,
        &rig.stream,
        device_points.view(),
        rig.upload(&indices).view(),
        device_scalars.view(),
        rig.upload(&ids).view(),
        out.view_mut(),
        scratch.view_mut(),
    )
    .unwrap();
    assert!(rig.download(&out) == from_ark(&expected));

    let gathered: Vec<G1Affine> = indices.iter().map(|i| points[*i as usize]).collect();
    let mut in_place = rig.upload(&gathered);
    scale(
        &*rig.launcher,
        &rig.stream,
        in_place.view_mut(),
        device_scalars.view(),
        scratch.view_mut(),
    )
    .unwrap();
    assert!(rig.download(&in_place) == from_ark(&expected));
}

/// One stage: blocks of 2 half points, `factors[0]` a one that is not read.
fn check_stage(rig: &Rig, points: &[G1Affine], factors: &[Scalar], half: usize, what: &str) {
    let mut device_points = rig.upload(points);
    let device_factors = rig.upload(factors);
    let pairs = points.len() / 2;
    let mut scratch = rig.room::<Fp>(scratch_len(&*rig.launcher, pairs));
    // Whole, or in two launches.
    let middle = pairs / 3;
    for range in [0..middle, middle..pairs] {
        butterflies(
            &*rig.launcher,
            &rig.stream,
            device_points.view_mut(),
            device_factors.view(),
            half,
            range,
            scratch.view_mut(),
        )
        .unwrap();
    }
    let mut expected: Vec<G1Projective> = points.iter().map(point_to_ark).collect();
    for (block, points) in expected.chunks_mut(2 * half).enumerate() {
        let (low, high) = points.split_at_mut(half);
        for (a, b) in low.iter_mut().zip(high) {
            let t = if block == 0 {
                *b
            } else {
                *b * to_ark(&factors[block])
            };
            (*a, *b) = (*a + t, *a - t);
        }
    }
    let found = rig.download(&device_points);
    let expected = from_ark(&expected);
    let wrong = (0..points.len()).find(|i| found[*i] != expected[*i]);
    assert_eq!(wrong, None, "{what}, half {half}");
}

/// a and c b equal, opposite, one or both at infinity, in the first block and in another.
fn pairs_of_every_kind(rig: &Rig) {
    let mut words = Words::new(2);
    let [p, q] = [7_u64, 9].map(|k| ArkG1Affine::generator() * ArkFr::from(k));
    let factor = scalar(&mut words);
    let zero = G1Projective::ZERO;
    for (block, times) in [(0, ArkFr::from(1)), (1, to_ark(&factor))] {
        let b = [p, p, p, q, zero, p, zero, q];
        let a = [p * times, -p * times, q, q * times, p, zero, zero, zero];
        let pairs = from_ark(&[a, b].concat());
        let other = points(&mut words, 16);
        let all = if block == 0 {
            [pairs, other]
        } else {
            [other, pairs]
        };
        check_stage(rig, &all.concat(), &[Scalar::ZERO, factor], 8, "pairs");
    }
}

fn stages(rig: &Rig) {
    let mut words = Words::new(3);
    let n = count(rig, 16, 1 << 13);
    let all = points(&mut words, n);
    let factors: Vec<Scalar> = (0..n / 2).map(|_| scalar(&mut words)).collect();
    let mut half = n / 2;
    while half > 0 {
        // On the emulator the middle ones are like their neighbours.
        check_stage(rig, &all, &factors, half, "stage");
        half /= 2;
    }
    // In step on the emulator too.
    if !rig.is_card {
        let all = points(&mut words, 128);
        check_stage(rig, &all, &factors, 32, "in step");
    }
}
