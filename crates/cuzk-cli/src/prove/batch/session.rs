//! Proofs under way.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use cuzk_formats::wtns::WtnsFile;
use cuzk_formats::{FileSource, LoadOptions, Note, ReadAt as _, json, proof, wtns};
use cuzk_groth16::Proved;
use cuzk_sched::{
    Event, Finished, Job, JobError, JobId, JobOptions, Observer, Phase, ProofError, Proofs,
    Scheduler, Statement,
};
use serde_json::json;

use super::report::{Line, Tally};
use super::results::in_folder;
use super::{Task, failure, refused};
use crate::args::ProofFormat;
use crate::exit::{self, Failure};
use crate::output::{self, Output};
use crate::progress::Bar;
use crate::prove::material::compare_witness;
use crate::report::{self, millis};
use crate::signals;

/// How often a signal is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// A file and notes on it, by partition.
type FileNotes = BTreeMap<usize, (String, Vec<Note>)>;

type Outcomes = Result<Finished<Proved>, JobError<ProofError>>;

/// Proofs under way.
pub(super) struct Session<'a> {
    pub(super) task: Task<'a>,
    /// The names of the engine's devices.
    pub(super) devices: &'a [String],
    pub(super) bar: Bar,
    /// By partition, why its witness could not be loaded.
    pub(super) losses: Arc<Mutex<BTreeMap<usize, Failure>>>,
    /// By partition, what was odd about its witness.
    pub(super) notes: Arc<Mutex<FileNotes>>,
    pub(super) report: Tally,
}

struct Running {
    job: Job<Proved, ProofError>,
    /// The proof's number.
    number: usize,
    is_begun: bool,
}

impl Session<'_> {
    /// Hands proofs in while there is room, and takes their results as they come. After a signal, or a
    /// result that could not be written, no more are begun.
    pub(super) fn drive<'k>(
        &mut self,
        scheduler: &Scheduler<Proofs<'k>>,
        proofs: &Arc<Proofs<'k>>,
    ) -> Result<(), Failure> {
        let (tell, events) = mpsc::channel();
        let mut running: BTreeMap<JobId, Running> = BTreeMap::new();
        let mut next = 0;
        loop {
            let is_draining = signals::received().is_some() || self.report.is_full;
            if is_draining {
                running
                    .values()
                    .filter(|running| !running.is_begun)
                    .for_each(|running| running.job.cancel());
            }
            while next < self.task.batch.proofs
                && running.len() < scheduler.options().jobs_max
                && !is_draining
            {
                let tell = tell.clone();
                let options = JobOptions {
                    observer: Some(Observer::new(move |event| {
                        // Nobody listens once everything is over.
                        let _ = tell.send(event.clone());
                    })),
                    ..JobOptions::default()
                };
                let job = scheduler
                    .submit(proofs, self.statements(next)?, options)
                    .map_err(refused)?;
                let entry = Running {
                    job,
                    number: next,
                    is_begun: false,
                };
                running.insert(entry.job.id(), entry);
                next += 1;
            }
            if running.is_empty() {
                return Ok(());
            }
            match events.recv_timeout(LOOK) {
                Ok(Event::Phase { part, phase, .. }) => {
                    if let Some(running) = running.get_mut(&part.job) {
                        running.is_begun = true;
                        let partition = running.number * self.task.batch.partitions + part.index;
                        self.show(partition, phase);
                    }
                }
                Ok(Event::Done { .. }) => self.bar.advance(1),
                Ok(Event::Ended { job, .. }) => {
                    if let Some(Running { job, number, .. }) = running.remove(&job) {
                        let result = job.wait();
                        self.ended(number, result)?;
                    }
                }
                _ => {}
            }
        }
    }

    fn show(&self, partition: usize, phase: Phase) {
        if phase != Phase::Wait {
            self.bar
                .say(&format!("{}: {phase}", self.task.batch.name(partition)));
        }
    }

    fn statements(&self, number: usize) -> Result<Vec<Statement<'static>>, Failure> {
        let first = number * self.task.batch.partitions;
        (first..first + self.task.batch.partitions)
            .map(|partition| match self.task.batch.entries.get(partition) {
                None => Ok(Statement::Witness(Arc::clone(
                    self.task.material.witness()?,
                ))),
                Some(entry) => {
                    let path = entry.path.clone();
                    let (losses, notes) = (Arc::clone(&self.losses), Arc::clone(&self.notes));
                    let expected = Expected {
                        key: self.task.material.key_file.clone().unwrap_or_default(),
                        variables: self.task.material.circuit().variables as u64,
                        accept_wtns_length_defect: self.task.args.accept_wtns_length_defect,
                        strict: self.task.args.load.strict,
                    };
                    Ok(Statement::Load(Box::new(move || {
                        match read(&path, &expected) {
                            Ok(file) => {
                                if !file.notes.is_empty() {
                                    let name = path.display().to_string();
                                    lock(&notes).insert(partition, (name, file.notes));
                                }
                                Ok(file.witness)
                            }
                            Err(failure) => {
                                let what = failure.to_string();
                                lock(&losses).insert(partition, failure);
                                Err(what)
                            }
                        }
                    })))
                }
            })
            .collect()
    }

    fn ended(&mut self, number: usize, result: Outcomes) -> Result<(), Failure> {
        let first = number * self.task.batch.partitions;
        match result {
            Ok(finished) => match self.write(first, &finished) {
                Err(failure @ Failure::Output { .. }) => {
                    self.report.is_full = true;
                    self.failed(number, first, &failure)
                }
                written => written,
            },
            Err(JobError::Cancelled) => {
                self.report.not_begun += self.task.batch.partitions;
                Ok(())
            }
            Err(error) => {
                let partition = first + partition_of(&error).unwrap_or(0);
                let loss = lock(&self.losses).remove(&partition);
                self.failed(number, partition, &loss.unwrap_or_else(|| failure(error)))
            }
        }
    }

    /// Tells of a proof that came to nothing, by one of its partitions.
    fn failed(
        &mut self,
        number: usize,
        partition: usize,
        failure: &Failure,
    ) -> Result<(), Failure> {
        let name = self.task.batch.name(partition);
        self.report.failed += self.task.batch.partitions;
        self.report.exit = self.report.exit.or(failure.exit());
        self.bar.hidden(|| {
            exit::say(&format!("{name}: {failure}"));
            if !self.task.args.json {
                return Ok(());
            }
            let line = json!({
                "witness": name,
                "proof_number": number,
                "error": failure.to_string(),
                "exit_code": failure.exit() as u8,
            });
            report::stream(&format!("{line}\n"))
        })
    }

    /// Writes all results of a proof, or none, and reports each.
    fn write(&mut self, first: usize, finished: &Finished<Proved>) -> Result<(), Failure> {
        let mut texts = Vec::new();
        for proved in &finished.outputs {
            let proof = match self.task.results.format {
                ProofFormat::Snarkjs => json::proof_to_string(&proved.proof).into_bytes(),
                _ => proof::to_bytes(&proved.proof).to_vec(),
            };
            texts.push([
                proof,
                json::public_to_string(&proved.public_values)?.into_bytes(),
            ]);
        }
        let places = &self.task.results.places;
        let outputs = places
            .iter()
            .skip(first)
            .zip(&texts)
            .flat_map(|(paths, texts)| paths.iter().zip(texts))
            .map(|(path, text)| Output::of(in_folder(path), text))
            .collect();
        output::write_all(outputs)?;
        self.report.proved += finished.outputs.len();
        let mut lines = String::new();
        for (index, proved) in finished.outputs.iter().enumerate() {
            let partition = first + index;
            let report = finished.partitions[index];
            let line = Line {
                name: self.task.batch.name(partition),
                number: partition / self.task.batch.partitions,
                index,
                proved,
                elapsed_ms: millis(report.elapsed),
                attempts: report.attempts,
                // Where there is but one device, the last line says it.
                device: self
                    .devices
                    .get(report.device)
                    .filter(|_| self.devices.len() > 1),
                places: places.get(partition),
                texts: &texts[index],
            };
            lines.push_str(&if self.task.args.json {
                format!("{}\n", line.json(self.task.results.format))
            } else {
                line.text()
            });
        }
        self.bar.hidden(|| report::stream(&lines))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is asked of a witness.
struct Expected {
    key: String,
    variables: u64,
    accept_wtns_length_defect: bool,
    strict: bool,
}

fn read(path: &Path, expected: &Expected) -> Result<WtnsFile, Failure> {
    let source = FileSource::open(path)?;
    let options = LoadOptions {
        accept_wtns_length_defect: expected.accept_wtns_length_defect,
        strict: expected.strict,
        ..LoadOptions::default()
    };
    // One of another circuit may be of any size: more than what is set aside for it.
    let (values, _) = wtns::read_header(&source, &options)?;
    compare_witness(source.name(), values, &expected.key, expected.variables)?;
    Ok(wtns::read(&source, &options)?)
}

fn partition_of(error: &JobError<ProofError>) -> Option<usize> {
    match error {
        JobError::Failed { partition, .. }
        | JobError::Panicked { partition, .. }
        | JobError::TimedOut { partition, .. }
        | JobError::OutOfMemory { partition, .. }
        | JobError::NoDevice { partition } => Some(*partition),
        _ => None,
    }
}
