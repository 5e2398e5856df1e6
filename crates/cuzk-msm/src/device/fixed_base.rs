//! Many multiples of one point, as key generation and tests of large sums need them.
//!
//! A table holds d 2^b P for every window of the scalars and every magnitude d of a digit; a multiple is the sum of
//! one entry a window. These sums are buckets like others (`accumulate`), all of one length.

use cuzk_field::{Affine, Scalar};
use cuzk_gpu_mem::{Carve, DeviceInfo, DeviceView, DeviceViewMut, Stream};
use cuzk_kernels::windows::Windows;
use cuzk_kernels::{DeviceCurve, Launcher, fixed_base};

use super::accumulate::{AccumulatePlan, Existing};
use super::error::{Error, Result};
use crate::FixedBase;

/// Table entries added up in one run at most: beyond, a round gains nothing by more pairs.
const CHUNK_TERMS: usize = 1 << 25;
/// Windows of a table that the host makes.
const SMALL_WINDOWS: u32 = 32;
/// Windows of a large table: 16 of 16 bits are 508,000 points.
const LARGE_WINDOWS: u32 = 16;

/// How many multiples of one point are made.
#[derive(Clone, Debug)]
pub struct FixedBasePlan<F> {
    device: DeviceInfo,
    windows: Windows,
    /// Scalars of one run.
    chunk: usize,
    /// Of the accumulation.
    scratch: usize,
    accumulate: AccumulatePlan<F>,
}

impl<F: DeviceCurve> FixedBasePlan<F> {
    /// A plan for up to `scalars` of them in a call, with a table that [`Self::host_table`] makes.
    pub fn small(device: &DeviceInfo, scalars: usize, scratch_limit: usize) -> Result<Self> {
        Self::with_windows(device, Windows::new(SMALL_WINDOWS), scalars, scratch_limit)
    }

    /// A plan for millions of scalars. Its table is best made by a small plan from
    /// [`Self::table_scalars`].
    pub fn large(device: &DeviceInfo, scalars: usize, scratch_limit: usize) -> Result<Self> {
        Self::with_windows(device, Windows::new(LARGE_WINDOWS), scalars, scratch_limit)
    }

    fn with_windows(
        device: &DeviceInfo,
        windows: Windows,
        scalars: usize,
        scratch_limit: usize,
    ) -> Result<Self> {
        let window_count = windows.count() as usize;
        let mut chunk = scalars.clamp(1, CHUNK_TERMS / window_count);
        loop {
            let own = own_bytes(chunk, window_count);
            let left = scratch_limit.saturating_sub(own);
            let accumulate = accumulate_plan(device, &windows, chunk, left);
            match accumulate {
                Ok(accumulate) if accumulate.slab_count() == 1 => {
                    return Ok(Self {
                        device: device.clone(),
                        windows,
                        chunk,
                        scratch: accumulate.scratch_bytes(),
                        accumulate,
                    });
                }
                // Shorter chunks are better than many slabs.
                Ok(_) | Err(Error::TooLittleScratch { .. }) if chunk > 1 => {
                    chunk = chunk.div_ceil(2)
                }
                Ok(accumulate) => {
                    return Err(Error::TooLittleScratch {
                        what: "multiples of a point",
                        needed: own.saturating_add(accumulate.scratch_bytes()),
                        limit: scratch_limit,
                    });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Points of the table.
    pub fn table_len(&self) -> usize {
        let last = self.windows.count() - 1;
        self.windows.first_bucket(last) + self.windows.buckets_of(last)
    }

    /// The scalars whose multiples of the point are the table.
    pub fn table_scalars(&self) -> Vec<Scalar> {
        let mut scalars = Vec::with_capacity(self.table_len());
        for window in 0..self.windows.count() {
            let bit = self.windows.first_bit(window) as usize;
            for magnitude in 1..=self.windows.buckets_of(window) as u64 {
                // At most 2^254, which is below r.
                let mut limbs = [0u64; 4];
                limbs[bit / 64] = magnitude << (bit % 64);
                if !bit.is_multiple_of(64) && bit / 64 < 3 {
                    limbs[bit / 64 + 1] = magnitude >> (64 - bit % 64);
                }
                scalars.extend(Scalar::from_limbs(limbs));
            }
        }
        scalars
    }

    /// The table of `base`, made on the CPU: for a [`small`](Self::small) plan.
    pub fn host_table(&self, base: &Affine<F>) -> Vec<Affine<F>> {
        FixedBase::new(base).multiply_all(&self.table_scalars())
    }

    /// Bytes of scratch of a run.
    pub fn scratch_bytes(&self) -> usize {
        own_bytes(self.chunk, self.windows.count() as usize).saturating_add(self.scratch)
    }

    /// Leaves `scalars[i]` P in `out[i]`: canonical scalars, any number of them, and the table of P.
    pub fn run(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        table: DeviceView<'_, Affine<F>>,
        scalars: DeviceView<'_, Scalar>,
        out: DeviceViewMut<'_, Affine<F>>,
        scratch: DeviceViewMut<'_, u8>,
    ) -> Result<()> {
        for (what, expected, found) in [
            ("table", self.table_len(), table.len()),
            ("out", scalars.len(), out.len()),
        ] {
            if expected != found {
                return Err(Error::Length {
                    what,
                    expected,
                    found,
                });
            }
        }
        let window_count = self.windows.count() as usize;
        let mut out = out.lend(&[stream])?;
        let mut scratch = scratch.lend(&[stream])?;
        let mut carve = Carve::new(scratch.view_mut());
        let mut entries = carve.take::<u32>("entries", self.chunk * window_count)?;
        let mut offsets = carve.take::<u32>("offsets", self.chunk + 1)?;
        let mut rest = carve.rest();
        let mut first = 0;
        while first < scalars.len() {
            let len = self.chunk.min(scalars.len() - first);
            let part = first..first + len;
            fixed_base::entries(
                launcher,
                stream,
                scalars.slice(part.clone()),
                &self.windows,
                entries.reborrow().slice(..len * window_count),
                offsets.reborrow().slice(..=len),
            )?;
            let shorter;
            let plan = if len == self.chunk {
                &self.accumulate
            } else {
                shorter = accumulate_plan(&self.device, &self.windows, len, self.scratch)?;
                &shorter
            };
            plan.run(
                launcher,
                stream,
                table,
                entries.as_view().slice(..len * window_count),
                offsets.as_view().slice(..=len),
                out.view_mut().slice(part),
                Existing::Replace,
                rest.reborrow(),
            )?;
            first += len;
        }
        Ok(())
    }
}

/// Entries and offsets of a run.
fn own_bytes(chunk: usize, window_count: usize) -> usize {
    Carve::bytes_of::<u32>(chunk * window_count).saturating_add(Carve::bytes_of::<u32>(chunk + 1))
}

fn accumulate_plan<F: DeviceCurve>(
    device: &DeviceInfo,
    windows: &Windows,
    chunk: usize,
    scratch_limit: usize,
) -> Result<AccumulatePlan<F>> {
    let window_count = windows.count() as usize;
    AccumulatePlan::with_longest(
        device,
        chunk * window_count,
        chunk,
        window_count,
        scratch_limit,
    )
}
