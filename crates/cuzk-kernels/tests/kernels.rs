//! Field and curve kernels against arkworks: once on the emulator, and on the card where there is one.
//!
//! `CUZK_REQUIRE_GPU=1` makes a missing card a failure. On a card each operation sees a million
//! elements, on the emulator thousands.

#![allow(
    clippy::type_complexity,
    reason = "a table of kernels names their types"
)]

use std::fmt::Debug;
use std::sync::Arc;

use ark_bls12_381::{Fq, Fq2, G1Projective, G2Projective};
use ark_ff::{AdditiveGroup as _, Field as _};
use cuzk_field::constants::{FP_MODULUS, FR_MODULUS};
use cuzk_field::{Affine, CurveField, Fp, Fp2, Fr, G1Affine, G1Xyzz, G2Affine, G2Xyzz, Xyzz};
use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::{
    Device, DeviceBuf, DeviceView, DeviceViewMut, GIB, Pod, Settings, Stream, list,
};
use cuzk_kernels::{Launcher, Result, curve_ops, field_bench, field_ops, self_test};
use cuzk_testkit::limbs::corners;

/// Where the kernels run, and how much they are given.
struct Rig {
    launcher: Box<dyn Launcher>,
    stream: Stream,
    /// Random elements for an operation of one multiplication's cost.
    count: usize,
}

impl Rig {
    fn on(device: &Device, count: usize) -> Self {
        Self {
            launcher: cuzk_kernels::open(device).unwrap(),
            stream: device.stream("test").unwrap(),
            count,
        }
    }

    fn emulated() -> Self {
        let settings = Settings {
            reserve: 0,
            ..Settings::default()
        };
        let device = Device::with_driver(Arc::new(SimDriver::new(GIB)), settings).unwrap();
        // Under sanitizers each element costs much more.
        Self::on(
            &device,
            if option_env!("CUZK_SANITIZER").is_some() {
                64
            } else {
                4000
            },
        )
    }

    fn card() -> Option<Self> {
        if let Err(reason) = list() {
            cuzk_testkit::no_gpu(&reason);
            return None;
        }
        let device = Device::open(&"0".parse().unwrap(), Settings::default()).unwrap();
        Some(Self::on(&device, 1 << 20))
    }

    fn upload<T: Pod>(&self, values: &[T]) -> DeviceBuf<T> {
        let device = self.launcher.device();
        let mut buffer = device.alloc("input", values.len(), &self.stream).unwrap();
        self.stream.upload_slice(values, &mut buffer).unwrap();
        buffer
    }

    /// What `kernel` writes into `len` elements.
    fn output<T: Pod>(
        &self,
        len: usize,
        kernel: impl FnOnce(&dyn Launcher, &Stream, DeviceViewMut<'_, T>) -> Result<()>,
    ) -> Vec<T> {
        let mut out = self
            .launcher
            .device()
            .alloc::<T>("out", len, &self.stream)
            .unwrap();
        self.stream.fill(&mut out, 0xff).unwrap();
        kernel(&*self.launcher, &self.stream, out.view_mut()).unwrap();
        let mut found = vec![T::zeroed(); len];
        self.stream.download_slice(&out, &mut found).unwrap();
        found
    }

    /// A kernel of one input against `oracle`.
    fn unary<A: Pod + Debug, T: Pod + PartialEq + Debug>(
        &self,
        kernel: fn(&dyn Launcher, &Stream, DeviceView<'_, A>, DeviceViewMut<'_, T>) -> Result<()>,
        values: &[A],
        oracle: impl Fn(&A) -> T,
    ) {
        let input = self.upload(values);
        let found = self.output(values.len(), |launcher, stream, out| {
            kernel(launcher, stream, input.view(), out)
        });
        for (value, found) in values.iter().zip(&found) {
            assert_eq!(*found, oracle(value), "of {value:?}");
        }
    }

    /// A kernel of two inputs against `oracle`.
    fn binary<A: Pod + Debug, B: Pod + Debug, T: Pod + PartialEq + Debug>(
        &self,
        kernel: fn(
            &dyn Launcher,
            &Stream,
            DeviceView<'_, A>,
            DeviceView<'_, B>,
            DeviceViewMut<'_, T>,
        ) -> Result<()>,
        pairs: &[(A, B)],
        oracle: impl Fn(&A, &B) -> T,
    ) {
        let (a, b): (Vec<A>, Vec<B>) = pairs.iter().copied().unzip();
        let (a_buffer, b_buffer) = (self.upload(&a), self.upload(&b));
        let found = self.output(pairs.len(), |launcher, stream, out| {
            kernel(launcher, stream, a_buffer.view(), b_buffer.view(), out)
        });
        for ((a, b), found) in pairs.iter().zip(&found) {
            assert_eq!(*found, oracle(a, b), "of {a:?} and {b:?}");
        }
    }
}

cuzk_testkit::on_both!(
    known_answers,
    fr_operations,
    fr_lazy_operations,
    fp_operations,
    fp_lazy_operations,
    fp2_operations,
    g1_operations,
    g2_operations,
    every_length,
    chains,
    gathered_sums,
);

// Values.

/// splitmix64.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn limbs<const N: usize>(&mut self, top_bits: u32) -> [u64; N] {
        let mut limbs = std::array::from_fn(|_| self.word());
        limbs[N - 1] >>= 64 - top_bits;
        limbs
    }

    fn fr(&mut self) -> Fr {
        loop {
            if let Some(value) = Fr::from_montgomery_limbs(self.limbs(63)) {
                return value;
            }
        }
    }

    fn fp(&mut self) -> Fp {
        loop {
            if let Some(value) = Fp::from_montgomery_limbs(self.limbs(61)) {
                return value;
            }
        }
    }

    fn fp2(&mut self) -> Fp2 {
        Fp2::new(self.fp(), self.fp())
    }
}

fn hostile_fr() -> Vec<Fr> {
    let values = corners(FR_MODULUS).into_iter();
    values
        .map(|limbs| Fr::from_montgomery_limbs(limbs).unwrap())
        .collect()
}

fn hostile_fp() -> Vec<Fp> {
    let values = corners(FP_MODULUS).into_iter();
    values
        .map(|limbs| Fp::from_montgomery_limbs(limbs).unwrap())
        .collect()
}

fn hostile_fp2() -> Vec<Fp2> {
    let values: Vec<Fp> = hostile_fp().into_iter().step_by(6).collect();
    values
        .iter()
        .flat_map(|a| values.iter().map(|b| Fp2::new(*a, *b)))
        .collect()
}

/// Every pair of hostile values, then random ones.
fn pairs<T: Copy>(hostile: &[T], count: usize, mut random: impl FnMut() -> T) -> Vec<(T, T)> {
    let mut pairs: Vec<(T, T)> = hostile
        .iter()
        .flat_map(|a| hostile.iter().map(|b| (*a, *b)))
        .collect();
    pairs.extend((0..count).map(|_| (random(), random())));
    pairs
}

fn firsts<T: Copy>(pairs: &[(T, T)]) -> Vec<T> {
    pairs.iter().map(|(a, _)| *a).collect()
}

fn add_limbs<const N: usize>(a: [u64; N], b: [u64; N]) -> [u64; N] {
    let mut carry = false;
    let sum = std::array::from_fn(|i| {
        let (sum, c1) = a[i].overflowing_add(b[i]);
        let (sum, c2) = sum.overflowing_add(u64::from(carry));
        carry = c1 | c2;
        sum
    });
    assert!(!carry);
    sum
}

/// The same residue, one modulus higher; limbs that no constructor of `Fr` gives.
fn lifted_fr(value: Fr, times: usize) -> Fr {
    let lift = |limbs, _| add_limbs(limbs, FR_MODULUS);
    let limbs = (0..times).fold(bytes_of::<_, 4>(value), lift);
    value_of(limbs)
}

fn lifted_fp(value: Fp, times: usize) -> Fp {
    let lift = |limbs, _| add_limbs(limbs, FP_MODULUS);
    let limbs = (0..times).fold(bytes_of::<_, 6>(value), lift);
    value_of(limbs)
}

fn bytes_of<T: Pod, const N: usize>(value: T) -> [u64; N] {
    bytemuck::cast(value)
}

fn value_of<T: Pod, const N: usize>(limbs: [u64; N]) -> T {
    bytemuck::cast(limbs)
}

/// Subtracts the modulus while that is possible.
fn reduced<const N: usize>(mut limbs: [u64; N], modulus: [u64; N]) -> [u64; N] {
    while limbs.iter().rev().ge(modulus.iter().rev()) {
        let mut borrow = false;
        for (limb, m) in limbs.iter_mut().zip(modulus) {
            let (d, b1) = limb.overflowing_sub(m);
            let (d, b2) = d.overflowing_sub(u64::from(borrow));
            (*limb, borrow) = (d, b1 | b2);
        }
    }
    limbs
}

// Tests.

fn known_answers(rig: &Rig) {
    let passed = self_test(&*rig.launcher).unwrap();
    assert!(passed.passed.len() >= 8, "{passed:?}");
}

fn fr_operations(rig: &Rig) {
    type Ark = ark_bls12_381::Fr;
    let ark = |value: &Fr| Ark::from(*value);
    let mut random = Random(1);
    let cases = pairs(&hostile_fr(), rig.count, || random.fr());
    rig.binary(field_ops::fr_add, &cases, |a, b| (ark(a) + ark(b)).into());
    rig.binary(field_ops::fr_sub, &cases, |a, b| (ark(a) - ark(b)).into());
    rig.binary(field_ops::fr_mul, &cases, |a, b| (ark(a) * ark(b)).into());
    let values = firsts(&cases);
    rig.unary(field_ops::fr_neg, &values, |a| (-ark(a)).into());
    rig.unary(field_ops::fr_sqr, &values, |a| ark(a).square().into());
    let few = &cases[..hostile_fr().len() + rig.count / 16];
    let few: Vec<Fr> = few.iter().map(|(_, b)| *b).collect();
    rig.unary(field_ops::fr_inv, &few, |a| {
        ark(a).inverse().unwrap_or_default().into()
    });
}

/// Values in [0, 2r): the results are compared modulo r, and their bound is checked.
fn fr_lazy_operations(rig: &Rig) {
    let twice = add_limbs(FR_MODULUS, FR_MODULUS);
    let residue = |value: Fr| -> Fr { value_of(reduced(bytes_of(value), FR_MODULUS)) };
    let ark = |value: &Fr| ark_bls12_381::Fr::from(residue(*value));
    let mut random = Random(2);
    let canonical = pairs(&hostile_fr(), rig.count, || random.fr());
    let mut lifts = Random(3);
    let mut lazy = |value: Fr| lifted_fr(value, lifts.word() as usize % 2);
    let both: Vec<(Fr, Fr)> = canonical
        .iter()
        .map(|(a, b)| (lazy(*a), lazy(*b)))
        .collect();
    let second: Vec<(Fr, Fr)> = canonical.iter().map(|(a, b)| (*a, lazy(*b))).collect();
    let check =
        |cases: &[(Fr, Fr)], found: Vec<Fr>, oracle: &dyn Fn(&Fr, &Fr) -> ark_bls12_381::Fr| {
            for ((a, b), found) in cases.iter().zip(found) {
                let limbs: [u64; 4] = bytes_of(found);
                assert!(limbs.iter().rev().lt(twice.iter().rev()), "{a:?}, {b:?}");
                assert_eq!(residue(found), Fr::from(oracle(a, b)));
            }
        };
    let run = |cases: &[(Fr, Fr)],
               kernel: fn(
        &dyn Launcher,
        &Stream,
        DeviceView<'_, Fr>,
        DeviceView<'_, Fr>,
        DeviceViewMut<'_, Fr>,
    ) -> Result<()>| {
        let (a, b): (Vec<Fr>, Vec<Fr>) = cases.iter().copied().unzip();
        let (a, b) = (rig.upload(&a), rig.upload(&b));
        rig.output(cases.len(), |launcher, stream, out| {
            kernel(launcher, stream, a.view(), b.view(), out)
        })
    };
    check(&both, run(&both, field_ops::fr_add_lazy), &|a, b| {
        ark(a) + ark(b)
    });
    check(&both, run(&both, field_ops::fr_sub_lazy), &|a, b| {
        ark(a) - ark(b)
    });
    check(&second, run(&second, field_ops::fr_mul_lazy), &|a, b| {
        ark(a) * ark(b)
    });
}

fn fp_operations(rig: &Rig) {
    let ark = |value: &Fp| Fq::from(*value);
    let mut random = Random(4);
    let cases = pairs(&hostile_fp(), rig.count, || random.fp());
    rig.binary(field_ops::fp_add, &cases, |a, b| (ark(a) + ark(b)).into());
    rig.binary(field_ops::fp_sub, &cases, |a, b| (ark(a) - ark(b)).into());
    rig.binary(field_ops::fp_mul, &cases, |a, b| (ark(a) * ark(b)).into());
    let values = firsts(&cases);
    rig.unary(field_ops::fp_neg, &values, |a| (-ark(a)).into());
    rig.unary(field_ops::fp_sqr, &values, |a| ark(a).square().into());
    let few = &cases[..hostile_fp().len() + rig.count / 16];
    let few: Vec<Fp> = few.iter().map(|(_, b)| *b).collect();
    rig.unary(field_ops::fp_inv, &few, |a| {
        ark(a).inverse().unwrap_or_default().into()
    });

    // a b + c d, the second pair being the case some places on.
    let others: Vec<(Fp, Fp)> = cases
        .iter()
        .cycle()
        .skip(7)
        .take(cases.len())
        .copied()
        .collect();
    let column = |cases: &[(Fp, Fp)], first: bool| -> Vec<Fp> {
        cases
            .iter()
            .map(|(a, b)| if first { *a } else { *b })
            .collect()
    };
    let (a, b) = (
        rig.upload(&column(&cases, true)),
        rig.upload(&column(&cases, false)),
    );
    let (c, d) = (
        rig.upload(&column(&others, true)),
        rig.upload(&column(&others, false)),
    );
    let found = rig.output(cases.len(), |launcher, stream, out| {
        field_ops::fp_mul_sum(
            launcher,
            stream,
            a.view(),
            b.view(),
            c.view(),
            d.view(),
            out,
        )
    });
    for (((a, b), (c, d)), found) in cases.iter().zip(&others).zip(found) {
        assert_eq!(found, (ark(a) * ark(b) + ark(c) * ark(d)).into());
    }
}

/// Operands beyond p, as far as each entry allows; the results are compared modulo p.
fn fp_lazy_operations(rig: &Rig) {
    let residue = |value: Fp| -> Fp { value_of(reduced(bytes_of(value), FP_MODULUS)) };
    let ark = |value: Fp| Fq::from(residue(value));
    let mut random = Random(5);
    let canonical = pairs(&hostile_fp(), rig.count, || random.fp());
    let mut lifts = Random(6);
    let mut lift = |value: Fp, below: usize| lifted_fp(value, lifts.word() as usize % below);
    // a in [0, 7p), b any twelve words.
    let products: Vec<(Fp, Fp)> = canonical
        .iter()
        .map(|(a, b)| (lift(*a, 7), lift(*b, 9)))
        .collect();
    let (a, b): (Vec<Fp>, Vec<Fp>) = products.iter().copied().unzip();
    let (a_buffer, b_buffer) = (rig.upload(&a), rig.upload(&b));
    let found = rig.output(a.len(), |launcher, stream, out| {
        field_ops::fp_mul_lazy(launcher, stream, a_buffer.view(), b_buffer.view(), out)
    });
    for ((a, b), found) in products.iter().zip(found) {
        assert_eq!(residue(found), (ark(*a) * ark(*b)).into());
    }
    let squares: Vec<Fp> = canonical.iter().map(|(a, _)| lift(*a, 9)).collect();
    let input = rig.upload(&squares);
    let found = rig.output(squares.len(), |launcher, stream, out| {
        field_ops::fp_sqr_lazy(launcher, stream, input.view(), out)
    });
    for (a, found) in squares.iter().zip(found) {
        assert_eq!(residue(found), ark(*a).square().into());
    }
    let mut words = Random(7);
    let mut any: Vec<Fp> = squares.clone();
    any.extend((0..rig.count / 4).map(|_| value_of::<Fp, 6>(words.limbs(64))));
    any.push(value_of([u64::MAX; 6]));
    rig.unary(field_ops::fp_canonical, &any, |a| residue(*a));
}

fn fp2_operations(rig: &Rig) {
    let ark = |value: &Fp2| Fq2::from(*value);
    let mut random = Random(8);
    let cases = pairs(&hostile_fp2(), rig.count / 4, || random.fp2());
    rig.binary(field_ops::fp2_add, &cases, |a, b| (ark(a) + ark(b)).into());
    rig.binary(field_ops::fp2_sub, &cases, |a, b| (ark(a) - ark(b)).into());
    rig.binary(field_ops::fp2_mul, &cases, |a, b| (ark(a) * ark(b)).into());
    let values = firsts(&cases);
    rig.unary(field_ops::fp2_neg, &values, |a| (-ark(a)).into());
    rig.unary(field_ops::fp2_sqr, &values, |a| ark(a).square().into());
    let few = &cases[..hostile_fp2().len() + rig.count / 16];
    let few: Vec<Fp2> = few.iter().map(|(_, b)| *b).collect();
    rig.unary(field_ops::fp2_inv, &few, |a| {
        ark(a).inverse().unwrap_or_default().into()
    });
}

/// Multiples of the generator, their opposites, infinity: every pair of them meets equal, opposite
/// and infinite operands.
fn points<F: CurveField>(count: usize) -> Vec<Affine<F>> {
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
fn in_xyzz<F: CurveField>(points: &[Affine<F>], mut random: impl FnMut() -> F) -> Vec<Xyzz<F>> {
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

fn all_pairs<A: Copy, B: Copy>(a: &[A], b: &[B], most: usize) -> Vec<(A, B)> {
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
        fn $test(rig: &Rig) {
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
            let (a, b): (Vec<_>, Vec<_>) = mixed.iter().copied().unzip();
            let (a, b) = (rig.upload(&a), rig.upload(&b));
            for kernel in [$add_affine $(, $also)?] {
                let found = rig.output(mixed.len(), |launcher, stream, out| {
                    kernel(launcher, stream, a.view(), b.view(), out)
                });
                assert!(on_affine(found) == expected, "mixed addition");
            }

            let full = all_pairs(&sums, &sums, most);
            let (a, b): (Vec<_>, Vec<_>) = full.iter().copied().unzip();
            let (a, b) = (rig.upload(&a), rig.upload(&b));
            let found = rig.output(full.len(), |launcher, stream, out| {
                $add_xyzz(launcher, stream, a.view(), b.view(), out)
            });
            for ((a, b), found) in full.iter().zip(on_affine(found)) {
                assert_eq!(found, affine(ark(a.to_affine()) + ark(b.to_affine())));
            }

            let input = rig.upload(&sums);
            let doubled = rig.output(sums.len(), |l, s, out| $double_xyzz(l, s, input.view(), out));
            let opposite = rig.output(sums.len(), |l, s, out| $neg_xyzz(l, s, input.view(), out));
            for ((sum, doubled), opposite) in
                sums.iter().zip(on_affine(doubled)).zip(on_affine(opposite))
            {
                assert_eq!(doubled, affine(ark(sum.to_affine()).double()));
                assert_eq!(opposite, affine(-ark(sum.to_affine())));
            }
            rig.unary($to_affine, &sums, |sum| sum.to_affine());

            rig.unary($neg_affine, &points, |point| affine(-ark(*point)));
            let input = rig.upload(&points);
            let doubled = rig.output(points.len(), |l, s, out| $double_affine(l, s, input.view(), out));
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

/// Lengths around a block, and arrays that do not match.
fn every_length(rig: &Rig) {
    let mut random = Random(11);
    for len in [0, 1, 2, 255, 256, 257, 1000] {
        let cases: Vec<(Fr, Fr)> = (0..len).map(|_| (random.fr(), random.fr())).collect();
        rig.binary(field_ops::fr_mul, &cases, |a, b| *a * *b);
    }
    let (short, long) = (rig.upload(&[random.fr(); 3]), rig.upload(&[random.fr(); 4]));
    let mut out = rig.upload(&[Fr::default(); 3]);
    let refused = field_ops::fr_add(
        &*rig.launcher,
        &rig.stream,
        short.view(),
        long.view(),
        out.view_mut(),
    );
    let text = refused.unwrap_err().to_string();
    assert_eq!(text, "cuzk_field_ops_fr_add: b has 4 elements, expected 3");
}

/// The chains that the benchmark times.
fn chains(rig: &Rig) {
    const TURNS: u32 = 9;
    let mut random = Random(12);
    let len = 3 * field_bench::THREADS;
    let (launcher, stream) = (&*rig.launcher, &rig.stream);

    let (x, y): (Vec<Fp>, Vec<Fp>) = (0..len).map(|_| (random.fp(), random.fp())).unzip();
    let (mut product, factor) = (rig.upload(&x), rig.upload(&y));
    let mut square = rig.upload(&x);
    field_bench::fp_mul(launcher, stream, product.view_mut(), factor.view(), TURNS).unwrap();
    field_bench::fp_sqr(launcher, stream, square.view_mut(), TURNS).unwrap();
    let mut found = (x.clone(), x.clone());
    stream.download_slice(&product, &mut found.0).unwrap();
    stream.download_slice(&square, &mut found.1).unwrap();
    for i in 0..len {
        let power = Fq::from(y[i]).pow([u64::from(TURNS)]);
        assert_eq!(found.0[i], (Fq::from(x[i]) * power).into());
        assert_eq!(found.1[i], Fq::from(x[i]).pow([1 << TURNS]).into());
    }

    let (x, y): (Vec<Fr>, Vec<Fr>) = (0..len).map(|_| (random.fr(), random.fr())).unzip();
    let (mut product, factor) = (rig.upload(&x), rig.upload(&y));
    let mut square = rig.upload(&x);
    field_bench::fr_mul(launcher, stream, product.view_mut(), factor.view(), TURNS).unwrap();
    field_bench::fr_sqr(launcher, stream, square.view_mut(), TURNS).unwrap();
    let mut found = (x.clone(), x.clone());
    stream.download_slice(&product, &mut found.0).unwrap();
    stream.download_slice(&square, &mut found.1).unwrap();
    for i in 0..len {
        let ark = ark_bls12_381::Fr::from;
        let power = ark(y[i]).pow([u64::from(TURNS)]);
        assert_eq!(found.0[i], (ark(x[i]) * power).into());
        assert_eq!(found.1[i], ark(x[i]).pow([1 << TURNS]).into());
    }
}

fn gathered_sums(rig: &Rig) {
    let points: Vec<G1Affine> = points(5);
    let (buckets, per_bucket) = (field_bench::THREADS + 9, 12);
    let mut random = Random(13);
    let indices: Vec<u32> = (0..buckets * per_bucket)
        .map(|_| (random.word() % points.len() as u64) as u32)
        .collect();
    let plan = field_bench::GatherPlan::new(&rig.stream, &indices, buckets).unwrap();
    let table = rig.upload(&points);
    let sums = rig.output::<G1Xyzz>(buckets, |launcher, stream, out| {
        field_bench::g1_gather(launcher, stream, table.view(), &plan, out)
    });
    for (bucket, sum) in sums.iter().enumerate() {
        let mut expected = Xyzz::INFINITY;
        for row in indices.chunks(buckets) {
            expected.add_affine(&points[row[bucket] as usize]);
        }
        assert_eq!(sum.to_affine(), expected.to_affine());
    }
    // A table that is shorter than the plan supposes.
    let short = rig.upload(&points[..3]);
    let mut out = rig
        .launcher
        .device()
        .alloc("out", buckets, &rig.stream)
        .unwrap();
    let refused = field_bench::g1_gather(
        &*rig.launcher,
        &rig.stream,
        short.view(),
        &plan,
        out.view_mut(),
    );
    assert!(refused.is_err());
}
