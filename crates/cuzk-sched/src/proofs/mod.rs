//! Groth16 proofs as the engine's work.

mod statement;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cuzk_formats::Witness;
use cuzk_gpu_mem::Device;
use cuzk_groth16::device::{self, DeviceComputed, DevicePacked, DeviceProver, DeviceStaged, Gpu};
use cuzk_groth16::{
    Circuit, ComputedProof, Error as Groth16, ProveOptions, Proved, Prover, Rows, StageCallback,
    StagedProof, StopCheck, Verifier,
};

pub use self::statement::{Evaluated, ProofError, Statement};
use crate::work::{Context, Demand, Fault, Place, Preparation, Section, Staging, Work};

/// What is proved: a key's provers, on the CPU or on GPUs, and the circuit. One is made for any
/// number of proofs.
#[derive(Debug)]
pub struct Proofs<'k> {
    verifier: Verifier,
    cpu: Option<(Prover<'k>, Circuit<'k>)>,
    gpus: Vec<OnDevice<'k>>,
    host_bytes: u64,
}

#[derive(Debug)]
struct OnDevice<'k> {
    gpu: &'k Gpu,
    prover: DeviceProver<'k, 'k>,
}

/// A partition whose witness is there.
#[derive(Clone, Debug)]
pub struct Partition {
    witness: Arc<Witness>,
    options: ProveOptions,
}

/// A partition before its first phase.
#[derive(Debug)]
pub enum Prepared {
    /// On the CPU, with rows where the caller has evaluated them.
    Cpu(Partition, Option<Rows>),
    /// For a GPU: the witness in pinned memory, and rows if there are any.
    Device(Box<DevicePacked>, Partition),
}

/// A partition between its phases.
#[derive(Debug)]
pub enum Staged {
    /// On the CPU.
    Cpu(Box<StagedProof>, Partition),
    /// On a GPU.
    Device(Box<DeviceStaged>, Partition),
}

/// A partition between its phases.
#[derive(Debug)]
pub enum Computed {
    /// On the CPU.
    Cpu(Box<ComputedProof>, Partition),
    /// On a GPU.
    Device(Box<DeviceComputed>, Partition),
}

impl<'k> Proofs<'k> {
    /// Proofs of `circuit` with this prover's key, on the CPU. Of `Circuit::Rows` the variables matter, not the rows: those
    /// come with [`Statement::Evaluate`].
    pub fn new(prover: Prover<'k>, circuit: Circuit<'k>) -> Self {
        let (rows, values) = (
            prover.key().domain_size as u64,
            prover.key().num_variables() as u64,
        );
        Self {
            verifier: prover.verifier().clone(),
            // The witness, and the vectors over the domain while the quotient is made.
            host_bytes: 32 * (values + 3 * rows),
            cpu: Some((prover, circuit)),
            gpus: Vec::new(),
        }
    }

    /// Proofs on GPUs alone: what proves on the CPU takes memory as well.
    pub fn on_gpus(verifier: Verifier) -> Self {
        Self {
            verifier,
            cpu: None,
            gpus: Vec::new(),
            host_bytes: 0,
        }
    }

    /// With a prover of the same key and circuit on a GPU.
    #[must_use]
    pub fn with_gpu(mut self, gpu: &'k Gpu, prover: DeviceProver<'k, 'k>) -> Self {
        self.gpus.push(OnDevice { gpu, prover });
        self
    }

    /// The circuits of its provers, where they have one: they are the same.
    pub fn circuits(&self) -> impl Iterator<Item = &Circuit<'k>> {
        let on_cpu = self.cpu.iter().map(|(_, circuit)| circuit);
        on_cpu.chain(self.gpus.iter().filter_map(|on| on.prover.circuit()))
    }

    /// The verifier of all its proofs.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    fn on(&self, device: &Device) -> Option<&OnDevice<'k>> {
        // Numbers are those of one process.
        let number = device.info().ordinal;
        self.gpus
            .iter()
            .find(|on| on.gpu.device().info().ordinal == number)
    }

    fn here(&self, context: &Context<'_>) -> Result<&OnDevice<'k>, Fault<ProofError>> {
        match context.place() {
            Place::Device(device) => self.on(device),
            Place::Cpu => None,
        }
        .ok_or(Fault::Input(ProofError::NoProver))
    }

    fn cpu(&self) -> Result<&(Prover<'k>, Circuit<'k>), Fault<ProofError>> {
        self.cpu.as_ref().ok_or(Fault::Input(ProofError::NoProver))
    }

    /// Runs a phase with the options of its partition; its stages go into the timeline.
    fn phase<T, E>(
        &self,
        context: &Context<'_>,
        own: &ProveOptions,
        verify: bool,
        run: impl FnOnce(&ProveOptions) -> Result<T, E>,
    ) -> Result<T, Fault<ProofError>>
    where
        E: Into<device::Error>,
    {
        let begun: Arc<Mutex<Vec<(&'static str, Instant)>>> = Arc::default();
        let begins = Arc::clone(&begun);
        let callback = own.on_stage.clone();
        let note = move |stage| {
            lock(&begins).push((stage, Instant::now()));
            if let Some(callback) = &callback {
                callback.tell(stage);
            }
        };
        let (is_stopped, stop) = (context.stop_check(), own.stop.clone());
        let is_stopped = move || is_stopped() || stop.as_ref().is_some_and(StopCheck::is_stopped);
        let mut options = own
            .clone()
            .with_stop_check(StopCheck::new(is_stopped))
            .with_stage_callback(StageCallback::new(note));
        options.verify = verify;
        let result = run(&options);
        let begun = lock(&begun);
        let ends = begun.iter().skip(1).map(|(_, begin)| *begin);
        for ((stage, begin), end) in begun.iter().zip(ends.chain([Instant::now()])) {
            // A phase of the engine has that name already.
            if *stage != "compute" {
                context.note(stage, *begin, end);
            }
        }
        result.map_err(|error| fault(error.into()))
    }

    /// The partition's witness and, where the caller has evaluated them, rows.
    fn partition(
        part: &Statement<'_>,
        context: &Context<'_>,
    ) -> Result<(Partition, Option<Rows>), Fault<ProofError>> {
        let of = |witness, options| Partition { witness, options };
        match part {
            Statement::Witness(witness) => {
                Ok((of(Arc::clone(witness), ProveOptions::default()), None))
            }
            Statement::With(witness, options) => {
                Ok((of(Arc::clone(witness), options.clone()), None))
            }
            Statement::Load(load) => {
                let loaded = context.span("load witness", load);
                let witness = loaded.map_err(|what| Fault::Input(ProofError::Load(what)))?;
                Ok((of(Arc::new(witness), ProveOptions::default()), None))
            }
            Statement::Evaluate(evaluate) => {
                let evaluated = context.span("evaluate", evaluate).map_err(Fault::Input)?;
                let Evaluated {
                    rows,
                    witness,
                    options,
                } = evaluated;
                Ok((of(Arc::new(witness), options), Some(rows)))
            }
        }
    }
}

/// The circuit of one partition.
fn with_rows<'c>(circuit: &Circuit<'c>, rows: Option<Rows>) -> Result<Circuit<'c>, Groth16> {
    match (circuit, rows) {
        (Circuit::Rows { variables, .. }, Some(rows)) => Ok(Circuit::Rows {
            rows,
            variables: *variables,
        }),
        (Circuit::Rows { .. }, None) => Err(Groth16::Circuit {
            what: "it has neither matrices nor rows".into(),
        }),
        (circuit, None) => Ok(circuit.clone()),
        (_, Some(_)) => Err(Groth16::Circuit {
            what: "rows are given beside it".into(),
        }),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a prover says, by what can be done about it.
fn fault(error: device::Error) -> Fault<ProofError> {
    match error {
        device::Error::Proof(Groth16::Stopped) => Fault::Stopped,
        device::Error::Proof(error @ Groth16::ProofRejected { .. }) => Fault::Wrong(error.into()),
        device::Error::Proof(error) => Fault::Input(error.into()),
        error if error.is_out_of_memory() => Fault::Memory(ProofError::Device(Arc::new(error))),
        error => Fault::Device(ProofError::Device(Arc::new(error))),
    }
}

impl<'k> Work for Proofs<'k> {
    type Part = Statement<'k>;
    type Prepared = Prepared;
    type Staged = Staged;
    type Computed = Computed;
    type Output = Proved;
    type Error = ProofError;

    fn demand(&self, part: &Statement<'k>, place: &Place) -> Option<Demand> {
        match place {
            Place::Cpu => self.cpu.as_ref().map(|_| Demand {
                host_bytes: self.host_bytes,
                ..Demand::default()
            }),
            Place::Device(device) => self.on(device).map(|OnDevice { prover, .. }| {
                let header = prover.key().header();
                let (values, rows) = (header.num_variables as u64, header.domain_size as u64);
                let (pinned_rows, host_values) = match part {
                    Statement::Witness(_) | Statement::With(..) => (0, 0),
                    Statement::Load(_) => (0, values),
                    Statement::Evaluate(_) => (2 * rows, values + 3 * rows),
                };
                Demand {
                    compute_bytes: prover.key().plan().section_bytes(),
                    pinned_bytes: prover.pinned_bytes_at_most() + 32 * pinned_rows,
                    host_bytes: 32 * host_values,
                    ..Demand::default()
                }
            }),
        }
    }

    fn prepare(
        &self,
        part: &Statement<'k>,
        context: &Context<'_>,
    ) -> Result<Preparation<Prepared>, Fault<ProofError>> {
        let (partition, rows) = Self::partition(part, context)?;
        context.check()?;
        if let Place::Cpu = context.place() {
            return Ok(Preparation {
                prepared: Prepared::Cpu(partition, rows),
                demand: None,
            });
        }
        let OnDevice { prover, .. } = self.here(context)?;
        let keep = context.keep_device_bytes();
        let witness = &partition.witness;
        let packed = self.phase(context, &partition.options, false, |options| match &rows {
            None => prover.pack_leaving(keep, witness, options),
            Some(rows) => prover.pack_rows_leaving(keep, rows, witness, options),
        })?;
        let demand = Demand {
            staging: packed.staging().to_vec(),
            compute_bytes: packed.compute_bytes(),
            ..Demand::default()
        };
        Ok(Preparation {
            prepared: Prepared::Device(Box::new(packed), partition),
            demand: Some(demand),
        })
    }

    fn stage(
        &self,
        _part: &Statement<'k>,
        prepared: Prepared,
        context: &Context<'_>,
        staging: Staging<'_>,
    ) -> Result<Staged, Fault<ProofError>> {
        match (prepared, staging) {
            (Prepared::Cpu(partition, rows), Staging::Cpu) => {
                let (prover, circuit) = self.cpu()?;
                let Partition { witness, options } = &partition;
                let proof = self.phase(context, options, false, |options| {
                    prover.stage(with_rows(circuit, rows)?, witness, options)
                })?;
                Ok(Staged::Cpu(Box::new(proof), partition))
            }
            (Prepared::Device(packed, partition), Staging::Device { admission, upload }) => {
                let OnDevice { prover, .. } = self.here(context)?;
                let proof = self.phase(context, &partition.options, false, |options| {
                    prover.stage_admitted(*packed, admission, upload, options)
                })?;
                Ok(Staged::Device(Box::new(proof), partition))
            }
            // The engine has brought it to another place.
            _ => Err(Fault::Input(ProofError::NoProver)),
        }
    }

    fn compute(
        &self,
        _part: &Statement<'k>,
        staged: Staged,
        context: &Context<'_>,
        section: Section<'_, '_>,
    ) -> Result<Computed, Fault<ProofError>> {
        match (staged, section) {
            (Staged::Cpu(proof, partition), Section::Cpu) => {
                let (prover, _) = self.cpu()?;
                let Partition { witness, options } = &partition;
                let computed = self.phase(context, options, false, |options| {
                    prover.compute(*proof, witness, options)
                })?;
                Ok(Computed::Cpu(Box::new(computed), partition))
            }
            (Staged::Device(proof, partition), Section::Device(cx)) => {
                let OnDevice { prover, .. } = self.here(context)?;
                let computed = self.phase(context, &partition.options, false, |options| {
                    prover.compute_in(cx, *proof, options, context.recorder())
                })?;
                Ok(Computed::Device(Box::new(computed), partition))
            }
            _ => Err(Fault::Input(ProofError::NoProver)),
        }
    }

    fn finish(
        &self,
        part: &Statement<'k>,
        computed: Computed,
        context: &Context<'_>,
    ) -> Result<Proved, Fault<ProofError>> {
        match computed {
            Computed::Cpu(computed, Partition { options, .. }) => {
                let (prover, _) = self.cpu()?;
                self.phase(context, &options, false, |options| {
                    prover.finish(*computed, options)
                })
            }
            // That the witness satisfies the circuit is found out here: its prover names the first
            // constraint that is violated.
            Computed::Device(computed, Partition { witness, options }) => {
                let OnDevice { prover, .. } = self.here(context)?;
                let verify = context.verifies() && part.verifies();
                self.phase(context, &options, verify, |options| {
                    prover.finish(*computed, &witness, options)
                })
            }
        }
    }

    fn verify(
        &self,
        part: &Statement<'k>,
        proved: &mut Proved,
        context: &Context<'_>,
    ) -> Result<(), Fault<ProofError>> {
        if proved.verified || !part.verifies() {
            return Ok(());
        }
        let witness_checked = matches!(self.cpu, Some((_, Circuit::R1cs(_))));
        context
            .span("verify", || {
                self.verifier.verify(&proved.public_values, &proved.proof)
            })
            .map_err(|_| Fault::Wrong(Groth16::ProofRejected { witness_checked }.into()))?;
        proved.verified = true;
        Ok(())
    }
}
