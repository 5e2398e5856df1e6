//! `kernels/src/field_bench.cu`: throughput of the arithmetic. `cargo xtask bench field` times these.

use cuzk_field::{Fp, Fr, G1Affine, G1Xyzz};
use cuzk_gpu_mem::{DeviceBuf, DeviceView, DeviceViewMut, Stream};

use crate::declare::{Arguments, Kernel, kernels};
use crate::device_type::{DeviceType, Ptr, PtrMut};
use crate::error::{Error, Result};
use crate::launcher::{Launcher, Shape};

/// Threads of a block of these kernels.
pub const THREADS: usize = 128;

kernels! {
    module "field_bench";
    /// See [`fp_mul`].
    FP_MUL = cuzk_field_bench_fp_mul[THREADS as u32](x: PtrMut<Fp>, y: Ptr<Fp>, turns: u32);
    /// See [`fp_sqr`].
    FP_SQR = cuzk_field_bench_fp_sqr[THREADS as u32](x: PtrMut<Fp>, turns: u32);
    /// See [`fr_mul`].
    FR_MUL = cuzk_field_bench_fr_mul[THREADS as u32](x: PtrMut<Fr>, y: Ptr<Fr>, turns: u32);
    /// See [`fr_sqr`].
    FR_SQR = cuzk_field_bench_fr_sqr[THREADS as u32](x: PtrMut<Fr>, turns: u32);
    /// See [`g1_gather`].
    G1_GATHER = cuzk_field_bench_g1_gather[THREADS as u32](
        points: Ptr<G1Affine>,
        indices: Ptr<u32>,
        sums: PtrMut<G1Xyzz>,
        buckets: u32,
        per_bucket: u32,
    );
}

/// The shape of a chain over `len` elements, one a thread.
fn chain_shape<A: Arguments>(kernel: &Kernel<A>, len: usize) -> Result<Shape> {
    if !len.is_multiple_of(THREADS) || len > 1 << 31 {
        return Err(Error::Length {
            entry: kernel.declaration().entry,
            what: "x",
            expected: len.next_multiple_of(THREADS).min(1 << 31),
            found: len,
        });
    }
    Ok(Shape::covering(len, THREADS as u32))
}

fn multiply<F: DeviceType + cuzk_gpu_mem::Pod>(
    kernel: &'static Kernel<(PtrMut<F>, Ptr<F>, u32)>,
    launcher: &dyn Launcher,
    stream: &Stream,
    x: DeviceViewMut<'_, F>,
    y: DeviceView<'_, F>,
    turns: u32,
) -> Result<()> {
    let shape = chain_shape(kernel, x.len())?;
    if y.len() != x.len() {
        return Err(Error::Length {
            entry: kernel.declaration().entry,
            what: "y",
            expected: x.len(),
            found: y.len(),
        });
    }
    let _guards = (x.on(stream)?, y.on(stream)?);
    // SAFETY: one element a thread in both arrays; a view to write aliases no other; the guards keep
    // both buffers until the stream has passed the launch.
    unsafe { kernel.launch(launcher, stream, shape, ((&x).into(), (&y).into(), turns)) }
}

fn square<F: DeviceType + cuzk_gpu_mem::Pod>(
    kernel: &'static Kernel<(PtrMut<F>, u32)>,
    launcher: &dyn Launcher,
    stream: &Stream,
    x: DeviceViewMut<'_, F>,
    turns: u32,
) -> Result<()> {
    let shape = chain_shape(kernel, x.len())?;
    let _guard = x.on(stream)?;
    // SAFETY: one element a thread; the guard keeps the buffer until the stream has passed the launch.
    unsafe { kernel.launch(launcher, stream, shape, ((&x).into(), turns)) }
}

/// `x = x y^turns`, a chain of multiplications a thread. The length is a multiple of 128.
pub fn fp_mul(
    launcher: &dyn Launcher,
    stream: &Stream,
    x: DeviceViewMut<'_, Fp>,
    y: DeviceView<'_, Fp>,
    turns: u32,
) -> Result<()> {
    multiply(&FP_MUL, launcher, stream, x, y, turns)
}

/// `x = x^(2^turns)`, a chain of squarings a thread. The length is a multiple of 128.
pub fn fp_sqr(
    launcher: &dyn Launcher,
    stream: &Stream,
    x: DeviceViewMut<'_, Fp>,
    turns: u32,
) -> Result<()> {
    square(&FP_SQR, launcher, stream, x, turns)
}

/// `x = x y^turns`, a chain of lazy multiplications a thread. The length is a multiple of 128.
pub fn fr_mul(
    launcher: &dyn Launcher,
    stream: &Stream,
    x: DeviceViewMut<'_, Fr>,
    y: DeviceView<'_, Fr>,
    turns: u32,
) -> Result<()> {
    multiply(&FR_MUL, launcher, stream, x, y, turns)
}

/// `x = x^(2^turns)`, a chain of squarings a thread. The length is a multiple of 128.
pub fn fr_sqr(
    launcher: &dyn Launcher,
    stream: &Stream,
    x: DeviceViewMut<'_, Fr>,
    turns: u32,
) -> Result<()> {
    square(&FR_SQR, launcher, stream, x, turns)
}

/// Which points to sum, `(per_bucket, buckets)`: on the device, each known to be in bounds.
#[derive(Debug)]
pub struct GatherPlan {
    indices: DeviceBuf<u32>,
    buckets: u32,
    per_bucket: u32,
    /// All indices are below.
    bound: usize,
}

impl GatherPlan {
    /// Uploads a plan.
    ///
    /// # Panics
    /// When `indices` is not a whole number of rows of `buckets`, at least one.
    pub fn new(stream: &Stream, indices: &[u32], buckets: usize) -> Result<Self> {
        assert!(
            buckets > 0 && !indices.is_empty() && indices.len().is_multiple_of(buckets),
            "{} indices for {buckets} buckets",
            indices.len()
        );
        let bound = indices.iter().max().map_or(0, |&max| max as usize + 1);
        let mut buffer = stream
            .device()
            .alloc("gather plan", indices.len(), stream)?;
        stream.upload_slice(indices, &mut buffer)?;
        Ok(Self {
            indices: buffer,
            buckets: u32::try_from(buckets).expect("fewer buckets than 2^32"),
            per_bucket: u32::try_from(indices.len() / buckets).expect("fewer rows than 2^32"),
            bound,
        })
    }
}

/// `sums[b]` = the sum of the points that the plan has in column b, by mixed addition.
pub fn g1_gather(
    launcher: &dyn Launcher,
    stream: &Stream,
    points: DeviceView<'_, G1Affine>,
    plan: &GatherPlan,
    sums: DeviceViewMut<'_, G1Xyzz>,
) -> Result<()> {
    let entry = G1_GATHER.declaration().entry;
    let buckets = plan.buckets as usize;
    for (what, fine, expected, found) in [
        ("sums", sums.len() == buckets, buckets, sums.len()),
        (
            "points",
            points.len() >= plan.bound,
            plan.bound,
            points.len(),
        ),
    ] {
        if !fine {
            return Err(Error::Length {
                entry,
                what,
                expected,
                found,
            });
        }
    }
    let indices = plan.indices.view();
    let _guards = (points.on(stream)?, indices.on(stream)?, sums.on(stream)?);
    let shape = Shape::covering(buckets, THREADS as u32);
    // SAFETY: the plan has per_bucket rows of `buckets` indices, each within `points`; `sums` has one
    // element a bucket; blocks are of 128 threads; the guards keep all buffers.
    unsafe {
        G1_GATHER.launch(
            launcher,
            stream,
            shape,
            (
                (&points).into(),
                (&indices).into(),
                (&sums).into(),
                plan.buckets,
                plan.per_bucket,
            ),
        )
    }
}
