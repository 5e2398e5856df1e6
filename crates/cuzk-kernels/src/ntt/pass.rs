//! One safe function for each kind of pass.

use cuzk_field::Fr;
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use super::twiddles::{Points, Twiddles, top_level};
use super::{
    DIF_2, DIF_4, DIF_8, DIF_PRODUCT_2, DIF_PRODUCT_4, DIF_PRODUCT_8, DIT_2, DIT_4, DIT_8,
    DIT_PRODUCT_2, DIT_PRODUCT_4, DIT_PRODUCT_8, Factor, LOG_TILE, MIDDLE, PassArguments,
    SHARED_BYTES, SMALL, THREADS, TILE,
};
use crate::declare::Kernel;
use crate::device_type::{Ptr, PtrMut};
use crate::error::{Error, Result};
use crate::launcher::{Launcher, Shape};
use crate::lengths::exactly;

/// What the finest round of a transform multiplies coefficients by, beside the coset's shift.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Nothing.
    One,
    /// 1/n.
    OverN,
    /// 1/(n R), R = 2^256: what comes of elements in Montgomery form are then integers as they stand.
    OverNR,
}

/// Some of the stages of transforms of 2^`log_n` elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pass {
    /// log2 of a transform's size.
    pub log_n: u32,
    /// log2 of the blocks that this pass and all finer ones work on.
    pub log_block: u32,
    /// Stages of this pass.
    pub log_rows: u32,
    /// What the finest round multiplies by; of no effect in other passes.
    pub scale: Scale,
    /// Whether this is the transform's last pass: its results are canonical.
    pub last: bool,
}

type PassKernel = Kernel<(
    Ptr<Fr>,
    PtrMut<Fr>,
    Ptr<Factor>,
    Ptr<u32>,
    Ptr<Factor>,
    PassArguments,
)>;

type ProductKernel = Kernel<(
    Ptr<Fr>,
    Ptr<Fr>,
    PtrMut<Fr>,
    Ptr<Factor>,
    Ptr<u32>,
    Ptr<Factor>,
    PassArguments,
)>;

/// A pass from natural towards bit-reversed order: coarse to fine, in place. `data` holds transforms side by
/// side; of each one's elements, those from `length` on are zero and are not read.
///
/// # Errors
/// [`Error::Transform`] for passes that the kernels have not, or tables too small; [`Error::Length`].
pub fn dif(
    launcher: &dyn Launcher,
    stream: &Stream,
    twiddles: &Twiddles,
    pass: Pass,
    length: u64,
    data: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let kernels = [&DIF_8, &DIF_2, &DIF_4];
    in_place(launcher, stream, kernels, twiddles, pass, length, data)
}

/// A pass from bit-reversed towards natural order: fine to coarse, in place. See [`dif`].
///
/// # Errors
/// As for [`dif`].
pub fn dit(
    launcher: &dyn Launcher,
    stream: &Stream,
    twiddles: &Twiddles,
    pass: Pass,
    length: u64,
    data: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let kernels = [&DIT_8, &DIT_2, &DIT_4];
    in_place(launcher, stream, kernels, twiddles, pass, length, data)
}

fn in_place(
    launcher: &dyn Launcher,
    stream: &Stream,
    kernels: [&'static PassKernel; 3],
    twiddles: &Twiddles,
    pass: Pass,
    length: u64,
    data: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let kernel = kernels[pass.log_rows as usize % 3];
    let arguments = arguments(twiddles, pass, length, data.len())?;
    let tables = Tables::of(twiddles, stream, pass)?;
    let _guard = data.on(stream)?;
    let arguments = (
        Ptr::from(&data.as_view()),
        (&data).into(),
        (&tables.tables).into(),
        (&tables.levels).into(),
        (&tables.scale).into(),
        arguments,
    );
    // SAFETY: `arguments` has checked the geometry against the entry's contract; a block a tile; the
    // tables have all levels up to that of 2^log_n, by their constructor, and stay, being shared with this
    // stream; the source is `data`, which the guard keeps.
    unsafe { kernel.launch(launcher, stream, shape(data.len()), arguments) }
}

/// The first pass of [`dif`], of the products of `a` and `b`, which have canonical elements, as many as `data`.
///
/// # Errors
/// As for [`dif`].
#[allow(
    clippy::too_many_arguments,
    reason = "those of `dif`, and two arrays for one"
)]
pub fn dif_product(
    launcher: &dyn Launcher,
    stream: &Stream,
    twiddles: &Twiddles,
    pass: Pass,
    length: u64,
    a: DeviceView<'_, Fr>,
    b: DeviceView<'_, Fr>,
    data: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let kernels = [&DIF_PRODUCT_8, &DIF_PRODUCT_2, &DIF_PRODUCT_4];
    let arguments = arguments(twiddles, pass, length, data.len())?;
    product(
        launcher, stream, kernels, twiddles, pass, arguments, a, b, data,
    )
}

/// The last pass of [`dit`], of what `source` holds: `data` is multiplied by what it would give, and `minus`
/// taken from that. All have as many elements; those of `data` and `minus` are canonical.
///
/// # Errors
/// As for [`dif`].
#[allow(
    clippy::too_many_arguments,
    reason = "those of `dit`, and three arrays for one"
)]
pub fn dit_product(
    launcher: &dyn Launcher,
    stream: &Stream,
    twiddles: &Twiddles,
    pass: Pass,
    source: DeviceView<'_, Fr>,
    minus: Option<DeviceView<'_, Fr>>,
    data: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let kernels = [&DIT_PRODUCT_8, &DIT_PRODUCT_2, &DIT_PRODUCT_4];
    let arguments = PassArguments {
        minus: minus.is_some().into(),
        ..arguments(
            twiddles,
            pass,
            1_u64.checked_shl(pass.log_n).unwrap_or(u64::MAX),
            data.len(),
        )?
    };
    let other = minus.unwrap_or(source);
    product(
        launcher, stream, kernels, twiddles, pass, arguments, source, other, data,
    )
}

#[allow(
    clippy::too_many_arguments,
    reason = "those of the two kinds of product, and the kernels"
)]
fn product(
    launcher: &dyn Launcher,
    stream: &Stream,
    kernels: [&'static ProductKernel; 3],
    twiddles: &Twiddles,
    pass: Pass,
    arguments: PassArguments,
    source: DeviceView<'_, Fr>,
    other: DeviceView<'_, Fr>,
    data: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let kernel = kernels[pass.log_rows as usize % 3];
    let entry = kernel.declaration().entry;
    exactly(entry, "source", data.len(), source.len())?;
    exactly(entry, "other", data.len(), other.len())?;
    let tables = Tables::of(twiddles, stream, pass)?;
    let _guards = (source.on(stream)?, other.on(stream)?, data.on(stream)?);
    let arguments = (
        (&source).into(),
        (&other).into(),
        (&data).into(),
        (&tables.tables).into(),
        (&tables.levels).into(),
        (&tables.scale).into(),
        arguments,
    );
    // SAFETY: as for a pass in place; `source` and `other` are as long as `data` and, being borrowed, do not
    // overlap it; the guards keep them.
    unsafe { kernel.launch(launcher, stream, shape(data.len()), arguments) }
}

/// The finest passes of an inverse transform and of the forward one that follows it, as one: coefficients are
/// multiplied as `up` and the pass's scale say, `down` multiplies by nothing. In place.
///
/// # Errors
/// As for [`dif`]; [`Error::Transform`] also unless the pass is the finest, of a multiple of 3 stages, from an
/// inverse transform on the domain to a forward one of the same family.
pub fn middle(
    launcher: &dyn Launcher,
    stream: &Stream,
    down: &Twiddles,
    up: &Twiddles,
    pass: Pass,
    data: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let (from, to) = (down.request(), up.request());
    let fit = from.inverse
        && !to.inverse
        && from.points == Points::Domain
        && from.root_generator == to.root_generator
        && from.max_log_n >= pass.log_n;
    if !fit || pass.log_block != pass.log_rows || !pass.log_rows.is_multiple_of(3) {
        return no_pass(format!(
            "no pass goes from {from:?} to {to:?} in {} of {} stages",
            pass.log_rows, pass.log_block
        ));
    }
    let arguments = arguments(up, pass, 1 << pass.log_n, data.len())?;
    let (down, up) = (
        Tables::of(down, stream, pass)?,
        Tables::of(up, stream, pass)?,
    );
    let _guard = data.on(stream)?;
    let arguments = (
        (&data).into(),
        (&down.tables).into(),
        (&down.levels).into(),
        (&up.tables).into(),
        (&up.levels).into(),
        (&up.scale).into(),
        arguments,
    );
    // SAFETY: as for a pass in place, with tables of both directions.
    unsafe { MIDDLE.launch(launcher, stream, shape(data.len()), arguments) }
}

/// Where a pass finds its factors.
struct Tables<'a> {
    tables: DeviceView<'a, Factor>,
    levels: DeviceView<'a, u32>,
    scale: DeviceView<'a, Factor>,
}

impl<'a> Tables<'a> {
    fn of(twiddles: &'a Twiddles, stream: &Stream, pass: Pass) -> Result<Self> {
        Ok(Self {
            tables: twiddles.tables.view(stream)?,
            levels: twiddles.levels.view(stream)?,
            scale: scale_of(twiddles, stream, pass.log_n, pass.scale)?,
        })
    }
}

/// A block a tile.
fn shape(elements: usize) -> Shape {
    Shape::blocks(elements.div_ceil(TILE) as u32, THREADS).with_shared(SHARED_BYTES)
}

fn no_pass<T>(reason: String) -> Result<T> {
    Err(Error::Transform { reason })
}

fn arguments(twiddles: &Twiddles, pass: Pass, length: u64, total: usize) -> Result<PassArguments> {
    let Pass {
        log_n,
        log_block,
        log_rows,
        ..
    } = pass;
    if log_n > twiddles.request().max_log_n {
        return no_pass(format!(
            "tables for up to 2^{} elements do not serve 2^{log_n}",
            twiddles.request().max_log_n
        ));
    }
    let adjacent = log_block == log_rows;
    let log_columns = LOG_TILE.saturating_sub(log_rows);
    let possible = (3..=LOG_TILE).contains(&log_rows)
        && log_block <= log_n
        && log_block % 3 == log_rows % 3
        && (adjacent || log_block >= log_rows + log_columns)
        && top_level(log_block) <= top_level(log_n);
    if !possible {
        return no_pass(format!(
            "no pass has {log_rows} stages of blocks of 2^{log_block} in 2^{log_n}"
        ));
    }
    // 2^32 elements and a batch of them: indices are of 64 bits, blocks of 31.
    if !total.is_multiple_of(1 << log_n) || total.div_ceil(TILE) > i32::MAX as usize {
        return no_pass(format!(
            "an array of {total} elements is not of transforms of 2^{log_n}"
        ));
    }
    if length > 1 << log_n {
        return no_pass(format!("{length} values do not fit into 2^{log_n}"));
    }
    Ok(PassArguments {
        i: twiddles.i,
        half_sum: twiddles.half_sum,
        half_difference: twiddles.half_difference,
        length,
        total: total as u64,
        log_n,
        log_block,
        log_columns: if adjacent { 0 } else { log_columns },
        log_stride: log_block - log_rows,
        log_rows,
        minus: 0,
        last: pass.last.into(),
        scaled: is_scaled(twiddles, pass.scale).into(),
    })
}

fn is_scaled(twiddles: &Twiddles, scale: Scale) -> bool {
    scale != Scale::One || twiddles.request().points == Points::OddCoset
}

/// The eight factors for this size.
fn scale_of<'a>(
    twiddles: &'a Twiddles,
    stream: &Stream,
    log_n: u32,
    scale: Scale,
) -> Result<DeviceView<'a, Factor>> {
    let row = 3 * log_n as usize + scale as usize;
    let scales = twiddles.scales.view(stream)?;
    Ok(scales.slice(8 * row..8 * (row + 1)))
}

/// Whole transforms of 1, 2 or 4 elements, between natural and bit-reversed order: from the latter if
/// `reversed_in`, else to it.
///
/// # Errors
/// As for [`dif`].
#[allow(clippy::too_many_arguments, reason = "those of `dif` and the kernel's")]
pub fn small(
    launcher: &dyn Launcher,
    stream: &Stream,
    twiddles: &Twiddles,
    log_n: u32,
    scale: Scale,
    reversed_in: bool,
    length: u64,
    data: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    if log_n > 2 || log_n > twiddles.request().max_log_n || !data.len().is_multiple_of(1 << log_n) {
        return no_pass(format!(
            "an array of {} elements is not of small transforms of 2^{log_n}",
            data.len()
        ));
    }
    let count = data.len() >> log_n;
    let factors = scale_of(twiddles, stream, log_n, scale)?;
    let _guard = data.on(stream)?;
    // Any number of blocks does: each thread takes several.
    let shape = Shape::covering(count.min(1 << 22), THREADS);
    let arguments = (
        (&data).into(),
        (&factors).into(),
        twiddles.i,
        count as u64,
        log_n,
        length.min(1 << log_n) as u32,
        u32::from(reversed_in),
        u32::from(is_scaled(twiddles, scale)),
    );
    // SAFETY: `count` transforms of 2^log_n elements, kept by the guard; eight factors, shared with this stream.
    unsafe { SMALL.launch(launcher, stream, shape, arguments) }
}
