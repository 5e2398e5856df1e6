//! `kernels/src/ntt_vector.cu`: what stands around transforms over Fr.

use cuzk_field::{Fr, Scalar};
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use crate::declare::kernels;
use crate::device_type::{Ptr, PtrMut};
use crate::error::{Error, Result};
use crate::launcher::{Launcher, Shape};
use crate::lengths::exactly;

const THREADS: u32 = 256;

/// Blocks of a launch in which each thread takes several elements.
const MAX_BLOCKS: usize = 1 << 16;

/// Transforms of fewer than 2^10 elements are reversed without tiles.
const LOG_REVERSAL_TILE: u32 = 10;

/// Two tiles.
const REVERSAL_SHARED_BYTES: u32 = (2 * 32) << LOG_REVERSAL_TILE;

/// Elements of a run of [`powers`].
const LOG_RUN: u32 = 4;

kernels! {
    module "ntt_vector";
    /// See [`product`].
    PRODUCT = cuzk_ntt_product[THREADS](a: Ptr<Fr>, b: Ptr<Fr>, c: Ptr<Fr>, has_c: u32, out: PtrMut<Fr>, count: u64);
    /// See [`reverse`].
    REVERSE = cuzk_ntt_reverse[THREADS](data: PtrMut<Fr>, log_n: u32);
    /// See [`reverse`].
    REVERSE_FEW = cuzk_ntt_reverse_few[THREADS](data: PtrMut<Fr>, log_n: u32, count: u64);
    /// See [`finish`].
    FINISH = cuzk_ntt_finish[THREADS](data: PtrMut<Fr>, c: Ptr<Fr>, factor: Fr, log_n: u32);
    /// See [`finish`].
    FINISH_FEW = cuzk_ntt_finish_few[THREADS](data: PtrMut<Fr>, c: Ptr<Fr>, factor: Fr, log_n: u32, count: u64);
    /// See [`powers`].
    POWERS = cuzk_ntt_powers[THREADS](
        data: PtrMut<Fr>,
        squares: Ptr<Fr>,
        first: Fr,
        log_n: u32,
        log_run: u32,
        reversed: u32,
        count: u64,
    );
}

/// Enough blocks for `count` elements, some threads taking several.
fn striding(count: usize) -> Shape {
    let blocks = count.div_ceil(THREADS as usize).min(MAX_BLOCKS);
    Shape::blocks(blocks as u32, THREADS)
}

/// Whether an array of `count` elements is one of transforms of 2^`log_n`.
fn whole_transforms(entry: &'static str, log_n: u32, count: usize) -> Result<()> {
    let unit = 1_usize.checked_shl(log_n).unwrap_or(usize::MAX);
    if log_n <= crate::ntt::MAX_LOG_N && count.is_multiple_of(unit) {
        return Ok(());
    }
    Err(Error::Length {
        entry,
        what: "data",
        expected: count.next_multiple_of(unit.min(1 << crate::ntt::MAX_LOG_N)),
        found: count,
    })
}

/// `out = a b / R`, element by element: the product of elements, or of an element and an integer.
///
/// # Errors
/// [`Error::Length`] unless all are of one length.
pub fn product(
    launcher: &dyn Launcher,
    stream: &Stream,
    a: DeviceView<'_, Fr>,
    b: DeviceView<'_, Fr>,
    out: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let entry = PRODUCT.declaration().entry;
    exactly(entry, "a", out.len(), a.len())?;
    exactly(entry, "b", out.len(), b.len())?;
    let _guards = (a.on(stream)?, b.on(stream)?, out.on(stream)?);
    let from = Ptr::from(&a);
    let count = out.len() as u64;
    let arguments = (from, (&b).into(), from, 0, (&out).into(), count);
    // SAFETY: three arrays of `count` elements; the guards keep them.
    unsafe { PRODUCT.launch(launcher, stream, striding(out.len()), arguments) }
}

/// `a = a b / R - c`, element by element, as [`product`]; without `c`, nothing is taken away.
///
/// # Errors
/// [`Error::Length`] unless all are of one length.
pub fn product_in_place(
    launcher: &dyn Launcher,
    stream: &Stream,
    a: DeviceViewMut<'_, Fr>,
    b: DeviceView<'_, Fr>,
    c: Option<DeviceView<'_, Fr>>,
) -> Result<()> {
    let entry = PRODUCT.declaration().entry;
    exactly(entry, "b", a.len(), b.len())?;
    exactly(entry, "c", a.len(), c.map_or(a.len(), |c| c.len()))?;
    let _guards = (
        a.on(stream)?,
        b.on(stream)?,
        c.map(|c| c.on(stream)).transpose()?,
    );
    let from = Ptr::from(&a.as_view());
    let arguments = (
        from,
        (&b).into(),
        c.as_ref().map_or(from, Ptr::from),
        u32::from(c.is_some()),
        (&a).into(),
        a.len() as u64,
    );
    // SAFETY: arrays of `count` elements, and `out` is `a`, as the entry allows; the guards keep them.
    unsafe { PRODUCT.launch(launcher, stream, striding(a.len()), arguments) }
}

/// The launch over tiles, or over few elements.
fn reversal_shape(log_n: u32, count: usize) -> Shape {
    if log_n < LOG_REVERSAL_TILE {
        return Shape::covering(count, THREADS);
    }
    let blocks = u32::try_from(count >> LOG_REVERSAL_TILE).unwrap_or(u32::MAX);
    Shape::blocks(blocks, THREADS).with_shared(REVERSAL_SHARED_BYTES)
}

/// Exchanges natural and bit-reversed order within each 2^`log_n` elements, in place.
///
/// # Errors
/// [`Error::Length`] unless `data` is of whole transforms.
pub fn reverse(
    launcher: &dyn Launcher,
    stream: &Stream,
    log_n: u32,
    data: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let count = data.len();
    whole_transforms(REVERSE.declaration().entry, log_n, count)?;
    let _guard = data.on(stream)?;
    let shape = reversal_shape(log_n, count);
    // SAFETY: whole transforms of 2^log_n elements, in the grid that the entry asks for; the guard
    // keeps them.
    unsafe {
        if log_n < LOG_REVERSAL_TILE {
            REVERSE_FEW.launch(
                launcher,
                stream,
                shape,
                ((&data).into(), log_n, count as u64),
            )
        } else {
            REVERSE.launch(launcher, stream, shape, ((&data).into(), log_n))
        }
    }
}

/// Turns `data`, in bit-reversed order, into `(data - c) factor` as scalars in natural order. `data` and
/// `c` may be in `[0, 2r)`; `factor` is an integer, not in Montgomery form.
///
/// # Errors
/// [`Error::Length`] unless both are of the same whole transforms of 2^`log_n` elements.
pub fn finish<'a>(
    launcher: &dyn Launcher,
    stream: &Stream,
    log_n: u32,
    data: DeviceViewMut<'a, Fr>,
    c: DeviceView<'_, Fr>,
    factor: Scalar,
) -> Result<DeviceViewMut<'a, Scalar>> {
    let entry = FINISH.declaration().entry;
    let count = data.len();
    whole_transforms(entry, log_n, count)?;
    exactly(entry, "c", count, c.len())?;
    let guards = (data.on(stream)?, c.on(stream)?);
    let shape = reversal_shape(log_n, count);
    // The same limbs: the kernel's product takes away one R.
    let factor = factor.over_r();
    // SAFETY: as for `reverse`, with a second array that does not overlap, being borrowed.
    unsafe {
        if log_n < LOG_REVERSAL_TILE {
            let arguments = ((&data).into(), (&c).into(), factor, log_n, count as u64);
            FINISH_FEW.launch(launcher, stream, shape, arguments)?;
        } else {
            let arguments = ((&data).into(), (&c).into(), factor, log_n);
            FINISH.launch(launcher, stream, shape, arguments)?;
        }
    }
    drop(guards);
    Ok(data.cast())
}

/// Multiplies by `first base^e` the element of exponent e of each transform of 2^`log_n` elements, which
/// lie in natural order, or in bit-reversed order if `reversed`. `squares` has base^(2^b) at b, 33 of
/// them.
///
/// # Errors
/// [`Error::Length`] unless `data` is of whole transforms and there are 33 squares.
pub fn powers(
    launcher: &dyn Launcher,
    stream: &Stream,
    log_n: u32,
    squares: DeviceView<'_, Fr>,
    first: Fr,
    reversed: bool,
    data: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let entry = POWERS.declaration().entry;
    let count = data.len();
    whole_transforms(entry, log_n, count)?;
    exactly(entry, "squares", 33, squares.len())?;
    let log_run = LOG_RUN.min(log_n);
    let _guards = (squares.on(stream)?, data.on(stream)?);
    let shape = Shape::covering(count >> log_run, THREADS);
    let arguments = (
        (&data).into(),
        (&squares).into(),
        first,
        log_n,
        log_run,
        u32::from(reversed),
        count as u64,
    );
    // SAFETY: whole transforms, a thread for each run of 2^log_run <= 2^log_n; the guards keep both.
    unsafe { POWERS.launch(launcher, stream, shape, arguments) }
}
