//! Slab after slab: sort, accumulate, reduce.

use cuzk_field::{Affine, Xyzz};
use cuzk_gpu_mem::{Carve, DeviceView, DeviceViewMut, PinnedBuf, Stream};
use cuzk_kernels::Launcher;
use cuzk_kernels::bucket_sort::{BaseIndices, Part, Scalars, SortTarget, sort};

use super::DeviceCurve;
use super::accumulate::Existing;
use super::error::{Error, Result};
use super::layout::{Layout, Slab};
use super::pending::Pending;

/// A vector of scalars and the bases they go with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vector<'a> {
    pub(super) scalars: Scalars<'a>,
    pub(super) bases: BaseIndices<'a>,
}

pub(super) fn check(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found {
        Ok(())
    } else {
        Err(Error::Length {
            what,
            expected,
            found,
        })
    }
}

/// The memory of a run.
pub(super) struct Arrays<'a, F: DeviceCurve> {
    pub(super) entries: DeviceViewMut<'a, u32>,
    pub(super) offsets: DeviceViewMut<'a, u32>,
    pub(super) sums: DeviceViewMut<'a, Affine<F>>,
    pub(super) points: DeviceViewMut<'a, Xyzz<F>>,
    pub(super) work: DeviceViewMut<'a, u8>,
}

impl<'a, F: DeviceCurve> Arrays<'a, F> {
    pub(super) fn carve(layout: &Layout<F>, carve: &mut Carve<'a>) -> Result<Self> {
        Ok(Self {
            entries: carve.take("entries", layout.entries)?,
            offsets: carve.take("offsets", layout.offsets)?,
            sums: carve.take("sums of buckets", layout.sums)?,
            points: carve.take("sums of windows", layout.labels.len())?,
            work: carve.take("work", layout.work_bytes)?,
        })
    }
}

/// Where kernels go.
#[derive(Clone, Copy)]
pub(super) struct Queue<'a> {
    pub(super) launcher: &'a dyn Launcher,
    pub(super) stream: &'a Stream,
}

impl<F: DeviceCurve> Slab<F> {
    /// Sorts the digits of the slab's windows behind the entries of ones.
    pub(super) fn sort(
        &self,
        queue: Queue<'_>,
        vectors: &[Vector<'_>],
        arrays: &mut Arrays<'_, F>,
    ) -> Result<()> {
        let mut carve = Carve::new(arrays.work.reborrow());
        let mut parts = Vec::with_capacity(self.parts.len());
        for ((vector, _), recoded_len) in self.parts.iter().zip(self.recoded_lens()) {
            let Vector { scalars, bases } = vectors[*vector];
            let recoded = if self.recodes {
                Some(carve.take("recoded scalars", recoded_len)?)
            } else {
                None
            };
            parts.push(Part {
                scalars,
                bases,
                recoded,
            });
        }
        let (first, end) = (
            self.ones_entries,
            self.ones_entries + self.shape.max_entries(),
        );
        let target = SortTarget {
            first_entry: first as u32,
            entries: arrays.entries.reborrow().slice(first..end),
            offsets: arrays
                .offsets
                .reborrow()
                .slice(self.ones..=self.ones + self.shape.buckets()),
        };
        sort(
            queue.launcher,
            queue.stream,
            &self.shape,
            &parts,
            target,
            carve.rest(),
        )?;
        Ok(())
    }

    /// Sums of the slab's buckets.
    pub(super) fn accumulate(
        &self,
        queue: Queue<'_>,
        bases: DeviceView<'_, Affine<F>>,
        existing: Existing,
        arrays: &mut Arrays<'_, F>,
    ) -> Result<()> {
        for (buckets, plan) in &self.calls {
            plan.run(
                queue.launcher,
                queue.stream,
                bases,
                arrays.entries.as_view(),
                arrays.offsets.as_view().slice(buckets.start..=buckets.end),
                arrays
                    .sums
                    .reborrow()
                    .slice(self.first_sum + buckets.start..self.first_sum + buckets.end),
                existing,
                arrays.work.reborrow(),
            )?;
        }
        Ok(())
    }

    /// One point for each set of ones and each window; how many.
    pub(super) fn reduce(
        &self,
        queue: Queue<'_>,
        first_point: usize,
        arrays: &mut Arrays<'_, F>,
    ) -> Result<usize> {
        let mut point = first_point;
        for reduction in &self.reductions {
            let end = point + reduction.windows;
            let sums = arrays.sums.as_view().slice(self.first_sum..);
            reduction.plan.run(
                queue.launcher,
                queue.stream,
                sums.slice(reduction.buckets.clone()),
                arrays.points.reborrow().slice(point..end),
                arrays.work.reborrow(),
            )?;
            point = end;
        }
        Ok(point - first_point)
    }
}

/// Puts the whole of a sum on the stream. The entries of ones, and their offsets, are there already.
pub(super) fn run<F: DeviceCurve>(
    layout: &Layout<F>,
    queue: Queue<'_>,
    bases: DeviceView<'_, Affine<F>>,
    vectors: &[Vector<'_>],
    mut arrays: Arrays<'_, F>,
    result: PinnedBuf<Xyzz<F>>,
) -> Result<Pending<F>> {
    check("result", layout.labels.len(), result.len())?;
    let mut point = 0;
    for slab in &layout.slabs {
        slab.sort(queue, vectors, &mut arrays)?;
        slab.accumulate(queue, bases, Existing::Replace, &mut arrays)?;
        point += slab.reduce(queue, point, &mut arrays)?;
    }
    let transfer = queue.stream.download(arrays.points.as_view(), result)?;
    Ok(Pending::new(transfer, layout))
}
