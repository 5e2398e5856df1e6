//! What a sum is cut into, and the memory that takes.
//!
//! A *slab* is what is sorted at once: some windows of some scalar vectors. Its entries are summed bucket by bucket and
//! its windows reduced before the next slab begins, so all slabs use the same memory. Sums of ones, which need no
//! window, are buckets of their own in the first slab.

use std::ops::Range;

use cuzk_field::{Affine, Xyzz};
use cuzk_gpu_mem::{Carve, DeviceInfo};
use cuzk_kernels::bucket_sort::{PartShape, SortShape};
use cuzk_kernels::windows::Windows;

use super::DeviceCurve;
use super::accumulate::AccumulatePlan;
use super::error::{Error, Result};
use super::reduce::ReducePlan;

/// Entries of a window from which on it is accumulated alone: rounds are then long enough by themselves, and the
/// fewer buckets a round looks through the better.
const LARGE_WINDOW: usize = 1 << 24;

/// Windows of a slab from which on recoding the scalars once is cheaper than recoding them for each.
const RECODED_WINDOWS: usize = 3;

/// The sizes of the terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// Scalars of each vector.
    pub(super) vectors: Vec<usize>,
    /// Bases that are only added up, of each set of ones.
    pub(super) ones: Vec<usize>,
}

impl Terms {
    fn all_ones(&self) -> usize {
        self.ones.iter().sum()
    }
}

/// What is sorted at once.
#[derive(Debug)]
pub(super) struct Slab<F> {
    /// Vectors and windows, in the order of their buckets.
    pub(super) parts: Vec<(usize, Range<u32>)>,
    pub(super) shape: SortShape,
    /// How many buckets of ones precede the others, and how many entries.
    pub(super) ones: usize,
    pub(super) ones_entries: usize,
    pub(super) recodes: bool,
    /// Ranges of buckets accumulated together.
    pub(super) calls: Vec<(Range<usize>, AccumulatePlan<F>)>,
    /// Each of windows with equally many buckets.
    pub(super) reductions: Vec<Reduction<F>>,
    /// Where its sums begin.
    pub(super) first_sum: usize,
}

/// Windows reduced together.
#[derive(Debug)]
pub(super) struct Reduction<F> {
    /// The slab's buckets that it takes.
    pub(super) buckets: Range<usize>,
    pub(super) windows: usize,
    pub(super) plan: ReducePlan<F>,
}

/// How long sums of buckets are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// Until the slab is reduced.
    Slab,
    /// Over several batches of terms, all slabs at a time.
    Batches,
}

/// How terms are cut into slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    /// Windows of a slab, if not all.
    group: u32,
    /// All windows of all vectors in one slab.
    together: bool,
}

/// A point of the result: of which window of which vector, or the sum of which ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    Ones(usize),
    Window { vector: usize, window: u32 },
}

/// How sums are computed, and in what memory.
#[derive(Debug)]
pub(super) struct Layout<F> {
    pub(super) windows: Windows,
    pub(super) terms: Terms,
    cut: Cut,
    keep: Keep,
    pub(super) slabs: Vec<Slab<F>>,
    pub(super) labels: Vec<Label>,
    pub(super) entries: usize,
    pub(super) offsets: usize,
    pub(super) sums: usize,
    /// What sorting, accumulating and reducing use one after the other.
    pub(super) work_bytes: usize,
}

impl<F: DeviceCurve> Layout<F> {
    /// The layout with the largest slabs that `limit` bytes of scratch allow.
    pub(super) fn new(
        device: &DeviceInfo,
        windows: Windows,
        terms: &Terms,
        keep: Keep,
        limit: usize,
    ) -> Result<Self> {
        let mut cut = Cut {
            group: windows.count(),
            together: true,
        };
        loop {
            let is_least = cut.group == 1 && !cut.together;
            match Self::with_cut(device, windows, terms, keep, limit, cut) {
                Ok(layout) if layout.is_roomy() || is_least => return Ok(layout),
                Err(error) if is_least => return Err(error),
                Ok(_) | Err(Error::TooLittleScratch { .. } | Error::TooLarge { .. }) => {}
                // Too many columns or entries for one sort.
                Err(Error::Kernel(cuzk_kernels::Error::Length { .. })) => {}
                Err(error) => return Err(error),
            }
            if !cut.together || terms.vectors.len() == 1 {
                cut.group = cut.group.div_ceil(2);
            }
            cut.together = false;
        }
    }

    /// The same slabs for a batch of at most as many terms.
    pub(super) fn for_batch(
        &self,
        device: &DeviceInfo,
        terms: &Terms,
        limit: usize,
    ) -> Result<Self> {
        Self::with_cut(device, self.windows, terms, self.keep, limit, self.cut)
    }

    /// Whether no bucket range had to be cut.
    fn is_roomy(&self) -> bool {
        self.slabs
            .iter()
            .flat_map(|slab| &slab.calls)
            .all(|(_, call)| call.slab_count() == 1)
    }

    fn with_cut(
        device: &DeviceInfo,
        windows: Windows,
        terms: &Terms,
        keep: Keep,
        limit: usize,
        cut: Cut,
    ) -> Result<Self> {
        let mut slabs: Vec<Vec<(usize, Range<u32>)>> = Vec::new();
        let (count, wide) = (windows.count(), windows.wide());
        if cut.together && terms.vectors.len() == 1 {
            slabs.push(vec![(0, 0..count)]);
        } else if cut.together {
            // Windows with equally many buckets stand beside each other.
            let vectors = 0..terms.vectors.len();
            let wide_parts = vectors.clone().map(|vector| (vector, 0..wide));
            let narrow_parts = vectors.map(|vector| (vector, wide..count));
            let parts = wide_parts.chain(narrow_parts);
            slabs.push(parts.filter(|(_, range)| !range.is_empty()).collect());
        } else {
            for vector in 0..terms.vectors.len() {
                for first in (0..count).step_by(cut.group as usize) {
                    slabs.push(vec![(vector, first..count.min(first + cut.group))]);
                }
            }
        }
        if slabs.is_empty() {
            slabs.push(Vec::new());
        }
        let mut layout = Self {
            windows,
            terms: terms.clone(),
            cut,
            keep,
            slabs: Vec::with_capacity(slabs.len()),
            labels: (0..terms.ones.len()).map(Label::Ones).collect(),
            entries: 0,
            offsets: 0,
            sums: 0,
            work_bytes: 0,
        };
        let mut shapes = Vec::with_capacity(slabs.len());
        for (index, parts) in slabs.iter().enumerate() {
            let part_shapes = parts.iter().map(|(vector, windows)| PartShape {
                scalars: terms.vectors[*vector],
                windows: windows.clone(),
            });
            let shape = SortShape::new(windows, part_shapes.collect())?;
            let (ones, ones_entries) = if index == 0 {
                (terms.ones.len(), terms.all_ones())
            } else {
                (0, 0)
            };
            let entries = ones_entries + shape.max_entries();
            if entries > u32::MAX as usize {
                return Err(Error::TooLarge {
                    what: "entries",
                    most: u32::MAX as usize,
                    found: entries,
                });
            }
            layout.entries = layout.entries.max(entries);
            layout.offsets = layout.offsets.max(ones + shape.buckets() + 1);
            let sums = ones + shape.buckets();
            let first_sum = match keep {
                Keep::Slab => {
                    layout.sums = layout.sums.max(sums);
                    0
                }
                Keep::Batches => {
                    layout.sums += sums;
                    layout.sums - sums
                }
            };
            for (vector, range) in parts {
                layout
                    .labels
                    .extend(range.clone().map(|window| Label::Window {
                        vector: *vector,
                        window,
                    }));
            }
            shapes.push((shape, ones, ones_entries, first_sum));
        }
        let fixed = layout.fixed_bytes();
        let work_limit = limit.saturating_sub(fixed);
        for (parts, (shape, ones, ones_entries, first_sum)) in slabs.into_iter().zip(shapes) {
            let mut slab = Slab::new(device, parts, shape, ones, ones_entries, work_limit)?;
            slab.first_sum = first_sum;
            layout.work_bytes = layout.work_bytes.max(slab.work_bytes());
            layout.slabs.push(slab);
        }
        if layout.work_bytes > work_limit {
            return Err(Error::TooLittleScratch {
                what: "a sum",
                needed: layout.scratch_bytes(),
                limit,
            });
        }
        Ok(layout)
    }

    fn fixed_bytes(&self) -> usize {
        Carve::bytes_of::<u32>(self.entries)
            + Carve::bytes_of::<u32>(self.offsets)
            + Carve::bytes_of::<Affine<F>>(self.sums)
            + Carve::bytes_of::<Xyzz<F>>(self.labels.len())
    }

    /// Bytes of scratch of a run.
    pub(super) fn scratch_bytes(&self) -> usize {
        self.fixed_bytes() + Carve::bytes_of::<u8>(self.work_bytes)
    }
}

impl<F: DeviceCurve> Slab<F> {
    fn new(
        device: &DeviceInfo,
        parts: Vec<(usize, Range<u32>)>,
        shape: SortShape,
        ones: usize,
        ones_entries: usize,
        work_limit: usize,
    ) -> Result<Self> {
        let sizes: Vec<(usize, usize)> = shape
            .parts()
            .iter()
            .flat_map(|part| {
                let windows = shape.windows();
                let buckets = part.windows.clone().map(|w| windows.buckets_of(w));
                buckets.map(|buckets| (part.scalars, buckets))
            })
            .collect();
        let mut calls = Vec::new();
        let mut call = |first: usize, buckets: usize, entries: usize| -> Result<()> {
            if buckets > 0 {
                let plan = AccumulatePlan::new(device, entries, buckets, work_limit)?;
                calls.push((first..first + buckets, plan));
            }
            Ok(())
        };
        // Small windows together with the ones; each large one alone.
        let mut first = 0;
        let (mut buckets, mut entries) = (ones, ones_entries);
        for (terms, window_buckets) in &sizes {
            if *terms >= LARGE_WINDOW {
                call(first, buckets, entries)?;
                first += buckets;
                call(first, *window_buckets, *terms)?;
                first += window_buckets;
                (buckets, entries) = (0, 0);
            } else {
                buckets += window_buckets;
                entries += terms;
            }
        }
        call(first, buckets, entries)?;

        let mut reductions = Vec::new();
        let mut first = 0;
        let mut reduction = |windows: usize, buckets: usize| -> Result<()> {
            let end = first + windows * buckets;
            reductions.push(Reduction {
                buckets: first..end,
                windows,
                plan: ReducePlan::new(device, windows, buckets)?,
            });
            first = end;
            Ok(())
        };
        if ones > 0 {
            reduction(ones, 1)?;
        }
        for run in sizes.chunk_by(|a, b| a.1 == b.1) {
            reduction(run.len(), run[0].1)?;
        }
        let mut slab = Self {
            recodes: parts
                .iter()
                .any(|(_, windows)| windows.len() >= RECODED_WINDOWS),
            parts,
            shape,
            ones,
            ones_entries,
            calls,
            reductions,
            first_sum: 0,
        };
        if slab.sort_bytes() > work_limit {
            slab.recodes = false;
        }
        Ok(slab)
    }

    /// Bytes of recoded scalars, and of the sort itself.
    fn sort_bytes(&self) -> usize {
        let recoded: usize = self.recoded_lens().map(Carve::bytes_of::<u32>).sum();
        recoded + self.shape.scratch_bytes()
    }

    /// Words of recoded scalars of each part.
    pub(super) fn recoded_lens(&self) -> impl Iterator<Item = usize> + '_ {
        let words = if self.recodes { 8 } else { 0 };
        self.shape
            .parts()
            .iter()
            .map(move |part| words * part.scalars)
    }

    fn work_bytes(&self) -> usize {
        let calls = self.calls.iter().map(|(_, plan)| plan.scratch_bytes());
        let reductions = self
            .reductions
            .iter()
            .map(|reduction| reduction.plan.scratch_bytes());
        calls.chain(reductions).fold(self.sort_bytes(), usize::max)
    }
}
