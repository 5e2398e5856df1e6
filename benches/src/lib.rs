//! Criterion benches of the cuzk crates: `cargo xtask bench NAME`, one file of `benches/` a name.
//!
//! Every bench checks its result once before it is timed, and `cargo xtask test` runs each body
//! once, so none rots. What the benches share is here.
#![forbid(unsafe_code)]

/// Inputs that are the same on every machine and in every run.
pub use cuzk_testkit::Words;
