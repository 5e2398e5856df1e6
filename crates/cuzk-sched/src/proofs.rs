//! Groth16 proofs as the engine's work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cuzk_formats::Witness;
use cuzk_gpu_mem::Device;
use cuzk_groth16::device::{self, DeviceComputed, DevicePacked, DeviceProver, DeviceStaged, Gpu};
use cuzk_groth16::{
    Circuit, ComputedProof, Error as Groth16, ProveOptions, Proved, Prover, StageCallback,
    StagedProof, StopCheck, Verifier,
};

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

/// One partition: a witness, in memory or to be had when its turn comes, so that a long list of
/// them is not in memory all at once.
pub enum Statement {
    /// In memory.
    Witness(Arc<Witness>),
    /// Loaded while staging.
    Load(Box<dyn Fn() -> Result<Witness, String> + Send + Sync>),
}

impl std::fmt::Debug for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Witness(_) => "Statement::Witness(..)",
            Self::Load(_) => "Statement::Load(..)",
        })
    }
}

/// Why there is no proof.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The prover's words.
    #[error(transparent)]
    Groth16(#[from] Groth16),
    /// A witness that could not be loaded.
    #[error("{0}")]
    Load(String),
    /// The device's words.
    #[error(transparent)]
    Device(Arc<device::Error>),
    /// There is no prover for this place.
    #[error("there is no prover for this place")]
    NoProver,
}

impl From<cuzk_gpu_mem::Error> for ProofError {
    fn from(error: cuzk_gpu_mem::Error) -> Self {
        Self::Device(Arc::new(error.into()))
    }
}

/// A partition before its first phase.
#[derive(Debug)]
pub enum Prepared {
    /// On the CPU.
    Cpu(Arc<Witness>),
    /// For a GPU: the witness in pinned memory.
    Device(Box<DevicePacked>, Arc<Witness>),
}

/// A partition between its phases.
#[derive(Debug)]
pub enum Staged {
    /// On the CPU.
    Cpu(Box<StagedProof>, Arc<Witness>),
    /// On a GPU.
    Device(Box<DeviceStaged>, Arc<Witness>),
}

/// A partition between its phases.
#[derive(Debug)]
pub enum Computed {
    /// On the CPU.
    Cpu(Box<ComputedProof>),
    /// On a GPU.
    Device(Box<DeviceComputed>, Arc<Witness>),
}

impl<'k> Proofs<'k> {
    /// Proofs of `circuit` with this prover's key, on the CPU. `Circuit::Rows` is of one witness only
    /// and has no place here.
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

    /// Runs a phase; its stages go into the timeline.
    fn phase<T, E>(
        &self,
        context: &Context<'_>,
        verify: bool,
        run: impl FnOnce(&ProveOptions) -> Result<T, E>,
    ) -> Result<T, Fault<ProofError>>
    where
        E: Into<device::Error>,
    {
        let begun: Arc<Mutex<Vec<(&'static str, Instant)>>> = Arc::default();
        let begins = Arc::clone(&begun);
        let note = move |stage| lock(&begins).push((stage, Instant::now()));
        let mut options = ProveOptions::default()
            .with_stop_check(StopCheck::new(context.stop_check()))
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

    fn witness(part: &Statement, context: &Context<'_>) -> Result<Arc<Witness>, Fault<ProofError>> {
        match part {
            Statement::Witness(witness) => Ok(Arc::clone(witness)),
            Statement::Load(load) => {
                let loaded = context.span("load witness", load);
                let witness = loaded.map_err(|what| Fault::Input(ProofError::Load(what)))?;
                Ok(Arc::new(witness))
            }
        }
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

impl Work for Proofs<'_> {
    type Part = Statement;
    type Prepared = Prepared;
    type Staged = Staged;
    type Computed = Computed;
    type Output = Proved;
    type Error = ProofError;

    fn demand(&self, part: &Statement, place: &Place) -> Option<Demand> {
        match place {
            Place::Cpu => self.cpu.as_ref().map(|_| Demand {
                host_bytes: self.host_bytes,
                ..Demand::default()
            }),
            Place::Device(device) => self.on(device).map(|OnDevice { prover, .. }| Demand {
                compute_bytes: prover.key().plan().section_bytes(),
                pinned_bytes: prover.pinned_bytes_at_most(),
                host_bytes: match part {
                    Statement::Witness(_) => 0,
                    Statement::Load(_) => 32 * prover.key().header().num_variables as u64,
                },
                ..Demand::default()
            }),
        }
    }

    fn prepare(
        &self,
        part: &Statement,
        context: &Context<'_>,
    ) -> Result<Preparation<Prepared>, Fault<ProofError>> {
        let witness = Self::witness(part, context)?;
        context.check()?;
        if let Place::Cpu = context.place() {
            return Ok(Preparation {
                prepared: Prepared::Cpu(witness),
                demand: None,
            });
        }
        let OnDevice { prover, .. } = self.here(context)?;
        let keep = context.keep_device_bytes();
        let packed = self.phase(context, false, |options| {
            prover.pack_leaving(keep, &witness, options)
        })?;
        let demand = Demand {
            staging: packed.staging().to_vec(),
            compute_bytes: packed.compute_bytes(),
            ..Demand::default()
        };
        Ok(Preparation {
            prepared: Prepared::Device(Box::new(packed), witness),
            demand: Some(demand),
        })
    }

    fn stage(
        &self,
        _part: &Statement,
        prepared: Prepared,
        context: &Context<'_>,
        staging: Staging<'_>,
    ) -> Result<Staged, Fault<ProofError>> {
        match (prepared, staging) {
            (Prepared::Cpu(witness), Staging::Cpu) => {
                let (prover, circuit) = self.cpu()?;
                let proof = self.phase(context, false, |options| {
                    prover.stage(circuit.clone(), &witness, options)
                })?;
                Ok(Staged::Cpu(Box::new(proof), witness))
            }
            (Prepared::Device(packed, witness), Staging::Device { admission, upload }) => {
                let OnDevice { prover, .. } = self.here(context)?;
                let proof = self.phase(context, false, |options| {
                    prover.stage_admitted(*packed, admission, upload, options)
                })?;
                Ok(Staged::Device(Box::new(proof), witness))
            }
            // The engine has brought it to another place.
            _ => Err(Fault::Input(ProofError::NoProver)),
        }
    }

    fn compute(
        &self,
        _part: &Statement,
        staged: Staged,
        context: &Context<'_>,
        section: Section<'_, '_>,
    ) -> Result<Computed, Fault<ProofError>> {
        match (staged, section) {
            (Staged::Cpu(proof, witness), Section::Cpu) => {
                let (prover, _) = self.cpu()?;
                let computed = self.phase(context, false, |options| {
                    prover.compute(*proof, &witness, options)
                })?;
                Ok(Computed::Cpu(Box::new(computed)))
            }
            (Staged::Device(proof, witness), Section::Device(cx)) => {
                let OnDevice { prover, .. } = self.here(context)?;
                let computed = self.phase(context, false, |options| {
                    prover.compute_in(cx, *proof, options, context.recorder())
                })?;
                Ok(Computed::Device(Box::new(computed), witness))
            }
            _ => Err(Fault::Input(ProofError::NoProver)),
        }
    }

    fn finish(
        &self,
        _part: &Statement,
        computed: Computed,
        context: &Context<'_>,
    ) -> Result<Proved, Fault<ProofError>> {
        match computed {
            Computed::Cpu(computed) => {
                let (prover, _) = self.cpu()?;
                self.phase(context, false, |options| prover.finish(*computed, options))
            }
            // That the witness satisfies the circuit is found out here: its prover names the first
            // constraint that is violated.
            Computed::Device(computed, witness) => {
                let OnDevice { prover, .. } = self.here(context)?;
                self.phase(context, context.verifies(), |options| {
                    prover.finish(*computed, &witness, options)
                })
            }
        }
    }

    fn verify(
        &self,
        _part: &Statement,
        proved: &mut Proved,
        context: &Context<'_>,
    ) -> Result<(), Fault<ProofError>> {
        if proved.verified {
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
