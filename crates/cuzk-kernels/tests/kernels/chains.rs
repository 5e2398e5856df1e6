//! What the benchmarks of the arithmetic time.

use ark_bls12_381::Fq;
use ark_ff::Field as _;
use cuzk_field::{Fp, Fr, G1Affine, G1Xyzz, Xyzz};
use cuzk_kernels::field_bench;

use crate::curve::points;
use crate::rig::Rig;
use crate::values::Random;

/// The chains that the benchmark times.
pub(crate) fn chains(rig: &Rig) {
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

pub(crate) fn gathered_sums(rig: &Rig) {
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
    let mut out = rig.room(buckets);
    let refused = field_bench::g1_gather(
        &*rig.launcher,
        &rig.stream,
        short.view(),
        &plan,
        out.view_mut(),
    );
    assert!(refused.is_err());
}
