//! Multi-scalar multiplication on a device. `cargo xtask bench msm` runs it after the host's; `-- --only dense,sort`
//! runs some parts: sort, dense, g2, skew, budget, multiples, streamed, sparse, and, only when asked for, sizes (PF-06), tune,
//! columns, streamed_sparse (2^25), large (2^28), once26 and others (one sum for a profiler).
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
mod multiples;
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
    if only.is_some() {
        if wanted("sizes") {
            let most = if bench.real { 24 } else { 3 };
            dense::every_size(&mut bench, launcher, &stream, most);
        }
        if wanted("tune") {
            dense::tune(&mut bench, launcher, &stream);
        }
        if wanted("columns") {
            sort::columns(&mut bench, launcher, &stream);
        }
        if wanted("streamed_sparse") {
            sparse::porep(&mut bench, launcher, &stream, 25, true);
        }
        if wanted("large") {
            dense::resident::<Fp>(&mut bench, launcher, &stream, "G1", &[28]);
        }
        for (name, log_n, windows) in [("once24", 24, 13), ("once26", 26, 12)] {
            if wanted(name) {
                dense::once(&bench, launcher, &stream, log_n, windows);
            }
        }
    }
    if wanted("multiples") {
        let sizes: &[(u32, &[u64])] = if bench.real {
            &[
                (20, &[1, 4]),
                (22, &[2, 8]),
                (24, &[4, 10, 40]),
                (26, &[40]),
            ]
        } else {
            &[(3, &[1])]
        };
        multiples::multiples::<Fp>(&mut bench, launcher, &stream, "G1", sizes);
        let sizes: &[(u32, &[u64])] = if bench.real {
            &[(20, &[4])]
        } else {
            &[(1, &[1])]
        };
        multiples::multiples::<Fp2>(&mut bench, launcher, &stream, "G2", sizes);
    }
    if wanted("budget") {
        let log_n = if bench.real { 27 } else { 3 };
        dense::budget(&mut bench, launcher, &stream, log_n);
    }
    if wanted("streamed") {
        let sizes: &[u32] = if bench.real {
            &[20, 22, 24, 26, 27]
        } else {
            &[3]
        };
        for &log_n in sizes {
            dense::streamed(&mut bench, launcher, &stream, log_n);
        }
    }
    if wanted("sparse") {
        let log_n = if bench.real { 27 } else { 6 };
        let is_streamed = !bench.real;
        sparse::porep(&mut bench, launcher, &stream, log_n, is_streamed);
    }
    bench.finish();
}
