//! The five sums: H over the quotient, L, A, B1 and B2 over the witness.

use std::sync::Arc;

use cuzk_field::{Affine, Fp, Fp2, Scalar, Xyzz};
use cuzk_gpu_mem::{Compute, DeviceInfo, DeviceView, PinnedBuf, TransferScope};
use cuzk_kernels::DeviceCurve;
use cuzk_kernels::bucket_sort::Scalars;
use cuzk_kernels::witness::PackedWitness;
use cuzk_msm::device::{HostBases, MsmPlan, Pending, Streams};
use rayon::prelude::*;

use super::error::Result;
use super::gpu::Gpu;
use super::key::{DeviceKey, Points};
use super::phases::secret;
use super::plan::{KeyPlan, KeySizes, Part, Placement, within_or_least};
use super::section::{InSection, Spans};
use super::witness_sums::{Counting, Guess, SparseSums, WitnessTerms};
use crate::setup::Sums;

/// Rows from which on sums over the witness come behind the H sum, not beside it: that one has all of the device's
/// attention then.
const BESIDE_ROWS: usize = 1 << 25;
/// Of what the H sum finds beside its scalars, streamed sums over the witness get one of so many parts, the first that does.
/// H200, 2^27 rows in 16 GiB: 1160 ms a proof with a quarter, 1490 with a third, in which the H sum has too little.
const BESIDE_SHARES: [u64; 4] = [4, 3, 2, 8];

/// When the sums over the witness run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// Beside all else, on a stream and in scratch of their own.
    BesideAll,
    /// On that stream beside the H sum, in what the quotient leaves.
    BesideH,
    /// Behind the H sum, on the section's stream.
    Behind,
}

/// How the sums of a proof are computed: what is known before the device has the witness.
#[derive(Debug)]
pub(super) struct SumsPlan {
    h: MsmPlan<Fp>,
    pub(super) witness: SparseSums,
    pub(super) turn: Turn,
}

/// What a section needs beside the sums, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    /// One array of n elements.
    pub(super) array: u64,
    /// Rows and quotient, which are over when the sums begin.
    pub(super) quotient: u64,
}

/// What sums are planned from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) info: &'a DeviceInfo,
    pub(super) streams: &'a Arc<Streams>,
    /// The points that there are.
    pub(super) sizes: &'a KeySizes,
    /// Where they lie.
    pub(super) key: &'a KeyPlan,
    pub(super) terms: WitnessTerms,
    /// Another number than the usual one, for tests.
    pub(super) least_wipe_bytes: Option<usize>,
}

impl SumsPlan {
    /// A plan in a section of at most `room` bytes, or of the least that works.
    pub(super) fn new(known: Known<'_>, beside: Beside, room: u64) -> Result<Self> {
        let n = known.sizes.domain_size;
        let is_streamed = Part::ALL
            .iter()
            .any(|part| *part != Part::H && known.key.placement(*part) == Placement::Host);
        let best_h = known.h_plan(u64::MAX)?;
        let best = SparseSums::new(known, Guess::AtMost, u64::MAX)?;
        let with_h = |h: u64| beside.quotient.max(beside.array + h);
        let (h_bytes, witness_bytes) = (best_h.footprint().device, best.scratch_bytes());
        if (n < BESIDE_ROWS || is_streamed) && with_h(h_bytes) + witness_bytes <= room {
            return Ok(Self {
                h: best_h,
                witness: best,
                turn: Turn::BesideAll,
            });
        }
        if is_streamed && let Some(plan) = Self::streamed_beside(known, beside, room) {
            return Ok(plan);
        }
        let h_limit = room.saturating_sub(beside.array);
        let h = match h_bytes <= h_limit {
            true => best_h,
            false => within_or_least(h_limit, |limit| known.h_plan(limit))?,
        };
        let witness = match witness_bytes <= room {
            true => best,
            false => within_or_least(room, |limit| SparseSums::new(known, Guess::AtMost, limit))?,
        };
        Ok(Self {
            h,
            witness,
            turn: Turn::Behind,
        })
    }

    /// A plan whose sums over the witness, which wait for the bus, run beside as much else as `room` bytes allow.
    fn streamed_beside(known: Known<'_>, beside: Beside, room: u64) -> Option<Self> {
        let in_bytes = |turn, h_limit: u64, witness_limit: u64| {
            let h = known.h_plan(h_limit).ok()?;
            let witness = SparseSums::new(known, Guess::Likely, witness_limit).ok()?;
            let plan = Self { h, witness, turn };
            (plan.section_bytes(beside) <= room).then_some(plan)
        };
        let free = room.saturating_sub(beside.quotient);
        let left = room.saturating_sub(beside.array);
        let mut shares = BESIDE_SHARES.into_iter().map(|share| left / share);
        shares.find_map(|share| {
            let all = (share <= free).then(|| in_bytes(Turn::BesideAll, left - share, share));
            all.flatten()
                .or_else(|| in_bytes(Turn::BesideH, left - share, share))
        })
    }

    /// Bytes of a section with these sums.
    pub(super) fn section_bytes(&self, beside: Beside) -> u64 {
        let h = beside.array + self.h.footprint().device;
        let (quotient, witness) = (beside.quotient, self.scratch_bytes());
        match self.turn {
            Turn::BesideAll => quotient.max(h) + witness,
            Turn::BesideH => quotient.max(h + witness),
            Turn::Behind => quotient.max(h).max(witness),
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
        at: InSection<'_, '_, 'env>,
        uploads: &TransferScope<'_, 'env>,
        h: DeviceView<'_, Scalar>,
    ) -> Result<Pending<Fp>> {
        let InSection { cx, key: lent, .. } = at;
        let plan = &self.h;
        let bytes = usize::try_from(plan.footprint().device).unwrap_or(usize::MAX);
        let mut scratch = secret(cx, "H sum", bytes)?;
        let result = result(cx, plan.result_len())?;
        let (launcher, stream) = (at.gpu.launcher(), cx.stream());
        // The coefficient of tau^(n - 1) is zero, and there is no point for it.
        let scalars = [Scalars::Canonical(h.slice(..lent.key.h_len()))];
        match (&lent.h, &lent.key.h) {
            (Some(points), _) => {
                let mut lent = scratch.view_mut().lend(&plan.streams_beside(stream))?;
                let points = points.view();
                // The span ends with the sum, not with the wipe beside its end, for which the loan's end waits.
                let h = at.spans.around("H sum", stream, || {
                    let scratch = lent.view_mut();
                    Ok(plan.run_lent(launcher, stream, points, &scalars, scratch, result)?)
                })?;
                drop(lent);
                if let Some(byte) = h.wiped_from() {
                    scratch.mark_wiped_from(byte);
                }
                Ok(h)
            }
            (None, Points::Host(points)) => at.spans.around("H sum", stream, || {
                let bases = HostBases {
                    pieces: &[points],
                    uploads,
                    pace: at.pace,
                    bus: at.gpu.bus(),
                };
                let scratch = scratch.view_mut();
                Ok(plan.run_streamed(launcher, stream, bases, &scalars, scratch, result)?)
            }),
            _ => unreachable!("H has a buffer of its own"),
        }
    }
}

impl Known<'_> {
    fn h_plan(self, limit: u64) -> Result<MsmPlan<Fp>> {
        let (info, streams, points) =
            (self.info, Some(self.streams), self.sizes.points_of(Part::H));
        let plan = match (self.key.placement(Part::H), self.key.h_multiples()) {
            (Placement::Host, _) => MsmPlan::streamed_beside(streams, info, points, 1, limit)?,
            (Placement::Device, Some(kept)) => {
                MsmPlan::with_multiples(streams, info, kept, 1, limit)?
            }
            (Placement::Device, None) => MsmPlan::resident_beside(streams, info, points, 1, limit)?,
        };
        Ok(match self.least_wipe_bytes {
            None => plan.wiping(),
            Some(bytes) => plan.wiping_at_least(bytes),
        })
    }
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
