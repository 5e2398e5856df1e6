//! Proving on a GPU, or on the emulated one.
//!
//! `docs/proving.md` follows a proof through buffers and streams.

mod matrices;
#[cfg(test)]
mod tests;
mod witness;

pub use matrices::{DeviceMatrices, HostMatrices};
pub use witness::{DeviceWitness, HostWitness};
