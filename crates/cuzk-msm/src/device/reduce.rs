//! From the buckets of windows to one point a window: sum_k (k + 1) B_k.
//!
//! `kernels/include/cuzk/bucket_reduce.cuh` has the method: plain sums of rows and of columns, two mixed additions a
//! bucket, and weighted sums of those, which are about the square root of as many.

use std::marker::PhantomData;

use cuzk_field::{Affine, Xyzz};
use cuzk_gpu_mem::{Carve, DeviceInfo, DeviceView, DeviceViewMut, Stream};
use cuzk_kernels::bucket_reduce::{self, EqualWindows, Grid};
use cuzk_kernels::{DeviceCurve, Launcher};

use super::accumulate::{AccumulatePlan, Existing};
use super::error::{Error, Result};

/// Threads that keep a multiprocessor busy with point additions: more make shorter parts, whose sums take longer.
const THREADS_PER_MULTIPROCESSOR: usize = 256;
/// Buckets that one thread adds up at least and at most.
const PARTS: std::ops::RangeInclusive<usize> = 4..=64;
/// Buckets from which on pair trees pay: a round costs 50 us, and twelve of them are half of what they gain there.
const TREE_BUCKETS: usize = 1 << 22;
/// Buckets of a call at most, and windows.
const MAX_BUCKETS: usize = 1 << 29;
const MAX_WINDOWS: usize = 1 << 16;

/// How the buckets of some windows are reduced.
#[derive(Clone, Debug)]
pub struct ReducePlan<F> {
    windows: usize,
    buckets: usize,
    sizes: Vec<EqualWindows>,
    /// As many buckets as the largest window has.
    grid: Grid,
    /// Lines summed by pair trees: of all of them.
    trees: Option<AccumulatePlan<F>>,
    group: PhantomData<fn(F)>,
}

impl<F: DeviceCurve> ReducePlan<F> {
    /// A plan for windows, so many of so many buckets each, and then others.
    pub fn new(device: &DeviceInfo, sizes: &[(usize, usize)]) -> Result<Self> {
        let place = places(sizes).filter(|&place| is_possible(place));
        let Some(Places { windows, largest }) = place else {
            return Err(Error::TooLarge {
                what: "buckets",
                most: MAX_BUCKETS,
                found: places(sizes)
                    .map_or(usize::MAX, |all| all.windows.saturating_mul(all.largest)),
            });
        };
        let (mut first_window, mut buckets) = (0, 0);
        let sizes = sizes.iter().map(|&(count, each)| {
            let equal = EqualWindows {
                windows: first_window..first_window + count,
                buckets: each,
                first_bucket: buckets,
            };
            first_window += count;
            buckets += count * each;
            equal
        });
        let sizes = sizes.collect();
        let largest = largest.max(1);
        let log_columns = largest.next_power_of_two().ilog2().div_ceil(2);
        let multiprocessors = usize::try_from(device.multiprocessors).unwrap_or(0).max(1);
        let part = (2 * buckets / (THREADS_PER_MULTIPROCESSOR * multiprocessors))
            .clamp(*PARTS.start(), *PARTS.end());
        Ok(Self {
            windows,
            buckets,
            sizes,
            grid: Grid::new(windows, largest, log_columns, part),
            trees: None,
            group: PhantomData,
        })
    }

    /// Whether windows of these sizes can be reduced together.
    pub(super) fn can_have(sizes: &[(usize, usize)]) -> bool {
        places(sizes).is_some_and(is_possible)
    }

    /// The same with lines summed by pair trees, which is faster for many buckets and wants gigabytes of scratch,
    /// if there are so many buckets and that fits into the limit.
    pub fn with_scratch(
        device: &DeviceInfo,
        sizes: &[(usize, usize)],
        scratch_limit: usize,
    ) -> Result<Self> {
        let plan = Self::new(device, sizes)?;
        if plan.buckets < TREE_BUCKETS {
            return Ok(plan);
        }
        let trees = plan.clone().with_trees(device, scratch_limit);
        Ok(trees.unwrap_or(plan))
    }

    /// With lines summed by pair trees in any case.
    #[doc(hidden)]
    pub fn with_trees(self, device: &DeviceInfo, scratch_limit: usize) -> Result<Self> {
        let [entries, offsets, points] = self.tree_sizes();
        let own = self
            .weighing_bytes()
            .saturating_add(tree_bytes::<F>([entries, offsets, points]));
        let left = scratch_limit.saturating_sub(own);
        let trees = AccumulatePlan::new(device, entries, points, left)?;
        Ok(Self {
            trees: Some(trees),
            ..self
        })
    }

    /// Entries, offsets and points of the lines.
    fn tree_sizes(&self) -> [usize; 3] {
        let lines = self.windows * self.grid.lines();
        [2 * self.buckets, lines + 1, lines]
    }

    /// Lines and weighted sums.
    fn weighing_bytes(&self) -> usize {
        let [_, lines, pairs] = self.sizes();
        Carve::bytes_of::<Xyzz<F>>(lines).saturating_add(Carve::bytes_of::<Xyzz<F>>(pairs))
    }

    /// Windows.
    pub fn windows(&self) -> usize {
        self.windows
    }

    /// Buckets of all windows.
    pub fn buckets(&self) -> usize {
        self.buckets
    }

    /// Bytes of scratch of a run.
    pub fn scratch_bytes(&self) -> usize {
        let summing = match &self.trees {
            None => Carve::bytes_of::<Xyzz<F>>(self.sizes()[0]),
            Some(trees) => tree_bytes::<F>(self.tree_sizes()).saturating_add(trees.scratch_bytes()),
        };
        self.weighing_bytes().saturating_add(summing)
    }

    fn sizes(&self) -> [usize; 3] {
        [self.grid.parts(), self.grid.lines(), 2].map(|each| each * self.windows)
    }

    /// Leaves sum_k (k + 1) `B_k` of the buckets of window w in `out[w]`: `sums` has those of one window after another,
    /// canonical points on the curve, infinity (0, 0), `out` (windows) canonical coordinates.
    pub fn run(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        sums: DeviceView<'_, Affine<F>>,
        out: DeviceViewMut<'_, Xyzz<F>>,
        scratch: DeviceViewMut<'_, u8>,
    ) -> Result<()> {
        for (what, expected, found) in [
            ("sums", self.buckets, sums.len()),
            ("out", self.windows, out.len()),
        ] {
            if expected != found {
                return Err(Error::Length {
                    what,
                    expected,
                    found,
                });
            }
        }
        if self.buckets == 0 {
            // Infinity is all zero.
            return Ok(stream.fill(out, 0)?);
        }
        let [partial, lines, pairs] = self.sizes();
        let grid = &self.grid;
        let mut scratch = scratch.lend(&[stream])?;
        let mut carve = Carve::new(scratch.view_mut());
        let mut lines = carve.take::<Xyzz<F>>("sums of lines", lines)?;
        let mut pairs = carve.take::<Xyzz<F>>("weighted sums", pairs)?;
        if let Some(trees) = &self.trees {
            let [entries, offsets, points] = self.tree_sizes();
            let mut entries = carve.take::<u32>("entries of lines", entries)?;
            let mut offsets = carve.take::<u32>("offsets of lines", offsets)?;
            let mut points = carve.take::<Affine<F>>("lines", points)?;
            for equal in &self.sizes {
                let (own, own_offsets) = (entries.reborrow(), offsets.reborrow());
                bucket_reduce::line_entries(launcher, stream, grid, equal, own, own_offsets)?;
            }
            trees.run(
                launcher,
                stream,
                sums,
                entries.as_view(),
                offsets.as_view(),
                points.reborrow(),
                Existing::Replace,
                carve.rest(),
            )?;
            bucket_reduce::lift(launcher, stream, points.as_view(), lines.reborrow())?;
        } else {
            let mut partial = carve.take::<Xyzz<F>>("sums of parts", partial)?;
            for equal in &self.sizes {
                let own = partial.reborrow();
                bucket_reduce::sum_parts(launcher, stream, grid, equal, sums, own)?;
            }
            bucket_reduce::sum_lines(launcher, stream, grid, partial.as_view(), lines.reborrow())?;
        }
        bucket_reduce::weigh(launcher, stream, grid, lines.as_view(), pairs.reborrow())?;
        bucket_reduce::join(launcher, stream, grid, pairs.as_view(), out)?;
        Ok(())
    }
}

/// How many windows, and the buckets of the largest.
#[derive(Clone, Copy)]
struct Places {
    windows: usize,
    largest: usize,
}

fn places(sizes: &[(usize, usize)]) -> Option<Places> {
    let windows = sizes
        .iter()
        .try_fold(0_usize, |all, (count, _)| all.checked_add(*count))?;
    let largest = sizes.iter().map(|(_, buckets)| *buckets).max();
    Some(Places {
        windows,
        largest: largest.unwrap_or(0),
    })
}

/// All windows have a place for as many buckets as the largest.
fn is_possible(Places { windows, largest }: Places) -> bool {
    let all = windows.checked_mul(largest);
    all.is_some_and(|all| all <= MAX_BUCKETS) && windows <= MAX_WINDOWS
}

/// What the pair trees of lines read and write.
fn tree_bytes<F: DeviceCurve>([entries, offsets, points]: [usize; 3]) -> usize {
    Carve::bytes_of::<u32>(entries)
        .saturating_add(Carve::bytes_of::<u32>(offsets))
        .saturating_add(Carve::bytes_of::<Affine<F>>(points))
}
