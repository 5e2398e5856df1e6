//! The fields' operations.

use ark_bls12_381::{Fq, Fq2};
use ark_ff::Field as _;
use cuzk_field::constants::{FP_MODULUS, FR_MODULUS};
use cuzk_field::{Fp, Fp2, Fr};
use cuzk_kernels::field_ops;

use crate::rig::Rig;
use crate::values::{
    Random, add_limbs, bytes_of, firsts, hostile_fp, hostile_fp2, hostile_fr, lifted_fp, lifted_fr,
    pairs, reduced, value_of,
};

pub(crate) fn fr_operations(rig: &Rig) {
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
pub(crate) fn fr_lazy_operations(rig: &Rig) {
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
    check(
        &both,
        rig.of_pairs(field_ops::fr_add_lazy, &both),
        &|a, b| ark(a) + ark(b),
    );
    check(
        &both,
        rig.of_pairs(field_ops::fr_sub_lazy, &both),
        &|a, b| ark(a) - ark(b),
    );
    check(
        &second,
        rig.of_pairs(field_ops::fr_mul_lazy, &second),
        &|a, b| ark(a) * ark(b),
    );
}

pub(crate) fn fp_operations(rig: &Rig) {
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
pub(crate) fn fp_lazy_operations(rig: &Rig) {
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
    let found = rig.of_pairs(field_ops::fp_mul_lazy, &products);
    for ((a, b), found) in products.iter().zip(found) {
        assert_eq!(residue(found), (ark(*a) * ark(*b)).into());
    }
    let squares: Vec<Fp> = canonical.iter().map(|(a, _)| lift(*a, 9)).collect();
    let found = rig.of_values(field_ops::fp_sqr_lazy, &squares);
    for (a, found) in squares.iter().zip(found) {
        assert_eq!(residue(found), ark(*a).square().into());
    }
    let mut words = Random(7);
    let mut any: Vec<Fp> = squares.clone();
    any.extend((0..rig.count / 4).map(|_| value_of::<Fp, 6>(words.limbs(64))));
    any.push(value_of([u64::MAX; 6]));
    rig.unary(field_ops::fp_canonical, &any, |a| residue(*a));
}

pub(crate) fn fp2_operations(rig: &Rig) {
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

/// Lengths around a block, and arrays that do not match.
pub(crate) fn every_length(rig: &Rig) {
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
