//! The two groups as kernels see them.

use cuzk_field::{Fp, Fp2, PlainCurve};

use crate::{bucket_reduce, multiples, pair_tree, point_check};

/// A coordinate field whose group the kernels compute in: [`Fp`] for G1, [`Fp2`] for G2.
pub trait DeviceCurve: PlainCurve + sealed::Sealed {
    /// `G1` or `G2`, as C++ types begin.
    const GROUP: &'static str;

    /// Elements of Fp in a coordinate; as many lanes share a pair of points.
    const LANES: usize;

    /// Kernels of the group.
    #[doc(hidden)]
    fn kernels() -> &'static Kernels<Self>;
}

/// Kernels of one group.
#[derive(Debug)]
pub struct Kernels<F: DeviceCurve> {
    pub(crate) rounds: pair_tree::RoundKernels<F>,
    pub(crate) tail: pair_tree::TailKernels<F>,
    pub(crate) reduce: bucket_reduce::ReduceKernels<F>,
    pub(crate) on_curve: &'static point_check::Check<F>,
    pub(crate) multiples: &'static multiples::MultiplesKernel<F>,
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for cuzk_field::Fp {}
    impl Sealed for cuzk_field::Fp2 {}
}

impl DeviceCurve for Fp {
    const GROUP: &'static str = "G1";
    const LANES: usize = 1;

    fn kernels() -> &'static Kernels<Self> {
        static KERNELS: Kernels<Fp> = Kernels {
            rounds: pair_tree::g1_rounds::KERNELS,
            tail: pair_tree::g1_tail::KERNELS,
            reduce: bucket_reduce::g1::KERNELS,
            on_curve: &point_check::G1_ON_CURVE,
            multiples: &multiples::G1,
        };
        &KERNELS
    }
}

impl DeviceCurve for Fp2 {
    const GROUP: &'static str = "G2";
    const LANES: usize = 2;

    fn kernels() -> &'static Kernels<Self> {
        static KERNELS: Kernels<Fp2> = Kernels {
            rounds: pair_tree::g2_rounds::KERNELS,
            tail: pair_tree::g2_tail::KERNELS,
            reduce: bucket_reduce::g2::KERNELS,
            on_curve: &point_check::G2_ON_CURVE,
            multiples: &multiples::G2,
        };
        &KERNELS
    }
}
