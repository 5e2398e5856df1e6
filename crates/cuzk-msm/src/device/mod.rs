//! Sums on a GPU.
//!
//! | module | what it does |
//! |---|---|
//! | [`accumulate`] | sums of buckets of sorted entries, by batch-affine pair trees |
//! | [`fixed_base`] | many multiples of one point |
//! | [`reduce`] | from the buckets of a window to one point |
//!
//! Plans are data, made from sizes: they say how many bytes of scratch a run wants. Runs are asynchronous on
//! the caller's stream, allocate nothing and wait for nothing; the caller owns all memory.

pub mod accumulate;
mod error;
pub mod fixed_base;
pub mod reduce;

pub use cuzk_kernels::DeviceCurve;
pub use error::{Error, Result};
