//! Multiples of one point made on a device, as synthetic keys need them.

use std::collections::VecDeque;

use cuzk_field::{Affine, Scalar};
use cuzk_gpu_mem::{DeviceBuf, DeviceViewMut, PinnedBuf, Transfer};
use cuzk_kernels::DeviceCurve;
use cuzk_msm::device::fixed_base::FixedBasePlan;
use rayon::prelude::*;

use super::error::Result;
use super::gpu::Gpu;

/// Exponents of one copy: 64 MiB.
const CHUNK: usize = 1 << 21;
/// Copies under way while the next chunk is filled.
const IN_FLIGHT: usize = 2;
/// Exponents of one task.
const TASK: usize = 1 << 14;
/// Multiples from which on a large table is worth its making.
const MANY: usize = 1 << 17;
/// Share of what the device has left that scratch may take.
const SCRATCH_SHARE: u64 = 4;

/// Multiplies one point.
pub(super) struct Generator<'g, F: DeviceCurve> {
    gpu: &'g Gpu,
    plan: FixedBasePlan<F>,
    table: DeviceBuf<Affine<F>>,
    exponents: DeviceBuf<Scalar>,
    scratch: DeviceBuf<u8>,
    under_way: VecDeque<Transfer<Scalar>>,
}

impl<'g, F: DeviceCurve> Generator<'g, F> {
    /// For `count` multiples of `point`, or some more.
    pub(super) fn new(gpu: &'g Gpu, point: &Affine<F>, count: usize) -> Result<Self> {
        let (device, stream) = (gpu.device(), gpu.keys());
        let limit = usize::try_from(device.usable()? / SCRATCH_SHARE).unwrap_or(usize::MAX);
        let (info, chunk) = (device.info(), count.clamp(1, CHUNK));
        let room = |len| device.alloc("table of multiples", len, stream);
        let (plan, table) = if count < MANY {
            let plan = FixedBasePlan::small(info, chunk, limit)?;
            let mut table = room(plan.table_len())?;
            stream.upload_slice(&plan.host_table(point), &mut table)?;
            (plan, table)
        } else {
            let plan = FixedBasePlan::large(info, chunk, limit)?;
            let mut table = room(plan.table_len())?;
            Self::new(gpu, point, MANY - 1)?.multiply(
                &plan.table_scalars(),
                None,
                table.view_mut(),
            )?;
            (plan, table)
        };
        Ok(Self {
            gpu,
            table,
            exponents: device.alloc("exponents", chunk, stream)?,
            scratch: device.alloc("generator", plan.scratch_bytes(), stream)?,
            plan,
            under_way: VecDeque::new(),
        })
    }

    /// `target[i]` = `exponents[positions[i]]` times the point, or `exponents[i]` without positions.
    /// Returns when the last chunk has been submitted.
    pub(super) fn multiply(
        &mut self,
        exponents: &[Scalar],
        positions: Option<&[u32]>,
        mut target: DeviceViewMut<'_, Affine<F>>,
    ) -> Result<()> {
        let (count, chunk) = (target.len(), self.exponents.len());
        for first in (0..count).step_by(chunk) {
            let len = chunk.min(count - first);
            let mut values = self.room(len)?;
            values
                .par_chunks_mut(TASK)
                .enumerate()
                .for_each(|(task, values)| {
                    let first = first + task * TASK;
                    let len = values.len();
                    match positions {
                        None => values.copy_from_slice(&exponents[first..first + len]),
                        Some(positions) => {
                            for (value, i) in values.iter_mut().zip(&positions[first..first + len])
                            {
                                *value = exponents[*i as usize];
                            }
                        }
                    }
                });
            let stream = self.gpu.keys();
            let mut on_device = self.exponents.view_mut().slice(..len);
            let transfer = stream.upload(values, on_device.reborrow())?;
            self.under_way.push_back(transfer);
            self.plan.run(
                self.gpu.launcher(),
                stream,
                self.table.view(),
                on_device.as_view(),
                target.reborrow().slice(first..first + len),
                self.scratch.view_mut(),
            )?;
        }
        Ok(())
    }

    /// [`Self::multiply`] by way of a piece of device memory into pinned memory: all is there when this returns.
    pub(super) fn multiply_to_host(
        &mut self,
        exponents: &[Scalar],
        positions: Option<&[u32]>,
        target: &mut [Affine<F>],
    ) -> Result<()> {
        let (stream, chunk) = (self.gpu.keys(), self.exponents.len());
        let mut piece = stream
            .device()
            .alloc("multiples", chunk.min(target.len()), stream)?;
        for (index, target) in target.chunks_mut(chunk).enumerate() {
            let range = index * chunk..index * chunk + target.len();
            let (exponents, positions) = match positions {
                Some(positions) => (exponents, Some(&positions[range])),
                None => (&exponents[range], None),
            };
            self.multiply(exponents, positions, piece.view_mut().slice(..target.len()))?;
            stream.download_slice(piece.view().slice(..target.len()), target)?;
        }
        Ok(())
    }

    /// A pinned buffer that no copy reads.
    fn room(&mut self, len: usize) -> Result<PinnedBuf<Scalar>> {
        if self.under_way.len() >= IN_FLIGHT
            && let Some(transfer) = self.under_way.pop_front()
        {
            let mut idle = transfer.wait()?;
            if idle.len() >= len {
                idle.truncate(len);
                return Ok(idle);
            }
        }
        Ok(self.gpu.device().host().pinned("exponents", len)?)
    }
}
