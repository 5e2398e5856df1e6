//! A Sapling Spend of Zcash whose ceremony key is prepared with four transforms on a GPU: the time that takes, the file,
//! and proofs from the ordinary and the prepared key, on the CPU and on the GPU, byte for byte equal.
//!
//! `cargo run --release -p cuzk-examples --features sapling --example sapling_prepared -- [--cpu] [PATH]`; `--cpu` makes
//! the bases on the CPU as well and compares, PATH is where the prepared key goes.
#![allow(clippy::print_stdout, reason = "what it prints is its result")]

use std::error::Error;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::PathBuf;

use cuzk_bellman::{bellman as ours, to_bytes};
use cuzk_examples::sapling::{blank, spend};
use cuzk_examples::timed;
use cuzk_field::Fr;
use cuzk_formats::{BytesSource, FileSource, LoadOptions, bellman as params, prepared as file};
use cuzk_gpu_mem::{Device, Settings};
use cuzk_groth16::device::{DeviceProver, Gpu};
use cuzk_groth16::prepared::{self, KeySource, Origin, Rows};
use cuzk_groth16::{Blinding, Circuit, ProveOptions, Prover};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let on_cpu_too = args.iter().any(|arg| arg == "--cpu");
    let path = args.iter().find(|arg| !arg.starts_with("--"));
    let path = path.map_or_else(
        || std::env::temp_dir().join("sapling-spend.prepared"),
        PathBuf::from,
    );
    let device = Device::open_first(&Settings::default())?;
    let gpu = Gpu::new(&device)?;
    println!("{}", device.info());

    let (parameters, _) = wagyu_zcash_parameters::load_sapling_parameters();
    let source = BytesSource::new("sapling-spend.params", &parameters);
    let ordinary = params::read_params(&source, &LoadOptions::default())?.key;
    let shape = ours::record(blank())?;
    let r1cs = shape.r1cs();

    let mut key = ordinary.clone();
    let cost = prepared::device::DeviceCost::of(&gpu, key.flavour, key.domain_size, r1cs)?;
    let expected = cost.time(prepared::device::measure_multiplication(&gpu)?);
    println!(
        "four transforms over 2^{}: {} scalar multiplications, {} MiB on the device, about {expected:.2?} expected",
        key.domain_size.trailing_zeros(),
        cost.multiplications,
        cost.device_bytes >> 20
    );
    let (made, time) =
        timed(|| prepared::device::four_transform_bases(&gpu, &mut key, r1cs, &|_| {}));
    made?;
    println!("bases made on the GPU: {time:.2?}");
    if on_cpu_too {
        let mut other = ordinary.clone();
        let (made, time) = timed(|| prepared::four_transform_bases(&mut other, r1cs, &|_| {}));
        made?;
        println!(
            "bases made on the CPU, {} threads: {time:.2?}",
            std::thread::available_parallelism()?
        );
        if other != key {
            return Err("the bases differ".into());
        }
    }

    let origin = Origin {
        source: KeySource::BellmanParams,
        key_hash: Some(blake3::hash(&parameters).into()),
        r1cs_hash: None,
    };
    let joined = prepared::prepare(key, Rows::Of(r1cs), origin)?;
    file::write(&joined, &mut BufWriter::new(File::create(&path)?), None)?;
    let source = FileSource::open(&path)?;
    let (read, time) = timed(|| file::read(&source, &LoadOptions::default()));
    let read = read?.key;
    if read != joined {
        return Err("the file holds something else".into());
    }
    println!(
        "prepared key of {} bytes read and checked: {time:.2?}",
        fs::metadata(&path)?.len()
    );

    let circuit = || Circuit::Matrices(&read.matrices);
    let on_cpu = [Prover::new(&ordinary)?, Prover::new(&read)?];
    let on_gpu = [
        DeviceProver::new(&gpu, &ordinary, Circuit::R1cs(r1cs))?,
        DeviceProver::new(&gpu, &read, circuit())?,
    ];
    let rounds = 5;
    for round in 0..rounds {
        let witness = ours::witness(&shape, spend(2 + round)?)?;
        let blinding = [3_u64, 5].map(|base| Fr::from(base).pow(100_000 + round).into());
        let [r, s] = blinding;
        let options = || ProveOptions::default().with_blinding(Blinding::from_caller(r, s));
        let (a, time_a) = timed(|| on_cpu[0].prove(Circuit::R1cs(r1cs), &witness, &options()));
        let (b, time_b) = timed(|| on_cpu[1].prove(circuit(), &witness, &options()));
        let (c, time_c) = timed(|| on_gpu[0].prove(&witness, &options()));
        let (d, time_d) = timed(|| on_gpu[1].prove(&witness, &options()));
        let proofs = [a?, b?, c?, d?];
        if proofs
            .iter()
            .any(|proof| !proof.verified || to_bytes([proof]) != to_bytes([&proofs[0]]))
        {
            return Err("the proofs differ".into());
        }
        println!(
            "proof {round}: ordinary key, CPU {time_a:.2?}; prepared, CPU {time_b:.2?}; ordinary, GPU {time_c:.2?}; \
             prepared, GPU {time_d:.2?}"
        );
    }
    println!("{rounds} times four proofs byte for byte equal for equal r and s, and valid");
    Ok(())
}
