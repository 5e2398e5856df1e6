//! Vector arithmetic against `cuzk-field`, vector trees against the portable ones.

use std::arch::x86_64::*;

use cuzk_field::constants::FP_MODULUS;
use cuzk_field::{Affine, CurveField, Field as _, Fp, Fp2, Xyzz};
use proptest::prelude::*;

use super::fp8::*;
use super::lanes::Lanes;
use super::{Available, sums};
use crate::bases::Bases;
use crate::pair_tree::Sums as _;
use crate::portable::Portable;

/// Says so where there is nothing to test.
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
fn is_available() -> bool {
    let available = Available::check().is_some();
    if !available {
        eprintln!("skipped: no AVX-512 IFMA on this processor");
    }
    available
}

#[test]
fn constants_follow_from_their_formulas() {
    assert_eq!(P[0].wrapping_mul(INV) & LIMB_MASK, LIMB_MASK);
    let value = |limbs: &[u64; LIMBS]| element_of_limbs(limbs.map(|limb| limb as i64));
    assert_eq!(value(&P), Fp::ZERO);
    assert_eq!(P_TOP, (FP_MODULUS[5] >> 44) + 1);
    for top in 0..8 * P_TOP {
        let quotient = (u128::from(top) * u128::from(P_TOP_INVERSE)) >> 52;
        assert_eq!(quotient as u64, top / P_TOP);
    }
    for (k, multiple) in MULTIPLES.iter().enumerate() {
        let mut carry = 0;
        for (limb, p) in multiple.iter().zip(P) {
            let sum = u128::from(p) * k as u128 + carry;
            assert_eq!(u128::from(*limb), sum & u128::from(LIMB_MASK));
            carry = sum >> 52;
        }
        assert_eq!(carry, 0);
    }
    for (row, p) in REDUCTIONS.iter().zip(P) {
        for (k, limb) in (0..).zip(row) {
            assert_eq!(*limb, (3 - k) * p as i64);
        }
    }
    // p / 2^384 < 0.1016.
    assert!(u128::from(FP_MODULUS[5]) * 10_000 < 1016 << 64);
}

/// Elements by the words of their Montgomery form: ends of the range, long carries, full limbs.
fn hostile() -> Vec<Fp> {
    let mut values = vec![
        Fp::ZERO,
        Fp::ONE,
        -Fp::ONE,
        Fp::from(2),
        -Fp::from(2),
        Fp::from(2).inverse().unwrap(),
    ];
    let mut push = |words| values.extend(Fp::from_montgomery_limbs(words));
    push([1, 0, 0, 0, 0, 0]);
    push([2, 0, 0, 0, 0, 0]);
    for below in 1..4 {
        let mut words = FP_MODULUS;
        words[0] -= below;
        push(words);
    }
    let top = FP_MODULUS[5];
    push([u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX, top - 1]);
    push([0, 0, 0, 0, 0, top]);
    push([0, 0, 0, 0, 0, top - 1]);
    push([u64::MAX, 0, u64::MAX, 0, u64::MAX, 0]);
    for limb in 0..7 {
        let mut words = [0u64; 6];
        for bit in 52 * limb..52 * limb + 52 {
            words[bit / 64] |= 1 << (bit % 64);
        }
        push(words);
        let mut words = [0u64; 6];
        words[52 * limb / 64] = 1 << (52 * limb % 64);
        push(words);
    }
    values
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn pack(values: &[Fp; 8]) -> Fp8 {
    let mut rows = [_mm512_setzero_si512(); 8];
    for (row, value) in rows.iter_mut().zip(values) {
        *row = row_of(value);
    }
    Fp8(transpose(&rows))
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn unpack(values: &Fp8) -> [Fp; 8] {
    let mut elements = [Fp::ZERO; 8];
    for (element, row) in elements.iter_mut().zip(transpose(&values.reduced().0)) {
        *element = element_of(row);
    }
    elements
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn product<const N: usize>(a: [&Fp8; N], b: [&Fp8; N]) -> Fp8 {
    let mut out = Fp8::zero();
    sum_of_products(&mut out, a, b);
    out
}

/// The value plus k p.
#[target_feature(enable = "avx512f")]
fn raised<const K: usize>(values: &Fp8) -> Fp8 {
    values.minus_plus_p::<K>(&Fp8::zero())
}

/// All operations on eight values of each operand.
#[target_feature(enable = "avx512f,avx512bw,avx512ifma,avx512vbmi")]
fn check_lanes(a: &[Fp; 8], b: &[Fp; 8], c: &[Fp; 8]) {
    let (va, vb, vc) = (pack(a), pack(b), pack(c));
    assert_eq!(unpack(&va), *a);
    for lane in 0..8 {
        assert_eq!(element_of(negated_row(row_of(&a[lane]))), -a[lane]);
    }
    let products = std::array::from_fn(|i| a[i] * b[i]);
    assert_eq!(unpack(&product([&va], [&vb])), products);
    let (a3, b3, b2) = (raised::<3>(&va), raised::<3>(&vb), raised::<2>(&vb));
    assert_eq!(unpack(&product([&a3], [&b3])), products);
    let sums = std::array::from_fn(|i| a[i] * b[i] + c[i] * a[i]);
    assert_eq!(unpack(&product([&a3, &vc], [&b2, &a3])), sums);
    // Everything that `reduced` has to take, and in range afterwards.
    let differences = std::array::from_fn(|i| a[i] - b[i] - c[i]);
    let low = va.minus(&vb).minus(&vc);
    for reduced in [low.reduced(), a3.minus(&vb).minus(&vc).reduced()] {
        assert_eq!(unpack(&reduced), differences);
        for row in transpose(&reduced.0) {
            let mut limbs = [0u64; 8];
            // SAFETY: 64 bytes into 64 bytes.
            unsafe { _mm512_storeu_si512(limbs.as_mut_ptr().cast(), row) };
            assert!(limbs.iter().all(|limb| *limb <= LIMB_MASK));
            assert!(limbs[7] < P_TOP + (P_TOP >> 12));
        }
    }
    // Equality: a mod p against b in every pair of representatives.
    let equal = (0..8).fold(0, |lanes, i| lanes | (u8::from(a[i] == b[i]) << i));
    let difference = vb.minus_plus_p::<2>(&va);
    assert_eq!(difference.vanishes(), equal);
    assert_eq!(difference.may_vanish() & equal, equal);
    assert_eq!(va.minus_plus_p::<2>(&va).may_vanish(), 0xff);
    for zero in [raised::<1>(&Fp8::zero()), raised::<3>(&Fp8::zero())] {
        assert_eq!((zero.vanishes(), zero.may_vanish()), (0xff, 0xff));
    }
    assert_eq!(unpack(&va.replaced(0b1010_0110, &vb)), {
        std::array::from_fn(|i| {
            if 0b1010_0110 >> i & 1 == 1 {
                b[i]
            } else {
                a[i]
            }
        })
    });
    assert_eq!(unpack(&va.rotated::<2>()), {
        std::array::from_fn(|i| a[(i + 2) % 8])
    });
    assert_eq!(va.first(), a[0]);
    assert_eq!(unpack(&Fp8::broadcast(&a[3])), [a[3]; 8]);
    assert_eq!(unpack(&Fp8::one()), [Fp::ONE; 8]);
    // The same in Fp2, with every coefficient as large as a factor may be.
    let x: [Fp2; 8] = std::array::from_fn(|i| Fp2::new(a[i], b[i]));
    let y: [Fp2; 8] = std::array::from_fn(|i| Fp2::new(b[i], c[i]));
    let halves = |z: &Lanes<2>| {
        let (c0, c1) = (unpack(&z.0[0]), unpack(&z.0[1]));
        std::array::from_fn(|i| Fp2::new(c0[i], c1[i]))
    };
    let x2 = Lanes([raised::<2>(&va), b2]);
    let y2 = Lanes([b2, raised::<2>(&vc)]);
    let xy: [Fp2; 8] = halves(&x2.times(&y2));
    assert_eq!(xy, std::array::from_fn(|i| x[i] * y[i]));
    let square: [Fp2; 8] = halves(&{
        let mut square = x2;
        Lanes::square_into(&mut square, &x2);
        square
    });
    assert_eq!(square, std::array::from_fn(|i| x[i].square()));
}

#[test]
fn arithmetic_on_hostile_values() {
    if !is_available() {
        return;
    }
    let values = hostile();
    let n = values.len();
    for i in 0..n {
        for j in 0..n {
            let at = |k: usize| std::array::from_fn(|lane| values[(k + lane * k) % n]);
            let b = std::array::from_fn(|lane| values[(j + lane) % n]);
            let a = [values[i]; 8];
            // SAFETY: checked above.
            unsafe { check_lanes(&a, &b, &at(i + j)) };
        }
    }
}

fn element() -> impl Strategy<Value = Fp> {
    any::<[u64; 6]>().prop_map(|mut words| {
        words[5] %= FP_MODULUS[5];
        Fp::from_montgomery_limbs(words).unwrap()
    })
}

proptest! {
    #[test]
    fn arithmetic_on_random_values(
        a in prop::array::uniform8(element()),
        b in prop::array::uniform8(element()),
        c in prop::array::uniform8(element()),
    ) {
        if is_available() {
            // SAFETY: checked in this line's condition.
            unsafe { check_lanes(&a, &b, &c) };
        }
    }
}

/// Both trees, bit for bit.
#[allow(
    clippy::ptr_arg,
    reason = "an object is made of it, which a slice cannot be"
)]
fn check_sums<F: CurveField>(points: &Vec<Affine<F>>, signed_indices: &[u32], lengths: &[u32]) {
    let bases: &dyn Bases<F> = points;
    let expected = Portable::default().sum_runs(bases, signed_indices, &mut lengths.to_vec());
    let mut vectors = sums::<F>().unwrap();
    for _ in 0..2 {
        let got = vectors.sum_runs(bases, signed_indices, &mut lengths.to_vec());
        assert!(got == expected, "lengths {lengths:?}");
    }
}

fn multiples<F: CurveField>(n: usize) -> Vec<Affine<F>> {
    let mut sum = Xyzz::<F>::INFINITY;
    let points: Vec<_> = (0..n)
        .map(|_| {
            sum.add_affine(&F::generator());
            sum
        })
        .collect();
    Xyzz::normalize_all(&points)
}

/// Points that are equal, opposite or infinite in every mixture, with runs of every length.
fn check_hostile_sums<F: CurveField>() {
    let n = 600;
    let distinct = multiples::<F>(n);
    let mut cases = vec![
        distinct.clone(),
        vec![distinct[0]; n],
        vec![Affine::INFINITY; n],
        (0..n)
            .map(|i| {
                if i % 2 == 0 {
                    distinct[0]
                } else {
                    -distinct[0]
                }
            })
            .collect(),
    ];
    // Few values, so that sums of later rounds meet again and cancel.
    for values in [1, 2, 3, 5] {
        let mut state = 1u32;
        cases.push(
            (0..n)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let point = distinct[(state >> 16) as usize % values];
                    match state >> 29 {
                        0 => Affine::INFINITY,
                        1..=3 => -point,
                        _ => point,
                    }
                })
                .collect(),
        );
    }
    // One exception in an otherwise plain block.
    for at in [0, 1, 16, 17, n - 1] {
        let mut points = distinct.clone();
        points[at] = Affine::INFINITY;
        cases.push(points.clone());
        points[at] = points[at ^ 1];
        cases.push(points.clone());
        points[at] = -points[at];
        cases.push(points);
    }
    let signs = [0u32, 1, 0xb5];
    for points in &cases {
        for pattern in signs {
            let signed: Vec<u32> = (0..n as u32)
                .map(|i| (i << 1) | ((pattern >> (i % 8)) & 1))
                .collect();
            for length in [1, 2, 3, 4, 7, 16, 31, 33, 64, 600] {
                let whole = n / length;
                let mut lengths = vec![length as u32; whole];
                if n % length != 0 {
                    lengths.push((n % length) as u32);
                }
                check_sums(points, &signed, &lengths);
            }
            let mut lengths = Vec::new();
            let mut left = n as u32;
            for next in (1..20).cycle() {
                lengths.push(next.min(left));
                left -= next.min(left);
                if left == 0 {
                    break;
                }
            }
            check_sums(points, &signed, &lengths);
        }
        check_sums(points, &[], &[]);
        check_sums(points, &[7], &[1]);
        check_sums(points, &[7, 9], &[2]);
    }
}

#[test]
fn sums_are_those_of_the_portable_tree() {
    if is_available() {
        check_hostile_sums::<Fp>();
        check_hostile_sums::<Fp2>();
    }
}
