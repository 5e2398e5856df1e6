//! Circuits and keys of the bellman family, proved by cuzk.
//!
//! A circuit is recorded once as a [`Shape`], the way key generation synthesises it; a proof then takes
//! only its witness. Keys are `.params` files, read by [`cuzk_formats::bellman::read_params`], or the
//! library's own types. Proofs are made by a [`Backend`]: a `cuzk_groth16::Prover` on the CPU, a
//! `cuzk_groth16::device::DeviceProver` on a GPU, or `Partitions` over the devices of a scheduler.
//!
//! | feature, module | whose circuits and keys |
//! |---|---|
//! | `bellpepper` | circuits of bellpepper-core 0.2, those of Filecoin among them |
//! | `bellperson` | keys and proofs of bellperson 0.26 for them |
//! | `bellman` | circuits of zkcrypto's bellman 0.15, keys and proofs of its groth16 0.2: Zcash |
//! | `filecoin` | names and digests of Filecoin's parameter files |
//! | `sched` | `Partitions`: a backend over the devices of `cuzk-sched` |
//!
//! What these libraries' provers take for granted is checked here: that a circuit is the same with and
//! without a witness, that key and circuit belong together, that the witness satisfies the circuit, and
//! that the proof is valid.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(feature = "bellman", feature = "bellpepper")),
    allow(dead_code, reason = "without a library its part is not used")
)]

mod assignment;
mod backend;
#[cfg(feature = "bellman")]
pub mod bellman;
#[cfg(feature = "bellpepper")]
pub mod bellpepper;
#[cfg(feature = "bellperson")]
pub mod bellperson;
mod comparison;
mod error;
#[cfg(feature = "filecoin")]
pub mod filecoin;
#[cfg(any(feature = "bellman", feature = "bellpepper"))]
mod functions;
mod histogram;
#[cfg(any(feature = "bellman", feature = "bellperson"))]
mod keys;
#[cfg(feature = "sched")]
mod partitions;
mod recorder;
mod shape;
mod sink;
mod variable;

pub use backend::{Backend, Job, to_bytes};
pub use error::Error;
pub use histogram::Histogram;
#[cfg(feature = "sched")]
pub use partitions::Partitions;
pub use shape::Shape;
