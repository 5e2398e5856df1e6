//! Exit codes, and the failures that have one.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use cuzk_formats::ErrorClass;
use serde_json::json;

/// How the program ends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(u8)]
pub(crate) enum Exit {
    /// All is well.
    #[default]
    Success = 0,
    /// A proof does not verify.
    NotVerified = 1,
    /// The command line or the environment is wrong.
    Usage = 2,
    /// An input file is bad.
    BadInput = 3,
    /// The witness is bad, or witness, circuit and key do not belong together.
    BadWitness = 4,
    /// The device asked for cannot be used.
    NoDevice = 5,
    /// Not enough memory.
    OutOfMemory = 6,
    /// A fault of ours, or the system's.
    Internal = 7,
    /// SIGHUP, see [`crate::signals`].
    HungUp = 129,
    /// SIGINT.
    Interrupted = 130,
    /// SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// This exit unless it is success, else `other`.
    pub(crate) fn or(self, other: Self) -> Self {
        if self == Self::Success { other } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed. No variant holds a witness value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Arguments that contradict each other.
    #[error("{0}")]
    Usage(String),
    /// A file that cannot be read as what it should be.
    #[error(transparent)]
    File(#[from] cuzk_formats::Error),
    /// A file that is well formed and wrong all the same.
    #[error("{file}: {what}")]
    BadInput {
        /// Its path.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// Files that do not belong together.
    #[error("{0}")]
    Mismatch(String),
    /// The prover's or verifier's own words.
    #[error(transparent)]
    Groth16(#[from] cuzk_groth16::Error),
    /// No device to prove with.
    #[error("{0}")]
    Device(String),
    /// More memory needed than there is or may be used.
    #[error("{0}")]
    OutOfMemory(String),
    /// An output that cannot be written.
    #[error("{path}: cannot write it: {error}")]
    Output {
        /// Where it should have gone.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// A result that cannot be printed.
    #[error("cannot write the result: {0}")]
    Result(std::io::Error),
    /// The system refuses something.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// A fault of ours.
    #[error("internal error: {0}; this is a bug of cuzk, please report it")]
    Bug(String),
}

impl From<cuzk_groth16::device::Error> for Failure {
    fn from(error: cuzk_groth16::device::Error) -> Self {
        use cuzk_groth16::device::Error;
        match error {
            Error::Proof(error) => Self::Groth16(error),
            Error::File(error) => Self::File(error),
            error if error.is_out_of_memory() => Self::OutOfMemory(error.to_string()),
            error => Self::Device(error.to_string()),
        }
    }
}

impl Failure {
    /// The exit code of this failure.
    pub(crate) fn exit(&self) -> Exit {
        use cuzk_groth16::Error as Groth16;
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::File(error) => match error.class() {
                ErrorClass::BadWitness => Exit::BadWitness,
                ErrorClass::OutOfMemory => Exit::OutOfMemory,
                ErrorClass::Cancelled => Exit::Internal,
                _ => Exit::BadInput,
            },
            Self::BadInput { .. } => Exit::BadInput,
            Self::Mismatch(_) => Exit::BadWitness,
            Self::Groth16(error) => match error {
                Groth16::ProofRejected { .. } | Groth16::InvalidProof => Exit::NotVerified,
                Groth16::Key { .. }
                | Groth16::Point { .. }
                | Groth16::PublicCount { .. }
                | Groth16::Domain(_) => Exit::BadInput,
                Groth16::CircuitMismatch { .. }
                | Groth16::Circuit { .. }
                | Groth16::WitnessLength { .. }
                | Groth16::WitnessOne
                | Groth16::Unsatisfied { .. }
                | Groth16::Synthesis { .. } => Exit::BadWitness,
                // Key, circuit and witness have been compared before any sum: a sum that does not
                // fit is a fault of ours, no entropy one of the system.
                Groth16::Msm(_) | Groth16::NoEntropy { .. } => Exit::Internal,
                _ => Exit::Internal,
            },
            Self::Device(_) => Exit::NoDevice,
            Self::OutOfMemory(_) => Exit::OutOfMemory,
            Self::Output { .. } | Self::Result(_) | Self::System(_) | Self::Bug(_) => {
                Exit::Internal
            }
        }
    }

    /// Says on stderr what went wrong, and with `--json` on stdout as well.
    pub(crate) fn print(self, is_json: bool) -> Exit {
        let exit = self.exit();
        if let Self::Result(error) = self {
            return crate::after_printing(Err(error), exit);
        }
        say(&self.to_string());
        if is_json {
            return self.print_json(exit);
        }
        exit
    }

    /// Says it on stdout alone.
    pub(crate) fn print_json(&self, exit: Exit) -> Exit {
        let object = json!({ "error": self.to_string(), "exit_code": exit as u8 });
        let printed = writeln!(std::io::stdout(), "{object}");
        crate::after_printing(printed, exit)
    }
}

/// An error line on stderr, where there is one.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "error: {}", shown(text, "\n"));
}

/// File names can hold control characters, which a terminal would obey: they are shown escaped, but for
/// those of `kept`.
pub(crate) fn shown(text: &str, kept: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && !kept.contains(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Makes a panic one line. Its text is ours and holds no value of a witness.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info
            .location()
            .map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        tracing::error!("panic{place}");
    }));
}

/// Runs `work`; a panic becomes the failure that it is.
pub(crate) fn catching_panics<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Failure::Bug(text.unwrap_or_else(|| "a panic".into())))
    })
}
