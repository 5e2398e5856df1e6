//! What can go wrong between a circuit in another library's terms and a proof.

/// Why there is no shape, no witness or no proof. No variant holds a witness value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The circuit gave up.
    #[error("the circuit could not be synthesised: {what}")]
    Synthesis {
        /// The library's own words.
        what: String,
    },
    /// A circuit with values is not of the shape that was recorded without.
    #[error(
        "the circuit is not of the recorded shape: {recorded} {what} were recorded, with this witness \
         there are {found}; either it is another circuit, or it synthesises differently with and \
         without a witness, which no key can serve"
    )]
    Count {
        /// What was counted.
        what: &'static str,
        /// The recorded number.
        recorded: usize,
        /// The number with the witness.
        found: usize,
    },
    /// A circuit with values has another constraint than was recorded without.
    #[error(
        "the circuit is not of the recorded shape: {matrix} of constraint {constraint} (counted from 0) \
         is another with this witness; either it is another circuit, or it synthesises differently with \
         and without a witness, which no key can serve"
    )]
    Constraint {
        /// "A", "B" or "C".
        matrix: &'static str,
        /// Which constraint.
        constraint: usize,
    },
    /// More variables or entries than a constraint system can hold.
    #[error("the circuit has too many {what}: fewer than {limit} can be held")]
    TooLarge {
        /// What there are too many of.
        what: &'static str,
        /// How many are too many.
        limit: u64,
    },
    /// A constraint names a variable that was not allocated.
    #[error(
        "constraint {constraint} (counted from 0) names {kind} variable {index}, but there are {count}"
    )]
    NoSuchVariable {
        /// Which constraint.
        constraint: usize,
        /// "input" or "auxiliary".
        kind: &'static str,
        /// The variable.
        index: usize,
        /// How many of its kind there are.
        count: usize,
    },
    /// A circuit is synthesised in parts where it must not be.
    #[error(
        "the circuit is synthesised in parts although the constraint system is not extensible: it does \
         not ask `is_extensible`"
    )]
    Parts,
    /// A point of a key in the other library's types is not acceptable.
    #[error("{part}, point {index}: {what}")]
    Point {
        /// Which list of the key.
        part: &'static str,
        /// Which point of it.
        index: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A parameter file's name is none of Filecoin's, or not in the list.
    #[error("{name:?} {what}")]
    ParameterName {
        /// The name.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// A parameter file has another digest than the list says.
    #[error(
        "{name}: expected a file with digest {expected}, found {found}: it is damaged or another \
         version; get it again"
    )]
    Digest {
        /// The file.
        name: String,
        /// The digest in the list.
        expected: String,
        /// The digest of the file.
        found: String,
    },
    /// A list of parameter files cannot be read.
    #[error("the list of parameter files is malformed: {what}")]
    List {
        /// What is wrong with it.
        what: String,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] cuzk_formats::Error),
    /// The prover's words.
    #[error(transparent)]
    Prover(#[from] cuzk_groth16::Error),
    /// A backend that was made for one circuit is given another one's witness.
    #[error(
        "the circuit is not that of the prover: the prover was made with another constraint system than \
         the shape's"
    )]
    OtherCircuit,
    /// A GPU made no proof.
    #[error("{what}")]
    Device {
        /// What the device said.
        what: String,
        /// Whether memory was short: another time, or elsewhere, the same may do.
        is_out_of_memory: bool,
    },
    /// The scheduler made no proof.
    #[error("{what}")]
    Engine {
        /// What it said.
        what: String,
    },
}

impl Error {
    /// A device's error, or that of the proof on it.
    pub(crate) fn of_device(error: &cuzk_groth16::device::Error) -> Self {
        match error {
            cuzk_groth16::device::Error::Proof(error) => Self::Prover(error.clone()),
            error => Self::Device {
                what: error.to_string(),
                is_out_of_memory: error.is_out_of_memory(),
            },
        }
    }
}
