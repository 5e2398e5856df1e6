//! What a sum is cut into, and the memory that takes.
//!
//! A *slab* is what is sorted at once: some windows of some scalar vectors. Its buckets are summed in one or more
//! *lists*. Either slab follows slab, and all use the same memory, sums of buckets included, since windows are reduced
//! before the next slab begins; or lists go through a pipeline, in which one is sorted and gathered while another is
//! added up, and windows are reduced at the end. Sums of ones, which need no window, are buckets of their own before
//! those of the first slab.

use cuzk_field::{Affine, Xyzz};
use cuzk_gpu_mem::{Carve, DeviceInfo};
use cuzk_kernels::windows::Windows;

use super::DeviceCurve;
use super::accumulate::{AccumulatePlan, PipelineShape};
use super::error::{Error, Result};
use super::slab::{Cut, Recoding, Reduction, Slab, reductions};
use super::term_lists::TermCounts;
use super::tuning::Tuning;

/// Slabs of entries that are added up at a time, and that are begun and not finished. H200, 2^26 points: 17.5 ms a window,
/// against 18.0 with one and two, and 18.9 with one of each.
const LANES: usize = 2;
const SLOTS: usize = 3;
/// Entries of a slab of a pipeline: more make it no faster.
const PIPELINE_ENTRIES: usize = 1 << 26;
/// With smaller slabs, for want of scratch, there is no pipeline.
const LEAST_PIPELINE_ENTRIES: usize = 1 << 24;

/// The sizes of the terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// Scalars of each vector.
    pub(super) vectors: Vec<usize>,
    /// Bases that are only added up, of each set of ones.
    pub(super) ones: Vec<usize>,
}

impl Terms {
    /// Of each witness and set.
    pub(super) fn sparse(counts: &[TermCounts]) -> Self {
        Self {
            vectors: counts.iter().map(|counts| counts.rest).collect(),
            ones: counts.iter().map(|counts| counts.ones).collect(),
        }
    }
}

/// What becomes of the sums of a slab's buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// The slab is reduced before the next one.
    UntilReduced,
    /// All slabs are reduced at the end, perhaps of several batches of terms.
    ToTheEnd,
}

/// How lists follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// One after another, on one stream.
    Sequence,
    /// Through a pipeline where there is scratch enough, on streams of its own.
    Pipeline,
}

/// A point of the result: of which window of which vector, or the sum of which ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    Ones(usize),
    Window { vector: usize, window: u32 },
}

/// What a layout is made of, beside terms and memory.
#[derive(Clone, Copy, Debug)]
struct Choice {
    tuning: Tuning,
    keep: Keep,
    /// Whether other batches of the sum come through the same pipeline.
    is_batch: bool,
    order: Order,
    cut: Cut,
}

/// How sums are computed, and in what memory.
#[derive(Debug)]
pub(super) struct Layout<F> {
    pub(super) windows: Windows,
    pub(super) terms: Terms,
    choice: Choice,
    pub(super) slabs: Vec<Slab<F>>,
    /// Of all slabs at the end, where sums are kept so long: each of the slabs has its own otherwise.
    pub(super) reductions: Vec<Reduction<F>>,
    pub(super) labels: Vec<Label>,
    pub(super) entries: usize,
    pub(super) offsets: usize,
    pub(super) sums: usize,
    /// Words of recoded scalars that several slabs read.
    pub(super) planes: usize,
    /// What sorting and reducing use one after the other, and without a pipeline accumulating, too.
    pub(super) work_bytes: usize,
    pub(super) pipeline: Option<PipelineShape>,
}

impl<F: DeviceCurve> Layout<F> {
    /// The layout with the largest slabs that `limit` bytes of scratch allow.
    pub(super) fn new(
        device: &DeviceInfo,
        tuning: &Tuning,
        terms: &Terms,
        keep: Keep,
        order: Order,
        limit: usize,
    ) -> Result<Self> {
        let windows = tuning.windows;
        let mut choice = Choice {
            tuning: *tuning,
            keep,
            is_batch: keep == Keep::ToTheEnd,
            order,
            cut: Cut::Together,
        };
        if order == Order::Pipeline {
            let in_pipeline = Choice {
                keep: Keep::ToTheEnd,
                cut: Cut::for_pipeline(tuning, &terms.vectors),
                ..choice
            };
            match Self::with(device, terms, in_pipeline, limit) {
                Ok(layout) => return Ok(layout),
                Err(error) if !is_too_much(&error) => return Err(error),
                Err(_) => {}
            }
        }
        choice.order = Order::Sequence;
        loop {
            let is_least = choice.cut
                == Cut::Groups {
                    first: 1,
                    others: 1,
                };
            match Self::with(device, terms, choice, limit) {
                Ok(layout) if layout.is_roomy() || is_least => return Ok(layout),
                Err(error) if is_least || !is_too_much(&error) => return Err(error),
                Ok(_) | Err(_) => {}
            }
            let group = match choice.cut {
                Cut::Together if terms.vectors.len() > 1 => windows.count(),
                Cut::Together => windows.count().div_ceil(2),
                Cut::Groups { others, .. } => others.div_ceil(2),
            };
            choice.cut = Cut::Groups {
                first: group,
                others: group,
            };
        }
    }

    /// The same slabs for a batch of at most as many terms.
    pub(super) fn for_batch(
        &self,
        device: &DeviceInfo,
        terms: &Terms,
        limit: usize,
    ) -> Result<Self> {
        Self::with(device, terms, self.choice, limit)
    }

    /// Makes its memory large enough for batches of the same sum.
    pub(super) fn cover(&mut self, batches: &[Self]) {
        for batch in batches {
            self.entries = self.entries.max(batch.entries);
            self.offsets = self.offsets.max(batch.offsets);
            self.planes = self.planes.max(batch.planes);
            self.work_bytes = self.work_bytes.max(batch.work_bytes);
        }
        if self.pipeline.is_some() {
            let batches = batches.iter().flat_map(Self::plans);
            let shape = PipelineShape::new(self.plans().chain(batches), LANES, SLOTS);
            self.pipeline = Some(shape);
        }
    }

    /// Whether no bucket range had to be cut.
    pub(super) fn is_roomy(&self) -> bool {
        self.plans().all(|plan| plan.slab_count() == 1)
    }

    /// The plans of all lists.
    pub(super) fn plans(&self) -> impl Iterator<Item = &AccumulatePlan<F>> {
        self.slabs
            .iter()
            .flat_map(|slab| &slab.lists)
            .map(|list| &list.plan)
    }

    fn with(device: &DeviceInfo, terms: &Terms, choice: Choice, limit: usize) -> Result<Self> {
        let windows = choice.tuning.windows;
        let mut layout = Self {
            windows,
            terms: terms.clone(),
            choice,
            slabs: Vec::new(),
            reductions: Vec::new(),
            labels: (0..terms.ones.len()).map(Label::Ones).collect(),
            entries: 0,
            offsets: 0,
            sums: 0,
            planes: 0,
            work_bytes: 0,
            pipeline: None,
        };
        for parts in choice.cut.slabs(&windows, terms.vectors.len()) {
            let ones: &[usize] = if layout.slabs.is_empty() {
                &terms.ones
            } else {
                &[]
            };
            for (vector, range) in &parts {
                layout
                    .labels
                    .extend(range.clone().map(|window| Label::Window {
                        vector: *vector,
                        window,
                    }));
            }
            let slab = Slab::new(windows, parts, &terms.vectors, ones)?;
            layout.push(slab)?;
        }
        if choice.keep == Keep::ToTheEnd {
            layout.plan_reductions(device, 0)?;
            let bytes = layout.reductions.iter().map(Reduction::scratch_bytes);
            layout.work_bytes = bytes.max().unwrap_or(0);
        }
        let fixed = layout.fixed_bytes();
        let left = limit.saturating_sub(fixed);
        let planned = match choice.order {
            Order::Sequence => layout.plan_sequence(device, left),
            Order::Pipeline => layout.plan_pipeline(device, left),
        };
        planned.map_err(|error| match error {
            Error::TooLittleScratch { needed, .. } => Error::TooLittleScratch {
                what: "a sum",
                needed: needed.saturating_add(fixed),
                limit,
            },
            other => other,
        })?;
        if layout.scratch_bytes() > limit {
            return Err(Error::TooLittleScratch {
                what: "a sum",
                needed: layout.scratch_bytes(),
                limit,
            });
        }
        Ok(layout)
    }

    /// Makes room for one more slab.
    fn push(&mut self, mut slab: Slab<F>) -> Result<()> {
        let entries = slab.max_entries();
        if entries > u32::MAX as usize {
            return Err(Error::TooLarge {
                what: "entries",
                most: u32::MAX as usize,
                found: entries,
            });
        }
        self.entries = self.entries.max(entries);
        self.offsets = self.offsets.max(slab.buckets() + 1);
        match self.choice.keep {
            Keep::UntilReduced => self.sums = self.sums.max(slab.buckets()),
            Keep::ToTheEnd => {
                slab.first_sum = self.sums;
                self.sums += slab.buckets();
            }
        }
        self.slabs.push(slab);
        Ok(())
    }

    /// Of all slabs together.
    fn plan_reductions(&mut self, device: &DeviceInfo, scratch_limit: usize) -> Result<()> {
        let sizes = self.slabs.iter().flat_map(Slab::window_sizes);
        let buckets: Vec<usize> = sizes.map(|(_, buckets)| buckets).collect();
        let ones = self.terms.ones.len();
        self.reductions = reductions(device, ones, &buckets, scratch_limit)?;
        Ok(())
    }

    fn plan_sequence(&mut self, device: &DeviceInfo, left: usize) -> Result<()> {
        for slab in &mut self.slabs {
            slab.plan(device, left)?;
            if slab.recoding == Recoding::Scratch && slab.sort_bytes() > left {
                slab.recoding = Recoding::None;
            }
            let lists = slab.lists.iter().map(|list| list.plan.scratch_bytes());
            let work = lists.fold(slab.sort_bytes(), usize::max);
            if self.choice.keep == Keep::UntilReduced {
                slab.plan_reductions(device, work)?;
            }
            self.work_bytes = self.work_bytes.max(work).max(slab.reduce_bytes());
        }
        Ok(())
    }

    /// Scalars of a vector are recoded by the first slab with it.
    fn plan_pipeline(&mut self, device: &DeviceInfo, left: usize) -> Result<()> {
        let mut vector = usize::MAX;
        for slab in &mut self.slabs {
            let first = slab.parts.first().map_or(usize::MAX, |(vector, _)| *vector);
            slab.recoding = match first == vector {
                true => Recoding::Reuse,
                false => Recoding::Keep,
            };
            vector = first;
            self.planes = self.planes.max(slab.plane_lens().sum());
            slab.plan(device, usize::MAX)?;
            self.work_bytes = self.work_bytes.max(slab.sort_bytes());
        }
        let left = left.saturating_sub(Carve::bytes_of::<u32>(self.planes));
        let left = left.saturating_sub(Carve::bytes_of::<u8>(self.work_bytes));
        let buckets = self.plans().map(AccumulatePlan::buckets).max().unwrap_or(0);
        let entries = self
            .plans()
            .map(AccumulatePlan::max_entries)
            .max()
            .unwrap_or(0);
        let mut slab_entries = PIPELINE_ENTRIES.min(entries.max(1));
        loop {
            let alone = AccumulatePlan::<F>::new(device, slab_entries, buckets, usize::MAX)?;
            for slab in &mut self.slabs {
                slab.plan(device, alone.scratch_bytes())?;
            }
            let shape = self.pipeline_shape();
            if shape.scratch_bytes() <= left {
                // The pipeline is done when windows are reduced.
                self.plan_reductions(device, shape.scratch_bytes())?;
                self.pipeline = Some(shape);
                return Ok(());
            }
            if slab_entries <= LEAST_PIPELINE_ENTRIES.min(entries) {
                return Err(Error::TooLittleScratch {
                    what: "a pipeline of lists",
                    needed: shape.scratch_bytes(),
                    limit: left,
                });
            }
            slab_entries /= 2;
        }
    }

    /// A pipeline takes no memory for more slabs than there are.
    fn pipeline_shape(&self) -> PipelineShape {
        let slabs = match self.choice.is_batch {
            true => SLOTS,
            false => self.plans().map(AccumulatePlan::slab_count).sum(),
        };
        PipelineShape::new(self.plans(), LANES.min(slabs), SLOTS.min(slabs))
    }

    fn fixed_bytes(&self) -> usize {
        Carve::bytes_of::<u32>(self.entries)
            + Carve::bytes_of::<u32>(self.offsets)
            + Carve::bytes_of::<Affine<F>>(self.sums)
            + Carve::bytes_of::<Xyzz<F>>(self.labels.len())
    }

    /// Bytes of the scratch that are in use when the pipeline is done: all but the end of its own.
    pub(super) fn bytes_beside_reductions(&self) -> usize {
        let of_reductions = self.reductions.iter().map(Reduction::scratch_bytes);
        let in_pipeline = of_reductions.filter(|bytes| *bytes > self.work_bytes);
        let kept = in_pipeline.max().unwrap_or(0).min(self.pipeline_bytes());
        self.scratch_bytes() - Carve::bytes_of::<u8>(self.pipeline_bytes())
            + Carve::bytes_of::<u8>(kept)
    }

    pub(super) fn pipeline_bytes(&self) -> usize {
        self.pipeline
            .as_ref()
            .map_or(0, PipelineShape::scratch_bytes)
    }

    /// Bytes of scratch of a run.
    pub(super) fn scratch_bytes(&self) -> usize {
        self.fixed_bytes()
            + Carve::bytes_of::<u32>(self.planes)
            + Carve::bytes_of::<u8>(self.work_bytes)
            + Carve::bytes_of::<u8>(self.pipeline_bytes())
    }
}

/// Whether smaller slabs could help.
fn is_too_much(error: &Error) -> bool {
    matches!(
        error,
        Error::TooLittleScratch { .. }
            | Error::TooLarge { .. }
            // Too many columns or entries for one sort.
            | Error::Kernel(cuzk_kernels::Error::Length { .. })
    )
}
