//! Multiplications and squarings in Fr, Fp and Fp2 on the host, as a rate over a chain in which
//! each step needs the one before it, and the same in `ark-ff`.

use std::hint::black_box;
use std::ops::Mul;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use cuzk_benches::Words;
use cuzk_field::{Field, Fp, Fp2, Fr};

/// Steps in a chain: long enough that the call and the clock do not count.
const STEPS: u64 = 1024;

fn chain<F: Field>(c: &mut Criterion, name: &str, start: F, factor: F) {
    assert_eq!(
        (start + factor).square(),
        start.square() + (start * factor).double() + factor.square(),
        "{name}: the arithmetic that is timed is wrong"
    );
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(STEPS));
    group.bench_function("multiply", |b| {
        b.iter(|| {
            let factor = black_box(factor);
            (0..STEPS).fold(black_box(start), |value, _| value * factor)
        });
    });
    group.bench_function("square", |b| {
        b.iter(|| (0..STEPS).fold(black_box(start), |value, _| value.square()));
    });
    group.finish();
}

/// The same chain in a type of `ark-bls12-381`.
fn ark_chain<F: Copy + Mul<Output = F>>(c: &mut Criterion, name: &str, start: F, factor: F) {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(STEPS));
    group.bench_function("multiply, ark-ff", |b| {
        b.iter(|| {
            let factor = black_box(factor);
            (0..STEPS).fold(black_box(start), |value, _| value * factor)
        });
    });
    group.finish();
}

fn fields(c: &mut Criterion) {
    let mut words = Words::new(0x5eed);
    let mut fp = || {
        let mut limbs = words.limbs();
        // The top limb of the modulus is above 2^60.
        limbs[5] >>= 4;
        Fp::from_canonical_limbs(limbs).expect("below the modulus")
    };
    let (a, b, c_, d) = (fp(), fp(), fp(), fp());
    chain(c, "fp", a, b);
    ark_chain(c, "fp", a.to_ark(), b.to_ark());
    let (left, right) = (Fp2::new(a, b), Fp2::new(c_, d));
    chain(c, "fp2", left, right);
    ark_chain(
        c,
        "fp2",
        ark_bls12_381::Fq2::from(left),
        ark_bls12_381::Fq2::from(right),
    );
    let mut fr = || {
        let mut limbs = words.limbs();
        // The top limb of the modulus is above 2^62.
        limbs[3] >>= 2;
        Fr::from_montgomery_limbs(limbs).expect("below the modulus")
    };
    let (start, factor) = (fr(), fr());
    chain(c, "fr", start, factor);
    ark_chain(c, "fr", start.to_ark(), factor.to_ark());
}

criterion_group!(benches, fields);
criterion_main!(benches);
