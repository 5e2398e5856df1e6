//! Multi-scalar multiplication in G1 and G2 of BLS12-381: bases in, scalars in, point out.
//!
//! The method is Pippenger's with signed digits. Buckets are summed by **batch-affine pair trees**:
//! a window's terms are sorted by bucket, neighbours of one bucket are added pairwise, and all the
//! additions of a round share one inversion, so that an addition costs five multiplications and a
//! squaring where XYZZ coordinates take ten. A bucket that holds most of the terms is a tree like any
//! other: no scalar distribution is slow. Scalars 0, 1 and -1 take no window at all.
//!
//! Where the processor has AVX-512 IFMA, additions are done eight at a time, a third of the time each;
//! that is found out at run time, and `CUZK_CPU=portable` in the environment turns it off. The results
//! are the same.
//!
//! ```
//! use cuzk_field::{G1Affine, G1Xyzz, Scalar};
//! let bases = vec![G1Affine::generator(); 3];
//! let scalars = [2u64, 3, 5].map(Scalar::from);
//! let sum = cuzk_msm::msm(bases.as_slice(), &scalars)?;
//! assert_eq!(sum, G1Xyzz::from(bases[0]).mul_scalar(&Scalar::from(10)));
//! # Ok::<(), cuzk_msm::Error>(())
//! ```
//!
//! [`device`] has the plans for a GPU: dense, streamed and sparse sums in memory that the caller owns. [`HostMsmPlan`] and
//! [`HostSparsePlan`] take the same on the CPU. `examples/sums.rs` does both.
#![deny(unsafe_code)]

mod bases;
mod cpu;
pub mod device;
mod digits;
mod fixed_base;
mod host;
#[cfg(target_arch = "x86_64")]
mod ifma;
mod multiples;
mod pair_tree;
mod pippenger;
mod portable;
mod signed_sums;
mod terms;

pub use bases::Bases;
pub use fixed_base::FixedBase;
pub use host::{
    HostBaseSet, HostMembers, HostMsmPlan, HostScalars, HostSparsePlan, HostWitness,
    count_terms_on_host,
};
pub use multiples::multiply_each;
pub use pippenger::{Error, Selection, msm, msm_selected};
pub use signed_sums::signed_sums;
pub use terms::ScalarClass;
