//! Groth16 over BLS12-381: from a witness to a **verified** proof.
//!
//! A [`Prover`] is made once per key and proves any number of witnesses. What it is given besides
//! the witness is a [`Circuit`]: a constraint system, the matrices of a zkey, or rows that the caller
//! has evaluated. Every proof is verified before it is returned, unless [`ProveOptions`] says
//! otherwise.
//!
//! ```
//! use cuzk_groth16::{Circuit, ProveOptions, Prover, Verifier, synth};
//! let instance = synth::Instance::new(synth::Shape::Dense, 6, 1)?;
//! let key = synth::proving_key(&instance.r1cs, synth::KeyFamily::Circom, 2)?;
//! let prover = Prover::new(&key)?;
//! let proved = prover.prove(Circuit::R1cs(&instance.r1cs), &instance.witness, &ProveOptions::default())?;
//! Verifier::new(&key.vk)?.verify(&proved.public_values, &proved.proof)?;
//! # Ok::<(), cuzk_groth16::Error>(())
//! ```
//!
//! Proof bytes are no identifier: anybody can turn a valid proof into another valid proof of the
//! same statement (multiply A by t and B by 1/t). Key nullifiers and receipts on the public values.
#![forbid(unsafe_code)]

#[cfg(feature = "arkworks")]
pub mod ark;
mod blinding;
mod circuit;
mod compare;
pub mod device;
mod error;
mod key;
pub mod prepared;
mod prover;
mod rows;
mod setup;
mod stages;
pub mod synth;
mod verifier;

pub use blinding::Blinding;
pub use circuit::Circuit;
pub use compare::{DifferingRow, first_differing_row};
pub use error::Error;
pub use key::{KeyHeader, KeyRef};
pub use prover::{ComputedProof, ProveOptions, Proved, Prover, StagedProof};
pub use rows::Rows;
pub use stages::{Stage, StageCallback, Stages, StopCheck};
pub use verifier::Verifier;

pub use cuzk_formats::QueryVariables;
