//! What is proved, and why there is no proof of it.

use std::fmt;
use std::sync::Arc;

use cuzk_formats::Witness;
use cuzk_groth16::device;
use cuzk_groth16::{Error as Groth16, ProveOptions, Rows};

/// One partition: a witness, in memory or to be had when its turn comes, so that a long list of
/// them is not in memory all at once.
pub enum Statement<'s> {
    /// In memory.
    Witness(Arc<Witness>),
    /// In memory, with options of its own: r and s where they are the caller's, who is told of the stages, when to
    /// stop (the job is cancelled then), whether to verify.
    With(Arc<Witness>, ProveOptions),
    /// Loaded while staging.
    Load(Box<dyn Fn() -> Result<Witness, String> + Send + Sync + 's>),
    /// Evaluated by the caller, had while staging, and again where it is tried again. For a circuit given as
    /// `Circuit::Rows`.
    Evaluate(Box<dyn Fn() -> Result<Evaluated, ProofError> + Send + Sync + 's>),
}

/// A witness whose rows the caller has evaluated. Wiped when dropped.
#[derive(Debug)]
pub struct Evaluated {
    /// A w and B w, input rows included.
    pub rows: Rows,
    /// The witness.
    pub witness: Witness,
    /// How to prove. Its proof is verified where the engine verifies, whatever is said here.
    pub options: ProveOptions,
}

impl Statement<'_> {
    /// Whether its proof is to be verified, where the engine verifies.
    pub(super) fn verifies(&self) -> bool {
        match self {
            Self::With(_, options) => options.verify,
            Self::Witness(_) | Self::Load(_) | Self::Evaluate(_) => true,
        }
    }
}

impl fmt::Debug for Statement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Witness(_) => "Statement::Witness(..)",
            Self::With(..) => "Statement::With(..)",
            Self::Load(_) => "Statement::Load(..)",
            Self::Evaluate(_) => "Statement::Evaluate(..)",
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
