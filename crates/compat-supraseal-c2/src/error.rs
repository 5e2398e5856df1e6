//! Why there are no parameters or no proofs.

/// What [`SRS::try_new`](crate::SRS::try_new) returns, and what the generating functions panic with. No
/// variant holds a witness value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The parameter file is not acceptable.
    #[error(transparent)]
    File(#[from] cuzk_formats::Error),
    /// The prover's words.
    #[error("circuit {circuit}: {error}")]
    Prover {
        /// Which circuit of the call.
        circuit: usize,
        /// What is wrong.
        error: cuzk_groth16::Error,
    },
    /// The scheduler's words.
    #[error("circuit {circuit}: {what}")]
    Engine {
        /// Which circuit of the call.
        circuit: usize,
        /// What is wrong.
        what: String,
    },
    /// Arguments that contradict each other or the interface.
    #[error("{what}: expected {expected}, found {found}")]
    Argument {
        /// Which argument.
        what: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A field element that is not reduced.
    #[error("circuit {circuit}: element {index} of {part} is not below r")]
    NotCanonical {
        /// Which circuit of the call.
        circuit: usize,
        /// Which list.
        part: &'static str,
        /// Which element of it.
        index: usize,
    },
    /// Handles made by `SRS::default` have no parameters.
    #[error("these parameters are empty: make them with SRS::try_new")]
    NoParameters,
}
