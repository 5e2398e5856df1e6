//! Transforms over Fr against `ark-poly`, and the quotient.

use ark_poly::{EvaluationDomain as _, Radix2EvaluationDomain};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use cuzk_benches::Words;
use cuzk_field::{Fr, RootGenerator, Scalar};
use cuzk_ntt::{Direction, Domain, bit_reverse_permute, quotient_coefficients};
use std::hint::black_box;

fn values(n: usize) -> Vec<Fr> {
    let mut words = Words::new(1);
    (0..n)
        .map(|_| {
            let [a, b, c, d] = words.limbs();
            Fr::from(Scalar::from_limbs([a, b, c, d >> 2]).unwrap_or_default())
        })
        .collect()
}

fn transforms(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ntt");
    for log_n in [12u32, 16, 18] {
        let n = 1usize << log_n;
        // Butterflies.
        group.throughput(Throughput::Elements(u64::from(log_n) << (log_n - 1)));
        let domain = Domain::new(n, RootGenerator::Seven).expect("a power of two");
        let ark = Radix2EvaluationDomain::<ark_bls12_381::Fr>::new(n).expect("a power of two");
        let input = values(n);
        let mut ours = input.clone();
        let mut theirs: Vec<_> = input.iter().map(|x| x.to_ark()).collect();
        domain.natural_to_bit_reversed(&mut ours, Direction::Forward);
        bit_reverse_permute(&mut ours);
        ark.fft_in_place(&mut theirs);
        assert!(
            ours.iter().zip(&theirs).all(|(x, y)| x.to_ark() == *y),
            "the results differ"
        );

        group.bench_function(
            BenchmarkId::new("natural to bit-reversed", log_n),
            |bencher| {
                let mut data = input.clone();
                bencher.iter(|| {
                    domain.natural_to_bit_reversed(black_box(&mut data), Direction::Forward)
                });
            },
        );
        group.bench_function(
            BenchmarkId::new("bit-reversed to natural", log_n),
            |bencher| {
                let mut data = input.clone();
                bencher.iter(|| {
                    domain.bit_reversed_to_natural(black_box(&mut data), Direction::Forward)
                });
            },
        );
        group.bench_function(BenchmarkId::new("ark-poly", log_n), |bencher| {
            let mut data = theirs.clone();
            bencher.iter(|| ark.fft_in_place(black_box(&mut data)));
        });
        group.bench_function(
            BenchmarkId::new("quotient, 6 transforms", log_n),
            |bencher| {
                bencher.iter(|| quotient_coefficients(&domain, input.clone(), input.clone()));
            },
        );
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = transforms
}
criterion_main!(benches);
