//! `kernels/src/block_check.cu`: what kernels take for granted of a block.

use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use crate::declare::kernels;
use crate::error::{Error, Result};
use crate::launcher::{Launcher, Shape};
use crate::lengths::exactly;
use crate::{Ptr, PtrMut};

/// Threads of a block of these kernels, and the values that each block takes.
pub const THREADS: usize = 256;

kernels! {
    module "block_check";
    /// See [`sum`].
    SUM = cuzk_block_sum[THREADS as u32](values: Ptr<u32>, sums: PtrMut<u32>);
    /// See [`scan`].
    SCAN = cuzk_block_scan[THREADS as u32](values: Ptr<u64>, prefix: PtrMut<u64>);
    /// See [`votes`].
    VOTES = cuzk_block_votes[THREADS as u32](values: Ptr<u32>, votes: PtrMut<u32>);
    /// See [`histogram`].
    HISTOGRAM = cuzk_block_histogram[THREADS as u32](values: Ptr<u32>, counts: PtrMut<u32>);
}

/// The blocks that `len` values make.
fn shape_of(entry: &'static str, len: usize) -> Result<Shape> {
    if !len.is_multiple_of(THREADS) {
        return Err(Error::Length {
            entry,
            what: "values",
            expected: len.next_multiple_of(THREADS),
            found: len,
        });
    }
    Ok(Shape::covering(len, THREADS as u32))
}

/// The sum of each 256 values, modulo 2^32.
pub fn sum(
    launcher: &dyn Launcher,
    stream: &Stream,
    values: DeviceView<'_, u32>,
    sums: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let entry = SUM.declaration().entry;
    let shape = shape_of(entry, values.len())?;
    exactly(entry, "sums", values.len() / THREADS, sums.len())?;
    let _guards = (values.on(stream)?, sums.on(stream)?);
    // SAFETY: 256 values a block and one sum; a view to write aliases no other; the guards keep both
    // buffers until the stream has passed the launch.
    unsafe { SUM.launch(launcher, stream, shape, ((&values).into(), (&sums).into())) }
}

/// The inclusive prefix sums within each 256 values, modulo 2^64.
pub fn scan(
    launcher: &dyn Launcher,
    stream: &Stream,
    values: DeviceView<'_, u64>,
    prefix: DeviceViewMut<'_, u64>,
) -> Result<()> {
    let entry = SCAN.declaration().entry;
    let shape = shape_of(entry, values.len())?;
    exactly(entry, "prefix", values.len(), prefix.len())?;
    let _guards = (values.on(stream)?, prefix.on(stream)?);
    // SAFETY: 256 values a block in both arrays; the guards keep both buffers.
    unsafe {
        SCAN.launch(
            launcher,
            stream,
            shape,
            ((&values).into(), (&prefix).into()),
        )
    }
}

/// Four words for each 32 values: which are odd, how many of the block are, the exclusive or of all,
/// and the fifth.
pub fn votes(
    launcher: &dyn Launcher,
    stream: &Stream,
    values: DeviceView<'_, u32>,
    votes: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let entry = VOTES.declaration().entry;
    let shape = shape_of(entry, values.len())?;
    exactly(entry, "votes", values.len() / 32 * 4, votes.len())?;
    let _guards = (values.on(stream)?, votes.on(stream)?);
    // SAFETY: 256 values and eight times four votes a block; a view to write aliases no other; the
    // guards keep both buffers.
    unsafe { VOTES.launch(launcher, stream, shape, ((&values).into(), (&votes).into())) }
}

/// Adds to `counts[v % 16]` the number of values v.
pub fn histogram(
    launcher: &dyn Launcher,
    stream: &Stream,
    values: DeviceView<'_, u32>,
    counts: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let entry = HISTOGRAM.declaration().entry;
    let shape = shape_of(entry, values.len())?.with_shared(64);
    exactly(entry, "counts", 16, counts.len())?;
    let _guards = (values.on(stream)?, counts.on(stream)?);
    // SAFETY: 256 values a block, 16 counts, 64 bytes of shared memory; a view to write aliases no
    // other; the guards keep both buffers.
    unsafe {
        HISTOGRAM.launch(
            launcher,
            stream,
            shape,
            ((&values).into(), (&counts).into()),
        )
    }
}
