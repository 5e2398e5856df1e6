//! What can go wrong between a witness and a proof.

/// Why there is no proof. No variant holds a witness value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The key contradicts itself.
    #[error("the key is not usable: {what}")]
    Key {
        /// What is wrong with it.
        what: String,
    },
    /// Key and circuit are not of one setup.
    #[error(
        "the key was not made for this circuit: the key has {key} {what}, the circuit {circuit}"
    )]
    CircuitMismatch {
        /// What was counted.
        what: &'static str,
        /// The key's number.
        key: usize,
        /// The circuit's number.
        circuit: usize,
    },
    /// The circuit given cannot be used with a key of this kind.
    #[error("the circuit cannot be used with this key: {what}")]
    Circuit {
        /// Why.
        what: String,
    },
    /// The witness has another length than the circuit has variables.
    #[error("the witness is of another circuit: it has {found} values, expected {expected}")]
    WitnessLength {
        /// Variables of the circuit, ONE included.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// The constant ONE is something else.
    #[error("the witness is malformed: value 0 must be the constant 1")]
    WitnessOne,
    /// The witness does not satisfy the circuit.
    #[error(
        "the witness does not satisfy the circuit: constraint {constraint} (counted from 0) is the \
         first that is violated"
    )]
    Unsatisfied {
        /// The first violated constraint.
        constraint: usize,
    },
    /// A circuit could not be synthesised.
    #[error("the circuit could not be synthesised: {what}")]
    Synthesis {
        /// The synthesiser's own words.
        what: String,
    },
    /// A proof was made and does not verify.
    #[error(
        "the proof failed its own verification and was withheld: {}the key is damaged or of another \
         circuit, or the hardware computed wrongly; {}check the key (its subgroup check, its digest), \
         or prove again, on another device if there is one",
        if *.witness_checked { "the witness satisfies the circuit, so " } else {
            "the witness does not satisfy the circuit, or "
        },
        if *.witness_checked { "" } else { "give the R1CS to find the violated constraint, " }
    )]
    ProofRejected {
        /// Whether the witness had been found to satisfy the circuit.
        witness_checked: bool,
    },
    /// A proof does not verify.
    #[error("the proof is not valid for this verifying key and these public values")]
    InvalidProof,
    /// A point of a proof or verifying key is not acceptable.
    #[error("{point} {what}")]
    Point {
        /// Which point.
        point: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Too many or too few public values.
    #[error("the verifying key takes {expected} public values, {found} were given")]
    PublicCount {
        /// Values the key takes.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// The operating system gave no randomness.
    #[error("the operating system gave no randomness for r and s: {what}")]
    NoEntropy {
        /// Its error.
        what: String,
    },
    /// Somebody asked to stop: [`StopCheck`](crate::StopCheck).
    #[error("the proof was stopped")]
    Stopped,
    /// A size that cannot be served.
    #[error(transparent)]
    Domain(#[from] cuzk_ntt::Error),
    /// Bases and scalars that do not pair up: a fault of ours.
    #[error(transparent)]
    Msm(#[from] cuzk_msm::Error),
}
