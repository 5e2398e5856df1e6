//! Two sums over the same bases, on the CPU, and on the first GPU if there is one.
//!
//! `cargo run --release -p cuzk-msm --example sums -- 20` for 2^20 bases. A GPU needs the images of the kernels: `cargo xtask
//! ptx`.

#![allow(clippy::print_stdout, reason = "an example reports on standard output")]

use std::time::Instant;

use cuzk_field::{Affine, Fp, G1Affine, Scalar};
use cuzk_gpu_mem::{Device, Settings};
use cuzk_msm::device::{MsmPlan, Scalars};
use cuzk_msm::{FixedBase, HostMsmPlan, HostScalars};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let log_n: u32 = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 14,
    };
    if log_n > 28 {
        return Err(format!("at most 2^28 bases, not 2^{log_n}").into());
    }
    let n = 1_usize << log_n;
    // Bases and scalars that look random enough.
    let spread = |i: usize| Scalar::from((i as u64 + 3).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let exponents: Vec<Scalar> = (0..n).map(spread).collect();
    let bases = FixedBase::new(&G1Affine::generator()).multiply_all(&exponents);
    let vectors: [Vec<Scalar>; 2] = [(n..2 * n).map(spread).collect(), vec![Scalar::ONE; n]];

    let begun = Instant::now();
    let scalars = vectors
        .each_ref()
        .map(|vector| HostScalars::Canonical(vector));
    let on_host = HostMsmPlan::new(n, vectors.len()).run(&bases, &scalars)?;
    println!(
        "CPU: {} sums of 2^{log_n} terms in {:.1?}",
        on_host.len(),
        begun.elapsed()
    );

    match Device::open(&"0".parse()?, Settings::default()) {
        Err(reason) => println!("GPU: none ({reason})"),
        Ok(device) => assert!(on_device(&device, &bases, &vectors)? == on_host),
    }
    Ok(())
}

/// The same sums on a device: the caller owns all memory, the plan says how much.
fn on_device(
    device: &Device,
    bases: &[Affine<Fp>],
    vectors: &[Vec<Scalar>],
) -> Result<Vec<Affine<Fp>>> {
    let launcher = cuzk_kernels::open(device)?;
    let stream = device.stream("sums")?;
    let mut points = device.alloc("bases", bases.len(), &stream)?;
    stream.upload_slice(bases, &mut points)?;
    let mut buffers = Vec::new();
    for vector in vectors {
        let mut buffer = device.alloc("scalars", vector.len(), &stream)?;
        stream.upload_slice(vector, &mut buffer)?;
        buffers.push(buffer);
    }
    let plan = MsmPlan::<Fp>::resident(device.info(), bases.len(), vectors.len(), u64::MAX)?;
    let scratch_bytes = usize::try_from(plan.footprint().device)?;
    let mut scratch = device.alloc::<u8>("scratch", scratch_bytes, &stream)?;
    let result = device.host().pinned("sums", plan.result_len())?;
    let begun = Instant::now();
    let scalars: Vec<Scalars<'_>> = buffers
        .iter()
        .map(|buffer| Scalars::Canonical(buffer.view()))
        .collect();
    let pending = plan.run(
        &*launcher,
        &stream,
        points.view(),
        &scalars,
        scratch.view_mut(),
        result,
    )?;
    // The host is free until here.
    let sums = pending.wait()?;
    println!(
        "GPU: {} sums in {:.1?}, {} MiB of scratch",
        sums.len(),
        begun.elapsed(),
        scratch_bytes >> 20
    );
    Ok(sums)
}
