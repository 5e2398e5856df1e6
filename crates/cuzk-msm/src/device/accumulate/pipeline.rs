//! Several sorted lists over the same bases, one after another: what is bound by memory runs ahead of what is
//! bound by arithmetic.

use std::ops::Range;

use cuzk_field::Affine;
use cuzk_gpu_mem::driver::Priority;
use cuzk_gpu_mem::{Carve, Device, DeviceView, DeviceViewMut, Event, Stream};
use cuzk_kernels::pair_tree::{self, Homes, SLAB_WORDS};
use cuzk_kernels::{DeviceCurve, Launcher};

use super::super::error::{Error, Result};
use super::slab::{Job, Lane, Slot, Work};
use super::{AccumulatePlan, Existing, Sizes};

/// Blocks of the gathering half on one multiprocessor while another slab's additions run: enough for the rate of
/// random accesses. H200, 12 lists of 2^24 entries: 1, 2, 3 take 55.3, 53.7, 53.4 ms; of 2^26: 207.0, 206.5, 207.7.
const AHEAD_BLOCKS_PER_MULTIPROCESSOR: usize = 2;

/// The streams of a pipeline.
#[derive(Debug)]
pub struct Streams {
    ahead: Stream,
    lanes: [Stream; 2],
}

impl Streams {
    /// Streams of their own.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            ahead: device.stream_with("gather", Priority::High)?,
            lanes: [device.stream("add")?, device.stream("add")?],
        })
    }

    /// The stream on which lists are to be sorted: what is on it when one is pushed comes before its use, and
    /// what comes on it after finds entries and offsets free again.
    pub fn ahead(&self) -> &Stream {
        &self.ahead
    }

    /// Wipes what pipelines have used, behind all that has been put on the streams, and beside what comes after a pipeline
    /// on others.
    pub(in super::super) fn wipe(&self, scratch: DeviceViewMut<'_, u8>) -> Result<()> {
        let [first, second] = &self.lanes;
        first.follow(second)?;
        first.follow(&self.ahead)?;
        Ok(first.wipe(scratch)?)
    }

    /// All of them, for views to be lent to.
    pub fn all(&self) -> [&Stream; 3] {
        [&self.ahead, &self.lanes[0], &self.lanes[1]]
    }
}

/// The scratch of a pipeline.
#[derive(Clone, Debug)]
pub struct PipelineShape {
    sizes: Sizes,
    lanes: usize,
    slots: usize,
    slot_bytes: usize,
    lane_bytes: usize,
    ahead_blocks: usize,
}

impl PipelineShape {
    /// For lists of these plans: with `lanes` slabs added up at a time, 1 or 2, and `slots` begun and not
    /// finished, at least as many.
    pub fn new<'p, F: DeviceCurve>(
        plans: impl IntoIterator<Item = &'p AccumulatePlan<F>>,
        lanes: usize,
        slots: usize,
    ) -> Self {
        let sizes = plans.into_iter().map(AccumulatePlan::sizes);
        let sizes = sizes.fold(Sizes::default(), Sizes::max);
        let lanes = lanes.clamp(1, 2);
        Self {
            sizes,
            lanes,
            slots: slots.max(lanes),
            slot_bytes: sizes.slot_bytes::<F>(),
            lane_bytes: sizes.lane_bytes::<F>(),
            ahead_blocks: AHEAD_BLOCKS_PER_MULTIPROCESSOR,
        }
    }

    /// Another number of gathering blocks on a multiprocessor, for measurements.
    #[doc(hidden)]
    #[must_use]
    pub fn with_ahead_blocks(self, ahead_blocks: usize) -> Self {
        Self {
            ahead_blocks,
            ..self
        }
    }

    /// Bytes of scratch.
    pub fn scratch_bytes(&self) -> usize {
        let slots = self.slot_bytes.saturating_mul(self.slots);
        slots.saturating_add(self.lane_bytes.saturating_mul(self.lanes))
    }
}

/// Lists of one table of bases on their way. See [`PipelineShape::new`].
pub struct Pipeline<'a, F: DeviceCurve> {
    launcher: &'a dyn Launcher,
    ahead: &'a Stream,
    lane_streams: Vec<&'a Stream>,
    bases: DeviceView<'a, Affine<F>>,
    sizes: Sizes,
    ahead_blocks: usize,
    jobs: Vec<Job<'a, F>>,
    slots: Vec<Slot<'a>>,
    lanes: Vec<Lane<'a, F>>,
    /// Lists and slabs so far.
    jobs_begun: usize,
    slabs_begun: usize,
    /// When the slab that was last in each slot was done, and the addresses of its sums.
    done: Vec<Option<(Event, Range<u64>)>>,
}

impl<F: DeviceCurve> std::fmt::Debug for Pipeline<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline")
            .field("lists", &self.jobs_begun)
            .field("slabs", &self.slabs_begun)
            .finish_non_exhaustive()
    }
}

impl<'a, F: DeviceCurve> Pipeline<'a, F> {
    /// A pipeline that comes after what `stream` has been given so far. All views are lent to
    /// [`Streams::all`], and as many bytes as the shape says are scratch.
    pub fn new(
        launcher: &'a dyn Launcher,
        stream: &Stream,
        streams: &'a Streams,
        bases: DeviceView<'a, Affine<F>>,
        shape: &PipelineShape,
        scratch: DeviceViewMut<'a, u8>,
    ) -> Result<Self> {
        for side in streams.all() {
            side.follow(stream)?;
        }
        let lanes: Vec<&Stream> = streams.lanes.iter().take(shape.lanes).collect();
        Self::on(launcher, &streams.ahead, &lanes, bases, shape, scratch)
    }

    pub(super) fn on(
        launcher: &'a dyn Launcher,
        ahead: &'a Stream,
        lanes: &[&'a Stream],
        bases: DeviceView<'a, Affine<F>>,
        shape: &PipelineShape,
        scratch: DeviceViewMut<'a, u8>,
    ) -> Result<Self> {
        let sizes = &shape.sizes;
        let mut carve = Carve::new(scratch);
        let mut jobs = Vec::new();
        let mut slots = Vec::new();
        for _ in 0..shape.slots {
            jobs.push(Job::carve(sizes, &mut carve)?);
            slots.push(Slot::carve(sizes, &mut carve)?);
        }
        let lanes_carved = lanes.iter().map(|_| Lane::carve(sizes, &mut carve));
        Ok(Self {
            launcher,
            ahead,
            lane_streams: lanes.to_vec(),
            bases,
            sizes: *sizes,
            ahead_blocks: shape.ahead_blocks,
            jobs,
            lanes: lanes_carved.collect::<Result<_>>()?,
            done: slots.iter().map(|_| None).collect(),
            slots,
            jobs_begun: 0,
            slabs_begun: 0,
        })
    }

    /// One more list, as [`AccumulatePlan::run`] has it. `entries` and `offsets` may be overwritten on
    /// [`Streams::ahead`] from then on. `sums` that are added to are those of earlier lists in full, which are waited for; sums of lists
    /// that are replaced are not in use elsewhere.
    pub fn push(
        &mut self,
        plan: &'a AccumulatePlan<F>,
        entries: DeviceView<'_, u32>,
        offsets: DeviceView<'_, u32>,
        sums: DeviceViewMut<'_, Affine<F>>,
        existing: Existing,
    ) -> Result<()> {
        self.push_of(self.bases, plan, entries, offsets, sums, existing)
    }

    /// The same over other bases, lent as those of the pipeline.
    pub fn push_of(
        &mut self,
        bases: DeviceView<'_, Affine<F>>,
        plan: &'a AccumulatePlan<F>,
        entries: DeviceView<'_, u32>,
        offsets: DeviceView<'_, u32>,
        sums: DeviceViewMut<'_, Affine<F>>,
        existing: Existing,
    ) -> Result<()> {
        self.push_observed(bases, plan, entries, offsets, sums, existing, &mut |_| ())
    }

    #[expect(clippy::too_many_arguments, reason = "what there is to say")]
    pub(super) fn push_observed(
        &mut self,
        bases: DeviceView<'_, Affine<F>>,
        plan: &'a AccumulatePlan<F>,
        entries: DeviceView<'_, u32>,
        offsets: DeviceView<'_, u32>,
        mut sums: DeviceViewMut<'_, Affine<F>>,
        existing: Existing,
        launched: &mut dyn FnMut(&'static str),
    ) -> Result<()> {
        for (what, expected, found) in [
            ("sums", plan.buckets, sums.len()),
            ("offsets", plan.buckets + 1, offsets.len()),
        ] {
            if expected != found {
                return Err(Error::Length {
                    what,
                    expected,
                    found,
                });
            }
        }
        if plan.buckets == 0 {
            return Ok(());
        }
        let (launcher, ahead) = (self.launcher, self.ahead);
        let start = sums.ptr().0;
        let range = start..start + sums.bytes() as u64;
        if existing == Existing::AddTo {
            // Pairs of the first round take sums that are there.
            for (done, others) in self.done.iter().flatten() {
                if others.start < range.end && range.start < others.end {
                    ahead.wait_for(done)?;
                }
            }
        }
        let slot_count = self.slots.len();
        let job_index = self.jobs_begun % slot_count;
        self.jobs_begun += 1;
        let blocks = if self.lane_streams[0].id() == ahead.id() {
            usize::MAX
        } else {
            let multiprocessors = usize::try_from(ahead.device().info().multiprocessors);
            self.ahead_blocks * multiprocessors.unwrap_or(1).max(1)
        };
        for slab in 0..plan.slab_count {
            let slot_index = self.slabs_begun % slot_count;
            let lane_index = self.slabs_begun % self.lanes.len();
            self.slabs_begun += 1;
            let lane_stream = self.lane_streams[lane_index];
            let is_side = lane_stream.id() != ahead.id();
            if let Some((done, _)) = &self.done[slot_index] {
                ahead.wait_for(done)?;
            }
            let job = &mut self.jobs[job_index];
            let mut job_offsets = job.offsets.reborrow().slice(..=plan.buckets);
            let mut slabs = job.slabs.reborrow().slice(..plan.slab_count * SLAB_WORDS);
            if slab == 0 {
                ahead.copy(offsets, job_offsets.reborrow())?;
                pair_tree::slabs(
                    launcher,
                    ahead,
                    job_offsets.as_view(),
                    entries.len(),
                    plan.slab_entries,
                    slabs.reborrow(),
                )?;
            }
            let mut work = Work {
                plan,
                launcher,
                bases,
                existing,
                slab,
                offsets: job_offsets.as_view(),
                slabs: slabs.as_view(),
                homes: Homes {
                    sums: sums.reborrow(),
                    border: job.borders.reborrow().slice(slab..=slab),
                },
                slot: &mut self.slots[slot_index],
                launched: &mut *launched,
            };
            work.begin(ahead, entries, blocks)?;
            if is_side {
                lane_stream.wait_for(&ahead.record()?)?;
            }
            if slab == 0 && existing == Existing::Replace {
                let sums = work.homes.sums.reborrow();
                pair_tree::clear_empty(launcher, lane_stream, job_offsets.as_view(), sums)?;
            }
            work.finish(lane_stream, &mut self.lanes[lane_index])?;
            if slab + 1 == plan.slab_count && plan.slab_count > 1 {
                // Slabs that are not done are among those last in their slots.
                for (done, _) in self.done.iter().flatten() {
                    lane_stream.wait_for(done)?;
                }
                pair_tree::add_borders(
                    launcher,
                    lane_stream,
                    job_offsets.as_view(),
                    slabs.as_view(),
                    job.borders.as_view().slice(..plan.slab_count),
                    sums.reborrow(),
                )?;
            }
            self.done[slot_index] = Some((lane_stream.record()?, range.clone()));
        }
        debug_assert!(self.sizes.slabs >= plan.slab_count);
        Ok(())
    }

    /// What `stream` is given from now on comes after all lists.
    pub fn join(self, stream: &Stream) -> Result<()> {
        stream.follow(self.ahead)?;
        for lane in &self.lane_streams {
            stream.follow(lane)?;
        }
        Ok(())
    }
}
