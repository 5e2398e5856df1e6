//! `kernels/src/pair_*.cu`: sums of buckets of sorted entries by batch-affine pair trees.
//!
//! `kernels/include/cuzk/pair_plan.cuh` has the terms: slabs, levels, homes, pairs, the tail. Each function
//! here launches one kernel; `cuzk_msm::device` puts them in order. Whatever the arrays on the device hold, no
//! kernel leaves them; a wrong order of calls gives wrong sums.
//!
//! | module | the kernels of |
//! |---|---|
//! | `plan` | `pair_plan.cu`: which pairs there are |
//! | `rounds` | `pair_tree_g1.cu`, `pair_tree_g2.cu`: forward, invert, backward |
//! | `tail` | `pair_tail_g1.cu`, `pair_tail_g2.cu`: points that wait, the tail, what slabs share |

#[allow(unreachable_pub, reason = "declarations, which are listed")]
mod plan;
#[allow(unreachable_pub, reason = "declarations, which are listed")]
mod rounds;
#[allow(unreachable_pub, reason = "declarations, which are listed")]
mod tail;

use cuzk_gpu_mem::{DeviceView, DeviceViewMut};

pub use plan::{DECLARATIONS, EXPAND_PAIRS, TILE_BUCKETS, expand, offsets, scan, slabs, sums};
pub use rounds::{Nodes, Operands, Pairs, THREADS, backward, forward, invert, products_of};
pub(crate) use rounds::{RoundKernels, g1 as g1_rounds, g2 as g2_rounds};
pub use tail::{Tail, add_borders, clear_empty, sum_nodes, sum_sums, wait_bases};
pub(crate) use tail::{TailKernels, g1 as g1_tail, g2 as g2_tail};

use crate::error::Result;
use crate::lengths::{at_least, at_most};

/// Points of the tail that one thread adds up.
pub const TAIL_ARITY: usize = 16;

/// Bases, and entries of the sorted list, at most: an index has 30 bits.
pub const MAX_BASES: usize = (1 << 30) - 1;

/// Words of a slab's description.
pub const SLAB_WORDS: usize = 4;

/// What buckets have in one slab.
#[derive(Clone, Copy, Debug)]
pub struct SlabView<'a> {
    /// Where each bucket's entries begin, and the end of the last (buckets + 1).
    pub offsets: DeviceView<'a, u32>,
    /// Descriptions (slabs, 4), by [`slabs`].
    pub slabs: DeviceView<'a, u32>,
    /// Which of them.
    pub slab: u32,
    /// Whether the sums that are there are added to.
    pub existing: bool,
}

impl SlabView<'_> {
    fn buckets(&self, entry: &'static str) -> Result<u32> {
        let slab_count = self.slabs.len() / SLAB_WORDS;
        at_least(entry, "slabs", self.slab as usize + 1, slab_count)?;
        at_least(entry, "offsets", 2, self.offsets.len())?;
        at_most(entry, "offsets", MAX_BASES, self.offsets.len())?;
        Ok(self.offsets.len() as u32 - 1)
    }
}

/// Where sums are.
#[derive(Debug)]
pub struct Homes<'a, F: crate::DeviceCurve> {
    /// One a bucket.
    pub sums: DeviceViewMut<'a, cuzk_field::Affine<F>>,
    /// The place of the bucket that began in an earlier slab (1).
    pub border: DeviceViewMut<'a, cuzk_field::Affine<F>>,
}
