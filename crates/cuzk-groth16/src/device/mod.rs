//! Proving on a GPU, or on the emulated one.
//!
//! A [`Gpu`] is made once for a device, a [`DeviceProver`] once for a key and its circuit; any number of threads prove with
//! it. Proofs are those of [`crate::Prover`] for equal r and s.
//!
//! ```no_run
//! use cuzk_gpu_mem::{Device, Settings};
//! use cuzk_groth16::device::{DeviceProver, Gpu};
//! use cuzk_groth16::{Circuit, ProveOptions, synth};
//!
//! let instance = synth::Instance::new(synth::Shape::Porep, 20, 1)?;
//! let key = synth::proving_key(&instance.r1cs, synth::KeyFamily::Bellman, 2)?;
//! let gpu = Gpu::new(&Device::open_first(&Settings::default())?)?;
//! let prover = DeviceProver::new(&gpu, &key, Circuit::R1cs(&instance.r1cs))?;
//! let proved = prover.prove(&instance.witness, &ProveOptions::default())?;
//! assert!(proved.verified);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/proving.md` follows a proof through buffers and streams.

mod cache;
mod error;
mod generator;
mod gpu;
mod incoming;
mod key;
mod load;
mod matrices;
mod packing;
mod phases;
mod plan;
mod prover;
mod section;
mod self_test;
mod sums;
mod synthetic;
#[cfg(test)]
mod tests;
mod witness;
mod witness_sums;

pub use cache::{KeyCache, KeyId};
pub use error::{Error, Result};
pub use gpu::Gpu;
pub use key::DeviceKey;
pub use load::load_points;
pub use matrices::{DeviceMatrices, HostMatrices};
pub use packing::DevicePacked;
pub use phases::{DeviceComputed, DeviceStaged};
pub use plan::{KeyPlan, KeySizes, Part, Placement, Residency};
pub use prover::DeviceProver;
pub use self_test::self_test;
pub use synthetic::synthetic_key;
pub use witness::{DeviceWitness, PinnedWitness};
