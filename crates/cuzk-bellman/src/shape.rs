//! A circuit's constraint system, recorded once.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use cuzk_formats::{CoefficientTable, LoadOptions, Matrix, R1cs, ReadAt, r1cs};

use crate::error::Error;
use crate::recorder::Recorder;

/// The constraint system of all circuits of one shape: recorded once, without values, as key
/// generation does; later proofs compute only the witness.
///
/// The first witness that a shape is asked for is made with every constraint compared, since a circuit
/// that synthesises differently once it has values would fail in ways that name no cause; later ones
/// with the numbers of inputs, variables and constraints compared. That a witness satisfies the
/// constraints is checked for every proof.
#[derive(Debug)]
pub struct Shape {
    r1cs: R1cs,
    compared: AtomicBool,
}

impl Shape {
    pub(crate) fn new(recorder: Recorder) -> Result<Self, Error> {
        recorder.finish().map(Self::from)
    }

    /// Of a circuit that does nothing.
    pub(crate) fn empty() -> Self {
        Self::from(R1cs {
            num_inputs: 1,
            num_variables: 1,
            a: Matrix::new(),
            b: Matrix::new(),
            c: Matrix::new(),
            coefficients: CoefficientTable::new(),
        })
    }

    /// The constraint system.
    pub fn r1cs(&self) -> &R1cs {
        &self.r1cs
    }

    /// Writes an `.r1cs` file, for `cuzk prove --r1cs`, `cuzk prepare`, and services that have no code
    /// of the circuit.
    ///
    /// # Errors
    /// When writing fails.
    pub fn save(&self, out: &mut dyn Write) -> Result<(), Error> {
        Ok(r1cs::write(&self.r1cs, out)?)
    }

    /// Reads an `.r1cs` file.
    ///
    /// # Errors
    /// As [`cuzk_formats::r1cs::read`].
    pub fn load(source: &(impl ReadAt + ?Sized), options: &LoadOptions<'_>) -> Result<Self, Error> {
        Ok(Self::from(r1cs::read(source, options)?.r1cs))
    }

    /// Whether a witness is still to be made with every constraint compared.
    pub(crate) fn is_to_be_compared(&self) -> bool {
        !self.compared.load(Ordering::Relaxed)
    }

    pub(crate) fn set_compared(&self) {
        self.compared.store(true, Ordering::Relaxed);
    }
}

/// A constraint system from elsewhere.
impl From<R1cs> for Shape {
    fn from(r1cs: R1cs) -> Self {
        Self {
            r1cs,
            compared: AtomicBool::new(false),
        }
    }
}
