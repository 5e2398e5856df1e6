//! Throughput of the device's field and curve arithmetic. `cargo xtask bench field` runs it after the
//! host's.
//!
//! Each kernel is checked against the host on a sample of its results, then timed with events: one run
//! to warm up, the median of several. Rates are sustained over the run, with the clock beside them.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench reports on its standard streams"
)]

mod device;

use std::process::Command;
use std::time::Duration;

use cuzk_field::{Field, Fp, Fr, G1Affine, G1Xyzz};
use cuzk_gpu_mem::{DeviceBuf, Pod, Stream};
use cuzk_kernels::field_bench::{self, GatherPlan, THREADS};
use cuzk_kernels::{Launcher, Result, self_test};

use device::Bench;

fn main() {
    let mut bench = Bench::open("field_device");
    let launcher = match cuzk_kernels::open(&bench.device) {
        Ok(launcher) => launcher,
        Err(error) => {
            eprintln!("field_device: {error}");
            std::process::exit(1);
        }
    };
    let passed = self_test(&*launcher).expect("the self-test");
    println!("  self-test passed: {} parts", passed.passed.len());
    let stream = bench.device.stream("bench").expect("a stream");
    chains(&mut bench, &*launcher, &stream);
    gather(&mut bench, &*launcher, &stream);
    bench.finish();
}

/// The clock of the multiprocessors at this moment, in MHz, as the driver says.
fn clock(bench: &Bench) -> Option<String> {
    if !bench.real {
        return None;
    }
    let output = Command::new("nvidia-smi")
        .args(["--query-gpu=clocks.sm,power.draw", "--format=csv,noheader"])
        .arg(format!("--id=GPU-{}", bench.device.info().uuid))
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Median of timed runs, after one that is not counted.
fn timed(bench: &Bench, stream: &Stream, mut run: impl FnMut() -> Result<()>) -> Duration {
    let mut times = Vec::new();
    for round in 0..=bench.rounds(7) {
        let begin = stream.record_timed().expect("an event");
        run().expect("a launch");
        let end = stream.record_timed().expect("an event");
        end.wait().expect("the kernel");
        if round > 0 {
            times.push(end.since(&begin).expect("both are reached"));
        }
    }
    device::median(times)
}

fn upload<T: Pod>(stream: &Stream, values: &[T]) -> DeviceBuf<T> {
    let mut buffer = stream
        .device()
        .alloc("bench", values.len(), stream)
        .expect("memory");
    stream.upload_slice(values, &mut buffer).expect("a copy");
    buffer
}

fn values<F: Field>(count: usize) -> Vec<F> {
    let mut value = F::ONE.double() + F::ONE;
    (0..count)
        .map(|_| {
            value = value.square() + F::ONE;
            value
        })
        .collect()
}

fn pow<F: Field>(base: F, exponent: u32) -> F {
    (0..32).rev().fold(F::ONE, |power, bit| {
        let square = power.square();
        if exponent >> bit & 1 == 1 {
            square * base
        } else {
            square
        }
    })
}

type Multiply<F> = fn(
    &dyn Launcher,
    &Stream,
    cuzk_gpu_mem::DeviceViewMut<'_, F>,
    cuzk_gpu_mem::DeviceView<'_, F>,
    u32,
) -> Result<()>;

type Square<F> = fn(&dyn Launcher, &Stream, cuzk_gpu_mem::DeviceViewMut<'_, F>, u32) -> Result<()>;

/// Chains of multiplications and squarings, on all multiprocessors at once.
fn chains(bench: &mut Bench, launcher: &dyn Launcher, stream: &Stream) {
    chain::<Fp>(
        bench,
        launcher,
        stream,
        "Fp",
        field_bench::fp_mul,
        field_bench::fp_sqr,
    );
    chain::<Fr>(
        bench,
        launcher,
        stream,
        "Fr",
        field_bench::fr_mul,
        field_bench::fr_sqr,
    );
}

fn chain<F: Field + Pod>(
    bench: &mut Bench,
    launcher: &dyn Launcher,
    stream: &Stream,
    name: &str,
    multiply: Multiply<F>,
    square: Square<F>,
) {
    // 24 blocks of 128 threads for each multiprocessor: whole waves at every occupancy up to 2048.
    let multiprocessors = bench.device.info().multiprocessors.max(1) as usize;
    let len = if bench.real {
        48 * multiprocessors * THREADS
    } else {
        THREADS
    };
    let turns = if bench.real { 4000 } else { 10 };
    let x = values::<F>(len);
    let y: Vec<F> = x.iter().rev().copied().collect();
    let factors = upload(stream, &y);
    let sample = |i: &usize| i.is_multiple_of(1009) || i + 1 == len;

    let mut products = upload(stream, &x);
    multiply(launcher, stream, products.view_mut(), factors.view(), turns).expect("a launch");
    let mut squares = upload(stream, &x);
    square(launcher, stream, squares.view_mut(), turns).expect("a launch");
    let mut found = (x.clone(), x.clone());
    stream
        .download_slice(&products, &mut found.0)
        .expect("a copy");
    stream
        .download_slice(&squares, &mut found.1)
        .expect("a copy");
    for i in (0..len).filter(sample) {
        assert!(found.0[i] == x[i] * pow(y[i], turns), "{name} product {i}");
        let power = (0..turns).fold(x[i], |power, _| power.square());
        assert!(found.1[i] == power, "{name} square {i}");
    }

    let operations = len as f64 * f64::from(turns);
    let time = timed(bench, stream, || {
        multiply(launcher, stream, products.view_mut(), factors.view(), turns)
    });
    report(bench, &format!("{name} multiplication"), operations, time);
    let time = timed(bench, stream, || {
        square(launcher, stream, squares.view_mut(), turns)
    });
    report(bench, &format!("{name} squaring"), operations, time);
}

fn report(bench: &mut Bench, name: &str, operations: f64, time: Duration) {
    let rate = operations / time.as_secs_f64().max(1e-9) / 1e9;
    bench.row(name, rate, "G/s");
    if let Some(clock) = clock(bench) {
        println!(
            "    {:.1} ms a run; just after it: {clock}",
            time.as_secs_f64() * 1e3
        );
    }
}

/// Sums of points gathered at random from a table too large for any cache.
fn gather(bench: &mut Bench, launcher: &dyn Launcher, stream: &Stream) {
    let (log_table, buckets, per_bucket) = if bench.real {
        let multiprocessors = bench.device.info().multiprocessors.max(1) as usize;
        (26, 48 * multiprocessors * THREADS / 4, 256)
    } else {
        (6, THREADS, 4)
    };
    // Multiples of the generator, over and over: what the points are does not matter to the time, and
    // the sums can be told from the multiples.
    let distinct = if bench.real { 1 << 12 } else { 1 << 6 };
    let mut sum = G1Xyzz::INFINITY;
    let multiples: Vec<G1Affine> = (0..distinct)
        .map(|_| {
            sum.add_affine(&G1Affine::generator());
            sum.to_affine()
        })
        .collect();
    let table_len = 1_usize << log_table;
    let mut table = stream
        .device()
        .alloc::<G1Affine>("table", table_len, stream)
        .expect("memory for the table");
    stream
        .upload_slice(&multiples, table.view_mut().slice(..distinct))
        .expect("a copy");
    let mut filled = distinct;
    while filled < table_len {
        let (source, rest) = table.view_mut().split_at(filled);
        let target = rest.slice(..filled);
        stream.copy(source.as_view(), target).expect("a copy");
        filled *= 2;
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let indices: Vec<u32> = (0..buckets * per_bucket)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u32 % table_len as u32
        })
        .collect();
    let plan = GatherPlan::new(stream, &indices, buckets).expect("a plan");
    let mut sums = stream
        .device()
        .alloc::<G1Xyzz>("sums", buckets, stream)
        .expect("memory");
    let time = timed(bench, stream, || {
        field_bench::g1_gather(launcher, stream, table.view(), &plan, sums.view_mut())
    });
    let mut found = vec![G1Xyzz::INFINITY; buckets];
    stream.download_slice(&sums, &mut found).expect("a copy");
    for bucket in (0..buckets).filter(|bucket| bucket.is_multiple_of(997)) {
        let mut expected = G1Xyzz::INFINITY;
        for row in indices.chunks(buckets) {
            expected.add_affine(&multiples[row[bucket] as usize % distinct]);
        }
        assert!(
            found[bucket].to_affine() == expected.to_affine(),
            "sum {bucket}"
        );
    }
    let name = format!(
        "G1 mixed addition, gathered from {} MiB",
        (table_len * size_of::<G1Affine>()) >> 20
    );
    report(bench, &name, (buckets * per_bucket) as f64, time);
}
