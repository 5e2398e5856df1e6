//! Partitions over the devices of an engine.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cuzk_formats::R1cs;
use cuzk_groth16::Proved;
use cuzk_sched::{
    DeviceOptions, Job as EngineJob, JobError, JobOptions, Options, ProofError, Proofs, Role,
    Scheduler, Statement, SubmitError,
};

use crate::backend::{Backend, Job, check_circuit};
use crate::error::Error;

/// How long to wait before an engine that others keep busy is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(2);

/// Proves partitions on the devices of an engine: while some compute, the next one is synthesised by the caller's thread and
/// brought to its device. At most one more than the engine has workers is in memory. Several threads may prove
/// through one engine, with as many keys as there are [`Proofs`].
///
/// ```no_run
/// # use std::sync::Arc;
/// # use bellpepper_core::Circuit as LibraryCircuit;
/// # use cuzk_bellman::{Partitions, Shape, bellpepper, to_bytes};
/// # use cuzk_gpu_mem::{Device, Settings};
/// # use cuzk_groth16::device::{DeviceProver, Gpu};
/// # use cuzk_groth16::{Circuit, ProveOptions, Verifier};
/// # use cuzk_sched::{DeviceOptions, Place, Proofs, Scheduler};
/// # fn prove(
/// #     key: &cuzk_formats::ProvingKey,
/// #     shape: &Shape,
/// #     circuits: Vec<impl LibraryCircuit<bellpepper::Scalar>>,
/// # ) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
/// let gpu = Gpu::new(&Device::open_first(&Settings::default())?)?;
/// let prover = DeviceProver::new(&gpu, key, Circuit::R1cs(shape.r1cs()))?;
/// let proofs = Arc::new(Proofs::on_gpus(Verifier::new(&key.vk)?).with_gpu(&gpu, prover));
/// std::thread::scope(|scope| {
///     let device = DeviceOptions::new(Place::Device(gpu.device().clone()));
///     let engine = Scheduler::start_in(scope, Partitions::options([device]))?;
///     let partitions = Partitions::new(&engine, &proofs);
///     let proved = bellpepper::prove_all(&partitions, shape, circuits, &ProveOptions::default())?;
///     Ok(to_bytes(&proved))
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct Partitions<'e, 'k> {
    engine: &'e Scheduler<Proofs<'k>>,
    proofs: Arc<Proofs<'k>>,
    job: JobOptions,
}

impl<'e, 'k> Partitions<'e, 'k> {
    /// A backend over an engine for the key and circuit of `proofs`.
    pub fn new(engine: &'e Scheduler<Proofs<'k>>, proofs: &Arc<Proofs<'k>>) -> Self {
        Self {
            engine,
            proofs: Arc::clone(proofs),
            job: JobOptions::default(),
        }
    }

    /// With priority, deadline and observer of each partition, which is a job of the engine.
    #[must_use]
    pub fn with_job_options(mut self, job: JobOptions) -> Self {
        self.job = job;
        self
    }

    /// An engine's options for partitions over these devices: each partition is a job, so as many are worked on at once
    /// as there are workers.
    pub fn options(devices: impl IntoIterator<Item = DeviceOptions>) -> Options {
        let mut options = Options::new(devices);
        options.concurrency = workers(&options) + 1;
        options.jobs_max = options.jobs_max.max(options.concurrency + 1);
        options
    }

    /// Hands partitions in as they are drawn, and takes the results in order.
    fn drive(
        &self,
        under_way: &mut VecDeque<EngineJob<Proved, ProofError>>,
        jobs: &mut dyn Iterator<Item = Result<Job, Error>>,
    ) -> Result<Vec<Proved>, Error> {
        let at_once = workers(self.engine.options()) + 1;
        let mut proofs = Vec::new();
        for job in jobs {
            let Job { witness, options } = job?;
            let witness = Arc::new(witness);
            loop {
                let statement = Statement::With(Arc::clone(&witness), options.clone());
                match self
                    .engine
                    .submit(&self.proofs, vec![statement], self.job.clone())
                {
                    Ok(job) => break under_way.push_back(job),
                    Err(SubmitError::Busy { .. }) if under_way.is_empty() => {
                        // A thread of a pool does what others wait for.
                        if rayon::yield_now() != Some(rayon::Yield::Executed) {
                            thread::sleep(ASK_AGAIN);
                        }
                    }
                    Err(SubmitError::Busy { .. }) => proofs.extend(next(under_way)?),
                    Err(error) => return Err(refused(&error)),
                }
            }
            if under_way.len() >= at_once {
                proofs.extend(next(under_way)?);
            }
        }
        while let Some(proved) = next(under_way)? {
            proofs.push(proved);
        }
        Ok(proofs)
    }
}

/// Proofs in the order of the jobs, each partition made where there is a worker for it.
impl Backend for Partitions<'_, '_> {
    fn prove_all(
        &self,
        r1cs: &R1cs,
        jobs: &mut dyn Iterator<Item = Result<Job, Error>>,
    ) -> Result<Vec<Proved>, Error> {
        for circuit in self.proofs.circuits() {
            check_circuit(Some(circuit), r1cs)?;
        }
        self.drive(&mut UnderWay::default().0, jobs)
    }
}

/// Partitions handed in whose results are not taken. After a failure, or a panic of a circuit, all that was begun is over
/// when this is dropped.
#[derive(Default)]
struct UnderWay(VecDeque<EngineJob<Proved, ProofError>>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.iter().for_each(EngineJob::cancel);
        for job in self.0.drain(..) {
            let _ = job.wait();
        }
    }
}

/// Workers of the devices that take work from the start.
fn workers(options: &Options) -> usize {
    let primary = |device: &&DeviceOptions| device.role == Role::Primary;
    let of = |device: &DeviceOptions| device.workers.unwrap_or(options.workers_per_device);
    options.devices.iter().filter(primary).map(of).sum()
}

/// The result of the first that is under way.
fn next(under_way: &mut VecDeque<EngineJob<Proved, ProofError>>) -> Result<Option<Proved>, Error> {
    let Some(job) = under_way.pop_front() else {
        return Ok(None);
    };
    let finished = job.wait().map_err(failed)?;
    Ok(finished.outputs.into_iter().next())
}

fn failed(error: JobError<ProofError>) -> Error {
    match error {
        JobError::Failed {
            error: ProofError::Groth16(error),
            ..
        } => error.into(),
        JobError::Failed {
            error: ProofError::Device(error),
            ..
        } => Error::of_device(&error),
        JobError::OutOfMemory { error, .. } => Error::Device {
            what: error.to_string(),
            is_out_of_memory: true,
        },
        JobError::Cancelled => cuzk_groth16::Error::Stopped.into(),
        error => Error::Engine {
            what: error.to_string(),
        },
    }
}

fn refused(error: &SubmitError) -> Error {
    match error {
        SubmitError::TooLarge { .. } => Error::Device {
            what: error.to_string(),
            is_out_of_memory: true,
        },
        error => Error::Engine {
            what: error.to_string(),
        },
    }
}
