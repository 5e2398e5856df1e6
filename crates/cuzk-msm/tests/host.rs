//! The device plans' twins on the CPU: against `ark-ec`, and with what does not belong together.

use ark_ec::{AffineRepr as _, CurveGroup as _, VariableBaseMSM as _};
use cuzk_field::{Fp, Fr, G1Affine, Scalar};
use cuzk_msm::device::TermCounts;
use cuzk_msm::{
    Error, HostBaseSet, HostMembers, HostMsmPlan, HostScalars, HostSparsePlan, HostWitness,
    count_terms_on_host,
};

fn expected(bases: &[G1Affine], scalars: &[Scalar]) -> G1Affine {
    let bases: Vec<ark_bls12_381::G1Affine> = bases.iter().map(|p| (*p).into()).collect();
    let scalars: Vec<_> = scalars.iter().map(|s| (*s).into()).collect();
    ark_bls12_381::G1Projective::msm_bigint(&bases, &scalars)
        .into_affine()
        .into()
}

/// Equal, opposite and infinite points among others.
fn bases(n: usize) -> Vec<G1Affine> {
    let g = ark_bls12_381::G1Affine::generator();
    let multiple = |k: usize| (g * ark_bls12_381::Fr::from(k as u64)).into_affine();
    let base = |i: usize| match i % 5 {
        0 => multiple(3).into(),
        1 => (-multiple(3)).into(),
        2 => G1Affine::INFINITY,
        _ => multiple(i + 1).into(),
    };
    (0..n).map(base).collect()
}

/// Zeros, ones, r - 1, small and large values.
fn values(n: usize) -> Vec<Scalar> {
    let value = |i: usize| match i % 7 {
        0 | 1 => Scalar::ZERO,
        2 | 3 => Scalar::ONE,
        4 => Scalar::MINUS_ONE,
        5 => Scalar::from(2 + i as u64),
        _ => Scalar::from(-Fr::from(i as u64)),
    };
    (0..n).map(value).collect()
}

fn set(members: HostMembers<'_>, first_base: u32) -> HostBaseSet<'_> {
    HostBaseSet {
        members,
        first_base,
    }
}

/// Ranges and bitmaps around the borders of words, sets that overlap, in either form of the values.
#[test]
fn sparse_sums_are_those_of_the_members() {
    for n in [0, 1, 31, 32, 33, 64, 65, 200] {
        let values = values(n);
        let elements: Vec<Fr> = values.iter().map(|value| Fr::from(*value)).collect();
        let bases = bases(n + 7);
        let density = |i: usize| i % 3 == 1 || (30..66).contains(&i);
        let bitmap: Vec<u32> = (0..n.div_ceil(32))
            .map(|word| (0..32).fold(0, |bits, k| bits | u32::from(density(32 * word + k)) << k))
            .collect();
        // Bits behind the last variable are of values that are zero, but want bases.
        let all = bases.len() - 7..n;
        let ranges = [0..n, 0..0, n..n, n / 3..n, n / 3..n - n / 3, all];
        for witness in [
            HostScalars::Canonical(&values),
            HostScalars::Montgomery(&elements),
        ] {
            let witness = HostWitness::pack(witness).unwrap();
            let mut sets: Vec<_> = ranges
                .iter()
                .map(|range| set(HostMembers::Range(range.clone()), 7))
                .collect();
            let long: Vec<G1Affine> = [&bases[..], &vec![G1Affine::INFINITY; 64]].concat();
            sets.push(set(HostMembers::Bitmap(&bitmap), 3));
            let sums = |members: &[usize], first: usize| {
                let values: Vec<Scalar> = members.iter().map(|i| values[*i]).collect();
                expected(&bases[first..first + members.len()], &values)
            };
            let mut wanted: Vec<G1Affine> = ranges
                .iter()
                .map(|range| sums(&range.clone().collect::<Vec<_>>(), 7))
                .collect();
            let members: Vec<usize> = (0..n).filter(|i| density(*i)).collect();
            wanted.push(sums(&members, 3));
            let counts = count_terms_on_host(&witness, &sets);
            let ones = |range: &std::ops::Range<usize>| {
                values[range.clone()].iter().filter(|v| v.is_one()).count()
            };
            assert_eq!(counts[3].ones, ones(&ranges[3]));
            let plan = HostSparsePlan::<Fp>::new(n, &counts);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| assert_eq!(plan.run(&long, &witness, &sets).unwrap(), wanted));
                }
            });
        }
    }
}

/// Whatever is claimed, nothing is computed or taken for it before it is held against what is there.
#[test]
fn what_does_not_belong_together_is_refused() {
    let (bases, values) = (bases(64), values(64));
    let witness = HostWitness::pack(HostScalars::Canonical(&values)).unwrap();
    let run = |counts: &[TermCounts], sets: &[HostBaseSet<'_>]| {
        HostSparsePlan::<Fp>::new(64, counts)
            .run(&bases, &witness, sets)
            .unwrap_err()
    };
    let range = |range| set(HostMembers::Range(range), 0);
    let all = [range(0..64)];
    let counts = count_terms_on_host(&witness, &all);
    for (ones, rest) in [
        (1 << 28, 0),
        (usize::MAX, 1),
        (usize::MAX, usize::MAX),
        (counts[0].ones - 1, counts[0].rest + 1),
    ] {
        let error = run(&[TermCounts { ones, rest }], &all);
        let found = counts[0].ones;
        let expected = format!("{ones} ones of a set were planned for, and there are {found}");
        assert_eq!(error.to_string(), expected);
    }
    let rest = 1 << 28;
    let ones = counts[0].ones;
    assert!(matches!(
        run(&[TermCounts { ones, rest }], &all),
        Error::Count { expected, .. } if expected == rest
    ));

    let far = [range(0..usize::MAX)];
    assert_eq!(count_terms_on_host(&witness, &far), counts);
    assert_eq!(
        run(&counts, &far).to_string(),
        "64 variables in words of the witness were planned for, and there are 18446744073709551615"
    );
    let (from, to) = (40, 20);
    let backwards = [range(from..to)];
    let none = [TermCounts::default()];
    assert_eq!(count_terms_on_host(&witness, &backwards), none);
    assert!(matches!(
        run(&none, &backwards),
        Error::Count {
            expected: 40,
            found: 20,
            ..
        }
    ));
    for words in [1, 3] {
        let bitmap = vec![0; words];
        let error = run(&none, &[set(HostMembers::Bitmap(&bitmap), 0)]);
        assert!(matches!(error, Error::Count { expected: 2, found, .. } if found == words));
    }
    for first in [1, 64, u32::MAX] {
        let error = run(&counts, &[set(HostMembers::Range(0..64), first)]);
        let term = 64_usize.saturating_sub(first as usize);
        let index = first.max(64) as usize;
        let bases = 64;
        assert_eq!(error, Error::TermOutOfRange { term, index, bases });
    }

    // Dense: the last vector is too short, of many.
    let short = [
        HostScalars::Canonical(&values),
        HostScalars::Canonical(&values[1..]),
    ];
    let error = HostMsmPlan::new(64, 2).run(&bases, &short).unwrap_err();
    assert_eq!(
        error.to_string(),
        "64 scalars were planned for, and there are 63"
    );
    for (n, vectors) in [(1 << 28, 2), (usize::MAX, usize::MAX), (64, 1 << 28)] {
        let refused = HostMsmPlan::new(n, vectors).run(&bases, &short);
        assert!(matches!(refused, Err(Error::Count { .. })));
    }
}
