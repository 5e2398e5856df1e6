//! Sums on a GPU.
//!
//! | module | what it does |
//! |---|---|
//! | `plan` | [`MsmPlan`]: dense sums, bases on the device or streamed from the host |
//! | `sparse` | [`SparsePlan`]: sums over witnesses that are mostly zeros and ones |
//! | `multiples` | [`Multiples`] of resident bases: memory for time |
//! | `term_lists` | what of a witness goes into which sum: counts and lists |
//! | `batches` | how bases that come from the host are cut |
//! | `uploads` | [`HostBases`]: they come while others are computed with, at a [`Pace`], in turns on the bus |
//! | `streamed`, `streamed_sparse` | sums over such bases: of [`MsmPlan`], and [`StreamedSparsePlan`] |
//! | `layout`, `slab`, `tuning` | how a sum is cut, and the memory that takes |
//! | `run`, `pending` | slab after slab; windows added up on the host |
//! | [`accumulate`] | sums of buckets of sorted entries, by batch-affine pair trees |
//! | [`fixed_base`] | many multiples of one point |
//! | [`reduce`] | from the buckets of a window to one point |
//!
//! Plans are data, made from sizes: they say how many bytes of scratch a run wants. Runs are asynchronous on
//! the caller's stream, allocate nothing and wait for nothing, but for those over streamed bases, which are thousands of
//! launches: a [`Pace`] is asked there. The caller owns all memory.

pub mod accumulate;
mod batches;
mod error;
pub mod fixed_base;
mod layout;
mod multiples;
mod pending;
mod plan;
pub mod reduce;
mod run;
mod slab;
mod sparse;
mod streamed;
mod streamed_sparse;
mod term_lists;
mod tuning;
mod uploads;

pub use accumulate::Streams;
pub use batches::Batches;
pub use cuzk_kernels::DeviceCurve;
pub use cuzk_kernels::bucket_sort::Scalars;
pub use cuzk_kernels::sparse_terms::{BaseSet, Members, PackTarget, bitmap, pack, tiles};
pub use cuzk_kernels::witness::PackedWitness;
pub use error::{Error, Result};
pub use multiples::{Gain, Multiples};
pub use pending::Pending;
pub use plan::MsmPlan;
pub use sparse::SparsePlan;
pub use streamed_sparse::StreamedSparsePlan;
pub use term_lists::{
    PendingCounts, TermCounts, count_scratch_bytes, count_terms, count_terms_in,
    count_terms_in_scratch_bytes,
};
pub use uploads::{HostBases, Pace, Patient};
