//! `cuzk prove`: from arguments to a job; [`material`] loads it and proves, [`result`] tells of it.

mod batch;
mod gpu_use;
mod key;
mod material;
mod result;
mod witnesses;

use std::path::Path;
use std::time::Instant;

use cuzk_formats::{FileSource, json, prepared};
use cuzk_groth16::Proved;

use self::batch::{Batch, Engine, Results, Task};
use self::gpu_use::GpuUse;
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
        let task = Task {
            args,
            batch,
            results,
            material: &material,
            device: &device,
            begun,
        };
        return batch::run(task, engine, loader);
    }
    if args.many.sets_engine() {
        let engine = Engine::of(args, &material, &gpus, is_named, &mut device, &mut loader)?;
        let (proved, gpus, timeline) = batch::one(engine, &material, &mut device, &mut loader)?;
        let written = written(args, device, gpus, material, proved, loader, begun);
        // Neither takes the other along.
        let lost = batch::write_timeline(&args.many, timeline.as_ref());
        let mut outcome = written?;
        if let Some(path) = &args.many.timeline {
            let path = lost.is_none().then(|| path.display().to_string());
            outcome.json["timeline_path"] = path.into();
        }
        if let Some(exit) = lost {
            outcome.exit = exit;
        }
        return Ok(outcome);
    }
    let (proved, used) = match gpus
        .first()
        .map(|gpu| material.prove_on(gpu, args, &mut loader))
    {
        Some(Ok((proved, used))) => (proved, vec![used]),
        Some(Err(failure @ (Failure::Device(_) | Failure::OutOfMemory(_)))) if !is_named => {
            device.fall_back(&failure);
            (material.prove(args, &mut loader)?, Vec::new())
        }
        Some(Err(failure)) => return Err(failure),
        None => (material.prove(args, &mut loader)?, Vec::new()),
    };
    written(args, device, used, material, proved, loader, begun)
}

/// Writes a proof and tells of it.
fn written(
    args: &ProveArgs,
    device: DeviceUsed,
    gpus: Vec<GpuUse>,
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
        gpus,
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

#[cfg(test)]
mod tests {
    use cuzk_gpu_mem::GIB;
    use cuzk_groth16::device::Gpu;
    use serde_json::Value;

    use super::*;
    use crate::args::prove_args;

    /// The result of a proof on the emulated GPU, by itself or through the engine.
    fn result(gpu: &Gpu, flags: &[&str]) -> Value {
        let args = prove_args(&[&["--synthetic", "2"], flags].concat());
        let mut loader = Loader::new(&args.load, false);
        let material = Material::synthetic(&args, 2, 1, &mut loader).unwrap();
        let mut device = DeviceUsed {
            requested: "cuda".to_owned(),
            used: "cuda:0".to_owned(),
            reason: "as asked".to_owned(),
            threads: 1,
            opened_ms: None,
        };
        let gpus = std::slice::from_ref(gpu);
        let (proved, used) = if args.many.sets_engine() {
            let engine =
                Engine::of(&args, &material, gpus, true, &mut device, &mut loader).unwrap();
            let (proved, used, _) =
                batch::one(engine, &material, &mut device, &mut loader).unwrap();
            (proved, used)
        } else {
            let (proved, used) = material.prove_on(gpu, &args, &mut loader).unwrap();
            (proved, vec![used])
        };
        let begun = Instant::now();
        let outcome = written(&args, device, used, material, proved, loader, begun);
        outcome.unwrap().json
    }

    #[test]
    fn a_result_says_what_a_proof_took_of_its_gpu() {
        let gpu = Gpu::new(&cuzk_testkit::device::emulated(2 * GIB)).unwrap();
        let json = result(&gpu, &[]);
        assert_eq!(json["verified"], true);
        let used = &json["gpus"][0];
        assert_eq!(used["device"], "cuda:0");
        assert_eq!(used["residency"], "whole");
        assert_eq!(used["tier"], "all");
        let bytes = |name: &str| used[name].as_u64().unwrap();
        assert!(bytes("key_bytes") > 0 && bytes("peak_bytes") > bytes("key_bytes"));
        assert_eq!(bytes("pinned_key_bytes"), 0);
        // A word and a rank for up to 32 variables, and at most all values.
        let variables = json["circuit"]["variables"].as_u64().unwrap();
        assert!(
            (12..=12 + 32 * variables).contains(&bytes("bytes_up")),
            "{used}"
        );
        assert!(bytes("bytes_down") > 0);

        let json = result(&gpu, &["--concurrency", "1"]);
        let used = json["gpus"][0].as_object().unwrap();
        assert_eq!(used["residency"], "whole");
        assert!(!used.contains_key("tier"));
    }
}
