//! `cuzk prepare`: a key and its circuit, joined into one file that proofs are made from.

mod bases;

use std::path::Path;
use std::time::Instant;

use cuzk_formats::prepared::{KeySource, Origin, PreparedKey};
use cuzk_formats::{FileSource, HBasis, prepared as file, r1cs};
use cuzk_gpu_mem::Bytes;
use cuzk_groth16::prepared::{self, Rows};
use cuzk_groth16::{KeyRef, Prover, first_differing_row};
use serde_json::json;

use self::bases::Maker;
use crate::args::{PrepareArgs, usage};
use crate::device::{self, DeviceUsed, Taken};
use crate::exit::{Exit, Failure};
use crate::keys::{self, KeyFile, KeyKind};
use crate::load::{self, Loader};
use crate::memory::{self, Limit};
use crate::output::{self, Output, Target};
use crate::progress::Bar;
use crate::prove::{compare_counts, differing};
use crate::report::{Lines, Outcome, StageTime, millis};
use crate::synthetic;

/// Runs the command.
pub(crate) fn run(args: &PrepareArgs) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    let job = Job::of(args)?;
    let target = Target {
        flag: "--out",
        path: &args.out,
    };
    let inputs = [job.path(), args.r1cs.as_deref()];
    let inputs: Vec<&Path> = inputs.into_iter().flatten().collect();
    output::check(&[target], &inputs)?;
    // Only the bases of four transforms are made on a device, and only of keys whose secrets are not known.
    let (threads, taken) = match job {
        Job::File { .. } if args.four_transforms => {
            let taken = device::take(&args.resources)?;
            (taken.threads(), Some(taken))
        }
        _ => (device::start_threads(args.resources.threads)?, None),
    };
    let mut loader = Loader::new(&args.load, false);
    let (key, used) = match job {
        Job::File { kind, path } => of_file(args, kind, path, taken, &mut loader)?,
        Job::Synthetic { log_n } => (synthetic(args, log_n, threads, &mut loader)?, None),
    };
    // What the prover would refuse is refused here: that the verifying key's points are in the subgroup.
    StageTime::of(&mut loader.stages, "check key", || {
        Prover::new(KeyRef::from(&key))
    })?;
    let bar = Bar::writing("prepared key");
    let writing = Instant::now();
    output::write_all(vec![Output {
        target,
        write: Box::new(|out| {
            let report = |progress| bar.update(progress);
            Ok(file::write(&key, out, Some(&report))?)
        }),
    }])?;
    let bytes = std::fs::metadata(&args.out)?.len();
    let elapsed = writing.elapsed();
    drop(bar);
    loader
        .stages
        .push(StageTime::moving("write", elapsed, bytes));
    Ok(outcome(args, &key, used, bytes, threads, &loader, begun))
}

/// What is prepared.
#[derive(Clone, Copy)]
enum Job<'a> {
    File { kind: KeyKind, path: &'a Path },
    Synthetic { log_n: u32 },
}

impl<'a> Job<'a> {
    fn of(args: &'a PrepareArgs) -> Result<Self, Failure> {
        let keys = [
            (KeyKind::Zkey, args.zkey.as_deref()),
            (KeyKind::Params, args.params.as_deref()),
            (KeyKind::Pk, args.pk.as_deref()),
        ];
        let key = keys::one_of(&keys)?;
        if let Some(log_n) = args.synthetic {
            if key.is_some() || args.r1cs.is_some() {
                return Err(usage(
                    "--synthetic makes everything in memory: give no key and no --r1cs with it",
                ));
            }
            return Ok(Self::Synthetic { log_n });
        }
        if args.shape.is_some() || args.family.is_some() {
            return Err(usage("--shape and --family are for --synthetic only"));
        }
        let Some((kind, path)) = key else {
            return Err(usage(
                "no key: give one of --zkey, --params and --pk, or --synthetic LOG_N",
            ));
        };
        if args.r1cs.is_none() {
            if kind != KeyKind::Zkey {
                return Err(usage(format!(
                    "--{} needs the constraint system: give --r1cs",
                    kind.name()
                )));
            }
            if args.four_transforms {
                return Err(usage(
                    "--four-transforms needs the constraint system, also for a zkey, which does not \
                     hold its C matrix: give --r1cs",
                ));
            }
        }
        Ok(Self::File { kind, path })
    }

    fn path(self) -> Option<&'a Path> {
        match self {
            Self::File { path, .. } => Some(path),
            Self::Synthetic { .. } => None,
        }
    }
}

fn of_file(
    args: &PrepareArgs,
    kind: KeyKind,
    path: &Path,
    taken: Option<Taken>,
    loader: &mut Loader,
) -> Result<(PreparedKey, Option<DeviceUsed>), Failure> {
    let options = loader.options();
    let key_file = KeyFile::open(kind, path, &options)?;
    let counts = key_file.counts;
    let limit = Limit::of(args.resources.host_limit);
    // The key, and its rows once more.
    let mut needed_bytes = counts.memory_bytes + memory::proving_bytes(0, 1);
    let r1cs_source = args.r1cs.as_deref().map(FileSource::open).transpose()?;
    if let Some(source) = &r1cs_source {
        let (header, _) = r1cs::read_header(source, &options)?;
        compare_counts(&key_file, source, &header)?;
        needed_bytes += header.constraint_bytes + 5 * 8 * u64::from(header.num_constraints);
    }
    Limit::check(limit, needed_bytes)?;
    let r1cs = match &r1cs_source {
        None => None,
        Some(source) => Some(loader.read("r1cs", source, |source, options| {
            r1cs::read(source, options).map(|file| (file.r1cs, file.notes))
        })?),
    };
    let maker = match (taken, &r1cs) {
        (Some(taken), Some(r1cs)) => {
            let (flavour, n) = (kind.flavour(), counts.domain_size as usize);
            Some(Maker::new(taken, flavour, n, r1cs, needed_bytes, limit)?)
        }
        _ => None,
    };
    let hash = |source: &FileSource, loader: &mut Loader, name: &str| {
        StageTime::of(&mut loader.stages, name, || load::blake3(source))
    };
    let origin = Origin {
        source: match kind {
            KeyKind::Params => KeySource::BellmanParams,
            KeyKind::Pk => KeySource::Arkworks,
            KeyKind::Zkey | KeyKind::Prepared => KeySource::Zkey,
        },
        key_hash: Some(hash(&key_file.source, loader, "hash key")?.into()),
        r1cs_hash: match &r1cs_source {
            Some(source) => Some(hash(source, loader, "hash r1cs")?.into()),
            None => None,
        },
    };
    let loaded = key_file.load(loader)?;
    let matrices = loaded.matrices.map(|(matrices, _)| matrices);
    if let (Some(r1cs), Some(matrices)) = (&r1cs, &matrices) {
        let difference = StageTime::of(&mut loader.stages, "compare", || {
            first_differing_row(r1cs, matrices)
        });
        if let Some(difference) = difference {
            return Err(differing(r1cs, &difference, path));
        }
    }
    let mut key = loaded.key;
    let in_file = |failure: Failure| match failure {
        Failure::Groth16(
            error @ (cuzk_groth16::Error::Key { .. } | cuzk_groth16::Error::Point { .. }),
        ) => Failure::BadInput {
            file: path.display().to_string(),
            what: error.to_string(),
        },
        failure => failure,
    };
    if let (Some(maker), Some(r1cs)) = (&maker, &r1cs) {
        maker.make(&mut key, r1cs, loader).map_err(in_file)?;
    }
    let rows = match (&r1cs, &matrices) {
        (Some(r1cs), _) => Rows::Of(r1cs),
        (None, Some(matrices)) => Rows::Zkey(matrices),
        (None, None) => return Err(Failure::Bug("neither R1CS nor matrices".into())),
    };
    let joined = StageTime::of(&mut loader.stages, "join", || {
        prepared::prepare(key, rows, origin)
    });
    let key = joined.map_err(|error| in_file(error.into()))?;
    Ok((key, maker.map(|maker| maker.used)))
}

fn synthetic(
    args: &PrepareArgs,
    log_n: u32,
    threads: usize,
    loader: &mut Loader,
) -> Result<PreparedKey, Failure> {
    let (shape, _, family) = synthetic::kinds_of(args.shape, args.family);
    // The rows once more.
    let made_bytes = synthetic::key_bytes(log_n) + ((12 * 8) << log_n);
    let needed_bytes = made_bytes + memory::proving_bytes(0, threads);
    Limit::check(Limit::of(args.resources.host_limit), needed_bytes)?;
    let (instance, exponents) = synthetic::make(
        shape,
        log_n,
        synthetic::SEED,
        family,
        args.four_transforms,
        &mut loader.stages,
    )?;
    let key = StageTime::of(&mut loader.stages, "make key", || exponents.points());
    let joined = StageTime::of(&mut loader.stages, "join", || {
        prepared::prepare(key, Rows::Of(&instance.r1cs), Origin::SYNTHETIC)
    });
    Ok(joined?)
}

fn outcome(
    args: &PrepareArgs,
    key: &PreparedKey,
    used: Option<DeviceUsed>,
    bytes: u64,
    threads: usize,
    loader: &Loader,
    begun: Instant,
) -> Outcome {
    let elapsed_ms = millis(begun.elapsed());
    let peak_host_bytes = memory::peak_host_bytes();
    let transforms = match key.key.flavour.h_basis {
        HBasis::CosetLagrange { .. } => 4,
        _ => 6,
    };
    let path = args.out.display().to_string();
    let json = json!({
        "command": "prepare",
        "version": env!("CARGO_PKG_VERSION"),
        "path": path,
        "bytes": bytes,
        "transforms": transforms,
        "source": key.origin.source.name(),
        "circuit": {
            "variables": key.key.num_variables(),
            "public_values": key.key.vk.num_public(),
            "domain_size": key.key.domain_size,
        },
        "threads": threads,
        "device": used,
        "stages": loader.stages,
        "elapsed_ms": elapsed_ms,
        "peak_host_bytes": peak_host_bytes,
        "notes": loader.notes.texts(),
    });
    let mut lines = Lines::default();
    lines.line(
        "prepared key",
        format_args!("{path}, {bytes} bytes ({})", Bytes(bytes)),
    );
    lines.line("made from", key.origin.source.name());
    lines.line("transforms", format_args!("{transforms} a proof"));
    if let Some(DeviceUsed { used, reason, .. }) = &used {
        lines.line("bases made on", format_args!("{used} ({reason})"));
    }
    lines.raw("stages");
    lines.stages(&loader.stages);
    lines.line("total", format_args!("{elapsed_ms:>10.1} ms"));
    if let Some(bytes) = peak_host_bytes {
        lines.line("peak host memory", Bytes(bytes));
    }
    Outcome {
        json,
        text: lines.finish(),
        exit: Exit::Success,
    }
}
