//! Prepared keys: an ordinary key brought into the form that proofs are made from, once.
//!
//! [`prepare`] joins a key with its circuit: the queries lose their points at infinity, and what stands
//! where is recorded. [`four_transform_bases`] moves the part of C into the key, so that a proof needs four
//! transforms instead of six (`docs/groth16.md`). Either way proofs stay the same, byte for byte, for equal
//! r and s. `cuzk_formats::prepared` has the file; [`device`] makes the bases on a GPU.
//!
//! ```
//! use cuzk_groth16::{Circuit, ProveOptions, Prover, prepared, synth};
//! let instance = synth::Instance::new(synth::Shape::Dense, 4, 1)?;
//! let mut key = synth::proving_key(&instance.r1cs, synth::KeyFamily::Bellman, 2)?;
//! prepared::four_transform_bases(&mut key, &instance.r1cs, &|_| {})?;
//! let key = prepared::prepare(key, prepared::Rows::Of(&instance.r1cs), prepared::Origin::SYNTHETIC)?;
//! let prover = Prover::new(&key)?;
//! let circuit = Circuit::Matrices(&key.matrices);
//! assert!(prover.prove(circuit, &instance.witness, &ProveOptions::default())?.verified);
//! # Ok::<(), cuzk_groth16::Error>(())
//! ```

mod bases;
mod columns;
mod cost;
pub mod device;
mod join;
mod transform;

pub use bases::{four_transform_bases, shift};
pub use cost::{Cost, measure_multiplication};
pub use join::{Rows, prepare};
pub use transform::{ProgressFn, transform};

pub use cuzk_formats::prepared::{KeySource, Origin, PreparedKey};
