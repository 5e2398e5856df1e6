//! Buckets summed by pair trees, reduced, and multiples of a point, on a device. Every result is checked against the
//! points' known exponents.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench reports on its standard streams"
)]

mod device;

use std::time::Duration;

use cuzk_field::{Affine, Field as _, Fp, Fp2, Fr, Scalar, Xyzz};
use cuzk_gpu_mem::{DeviceBuf, Pod, Stream};
use cuzk_kernels::Launcher;
use cuzk_msm::device::accumulate::{AccumulatePlan, Existing, Pipeline, PipelineShape, Streams};
use cuzk_msm::device::fixed_base::FixedBasePlan;
use cuzk_msm::device::reduce::ReducePlan;
use cuzk_msm::device::{DeviceCurve, Result};

use device::Bench;

fn main() {
    let mut bench = Bench::open("pair_tree");
    let launcher = match cuzk_kernels::open(&bench.device) {
        Ok(launcher) => launcher,
        Err(error) => {
            eprintln!("pair_tree: {error}");
            std::process::exit(1);
        }
    };
    let stream = bench.device.stream("bench").expect("a stream");
    let run = Run {
        launcher: &*launcher,
        stream: &stream,
    };
    // Points, entries and buckets of a window.
    let (g1, g2): (&[_], &[_]) = if bench.real {
        (&[(26, 26, 21), (22, 24, 19), (20, 24, 19)], &[(22, 24, 19)])
    } else {
        (&[(6, 7, 3)], &[(4, 5, 2)])
    };
    group::<Fp>(&mut bench, &run, "G1", g1);
    group::<Fp2>(&mut bench, &run, "G2", g2);
    bench.finish();
}

struct Run<'a> {
    launcher: &'a dyn Launcher,
    stream: &'a Stream,
}

impl Run<'_> {
    fn upload<T: Pod>(&self, values: &[T]) -> DeviceBuf<T> {
        let mut buffer = self.room(values.len());
        self.stream
            .upload_slice(values, &mut buffer)
            .expect("a copy");
        buffer
    }

    fn room<T: Pod>(&self, len: usize) -> DeviceBuf<T> {
        let device = self.stream.device();
        device.alloc("bench", len, self.stream).expect("memory")
    }

    /// Median of timed runs, after one that is not counted.
    fn timed(&self, rounds: usize, mut run: impl FnMut() -> Result<()>) -> Duration {
        let mut times = Vec::new();
        for round in 0..=rounds {
            let begin = self.stream.record_timed().expect("an event");
            run().expect("a launch");
            let end = self.stream.record_timed().expect("an event");
            end.wait().expect("the kernels");
            if round > 0 {
                times.push(end.since(&begin).expect("both are reached"));
            }
        }
        device::median(times)
    }
}

/// Words of a stream of xorshift64.
fn words(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Bases with known exponents, and their exponents.
struct Known<F: DeviceCurve> {
    points: DeviceBuf<Affine<F>>,
    exponents: Vec<Scalar>,
}

fn known<F: DeviceCurve>(
    bench: &mut Bench,
    run: &Run<'_>,
    group: &str,
    log_count: u32,
) -> Known<F> {
    let count = 1_usize << log_count;
    let mut word = words(3);
    let exponents: Vec<Scalar> =
        std::iter::repeat_with(|| Scalar::from_limbs([word(), word(), word(), word() >> 1]))
            .flatten()
            .take(count)
            .collect();
    let device = bench.device.info();
    let limit = 8 << 30;
    let large = if bench.real {
        FixedBasePlan::<F>::large(device, count, limit)
    } else {
        FixedBasePlan::<F>::small(device, count, limit)
    }
    .expect("a plan");
    let wanted = large.table_scalars();
    let small = FixedBasePlan::<F>::small(device, wanted.len(), limit).expect("a plan");
    let small_table = run.upload(&small.host_table(&Affine::generator()));
    let table_scalars = run.upload(&wanted);
    let mut table = run.room::<Affine<F>>(wanted.len());
    let mut scratch = run.room::<u8>(small.scratch_bytes().max(large.scratch_bytes()));
    let (launcher, stream) = (run.launcher, run.stream);
    small
        .run(
            launcher,
            stream,
            small_table.view(),
            table_scalars.view(),
            table.view_mut(),
            scratch.view_mut(),
        )
        .expect("a table");
    let scalars = run.upload(&exponents);
    let mut points = run.room::<Affine<F>>(count);
    let time = run.timed(1, || {
        large.run(
            launcher,
            stream,
            table.view(),
            scalars.view(),
            points.view_mut(),
            scratch.view_mut(),
        )
    });
    let mut some = vec![Affine::<F>::INFINITY; count.min(64)];
    stream
        .download_slice(points.view().slice(count - some.len()..), &mut some)
        .expect("a copy");
    let expected = cuzk_msm::FixedBase::new(&Affine::generator())
        .multiply_all(&exponents[count - some.len()..]);
    assert!(some == expected, "multiples of the generator");
    bench.row(
        format!("{group} 2^{log_count} multiples of a point"),
        time.as_secs_f64() * 1e3,
        "ms",
    );
    Known { points, exponents }
}

fn group<F: DeviceCurve>(bench: &mut Bench, run: &Run<'_>, group: &str, sizes: &[(u32, u32, u32)]) {
    let log_points = sizes.iter().map(|size| size.0).max().unwrap_or(0);
    let known = known::<F>(bench, run, group, log_points);
    for &(log_points, log_entries, log_buckets) in sizes {
        windows(
            bench,
            run,
            group,
            &known,
            log_points,
            log_entries,
            log_buckets,
        );
    }
    for &size in sizes {
        pipeline(bench, run, group, &known, size);
    }
    let shapes: &[(usize, usize)] = if bench.real {
        &[(12, 1 << 21), (16, 1 << 15)]
    } else {
        &[(2, 8)]
    };
    for &(count, buckets) in shapes {
        if count * buckets <= known.exponents.len() {
            reduction(bench, run, group, &known, count, buckets);
        }
    }
}

/// The sum of exponents of some entries.
fn exponent_of(exponents: &[Scalar], entries: &[u32]) -> Scalar {
    let mut sum = Fr::ZERO;
    for &entry in entries {
        let e = Fr::from(exponents[(entry & 0x7fff_ffff) as usize]);
        sum = if entry >> 31 == 0 { sum + e } else { sum - e };
    }
    sum.into()
}

fn windows<F: DeviceCurve>(
    bench: &mut Bench,
    run: &Run<'_>,
    group: &str,
    known: &Known<F>,
    log_points: u32,
    log_entries: u32,
    log_buckets: u32,
) {
    let (launcher, stream) = (run.launcher, run.stream);
    let (points, count, buckets) = (
        1_u64 << log_points,
        1_usize << log_entries,
        1_usize << log_buckets,
    );
    let mut word = words(5);
    let entries: Vec<u32> = (0..count)
        .map(|_| {
            let word = word();
            (word % points) as u32 | (word >> 63 << 31) as u32
        })
        .collect();
    // Uniform, all in one bucket, and half of all in one.
    let mut uniform = vec![0_u32; buckets + 1];
    for _ in 0..count {
        uniform[1 + (word() % buckets as u64) as usize] += 1;
    }
    let mut one = vec![0; buckets + 1];
    one[1 + buckets / 3] = count as u32;
    let mut half: Vec<u32> = uniform.iter().map(|&length| length / 2).collect();
    half[7 % buckets + 1] +=
        (count as u64 - half.iter().map(|&length| u64::from(length)).sum::<u64>()) as u32;
    let name = format!("{group} 2^{log_entries} of 2^{log_points} points, 2^{log_buckets} buckets");
    let entry_buffer = run.upload(&entries);
    let device = bench.device.info().clone();
    let whole = AccumulatePlan::<F>::new(&device, count, buckets, usize::MAX).expect("a plan");
    let quarter = AccumulatePlan::<F>::new(
        &device,
        count,
        buckets,
        whole.scratch_bytes() / 3 + (1 << 20),
    )
    .expect("a plan");
    let mut sums = run.room::<Affine<F>>(buckets);
    let mut scratch = run.room::<u8>(whole.scratch_bytes());
    for (kind, lengths, plan) in [
        ("uniform", &uniform, &whole),
        ("one bucket", &one, &whole),
        ("half in one", &half, &whole),
        ("uniform, a third of the scratch", &uniform, &quarter),
    ] {
        if log_entries > 24 && kind.contains("one") {
            // The host would add up exponents for many seconds.
            continue;
        }
        let mut offsets = lengths.clone();
        for k in 1..offsets.len() {
            offsets[k] += offsets[k - 1];
        }
        let offset_buffer = run.upload(&offsets);
        let filled = lengths.iter().filter(|&&length| length > 0).count();
        let mut once = |launched: &mut dyn FnMut(&'static str)| {
            plan.run_observed(
                launcher,
                stream,
                known.points.view(),
                entry_buffer.view(),
                offset_buffer.view(),
                sums.view_mut(),
                Existing::Replace,
                scratch.view_mut(),
                launched,
            )
        };
        let time = run.timed(bench.rounds(3), || once(&mut |_| ()));
        let additions = (count - filled) as f64;
        bench.row(
            format!(
                "{name}, {kind}, {} slabs, {} MiB",
                plan.slab_count(),
                plan.scratch_bytes() >> 20
            ),
            time.as_secs_f64() * 1e3,
            "ms",
        );
        bench.row("    additions", additions / time.as_secs_f64() / 1e9, "G/s");
        if kind == "uniform" {
            // Where the time goes: an event after each launch.
            let mut events = vec![("", stream.record_timed().expect("an event"))];
            once(&mut |label| events.push((label, stream.record_timed().expect("an event"))))
                .expect("a run");
            stream.synchronize().expect("the kernels");
            let line: Vec<String> = events
                .windows(2)
                .map(|pair| {
                    let time = pair[1].1.since(&pair[0].1).expect("both are reached");
                    format!("{} {:.3}", pair[1].0, time.as_secs_f64() * 1e3)
                })
                .collect();
            println!("    {}", line.join(", "));
        }
        let mut found = vec![Affine::<F>::INFINITY; buckets];
        stream.download_slice(&sums, &mut found).expect("a copy");
        let base = Xyzz::from(Affine::<F>::generator());
        for k in (0..buckets)
            .filter(|k| k % (buckets / 50 + 1) == 7 % buckets || lengths[k + 1] > 1 << 20)
        {
            let range = offsets[k] as usize..offsets[k + 1] as usize;
            let e = exponent_of(&known.exponents, &entries[range]);
            assert!(
                found[k] == base.mul_scalar(&e).to_affine(),
                "{name}, {kind}: bucket {k}"
            );
        }
    }
}

/// Twelve uniform windows, one after another, for a second and more.
fn pipeline<F: DeviceCurve>(
    bench: &mut Bench,
    run: &Run<'_>,
    group: &str,
    known: &Known<F>,
    (log_points, log_entries, log_buckets): (u32, u32, u32),
) {
    let (count, buckets) = (1_usize << log_entries, 1_usize << log_buckets);
    let points = 1_u64 << log_points;
    let mut word = words(5);
    let entries: Vec<u32> = (0..count).map(|_| (word() % points) as u32).collect();
    let mut offsets = vec![0_u32; buckets + 1];
    for _ in 0..count {
        offsets[1 + (word() % buckets as u64) as usize] += 1;
    }
    let filled = offsets.iter().filter(|&&length| length > 0).count();
    for k in 1..offsets.len() {
        offsets[k] += offsets[k - 1];
    }
    let (entries, offsets) = (run.upload(&entries), run.upload(&offsets));
    let plan = AccumulatePlan::<F>::new(&bench.device.info().clone(), count, buckets, usize::MAX)
        .expect("a plan");
    let lists = if bench.real { 12 } else { 3 };
    let mut sums = run.room::<Affine<F>>(buckets * lists);
    let mut once = run.room::<Affine<F>>(buckets);
    let mut scratch = run.room::<u8>(plan.scratch_bytes());
    plan.run(
        run.launcher,
        run.stream,
        known.points.view(),
        entries.view(),
        offsets.view(),
        once.view_mut(),
        Existing::Replace,
        scratch.view_mut(),
    )
    .expect("a run");
    drop(scratch);
    let streams = Streams::new(run.stream.device()).expect("streams");
    for (lanes, slots, ahead) in [
        (1, 2, 1),
        (2, 2, 1),
        (2, 3, 1),
        (2, 4, 1),
        (2, 4, 2),
        (2, 4, 3),
    ] {
        let shape = PipelineShape::new([&plan], lanes, slots).with_ahead_blocks(ahead);
        let mut scratch = run.room::<u8>(shape.scratch_bytes());
        let bases = known.points.view().lend(&streams.all()).expect("a loan");
        let entries = entries.view().lend(&streams.all()).expect("a loan");
        let offsets = offsets.view().lend(&streams.all()).expect("a loan");
        let mut sums = sums.view_mut().lend(&streams.all()).expect("a loan");
        let mut scratch = scratch.view_mut().lend(&streams.all()).expect("a loan");
        let time = run.timed(bench.rounds(3), || {
            let mut pipeline = Pipeline::new(
                run.launcher,
                run.stream,
                &streams,
                bases.view(),
                &shape,
                scratch.view_mut(),
            )?;
            for list in 0..lists {
                let first = list * buckets;
                let sums = sums.view_mut().slice(first..first + buckets);
                pipeline.push(
                    &plan,
                    entries.view(),
                    offsets.view(),
                    sums,
                    Existing::Replace,
                )?;
            }
            pipeline.join(run.stream)
        });
        bench.row(
            format!(
                "{group} {lists} lists of 2^{log_entries}, {lanes} lanes, {slots} slots, {ahead} ahead, {} MiB",
                shape.scratch_bytes() >> 20
            ),
            time.as_secs_f64() * 1e3,
            "ms",
        );
        let additions = (count - filled) as f64 * lists as f64;
        bench.row("    additions", additions / time.as_secs_f64() / 1e9, "G/s");
    }
    let mut expected = vec![Affine::<F>::INFINITY; buckets];
    let mut found = vec![Affine::<F>::INFINITY; lists * buckets];
    run.stream
        .download_slice(&once, &mut expected)
        .expect("a copy");
    run.stream
        .download_slice(&sums, &mut found)
        .expect("a copy");
    assert!(
        found.chunks(buckets).all(|sums| sums == expected),
        "{group}: lists in a pipeline"
    );
}

fn reduction<F: DeviceCurve>(
    bench: &mut Bench,
    run: &Run<'_>,
    group: &str,
    known: &Known<F>,
    count: usize,
    buckets: usize,
) {
    let info = bench.device.info().clone();
    let plain = ReducePlan::<F>::new(&info, &[(count, buckets)]).expect("a plan");
    let trees = plain.clone().with_trees(&info, 8 << 30).expect("a plan");
    let sums = known.points.view().slice(..count * buckets);
    let mut out = run.room::<Xyzz<F>>(count);
    for (kind, plan) in [("pair trees", trees), ("parts", plain)] {
        let mut scratch = run.room::<u8>(plan.scratch_bytes());
        let time = run.timed(bench.rounds(3), || {
            plan.run(
                run.launcher,
                run.stream,
                sums,
                out.view_mut(),
                scratch.view_mut(),
            )
        });
        bench.row(
            format!(
                "{group} {count} windows of {buckets} buckets reduced by {kind}, {} MiB",
                plan.scratch_bytes() >> 20
            ),
            time.as_secs_f64() * 1e3,
            "ms",
        );
        check_reduction(run, known, count, buckets, &out);
    }
}

/// The first and the last window against the exponents.
fn check_reduction<F: DeviceCurve>(
    run: &Run<'_>,
    known: &Known<F>,
    count: usize,
    buckets: usize,
    out: &DeviceBuf<Xyzz<F>>,
) {
    let mut found = vec![Xyzz::<F>::INFINITY; count];
    run.stream.download_slice(out, &mut found).expect("a copy");
    for window in [0, count - 1] {
        let exponents = &known.exponents[window * buckets..][..buckets];
        let mut sum = Fr::ZERO;
        for (e, k) in exponents.iter().zip(1_u64..) {
            sum += Fr::from(*e) * Fr::from(k);
        }
        let expected = Xyzz::from(Affine::<F>::generator()).mul_scalar(&sum.into());
        assert!(
            found[window].to_affine() == expected.to_affine(),
            "window {window}"
        );
    }
}
