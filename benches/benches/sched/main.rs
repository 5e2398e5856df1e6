//! `cargo xtask bench sched`: proofs per minute against workers, concurrency and partitions, on the CPU
//! or on GPUs: `-- --device cuda --gpus all --log-n 20,22,24 --svg sched.svg`.
//!
//! Circuits are synthetic, as are their keys; each row is an engine of its own that proves the same
//! number of partitions, each of them verified. The first row of a size is the prover without an engine,
//! one proof after the other.
#![allow(clippy::print_stdout, reason = "a bench reports on standard output")]

mod args;
mod gpus;
mod picture;

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cuzk_formats::Witness;
use cuzk_groth16::device::{DeviceProver, Gpu};
use cuzk_groth16::synth::Instance;
use cuzk_groth16::{Circuit, ProveOptions, Proved, Prover};
use cuzk_sched::timeline::{Report, Run};
use cuzk_sched::{
    DeviceOptions, Job, JobOptions, Options, Place, ProofError, Proofs, Scheduler, Statement,
    SubmitError,
};
use serde_json::json;

use args::Wanted;
use gpus::Key;

/// How long the prover without an engine is measured at most.
const ALONE: Duration = Duration::from_secs(5);

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// A row of the table. Without workers there was no engine.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    device: String,
    gpus: usize,
    log_n: u32,
    workers: usize,
    concurrency: usize,
    partitions: usize,
    proofs: usize,
    elapsed: Duration,
    busy_share: Option<f64>,
}

impl Row {
    fn per_minute(&self) -> f64 {
        self.proofs as f64 / self.elapsed.as_secs_f64() * 60.0
    }

    fn ms(&self) -> f64 {
        self.elapsed.as_secs_f64() * 1e3 / self.proofs as f64
    }

    fn devices(&self) -> String {
        match self.gpus {
            0 | 1 => self.device.clone(),
            several => format!("{several} x {}", self.device),
        }
    }

    fn name(&self) -> String {
        if self.workers == 0 {
            return "the prover alone".to_owned();
        }
        format!(
            "{} w, {} c, {} p",
            self.workers, self.concurrency, self.partitions
        )
    }
}

fn main() -> Fallible<()> {
    let wanted = Wanted::of(std::env::args().skip(1))?;
    rayon::ThreadPoolBuilder::new()
        .num_threads(wanted.threads)
        .build_global()?;
    let gpus = gpus::open(&wanted)?;
    let ballast = gpus.iter().filter(|_| wanted.ballast).map(gpus::ballast);
    let _ballast = ballast.collect::<Fallible<Vec<_>>>()?;
    if !wanted.json {
        println!(
            "{} threads, {:?} shape, every proof verified",
            rayon::current_num_threads(),
            wanted.shape
        );
        for gpu in &gpus {
            println!("{}", gpu.device().info());
        }
        println!(
            "{:>4} {:>5} {:>8} {:>12} {:>11} {:>7} {:>10} {:>15} {:>7}",
            "2^",
            "GPUs",
            "workers",
            "concurrency",
            "partitions",
            "proofs",
            "ms/proof",
            "proofs/minute",
            "busy"
        );
    }
    let mut table = Table {
        wanted: &wanted,
        rows: Vec::new(),
    };
    for &log_n in &wanted.log_n {
        of_size(&mut table, &gpus, log_n)?;
    }
    if let Some(path) = &wanted.svg {
        std::fs::write(path, picture::picture(&table.rows))?;
    }
    Ok(())
}

/// The rows of one size.
fn of_size(table: &mut Table<'_>, gpus: &[Gpu], log_n: u32) -> Fallible<()> {
    let wanted = table.wanted;
    let instance = Instance::new(wanted.shape, log_n, 1)?;
    let witness = Arc::new(instance.witness.clone());
    match Key::of(wanted, &instance)? {
        Key::Host(key) => {
            let circuit = Circuit::R1cs(&instance.r1cs);
            let prover = Prover::new(&*key)?;
            let setting = Setting::new(wanted, &[], log_n, witness);
            table.push(setting.alone(|witness, options| {
                Ok(prover.prove(circuit.clone(), witness, options)?)
            })?);
            let proofs = Proofs::new(Prover::new(&*key)?, circuit);
            table.of_engines(&setting, &Arc::new(proofs))
        }
        Key::Exponents(exponents) => {
            let (verifier, provers) = gpus::provers(gpus, &instance, &exponents)?;
            drop(exponents);
            let setting = Setting::new(wanted, gpus, log_n, witness);
            table.note(|| residency(&provers));
            table.push(setting.alone(|witness, options| Ok(provers[0].prove(witness, options)?))?);
            let proofs = gpus::proofs(gpus, verifier, provers);
            table.of_engines(&setting, &Arc::new(proofs))?;
            gpus.iter().for_each(Gpu::forget_tables);
            Ok(())
        }
    }
}

/// How the keys lie.
fn residency(provers: &[DeviceProver<'_, '_>]) -> String {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let lines = provers.iter().map(|prover| {
        let key = prover.key();
        format!(
            "     key {}: {:.2} GiB on the device, {:.2} GiB on the host",
            key.plan().residency(),
            gib(key.bytes()),
            gib(key.host_bytes())
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

struct Table<'w> {
    wanted: &'w Wanted,
    rows: Vec<Row>,
}

impl Table<'_> {
    fn note(&self, text: impl FnOnce() -> String) {
        if !self.wanted.json {
            println!("{}", text());
        }
    }

    fn push(&mut self, row: Row) {
        if self.wanted.json {
            let object = json!({
                "device": row.device,
                "gpus": row.gpus,
                "log_n": row.log_n,
                "workers": row.workers,
                "concurrency": row.concurrency,
                "partitions": row.partitions,
                "proofs": row.proofs,
                "ms_per_proof": row.ms(),
                "proofs_per_minute": row.per_minute(),
                "busy_share": row.busy_share,
            });
            println!("{object}");
        } else {
            let share = row
                .busy_share
                .map(|share| format!("{:.1} %", 100.0 * share));
            println!(
                "{:>4} {:>5} {:>8} {:>12} {:>11} {:>7} {:>10.1} {:>15.1} {:>7}",
                row.log_n,
                row.gpus,
                row.workers,
                row.concurrency,
                row.partitions,
                row.proofs,
                row.ms(),
                row.per_minute(),
                share.unwrap_or_else(|| "-".to_owned())
            );
        }
        self.rows.push(row);
    }

    /// A row for each engine that is wanted.
    fn of_engines<'k>(&mut self, setting: &Setting<'_>, proofs: &Arc<Proofs<'k>>) -> Fallible<()> {
        let wanted = self.wanted;
        let counts = match (setting.gpus.len(), wanted.gpus.as_slice()) {
            (0, _) => vec![0],
            (all, []) => vec![all],
            (_, counts) => counts.to_vec(),
        };
        let mut last = None;
        for gpus in counts {
            for &partitions in &wanted.partitions {
                for &concurrency in &wanted.concurrency {
                    for &workers in &wanted.workers {
                        let engine = Engine {
                            gpus,
                            workers,
                            concurrency,
                            partitions,
                            timeline: wanted.timeline,
                        };
                        let (row, run) = setting.row(proofs, engine)?;
                        self.push(row);
                        if let Some(run) = run.as_ref().filter(|_| wanted.report) {
                            self.note(|| Report::of(run).to_string());
                        }
                        if let (Some(path), Some(run)) = (&wanted.run, run) {
                            std::fs::write(path, serde_json::to_vec(&run)?)?;
                        }
                        last = Some(engine);
                    }
                }
            }
        }
        match last {
            Some(engine) if wanted.overhead > 0 => self.overhead(setting, proofs, engine),
            _ => Ok(()),
        }
    }

    /// What recording costs: the same engine without and with, in turn.
    fn overhead<'k>(
        &mut self,
        setting: &Setting<'_>,
        proofs: &Arc<Proofs<'k>>,
        engine: Engine,
    ) -> Fallible<()> {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..self.wanted.overhead {
            // Neither is always the first.
            for timeline in [round % 2 == 1, round % 2 == 0] {
                let (row, _) = setting.row(proofs, Engine { timeline, ..engine })?;
                times[usize::from(timeline)].push(row.ms());
            }
        }
        for times in &mut times {
            times.sort_by(f64::total_cmp);
        }
        let [off, on] = times;
        let middle = |times: &[f64]| times[times.len() / 2];
        let line = json!({
            "timeline": "overhead", "log_n": setting.log_n, "off_ms": off, "on_ms": on,
            "percent": 100.0 * (middle(&on) / middle(&off) - 1.0),
        });
        println!("{line}");
        Ok(())
    }
}

/// How an engine is set up.
#[derive(Clone, Copy)]
struct Engine {
    gpus: usize,
    workers: usize,
    concurrency: usize,
    partitions: usize,
    timeline: bool,
}

/// What all rows of a size share.
struct Setting<'a> {
    wanted: &'a Wanted,
    gpus: &'a [Gpu],
    log_n: u32,
    witness: Arc<Witness>,
}

impl<'a> Setting<'a> {
    fn new(wanted: &'a Wanted, gpus: &'a [Gpu], log_n: u32, witness: Arc<Witness>) -> Self {
        Self {
            wanted,
            gpus,
            log_n,
            witness,
        }
    }

    fn device(&self) -> String {
        match self.gpus {
            [] => "cpu".to_owned(),
            [gpu, ..] => gpu.device().info().name.clone(),
        }
    }

    /// The prover without an engine; on a GPU one proof goes before, to warm up.
    fn alone(&self, prove: impl Fn(&Witness, &ProveOptions) -> Fallible<Proved>) -> Fallible<Row> {
        let options = ProveOptions::default();
        if !self.gpus.is_empty() {
            prove(&self.witness, &options)?;
        }
        let (begun, mut proofs) = (Instant::now(), 0);
        while proofs < self.wanted.proofs && (proofs == 0 || begun.elapsed() < ALONE) {
            assert!(prove(&self.witness, &options)?.verified);
            proofs += 1;
        }
        Ok(Row {
            device: self.device(),
            gpus: self.gpus.len().min(1),
            log_n: self.log_n,
            workers: 0,
            concurrency: 1,
            partitions: 1,
            proofs,
            elapsed: begun.elapsed(),
            busy_share: None,
        })
    }

    /// An engine's row, and its timeline without what warmed it up.
    fn row<'k>(&self, proofs: &Arc<Proofs<'k>>, engine: Engine) -> Fallible<(Row, Option<Run>)> {
        let places: Vec<Place> = match engine.gpus {
            0 => vec![Place::Cpu],
            gpus => {
                let gpus = self.gpus.iter().take(gpus);
                gpus.map(|gpu| Place::Device(gpu.device().clone()))
                    .collect()
            }
        };
        let mut options = Options::new(places.into_iter().map(DeviceOptions::new));
        options.workers_per_device = engine.workers;
        options.concurrency = engine.concurrency;
        options.jobs_max = engine.concurrency + 1;
        options.timeline = engine.timeline;
        let jobs = self.wanted.proofs.div_ceil(engine.partitions);
        thread::scope(|scope| {
            let started = Instant::now();
            let scheduler = Scheduler::start_in(scope, options)?;
            if engine.gpus > 0 {
                // Pools and pinned memory are filled by the first proof of each worker.
                self.prove(&scheduler, proofs, 1, engine.gpus * engine.workers)?;
            }
            let begun = Instant::now();
            let proved = self.prove(&scheduler, proofs, jobs, engine.partitions)?;
            let elapsed = begun.elapsed();
            scheduler.drain();
            let run = scheduler.timeline();
            let run = run.map(|run| after(run, (begun - started).as_secs_f64() * 1e3));
            let share = run.as_ref().map(|run| {
                let report = Report::of(run);
                let shares = report.devices.iter().map(|device| device.share());
                shares.sum::<f64>() / report.devices.len().max(1) as f64
            });
            let row = Row {
                device: self.device(),
                gpus: engine.gpus,
                log_n: self.log_n,
                workers: engine.workers,
                concurrency: engine.concurrency,
                partitions: engine.partitions,
                proofs: proved,
                elapsed,
                busy_share: share,
            };
            Ok((row, run))
        })
    }

    /// So many jobs, one after the other as there is room; the number of proofs, all of them verified.
    fn prove<'k>(
        &self,
        scheduler: &Scheduler<Proofs<'k>>,
        proofs: &Arc<Proofs<'k>>,
        jobs: usize,
        partitions: usize,
    ) -> Fallible<usize> {
        let mut under_way = VecDeque::new();
        let mut proved = 0;
        for _ in 0..jobs {
            loop {
                let statements = (0..partitions)
                    .map(|_| Statement::Witness(Arc::clone(&self.witness)))
                    .collect();
                match scheduler.submit(proofs, statements, JobOptions::default()) {
                    Ok(job) => break under_way.push_back(job),
                    // Back-pressure: the oldest makes room.
                    Err(SubmitError::Busy { .. }) => {
                        let oldest = under_way.pop_front().ok_or("busy with nothing")?;
                        proved += finished(oldest)?;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        for job in under_way {
            proved += finished(job)?;
        }
        Ok(proved)
    }
}

fn finished(job: Job<Proved, ProofError>) -> Fallible<usize> {
    let finished = job.wait()?;
    assert!(finished.outputs.iter().all(|proved| proved.verified));
    Ok(finished.outputs.len())
}

/// What began at that time or later.
fn after(mut run: Run, ms: f64) -> Run {
    run.host.retain(|span| span.begin_ms >= ms);
    run.kernels.retain(|span| span.begin_ms >= ms);
    run.transfers.retain(|copy| copy.begin_ms >= ms);
    run
}
