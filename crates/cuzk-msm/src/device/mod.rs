//! Sums on a GPU.
//!
//! | module | what it does |
//! |---|---|
//! | `plan` | [`MsmPlan`]: dense sums, bases on the device or streamed from the host |
//! | `sparse` | [`SparsePlan`]: sums over witnesses that are mostly zeros and ones |
//! | `layout`, `slab`, `tuning` | how a sum is cut, and the memory that takes |
//! | `run`, `pending` | slab after slab; windows added up on the host |
//! | [`accumulate`] | sums of buckets of sorted entries, by batch-affine pair trees |
//! | [`fixed_base`] | many multiples of one point |
//! | [`reduce`] | from the buckets of a window to one point |
//!
//! Plans are data, made from sizes: they say how many bytes of scratch a run wants. Runs are asynchronous on
//! the caller's stream, allocate nothing and wait for nothing; the caller owns all memory.

pub mod accumulate;
mod error;
pub mod fixed_base;
mod layout;
mod pending;
mod plan;
pub mod reduce;
mod run;
mod slab;
mod sparse;
mod tuning;

pub use accumulate::Streams;
pub use cuzk_kernels::DeviceCurve;
pub use cuzk_kernels::bucket_sort::Scalars;
pub use cuzk_kernels::sparse_terms::{BaseSet, Members, PackTarget, bitmap, pack, tiles};
pub use cuzk_kernels::witness::PackedWitness;
pub use error::{Error, Result};
pub use pending::Pending;
pub use plan::MsmPlan;
pub use sparse::{PendingCounts, SparsePlan, TermCounts, count_scratch_bytes, count_terms};
