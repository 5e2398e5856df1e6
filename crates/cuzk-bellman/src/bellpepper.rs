//! Circuits of `bellpepper-core` 0.2, which are those of bellperson 0.26 and of Filecoin.
//!
//! ```
//! # use cuzk_bellman::bellpepper::{self, Scalar};
//! # use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
//! /// Knowledge of factors of a public number.
//! #[derive(Clone, Default)]
//! struct Factors { a: Option<Scalar>, b: Option<Scalar> }
//!
//! impl Circuit<Scalar> for Factors {
//!     fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
//!         let missing = SynthesisError::AssignmentMissing;
//!         let a = cs.alloc(|| "a", || self.a.ok_or(missing))?;
//!         let missing = SynthesisError::AssignmentMissing;
//!         let b = cs.alloc(|| "b", || self.b.ok_or(missing))?;
//!         let product = self.a.zip(self.b).map(|(a, b)| a * b);
//!         let missing = SynthesisError::AssignmentMissing;
//!         let c = cs.alloc_input(|| "c", || product.ok_or(missing))?;
//!         cs.enforce(|| "c = a b", |lc| lc + a, |lc| lc + b, |lc| lc + c);
//!         Ok(())
//!     }
//! }
//!
//! # use cuzk_groth16::{synth, ProveOptions, Prover};
//! let shape = bellpepper::record(Factors::default())?;
//! # let key = synth::proving_key(shape.r1cs(), synth::KeyFamily::Bellman, 1)?;
//! let prover = Prover::new(&key)?;
//! let circuit = Factors { a: Some(Scalar::from(6)), b: Some(Scalar::from(7)) };
//! let proved = bellpepper::prove(&prover, &shape, circuit, &ProveOptions::default())?;
//! assert!(proved.verified);
//! # Ok::<(), cuzk_bellman::Error>(())
//! ```

use bellpepper_core::{
    Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError,
    Variable as LibraryVariable,
};
use cuzk_formats::Witness;
use cuzk_groth16::{ProveOptions, Proved};

use crate::assignment::Assignment;
use crate::backend::{Backend, Job, single};
use crate::comparison::Comparison;
use crate::error::Error;
use crate::functions::circuit_functions;
use crate::recorder::Recorder;
use crate::shape::Shape;
use crate::sink::Sink;
use crate::variable::{Variable, canonical};

pub use blstrs::Scalar;

circuit_functions!(S {
    fn new() -> Self {
        Self(S::part())
    }

    fn is_extensible() -> bool {
        S::EXTENSIBLE
    }

    fn extend(&mut self, part: &Self) {
        self.0.extend(&part.0);
    }
});

/// An element as ours.
fn scalar(value: &Scalar) -> cuzk_field::Scalar {
    canonical(&value.to_bytes_le())
}

/// Inputs, then the others; equal ones have been merged.
fn entries(combination: &LinearCombination<Scalar>) -> impl Iterator<Item = (Index, &Scalar)> {
    combination
        .iter()
        .map(|(variable, coefficient)| (variable.0, coefficient))
}
