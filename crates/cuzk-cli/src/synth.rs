//! `cuzk synth`: a circuit, a witness and a key of a given size and shape, as files.

use std::fs;
use std::io::Write;
use std::time::Instant;

use cuzk_formats::arkworks::Compression;
use cuzk_formats::{AbMatrices, ProvingKey, arkworks, bellman, r1cs, wtns, zkey};
use cuzk_gpu_mem::Bytes;
use cuzk_groth16::device::synthetic_key;
use cuzk_groth16::synth::Instance;
use serde_json::json;

use crate::args::SynthArgs;
use crate::device::{self, DeviceUsed};
use crate::exit::Failure;
use crate::keys::KeyKind;
use crate::memory::{self, Limit};
use crate::output::{self, Folder, Output, Target};
use crate::progress::Bar;
use crate::report::{Lines, Outcome, StageTime, millis};
use crate::synthetic;

/// Runs the command.
pub(crate) fn run(args: &SynthArgs) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    let (shape, kind, family) = synthetic::kinds_of(Some(args.shape), Some(args.family));
    let _folder = Folder::make("--out-dir", &args.out_dir)?;
    let paths = ["r1cs", "wtns", kind.name()]
        .map(|extension| args.out_dir.join("circuit").with_extension(extension));
    let targets = paths.each_ref().map(|path| Target {
        flag: "--out-dir",
        path,
    });
    output::check(&targets, &[])?;
    let taken = device::take(&args.resources)?;
    let needed_bytes = synthetic::key_bytes(args.log_n) + memory::proving_bytes(0, taken.threads());
    Limit::check(Limit::of(args.resources.host_limit), needed_bytes)?;

    let mut stages = Vec::new();
    let (instance, exponents) =
        synthetic::make(shape, args.log_n, args.seed, family, false, &mut stages)?;
    let (device, gpus) = taken.settle(exponents.domain_size);
    let key = {
        let _bar = Bar::working("making the points of the key");
        StageTime::of(&mut stages, "make key", || match gpus.first() {
            Some(gpu) => synthetic_key(gpu, &exponents).map_err(Failure::from),
            None => Ok(exponents.points()),
        })?
    };
    drop((exponents, gpus));
    write(targets, &instance, kind, &key, &mut stages)?;
    outcome(args, kind, &targets, &instance, &device, &stages, begun)
}

fn write(
    [r1cs, wtns, key_file]: [Target<'_>; 3],
    instance: &Instance,
    kind: KeyKind,
    key: &ProvingKey,
    stages: &mut Vec<StageTime>,
) -> Result<(), Failure> {
    let _bar = Bar::working("writing");
    let begun = Instant::now();
    let write_key = |out: &mut dyn Write| -> Result<(), Failure> {
        match kind {
            KeyKind::Params => bellman::write_params(key, out)?,
            KeyKind::Pk => arkworks::write_proving_key(key, Compression::Uncompressed, out)?,
            KeyKind::Zkey | KeyKind::Prepared => {
                let matrices = AbMatrices::of(&instance.r1cs).map_err(cuzk_formats::Error::from)?;
                zkey::write(key, &matrices, out)?;
            }
        }
        Ok(())
    };
    output::write_all(vec![
        Output {
            target: r1cs,
            write: Box::new(|out| Ok(r1cs::write(&instance.r1cs, out)?)),
        },
        Output {
            target: wtns,
            write: Box::new(|out| Ok(wtns::write(&instance.witness, out)?)),
        },
        Output {
            target: key_file,
            write: Box::new(write_key),
        },
    ])?;
    let bytes = [r1cs, wtns, key_file]
        .iter()
        .map(|target| fs::metadata(target.path).map(|metadata| metadata.len()))
        .sum::<Result<u64, _>>()?;
    stages.push(StageTime::moving("write", begun.elapsed(), bytes));
    Ok(())
}

fn outcome(
    args: &SynthArgs,
    kind: KeyKind,
    targets: &[Target<'_>; 3],
    instance: &Instance,
    device: &DeviceUsed,
    stages: &[StageTime],
    begun: Instant,
) -> Result<Outcome, Failure> {
    let r1cs = &instance.r1cs;
    let files = targets
        .iter()
        .map(|target| {
            let bytes = fs::metadata(target.path)?.len();
            Ok((target.path, bytes))
        })
        .collect::<std::io::Result<Vec<_>>>()?;
    let elapsed_ms = millis(begun.elapsed());
    let peak_host_bytes = memory::peak_host_bytes();
    let json = json!({
        "command": "synth",
        "version": env!("CARGO_PKG_VERSION"),
        "device": device,
        "seed": args.seed,
        "circuit": {
            "constraints": r1cs.num_constraints(),
            "variables": r1cs.num_variables,
            "public_values": r1cs.num_inputs - 1,
            "domain_size": r1cs.domain_size(),
        },
        "files": files.iter().map(|(path, bytes)| json!({
            "path": path.display().to_string(),
            "bytes": bytes,
        })).collect::<Vec<_>>(),
        "stages": stages,
        "elapsed_ms": elapsed_ms,
        "peak_host_bytes": peak_host_bytes,
    });
    let mut lines = Lines::default();
    lines.line(
        "circuit",
        format_args!(
            "{} constraints, {} variables, {} public values, domain 2^{}",
            r1cs.num_constraints(),
            r1cs.num_variables,
            r1cs.num_inputs - 1,
            r1cs.domain_size().trailing_zeros()
        ),
    );
    for (name, (path, bytes)) in ["constraints", "witness", "key"].iter().zip(&files) {
        lines.line(
            name,
            format_args!("{}, {bytes} bytes ({})", path.display(), Bytes(*bytes)),
        );
    }
    lines.line(
        "key kind",
        format_args!(
            "{}; it protects nothing, its secrets follow from the seed",
            kind.title()
        ),
    );
    lines.line("device", device);
    lines.raw("stages");
    lines.stages(stages);
    lines.line("total", format_args!("{elapsed_ms:>10.1} ms"));
    if let Some(bytes) = peak_host_bytes {
        lines.line("peak host memory", Bytes(bytes));
    }
    Ok(Outcome::success(json, lines.finish()))
}
