//! The witness packed and uploaded, and A w and B w on the device. `cargo xtask bench rows`; `--log-n N` and
//! `--shape porep|dense` for one size.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench reports on its standard streams"
)]

mod device;

use std::time::{Duration, Instant};

use cuzk_field::{Field as _, Fr, Scalar};
use cuzk_formats::Matrix;
use cuzk_gpu_mem::{DeviceBuf, Pod, Stream};
use cuzk_groth16::device::{DeviceMatrices, HostMatrices, PinnedWitness};
use cuzk_groth16::synth::{Instance, Shape};
use cuzk_kernels::Launcher;
use device::Bench;

fn main() {
    let mut bench = Bench::open("rows");
    let launcher = cuzk_kernels::open(&bench.device).unwrap_or_else(|error| {
        eprintln!("rows: {error}");
        std::process::exit(1);
    });
    let sizes = match (option("--log-n"), option("--shape")) {
        (Some(log_n), shape) => {
            let shape = match shape.as_deref() {
                Some("dense") => Shape::Dense,
                _ => Shape::Porep,
            };
            vec![(shape, log_n.parse().expect("--log-n takes a number"))]
        }
        _ if bench.real => vec![
            (Shape::Dense, 20),
            (Shape::Dense, 22),
            (Shape::Porep, 20),
            (Shape::Porep, 24),
            (Shape::Porep, 27),
        ],
        _ => vec![(Shape::Dense, 6), (Shape::Porep, 8)],
    };
    for (shape, log_n) in sizes {
        rows(&mut bench, &*launcher, shape, log_n);
    }
    bench.finish();
}

fn option(name: &str) -> Option<String> {
    let mut args = std::env::args().skip_while(|arg| arg != name);
    args.nth(1)
}

fn timed<T>(times: &mut Vec<Duration>, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = work();
    times.push(begun.elapsed());
    done
}

fn alloc<T: Pod>(stream: &Stream, len: usize) -> DeviceBuf<T> {
    let device = stream.device();
    device.alloc("bench", len, stream).expect("memory")
}

fn rows(bench: &mut Bench, launcher: &dyn Launcher, shape: Shape, log_n: u32) {
    let name = format!("{shape:?} 2^{log_n}");
    let begun = Instant::now();
    let Instance { r1cs, witness } = Instance::new(shape, log_n, 1).expect("an instance");
    bench.row(
        format!("{name}: circuit and witness made"),
        begun.elapsed().as_secs_f64(),
        "s",
    );
    let variables = r1cs.num_variables;
    let stream = bench.device.stream("bench").expect("a stream");

    let begun = Instant::now();
    let host = HostMatrices::of_r1cs(&r1cs);
    let matrices = DeviceMatrices::upload(&stream, host, variables).expect("the matrices");
    stream.synchronize().expect("the matrices");
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let seconds = begun.elapsed().as_secs_f64();
    bench.row(format!("{name}: matrices uploaded in"), seconds, "s");
    bench.row(format!("{name}: matrices"), mib(matrices.bytes()), "MiB");

    let n = matrices.num_rows();
    let (mut packing, mut uploads, mut kernels) = (Vec::new(), Vec::new(), Vec::new());
    let (mut a, mut b) = (alloc(&stream, n), alloc(&stream, n));
    let mut scratch = alloc(&stream, matrices.scratch_len());
    let mut bytes = 0;
    for round in 0..=bench.rounds(5) {
        if round == 1 {
            for times in [&mut packing, &mut uploads, &mut kernels] {
                times.clear();
            }
        }
        let host = bench.device.host();
        let packed = timed(&mut packing, || {
            PinnedWitness::pack(host, witness.values()).expect("pinned memory")
        });
        bytes = packed.bytes();
        let uploaded = timed(&mut uploads, || {
            let uploaded = packed.upload(&stream).expect("an upload");
            stream.synchronize().expect("an upload");
            uploaded
        });
        let begin = stream.record_timed().expect("an event");
        matrices
            .evaluate(
                launcher,
                &stream,
                uploaded.view(),
                scratch.view_mut(),
                a.view_mut(),
                b.view_mut(),
            )
            .expect("a launch");
        let end = stream.record_timed().expect("an event");
        end.wait().expect("the kernels");
        kernels.push(end.since(&begin).expect("both are reached"));
    }
    let mut found = vec![Fr::ZERO; n];
    for (matrix, inputs, out) in [(&r1cs.a, r1cs.num_inputs, &a), (&r1cs.b, 0, &b)] {
        stream.download_slice(out, &mut found).expect("a copy");
        let values = r1cs.coefficients.values();
        for row in (0..n).filter(|row| row % 1009 == 0 || *row < 64 || n - row < 64) {
            let expected = expected(matrix, values, inputs, witness.values(), row);
            assert!(found[row] == expected, "{name}: row {row}");
        }
    }
    bench.row(format!("{name}: packed witness"), mib(bytes), "MiB");
    let seconds = device::median(packing).as_secs_f64();
    bench.row(
        format!("{name}: packing, of witness"),
        32.0 * variables as f64 / seconds / 1e9,
        "GB/s",
    );
    bench.rate(format!("{name}: upload"), bytes, uploads);
    bench.row(
        format!("{name}: A w and B w"),
        device::median(kernels).as_secs_f64() * 1e3,
        "ms",
    );
}

fn expected(
    matrix: &Matrix,
    coefficients: &[Fr],
    input_rows: usize,
    witness: &[Scalar],
    row: usize,
) -> Fr {
    match row.checked_sub(matrix.num_rows()) {
        Some(input) if input < input_rows => witness[input].into(),
        Some(_) => Fr::ZERO,
        None => matrix.row(row).fold(Fr::ZERO, |sum, (column, id)| {
            sum + coefficients[id as usize] * Fr::from(witness[column as usize])
        }),
    }
}
