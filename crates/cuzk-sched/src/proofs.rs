//! Groth16 proofs as the engine's work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cuzk_formats::Witness;
use cuzk_groth16::{
    Circuit, ComputedProof, Error as Groth16, ProveOptions, Proved, Prover, StageCallback,
    StagedProof, StopCheck,
};

use crate::work::{Context, Demand, Fault, Place, Section, Staging, Work};

/// What is proved: a key's prover, and the circuit. One is made for any number of proofs.
///
/// For now it proves on the CPU.
#[derive(Debug)]
pub struct Proofs<'k> {
    prover: Prover<'k>,
    circuit: Circuit<'k>,
    host_bytes: u64,
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
    Device(Arc<cuzk_gpu_mem::Error>),
    /// This place cannot prove.
    #[error("proofs are made on the CPU")]
    NoProver,
}

impl From<cuzk_gpu_mem::Error> for ProofError {
    fn from(error: cuzk_gpu_mem::Error) -> Self {
        Self::Device(Arc::new(error))
    }
}

/// A partition between phases.
#[derive(Debug)]
pub struct Staged {
    proof: StagedProof,
    witness: Arc<Witness>,
}

impl<'k> Proofs<'k> {
    /// Proofs of `circuit` with this prover's key. `Circuit::Rows` is of one witness only and has no
    /// place here.
    pub fn new(prover: Prover<'k>, circuit: Circuit<'k>) -> Self {
        let (rows, values) = (
            prover.key().domain_size as u64,
            prover.key().num_variables() as u64,
        );
        Self {
            // The witness, and the vectors over the domain while the quotient is made.
            host_bytes: 32 * (values + 3 * rows),
            prover,
            circuit,
        }
    }

    /// The prover.
    pub fn prover(&self) -> &Prover<'k> {
        &self.prover
    }

    /// Host memory that one partition takes on the CPU.
    pub fn host_bytes(&self) -> u64 {
        self.host_bytes
    }

    /// Runs a phase; its stages go into the timeline.
    fn phase<T>(
        &self,
        context: &Context<'_>,
        run: impl FnOnce(&ProveOptions) -> Result<T, Groth16>,
    ) -> Result<T, Fault<ProofError>> {
        let begun: Arc<Mutex<Vec<(&'static str, Instant)>>> = Arc::default();
        let begins = Arc::clone(&begun);
        let note = move |stage| lock(&begins).push((stage, Instant::now()));
        let options = ProveOptions::default()
            .without_verification()
            .with_stop_check(StopCheck::new(context.stop_check()))
            .with_stage_callback(StageCallback::new(note));
        let result = run(&options);
        let begun = lock(&begun);
        let ends = begun.iter().skip(1).map(|(_, begin)| *begin);
        for ((stage, begin), end) in begun.iter().zip(ends.chain([Instant::now()])) {
            context.note(stage, *begin, end);
        }
        result.map_err(fault)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the prover says, by what can be done about it.
fn fault(error: Groth16) -> Fault<ProofError> {
    match error {
        Groth16::Stopped => Fault::Stopped,
        error => Fault::Input(error.into()),
    }
}

impl Work for Proofs<'_> {
    type Part = Statement;
    type Staged = Staged;
    type Computed = ComputedProof;
    type Output = Proved;
    type Error = ProofError;

    fn demand(&self, _part: &Statement, place: &Place) -> Option<Demand> {
        match place {
            Place::Cpu => Some(Demand {
                host_bytes: self.host_bytes,
                ..Demand::default()
            }),
            Place::Device(_) => None,
        }
    }

    fn stage(
        &self,
        part: &Statement,
        context: &Context<'_>,
        staging: Staging<'_>,
    ) -> Result<Staged, Fault<ProofError>> {
        let Staging::Cpu = staging else {
            return Err(Fault::Input(ProofError::NoProver));
        };
        let witness = match part {
            Statement::Witness(witness) => Arc::clone(witness),
            Statement::Load(load) => {
                let loaded = context.span("load witness", load);
                Arc::new(loaded.map_err(|what| Fault::Input(ProofError::Load(what)))?)
            }
        };
        context.check()?;
        let proof = self.phase(context, |options| {
            self.prover.stage(self.circuit.clone(), &witness, options)
        })?;
        Ok(Staged { proof, witness })
    }

    fn compute(
        &self,
        _part: &Statement,
        staged: Staged,
        context: &Context<'_>,
        _section: Section<'_, '_>,
    ) -> Result<ComputedProof, Fault<ProofError>> {
        let Staged { proof, witness } = staged;
        self.phase(context, |options| {
            self.prover.compute(proof, &witness, options)
        })
    }

    fn finish(
        &self,
        _part: &Statement,
        computed: ComputedProof,
        context: &Context<'_>,
    ) -> Result<Proved, Fault<ProofError>> {
        self.phase(context, |options| self.prover.finish(computed, options))
    }

    fn verify(
        &self,
        _part: &Statement,
        proved: &mut Proved,
        context: &Context<'_>,
    ) -> Result<(), Fault<ProofError>> {
        let witness_checked = matches!(self.circuit, Circuit::R1cs(_));
        context
            .span("verify", || {
                let verifier = self.prover.verifier();
                verifier.verify(&proved.public_values, &proved.proof)
            })
            .map_err(|_| Fault::Wrong(Groth16::ProofRejected { witness_checked }.into()))?;
        proved.verified = true;
        Ok(())
    }
}
