//! Circuits of one call over GPUs: an engine for each call, the keys where the calls before left them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use cuzk_formats::Proof;
use cuzk_groth16::device::{DeviceProver, Error as DeviceError};
use cuzk_groth16::{Circuit, Error as ProverError, Proved, QueryVariables, Rows};
use cuzk_sched::{
    DeviceOptions, Finished, Job, JobError, JobOptions, Options, Place, ProofError, Proofs,
    Scheduler, Statement,
};

use crate::devices::{self, OnGpu, Taken};
use crate::error::Error;
use crate::prove::Batch;
use crate::srs::SRS;

/// Proves what GPUs can: `None` where none could, which is left to the CPU.
///
/// # Errors
/// What no prover would do better: circuits and keys that do not belong together, rows that violate a constraint. By
/// then nothing is under way any more.
pub(crate) fn prove_on_gpus(
    srs: &SRS,
    batch: &Batch<'_>,
    variables: &QueryVariables,
) -> Result<Vec<Option<Proof>>, Error> {
    let circuits = batch.given.len();
    if devices::gpus().is_empty() {
        return Ok(vec![None; circuits]);
    }
    let proofs = apart(|| {
        let taken = Taken::take(circuits, srs.points()?);
        prove_on(taken.gpus(), srs, batch, variables)
    });
    proofs.unwrap_or_else(|error| {
        tracing::warn!(%error, "no GPU is used");
        Ok(vec![None; circuits])
    })
}

/// Does `work` in a rayon pool of its own, if called on a thread of one. That thread takes up other work of its pool while it
/// waits, and if that is a call that wants what this one holds, neither would end: no part of `work` is below it.
///
/// # Errors
/// When the system has no threads left.
pub(crate) fn apart<R: Send>(
    work: impl FnOnce() -> R + Send,
) -> Result<R, rayon::ThreadPoolBuildError> {
    if rayon::current_thread_index().is_none() {
        return Ok(work());
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(rayon::current_num_threads())
        .build()?;
    Ok(pool.install(work))
}

/// The same on these.
pub(crate) fn prove_on(
    gpus: impl Iterator<Item = &'static OnGpu>,
    srs: &SRS,
    batch: &Batch<'_>,
    variables: &QueryVariables,
) -> Result<Vec<Option<Proof>>, Error> {
    let circuits = batch.given.len();
    let mut provers = Vec::new();
    for on in gpus {
        provers.extend(prover(on, srs, variables)?.map(|prover| (on, prover)));
    }
    let Some((_, first)) = provers.first() else {
        return Ok(vec![None; circuits]);
    };
    let proofs = Proofs::on_gpus(first.verifier().clone());
    let mut places = Vec::new();
    let proofs = provers.into_iter().fold(proofs, |proofs, (on, prover)| {
        places.push(DeviceOptions::new(Place::Device(on.gpu.device().clone())));
        proofs.with_gpu(on.gpu, prover)
    });
    let mut options = Options::new(places);
    options.concurrency = circuits;
    options.jobs_max = circuits;
    // The CPU has the last word.
    options.attempts_max = 2;
    prove(&Arc::new(proofs), batch, options)
}

/// The key on a GPU; none where it has no room, or fails.
fn prover<'v>(
    on: &OnGpu,
    srs: &SRS,
    variables: &'v QueryVariables,
) -> Result<Option<DeviceProver<'static, 'v>>, Error> {
    let rows =
        Rows::new(Vec::new(), Vec::new()).map_err(|error| Error::Prover { circuit: 0, error })?;
    let circuit = Circuit::Rows {
        rows,
        variables: Some(variables),
    };
    match on.keys.prover_of(srs.points()?, srs.key()?, circuit) {
        Ok(prover) => Ok(Some(prover)),
        Err(DeviceError::Proof(error)) => Err(Error::Prover { circuit: 0, error }),
        Err(error) => {
            let device = on.gpu.device().info();
            tracing::warn!(%device, %error, "a GPU is not used for this key");
            Ok(None)
        }
    }
}

type Outcome = Result<Finished<Proved>, JobError<ProofError>>;

fn prove<'a>(
    proofs: &Arc<Proofs<'a>>,
    batch: &'a Batch<'a>,
    options: Options,
) -> Result<Vec<Option<Proof>>, Error> {
    // What is wrong with a circuit in this crate's words, which the engine does not know.
    let faults: Mutex<Option<Error>> = Mutex::default();
    thread::scope(|scope| {
        let engine = match Scheduler::start_in(scope, options) {
            Ok(engine) => engine,
            Err(error) => {
                tracing::warn!(%error, "no GPU is used");
                return Ok(vec![None; batch.given.len()]);
            }
        };
        let mut jobs: VecDeque<Option<Job<Proved, ProofError>>> = VecDeque::new();
        for circuit in 0..batch.given.len() {
            let faults = &faults;
            let evaluate = move || {
                batch.evaluate(circuit).map_err(|error| {
                    let text = error.to_string();
                    faults
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .get_or_insert(error);
                    ProofError::Load(text)
                })
            };
            let statement = Statement::Evaluate(Box::new(evaluate));
            let job = engine.submit(proofs, vec![statement], JobOptions::default());
            jobs.push_back(
                job.inspect_err(|error| tracing::warn!(circuit, %error))
                    .ok(),
            );
        }
        let mut made = Vec::new();
        let mut failure = None;
        while let Some(job) = jobs.pop_front() {
            let circuit = made.len();
            let outcome = job.map(Job::wait);
            match outcome
                .map(|outcome| of_outcome(circuit, outcome, &faults))
                .transpose()
            {
                Ok(proof) => made.push(proof.flatten()),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        // After a failure: the engine ends when all that it had under way is released.
        jobs.iter().flatten().for_each(Job::cancel);
        engine.drain();
        failure.map_or(Ok(made), Err)
    })
}

/// A proof, or none where another device may do better.
fn of_outcome(
    circuit: usize,
    outcome: Outcome,
    faults: &Mutex<Option<Error>>,
) -> Result<Option<Proof>, Error> {
    match outcome {
        Ok(finished) => {
            let proved = finished.outputs.into_iter().next();
            tracing::debug!(
                circuit,
                elapsed_ms = finished.elapsed.as_millis(),
                "proved on a GPU"
            );
            Ok(proved.map(|proved| proved.proof))
        }
        Err(JobError::Failed {
            error: ProofError::Load(what),
            ..
        }) => {
            let fault = faults.lock().unwrap_or_else(PoisonError::into_inner).take();
            Err(fault.unwrap_or(Error::Engine { circuit, what }))
        }
        Err(JobError::Failed {
            error: ProofError::Groth16(error),
            ..
        }) if !matches!(error, ProverError::ProofRejected { .. }) => {
            Err(Error::Prover { circuit, error })
        }
        Err(error) => {
            tracing::warn!(circuit, %error, "no proof on a GPU");
            Ok(None)
        }
    }
}
