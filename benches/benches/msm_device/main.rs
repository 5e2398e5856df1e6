//! Multi-scalar multiplication on a device. `cargo xtask bench msm` runs it after the host's; `-- --only dense,sort`
//! runs some parts: sort, dense, g2, skew, budget, streamed, sparse, tune.
//!
//! Bases are known multiples of the generator, so that every sum is checked, at any size.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench reports on its standard streams"
)]

mod dense;
#[path = "../device/mod.rs"]
mod device;
mod sort;
mod sparse;
mod values;

use cuzk_field::{Fp, Fp2};

use device::Bench;

fn main() {
    let mut bench = Bench::open("msm_device");
    let launcher = match cuzk_kernels::open(&bench.device) {
        Ok(launcher) => launcher,
        Err(error) => {
            eprintln!("msm_device: {error}");
            std::process::exit(1);
        }
    };
    let launcher = &*launcher;
    let stream = bench.device.stream("bench").expect("a stream");
    let args: Vec<String> = std::env::args().collect();
    let only = args.iter().position(|arg| arg == "--only");
    let only = only.and_then(|at| args.get(at + 1));
    let wanted = |part: &str| only.is_none_or(|list| list.split(',').any(|name| name == part));

    if wanted("sort") {
        sort::sorts(&mut bench, launcher, &stream);
    }
    if wanted("dense") {
        let sizes: &[u32] = if bench.real {
            &[20, 22, 24, 26, 27]
        } else {
            &[4]
        };
        dense::resident::<Fp>(&mut bench, launcher, &stream, "G1", sizes);
    }
    if wanted("g2") {
        let sizes: &[u32] = if bench.real { &[20, 24] } else { &[1] };
        dense::resident::<Fp2>(&mut bench, launcher, &stream, "G2", sizes);
    }
    if wanted("skew") {
        let log_n = if bench.real { 24 } else { 3 };
        dense::skewed(&mut bench, launcher, &stream, log_n);
    }
    // Not without being asked for.
    if only.is_some() && wanted("tune") {
        dense::tune(&mut bench, launcher, &stream);
    }
    if wanted("budget") {
        let log_n = if bench.real { 27 } else { 3 };
        dense::budget(&mut bench, launcher, &stream, log_n);
    }
    if wanted("streamed") {
        let log_n = if bench.real { 27 } else { 3 };
        dense::streamed(&mut bench, launcher, &stream, log_n);
    }
    if wanted("sparse") {
        let log_n = if bench.real { 27 } else { 6 };
        sparse::porep(&mut bench, launcher, &stream, log_n);
    }
    bench.finish();
}
