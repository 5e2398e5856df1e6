//! Proving on a GPU, or on the emulated one.
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
