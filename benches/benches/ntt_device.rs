//! Transforms and the quotient on the device. `cargo xtask bench ntt` runs it after the host's.
//!
//! Polynomials are 1, s, s^2, ...: full-size coefficients whose values anywhere have a closed form, so that
//! results of any size are checked at sampled places, before and after they are timed.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench reports on its standard streams"
)]

mod device;

use std::process::Command;
use std::time::Duration;

use cuzk_field::{Field, Fr, RootGenerator, Scalar};
use cuzk_gpu_mem::{DeviceBuf, DeviceView, Event, Stream};
use cuzk_kernels::Launcher;
use cuzk_ntt::device::{
    DevicePlan, Elements, PlanRequest, Points, Powers, QuotientArrays, QuotientForm, Scale,
};
use cuzk_ntt::{Direction, Domain};

use device::Bench;

const FAMILY: RootGenerator = RootGenerator::Seven;

fn main() {
    let mut bench = Bench::open("ntt_device");
    let launcher = match cuzk_kernels::open(&bench.device) {
        Ok(launcher) => launcher,
        Err(error) => {
            eprintln!("ntt_device: {error}");
            std::process::exit(1);
        }
    };
    let stream = bench.device.stream("bench").expect("a stream");
    let rig = Rig {
        launcher: &*launcher,
        stream: &stream,
    };
    let sizes = match option("--log-n") {
        Some(list) => list
            .split(',')
            .filter_map(|word| word.parse().ok())
            .collect(),
        None if bench.real => vec![20, 22, 24, 26, 27, 28],
        None => vec![6],
    };
    for log_n in sizes {
        // Whole tables of 2^28 are 64 GiB for each direction.
        let max_table_bytes = if log_n < 28 { u64::MAX } else { 24 << 30 };
        transforms(&mut bench, &rig, log_n, max_table_bytes);
    }
    if option("--log-n").is_some() {
        return bench.finish();
    }
    let top = if bench.real { 27 } else { 6 };
    if bench.real {
        transforms(&mut bench, &rig, top, 2 << 30);
    }
    for form in [
        QuotientForm::OddProducts,
        QuotientForm::OddValues,
        QuotientForm::Coefficients,
    ] {
        quotient(&mut bench, &rig, top, form, u64::MAX);
    }
    quotient(&mut bench, &rig, top, QuotientForm::OddProducts, 2 << 30);
    bench.finish();
}

/// The word behind an option.
fn option(name: &str) -> Option<String> {
    let args: Vec<String> = std::env::args().collect();
    let at = args.iter().position(|arg| arg == name)?;
    args.get(at + 1).cloned()
}

struct Rig<'a> {
    launcher: &'a dyn Launcher,
    stream: &'a Stream,
}

impl Rig<'_> {
    fn plan(&self, request: &PlanRequest) -> DevicePlan {
        let begin = self.stream.record_timed().expect("an event");
        let plan = DevicePlan::new(self.launcher, self.stream, request).expect("a plan");
        let end = self.stream.record_timed().expect("an event");
        println!(
            "  tables of {} MiB made in {:.1} ms",
            plan.table_bytes() >> 20,
            1e3 * span(&begin, &end).as_secs_f64()
        );
        plan
    }

    /// 1, s, s^2, ...
    fn powers(&self, plan: &DevicePlan, log_n: u32, s: Fr, buffer: &mut DeviceBuf<Fr>) {
        let mut filled = 1;
        self.stream
            .upload_slice(&[Fr::ONE], buffer.view_mut().slice(..1))
            .expect("a copy");
        while filled < buffer.len() {
            let (source, rest) = buffer.view_mut().split_at(filled);
            let target = rest.slice(..filled);
            self.stream.copy(source.as_view(), target).expect("a copy");
            filled *= 2;
        }
        let powers = Powers::new(self.stream, s).expect("memory");
        let mut elements = Elements::natural(buffer.view_mut());
        plan.multiply_by_powers(
            self.launcher,
            self.stream,
            log_n,
            &powers,
            Fr::ONE,
            &mut elements,
        )
        .expect("a launch");
    }

    fn sample<T: cuzk_gpu_mem::Pod>(&self, view: DeviceView<'_, T>, index: usize) -> T {
        let mut found = [T::zeroed()];
        self.stream
            .download_slice(view.slice(index..=index), &mut found)
            .expect("a copy");
        found[0]
    }

    fn alloc(&self, log_n: u32) -> DeviceBuf<Fr> {
        let device = self.stream.device();
        device
            .alloc("bench", 1 << log_n, self.stream)
            .expect("memory")
    }
}

fn span(begin: &Event, end: &Event) -> Duration {
    end.wait().expect("the kernels");
    end.since(begin).expect("both are reached")
}

/// Places to look at: the ends, and some in between.
fn places(log_n: u32) -> impl Iterator<Item = usize> {
    let n = 1_usize << log_n;
    let inner = (0..62_usize).map(move |i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - log_n));
    [0, n - 1].into_iter().chain(inner)
}

fn reverse(index: usize, log_n: u32) -> usize {
    index.reverse_bits() >> (usize::BITS - log_n)
}

/// 1 + x + ... + x^(n-1)
fn geometric(x: Fr, n: u64) -> Fr {
    let below = (x - Fr::ONE).inverse().expect("x is no root of unity");
    (x.pow(n) - Fr::ONE) * below
}

fn clock(bench: &Bench) -> Option<(String, f64)> {
    if !bench.real {
        return None;
    }
    let output = Command::new("nvidia-smi")
        .args(["--query-gpu=clocks.sm,power.draw", "--format=csv,noheader"])
        .arg(format!("--id=GPU-{}", bench.device.info().uuid))
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let mhz = text.split_whitespace().next()?.parse().ok()?;
    Some((text, mhz))
}

/// What a row's name says of the tables' budget.
fn within(max_table_bytes: u64) -> String {
    match max_table_bytes {
        u64::MAX => String::new(),
        bytes => format!(", tables in {} GiB", bytes >> 30),
    }
}

/// Products of elements of Fr that a transform of 2^log_n takes, per element: each round of radix 8 has 4
/// for 8 elements, of radix 4 one for 4; each but the finest multiplies by twiddles.
fn products(log_n: u32) -> f64 {
    let rounds = f64::from(log_n / 3);
    let short = [0.0, 0.5, 1.0][log_n as usize % 3];
    rounds * 0.5 + (rounds - 1.0).max(0.0) * 0.875 + short
}

fn transforms(bench: &mut Bench, rig: &Rig<'_>, log_n: u32, max_table_bytes: u64) {
    let n = 1_u64 << log_n;
    let request = PlanRequest::domain(FAMILY, log_n).within(max_table_bytes);
    let plan = rig.plan(&request);
    let domain = Domain::new(1, FAMILY).expect("a domain");
    let root = domain
        .root_generator()
        .root_of_unity(log_n)
        .expect("a root");
    let s = Fr::from(0x1234_5678_9abc_def1_u64).pow(77);
    let mut buffer = rig.alloc(log_n);
    rig.powers(&plan, log_n, s, &mut buffer);
    let run = |direction, scale, buffer: &mut DeviceBuf<Fr>, down: bool| {
        let (launcher, stream) = (rig.launcher, rig.stream);
        if down {
            let elements = Elements::natural(buffer.view_mut());
            plan.transform(launcher, stream, log_n, direction, scale, elements)
                .map(|_| ())
        } else {
            let elements = Elements::bit_reversed(buffer.view_mut());
            plan.transform(launcher, stream, log_n, direction, scale, elements)
                .map(|_| ())
        }
        .expect("a transform");
    };
    let check_values = |buffer: &DeviceBuf<Fr>| {
        for k in places(log_n) {
            let x = s * root.pow(k as u64);
            let found = rig.sample(buffer.view(), reverse(k, log_n));
            assert!(found == geometric(x, n), "value {k} of 2^{log_n}");
        }
    };
    run(Direction::Forward, Scale::One, &mut buffer, true);
    check_values(&buffer);
    // There and back again, for a second and more.
    let budget = if bench.real { 1.2 } else { 0.0 };
    let (mut up, mut down, mut total, mut count) = (vec![], vec![], 0.0, 0);
    while total < budget || count == 0 {
        let batch = if log_n > 22 { 8 } else { 64 };
        let mut events = vec![rig.stream.record_timed().expect("an event")];
        for _ in 0..batch {
            run(Direction::Inverse, Scale::OverN, &mut buffer, false);
            events.push(rig.stream.record_timed().expect("an event"));
            run(Direction::Forward, Scale::One, &mut buffer, true);
            events.push(rig.stream.record_timed().expect("an event"));
        }
        for pair in events.windows(3).step_by(2) {
            up.push(span(&pair[0], &pair[1]));
            down.push(span(&pair[1], &pair[2]));
        }
        total += span(&events[0], &events[2 * batch]).as_secs_f64();
        count += 2 * batch;
    }
    let clock = clock(bench);
    check_values(&buffer);
    let what = within(max_table_bytes);
    let seconds = total / f64::from(count as u32);
    bench.row(format!("2^{log_n} transform{what}"), seconds * 1e3, "ms");
    for (name, times) in [("natural to reversed", down), ("reversed to natural", up)] {
        let median = device::median(times).as_secs_f64();
        bench.row(
            format!("2^{log_n} {name}, median{what}"),
            median * 1e3,
            "ms",
        );
    }
    let n = n as f64;
    let work = Work {
        butterflies: n * f64::from(log_n) / 2.0,
        products: n * products(log_n),
        bytes: n * 64.0 * passes(log_n),
    };
    work.rows(bench, &format!("2^{log_n}{what}"), seconds, clock);
    println!("    {count} transforms in {total:.2} s");
}

/// What is counted of transforms, by arithmetic rather than by the device.
struct Work {
    butterflies: f64,
    products: f64,
    bytes: f64,
}

impl Work {
    /// What a form of the quotient takes, with as many rows as elements.
    fn of(form: QuotientForm, log_n: u32) -> Self {
        let n = (1_u64 << log_n) as f64;
        // The finest passes of the two transforms of an extension are one, unless they are all there are.
        let extension = (2.0 * passes(log_n) - 1.0).max(2.0);
        // Transforms; products beside theirs, of which coset transforms have one an element; passes; 32-byte elements
        // that these read and write beside their own, and that the last kernel moves.
        let (transforms, more_products, passes, more_elements) = match form {
            QuotientForm::OddProducts => (4.0, 3.0, 2.0 * extension, 1.0),
            QuotientForm::OddValues => (6.0, 5.0, 3.0 * extension, 3.0),
            QuotientForm::Coefficients => (6.0, 6.0, 2.0 * extension + 2.0 * passes(log_n), 5.0),
        };
        Self {
            butterflies: transforms * n * f64::from(log_n) / 2.0,
            products: n * (transforms * products(log_n) + more_products),
            bytes: n * 32.0 * (2.0 * passes + more_elements),
        }
    }

    fn rows(&self, bench: &mut Bench, what: &str, seconds: f64, clock: Option<(String, f64)>) {
        let rates = [
            ("butterflies", self.butterflies / 1e9, "G/s"),
            ("products in Fr", self.products / 1e9, "G/s"),
            ("array bytes moved", self.bytes / 1e12, "TB/s"),
        ];
        for (name, count, unit) in rates {
            bench.row(format!("{what} {name}"), count / seconds, unit);
        }
        if let Some((text, mhz)) = clock {
            // 112 wide products each, at 32 a clock and multiprocessor.
            let limit = f64::from(bench.device.info().multiprocessors) * 32.0 * mhz * 1e6 / 112.0;
            println!(
                "    {:.1} GiB moved, {:.1}% of the wide products' limit; just after: {text}",
                self.bytes / (1_u64 << 30) as f64,
                100.0 * self.products / seconds / limit
            );
        }
    }
}

/// Passes of a transform, as docs/ntt.md says: eleven stages, or nine in all passes and ten in the coarsest.
fn passes(log_n: u32) -> f64 {
    match log_n {
        ..=11 => 1.0,
        12..=19 => 2.0,
        20..=28 => 3.0,
        _ => 4.0,
    }
}

fn quotient(
    bench: &mut Bench,
    rig: &Rig<'_>,
    log_n: u32,
    form: QuotientForm,
    max_table_bytes: u64,
) {
    let n = 1_u64 << log_n;
    let (launcher, stream) = (rig.launcher, rig.stream);
    let mut request = PlanRequest::quotient(FAMILY, log_n, form).within(max_table_bytes);
    let plan = rig.plan(&request);
    // To make the values on the domain from coefficients.
    request.transforms = vec![(Direction::Forward, Points::Domain)];
    request.max_table_bytes = 0;
    let domain_plan = rig.plan(&request);
    let (s, t) = (
        Fr::from(0xabc_def1_u64).pow(91),
        Fr::from(0x1357_9bdf_u64).pow(55),
    );
    let root = FAMILY.root_of_unity(log_n).expect("a root");
    let shift = FAMILY.root_of_unity(log_n + 1).expect("a root");
    let (mut a, mut b) = (rig.alloc(log_n), rig.alloc(log_n));
    let mut c = (form.arrays() == 3).then(|| rig.alloc(log_n));
    let mut fill = || {
        for (base, buffer) in [(s, &mut a), (t, &mut b)] {
            rig.powers(&domain_plan, log_n, base, buffer);
            let elements = Elements::natural(buffer.view_mut());
            let values = domain_plan
                .transform(
                    launcher,
                    stream,
                    log_n,
                    Direction::Forward,
                    Scale::One,
                    elements,
                )
                .expect("a transform");
            domain_plan
                .reverse(launcher, stream, log_n, values)
                .expect("a launch");
        }
        let begin = stream.record_timed().expect("an event");
        let arrays = QuotientArrays {
            a: a.view_mut(),
            b: b.view_mut(),
            c: c.as_mut().map(|c| c.view_mut()),
            rows: n as usize,
        };
        let result = plan
            .quotient(launcher, stream, log_n, form, arrays)
            .expect("the quotient");
        let end = stream.record_timed().expect("an event");
        let samples: Vec<(usize, Scalar)> = places(log_n)
            .map(|i| (i, rig.sample(result.as_view(), i)))
            .collect();
        (span(&begin, &end), samples)
    };
    // h_i = t^(n+i) sum of (s/t)^j for i < j < n.
    let ratio = s * t.inverse().expect("not zero");
    let scale = t.pow(n) * (Fr::ONE - ratio).inverse().expect("s is not t");
    let h_at = |i: u64| scale * t.pow(i) * (ratio.pow(i + 1) - ratio.pow(n));
    let h = |x: Fr| scale * (ratio * geometric(s * x, n) - ratio.pow(n) * geometric(t * x, n));
    let mut times = Vec::new();
    // More than a second of quotients.
    let rounds = if bench.real { 13 } else { 1 };
    for _ in 0..rounds {
        let (time, samples) = fill();
        times.push(time);
        for (i, found) in samples {
            let x = shift * root.pow(i as u64);
            let expected = match form {
                QuotientForm::Coefficients => h_at(i as u64),
                // Z = -2 on the coset.
                QuotientForm::OddValues => -(h(x) + h(x)),
                QuotientForm::OddProducts => geometric(s * x, n) * geometric(t * x, n),
            };
            assert!(found == Scalar::from(expected), "{form:?} {i} of 2^{log_n}");
        }
    }
    let clock = clock(bench);
    let total: Duration = times.iter().sum();
    let median = device::median(times).as_secs_f64();
    let what = format!("2^{log_n} quotient, {form:?}{}", within(max_table_bytes));
    bench.row(what.clone(), median * 1e3, "ms");
    Work::of(form, log_n).rows(bench, &format!("{what},"), median, clock);
    println!(
        "    {rounds} in {:.2} s; peak: {} arrays, {} MiB, and tables of {} MiB",
        total.as_secs_f64(),
        form.arrays(),
        (form.arrays() << (log_n + 5)) >> 20,
        plan.table_bytes() >> 20
    );
}
