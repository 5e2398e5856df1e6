//! A drop-in for `supraseal-c2` 0.1.2: the same names and types, with cuzk behind them.
//!
//! A program that proves through bellperson with feature `cuda-supraseal` proves through cuzk once its
//! `Cargo.toml` says
//!
//! ```toml
//! [patch.crates-io]
//! supraseal-c2 = { path = "../cuzk/crates/compat-supraseal-c2" }
//! ```
//!
//! Proofs are the same group elements for the same r and s. What differs:
//!
//! - [`SRS::try_new`] reads the file whole and checks every point; the file may be deleted afterwards.
//! - Every proof is verified before it is handed out, rows are held against each other, densities against
//!   their counts and the key.
//! - It needs no CUDA toolkit to build and no GPU to run. Circuits of a call go to as many GPUs as there are
//!   (`CUDA_VISIBLE_DEVICES` says which), calls side by side to those with the fewest; what no GPU has the memory for, or
//!   fails at, is proved on the CPU. Calls wait for each other only where they share a GPU.
//! - Circuits of one call have one shape: their densities are compared.
//! - [`proofs_made`] counts, and [`proofs_made_on_gpus`].
//!
//! The generating functions return nothing, as their callers expect: **a failure is a panic** with cuzk's
//! error text, raised once everything is released. It is the one exception to a library that never panics.
//! r and s come from the caller; a proof is zero-knowledge only if they are uniform and secret.
#![deny(unsafe_code)]

mod densities;
mod devices;
mod engine;
mod error;
mod memory;
mod prove;
mod raw;
mod srs;
#[cfg(test)]
mod tests;

#[cfg(test)]
extern crate self as supraseal_c2;

pub use error::Error;
pub use prove::{proofs_made, proofs_made_on_gpus};
pub use raw::{Assignment, generate_groth16_proof, generate_groth16_proofs};
pub use srs::SRS;
