//! Tables of twiddles in device memory: made by a kernel, immutable, shared by all sizes of a family.

use cuzk_field::{Field as _, Fr, RootGenerator};
use cuzk_gpu_mem::{SharedBuf, Stream};

use super::{Factor, THREADS, TWIDDLES};
use crate::error::{Error, Result};
use crate::launcher::{Launcher, Shape};

/// Where a transform has its values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Points {
    /// The n-th roots of unity w^j.
    Domain,
    /// g w^j with g the primitive 2n-th root of the family, g^2 = w.
    OddCoset,
}

/// Which tables are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TwiddlesRequest {
    /// The family of the roots.
    pub root_generator: RootGenerator,
    /// Whether the roots are w^-1.
    pub inverse: bool,
    /// Where the values are.
    pub points: Points,
    /// The largest transform has 2^`max_log_n` elements; all smaller ones are served as well.
    pub max_log_n: u32,
    /// Bytes that the tables may take. Levels that do not fit are products of two small tables, which
    /// costs a multiplication for each twiddle.
    pub max_bytes: u64,
}

/// The largest transform has 2^30 elements, 32 GiB: the tables of its coarsest round need roots of
/// order 2^31, and beyond the next size there are none in the field.
pub const MAX_LOG_N: u32 = 30;

/// Factors in a chunk: 32 columns of 7 powers.
const CHUNK: usize = 7 * 32;

/// Levels up to this one are always whole: 2.1 MB together.
const ALWAYS_WHOLE: u32 = 4;

/// log8 of the sub-blocks of the coarsest round of a transform of 2^`log_n` elements; 0 where no round
/// needs a table.
pub(super) fn top_level(log_n: u32) -> u32 {
    log_n.div_ceil(3).saturating_sub(1)
}

fn chunks_of(columns: u64) -> u64 {
    columns.div_ceil(32)
}

/// How a level is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    Whole,
    /// c = `low_bits` bits and the rest.
    Factored {
        low_bits: u32,
    },
}

impl Level {
    fn chunks(self, level: u32) -> u64 {
        match self {
            Self::Whole => chunks_of(1 << (3 * level)),
            Self::Factored { low_bits } => {
                chunks_of(1 << low_bits) + chunks_of(1 << (3 * level - low_bits))
            }
        }
    }
}

impl TwiddlesRequest {
    /// The levels from 1 on, as many whole as fit.
    fn levels(&self) -> Vec<Level> {
        // Larger ones are refused when the tables are made.
        let top = top_level(self.max_log_n.min(MAX_LOG_N));
        let with = |whole: u32| -> Vec<Level> {
            (1..=top)
                .map(|level| {
                    if level <= whole {
                        Level::Whole
                    } else {
                        Level::Factored {
                            low_bits: 3 * (level / 2),
                        }
                    }
                })
                .collect()
        };
        let mut whole = top;
        while whole > ALWAYS_WHOLE && table_bytes(&with(whole)) > self.max_bytes {
            whole -= 1;
        }
        with(whole)
    }

    /// Bytes of device memory that the tables will take, within the budget where that is possible.
    pub fn bytes(&self) -> u64 {
        table_bytes(&self.levels())
    }

    /// A primitive 2^`log_order`-th root of the family, or its inverse.
    fn root(&self, log_order: u32) -> Option<Fr> {
        let root = self.root_generator.root_of_unity(log_order)?;
        if self.inverse {
            root.inverse()
        } else {
            Some(root)
        }
    }
}

fn table_bytes(levels: &[Level]) -> u64 {
    let chunks: u64 = (1..)
        .zip(levels)
        .map(|(number, level)| level.chunks(number))
        .sum();
    chunks * (CHUNK * size_of::<Factor>()) as u64
}

/// Twiddles of one family, direction and set of points, for all sizes up to 2^max_log_n.
///
/// Immutable once made; share it in an [`Arc`](std::sync::Arc).
#[derive(Debug)]
pub struct Twiddles {
    request: TwiddlesRequest,
    pub(super) tables: SharedBuf<Factor>,
    /// Four words a level, level 0 included: `cuzk::NttLevel`.
    pub(super) levels: SharedBuf<u32>,
    /// (log_n, [`Scale`](super::Scale), 8): what the finest round multiplies by.
    pub(super) scales: SharedBuf<Factor>,
    pub(super) i: Factor,
    pub(super) half_sum: Factor,
    pub(super) half_difference: Factor,
}

impl Twiddles {
    /// Allocates and makes the tables, on `stream`.
    ///
    /// # Errors
    /// [`Error::Transform`] for sizes above 2^30. Out of memory as `cuzk-gpu-mem` says it.
    pub fn new(launcher: &dyn Launcher, stream: &Stream, request: TwiddlesRequest) -> Result<Self> {
        let max_log_n = request.max_log_n;
        let refused = || Error::Transform {
            reason: format!("2^{max_log_n} elements; there are transforms of up to 2^{MAX_LOG_N}"),
        };
        if max_log_n > MAX_LOG_N {
            return Err(refused());
        }
        let odd = request.points == Points::OddCoset;
        let root = |log_order| request.root(log_order).ok_or_else(refused);
        let roots = (0..=32).map(root).collect::<Result<Vec<Fr>>>()?;
        let device = launcher.device();
        let mut on_device = device.alloc("roots of unity", roots.len(), stream)?;
        stream.upload_slice(&roots, &mut on_device)?;

        let levels = request.levels();
        let chunks = table_bytes(&levels) as usize / (CHUNK * size_of::<Factor>());
        let mut tables = device.alloc::<Factor>("twiddles", chunks * CHUNK, stream)?;
        let mut directory = vec![0_u32; 4];
        let mut next = 0_usize;
        for (number, level) in (1_u32..).zip(&levels) {
            let mut fill = |log_order: u32, odd: bool, count: u64| -> Result<u32> {
                let first = next;
                next += chunks_of(count) as usize;
                let mut out = tables.view_mut();
                let out = out.reborrow().slice(first * CHUNK..next * CHUNK);
                let roots = on_device.view();
                let _guards = (out.on(stream)?, roots.on(stream)?);
                let shape = Shape::covering(count as usize, THREADS);
                let arguments = (
                    (&out).into(),
                    (&roots).into(),
                    log_order,
                    u32::from(odd),
                    count as u32,
                );
                // SAFETY: `out` has a chunk for each 32 of `count` columns; 33 roots; the order of
                // `log_order` is that of a level up to `max_log_n`, and one more on the coset, whose
                // root is there; the guards keep both buffers.
                unsafe { TWIDDLES.launch(launcher, stream, shape, arguments)? };
                Ok(first as u32)
            };
            let log_order = 3 * number + 3;
            match *level {
                Level::Whole => {
                    let first = fill(log_order, odd, 1 << (3 * number))?;
                    directory.extend([first, 0, 32, 0]);
                }
                Level::Factored { low_bits } => {
                    let low = fill(log_order, odd, 1 << low_bits)?;
                    let high = fill(log_order - low_bits, false, 1 << (3 * number - low_bits))?;
                    directory.extend([low, high, low_bits, 0]);
                }
            }
        }
        let mut levels = device.alloc("twiddle levels", directory.len(), stream)?;
        stream.upload_slice(&directory, &mut levels)?;
        let scales = scales(&request).ok_or_else(refused)?;
        let mut scales_buffer = device.alloc("transform scales", scales.len(), stream)?;
        stream.upload_slice(&scales, &mut scales_buffer)?;

        let half = Fr::from(2_u64).inverse().ok_or_else(refused)?;
        let eighth = root(3)?;
        let cube = eighth * eighth * eighth;
        Ok(Self {
            request,
            tables: SharedBuf::new(tables),
            levels: SharedBuf::new(levels),
            scales: SharedBuf::new(scales_buffer),
            i: root(2)?.into(),
            half_sum: ((eighth + cube) * half).into(),
            half_difference: ((eighth - cube) * half).into(),
        })
    }

    /// What was asked for.
    pub fn request(&self) -> &TwiddlesRequest {
        &self.request
    }

    /// Bytes of device memory that it holds.
    pub fn bytes(&self) -> u64 {
        self.tables.bytes() + self.levels.bytes() + self.scales.bytes()
    }
}

/// For each size and [`Scale`](super::Scale), in its order, the powers of the coset's shift that the finest round
/// takes: g^(k n / m) for k below its radix m.
fn scales(request: &TwiddlesRequest) -> Option<Vec<Factor>> {
    let mut scales = Vec::new();
    let over_r = Fr::R.inverse()?;
    for log_n in 0..=request.max_log_n {
        let base = match request.points {
            Points::Domain => Fr::ONE,
            // g^(n/m) is a root of order 2n / (n/m) = 2m.
            Points::OddCoset => request.root(log_n.min(3) + 1)?,
        };
        let over_n = Fr::from(1_u64 << log_n).inverse()?;
        for first in [Fr::ONE, over_n, over_n * over_r] {
            let powers = std::iter::successors(Some(first), |power| Some(*power * base));
            scales.extend(powers.take(8).map(Factor::from));
        }
    }
    Some(scales)
}
