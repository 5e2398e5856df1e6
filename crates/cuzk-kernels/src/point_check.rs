//! `kernels/src/point_check.cu`: whether points are on their curve, and of order r.
//!
//! `first_wrong` is one word; it becomes the least index of a point that is not right, if that is less than what it
//! holds. Fill it with ones before the first check. Infinity is right.

use cuzk_field::{Affine, G1Affine, G2Affine};
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use crate::curve::DeviceCurve;
use crate::declare::{Kernel, kernels};
use crate::device_type::{Ptr, PtrMut};
use crate::error::Result;
use crate::launcher::{Launcher, Shape};
use crate::lengths::{at_most, exactly};

const THREADS: u32 = 128;

/// Blocks that fill a multiprocessor; a thread goes through points a grid apart.
const BLOCKS_PER_MULTIPROCESSOR: usize = 16;

/// Points of a launch at most.
const MAX_COUNT: usize = (1 << 31) - 1;

kernels! {
    module "point_check";
    /// See [`on_curve`].
    G1_ON_CURVE = cuzk_point_check_g1_on_curve[THREADS](
        points: Ptr<G1Affine>,
        count: u32,
        first_wrong: PtrMut<u32>,
    );
    /// See [`on_curve`].
    G2_ON_CURVE = cuzk_point_check_g2_on_curve[THREADS](
        points: Ptr<G2Affine>,
        count: u32,
        first_wrong: PtrMut<u32>,
    );
    /// See [`in_subgroup`].
    G1_IN_SUBGROUP = cuzk_point_check_g1_in_subgroup[THREADS](
        points: Ptr<G1Affine>,
        count: u32,
        first_wrong: PtrMut<u32>,
    );
}

pub(crate) type Check<F> = Kernel<(Ptr<Affine<F>>, u32, PtrMut<u32>)>;

/// Coordinates below p and points on the curve, whatever the bytes.
pub fn on_curve<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    points: DeviceView<'_, Affine<F>>,
    first_wrong: DeviceViewMut<'_, u32>,
) -> Result<()> {
    check(F::kernels().on_curve, launcher, stream, points, first_wrong)
}

/// Points of the curve of G1 in the subgroup of order r.
pub fn in_subgroup(
    launcher: &dyn Launcher,
    stream: &Stream,
    points: DeviceView<'_, G1Affine>,
    first_wrong: DeviceViewMut<'_, u32>,
) -> Result<()> {
    check(&G1_IN_SUBGROUP, launcher, stream, points, first_wrong)
}

fn check<F: DeviceCurve>(
    kernel: &'static Check<F>,
    launcher: &dyn Launcher,
    stream: &Stream,
    points: DeviceView<'_, Affine<F>>,
    first_wrong: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let entry = kernel.declaration().entry;
    let count = points.len();
    at_most(entry, "points", MAX_COUNT, count)?;
    exactly(entry, "first_wrong", 1, first_wrong.len())?;
    let multiprocessors = launcher.device().info().multiprocessors.max(1) as usize;
    let filled = BLOCKS_PER_MULTIPROCESSOR * multiprocessors;
    let blocks = filled.min(count.div_ceil(THREADS as usize));
    let _guards = (points.on(stream)?, first_wrong.on(stream)?);
    // SAFETY: `points` has `count` elements and `first_wrong` one; the grid's stride and `count` add up to less than
    // 2^32; the guards keep both.
    unsafe {
        kernel.launch(
            launcher,
            stream,
            Shape::blocks(blocks as u32, THREADS),
            ((&points).into(), count as u32, (&first_wrong).into()),
        )
    }
}
