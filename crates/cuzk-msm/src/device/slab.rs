//! What is sorted at once, and the lists that are accumulated of it.

use std::ops::Range;

use cuzk_gpu_mem::{Carve, DeviceInfo};
use cuzk_kernels::bucket_sort::{PartShape, SortShape};
use cuzk_kernels::windows::Windows;

use super::DeviceCurve;
use super::accumulate::AccumulatePlan;
use super::error::Result;
use super::reduce::ReducePlan;
use super::tuning::Tuning;

/// Entries of a window from which on it is a list of its own: rounds are then long enough by themselves, and the
/// fewer buckets a round looks through the better. An H query has one point less than a power of two.
const LARGE_WINDOW: usize = (1 << 24) - 1;
/// Ones from which on they are a list of their own.
const MANY_ONES: usize = 1 << 20;
/// Windows from which on recoding the scalars once is cheaper than recoding them for each.
const RECODED_WINDOWS: usize = 3;

/// Where a slab's digits are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recoding {
    /// The scalars, for each window anew.
    None,
    /// Planes that the slab makes, in scratch of the sort.
    Scratch,
    /// Planes that it makes for later slabs, too.
    Keep,
    /// Planes that an earlier slab has made.
    Reuse,
}

/// How windows are cut into slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// All windows of all vectors are one.
    Together,
    /// So many windows of one vector, first of all and then.
    Groups { first: u32, others: u32 },
}

impl Cut {
    /// Slabs of a list each, or of a few large ones: what has to be sorted before anything can be added up is short.
    pub(super) fn for_pipeline(tuning: &Tuning, vectors: &[usize]) -> Self {
        let Tuning {
            windows,
            list_entries,
            ..
        } = tuning;
        let multiples = windows.multiples() as usize;
        let most = multiples * vectors.iter().copied().max().unwrap_or(0).max(1);
        let all = vectors.iter().sum::<usize>() * multiples * windows.count() as usize;
        if all <= *list_entries {
            return Self::Together;
        }
        if most >= LARGE_WINDOW {
            return Self::Groups {
                first: 1,
                others: RECODED_WINDOWS as u32,
            };
        }
        let group = (list_entries / most).clamp(1, windows.count() as usize) as u32;
        Self::Groups {
            first: group,
            others: group,
        }
    }

    /// Vectors and windows of each slab.
    pub(super) fn slabs(self, windows: &Windows, vectors: usize) -> Vec<Vec<(usize, Range<u32>)>> {
        let (count, wide) = (windows.count(), windows.wide());
        let mut slabs = Vec::new();
        match self {
            Self::Together if vectors == 1 => slabs.push(vec![(0, 0..count)]),
            Self::Together => {
                // Windows with equally many buckets stand beside each other.
                let wide_parts = (0..vectors).map(|vector| (vector, 0..wide));
                let narrow_parts = (0..vectors).map(|vector| (vector, wide..count));
                let parts = wide_parts.chain(narrow_parts);
                slabs.push(parts.filter(|(_, range)| !range.is_empty()).collect());
            }
            Self::Groups { first, others } => {
                for vector in 0..vectors {
                    let mut start = 0;
                    while start < count {
                        let group = if slabs.is_empty() { first } else { others };
                        let end = count.min(start + group);
                        slabs.push(vec![(vector, start..end)]);
                        start = end;
                    }
                }
            }
        }
        slabs
    }
}

/// Buckets that are accumulated together.
#[derive(Debug)]
pub(super) struct List<F> {
    pub(super) buckets: Range<usize>,
    pub(super) plan: AccumulatePlan<F>,
}

/// Windows reduced together.
#[derive(Debug)]
pub(super) struct Reduction<F> {
    pub(super) buckets: Range<usize>,
    pub(super) windows: usize,
    pub(super) plan: ReducePlan<F>,
}

impl<F: DeviceCurve> Reduction<F> {
    pub(super) fn scratch_bytes(&self) -> usize {
        self.plan.scratch_bytes()
    }
}

/// Reductions of so many sums of ones, and of windows with so many buckets that follow them: one, as far as can be, since
/// each takes most of a millisecond however small it is. Within the limit they may use scratch to be faster.
pub(super) fn reductions<F: DeviceCurve>(
    device: &DeviceInfo,
    ones: usize,
    windows: &[usize],
    scratch_limit: usize,
) -> Result<Vec<Reduction<F>>> {
    let mut groups: Vec<Vec<(usize, usize)>> = Vec::new();
    let ones = (ones > 0).then_some((ones, 1));
    let equal = windows.chunk_by(|a, b| a == b);
    for size in ones.into_iter().chain(equal.map(|run| (run.len(), run[0]))) {
        if let Some(group) = groups.last_mut() {
            group.push(size);
            if ReducePlan::<F>::can_have(group) {
                continue;
            }
            group.pop();
        }
        groups.push(vec![size]);
    }
    let mut first = 0;
    let all = groups.iter().map(|sizes| {
        let plan = ReducePlan::with_scratch(device, sizes, scratch_limit)?;
        let buckets = first..first + plan.buckets();
        first = buckets.end;
        Ok(Reduction {
            buckets,
            windows: plan.windows(),
            plan,
        })
    });
    all.collect()
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
    /// The first lists, which need no sort.
    pub(super) unsorted_lists: usize,
    pub(super) recoding: Recoding,
    pub(super) lists: Vec<List<F>>,
    pub(super) reductions: Vec<Reduction<F>>,
    /// Where its sums begin.
    pub(super) first_sum: usize,
}

impl<F: DeviceCurve> Slab<F> {
    pub(super) fn new(
        windows: Windows,
        parts: Vec<(usize, Range<u32>)>,
        vectors: &[usize],
        ones: &[usize],
    ) -> Result<Self> {
        let part_shapes = parts.iter().map(|(vector, windows)| PartShape {
            scalars: vectors[*vector],
            windows: windows.clone(),
        });
        let shape = SortShape::new(windows, part_shapes.collect())?;
        let recodes = parts
            .iter()
            .any(|(_, sets)| sets.len() * windows.multiples() as usize >= RECODED_WINDOWS);
        Ok(Self {
            parts,
            shape,
            ones: ones.len(),
            ones_entries: ones.iter().sum(),
            unsorted_lists: 0,
            recoding: if recodes {
                Recoding::Scratch
            } else {
                Recoding::None
            },
            lists: Vec::new(),
            reductions: Vec::new(),
            first_sum: 0,
        })
    }

    pub(super) fn buckets(&self) -> usize {
        self.ones + self.shape.buckets()
    }

    pub(super) fn max_entries(&self) -> usize {
        self.ones_entries + self.shape.max_entries()
    }

    /// Terms and buckets of each window.
    pub(super) fn window_sizes(&self) -> Vec<(usize, usize)> {
        let windows = self.shape.windows();
        let parts = self.shape.parts().iter();
        let sizes = parts.flat_map(|part| {
            let range = part.windows.clone();
            let terms = part.scalars * windows.multiples() as usize;
            range.map(move |window| (terms, windows.buckets_of(window)))
        });
        sizes.collect()
    }

    /// Plans lists, each in at most `limit` bytes.
    pub(super) fn plan(&mut self, device: &DeviceInfo, limit: usize) -> Result<()> {
        let sizes = self.window_sizes();
        self.lists.clear();
        let mut first = 0;
        let (mut buckets, mut entries) = (self.ones, self.ones_entries);
        let mut list = |buckets: usize, entries: usize| -> Result<()> {
            if buckets > 0 {
                self.lists.push(List {
                    buckets: first..first + buckets,
                    plan: AccumulatePlan::new(device, entries, buckets, limit)?,
                });
            }
            first += buckets;
            Ok(())
        };
        self.unsorted_lists = 0;
        if self.ones_entries >= MANY_ONES {
            list(buckets, entries)?;
            (buckets, entries) = (0, 0);
            self.unsorted_lists = 1;
        }
        for (terms, window_buckets) in &sizes {
            if *terms >= LARGE_WINDOW {
                list(buckets, entries)?;
                list(*window_buckets, *terms)?;
                (buckets, entries) = (0, 0);
            } else {
                buckets += window_buckets;
                entries += terms;
            }
        }
        list(buckets, entries)?;
        Ok(())
    }

    /// Plans the slab's own reductions.
    pub(super) fn plan_reductions(
        &mut self,
        device: &DeviceInfo,
        scratch_limit: usize,
    ) -> Result<()> {
        let sizes = self.window_sizes();
        let buckets: Vec<usize> = sizes.iter().map(|(_, buckets)| *buckets).collect();
        self.reductions = reductions(device, self.ones, &buckets, scratch_limit)?;
        Ok(())
    }

    /// Bytes of the sort, with recoded scalars that it makes for itself.
    pub(super) fn sort_bytes(&self) -> usize {
        let recoded = match self.recoding {
            Recoding::Scratch => self.plane_lens().map(Carve::bytes_of::<u32>).sum(),
            Recoding::None | Recoding::Keep | Recoding::Reuse => 0,
        };
        recoded + self.shape.scratch_bytes()
    }

    pub(super) fn reduce_bytes(&self) -> usize {
        let reductions = self.reductions.iter();
        let bytes = reductions.map(Reduction::scratch_bytes);
        bytes.max().unwrap_or(0)
    }

    /// Words of recoded scalars of each part.
    pub(super) fn plane_lens(&self) -> impl Iterator<Item = usize> + '_ {
        let parts = self.shape.parts().iter();
        parts.map(|part| 8 * part.scalars)
    }
}
