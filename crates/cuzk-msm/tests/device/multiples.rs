//! Tables of multiples against doublings on the host, and sums over them against the host's.

use std::sync::Arc;

use cuzk_field::{Affine, Fp, Fp2, Scalar, Xyzz};
use cuzk_msm::device::{DeviceCurve, Error, MsmPlan, Multiples, Scalars, Streams};
use cuzk_msm::msm;

use crate::rig::Rig;
use crate::values::{hostile_bases, hostile_scalars, multiples as points, scalars};

cuzk_testkit::on_both!(tables, sums, g2, several_vectors, little_scratch);

/// The table on the device, its first points uploaded and the others made.
fn table<F: DeviceCurve>(
    rig: &Rig,
    choice: &Multiples<F>,
    bases: &[Affine<F>],
) -> cuzk_gpu_mem::DeviceBuf<Affine<F>> {
    let mut table = rig.room::<Affine<F>>(choice.table_len());
    let target = table.view_mut().slice(..bases.len());
    rig.stream.upload_slice(bases, target).unwrap();
    choice
        .make(&*rig.launcher, &rig.stream, table.view_mut())
        .unwrap();
    table
}

fn run<F: DeviceCurve>(
    rig: &Rig,
    plan: &MsmPlan<F>,
    table: &cuzk_gpu_mem::DeviceBuf<Affine<F>>,
    vectors: &[Vec<Scalar>],
) -> Vec<Affine<F>> {
    let buffers: Vec<_> = vectors.iter().map(|vector| rig.upload(vector)).collect();
    let views: Vec<_> = buffers
        .iter()
        .map(|buffer| Scalars::Canonical(buffer.view()))
        .collect();
    let mut scratch = rig.room::<u8>(plan.footprint().device as usize);
    let host = rig.device().host();
    let result = host.pinned("sums", plan.result_len()).unwrap();
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let scratch = scratch.view_mut();
    let pending = plan.run(launcher, stream, table.view(), &views, scratch, result);
    pending.unwrap().wait().unwrap()
}

/// Every point of the table, infinity and hostile bases among them.
fn check_table<F: DeviceCurve>(rig: &Rig, n: usize, sets: u32, count: u32) {
    let mut bases = points::<F>(n);
    bases[n / 2] = Affine::INFINITY;
    bases[n - 1] = -bases[0];
    let choice = Multiples::<F>::new(rig.device().info(), n, sets, count).unwrap();
    assert_eq!(
        (choice.count(), choice.table_len()),
        (count, n * count as usize)
    );
    let found = rig.download(&table(rig, &choice, &bases));
    let mut expected: Vec<Xyzz<F>> = bases.iter().map(|base| Xyzz::from(*base)).collect();
    for (multiple, found) in found.chunks(n).enumerate() {
        assert_eq!(found, Xyzz::normalize_all(&expected), "multiple {multiple}");
        for point in &mut expected {
            for _ in 0..choice.step_bits() {
                *point = point.double();
            }
        }
    }
}

fn tables(rig: &Rig) {
    check_table::<Fp>(rig, if rig.is_card { 5000 } else { 6 }, 1, 15);
    check_table::<Fp>(rig, 3, 6, 2);
    check_table::<Fp2>(rig, if rig.is_card { 1000 } else { 3 }, 3, 5);
}

#[track_caller]
fn check<F: DeviceCurve>(
    rig: &Rig,
    (sets, count): (u32, u32),
    bases: &[Affine<F>],
    vector: &[Scalar],
    what: &str,
) {
    let info = rig.device().info();
    let choice = Multiples::<F>::new(info, bases.len(), sets, count).unwrap();
    let table = table(rig, &choice, bases);
    let streams = Arc::new(Streams::new(rig.device()).unwrap());
    let plan = MsmPlan::with_multiples(Some(&streams), info, &choice, 1, u64::MAX).unwrap();
    assert_eq!(plan.windows().0, sets);
    let found = run(rig, &plan, &table, &[vector.to_vec()]);
    let expected = msm(bases, vector).unwrap().to_affine();
    assert_eq!(found, [expected], "{what}, {sets} sets, {count} multiples");
}

/// (sets, multiples): few buckets for the emulator, and those that plans choose for the card.
fn cuts(rig: &Rig) -> &'static [(u32, u32)] {
    if rig.is_card {
        &[
            (1, 12),
            (1, 13),
            (1, 15),
            (1, 16),
            (2, 6),
            (3, 4),
            (3, 5),
            (6, 2),
            (1, 11),
            (12, 1),
        ]
    } else {
        &[(1, 32), (4, 8), (14, 3)]
    }
}

fn sums(rig: &Rig) {
    for &cut in cuts(rig) {
        for n in if rig.is_card {
            &[1, 2, 33, 14_337, 100_000][..]
        } else {
            &[1, 45]
        } {
            check(rig, cut, &points::<Fp>(*n), &scalars(*n, 5), "random");
        }
    }
    let (n, cut) = if rig.is_card {
        (20_000, (1, 13))
    } else {
        (20, (1, 32))
    };
    let bases = points::<Fp>(n);
    for (what, vector) in hostile_scalars(n) {
        check(rig, cut, &bases, &vector, what);
    }
    for (what, bases) in hostile_bases::<Fp>(n) {
        check(rig, cut, &bases, &scalars(n, 6), what);
        check(rig, cut, &bases, &vec![Scalar::MINUS_ONE; n], what);
    }
}

fn g2(rig: &Rig) {
    let (n, cut) = if rig.is_card {
        (30_000, (1, 15))
    } else {
        (12, (1, 32))
    };
    check(rig, cut, &points::<Fp2>(n), &scalars(n, 7), "random");
    let (what, bases) = &hostile_bases::<Fp2>(n)[3];
    check(rig, cut, bases, &scalars(n, 8), what);
}

fn several_vectors(rig: &Rig) {
    let n = if rig.is_card { 50_000 } else { 25 };
    let info = rig.device().info();
    let bases = points::<Fp>(n);
    let vectors = [scalars(n, 1), vec![Scalar::ONE; n], scalars(n, 2)];
    let choice = Multiples::<Fp>::new(info, n, 2, 16).unwrap();
    let table = table(rig, &choice, &bases);
    let sum = |vector: &Vec<Scalar>| msm(bases.as_slice(), vector).unwrap().to_affine();
    let expected: Vec<_> = vectors.iter().map(sum).collect();
    let streams = Arc::new(Streams::new(rig.device()).unwrap());
    for streams in [None, Some(&streams)] {
        let plan = MsmPlan::with_multiples(streams, info, &choice, 3, u64::MAX).unwrap();
        assert_eq!(run(rig, &plan, &table, &vectors), expected);
    }
}

/// In less and less memory, until the plan says that it cannot be.
fn little_scratch(rig: &Rig) {
    let n = if rig.is_card { 1 << 17 } else { 30 };
    let info = rig.device().info();
    let bases = points::<Fp>(n);
    let vectors = [scalars(n, 1)];
    let choice = Multiples::<Fp>::new(info, n, 2, 16).unwrap();
    let table = table(rig, &choice, &bases);
    let expected = [msm(bases.as_slice(), &vectors[0]).unwrap().to_affine()];
    let mut limit = u64::MAX;
    let mut plans = 0;
    loop {
        match MsmPlan::with_multiples(None, info, &choice, 1, limit) {
            Ok(plan) => {
                assert!(plan.footprint().device <= limit);
                assert_eq!(run(rig, &plan, &table, &vectors), expected, "{limit}");
                limit = plan.footprint().device / 2;
            }
            Err(Error::TooLittleScratch { .. }) => break,
            Err(error) => panic!("{error}"),
        }
        plans += 1;
    }
    assert!(plans > 1);
}
