//! Sort, accumulate, reduce: slab after slab, or through a pipeline.

use cuzk_field::{Affine, Fr, Scalar, Xyzz};
use cuzk_gpu_mem::{Carve, DeviceView, DeviceViewMut, Lent, PinnedBuf, Stream};
use cuzk_kernels::Launcher;
use cuzk_kernels::bucket_sort::{BaseIndices, Part, Scalars, SortTarget, sort};

use super::DeviceCurve;
use super::accumulate::{Existing, Pipeline, Streams};
use super::error::{Error, Result};
use super::layout::Layout;
use super::pending::Pending;
use super::slab::{Recoding, Reduction, Slab};

/// A vector of scalars and the bases they go with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vector<'a> {
    pub(super) scalars: Scalars<'a>,
    pub(super) bases: BaseIndices<'a>,
    /// How far multiples of a base are apart, where windows are in groups.
    pub(super) multiple_stride: u32,
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

/// Scalars lent to several streams.
pub(super) enum LentScalars<'a> {
    Canonical(Lent<'a, Scalar>),
    Montgomery(Lent<'a, Fr>),
    Recoded(Lent<'a, u32>),
}

impl<'a> LentScalars<'a> {
    pub(super) fn new(scalars: Scalars<'a>, streams: &[&Stream]) -> Result<Self> {
        Ok(match scalars {
            Scalars::Canonical(view) => Self::Canonical(view.lend(streams)?),
            Scalars::Montgomery(view) => Self::Montgomery(view.lend(streams)?),
            Scalars::Recoded(view) => Self::Recoded(view.lend(streams)?),
        })
    }

    pub(super) fn scalars(&self) -> Scalars<'_> {
        match self {
            Self::Canonical(lent) => Scalars::Canonical(lent.view()),
            Self::Montgomery(lent) => Scalars::Montgomery(lent.view()),
            Self::Recoded(lent) => Scalars::Recoded(lent.view()),
        }
    }
}

/// The memory of a run.
pub(super) struct Arrays<'a, F: DeviceCurve> {
    pub(super) entries: DeviceViewMut<'a, u32>,
    pub(super) offsets: DeviceViewMut<'a, u32>,
    sums: DeviceViewMut<'a, Affine<F>>,
    points: DeviceViewMut<'a, Xyzz<F>>,
    /// Recoded scalars that several slabs read.
    planes: DeviceViewMut<'a, u32>,
    work: DeviceViewMut<'a, u8>,
    /// Of the pipeline; then of what comes after it.
    pub(super) pipeline: DeviceViewMut<'a, u8>,
}

impl<'a, F: DeviceCurve> Arrays<'a, F> {
    pub(super) fn carve(layout: &Layout<F>, carve: &mut Carve<'a>) -> Result<Self> {
        Ok(Self {
            entries: carve.take("entries", layout.entries)?,
            offsets: carve.take("offsets", layout.offsets)?,
            sums: carve.take("sums of buckets", layout.sums)?,
            points: carve.take("sums of windows", layout.labels.len())?,
            planes: carve.take("recoded scalars", layout.planes)?,
            work: carve.take("work", layout.work_bytes)?,
            pipeline: carve.take("pipeline", layout.pipeline_bytes())?,
        })
    }

    /// Takes the pipeline's scratch.
    pub(super) fn split(self) -> (Self, DeviceViewMut<'a, u8>) {
        let (none, pipeline) = self.pipeline.split_at(0);
        let arrays = Self {
            pipeline: none,
            ..self
        };
        (arrays, pipeline)
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
    fn sort(
        &self,
        queue: Queue<'_>,
        vectors: &[Vector<'_>],
        arrays: &mut Arrays<'_, F>,
    ) -> Result<()> {
        let mut carve = Carve::new(arrays.work.reborrow());
        let mut planes = arrays.planes.reborrow();
        let mut parts = Vec::with_capacity(self.parts.len());
        for ((vector, _), plane_len) in self.parts.iter().zip(self.plane_lens()) {
            let Vector {
                scalars,
                bases,
                multiple_stride,
            } = vectors[*vector];
            let is_recoded = matches!(scalars, Scalars::Recoded(_));
            let (scalars, recoded) = match self.recoding {
                _ if is_recoded => (scalars, None),
                Recoding::None => (scalars, None),
                Recoding::Scratch => {
                    let planes = carve.take("recoded scalars", plane_len)?;
                    (scalars, Some(planes))
                }
                Recoding::Keep => {
                    let (own, others) = planes.split_at(plane_len);
                    planes = others;
                    (scalars, Some(own))
                }
                Recoding::Reuse => {
                    let (own, others) = planes.split_at(plane_len);
                    planes = others;
                    (Scalars::Recoded(own.into_view()), None)
                }
            };
            parts.push(Part {
                scalars,
                bases,
                multiple_stride,
                recoded,
            });
        }
        let offsets = arrays.offsets.reborrow().slice(self.ones..);
        let entries = arrays.entries.reborrow().slice(self.ones_entries..);
        let target = SortTarget {
            first_entry: self.ones_entries as u32,
            entries: entries.slice(..self.shape.max_entries()),
            offsets: offsets.slice(..=self.shape.buckets()),
        };
        let scratch = carve.rest();
        let Queue { launcher, stream } = queue;
        sort(launcher, stream, &self.shape, &parts, target, scratch)?;
        Ok(())
    }

    /// Sorts, and sums the buckets.
    pub(super) fn accumulate(
        &self,
        queue: Queue<'_>,
        bases: DeviceView<'_, Affine<F>>,
        vectors: &[Vector<'_>],
        existing: Existing,
        arrays: &mut Arrays<'_, F>,
    ) -> Result<()> {
        self.sort(queue, vectors, arrays)?;
        for list in &self.lists {
            let buckets = list.buckets.clone();
            let sums = arrays.sums.reborrow().slice(self.first_sum..);
            list.plan.run(
                queue.launcher,
                queue.stream,
                bases,
                arrays.entries.as_view(),
                arrays.offsets.as_view().slice(buckets.start..=buckets.end),
                sums.slice(buckets.clone()),
                existing,
                arrays.work.reborrow(),
            )?;
        }
        Ok(())
    }

    /// The same through a pipeline, ones before the sort.
    pub(super) fn push_to<'p>(
        &'p self,
        pipeline: &mut Pipeline<'p, F>,
        queue: Queue<'_>,
        bases: DeviceView<'_, Affine<F>>,
        vectors: &[Vector<'_>],
        existing: Existing,
        arrays: &mut Arrays<'_, F>,
    ) -> Result<()> {
        for (index, list) in self.lists.iter().enumerate() {
            if index == self.unsorted_lists {
                self.sort(queue, vectors, arrays)?;
            }
            let Arrays {
                entries,
                offsets,
                sums,
                ..
            } = arrays;
            let buckets = list.buckets.clone();
            let sums = sums.reborrow().slice(self.first_sum..);
            pipeline.push_of(
                bases,
                &list.plan,
                entries.as_view(),
                offsets.as_view().slice(buckets.start..=buckets.end),
                sums.slice(buckets),
                existing,
            )?;
        }
        Ok(())
    }
}

/// One point for each set of ones and each window that the reductions take, from `first_point` on; how many.
fn reduce<F: DeviceCurve>(
    reductions: &[Reduction<F>],
    queue: Queue<'_>,
    first_point: usize,
    arrays: &mut Arrays<'_, F>,
) -> Result<usize> {
    let mut point = first_point;
    for reduction in reductions {
        let end = point + reduction.windows;
        let scratch = if arrays.work.len() < reduction.scratch_bytes() {
            arrays.pipeline.reborrow()
        } else {
            arrays.work.reborrow()
        };
        reduction.plan.run(
            queue.launcher,
            queue.stream,
            arrays.sums.as_view().slice(reduction.buckets.clone()),
            arrays.points.reborrow().slice(point..end),
            scratch,
        )?;
        point = end;
    }
    Ok(point - first_point)
}

/// Reduces what is kept, and sends all points to the host.
pub(super) fn finish<F: DeviceCurve>(
    layout: &Layout<F>,
    queue: Queue<'_>,
    arrays: &mut Arrays<'_, F>,
    result: PinnedBuf<Xyzz<F>>,
) -> Result<Pending<F>> {
    check("result", layout.labels.len(), result.len())?;
    reduce(&layout.reductions, queue, 0, arrays)?;
    let points = arrays.points.as_view();
    Ok(Pending::new(queue.stream.download(points, result)?, layout))
}

/// Puts the whole of a sum on the stream, and on those of the pipeline. The entries of ones, and their offsets, are there
/// already. With a pipeline, all views are lent to its streams.
pub(super) fn run<F: DeviceCurve>(
    layout: &Layout<F>,
    queue: Queue<'_>,
    streams: Option<&Streams>,
    bases: DeviceView<'_, Affine<F>>,
    vectors: &[Vector<'_>],
    arrays: Arrays<'_, F>,
    result: PinnedBuf<Xyzz<F>>,
) -> Result<Pending<F>> {
    let (mut arrays, mut scratch) = arrays.split();
    match (streams, &layout.pipeline) {
        (Some(streams), Some(shape)) => {
            let Queue { launcher, stream } = queue;
            let lent = scratch.reborrow();
            let mut pipeline = Pipeline::new(launcher, stream, streams, bases, shape, lent)?;
            let ahead = Queue {
                launcher,
                stream: streams.ahead(),
            };
            for slab in &layout.slabs {
                slab.push_to(
                    &mut pipeline,
                    ahead,
                    bases,
                    vectors,
                    Existing::Replace,
                    &mut arrays,
                )?;
            }
            pipeline.join(stream)?;
        }
        _ => {
            let mut point = 0;
            for slab in &layout.slabs {
                slab.accumulate(queue, bases, vectors, Existing::Replace, &mut arrays)?;
                point += reduce(&slab.reductions, queue, point, &mut arrays)?;
            }
        }
    }
    arrays.pipeline = scratch;
    finish(layout, queue, &mut arrays, result)
}
