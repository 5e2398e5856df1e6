//! The device code: compiled, compared with its declarations, measured, run under sanitizers.

pub(crate) mod abi;
pub(crate) mod ptx;
pub(crate) mod resources;
pub(crate) mod sanitize;
pub(crate) mod toolkit;

// What cuzk-kernels reads, this writes: the same source files, so that no crate of ours is needed.
#[allow(dead_code, unreachable_pub, reason = "shared with cuzk-kernels")]
#[path = "../../../crates/cuzk-kernels/src/digest.rs"]
mod digest;
#[allow(dead_code, unreachable_pub, reason = "shared with cuzk-kernels")]
#[path = "../../../crates/cuzk-kernels/src/manifest.rs"]
mod manifest;
#[allow(unreachable_pub, reason = "shared with cuzk-kernels")]
#[path = "../../../crates/cuzk-kernels/src/sources.rs"]
mod sources;
