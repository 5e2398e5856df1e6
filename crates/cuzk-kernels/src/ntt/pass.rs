//! One safe function for each kind of pass.

use cuzk_field::Fr;
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use super::twiddles::{Points, Twiddles, top_level};
use super::{
    DIF_2, DIF_4, DIF_8, DIT_2, DIT_4, DIT_8, Factor, LOG_TILE, PassArguments, SHARED_BYTES, SMALL,
    THREADS, TILE,
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

/// A pass from natural towards bit-reversed order: coarse to fine. `data` holds transforms side by
/// side. It takes its elements from `source` if there is one; of each transform's elements, those from
/// `length` on are zero and are not read.
///
/// # Errors
/// [`Error::Transform`] for passes that the kernels have not, or tables too small; [`Error::Length`].
pub fn dif(
    launcher: &dyn Launcher,
    stream: &Stream,
    twiddles: &Twiddles,
    pass: Pass,
    source: Option<DeviceView<'_, Fr>>,
    length: u64,
    data: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let kernels = [&DIF_8, &DIF_2, &DIF_4];
    launch(
        launcher, stream, kernels, twiddles, pass, source, length, data,
    )
}

/// A pass from bit-reversed towards natural order: fine to coarse. See [`dif`].
///
/// # Errors
/// As for [`dif`].
pub fn dit(
    launcher: &dyn Launcher,
    stream: &Stream,
    twiddles: &Twiddles,
    pass: Pass,
    source: Option<DeviceView<'_, Fr>>,
    length: u64,
    data: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let kernels = [&DIT_8, &DIT_2, &DIT_4];
    launch(
        launcher, stream, kernels, twiddles, pass, source, length, data,
    )
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
        unused: 0,
        last: pass.last.into(),
        scaled: is_scaled(twiddles, pass.scale).into(),
    })
}

fn is_scaled(twiddles: &Twiddles, scale: Scale) -> bool {
    scale == Scale::OverN || twiddles.request().points == Points::OddCoset
}

/// The eight factors for this size.
fn scale_of(twiddles: &Twiddles, log_n: u32, scale: Scale) -> DeviceView<'_, Factor> {
    let row = 2 * log_n as usize + usize::from(scale == Scale::OverN);
    twiddles.scales.view().slice(8 * row..8 * (row + 1))
}

#[allow(clippy::too_many_arguments, reason = "those of `dif` and the kernels")]
fn launch(
    launcher: &dyn Launcher,
    stream: &Stream,
    kernels: [&'static PassKernel; 3],
    twiddles: &Twiddles,
    pass: Pass,
    source: Option<DeviceView<'_, Fr>>,
    length: u64,
    data: DeviceViewMut<'_, Fr>,
) -> Result<()> {
    let kernel = kernels[pass.log_rows as usize % 3];
    let arguments = arguments(twiddles, pass, length, data.len())?;
    if let Some(source) = source {
        exactly(
            kernel.declaration().entry,
            "source",
            data.len(),
            source.len(),
        )?;
    }
    let scale = scale_of(twiddles, pass.log_n, pass.scale);
    let (tables, levels) = (twiddles.tables.view(), twiddles.levels.view());
    let _guards = (
        tables.on(stream)?,
        levels.on(stream)?,
        scale.on(stream)?,
        source.map(|source| source.on(stream)).transpose()?,
        data.on(stream)?,
    );
    let from = source
        .as_ref()
        .map_or(Ptr::from(&data.as_view()), Ptr::from);
    let blocks = data.len().div_ceil(TILE) as u32;
    let shape = Shape::blocks(blocks, THREADS).with_shared(SHARED_BYTES);
    let arguments = (
        from,
        (&data).into(),
        (&tables).into(),
        (&levels).into(),
        (&scale).into(),
        arguments,
    );
    // SAFETY: `arguments` has checked the geometry against the entry's contract; a block a tile; the
    // tables have all levels up to that of 2^log_n, by their constructor; `source` is as long as
    // `data` and, being borrowed, does not overlap it; the guards keep all buffers.
    unsafe { kernel.launch(launcher, stream, shape, arguments) }
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
    let factors = scale_of(twiddles, log_n, scale);
    let _guards = (factors.on(stream)?, data.on(stream)?);
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
    // SAFETY: `count` transforms of 2^log_n elements, eight factors; the guards keep both buffers.
    unsafe { SMALL.launch(launcher, stream, shape, arguments) }
}
