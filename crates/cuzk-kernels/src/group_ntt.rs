//! `kernels/src/group_ntt.cu`: transforms over points of G1, and multiples of many points.
//!
//! Points are of order r or infinite, coordinates canonical: `point_check` asks for that. Scalars are below r.

use std::ops::Range;

use cuzk_field::{Fp, G1Affine, Scalar};
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use crate::declare::kernels;
use crate::device_type::{Ptr, PtrMut};
use crate::error::Result;
use crate::launcher::{Launcher, Shape};
use crate::lengths::{at_least, at_most, exactly};

const THREADS: u32 = 128;

/// Blocks on one multiprocessor: 128 registers a thread.
const BLOCKS_PER_MULTIPROCESSOR: usize = 4;

/// Elements of Fp a thread that its multiples take: 1,200 bytes.
const TABLE: usize = 25;

/// Threads that go in step: those of a warp.
const IN_STEP: usize = 32;

/// Points or pairs of a launch at most.
const MAX_COUNT: usize = 1 << 31;

kernels! {
    module "group_ntt";
    /// See [`butterflies`].
    BUTTERFLIES = cuzk_group_ntt_butterflies[THREADS](
        points: PtrMut<G1Affine>,
        factors: Ptr<Scalar>,
        log_half: u32,
        first: u32,
        count: u32,
        sliding: u32,
        table: PtrMut<Fp>,
    );
    /// See [`multiply`].
    MULTIPLY = cuzk_group_ntt_multiply[THREADS](
        points: Ptr<G1Affine>,
        point_count: u32,
        indices: Ptr<u32>,
        scalars: Ptr<Scalar>,
        scalar_count: u32,
        ids: Ptr<u32>,
        out: PtrMut<G1Affine>,
        count: u32,
        table: PtrMut<Fp>,
    );
    /// See [`scale`].
    SCALE = cuzk_group_ntt_scale[THREADS](
        points: PtrMut<G1Affine>,
        scalars: Ptr<Scalar>,
        count: u32,
        table: PtrMut<Fp>,
    );
}

/// Elements of scratch for launches over up to `count` points or pairs.
pub fn scratch_len(launcher: &dyn Launcher, count: usize) -> usize {
    TABLE * THREADS as usize * blocks(launcher, count)
}

fn blocks(launcher: &dyn Launcher, count: usize) -> usize {
    let multiprocessors = launcher.device().info().multiprocessors.max(1) as usize;
    let filled = BLOCKS_PER_MULTIPROCESSOR * multiprocessors;
    filled.min(count.div_ceil(THREADS as usize))
}

/// The grid of a launch, and that there is scratch for it.
fn shape(
    launcher: &dyn Launcher,
    entry: &'static str,
    count: usize,
    scratch: &DeviceViewMut<'_, Fp>,
) -> Result<Shape> {
    at_most(entry, "points or pairs", MAX_COUNT - 1, count)?;
    let least = scratch_len(launcher, count);
    at_least(entry, "scratch", least, scratch.len())?;
    Ok(Shape::blocks(blocks(launcher, count) as u32, THREADS))
}

/// Some pairs of a stage of a radix-2 transform: pair i is number i mod half of block i / half, and
/// `(a, b)` becomes `(a + c b, a - c b)` with c = `factors[block]`; the first block's is 1 and not read.
/// Blocks have 2 half points, half a power of two.
pub fn butterflies(
    launcher: &dyn Launcher,
    stream: &Stream,
    points: DeviceViewMut<'_, G1Affine>,
    factors: DeviceView<'_, Scalar>,
    half: usize,
    pairs: Range<usize>,
    scratch: DeviceViewMut<'_, Fp>,
) -> Result<()> {
    let entry = BUTTERFLIES.declaration().entry;
    exactly(entry, "half", half.max(1).next_power_of_two(), half)?;
    let count = pairs.len();
    let blocks = pairs.end.div_ceil(half);
    at_most(entry, "pairs", MAX_COUNT - 1, pairs.end)?;
    at_least(entry, "points", 2 * half * blocks, points.len())?;
    at_least(entry, "factors", blocks, factors.len())?;
    let shape = shape(launcher, entry, count, &scratch)?;
    let _guards = (points.on(stream)?, factors.on(stream)?, scratch.on(stream)?);
    // SAFETY: the arrays have the points and factors of all blocks with a pair, whose numbers are below 2^31; `scratch`
    // has 25 elements a thread of the grid; views to write alias no other; the guards keep all.
    unsafe {
        BUTTERFLIES.launch(
            launcher,
            stream,
            shape,
            (
                (&points).into(),
                (&factors).into(),
                half.trailing_zeros(),
                pairs.start as u32,
                count as u32,
                u32::from(half >= IN_STEP),
                (&scratch).into(),
            ),
        )
    }
}

/// `out[i] = scalars[ids[i]] points[indices[i]]`; numbers beyond the arrays count as the last.
#[allow(clippy::too_many_arguments, reason = "five arrays")]
pub fn multiply(
    launcher: &dyn Launcher,
    stream: &Stream,
    points: DeviceView<'_, G1Affine>,
    indices: DeviceView<'_, u32>,
    scalars: DeviceView<'_, Scalar>,
    ids: DeviceView<'_, u32>,
    out: DeviceViewMut<'_, G1Affine>,
    scratch: DeviceViewMut<'_, Fp>,
) -> Result<()> {
    let entry = MULTIPLY.declaration().entry;
    let count = out.len();
    exactly(entry, "indices", count, indices.len())?;
    exactly(entry, "ids", count, ids.len())?;
    for (what, len) in [("points", points.len()), ("scalars", scalars.len())] {
        at_least(entry, what, usize::from(count > 0), len)?;
        at_most(entry, what, u32::MAX as usize, len)?;
    }
    let shape = shape(launcher, entry, count, &scratch)?;
    let _guards = (
        (points.on(stream)?, indices.on(stream)?),
        (scalars.on(stream)?, ids.on(stream)?),
        (out.on(stream)?, scratch.on(stream)?),
    );
    // SAFETY: indices, ids and out have `count` elements; points and scalars are read below their lengths; `scratch` has
    // 25 elements a thread of the grid; views to write alias no other; the guards keep all.
    unsafe {
        MULTIPLY.launch(
            launcher,
            stream,
            shape,
            (
                (&points).into(),
                points.len() as u32,
                (&indices).into(),
                (&scalars).into(),
                scalars.len() as u32,
                (&ids).into(),
                (&out).into(),
                count as u32,
                (&scratch).into(),
            ),
        )
    }
}

/// `points[i] = scalars[i] points[i]`.
pub fn scale(
    launcher: &dyn Launcher,
    stream: &Stream,
    points: DeviceViewMut<'_, G1Affine>,
    scalars: DeviceView<'_, Scalar>,
    scratch: DeviceViewMut<'_, Fp>,
) -> Result<()> {
    let entry = SCALE.declaration().entry;
    let count = points.len();
    exactly(entry, "scalars", count, scalars.len())?;
    let shape = shape(launcher, entry, count, &scratch)?;
    let _guards = (points.on(stream)?, scalars.on(stream)?, scratch.on(stream)?);
    // SAFETY: both arrays have `count` elements; `scratch` has 25 elements a thread of the grid; views to write alias no
    // other; the guards keep all.
    unsafe {
        SCALE.launch(
            launcher,
            stream,
            shape,
            (
                (&points).into(),
                (&scalars).into(),
                count as u32,
                (&scratch).into(),
            ),
        )
    }
}
