//! A first program: polynomials multiplied by their values, on the CPU and, where there is one, on a GPU.
//!
//! `cargo run --release -p cuzk-ntt --example transform`; the GPU's part needs `cargo xtask ptx` first.

#![allow(clippy::print_stdout, reason = "what it prints is its result")]

use std::error::Error;

use cuzk_field::{Fr, RootGenerator};
use cuzk_gpu_mem::{Device, Settings};
use cuzk_ntt::device::{self, DevicePlan, Elements, PlanRequest};
use cuzk_ntt::{Direction, HostElements, HostPlan, Scale};

/// log2 of the number of coefficients of the product.
const LOG_N: u32 = 12;

/// The roots of bellman and arkworks; `Five` are those of snarkjs.
const FAMILY: RootGenerator = RootGenerator::Seven;

fn main() -> Result<(), Box<dyn Error>> {
    // 1 + x + x^2 + ... and 1 + 2 x + 3 x^2 + ..., n/2 coefficients each: the product has fewer than n.
    let n = 1_usize << LOG_N;
    let mut a: Vec<Fr> = vec![Fr::from(1); n / 2];
    let mut b: Vec<Fr> = (1..=n as u64 / 2).map(Fr::from).collect();
    a.resize(n, Fr::from(0));
    b.resize(n, Fr::from(0));

    let on_cpu = on_cpu(a.clone(), b.clone())?;
    // 1, 1 + 2, 1 + 2 + 3, ...
    assert!(on_cpu[0] == Fr::from(1) && on_cpu[1] == Fr::from(3) && on_cpu[2] == Fr::from(6));
    println!("CPU: a product of {n} coefficients");

    match Device::open_first(&Settings::default()) {
        Err(reason) => println!("no GPU: {reason}"),
        Ok(device) => {
            let on_device = on_device(&device, &a, &b)?;
            assert!(on_device == on_cpu, "the GPU and the CPU differ");
            println!("{}: the same", device.info());
        }
    }
    Ok(())
}

fn on_cpu(mut a: Vec<Fr>, mut b: Vec<Fr>) -> Result<Vec<Fr>, Box<dyn Error>> {
    let plan = HostPlan::new(FAMILY, LOG_N)?;
    let forward = Direction::Forward;
    // Coefficients in natural order to values in bit-reversed order: products do not mind.
    let mut values = plan.transform(LOG_N, forward, Scale::One, HostElements::natural(&mut a))?;
    let others = plan.transform(LOG_N, forward, Scale::One, HostElements::natural(&mut b))?;
    plan.multiply(&mut values, &others)?;
    plan.transform(LOG_N, Direction::Inverse, Scale::OverN, values)?;
    Ok(a)
}

fn on_device(device: &Device, a: &[Fr], b: &[Fr]) -> Result<Vec<Fr>, Box<dyn Error>> {
    let launcher = device::open(device)?;
    let launcher = &*launcher;
    let stream = device.stream("example")?;
    let plan = DevicePlan::new(launcher, &stream, &PlanRequest::domain(FAMILY, LOG_N))?;
    let (mut on_a, mut on_b) = (
        device.alloc("a", a.len(), &stream)?,
        device.alloc("b", b.len(), &stream)?,
    );
    stream.upload_slice(a, &mut on_a)?;
    stream.upload_slice(b, &mut on_b)?;
    let transform = |elements| {
        let direction = Direction::Forward;
        plan.transform(launcher, &stream, LOG_N, direction, Scale::One, elements)
    };
    let mut values = transform(Elements::natural(on_a.view_mut()))?;
    let others = transform(Elements::natural(on_b.view_mut()))?;
    plan.multiply(launcher, &stream, &mut values, &others)?;
    let inverse = Direction::Inverse;
    let product = plan.transform(launcher, &stream, LOG_N, inverse, Scale::OverN, values)?;
    let mut found = vec![Fr::from(0); a.len()];
    // Waits for the stream.
    stream.download_slice(product.into_view().into_view(), &mut found)?;
    Ok(found)
}
