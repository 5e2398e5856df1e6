//! Many proofs with one key: an engine, results as they come. [`session`] hands proofs in and takes
//! their results, [`results`] says where those go, [`report`] tells of them.

mod report;
mod results;
mod session;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Instant;

use cuzk_formats::{FileSource, LoadOptions, wtns};
use cuzk_gpu_mem::Footprint;
use cuzk_groth16::Proved;
use cuzk_groth16::device::Gpu;
use cuzk_sched::timeline::Run;
use cuzk_sched::{
    DeviceOptions, JobError, JobOptions, OnDeviceError, Options, Place, ProofError, Proofs,
    Scheduler, Statement, SubmitError,
};

use self::report::Tally;
pub(super) use self::results::Results;
use self::session::Session;
use super::gpu_use::GpuUse;
use super::material::Material;
use super::witnesses::{self, Entry};
use crate::args::{InputArgs, ManyArgs, ProveArgs, usage};
use crate::device::{self, DeviceUsed};
use crate::exit::{self, Exit, Failure};
use crate::keys::{self, KeyFile};
use crate::load::Loader;
use crate::output::{self, Output, Target};
use crate::progress::Bar;
use crate::report::Outcome;
use crate::{memory, signals};

/// The partitions that were asked for, and where their results go.
pub(super) struct Batch {
    /// Empty where all partitions have the witness of the material.
    entries: Vec<Entry>,
    partitions: usize,
    proofs: usize,
}

impl Batch {
    /// Finds out what there is to prove.
    pub(super) fn of(args: &ProveArgs) -> Result<Self, Failure> {
        let many = &args.many;
        for (flag, given) in [
            ("--proof", args.proof.is_some()),
            ("--public", args.public.is_some()),
        ] {
            if given {
                return Err(usage(format!(
                    "{flag} is for one proof; the results of many go to --out-dir"
                )));
            }
        }
        let partitions = many.partitions.map_or(1, |n| n as usize);
        let Some(path) = &many.witnesses else {
            if args.inputs.synthetic.is_none() {
                return Err(usage(
                    "--partitions needs as many witnesses: give --witnesses, or --synthetic",
                ));
            }
            return Ok(Self {
                entries: Vec::new(),
                partitions,
                proofs: 1,
            });
        };
        if args.inputs.wtns.is_some() || args.inputs.synthetic.is_some() {
            return Err(usage(
                "--witnesses says what is proved: it goes without --wtns and --synthetic",
            ));
        }
        let entries = witnesses::find(path)?;
        if entries.len() % partitions != 0 {
            return Err(usage(format!(
                "{} witnesses do not make whole proofs of {partitions} partitions",
                entries.len()
            )));
        }
        Ok(Self {
            partitions,
            proofs: entries.len() / partitions,
            entries,
        })
    }

    /// A witness by which the key's files are checked and memory is estimated: the first that is of
    /// the key's length. The others are checked when their turn comes.
    pub(super) fn sample(&self, inputs: &InputArgs) -> Result<Option<&Path>, Failure> {
        let Some(first) = self.entries.first() else {
            return Ok(None);
        };
        let Some((kind, path)) = keys::chosen(inputs)? else {
            return Ok(Some(&first.path));
        };
        let options = LoadOptions::default();
        let expected = KeyFile::open(kind, path, &options)?.counts.num_variables;
        let fits = |entry: &&Entry| {
            FileSource::open(&entry.path)
                .and_then(|source| wtns::read_header(&source, &options))
                .is_ok_and(|(values, _)| u64::from(values) == expected)
        };
        Ok(Some(&self.entries.iter().find(fits).unwrap_or(first).path))
    }

    fn name(&self, partition: usize) -> String {
        match self.entries.get(partition) {
            Some(entry) => entry.name.display().to_string(),
            None => format!("partition-{partition}"),
        }
    }

    /// The files that it is made from.
    pub(super) fn inputs<'a>(&'a self, args: &'a ProveArgs) -> impl Iterator<Item = &'a Path> {
        let list = args.many.witnesses.as_deref();
        list.into_iter()
            .chain(self.entries.iter().map(|entry| entry.path.as_path()))
    }
}

/// Provers, and how they are worked with.
pub(super) struct Engine<'a> {
    proofs: Arc<Proofs<'a>>,
    options: Options,
    /// The names of the engine's devices.
    devices: Vec<String>,
    gpus: Vec<GpuUse>,
}

impl<'a> Engine<'a> {
    /// On the GPUs there are; where one that nobody named does not do, on the CPU.
    pub(super) fn of(
        args: &ProveArgs,
        material: &'a Material,
        mut gpus: &'a [Gpu],
        is_named: bool,
        device: &mut DeviceUsed,
        loader: &mut Loader,
    ) -> Result<Self, Failure> {
        let (proofs, used) = match proofs(args, material, gpus, loader) {
            Err(failure @ (Failure::Device(_) | Failure::OutOfMemory(_)))
                if !gpus.is_empty() && !is_named =>
            {
                device.fall_back(&failure);
                gpus = &[];
                proofs(args, material, gpus, loader)?
            }
            proofs => proofs?,
        };
        if !used.is_empty() {
            let names: Vec<&str> = used.iter().map(GpuUse::name).collect();
            device.used = names.join(", ");
        }
        let names = gpus.iter().map(device::name_of);
        Ok(Self {
            proofs: Arc::new(proofs),
            options: options(args, gpus),
            devices: names.chain(["cpu".to_owned()]).collect(),
            gpus: used,
        })
    }
}

/// What is proved, with what, and where results go.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) args: &'a ProveArgs,
    pub(super) batch: &'a Batch,
    pub(super) results: &'a Results,
    pub(super) material: &'a Material,
    pub(super) device: &'a DeviceUsed,
    pub(super) begun: Instant,
}

/// Proves all of it.
pub(super) fn run(
    task: Task<'_>,
    engine: Engine<'_>,
    mut loader: Loader,
) -> Result<Outcome, Failure> {
    let Task { args, batch, .. } = task;
    let Engine {
        proofs,
        options,
        devices,
        gpus,
    } = engine;
    let mut session = Session {
        task,
        devices: &devices,
        bar: Bar::counting("proving", (batch.partitions * batch.proofs) as u64),
        losses: Arc::default(),
        notes: Arc::default(),
        report: Tally::default(),
    };
    signals::drain_at_first();
    let proving = Instant::now();
    let timeline = thread::scope(|scope| -> Result<Option<Run>, Failure> {
        let scheduler = Scheduler::start_in(scope, options.clone())
            .map_err(|error| Failure::Device(error.to_string()))?;
        session.drive(&scheduler, &proofs)?;
        scheduler.drain();
        Ok(scheduler.timeline())
    })?;
    let Session {
        bar,
        mut report,
        notes,
        ..
    } = session;
    report.proving = proving.elapsed();
    drop(bar);
    let notes = std::mem::take(&mut *notes.lock().unwrap_or_else(PoisonError::into_inner));
    for (file, notes) in notes.values() {
        loader.notes.add(file, notes);
    }
    if let Some(exit) = write_timeline(&args.many, timeline.as_ref()) {
        report.exit = report.exit.or(exit);
        report.is_timeline_lost = true;
    }
    Ok(report.outcome(task, &options, &gpus, &loader))
}

/// One proof through the engine: for its timeline, or as it is set up.
pub(super) fn one(
    engine: Engine<'_>,
    material: &Material,
    device: &mut DeviceUsed,
    loader: &mut Loader,
) -> Result<(Proved, Vec<GpuUse>, Option<Run>), Failure> {
    let Engine {
        proofs,
        options,
        devices,
        gpus,
    } = engine;
    let bar = Bar::working("proving");
    let (finished, timeline) = thread::scope(|scope| -> Result<_, Failure> {
        let scheduler = Scheduler::start_in(scope, options)
            .map_err(|error| Failure::Device(error.to_string()))?;
        let statement = Statement::Witness(Arc::clone(material.witness()?));
        let job = scheduler
            .submit(&proofs, vec![statement], JobOptions::default())
            .map_err(refused)?;
        let finished = job.wait().map_err(failure)?;
        scheduler.drain();
        Ok((finished, scheduler.timeline()))
    })?;
    drop(bar);
    let partition = finished.partitions.first();
    if let Some(name) = partition.and_then(|partition| devices.get(partition.device))
        && *name != device.used
    {
        if name == "cpu" {
            device.reason = format!("{} failed", device.used);
        }
        device.used.clone_from(name);
    }
    let proved = finished.outputs.into_iter().next();
    let proved = proved.ok_or_else(|| Failure::Bug("a job without result".into()))?;
    loader.add_stages(&proved);
    Ok((proved, gpus, timeline))
}

/// The provers there are to be, and what those on GPUs have of them.
fn proofs<'a>(
    args: &ProveArgs,
    material: &'a Material,
    gpus: &'a [Gpu],
    loader: &mut Loader,
) -> Result<(Proofs<'a>, Vec<GpuUse>), Failure> {
    let on_cpu = |loader: &mut Loader| -> Result<Proofs<'a>, Failure> {
        Ok(Proofs::new(
            material.prover(loader)?,
            material.as_circuit()?,
        ))
    };
    if gpus.is_empty() {
        return Ok((on_cpu(loader)?, Vec::new()));
    }
    let mut proofs = match args.many.on_gpu_error() {
        OnDeviceError::Cpu => on_cpu(loader)?,
        _ => Proofs::on_gpus(material.verifier()?),
    };
    let mut used = Vec::new();
    let mut too_small = None;
    for gpu in gpus {
        match material.prover_on(gpu, loader) {
            Ok(prover) => {
                used.push(GpuUse::of(gpu, &prover));
                proofs = proofs.with_gpu(gpu, prover);
            }
            // Another one may be larger.
            Err(failure @ Failure::OutOfMemory(_)) if gpus.len() > 1 => {
                tracing::warn!("{} is left out: {failure}", device::name_of(gpu));
                too_small = Some(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    match too_small {
        Some(failure) if used.is_empty() => Err(failure),
        _ => Ok((proofs, used)),
    }
}

fn options(args: &ProveArgs, gpus: &[Gpu]) -> Options {
    let many = &args.many;
    let places = gpus.iter().map(|gpu| Place::Device(gpu.device().clone()));
    let mut options = match gpus {
        [] => Options::new([DeviceOptions::new(Place::Cpu)]),
        _ => Options::new(
            places
                .map(DeviceOptions::new)
                .chain([DeviceOptions::fallback(Place::Cpu)]),
        ),
    };
    options.on_device_error = many.on_gpu_error();
    options.workers_per_device = many.workers_per_device.map_or(2, usize::from);
    options.concurrency = many.concurrency.map_or(2, usize::from);
    // One more is ready when one ends.
    options.jobs_max = options.concurrency + 1;
    options.verify = !args.no_verify;
    options.timeline = many.timeline.is_some();
    if let Some(bytes) = memory::left_bytes(args.resources.host_limit) {
        options.host_limit = Footprint {
            host: bytes,
            ..options.host_limit
        };
    }
    options
}

/// Writes what was recorded. That this fails is said and is how the program ends, but takes no proof along.
pub(super) fn write_timeline(many: &ManyArgs, run: Option<&Run>) -> Option<Exit> {
    let (path, run) = many.timeline.as_ref().zip(run)?;
    let written = serde_json::to_vec(run)
        .map_err(|error| Failure::Bug(error.to_string()))
        .and_then(|text| {
            let target = Target {
                flag: "--timeline",
                path,
            };
            output::write_all(vec![Output::of(target, &text)])
        });
    let failure = written.err()?;
    exit::say(&failure.to_string());
    Some(failure.exit())
}

/// A job's end as a failure of the program.
fn failure(error: JobError<ProofError>) -> Failure {
    match error {
        JobError::Failed {
            error: ProofError::Groth16(error),
            ..
        } => error.into(),
        JobError::Failed {
            error: ProofError::Load(what),
            ..
        } => Failure::Mismatch(what),
        JobError::Failed {
            error: ProofError::Device(error),
            ..
        } if !error.is_out_of_memory() => Failure::Device(error.to_string()),
        JobError::Failed {
            error: ProofError::Device(error),
            ..
        } => Failure::OutOfMemory(error.to_string()),
        JobError::OutOfMemory { .. } => Failure::OutOfMemory(error.to_string()),
        JobError::Panicked { .. } => Failure::Bug(error.to_string()),
        error => Failure::Device(error.to_string()),
    }
}

fn refused(error: SubmitError) -> Failure {
    match error {
        SubmitError::TooLarge { .. } => Failure::OutOfMemory(format!("out of memory: {error}")),
        SubmitError::NoDevice { .. } => Failure::Device(error.to_string()),
        error => Failure::Bug(error.to_string()),
    }
}
