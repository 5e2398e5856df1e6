//! `cuzk prove`: from arguments to a job; [`material`] loads it and proves, [`result`] tells of it.

mod batch;
mod key;
mod material;
mod result;
mod witnesses;

use std::path::Path;
use std::time::Instant;

use cuzk_formats::{FileSource, json, prepared};
use cuzk_groth16::Proved;

use self::batch::{Batch, Engine, Results};
use self::material::Material;
pub(crate) use self::material::{compare_counts, differing};
use self::result::{ProofResult, resolved_format};
use crate::args::{ProveArgs, usage};
use crate::device::{self, DeviceUsed};
use crate::exit::Failure;
use crate::keys::{self, KeyKind};
use crate::load::Loader;
use crate::output::{self, Target};
use crate::report::Outcome;
use crate::synthetic;

/// Runs the command.
pub(crate) fn run(args: &ProveArgs) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    let batch = args.many.is_batch().then(|| Batch::of(args)).transpose()?;
    if batch.is_none() && args.many.out_dir.is_some() {
        return Err(usage(
            "--out-dir is for many proofs (--witnesses, --partitions); one goes to --proof and --public",
        ));
    }
    let sample = match &batch {
        Some(batch) => batch.sample(&args.inputs)?,
        None => None,
    };
    let with_sample;
    let args = match sample {
        None => args,
        Some(path) => {
            let mut args = args.clone();
            args.inputs.wtns = Some(path.to_owned());
            with_sample = args;
            &with_sample
        }
    };
    let job = Job::of(args)?;
    let results = match &batch {
        None => None,
        Some(batch) => Some(Results::of(args, batch, job.convention(args)?)?),
    };
    let (mut inputs, mut targets) = (job.inputs(args), targets(args));
    if let (Some(batch), Some(results)) = (&batch, &results) {
        inputs.extend(batch.inputs(args));
        targets.extend(results.targets());
    }
    output::check(&targets, &inputs)?;
    let taken = device::take(&args.resources)?;
    let mut loader = Loader::new(&args.load, args.accept_wtns_length_defect);
    let material = match job {
        Job::Files { kind, path } => Material::of_files(args, kind, path, &taken, &mut loader)?,
        Job::Synthetic { log_n } => Material::synthetic(args, log_n, taken.threads(), &mut loader)?,
    };
    let is_named = taken.is_named();
    let (mut device, gpus) = taken.settle(material.circuit().domain_size);
    if let (Some(batch), Some(results)) = (&batch, &results) {
        let engine = Engine::of(args, &material, &gpus, is_named, &mut device, &mut loader)?;
        return batch::run(
            args, batch, results, engine, &material, &device, loader, begun,
        );
    }
    if args.many.sets_engine() {
        let engine = Engine::of(args, &material, &gpus, is_named, &mut device, &mut loader)?;
        let proved = batch::one(args, engine, &material, &mut device, &mut loader)?;
        return written(args, device, material, proved, loader, begun);
    }
    let proved = match gpus
        .first()
        .map(|gpu| material.prove_on(gpu, args, &mut loader))
    {
        Some(Ok(proved)) => proved,
        Some(Err(failure @ (Failure::Device(_) | Failure::OutOfMemory(_)))) if !is_named => {
            device.fall_back(&failure);
            material.prove(args, &mut loader)?
        }
        Some(Err(failure)) => return Err(failure),
        None => material.prove(args, &mut loader)?,
    };
    written(args, device, material, proved, loader, begun)
}

/// Writes a proof and tells of it.
fn written(
    args: &ProveArgs,
    device: DeviceUsed,
    material: Material,
    proved: Proved,
    loader: Loader,
    begun: Instant,
) -> Result<Outcome, Failure> {
    let format = resolved_format(args, material.convention());
    let result = ProofResult {
        args,
        format,
        device,
        circuit: material.circuit(),
        material,
        public_text: json::public_to_string(&proved.public_values)?,
        proved,
        loader,
    };
    result.write()?;
    Ok(result.outcome(begun))
}

/// Where the key comes from.
enum Job<'a> {
    Files { kind: KeyKind, path: &'a Path },
    Synthetic { log_n: u32 },
}

impl<'a> Job<'a> {
    /// What the arguments ask for, if they make sense together.
    fn of(args: &'a ProveArgs) -> Result<Self, Failure> {
        let inputs = &args.inputs;
        let key = keys::chosen(inputs)?;
        if let Some(log_n) = inputs.synthetic {
            let others = [
                ("--zkey", inputs.zkey.is_some()),
                ("--params", inputs.params.is_some()),
                ("--pk", inputs.pk.is_some()),
                ("--prepared", inputs.prepared.is_some()),
                ("--wtns", inputs.wtns.is_some()),
                ("--r1cs", inputs.r1cs.is_some()),
                ("--key-blake3", args.key_blake3.is_some()),
            ];
            if let Some((flag, _)) = others.iter().find(|(_, given)| *given) {
                return Err(usage(format!(
                    "{flag} cannot be used with --synthetic, which makes everything in memory"
                )));
            }
            return Ok(Self::Synthetic { log_n });
        }
        for (flag, given) in [
            ("--shape", inputs.shape.is_some()),
            ("--family", inputs.family.is_some()),
            ("--four-transforms", inputs.four_transforms),
        ] {
            if given {
                return Err(usage(format!("{flag} is for --synthetic only")));
            }
        }
        let Some((kind, path)) = key else {
            return Err(usage(
                "no key: give one of --zkey, --params, --pk and --prepared, or --synthetic LOG_N",
            ));
        };
        if inputs.wtns.is_none() {
            return Err(usage("no witness: give --wtns, or --witnesses for many"));
        }
        if inputs.r1cs.is_none() && matches!(kind, KeyKind::Params | KeyKind::Pk) {
            return Err(usage(format!(
                "--{} needs the constraint system: give --r1cs (a zkey holds what is needed of it, \
                 other keys do not)",
                kind.name()
            )));
        }
        Ok(Self::Files { kind, path })
    }

    /// The kind of key whose tools' conventions hold for the proofs.
    fn convention(&self, args: &ProveArgs) -> Result<KeyKind, Failure> {
        match *self {
            Self::Files {
                kind: KeyKind::Prepared,
                path,
            } => {
                let header = prepared::read_header(&FileSource::open(path)?)?;
                let generator = header.flavour.root_generator;
                Ok(keys::convention_of(header.origin.source, generator))
            }
            Self::Files { kind, .. } => Ok(kind),
            Self::Synthetic { .. } => {
                let (_, kind, _) = synthetic::kinds_of(args.inputs.shape, args.inputs.family);
                Ok(kind)
            }
        }
    }

    fn inputs(&self, args: &'a ProveArgs) -> Vec<&'a Path> {
        let Self::Files { path, .. } = self else {
            return Vec::new();
        };
        let others = [&args.inputs.wtns, &args.inputs.r1cs];
        let others = others.into_iter().filter_map(|path| path.as_deref());
        others.chain([*path]).collect()
    }
}

fn targets(args: &ProveArgs) -> Vec<Target<'_>> {
    let timeline = ("--timeline", &args.many.timeline);
    [
        ("--proof", &args.proof),
        ("--public", &args.public),
        timeline,
    ]
    .into_iter()
    .filter_map(|(flag, path)| {
        let path = path.as_deref()?;
        Some(Target { flag, path })
    })
    .collect()
}
