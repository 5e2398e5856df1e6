//! What each technique gives on a card: `cargo xtask bench phases -- --log-n 24 --vram-limit 16GiB`.
//!
//! One run, one circuit of the PoRep shape, one key. The first rows are what a program does that has cuzk's kernels and
//! none of its memory or its sums; each row adds one technique. Every row's last proof is verified.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench reports on its standard streams"
)]

#[path = "../device/mod.rs"]
mod device;
mod engine;
mod inputs;
mod plain;
mod table;

use cuzk_gpu_mem::{Device, DeviceBuf, Settings};
use cuzk_groth16::device::Gpu;
use cuzk_groth16::synth::{Instance, KeyExponents, KeyFamily, Shape};

use device::Bench;
use engine::Engine;
use inputs::Inputs;
use plain::{Memory, Plain, Sums};
use table::Table;

fn main() {
    let bench = Bench::open("phases");
    let number = |name: &str, other: usize| {
        device::option(name).map_or(other, |text| text.parse().expect("a number"))
    };
    let log_n = number("--log-n", if bench.real { 24 } else { 1 }) as u32;
    let partitions = number("--partitions", if bench.real { 4 } else { 1 });
    let _ballast = device::has("--ballast").then(|| ballast(&bench.device));
    let gpu = Gpu::new(&bench.device).expect("a GPU that works");
    let mut table = Table::new(&bench.device, log_n);
    let instance = Instance::new(Shape::Porep, log_n, 1).expect("an instance");
    plain_rows(&gpu, &instance, partitions, &mut table);
    engine_rows(&gpu, &instance, partitions, &mut table);
    table.print();
    bench.finish();
}

const FAMILY: KeyFamily = KeyFamily::Bellman;

/// The rows without cuzk's memory and sums: rows of A and B come from the caller, every sum is dense.
fn plain_rows(gpu: &Gpu, instance: &Instance, partitions: usize, table: &mut Table) {
    let exponents = KeyExponents::new(&instance.r1cs, FAMILY, 1).expect("exponents");
    let mut inputs = Inputs::new(gpu, instance, &exponents);
    let log_n = exponents.domain_size.ilog2();
    drop(exponents);
    let mut plain = Plain::new(gpu, log_n).expect("streams");
    let mut row = |name, inputs: &Inputs, memory, sums| {
        let measured = plain.partitions(inputs, memory, sums, partitions);
        table.push(name, measured.map_err(|error| error.to_string()));
    };
    row(
        "pageable, a wait after each of 8 batches",
        &inputs,
        Memory::InTurn,
        Sums::Batches,
    );
    inputs.pin(gpu.device());
    row("pinned", &inputs, Memory::InTurn, Sums::Batches);
    row("pre-staged", &inputs, Memory::Ahead, Sums::Batches);
    row("deferred waits", &inputs, Memory::Ahead, Sums::Streamed);
    row("resident key", &inputs, Memory::Ahead, Sums::Resident);
    drop(plain);
    drop(inputs);
    gpu.device().host().trim_pinned();
}

/// cuzk's provers.
fn engine_rows(gpu: &Gpu, instance: &Instance, partitions: usize, table: &mut Table) {
    let engine = Engine {
        gpu,
        instance,
        partitions,
    };
    let exponents = KeyExponents::new(&instance.r1cs, FAMILY, 1).expect("exponents");
    engine.ordinary(&exponents, table);
    drop(exponents);
    gpu.device().host().trim_pinned();
    let exponents = KeyExponents::for_four_transforms(&instance.r1cs, KeyFamily::Circom, 1);
    engine.four_transforms(&exponents.expect("exponents"), table);
}

/// Leaves no more of the card than the limit: what another program holds.
fn ballast(device: &Device) -> DeviceBuf<u8> {
    let other = Device::open(
        &device.info().ordinal.to_string().parse().expect("a number"),
        Settings::default(),
    );
    let other = other.expect("the same card");
    let stream = other.stream("ballast").expect("a stream");
    let free = device.mem_info().expect("its memory").free;
    let limit = device.budget().state().limit + device.settings().reserve;
    let bytes = usize::try_from(free.saturating_sub(limit)).expect("64 bits");
    println!("    ballast of {} MiB", bytes >> 20);
    other.alloc("ballast", bytes, &stream).expect("free memory")
}
