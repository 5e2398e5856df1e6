//! Sums over the witness: those of points on the device share their rounds; those of points on the host come over the
//! bus in batches.

use std::ops::Range;

use cuzk_field::{Affine, Fp, Fp2};
use cuzk_gpu_mem::{Compute, DeviceInfo, DeviceView, DeviceViewMut, Scoped, Stream, TransferScope};
use cuzk_kernels::DeviceCurve;
use cuzk_kernels::sparse_terms::BaseSet;
use cuzk_kernels::witness::PackedWitness;
use cuzk_msm::device::{
    Batches, Error as Msm, HostBases, Pending, PendingCounts, SparsePlan, StreamedSparsePlan,
    TermCounts, count_scratch_bytes, count_terms, count_terms_in, count_terms_in_scratch_bytes,
};

use super::error::Result;
use super::gpu::Gpu;
use super::key::{DeviceKey, Points, SparseQuery};
use super::phases::secret;
use super::plan::{Part, Placement};
use super::section::{InSection, Spans};
use super::sums::{Known, PendingWitnessSums, result};

/// What the host knows of a witness: how many values are one, and how many neither zero nor one.
#[derive(Clone, Copy, Debug)]
pub(super) struct WitnessTerms {
    pub(super) variables: usize,
    pub(super) ones: usize,
    pub(super) full: usize,
}

/// What is counted for a batch of points, of which nothing is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Guess {
    /// The most there can be.
    AtMost,
    /// Four times as many full values as there would be if they lay everywhere alike.
    Likely,
}

impl WitnessTerms {
    /// The most that so many points can have to do with.
    fn at_most(self, points: usize) -> TermCounts {
        TermCounts {
            ones: self.ones.min(points),
            rest: self.full.min(points),
        }
    }
}

/// How the sums over a witness are computed, in how much scratch.
#[derive(Debug)]
pub(super) struct SparseSums {
    variables: usize,
    scratch_bytes: u64,
    /// How the points of A, B1 and L that are on the host are cut, and those of B2.
    cut_g1: Option<Batches>,
    cut_g2: Option<Batches>,
}

/// The numbers of terms, on their way to the host.
pub(super) struct Counting<'cx> {
    /// Of A, B and L, for points on the device.
    resident: PendingCounts,
    streamed_g1: Option<PendingCounts>,
    streamed_g2: Option<PendingCounts>,
    _scratch: Scoped<'cx, u8>,
}

/// Parts of a key, each a list in an array of points.
type Sets<'k> = Vec<(Part, BaseSet<'k>)>;

/// The numbers of terms.
pub(super) struct Counts {
    resident: Vec<TermCounts>,
    streamed_g1: Vec<TermCounts>,
    streamed_g2: Vec<TermCounts>,
}

impl Counting<'_> {
    /// Waits for them.
    pub(super) fn wait(self) -> Result<Counts> {
        let wait =
            |counts: Option<PendingCounts>| counts.map_or(Ok(Vec::new()), PendingCounts::wait);
        Ok(Counts {
            resident: self.resident.wait()?,
            streamed_g1: wait(self.streamed_g1)?,
            streamed_g2: wait(self.streamed_g2)?,
        })
    }
}

/// The parts in G1 over the witness.
const PARTS: [Part; 3] = [Part::A, Part::B1, Part::L];

impl DeviceKey {
    fn sparse(&self, part: Part) -> (&SparseQuery, &Points<Fp>) {
        match part {
            Part::L => (&self.l_query, &self.l),
            Part::A => (&self.a_query, &self.a),
            Part::B1 | Part::B2 | Part::H => (&self.b_query, &self.b_g1),
        }
    }

    /// The parts in G1 that are on the device, each a list of points in the buffer they share.
    fn resident_sets(&self) -> Sets<'_> {
        let sets = PARTS.iter().filter_map(|part| match self.sparse(*part) {
            (query, Points::Shared(first)) => Some((*part, query.set(*first))),
            _ => None,
        });
        sets.collect()
    }

    /// The parts in G1 that are on the host: lists of points one after another, and those points.
    fn streamed_sets(&self) -> (Sets<'_>, Vec<&[Affine<Fp>]>) {
        let (mut sets, mut pieces, mut first) = (Vec::new(), Vec::new(), 0);
        for part in PARTS {
            if let (query, Points::Host(points)) = self.sparse(part) {
                sets.push((part, query.set(first)));
                pieces.push(&**points);
                first += points.len();
            }
        }
        (sets, pieces)
    }
}

fn bytes_of(plan: Result<u64, Msm>) -> Result<u64> {
    Ok(plan?)
}

/// Bytes for sums over sets that share their rounds, or if that is too much for `limit`, for one after another.
fn resident_bytes<F: DeviceCurve>(
    info: &DeviceInfo,
    variables: usize,
    counts: &[TermCounts],
    limit: u64,
) -> Result<u64> {
    let plan = |counts: &[TermCounts]| {
        SparsePlan::<F>::new(info, variables, counts, limit).map(|plan| plan.footprint().device)
    };
    match plan(counts) {
        Err(Msm::TooLittleScratch { .. }) if counts.len() > 1 => {
            let mut most = 0;
            for counts in counts {
                most = most.max(bytes_of(plan(std::slice::from_ref(counts)))?);
            }
            Ok(most)
        }
        plan => bytes_of(plan),
    }
}

impl SparseSums {
    /// A plan in at most `limit` bytes of scratch, for any witness with these terms, or most of them.
    pub(super) fn new(known: Known<'_>, guess: Guess, limit: u64) -> Result<Self> {
        let Known {
            info, sizes, terms, ..
        } = known;
        let variables = terms.variables;
        let points_in = |placement| {
            let parts = PARTS.iter().copied();
            let there = parts.filter(move |part| known.key.placement(*part) == placement);
            there
                .map(|part| sizes.points_of(part))
                .collect::<Vec<usize>>()
        };
        let mut plan = Self {
            variables,
            scratch_bytes: 0,
            cut_g1: None,
            cut_g2: None,
        };
        let resident = points_in(Placement::Device);
        let resident: Vec<TermCounts> = resident.into_iter().map(|n| terms.at_most(n)).collect();
        if !resident.is_empty() {
            let bytes = resident_bytes::<Fp>(info, variables, &resident, limit)?;
            plan.scratch_bytes = bytes;
        }
        let streamed = points_in(Placement::Host);
        if !streamed.is_empty() {
            let (points, sets) = (streamed.iter().sum(), streamed.len());
            plan.cut_g1 = Some(plan.cut::<Fp>(info, terms, guess, [points, sets], limit)?);
        }
        let points = sizes.points_of(Part::B2);
        match known.key.placement(Part::B2) {
            Placement::Host => {
                plan.cut_g2 = Some(plan.cut::<Fp2>(info, terms, guess, [points, 1], limit)?);
            }
            Placement::Device => {
                let counts = [terms.at_most(points)];
                let bytes = resident_bytes::<Fp2>(info, variables, &counts, limit)?;
                plan.scratch_bytes = plan.scratch_bytes.max(bytes);
            }
        }
        Ok(plan)
    }

    /// How points on the host are cut; makes room for their sums.
    fn cut<F: DeviceCurve>(
        &mut self,
        info: &DeviceInfo,
        terms: WitnessTerms,
        guess: Guess,
        [points, sets]: [usize; 2],
        limit: u64,
    ) -> Result<Batches> {
        let cut = Batches::sparse::<F>(points, limit);
        let counts_of = |batch: &Range<usize>| {
            let most = terms.at_most(batch.len());
            if guess == Guess::AtMost {
                return vec![most; sets];
            }
            // All of the batch in one set; of the others only that they are there.
            let share = (4 * terms.full).div_ceil(terms.variables.div_ceil(batch.len().max(1)));
            let one = |rest: usize| TermCounts {
                rest: rest.min(most.rest),
                ..most
            };
            let few = TermCounts {
                ones: most.ones.min(1),
                ..one(64)
            };
            let mut counts = vec![few; sets];
            counts[0] = one(share.max(64));
            counts
        };
        let counts: Vec<TermCounts> = cut.ranges().iter().flat_map(counts_of).collect();
        let plan = StreamedSparsePlan::<F>::new(info, self.variables, &cut, 1, &counts, limit)?;
        self.scratch_bytes = self.scratch_bytes.max(plan.footprint().device);
        Ok(cut)
    }

    /// Bytes of scratch on the device.
    pub(super) fn scratch_bytes(&self) -> u64 {
        self.scratch_bytes
    }

    pub(super) fn count<'cx>(
        &self,
        cx: &Compute<'cx>,
        gpu: &Gpu,
        key: &DeviceKey,
        spans: &Spans<'_>,
        witness: PackedWitness<'_>,
    ) -> Result<Counting<'cx>> {
        let (launcher, stream) = (gpu.launcher(), cx.stream());
        let sets = PARTS.map(|part| key.sparse(part).0.set(0));
        let (streamed, _) = key.streamed_sets();
        let streamed: Vec<BaseSet<'_>> = streamed.into_iter().map(|(_, set)| set).collect();
        let streamed_bytes =
            [(&self.cut_g1, streamed.len()), (&self.cut_g2, 1)].map(|(cut, sets)| {
                let bytes = |cut| count_terms_in_scratch_bytes(cut, sets);
                cut.as_ref().map_or(0, bytes)
            });
        let bytes = count_scratch_bytes(sets.len())
            .max(streamed_bytes[0])
            .max(streamed_bytes[1]);
        let mut scratch = secret(cx, "counts", bytes)?;
        let counts = |len| {
            let mut counts = cx.device().host().pinned("counts", len)?;
            counts.mark_secret();
            Ok::<_, cuzk_gpu_mem::Error>(counts)
        };
        // All memory is there when the span begins: the stream is idle, and would be timed waiting for the host.
        let room_for = |cut: &Option<Batches>, sets: usize| {
            let len = cut.as_ref().map(|cut| 2 * cut.len() * sets);
            len.map(counts).transpose()
        };
        let of_resident = counts(2 * sets.len())?;
        let of_g1 = room_for(&self.cut_g1, streamed.len())?;
        let of_g2 = room_for(&self.cut_g2, 1)?;
        let mut to = scratch.view_mut();
        let (resident, streamed_g1, streamed_g2) = spans.around("count", stream, || {
            let resident =
                count_terms(launcher, stream, witness, &sets, to.reborrow(), of_resident)?;
            let mut count_in = |cut: &Option<Batches>, sets: &[BaseSet<'_>], counts| {
                let Some((cut, counts)) = cut.as_ref().zip(counts) else {
                    return Ok(None);
                };
                let witness = [witness];
                count_terms_in(launcher, stream, cut, &witness, sets, to.reborrow(), counts)
                    .map(Some)
            };
            let g1 = count_in(&self.cut_g1, &streamed, of_g1)?;
            let g2 = count_in(&self.cut_g2, &[key.b_query.set(0)], of_g2)?;
            Ok((resident, g1, g2))
        })?;
        Ok(Counting {
            resident,
            streamed_g1,
            streamed_g2,
            _scratch: scratch,
        })
    }

    /// Puts the sums on `stream`. All views are lent to the stream, and to that of the uploads, where it is not the section's.
    pub(super) fn begin<'env>(
        &self,
        at: InSection<'_, '_, 'env>,
        stream: &Stream,
        uploads: &TransferScope<'_, 'env>,
        witness: PackedWitness<'_>,
        counts: &Counts,
        mut scratch: DeviceViewMut<'_, u8>,
    ) -> Result<PendingWitnessSums> {
        let (lent, key) = (at.key, at.key.key);
        let run = Run {
            at,
            stream,
            witness,
            limit: scratch.len() as u64,
        };
        let Counts {
            resident: counts,
            streamed_g1,
            streamed_g2,
        } = counts;
        let count_of = |part: Part| match part {
            Part::A => counts[0],
            Part::L => counts[2],
            Part::B1 | Part::B2 | Part::H => counts[1],
        };
        let mut g1 = Vec::new();
        let (streamed, pieces) = key.streamed_sets();
        if let Some(cut) = &self.cut_g1 {
            let (parts, sets): (Vec<Part>, Vec<BaseSet<'_>>) = streamed.into_iter().unzip();
            let (counts, scratch) = (streamed_g1, scratch.reborrow());
            let pending = run.streamed(uploads, cut, &pieces, &sets, counts, scratch)?;
            g1.push((parts, pending));
        }
        let (parts, sets): (Vec<Part>, Vec<BaseSet<'_>>) = key.resident_sets().into_iter().unzip();
        let terms: Vec<TermCounts> = parts.iter().map(|part| count_of(*part)).collect();
        let bases = lent.sparse_g1.view();
        if !parts.is_empty() {
            match run.resident::<Fp>(bases, &sets, &terms, scratch.reborrow()) {
                Err(super::Error::Msm(Msm::TooLittleScratch { .. })) if parts.len() > 1 => {
                    for ((part, set), terms) in parts.iter().zip(&sets).zip(&terms) {
                        let (set, terms) = (std::slice::from_ref(set), std::slice::from_ref(terms));
                        let pending = run.resident::<Fp>(bases, set, terms, scratch.reborrow())?;
                        g1.push((vec![*part], pending));
                    }
                }
                pending => g1.push((parts, pending?)),
            }
        }
        let sets = [key.b_query.set(0)];
        let g2 = match (&lent.b_g2, &key.b_g2, &self.cut_g2) {
            (_, Points::Host(points), Some(cut)) => {
                let pieces = [&**points];
                run.streamed::<Fp2>(uploads, cut, &pieces, &sets, streamed_g2, scratch)?
            }
            (Some(points), ..) => {
                run.resident::<Fp2>(points.view(), &sets, &[count_of(Part::B2)], scratch)?
            }
            _ => unreachable!("a plan is made for where B2 is"),
        };
        Ok(PendingWitnessSums { g1, g2 })
    }
}

/// What runs over a witness share.
struct Run<'a, 'cx, 'env> {
    at: InSection<'a, 'cx, 'env>,
    stream: &'a Stream,
    witness: PackedWitness<'a>,
    limit: u64,
}

impl<'env> Run<'_, '_, 'env> {
    fn resident<F: DeviceCurve>(
        &self,
        bases: DeviceView<'_, Affine<F>>,
        sets: &[BaseSet<'_>],
        counts: &[TermCounts],
        scratch: DeviceViewMut<'_, u8>,
    ) -> Result<Pending<F>> {
        let info = self.at.cx.device().info();
        let variables = self.witness.bits.len() * 32;
        let plan = SparsePlan::<F>::new(info, variables, counts, self.limit)?;
        let result = result(self.at.cx, plan.result_len())?;
        let (launcher, witness) = (self.at.gpu.launcher(), self.witness);
        Ok(plan.run(launcher, self.stream, bases, witness, sets, scratch, result)?)
    }

    fn streamed<F: DeviceCurve>(
        &self,
        uploads: &TransferScope<'_, 'env>,
        cut: &Batches,
        pieces: &[&'env [Affine<F>]],
        sets: &[BaseSet<'_>],
        counts: &[TermCounts],
        scratch: DeviceViewMut<'_, u8>,
    ) -> Result<Pending<F>> {
        let info = self.at.cx.device().info();
        let variables = self.witness.bits.len() * 32;
        let plan = StreamedSparsePlan::<F>::new(info, variables, cut, 1, counts, self.limit)?;
        let result = result(self.at.cx, plan.result_len())?;
        let (launcher, witness) = (self.at.gpu.launcher(), [self.witness]);
        let bases = HostBases {
            pieces,
            uploads,
            pace: self.at.pace,
            bus: self.at.gpu.bus(),
        };
        Ok(plan.run(
            launcher,
            self.stream,
            bases,
            &witness,
            sets,
            scratch,
            result,
        )?)
    }
}
