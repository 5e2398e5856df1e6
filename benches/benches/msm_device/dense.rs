//! Dense sums: resident, skewed, with little scratch, streamed.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_field::{Affine, Fp, Fr, Scalar};
use cuzk_gpu_mem::{Bus, DeviceBuf, DeviceView, Stream};
use cuzk_kernels::Launcher;
use cuzk_msm::device::{DeviceCurve, HostBases, MsmPlan, Patient, Pending, Scalars, Streams};

use crate::device::Bench;
use crate::values::{expected, points, random_scalar, repeated, room, words};

/// Scratch that sums may have where it is not the question.
pub(crate) const PLENTY: u64 = 60 << 30;

/// Clock and power at this moment, as the driver says.
pub(crate) fn clock(bench: &Bench) -> String {
    if !bench.real {
        return String::new();
    }
    let output = Command::new("nvidia-smi")
        .args(["--query-gpu=clocks.sm,power.draw", "--format=csv,noheader"])
        .arg(format!("--id=GPU-{}", bench.device.info().uuid))
        .output();
    output.map_or(String::new(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
}

/// Milliseconds a sum, over at least so many seconds of one after another; the result of each is waited for while the next
/// is computed. Each must be `expected`.
pub(crate) fn sustained<F: DeviceCurve>(
    bench: &Bench,
    expected: &[Affine<F>],
    seconds: f64,
    mut run: impl FnMut() -> Pending<F>,
) -> (f64, String) {
    assert_eq!(run().wait().expect("a sum"), expected, "the sum is wrong");
    let seconds = if bench.real { seconds } else { 0.0 };
    let begin = Instant::now();
    let mut last = run();
    let mut runs = 1;
    let mut at_work = String::new();
    while begin.elapsed().as_secs_f64() < seconds {
        let next = run();
        runs += 1;
        assert_eq!(last.wait().expect("a sum"), expected, "sum {runs} is wrong");
        last = next;
        if at_work.is_empty() && begin.elapsed().as_secs_f64() > 0.6 * seconds {
            at_work = clock(bench);
        }
    }
    assert_eq!(
        last.wait().expect("a sum"),
        expected,
        "the last sum is wrong"
    );
    (ms(begin.elapsed()) / f64::from(runs), at_work)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub(crate) struct Run<'a, F: DeviceCurve> {
    launcher: &'a dyn Launcher,
    stream: &'a Stream,
    plan: MsmPlan<F>,
    scratch: DeviceBuf<u8>,
}

impl<'a, F: DeviceCurve> Run<'a, F> {
    pub(crate) fn new(launcher: &'a dyn Launcher, stream: &'a Stream, plan: MsmPlan<F>) -> Self {
        let scratch = room(stream, plan.footprint().device as usize);
        Self {
            launcher,
            stream,
            plan,
            scratch,
        }
    }

    pub(crate) fn start(
        &mut self,
        bases: DeviceView<'_, Affine<F>>,
        scalars: Scalars<'_>,
    ) -> Pending<F> {
        let host = self.stream.device().host();
        let result = host.pinned("sums", self.plan.result_len()).expect("memory");
        let scratch = self.scratch.view_mut();
        self.plan
            .run(
                self.launcher,
                self.stream,
                bases,
                &[scalars],
                scratch,
                result,
            )
            .expect("a sum")
    }

    /// What the plan is like.
    pub(crate) fn describe(&self) -> String {
        let (windows, width) = self.plan.windows();
        let (slabs, parts) = self.plan.slabs();
        format!(
            "{windows} windows of up to {width} bits, {slabs} x {parts} slabs, {} MiB of scratch",
            self.plan.footprint().device >> 20
        )
    }
}

/// Every power of two, one less and one more: more terms should not take much more time, nor less.
pub(crate) fn every_size(
    bench: &mut Bench,
    launcher: &dyn Launcher,
    stream: &Stream,
    log_most: u32,
) {
    let streams = Arc::new(Streams::new(&bench.device).expect("streams"));
    let most = (1 << log_most) + 1;
    let (bases, exponents) = points::<Fp>(launcher, stream, most);
    let mut word = words(18);
    let (scalars, values) = repeated(stream, most, || random_scalar(&mut word));
    let mut sizes: Vec<usize> = (0..=log_most)
        .flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1])
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut times: Vec<(usize, f64)> = Vec::new();
    for n in sizes.into_iter().filter(|n| *n > 0) {
        let sum = expected::<Fp>(n, &values, &exponents);
        let info = bench.device.info();
        let plan = MsmPlan::<Fp>::resident_beside(Some(&streams), info, n, 1, PLENTY);
        let mut run = Run::new(launcher, stream, plan.expect("a plan"));
        let (time, _) = sustained(bench, &[sum], 0.1, || {
            let scalars = Scalars::Canonical(scalars.view().slice(..n));
            run.start(bases.view().slice(..n), scalars)
        });
        bench.row(format!("G1 {n}"), time, "ms");
        times.push((n, time));
    }
    let steps = times
        .windows(2)
        .map(|pair| (pair[1].0, pair[1].1 / pair[0].1));
    let worst = |better: fn(f64, f64) -> bool| {
        let all = steps.clone();
        all.reduce(|a, b| if better(b.1, a.1) { b } else { a })
    };
    for (what, step) in [
        ("the largest step up", worst(|a, b| a > b)),
        ("the largest step down", worst(|a, b| a < b)),
    ] {
        if let Some((n, factor)) = step {
            println!("    {what}: to {n} terms, {factor:.2} times");
        }
    }
}

/// Random scalars, bases on the device.
pub(crate) fn resident<F: DeviceCurve>(
    bench: &mut Bench,
    launcher: &dyn Launcher,
    stream: &Stream,
    name: &str,
    sizes: &[u32],
) {
    let streams = Arc::new(Streams::new(&bench.device).expect("streams"));
    let most = sizes.iter().copied().max().unwrap_or(0);
    let (bases, exponents) = points::<F>(launcher, stream, 1 << most);
    let mut word = words(17);
    let (scalars, values) = repeated(stream, 1 << most, || random_scalar(&mut word));
    for &log_n in sizes {
        let n = 1_usize << log_n;
        let sum = expected::<F>(n, &values, &exponents);
        let info = bench.device.info();
        let plan =
            MsmPlan::<F>::resident_beside(Some(&streams), info, n, 1, PLENTY).expect("a plan");
        let mut run = Run::new(launcher, stream, plan);
        let (bases, scalars) = (bases.view().slice(..n), scalars.view().slice(..n));
        let (time, clock) = sustained(bench, &[sum], 1.0, || {
            run.start(bases, Scalars::Canonical(scalars))
        });
        bench.row(format!("{name} 2^{log_n}, resident"), time, "ms");
        println!("    {}; {clock}", run.describe());
    }
}

/// One sum, for a profiler: the first sort is where it begins.
pub(crate) fn once(
    bench: &Bench,
    launcher: &dyn Launcher,
    stream: &Stream,
    log_n: u32,
    windows: u32,
) {
    let n = 1_usize << log_n;
    let streams = Arc::new(Streams::new(&bench.device).expect("streams"));
    let (bases, exponents) = points::<Fp>(launcher, stream, n);
    let mut word = words(17);
    let (scalars, values) = repeated(stream, n, || random_scalar(&mut word));
    let (info, list) = (bench.device.info(), 1 << 26);
    let plan = MsmPlan::<Fp>::resident_tuned(Some(&streams), info, [n, 1], windows, list, PLENTY);
    let mut run = Run::new(launcher, stream, plan.expect("a plan"));
    let found = run
        .start(bases.view(), Scalars::Canonical(scalars.view()))
        .wait();
    assert_eq!(
        found.expect("a sum"),
        [expected::<Fp>(n, &values, &exponents)]
    );
}

/// Other windows and lists than the plan's own.
pub(crate) fn tune(bench: &mut Bench, launcher: &dyn Launcher, stream: &Stream) {
    let choices: &[(u32, u32, u32)] = if bench.real {
        &[
            (27, 12, 26),
            (27, 11, 26),
            (26, 12, 26),
            (26, 11, 26),
            (24, 13, 26),
            (24, 12, 26),
            (22, 15, 26),
            (22, 14, 26),
            (20, 17, 26),
        ]
    } else {
        &[(4, 40, 10)]
    };
    let most = choices.iter().map(|(log_n, ..)| *log_n).max().unwrap_or(0);
    let streams = Arc::new(Streams::new(&bench.device).expect("streams"));
    let (bases, exponents) = points::<Fp>(launcher, stream, 1 << most);
    let mut word = words(17);
    let (scalars, values) = repeated(stream, 1 << most, || random_scalar(&mut word));
    for &(log_n, windows, log_list) in choices {
        let n = 1_usize << log_n;
        let sum = expected::<Fp>(n, &values, &exponents);
        let (info, list) = (bench.device.info(), 1 << log_list);
        let plan =
            MsmPlan::<Fp>::resident_tuned(Some(&streams), info, [n, 1], windows, list, PLENTY);
        let mut run = Run::new(launcher, stream, plan.expect("a plan"));
        let (bases, scalars) = (bases.view().slice(..n), scalars.view().slice(..n));
        let (time, _) = sustained(bench, &[sum], 0.3, || {
            run.start(bases, Scalars::Canonical(scalars))
        });
        println!("  G1 2^{log_n}, {windows} windows: {time:.3} ms");
    }
}

/// Scalars that share buckets, beside random ones.
pub(crate) fn skewed(bench: &mut Bench, launcher: &dyn Launcher, stream: &Stream, log_n: u32) {
    let n = 1_usize << log_n;
    let streams = Arc::new(Streams::new(&bench.device).expect("streams"));
    let (bases, exponents) = points::<Fp>(launcher, stream, n);
    let plan = MsmPlan::<Fp>::resident_beside(Some(&streams), bench.device.info(), n, 1, PLENTY)
        .expect("a plan");
    let mut run = Run::new(launcher, stream, plan);
    let mut word = words(23);
    let few: Vec<Scalar> = (0..4).map(|_| random_scalar(&mut word)).collect();
    let mut count = 0_u64;
    type Value<'a> = &'a mut dyn FnMut(&mut dyn FnMut() -> u64, u64) -> Scalar;
    let kinds: [(&str, Value<'_>); 7] = [
        ("random", &mut |mut word, _| random_scalar(&mut word)),
        ("one value", &mut |_, _| few[0]),
        ("four values", &mut |_, i| few[i as usize % 4]),
        ("99% one value", &mut |mut word, i| {
            if i % 100 == 0 {
                random_scalar(&mut word)
            } else {
                few[0]
            }
        }),
        ("ones", &mut |_, _| Scalar::ONE),
        ("bits", &mut |word, _| Scalar::from(word() >> 63)),
        ("below 2^16", &mut |word, _| Scalar::from(word() >> 48)),
    ];
    for (kind, value) in kinds {
        let (scalars, values) = repeated(stream, n, || {
            count += 1;
            value(&mut word, count)
        });
        let sum = expected::<Fp>(n, &values, &exponents);
        let (time, _) = sustained(bench, &[sum], 1.0, || {
            run.start(bases.view(), Scalars::Canonical(scalars.view()))
        });
        bench.row(format!("G1 2^{log_n}, {kind}"), time, "ms");
    }
}

/// The same sum in less and less scratch.
pub(crate) fn budget(bench: &mut Bench, launcher: &dyn Launcher, stream: &Stream, log_n: u32) {
    let n = 1_usize << log_n;
    let streams = Arc::new(Streams::new(&bench.device).expect("streams"));
    let (bases, exponents) = points::<Fp>(launcher, stream, n);
    let mut word = words(29);
    let (scalars, values) = repeated(stream, n, || random_scalar(&mut word));
    let sum = expected::<Fp>(n, &values, &exponents);
    for gib in [5_u64, 20] {
        let plan =
            MsmPlan::<Fp>::resident_beside(Some(&streams), bench.device.info(), n, 1, gib << 30)
                .expect("a plan");
        assert!(plan.footprint().device <= gib << 30);
        let mut run = Run::new(launcher, stream, plan);
        let (time, clock) = sustained(bench, &[sum], 1.0, || {
            run.start(bases.view(), Scalars::Canonical(scalars.view()))
        });
        bench.row(format!("G1 2^{log_n}, {gib} GiB of scratch"), time, "ms");
        println!("    {}; {clock}", run.describe());
    }
    // In Montgomery form, as field elements come.
    let elements: Vec<Fr> = values.iter().map(|value| Fr::from(*value)).collect();
    drop(scalars);
    let mut montgomery = room::<Fr>(stream, n);
    let period = elements.len();
    for start in (0..n).step_by(period) {
        let len = period.min(n - start);
        let target = montgomery.view_mut().slice(start..start + len);
        stream
            .upload_slice(&elements[..len], target)
            .expect("a copy");
    }
    let plan = MsmPlan::<Fp>::resident_beside(Some(&streams), bench.device.info(), n, 1, PLENTY)
        .expect("a plan");
    let mut run = Run::new(launcher, stream, plan);
    let (time, _) = sustained(bench, &[sum], 1.0, || {
        run.start(bases.view(), Scalars::Montgomery(montgomery.view()))
    });
    bench.row(format!("G1 2^{log_n}, Montgomery form"), time, "ms");
}

/// Bases in pinned memory.
pub(crate) fn streamed(bench: &mut Bench, launcher: &dyn Launcher, stream: &Stream, log_n: u32) {
    let n = 1_usize << log_n;
    let streams = Arc::new(Streams::new(&bench.device).expect("streams"));
    let (device_bases, exponents) = points::<Fp>(launcher, stream, n);
    let mut word = words(31);
    let (scalars, values) = repeated(stream, n, || random_scalar(&mut word));
    let sum = expected::<Fp>(n, &values, &exponents);
    let host = bench.device.host().clone();
    let pinned = host.pinned::<Affine<Fp>>("bases", n).expect("host memory");
    let download = stream.download(&device_bases, pinned).expect("a copy");
    let pinned = download.wait().expect("a copy");
    assert!(pinned.is_pinned() || !bench.real);
    drop(device_bases);
    let uploads = bench.device.stream("uploads").expect("a stream");
    for gib in [16_u64, 40] {
        let plan =
            MsmPlan::<Fp>::streamed_beside(Some(&streams), bench.device.info(), n, 1, gib << 30)
                .expect("a plan");
        let mut run = Run::new(launcher, stream, plan);
        let (time, clock) = sustained(bench, &[sum], 1.0, || {
            let result = host.pinned("sums", run.plan.result_len()).expect("memory");
            let scratch = run.scratch.view_mut();
            let scalars = [Scalars::Canonical(scalars.view())];
            uploads
                .scope(|scope| {
                    run.plan.run_streamed(
                        launcher,
                        stream,
                        HostBases {
                            pieces: &[&pinned],
                            uploads: scope,
                            pace: &Patient,
                            bus: &Bus::new(),
                        },
                        &scalars,
                        scratch,
                        result,
                    )
                })
                .expect("copies")
                .expect("a sum")
        });
        bench.row(format!("G1 2^{log_n}, streamed, {gib} GiB"), time, "ms");
        println!("    {}; {clock}", run.describe());
    }
}
