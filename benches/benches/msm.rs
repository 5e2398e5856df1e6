//! Multi-scalar multiplication against `ark-ec`.

use ark_ec::{CurveGroup as _, VariableBaseMSM as _};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use cuzk_benches::Words;
use cuzk_field::{G1Affine, G2Affine, Scalar};
use cuzk_msm::{FixedBase, msm};
use std::hint::black_box;

fn scalars(n: usize, seed: u64) -> Vec<Scalar> {
    let mut words = Words::new(seed);
    (0..n)
        .map(|_| {
            let [a, b, c, d] = words.limbs();
            Scalar::from_limbs([a, b, c, d >> 2]).unwrap_or_default()
        })
        .collect()
}

/// One scalar in a hundred full-size, the rest bits.
fn bits(n: usize) -> Vec<Scalar> {
    let mut words = Words::new(9);
    let full = scalars(n, 3);
    full.into_iter()
        .map(|scalar| match words.next_word() % 100 {
            0 => scalar,
            odd => Scalar::from(odd & 1),
        })
        .collect()
}

fn sums(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("msm");
    for log_n in [10u32, 14, 16] {
        let n = 1usize << log_n;
        group.throughput(Throughput::Elements(n as u64));
        let g1 = FixedBase::new(&G1Affine::generator()).multiply_all(&scalars(n, 1));
        let theirs: Vec<ark_bls12_381::G1Affine> = g1.iter().map(|p| (*p).into()).collect();
        for (name, input) in [("random", scalars(n, 2)), ("bits", bits(n))] {
            let as_ark: Vec<_> = input.iter().map(|s| (*s).into()).collect();
            let ark = || ark_bls12_381::G1Projective::msm_bigint(&theirs, black_box(&as_ark));
            let ours = || msm(g1.as_slice(), black_box(&input)).expect("equal lengths");
            assert_eq!(G1Affine::from(ark().into_affine()), ours().to_affine());
            group.bench_function(BenchmarkId::new(format!("G1 {name}"), log_n), |bencher| {
                bencher.iter(ours);
            });
            group.bench_function(
                BenchmarkId::new(format!("G1 {name}, ark-ec"), log_n),
                |bencher| {
                    bencher.iter(ark);
                },
            );
        }
    }
    let n = 1 << 14;
    group.throughput(Throughput::Elements(n as u64));
    let g2 = FixedBase::new(&G2Affine::generator()).multiply_all(&scalars(n, 1));
    let theirs: Vec<ark_bls12_381::G2Affine> = g2.iter().map(|p| (*p).into()).collect();
    let input = scalars(n, 2);
    let as_ark: Vec<_> = input.iter().map(|s| (*s).into()).collect();
    let ark = || ark_bls12_381::G2Projective::msm_bigint(&theirs, black_box(&as_ark));
    let ours = || msm(g2.as_slice(), black_box(&input)).expect("equal lengths");
    assert_eq!(G2Affine::from(ark().into_affine()), ours().to_affine());
    group.bench_function("G2 random/14", |bencher| bencher.iter(ours));
    group.bench_function("G2 random, ark-ec/14", |bencher| bencher.iter(ark));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = sums
}
criterion_main!(benches);
