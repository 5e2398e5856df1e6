//! The five sums: H over the quotient, L, A, B1 and B2 over the witness.

use cuzk_field::{Affine, Fp, Fp2, Scalar, Xyzz};
use cuzk_gpu_mem::{Compute, DeviceView, PinnedBuf, Scoped};
use cuzk_kernels::DeviceCurve;
use cuzk_kernels::bucket_sort::Scalars;
use cuzk_kernels::sparse_terms::{self, BaseSet};
use cuzk_kernels::witness::PackedWitness;
use cuzk_msm::device::{
    MsmPlan, Pending, PendingCounts, SparsePlan, TermCounts, count_scratch_bytes, count_terms,
};

use super::error::Result;
use super::gpu::Gpu;
use super::key::{DeviceKey, Members, SparseQuery};
use super::prover::secret;
use crate::setup::Sums;

/// Scratch that no sum needs more than, in multiples of what H takes at its best.
const SCRATCH: u64 = 2;

/// How the sums of a key are computed: what is known before the witness is.
#[derive(Debug)]
pub(super) struct SumsPlan {
    h: MsmPlan<Fp>,
    scratch_limit: u64,
}

/// The numbers of terms, on their way to the host.
pub(super) struct Counting<'cx> {
    pending: PendingCounts,
    _scratch: Scoped<'cx, u8>,
}

impl SparseQuery {
    fn set(&self, first_point: usize) -> BaseSet<'_> {
        let members = match &self.members {
            Members::Range(range) => sparse_terms::Members::Range(range.clone()),
            Members::Bitmap(bitmap) => sparse_terms::Members::Bitmap {
                words: bitmap.words.view(),
                ranks: bitmap.ranks.view(),
            },
        };
        BaseSet {
            members,
            // Buffers have fewer points than 2^30, or no plan would have been made.
            first_base: first_point as u32,
        }
    }
}

/// Scratch of a sum, and the pinned memory that its result goes to.
fn memory<'cx, F: DeviceCurve>(
    cx: &Compute<'cx>,
    bytes: u64,
    result_len: usize,
) -> Result<(Scoped<'cx, u8>, PinnedBuf<Xyzz<F>>)> {
    let scratch = secret(cx, "sums", usize::try_from(bytes).unwrap_or(usize::MAX))?;
    let mut result = cx.device().host().pinned("sums", result_len)?;
    result.mark_secret();
    Ok((scratch, result))
}

impl SumsPlan {
    /// A plan in at most `limit` bytes of scratch.
    pub(super) fn new(gpu: &Gpu, key: &DeviceKey, limit: u64) -> Result<Self> {
        let (info, bases) = (gpu.device().info(), key.h.len());
        let best = MsmPlan::<Fp>::resident(info, bases, 1, u64::MAX)?;
        // Tiny sums of few windows, and large ones of many bases, both fit into this.
        let wanted = (SCRATCH * best.footprint().device).max(64 << 20);
        let scratch_limit = wanted.min(limit);
        let h = match best.footprint().device <= scratch_limit {
            true => best,
            false => MsmPlan::resident(info, bases, 1, scratch_limit)?,
        };
        Ok(Self { h, scratch_limit })
    }

    /// Bytes of scratch on the device at most.
    pub(super) fn scratch_bytes(&self) -> u64 {
        self.scratch_limit
    }

    /// Counts the terms of A, B and L. Put it on the stream as soon as the witness is there.
    pub(super) fn count<'cx>(
        cx: &Compute<'cx>,
        gpu: &Gpu,
        key: &DeviceKey,
        witness: PackedWitness<'_>,
    ) -> Result<Counting<'cx>> {
        let sets = [&key.a, &key.b, &key.l].map(|query| query.set(0));
        let bytes = count_scratch_bytes(key.header().num_variables, sets.len());
        let mut scratch = secret(cx, "counts", bytes)?;
        let mut counts = cx.device().host().pinned("counts", 2 * sets.len())?;
        counts.mark_secret();
        let (launcher, stream) = (gpu.launcher(), cx.stream());
        let to = scratch.view_mut();
        let pending = count_terms(launcher, stream, witness, &sets, to, counts)?;
        Ok(Counting {
            pending,
            _scratch: scratch,
        })
    }

    /// Puts the H sum on the stream.
    pub(super) fn begin_h(
        &self,
        cx: &Compute<'_>,
        gpu: &Gpu,
        key: &DeviceKey,
        h: DeviceView<'_, Scalar>,
    ) -> Result<Pending<Fp>> {
        let plan = &self.h;
        let (mut scratch, result) = memory(cx, plan.footprint().device, plan.result_len())?;
        // The coefficient of tau^(n - 1) is zero, and there is no point for it.
        let scalars = Scalars::Canonical(h.slice(..key.h.len()));
        let (launcher, stream) = (gpu.launcher(), cx.stream());
        let (bases, scratch) = (key.h.view(), scratch.view_mut());
        Ok(plan.run(launcher, stream, bases, &[scalars], scratch, result)?)
    }

    /// Puts the sums over the witness on the stream. Waits for the counts, not for the sums before.
    pub(super) fn begin(
        &self,
        cx: &Compute<'_>,
        gpu: &Gpu,
        key: &DeviceKey,
        witness: PackedWitness<'_>,
        counting: Counting<'_>,
    ) -> Result<BegunSums> {
        let counts = counting.pending.wait()?;
        let g1_sets = [&key.a, &key.b, &key.l].map(|query| query.set(query.first_point));
        let g2_sets = [key.b.set(0)];
        let (bases, points) = (key.sparse_g1.view(), key.b_g2.view());
        Ok(BegunSums {
            g1: self.begin_in::<Fp>(cx, gpu, bases, witness, &g1_sets, &counts)?,
            g2: self.begin_in::<Fp2>(cx, gpu, points, witness, &g2_sets, &counts[1..2])?,
        })
    }

    fn begin_in<F: DeviceCurve>(
        &self,
        cx: &Compute<'_>,
        gpu: &Gpu,
        bases: DeviceView<'_, Affine<F>>,
        witness: PackedWitness<'_>,
        sets: &[BaseSet<'_>],
        counts: &[TermCounts],
    ) -> Result<Pending<F>> {
        let (launcher, stream) = (gpu.launcher(), cx.stream());
        let info = cx.device().info();
        let variables = witness.bits.len() * 32;
        let plan = SparsePlan::<F>::new(info, variables, counts, self.scratch_limit)?;
        let (mut scratch, result) = memory(cx, plan.footprint().device, plan.result_len())?;
        let scratch = scratch.view_mut();
        Ok(plan.run(launcher, stream, bases, witness, sets, scratch, result)?)
    }
}

/// The sums over the witness, under way.
pub(super) struct BegunSums {
    /// A, B1, L.
    g1: Pending<Fp>,
    g2: Pending<Fp2>,
}

impl BegunSums {
    /// Waits for all.
    pub(super) fn finish(self, h: Pending<Fp>) -> Result<Sums> {
        let (h, g1, g2) = (wait(h)?, wait(self.g1)?, wait(self.g2)?);
        let [h, a, b_g1, l] = [h[0], g1[0], g1[1], g1[2]].map(Xyzz::from);
        Ok(Sums {
            h,
            l,
            a,
            b_g1,
            b_g2: Xyzz::from(g2[0]),
        })
    }
}

fn wait<F: DeviceCurve>(pending: Pending<F>) -> Result<Vec<Affine<F>>> {
    Ok(pending.wait()?)
}
