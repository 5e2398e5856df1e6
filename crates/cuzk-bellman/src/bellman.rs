//! Circuits of zkcrypto's `bellman` 0.15 over BLS12-381, keys and proofs of its `groth16` 0.2: what
//! Zcash has.

use bellman::{
    Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError,
    Variable as LibraryVariable,
};
use bls12_381::Bls12;
use cuzk_formats::{KeyFlavour, ProvingKey, QueryLayout, Witness};
use cuzk_groth16::{ProveOptions, Proved};
use groth16::{Parameters, Proof, VerifyingKey};

use crate::assignment::Assignment;
use crate::backend::{Backend, Job, single};
use crate::comparison::Comparison;
use crate::error::Error;
use crate::functions::circuit_functions;
use crate::keys::{self, key_functions};
use crate::recorder::Recorder;
use crate::shape::Shape;
use crate::sink::Sink;
use crate::variable::{Variable, canonical};

pub use bls12_381::Scalar;

circuit_functions!(S {});
key_functions!(Bls12, bls12_381);

/// An element as ours.
fn scalar(value: &Scalar) -> cuzk_field::Scalar {
    canonical(&value.to_bytes())
}

/// In the circuit's order; one that was added twice comes twice.
fn entries(combination: &LinearCombination<Scalar>) -> impl Iterator<Item = (Index, &Scalar)> {
    combination
        .as_ref()
        .iter()
        .map(|(variable, coefficient)| (variable.get_unchecked(), coefficient))
}
