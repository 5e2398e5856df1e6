//! The five sums: H over the quotient, L, A, B1 and B2 over the witness.

use std::sync::Arc;

use cuzk_field::{Affine, Fp, Fp2, Scalar, Xyzz};
use cuzk_gpu_mem::{
    Compute, DeviceInfo, DeviceView, DeviceViewMut, PinnedBuf, Stream, TransferScope,
};
use cuzk_kernels::DeviceCurve;
use cuzk_kernels::bucket_sort::Scalars;
use cuzk_kernels::witness::PackedWitness;
use cuzk_msm::device::{MsmPlan, Pending, Streams};
use rayon::prelude::*;

use super::error::Result;
use super::gpu::Gpu;
use super::key::{DeviceKey, Points};
use super::phases::secret;
use super::plan::{Part, Placement, within_or_least};
use super::section::Spans;
use super::witness_sums::{Counting, Counts, Guess, SparseSums, WitnessTerms};
use crate::setup::Sums;

/// Rows from which on sums over the witness come behind the H sum, not beside it: that one has all of the device's
/// attention then.
const BESIDE_ROWS: usize = 1 << 25;

/// How the sums of a proof are computed: what is known before the device has the witness.
#[derive(Debug)]
pub(super) struct SumsPlan {
    h: MsmPlan<Fp>,
    witness: SparseSums,
    /// Whether the sums over the witness have a stream and scratch of their own, and run beside all else.
    pub(super) is_beside: bool,
}

/// What a section needs beside the sums, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    /// One array of n elements.
    pub(super) array: u64,
    /// Rows and quotient, which are over when the sums begin.
    pub(super) quotient: u64,
}

impl SumsPlan {
    /// A plan in a section of at most `room` bytes, or of the least that works.
    pub(super) fn new(
        gpu: &Gpu,
        key: &DeviceKey,
        terms: WitnessTerms,
        beside: Beside,
        room: u64,
    ) -> Result<Self> {
        let info = gpu.device().info();
        let (n, streams) = (key.header().domain_size, gpu.sum_streams());
        let is_streamed = Part::ALL
            .iter()
            .any(|part| *part != Part::H && key.plan().placement(*part) == Placement::Host);
        let best_h = h_plan(key, info, Some(streams), u64::MAX)?;
        let best = SparseSums::new(key, info, terms, Guess::AtMost, u64::MAX)?;
        let with_h = |h: u64| beside.quotient.max(beside.array + h);
        let (h_bytes, witness_bytes) = (best_h.footprint().device, best.scratch_bytes());
        if (n < BESIDE_ROWS || is_streamed) && with_h(h_bytes) + witness_bytes <= room {
            return Ok(Self {
                h: best_h,
                witness: best,
                is_beside: true,
            });
        }
        if is_streamed {
            // What the quotient leaves is the H sum's; what is left beside is enough for small batches.
            let left = beside.quotient - beside.array;
            if let Ok(h) = h_plan(key, info, Some(streams), left) {
                let left = room.saturating_sub(with_h(h.footprint().device));
                if let Ok(witness) = SparseSums::new(key, info, terms, Guess::Likely, left) {
                    return Ok(Self {
                        h,
                        witness,
                        is_beside: true,
                    });
                }
            }
        }
        let h_limit = room.saturating_sub(beside.array);
        let h = match h_bytes <= h_limit {
            true => best_h,
            false => within_or_least(h_limit, |limit| h_plan(key, info, Some(streams), limit))?,
        };
        let witness = match witness_bytes <= room {
            true => best,
            false => within_or_least(room, |limit| {
                SparseSums::new(key, info, terms, Guess::AtMost, limit)
            })?,
        };
        Ok(Self {
            h,
            witness,
            is_beside: false,
        })
    }

    /// Bytes of a section with these sums.
    pub(super) fn section_bytes(&self, beside: Beside) -> u64 {
        let h = beside.array + self.h.footprint().device;
        let first = beside.quotient.max(h);
        match self.is_beside {
            true => first + self.scratch_bytes(),
            false => first.max(self.scratch_bytes()),
        }
    }

    /// Bytes of scratch that the sums over the witness take, one after another.
    pub(super) fn scratch_bytes(&self) -> u64 {
        self.witness.scratch_bytes()
    }

    /// Counts the terms of A, B and L. Put it on the stream as soon as the witness is there.
    pub(super) fn count<'cx>(
        &self,
        cx: &Compute<'cx>,
        gpu: &Gpu,
        key: &DeviceKey,
        spans: &Spans<'_>,
        witness: PackedWitness<'_>,
    ) -> Result<Counting<'cx>> {
        self.witness.count(cx, gpu, key, spans, witness)
    }

    /// Puts the H sum on the stream.
    pub(super) fn begin_h<'env>(
        &self,
        cx: &Compute<'_>,
        gpu: &Gpu,
        key: &'env DeviceKey,
        uploads: &TransferScope<'_, 'env>,
        h: DeviceView<'_, Scalar>,
    ) -> Result<Pending<Fp>> {
        let plan = &self.h;
        let bytes = usize::try_from(plan.footprint().device).unwrap_or(usize::MAX);
        let mut scratch = secret(cx, "H sum", bytes)?;
        let result = result(cx, plan.result_len())?;
        let (launcher, stream) = (gpu.launcher(), cx.stream());
        let scratch = scratch.view_mut();
        match &key.h {
            Points::Device(points) => {
                // The coefficient of tau^(n - 1) is zero, and there is no point for it.
                let scalars = [Scalars::Canonical(h.slice(..points.len()))];
                Ok(plan.run(launcher, stream, points.view(), &scalars, scratch, result)?)
            }
            Points::Host(points) => {
                let scalars = [Scalars::Canonical(h.slice(..points.len()))];
                let bases: [&[_]; 1] = [points];
                Ok(plan
                    .run_streamed(launcher, stream, uploads, &bases, &scalars, scratch, result)?)
            }
            Points::Shared(_) => unreachable!("H has a buffer of its own"),
        }
    }

    /// Puts the sums over the witness on `stream`. All views are lent to the stream, and to that of the uploads, where it is
    /// not the section's.
    #[expect(clippy::too_many_arguments, reason = "what there is to say")]
    pub(super) fn begin<'env>(
        &self,
        cx: &Compute<'_>,
        gpu: &Gpu,
        key: &'env DeviceKey,
        stream: &Stream,
        uploads: &TransferScope<'_, 'env>,
        witness: PackedWitness<'_>,
        counts: &Counts,
        scratch: DeviceViewMut<'_, u8>,
    ) -> Result<PendingWitnessSums> {
        self.witness
            .begin(cx, gpu, key, stream, uploads, witness, counts, scratch)
    }
}

fn h_plan(
    key: &DeviceKey,
    info: &DeviceInfo,
    streams: Option<&Arc<Streams>>,
    limit: u64,
) -> Result<MsmPlan<Fp>> {
    Ok(match &key.h {
        Points::Host(points) => MsmPlan::streamed_beside(streams, info, points.len(), 1, limit)?,
        Points::Device(points) => MsmPlan::resident_beside(streams, info, points.len(), 1, limit)?,
        Points::Shared(_) => unreachable!("H has a buffer of its own"),
    })
}

/// Pinned memory for the points of a sum's windows.
pub(super) fn result<F: DeviceCurve>(
    cx: &Compute<'_>,
    len: usize,
) -> cuzk_gpu_mem::Result<PinnedBuf<Xyzz<F>>> {
    let mut result = cx.device().host().pinned("sums", len)?;
    result.mark_secret();
    Ok(result)
}

/// Sums over the witness, under way: those in G1 with the parts that each is of.
pub(super) struct PendingWitnessSums {
    pub(super) g1: Vec<(Vec<Part>, Pending<Fp>)>,
    pub(super) g2: Pending<Fp2>,
}

/// All sums of a proof, under way or done on the device. What is left to the host needs no device.
pub(super) struct PendingSums {
    pub(super) h: Pending<Fp>,
    pub(super) witness: PendingWitnessSums,
}

impl PendingSums {
    /// Waits for all, and adds up their windows in parallel.
    pub(super) fn finish(self) -> Result<Sums> {
        let Self { h, witness } = self;
        let PendingWitnessSums { g1, g2 } = witness;
        let mut all: Vec<(Vec<Part>, Pending<Fp>)> = g1;
        all.push((vec![Part::H], h));
        let (g2, g1) = rayon::join(
            || wait(g2),
            || {
                all.into_par_iter()
                    .map(|(parts, pending)| Ok((parts, wait(pending)?)))
                    .collect::<Result<Vec<_>>>()
            },
        );
        let mut sums = Sums::infinity();
        for (part, sum) in g1?.iter().flat_map(|(parts, sums)| parts.iter().zip(sums)) {
            let place = match part {
                Part::H => &mut sums.h,
                Part::L => &mut sums.l,
                Part::A => &mut sums.a,
                Part::B1 | Part::B2 => &mut sums.b_g1,
            };
            *place = Xyzz::from(*sum);
        }
        sums.b_g2 = Xyzz::from(g2?[0]);
        Ok(sums)
    }
}

fn wait<F: DeviceCurve>(pending: Pending<F>) -> Result<Vec<Affine<F>>> {
    Ok(pending.wait()?)
}
