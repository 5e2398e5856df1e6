//! The curves' operations.

use ark_bls12_381::{G1Projective, G2Projective};
use ark_ff::AdditiveGroup as _;
use cuzk_field::{Affine, CurveField, Fp, Fp2, G1Affine, G1Xyzz, G2Affine, G2Xyzz, Xyzz};
use cuzk_kernels::curve_ops;

use crate::rig::{Binary, Rig};
use crate::values::Random;

/// Multiples of the generator, their opposites, infinity: every pair of them meets equal, opposite
/// and infinite operands.
pub(crate) fn points<F: CurveField>(count: usize) -> Vec<Affine<F>> {
    let generator = Affine::<F>::generator();
    let mut sum = Xyzz::INFINITY;
    let mut points = vec![Affine::INFINITY];
    for _ in 0..count {
        sum.add_affine(&generator);
        let point = sum.to_affine();
        points.extend([point, -point]);
    }
    points
}

/// Each point with Z = 1, and with another.
pub(crate) fn in_xyzz<F: CurveField>(
    points: &[Affine<F>],
    mut random: impl FnMut() -> F,
) -> Vec<Xyzz<F>> {
    let scaled = points.iter().map(|point| {
        let z = random();
        let (zz, zzz) = (z.square(), z.square() * z);
        if point.is_infinity() {
            // Infinity is ZZ = 0, whatever X and Y say.
            return Xyzz {
                x: z,
                y: zz,
                zz: F::ZERO,
                zzz: F::ZERO,
            };
        }
        Xyzz {
            x: point.x * zz,
            y: point.y * zzz,
            zz,
            zzz,
        }
    });
    points
        .iter()
        .map(|point| Xyzz::from(*point))
        .chain(scaled.collect::<Vec<_>>())
        .collect()
}

pub(crate) fn all_pairs<A: Copy, B: Copy>(a: &[A], b: &[B], most: usize) -> Vec<(A, B)> {
    let pairs = a.iter().flat_map(|a| b.iter().map(|b| (*a, *b)));
    pairs.cycle_to(a.len() * b.len(), most)
}

/// An iterator's elements, over again where more are wanted.
trait CycleTo: Iterator + Sized {
    fn cycle_to(self, len: usize, most: usize) -> Vec<Self::Item>
    where
        Self::Item: Copy,
    {
        let all: Vec<Self::Item> = self.collect();
        all.iter().copied().cycle().take(len.max(most)).collect()
    }
}

impl<I: Iterator> CycleTo for I {}

macro_rules! curve_test {
    (
        $test:ident, $affine:ty, $xyzz:ty, $field:ty, $projective:ty, $random:ident, $seed:literal,
        $add_affine:path, $add_xyzz:path, $double_xyzz:path, $double_affine:path, $neg_affine:path,
        $neg_xyzz:path, $to_affine:path, $pair_sum:path $(, also $also:path)?
    ) => {
        pub(crate) fn $test(rig: &Rig) {
            let few = option_env!("CUZK_SANITIZER").is_some();
            let points: Vec<$affine> = points(if few { 2 } else { 7 });
            let mut random = Random($seed);
            let sums: Vec<$xyzz> = in_xyzz::<$field>(&points, || random.$random());
            let most = rig.count / 8;
            // Sums are compared as affine points, coordinates being a matter of formulas.
            let ark = |point: $affine| <$projective>::from(ark_ec::AffineRepr::into_group(
                <$projective as ark_ec::CurveGroup>::Affine::from(point),
            ));
            let affine = |point: $projective| -> $affine {
                ark_ec::CurveGroup::into_affine(point).into()
            };
            let on_affine = |out: Vec<$xyzz>| -> Vec<$affine> {
                out.iter().map(Xyzz::to_affine).collect()
            };

            let mixed = all_pairs(&sums, &points, most);
            let expected: Vec<$affine> = mixed
                .iter()
                .map(|(a, b)| affine(ark(a.to_affine()) + ark(*b)))
                .collect();
            let kernels: &[Binary<_, _, _>] = &[$add_affine $(, $also)?];
            for kernel in kernels {
                let found = rig.of_pairs(*kernel, &mixed);
                assert!(on_affine(found) == expected, "mixed addition");
            }

            let full = all_pairs(&sums, &sums, most);
            let found = rig.of_pairs($add_xyzz, &full);
            for ((a, b), found) in full.iter().zip(on_affine(found)) {
                assert_eq!(found, affine(ark(a.to_affine()) + ark(b.to_affine())));
            }

            let doubled = rig.of_values($double_xyzz, &sums);
            let opposite = rig.of_values($neg_xyzz, &sums);
            for ((sum, doubled), opposite) in
                sums.iter().zip(on_affine(doubled)).zip(on_affine(opposite))
            {
                assert_eq!(doubled, affine(ark(sum.to_affine()).double()));
                assert_eq!(opposite, affine(-ark(sum.to_affine())));
            }
            rig.unary($to_affine, &sums, |sum| sum.to_affine());

            rig.unary($neg_affine, &points, |point| affine(-ark(*point)));
            let doubled = rig.of_values($double_affine, &points);
            for (point, doubled) in points.iter().zip(on_affine(doubled)) {
                assert_eq!(doubled, affine(ark(*point).double()));
            }
            let cases = all_pairs(&points, &points, most / 4);
            rig.binary($pair_sum, &cases, |a, b| affine(ark(*a) + ark(*b)));
        }
    };
}

curve_test!(
    g1_operations, G1Affine, G1Xyzz, Fp, G1Projective, fp, 9,
    curve_ops::g1_add_affine, curve_ops::g1_add_xyzz, curve_ops::g1_double_xyzz,
    curve_ops::g1_double_affine, curve_ops::g1_neg_affine, curve_ops::g1_neg_xyzz,
    curve_ops::g1_to_affine, curve_ops::g1_pair_sum, also curve_ops::g1_add_affine_closed
);

curve_test!(
    g2_operations,
    G2Affine,
    G2Xyzz,
    Fp2,
    G2Projective,
    fp2,
    10,
    curve_ops::g2_add_affine,
    curve_ops::g2_add_xyzz,
    curve_ops::g2_double_xyzz,
    curve_ops::g2_double_affine,
    curve_ops::g2_neg_affine,
    curve_ops::g2_neg_xyzz,
    curve_ops::g2_to_affine,
    curve_ops::g2_pair_sum
);
