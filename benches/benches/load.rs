//! `cargo xtask bench load`: keys of each family, written once and read from the page cache, with one
//! thread and with all.
#![allow(clippy::print_stdout, reason = "a bench reports on standard output")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use cuzk_formats::arkworks::{self, Compression};
use cuzk_formats::{
    AbMatrices, FileSource, LoadOptions, Matrix, ProvingKey, R1cs, bellman, r1cs, zkey,
};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};

/// Reads a file and says whether what was read is what was written.
type Read = Box<dyn Fn(&Path) -> Result<bool, cuzk_formats::Error> + Sync>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut log_n = 18;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--bench" => {}
            "--test" => log_n = 8,
            "--log-n" => log_n = args.next().ok_or("--log-n takes a value")?.parse()?,
            other => return Err(format!("unknown option {other}; there is --log-n 18").into()),
        }
    }
    let dir = tempfile::tempdir()?;
    let Instance { r1cs, .. } = Instance::new(Shape::Porep, log_n, 1)?;
    println!("porep shape, 2^{log_n} rows, files in the page cache");
    println!(
        "{:24} {:>9} {:>14} {:>14}",
        "file", "MB", "1 thread MB/s", "all MB/s"
    );
    for (name, read, write) in files(&r1cs)? {
        let path = dir.path().join(name);
        let mut out = BufWriter::new(File::create(&path)?);
        write(&mut out)?;
        out.flush()?;
        drop(out);
        let megabytes = std::fs::metadata(&path)?.len() as f64 / 1e6;
        let rate = |threads| -> Result<f64, Box<dyn std::error::Error>> {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()?;
            pool.install(|| read(&path))?;
            let start = Instant::now();
            let same = pool.install(|| read(&path))?;
            let rate = megabytes / start.elapsed().as_secs_f64();
            if same {
                Ok(rate)
            } else {
                Err(format!("{name}: read back otherwise").into())
            }
        };
        println!(
            "{name:24} {megabytes:>9.1} {:>14.0} {:>14.0}",
            rate(1)?,
            rate(0)?
        );
    }
    Ok(())
}

type WriteKey = Box<dyn Fn(&mut dyn Write) -> Result<(), cuzk_formats::Error>>;

/// Name, reader, writer.
type Case = (&'static str, Read, WriteKey);

fn files(system: &R1cs) -> Result<Vec<Case>, Box<dyn std::error::Error>> {
    let circom = proving_key(system, KeyFamily::Circom, 2)?;
    let arkworks_key = proving_key(system, KeyFamily::Arkworks, 2)?;
    let bellman_key = proving_key(system, KeyFamily::Bellman, 2)?;
    let matrices = with_input_rows(system)?;
    let options = LoadOptions::default;
    let (zkey_expected, params_expected) =
        (ProvingKey::clone(&circom), ProvingKey::clone(&bellman_key));
    let (plain_expected, packed_expected) = (
        ProvingKey::clone(&arkworks_key),
        ProvingKey::clone(&arkworks_key),
    );
    let (plain, packed) = (ProvingKey::clone(&arkworks_key), arkworks_key);
    let (written, rows) = (system.clone(), system.num_constraints());
    Ok(vec![
        (
            "circuit.zkey",
            Box::new(move |path: &Path| {
                Ok(zkey::read(&FileSource::open(path)?, &options())?.key == zkey_expected)
            }) as Read,
            Box::new(move |out: &mut dyn Write| zkey::write(&circom, &matrices, out)) as WriteKey,
        ),
        (
            "circuit.params",
            Box::new(move |path: &Path| {
                let source = FileSource::open(path)?;
                Ok(bellman::read_params(&source, &options())?.key == params_expected)
            }),
            Box::new(move |out: &mut dyn Write| bellman::write_params(&bellman_key, out)),
        ),
        (
            "key.ark",
            Box::new(move |path: &Path| {
                let source = FileSource::open(path)?;
                Ok(arkworks::read_proving_key(&source, &options())?.key == plain_expected)
            }),
            Box::new(move |out: &mut dyn Write| {
                arkworks::write_proving_key(&plain, Compression::Uncompressed, out)
            }),
        ),
        (
            "key.ark, compressed",
            Box::new(move |path: &Path| {
                let source = FileSource::open(path)?;
                Ok(arkworks::read_proving_key(&source, &options())?.key == packed_expected)
            }),
            Box::new(move |out: &mut dyn Write| {
                arkworks::write_proving_key(&packed, Compression::Compressed, out)
            }),
        ),
        (
            "circuit.r1cs",
            Box::new(move |path: &Path| {
                let read = r1cs::read(&FileSource::open(path)?, &options())?.r1cs;
                Ok(read.num_constraints() == rows)
            }),
            Box::new(move |out: &mut dyn Write| r1cs::write(&written, out)),
        ),
    ])
}

/// A and B with the rows that bind the inputs, as a zkey has them.
fn with_input_rows(system: &R1cs) -> Result<AbMatrices, Box<dyn std::error::Error>> {
    let (mut a, mut b): (Matrix, Matrix) = (system.a.clone(), system.b.clone());
    for input in 0..system.num_inputs {
        a.push_entry(u32::try_from(input)?, cuzk_formats::CoefficientTable::ONE);
        if a.end_row().is_err() || b.end_row().is_err() {
            return Err("too many entries".into());
        }
    }
    Ok(AbMatrices {
        a,
        b,
        coefficients: system.coefficients.clone(),
    })
}
