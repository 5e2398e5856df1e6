//! Engines that are measured, and the prover without one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cuzk_formats::Witness;
use cuzk_groth16::device::Gpu;
use cuzk_groth16::{ProveOptions, Proved};
use cuzk_sched::timeline::{Report, Run};
use cuzk_sched::{
    DeviceOptions, Job, JobOptions, Options, Place, ProofError, Proofs, Scheduler, Statement,
    SubmitError,
};

use super::Fallible;
use super::args::Wanted;
use super::table::Row;

/// How long the prover without an engine is measured at most.
const ALONE: Duration = Duration::from_secs(5);

/// How an engine is set up.
#[derive(Clone, Copy)]
pub(crate) struct Engine {
    pub(crate) gpus: usize,
    pub(crate) workers: usize,
    pub(crate) concurrency: usize,
    pub(crate) partitions: usize,
    pub(crate) timeline: bool,
}

/// What all rows of a size share.
pub(crate) struct Setting<'a> {
    wanted: &'a Wanted,
    pub(crate) gpus: &'a [Gpu],
    pub(crate) log_n: u32,
    witness: Arc<Witness>,
}

impl<'a> Setting<'a> {
    pub(crate) fn new(
        wanted: &'a Wanted,
        gpus: &'a [Gpu],
        log_n: u32,
        witness: Arc<Witness>,
    ) -> Self {
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
    pub(crate) fn alone(
        &self,
        prove: impl Fn(&Witness, &ProveOptions) -> Fallible<Proved>,
    ) -> Fallible<Row> {
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
    pub(crate) fn row<'k>(
        &self,
        proofs: &Arc<Proofs<'k>>,
        engine: Engine,
    ) -> Fallible<(Row, Option<Run>)> {
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
