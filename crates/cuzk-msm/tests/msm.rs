//! Sums against double-and-add in `ark-ec`, on random and hostile inputs.

use ark_ec::{AffineRepr as _, CurveGroup as _, PrimeGroup as _, VariableBaseMSM as _};
use cuzk_field::{Affine, CurveField, Field as _, Fr, G1Affine, G2Affine, Scalar, Xyzz};
use cuzk_msm::{Bases, Error, FixedBase, Selection, msm, msm_selected, multiply_each, signed_sums};
use proptest::prelude::*;

/// Full-size scalars, distinct.
fn scalars(n: usize, seed: u64) -> Vec<Scalar> {
    let step = Fr::from(seed + 5).pow(0x9876_5432_1012_3457);
    let mut value = Fr::from(seed + 2).pow(0xabcd_ef12_3456_7891);
    (0..n)
        .map(|_| {
            value = value * step + Fr::ONE;
            value.into()
        })
        .collect()
}

/// Points (i + seed + 1) G, with double-and-add by the library.
fn g1_points(n: usize, seed: u64) -> Vec<G1Affine> {
    let g = ark_bls12_381::G1Projective::generator();
    let mut point = g * ark_bls12_381::Fr::from(seed + 1);
    let points: Vec<_> = (0..n)
        .map(|_| {
            point += g;
            point
        })
        .collect();
    ark_bls12_381::G1Projective::normalize_batch(&points)
        .into_iter()
        .map(Into::into)
        .collect()
}

fn g2_points(n: usize) -> Vec<G2Affine> {
    let g = ark_bls12_381::G2Projective::generator();
    let mut point = g;
    let points: Vec<_> = (0..n)
        .map(|_| {
            point += g;
            point
        })
        .collect();
    ark_bls12_381::G2Projective::normalize_batch(&points)
        .into_iter()
        .map(Into::into)
        .collect()
}

fn expected_g1(bases: &[G1Affine], scalars: &[Scalar]) -> G1Affine {
    let bases: Vec<ark_bls12_381::G1Affine> = bases.iter().map(|p| (*p).into()).collect();
    let scalars: Vec<_> = scalars.iter().map(|s| (*s).into()).collect();
    ark_bls12_381::G1Projective::msm_bigint(&bases, &scalars)
        .into_affine()
        .into()
}

fn expected_g2(bases: &[G2Affine], scalars: &[Scalar]) -> G2Affine {
    let bases: Vec<ark_bls12_381::G2Affine> = bases.iter().map(|p| (*p).into()).collect();
    let scalars: Vec<_> = scalars.iter().map(|s| (*s).into()).collect();
    ark_bls12_381::G2Projective::msm_bigint(&bases, &scalars)
        .into_affine()
        .into()
}

fn check_g1(bases: &[G1Affine], scalars: &[Scalar], what: &str) {
    let got = msm(bases, scalars).unwrap().to_affine();
    assert_eq!(
        got,
        expected_g1(bases, scalars),
        "{what}, n {}",
        bases.len()
    );
}

#[test]
fn sizes_around_every_block_border() {
    let sizes = [
        0, 1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 255, 256, 257, 2047, 2048, 2049, 4096, 4097, 16383,
        16384, 16385,
    ];
    let bases = g1_points(16385, 0);
    let all = scalars(16385, 1);
    for n in sizes {
        check_g1(&bases[..n], &all[..n], "random");
    }
    let bases = g2_points(2100);
    for n in [0, 1, 2, 3, 17, 64, 2047, 2049, 2100] {
        let got = msm(&bases[..n], &all[..n]).unwrap().to_affine();
        assert_eq!(got, expected_g2(&bases[..n], &all[..n]), "G2, n {n}");
    }
}

#[test]
fn two_to_the_eighteen() {
    let bases = g1_points(1 << 18, 7);
    check_g1(&bases, &scalars(1 << 18, 3), "random");
}

/// Every distribution of scalars that has hurt somebody (PF-01, PF-03, PF-04).
#[test]
fn hostile_scalars() {
    let n = 5000;
    let bases = g1_points(n, 3);
    let random = scalars(n, 9);
    let small = |i: usize, below: u64| Scalar::from((i as u64).wrapping_mul(0x9e37_79b9) % below);
    let mix = [Scalar::ZERO, Scalar::ONE, Scalar::MINUS_ONE];
    let half = Fr::from(2).inverse().unwrap();
    let cases: Vec<(&str, Vec<Scalar>)> = vec![
        ("all zero", vec![Scalar::ZERO; n]),
        ("all one", vec![Scalar::ONE; n]),
        ("all r - 1", vec![Scalar::MINUS_ONE; n]),
        ("all r - 2", vec![Scalar::from(-Fr::from(2)); n]),
        ("all equal", vec![random[0]; n]),
        ("all (r + 1) / 2", vec![half.into(); n]),
        ("all (r - 1) / 2", vec![(half - Fr::ONE).into(); n]),
        ("0, 1, -1", (0..n).map(|i| mix[i % 3]).collect()),
        (
            "99 % one value",
            (0..n)
                .map(|i| random[if i % 100 == 0 { i } else { 0 }])
                .collect(),
        ),
        (
            "99 % bits",
            (0..n)
                .map(|i| if i % 100 == 0 { random[i] } else { small(i, 2) })
                .collect(),
        ),
        ("below 2^16", (0..n).map(|i| small(i, 1 << 16)).collect()),
        (
            "powers of two",
            (0..n)
                .map(|i| Fr::from(2).pow(i as u64 % 254).into())
                .collect(),
        ),
        ("sorted", {
            let mut sorted = random.clone();
            sorted.sort_by_key(|s| s.limbs().iter().rev().copied().collect::<Vec<_>>());
            sorted
        }),
        (
            "one term",
            (0..n)
                .map(|i| if i == n - 1 { random[i] } else { Scalar::ZERO })
                .collect(),
        ),
    ];
    for (what, scalars) in &cases {
        check_g1(&bases, scalars, what);
    }
}

/// Equal, opposite and infinite bases, which meet in one bucket and cancel (GP-01).
#[test]
fn hostile_bases() {
    let n = 3000;
    let points = g1_points(n, 11);
    let random = scalars(n, 4);
    let equal = vec![points[0]; n];
    let opposite: Vec<_> = (0..n)
        .map(|i| if i % 2 == 0 { points[0] } else { -points[0] })
        .collect();
    let pairs: Vec<_> = (0..n)
        .map(|i| {
            if i % 2 == 0 {
                points[i / 2]
            } else {
                -points[i / 2]
            }
        })
        .collect();
    let mut holes = points.clone();
    for i in [0, 1, n / 2, n - 1] {
        holes[i] = G1Affine::INFINITY;
    }
    let same = vec![random[0]; n];
    for (what, bases) in [
        ("equal", &equal),
        ("opposite", &opposite),
        ("pairs", &pairs),
        ("holes", &holes),
        ("all infinity", &vec![G1Affine::INFINITY; n]),
    ] {
        check_g1(bases, &random, what);
        check_g1(bases, &same, &format!("{what}, one scalar"));
        check_g1(bases, &vec![Scalar::ONE; n], &format!("{what}, ones"));
    }
}

#[test]
fn selections_pair_bases_with_their_scalars() {
    let bases = g1_points(100, 2);
    let all = scalars(300, 8);
    let indices: Vec<u32> = (0..100).map(|i| (i * 7) % 300).collect();
    let got = msm_selected(&bases, Selection::Indices(&indices), &all)
        .unwrap()
        .to_affine();
    let picked: Vec<_> = indices.iter().map(|i| all[*i as usize]).collect();
    assert_eq!(got, expected_g1(&bases, &picked));
}

#[test]
fn foreign_bases_give_the_same_sum() {
    let ours = g1_points(500, 1);
    let mut theirs: Vec<ark_bls12_381::G1Affine> = ours.iter().map(|p| (*p).into()).collect();
    theirs[3] = ark_bls12_381::G1Affine::zero();
    let scalars = scalars(500, 6);
    let got = msm(&theirs, &scalars).unwrap().to_affine();
    let mut ours = ours;
    ours[3] = G1Affine::INFINITY;
    assert_eq!(got, expected_g1(&ours, &scalars));
}

#[test]
fn lengths_must_agree() {
    let bases = g1_points(4, 0);
    let scalars = scalars(5, 0);
    assert_eq!(
        msm(bases.as_slice(), &scalars).unwrap_err(),
        Error::LengthMismatch {
            bases: 4,
            scalars: 5
        }
    );
    assert_eq!(
        msm_selected(&bases, Selection::Indices(&[0, 1, 2]), &scalars).unwrap_err(),
        Error::LengthMismatch {
            bases: 4,
            scalars: 3
        }
    );
    assert_eq!(
        msm_selected(&bases, Selection::Indices(&[0, 1, 5, 2]), &scalars).unwrap_err(),
        Error::SelectionOutOfRange {
            base: 2,
            index: 5,
            scalars: 5
        }
    );
}

/// Repeated runs are bit-identical whatever the threads do.
#[test]
fn results_do_not_depend_on_the_schedule() {
    let bases = g1_points(3000, 5);
    let scalars = scalars(3000, 2);
    let first = msm(bases.as_slice(), &scalars).unwrap();
    for threads in [1, 2, 3, 8] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let again = pool.install(|| msm(bases.as_slice(), &scalars)).unwrap();
        assert_eq!(
            (again.x, again.y, again.zz, again.zzz),
            (first.x, first.y, first.zz, first.zzz)
        );
    }
}

fn linear<F: CurveField>(bases: &[Affine<F>], x: &[Scalar], y: &[Scalar]) -> bool {
    let sums: Vec<Scalar> = x
        .iter()
        .zip(y)
        .map(|(x, y)| Scalar::from(Fr::from(*x) + Fr::from(*y)))
        .collect();
    let mut both: Xyzz<F> = msm(bases, x).unwrap();
    both.add_xyzz(&msm(bases, y).unwrap());
    both == msm(bases, &sums).unwrap()
}

/// Infinity, equal and opposite points; scalars 0, 1, -1 and others among full-size ones.
#[test]
fn each_point_has_its_own_multiple() {
    for count in [0, 1, 2, 9, 700] {
        let mut points = g1_points(count, 3);
        let mut scalars = scalars(count, 4);
        let special = [
            Scalar::ZERO,
            Scalar::ONE,
            Scalar::MINUS_ONE,
            7.into(),
            8.into(),
        ];
        for (i, scalar) in special.into_iter().enumerate() {
            if 3 * i < count {
                scalars[3 * i] = scalar;
            }
        }
        if count > 8 {
            points[4] = G1Affine::INFINITY;
            points[5] = points[6];
            points[7] = -points[6];
        }
        let products = multiply_each(&points, &scalars).unwrap();
        for i in 0..count {
            let expected = Xyzz::from(points[i]).mul_scalar(&scalars[i]).to_affine();
            assert_eq!(products[i], expected, "{i} of {count}");
        }
        // All of them zero, or all one bit.
        for value in [Scalar::ZERO, Scalar::from(16)] {
            let products = multiply_each(&points, &vec![value; count]).unwrap();
            for (point, product) in points.iter().zip(&products) {
                assert_eq!(*product, Xyzz::from(*point).mul_scalar(&value).to_affine());
            }
        }
    }
    assert_eq!(
        multiply_each(&g1_points(2, 1), &scalars(3, 1)),
        Err(Error::LengthMismatch {
            bases: 2,
            scalars: 3
        })
    );
}

#[test]
fn runs_of_signed_terms_are_summed() {
    let mut bases = g1_points(50, 1);
    bases[7] = G1Affine::INFINITY;
    bases[9] = bases[8];
    // Empty runs at the ends and between, a run over three blocks, equal and opposite neighbours.
    let lengths = [0, 3, 0, 0, 10_000, 1, 2, 2, 0, 5000, 3000, 0, 0];
    let mut offsets = vec![0];
    let mut terms = Vec::new();
    for length in lengths {
        for i in 0..length as u32 {
            terms.push(match (length, i) {
                (2, i) if offsets.len() == 7 => [16, 18][i as usize],
                (2, i) => [16, 19][i as usize],
                _ => (i * 7919 + length as u32) % 100,
            });
        }
        offsets.push(terms.len());
    }
    let sums = signed_sums(&bases, &terms, &offsets).unwrap();
    assert_eq!(sums.len(), lengths.len());
    for (run, sum) in sums.iter().enumerate() {
        let mut expected = Xyzz::INFINITY;
        for term in &terms[offsets[run]..offsets[run + 1]] {
            let base = bases[(term >> 1) as usize];
            expected.add_affine(&if term & 1 == 1 { -base } else { base });
        }
        assert_eq!(*sum, expected.to_affine(), "run {run}");
    }
    assert_eq!(signed_sums(&bases, &[], &[0]).unwrap(), []);
    assert_eq!(
        signed_sums(&bases, &[0, 100], &[0, 2]),
        Err(Error::TermOutOfRange {
            term: 1,
            index: 50,
            bases: 50
        })
    );
    for offsets in [&[][..], &[0], &[1, 2], &[0, 2, 1, 2], &[0, 3]] {
        let error = signed_sums(&bases, &[0, 2], offsets);
        assert_eq!(error, Err(Error::Runs { terms: 2 }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn sums_are_linear_in_the_scalars(n in 0usize..300, seed in any::<u16>()) {
        let bases = g1_points(n, u64::from(seed));
        prop_assert_eq!(Bases::len(&bases), n);
        prop_assert!(linear(&bases, &scalars(n, 1), &scalars(n, u64::from(seed))));
    }
}

#[test]
fn fixed_base_multiples_are_scalar_multiples() {
    let g = G1Affine::generator();
    let mut scalars = scalars(300, 12);
    scalars[0] = Scalar::ZERO;
    scalars[1] = Scalar::ONE;
    scalars[2] = Scalar::MINUS_ONE;
    scalars[299] = Scalar::from(Fr::from(2).pow(254));
    let got = FixedBase::new(&g).multiply_all(&scalars);
    for (scalar, got) in scalars.iter().zip(&got) {
        assert_eq!(*got, Xyzz::from(g).mul_scalar(scalar).to_affine());
    }
    let g2 = G2Affine::generator();
    let got = FixedBase::new(&g2).multiply_all(&scalars[..20]);
    for (scalar, got) in scalars.iter().zip(&got) {
        assert_eq!(*got, Xyzz::from(g2).mul_scalar(scalar).to_affine());
    }
}

/// All of the above again, in a process that leaves the vector instructions alone.
#[test]
fn the_portable_path_passes_too() {
    if std::env::var_os("CUZK_CPU").is_some() {
        return;
    }
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .env("CUZK_CPU", "portable")
        .status()
        .unwrap();
    assert!(status.success());
}
