//! Bases that come from the host in batches, while earlier ones are computed with.

use std::collections::VecDeque;
use std::ops::Range;

use cuzk_field::Affine;
use cuzk_gpu_mem::{Bus, Carve, DeviceView, DeviceViewMut, Event, Stream, TransferScope};

use super::DeviceCurve;
use super::batches::Batches;
use super::error::Result;
use super::run::check;

/// Slabs that may wait on a stream, some sixty launches each, for their sorts and eight rounds of their pair trees: half of what
/// a stream takes.
const SLABS_AHEAD: usize = 8;

/// Bases that stay in host memory, and how they come to the device.
#[derive(Clone, Copy)]
pub struct HostBases<'a, 's, 'env, F> {
    /// Parts of one list, one after another.
    pub pieces: &'a [&'env [Affine<F>]],
    /// Copies them beside the computation. Its end waits for the last copy: put it where the sums are waited for, or later.
    pub uploads: &'a TransferScope<'s, 'env>,
    /// Asked before more is put on a stream than it takes.
    pub pace: &'a dyn Pace,
    /// Where the copies get their turns, if other sums have some, too.
    pub bus: &'a Bus,
}

impl<F> std::fmt::Debug for HostBases<'_, '_, '_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lens: Vec<usize> = self.pieces.iter().map(|piece| piece.len()).collect();
        f.debug_struct("HostBases")
            .field("pieces", &lens)
            .finish_non_exhaustive()
    }
}

/// How far the host runs ahead of the device. A stream takes a thousand launches that have not begun; whoever gives it more
/// waits in the driver, and with him all threads that launch anything in that context.
pub trait Pace: Sync {
    /// Returns when the device has come to `step`.
    ///
    /// # Errors
    /// When the device fails, or [`Error::Stopped`](super::Error::Stopped): then no more of the sum is put on streams.
    fn reach(&self, step: &Event) -> Result<()>;
}

/// Waits, and never stops a sum.
#[derive(Clone, Copy, Debug)]
pub struct Patient;

impl Pace for Patient {
    fn reach(&self, step: &Event) -> Result<()> {
        Ok(step.wait()?)
    }
}

/// The slabs of a sum that have been put on a stream and may not have begun.
pub(super) struct Ahead<'a> {
    pace: &'a dyn Pace,
    slabs: VecDeque<Event>,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(pace: &'a dyn Pace) -> Self {
        Self {
            pace,
            slabs: VecDeque::new(),
        }
    }

    /// One more is on the stream; waits until few enough of them are left.
    pub(super) fn slab(&mut self, stream: &Stream) -> Result<()> {
        self.slabs.push_back(stream.record()?);
        if self.slabs.len() > SLABS_AHEAD
            && let Some(slab) = self.slabs.pop_front()
        {
            self.pace.reach(&slab)?;
        }
        Ok(())
    }
}

/// Two buffers for batches, each filled while the other is computed with.
pub(super) struct Uploads<'a, 's, 'env, F: DeviceCurve> {
    bases: HostBases<'a, 's, 'env, F>,
    batches: &'a Batches,
    buffers: [DeviceViewMut<'a, Affine<F>>; 2],
    /// Where the upload of each batch so far is done.
    done: Vec<Event>,
}

/// A batch to compute with, and the one that follows.
pub(super) struct Batch<'u, 'a, 's, 'env, F: DeviceCurve> {
    pub(super) bases: DeviceView<'u, Affine<F>>,
    pub(super) next: Option<Next<'u, 'a, 's, 'env, F>>,
}

/// A batch that is to be sent off when the one before last has been computed with, whose buffer it gets.
pub(super) struct Next<'u, 'a, 's, 'env, F: DeviceCurve> {
    bases: HostBases<'a, 's, 'env, F>,
    range: Range<usize>,
    buffer: DeviceViewMut<'u, Affine<F>>,
    done: &'u mut Vec<Event>,
    /// Behind which its buffer is free.
    former: Vec<Event>,
}

impl<'a, 's, 'env, F: DeviceCurve> Uploads<'a, 's, 'env, F> {
    /// Takes the buffers' bytes, which are lent to the scope's stream and those that compute, and sends the first batch off
    /// when those streams are done with what they have been given so far, which may be at work there.
    pub(super) fn begin(
        bases: HostBases<'a, 's, 'env, F>,
        batches: &'a Batches,
        carve: &mut Carve<'a>,
        computing: &[&Stream],
    ) -> Result<Self> {
        let found = bases.pieces.iter().map(|piece| piece.len()).sum();
        check("bases", batches.bases(), found)?;
        let half = batches.largest();
        let mut uploads = Self {
            bases,
            batches,
            buffers: [
                carve.take("a batch of bases", half)?,
                carve.take("another batch of bases", half)?,
            ],
            done: Vec::with_capacity(batches.len()),
        };
        let range = batches.ranges()[0].clone();
        let [first, _] = &mut uploads.buffers;
        Next {
            bases,
            buffer: first.reborrow().slice(..range.len()),
            range,
            done: &mut uploads.done,
            former: places(computing)?,
        }
        .send()?;
        Ok(uploads)
    }

    /// Batch `index`, in turn, when it is there for `stream`; and the next one, if there is one, which is to be sent off when the
    /// streams that compute are done with what they have been given so far.
    pub(super) fn batch(
        &mut self,
        index: usize,
        stream: &Stream,
        computing: &[&Stream],
    ) -> Result<Batch<'_, 'a, 's, 'env, F>> {
        let ranges = self.batches.ranges();
        let [even, odd] = &mut self.buffers;
        let (buffer, other) = match index % 2 {
            0 => (even, odd),
            _ => (odd, even),
        };
        let former = match ranges.get(index + 1) {
            Some(_) => places(computing)?,
            None => Vec::new(),
        };
        stream.wait_for(&self.done[index])?;
        let next = ranges.get(index + 1).map(|range| Next {
            bases: self.bases,
            range: range.clone(),
            buffer: other.reborrow().slice(..range.len()),
            done: &mut self.done,
            former,
        });
        Ok(Batch {
            bases: buffer.as_view().slice(..ranges[index].len()),
            next,
        })
    }
}

/// The present ends of these streams.
fn places(streams: &[&Stream]) -> Result<Vec<Event>> {
    let places = streams.iter().map(|stream| stream.record());
    Ok(places.collect::<Result<_, _>>()?)
}

impl<F: DeviceCurve> Next<'_, '_, '_, '_, F> {
    /// Sends it off if its buffer is free; gives it back otherwise.
    pub(super) fn send_if_free(self) -> Result<Option<Self>> {
        for event in &self.former {
            if !event.is_reached()? {
                return Ok(Some(self));
            }
        }
        self.send()?;
        Ok(None)
    }

    /// Waits for its buffer, and its turn on the bus, and sends it off.
    pub(super) fn send(mut self) -> Result<()> {
        let HostBases {
            pieces,
            uploads,
            pace,
            bus,
        } = self.bases;
        for event in &self.former {
            pace.reach(event)?;
        }
        bus.turn(
            |event| pace.reach(event),
            || {
                let mut first = 0;
                for piece in pieces {
                    let start = self.range.start.clamp(first, first + piece.len());
                    let end = self.range.end.clamp(first, first + piece.len());
                    if start < end {
                        let target = self.buffer.reborrow();
                        let target = target.slice(start - self.range.start..end - self.range.start);
                        uploads.upload(&piece[start - first..end - first], target)?;
                    }
                    first += piece.len();
                }
                self.done.push(uploads.stream().record()?);
                Ok(uploads.stream().record()?)
            },
        )
    }
}
