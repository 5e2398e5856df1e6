//! Multiplications and squarings in Fr, Fp and Fp2 on the host, as a rate over a chain in which
//! each step needs the one before it.

use std::hint::black_box;

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
    chain(c, "fp2", Fp2::new(a, b), Fp2::new(c_, d));
    let mut fr = || {
        let mut limbs = words.limbs();
        // The top limb of the modulus is above 2^62.
        limbs[3] >>= 2;
        Fr::from_montgomery_limbs(limbs).expect("below the modulus")
    };
    let (start, factor) = (fr(), fr());
    chain(c, "fr", start, factor);
}

criterion_group!(benches, fields);
criterion_main!(benches);
