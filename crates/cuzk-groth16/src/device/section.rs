//! The compute section of a proof: rows, quotient, sums.

use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use cuzk_field::Fr;
use cuzk_gpu_mem::{Compute, DeviceViewMut, Event, Recorder, Scoped, Stream, TransferScope};
use cuzk_msm::device::Error as Msm;
use cuzk_ntt::device::{DevicePlan, QuotientArrays};

use super::error::Result;
use super::gpu::Gpu;
use super::incoming::{IncomingRows, IncomingWitness};
use super::key::LentKey;
use super::packing::no_rows;
use super::phases::secret;
use super::prover::DeviceProver;
use super::sums::{Beside, PendingSums, SumsPlan, Turn};
use crate::error::Error;
use crate::stages::StopCheck;

/// Rows from which on the host does not run ahead of the device by more than a step, if somebody may want to stop it.
const PACED_ROWS: usize = 1 << 20;
/// How often it asks then.
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// What a section works with.
pub(super) struct SectionInput<'a> {
    pub(super) plan: &'a DevicePlan,
    pub(super) sums: &'a SumsPlan,
    pub(super) witness: IncomingWitness,
    pub(super) rows: Option<IncomingRows>,
    pub(super) beside: Beside,
    pub(super) stop: Option<&'a StopCheck>,
    pub(super) recorder: Option<&'a Recorder>,
}

/// Spans around groups of launches, where somebody wants to know.
pub(super) struct Spans<'a>(Option<&'a Recorder>);

impl Spans<'_> {
    /// Puts what `launch` does on `stream` into the timeline.
    pub(super) fn around<T>(
        &self,
        label: &'static str,
        stream: &Stream,
        launch: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let span = self.0.map(|recorder| recorder.span(label, stream));
        let span = span.transpose()?;
        let launched = launch();
        if let Some(span) = span {
            span.end(stream);
        }
        launched
    }
}

/// Stops a section between its steps.
pub(super) struct Pace<'a> {
    stop: Option<&'a StopCheck>,
    is_paced: bool,
}

/// What all sums of a section share.
#[derive(Clone, Copy)]
pub(super) struct InSection<'a, 'cx, 'env> {
    pub(super) cx: &'a Compute<'cx>,
    pub(super) gpu: &'a Gpu,
    /// Its points are lent to all streams of the section.
    pub(super) key: &'a LentKey<'env>,
    pub(super) spans: &'a Spans<'a>,
    pub(super) pace: &'a Pace<'a>,
}

impl Pace<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(StopCheck::is_stopped)
    }

    /// Whether to go on.
    fn check(&self) -> Result<()> {
        match self.is_stopped() {
            true => Err(Error::Stopped.into()),
            false => Ok(()),
        }
    }

    /// Waits until the device has come to `step`, asking meanwhile. In small sections the host runs ahead instead.
    fn step(&self, step: &Event) -> Result<()> {
        match self.is_paced {
            true => Ok(cuzk_msm::device::Pace::reach(self, step)?),
            false => self.check(),
        }
    }
}

impl cuzk_msm::device::Pace for Pace<'_> {
    fn reach(&self, step: &Event) -> cuzk_msm::device::Result<()> {
        loop {
            if self.is_stopped() {
                return Err(Msm::Stopped);
            }
            if !self.is_paced {
                return Ok(step.wait()?);
            }
            if step.is_reached()? {
                return Ok(());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// What a thread came to.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

impl DeviceProver<'_, '_> {
    /// Everything that runs while no other proof computes. Returns when all of it is on its streams.
    pub(super) fn section<'env>(
        &'env self,
        cx: &Compute<'_>,
        h_uploads: &TransferScope<'_, 'env>,
        witness_uploads: &TransferScope<'_, 'env>,
        input: SectionInput<'_>,
    ) -> Result<PendingSums> {
        let SectionInput {
            plan,
            sums,
            witness,
            rows,
            beside: input_beside,
            stop,
            recorder,
        } = input;
        let spans = Spans(recorder);
        let n = self.setup.header.domain_size;
        let pace = Pace {
            stop,
            is_paced: stop.is_some() && n >= PACED_ROWS,
        };
        let (launcher, stream) = (self.gpu.launcher(), cx.stream());
        let (gpu, key) = (self.gpu, &*self.key);
        pace.check()?;
        let witness = witness.enter(cx)?;
        let counting = sums.count(cx, gpu, key, &spans, witness.view())?;
        // What the other stream uses is lent before anything else is on this one: it waits for that alone.
        let beside = gpu.beside();
        let both = [stream, beside];
        let mut all = both.to_vec();
        all.extend(gpu.sum_streams().all());
        let key = &key.lend(&all)?;
        let is_beside = sums.turn != Turn::Behind;
        let witness_beside = is_beside.then(|| witness.lend(&both)).transpose()?;
        let scratch_bytes = usize::try_from(sums.scratch_bytes()).unwrap_or(usize::MAX);
        let streams_beside = [beside, witness_uploads.stream()];
        let mut scratch_beside_h = None;
        let mut scratch_beside = match sums.turn {
            Turn::BesideAll => Some(secret::<u8>(cx, "witness sums", scratch_bytes)?),
            Turn::BesideH | Turn::Behind => None,
        };
        let mut lent_scratch = match &mut scratch_beside {
            Some(scratch) => Some(scratch.view_mut().lend(&streams_beside)?),
            None => None,
        };
        let view = match &witness_beside {
            Some(lent) => lent.view(),
            None => witness.view(),
        };
        let (mut a, mut b, rows) = match (rows, &self.matrices) {
            (Some(rows), _) => {
                let [a, b] = rows.enter(cx)?;
                (a, b, n)
            }
            (None, Some(matrices)) => {
                let mut a = secret::<Fr>(cx, "d_a", n)?;
                let mut b = secret::<Fr>(cx, "d_b", n)?;
                let mut scratch = secret(cx, "row segments", matrices.scratch_len())?;
                let rows = matrices.num_rows();
                // Its memory is there when the span begins: the stream is idle, and would be timed waiting for the host.
                spans.around("rows", stream, || {
                    Ok(matrices.evaluate(
                        launcher,
                        stream,
                        view,
                        scratch.view_mut(),
                        a.view_mut().slice(..rows),
                        b.view_mut().slice(..rows),
                    )?)
                })?;
                (a, b, rows)
            }
            (None, None) => return Err(no_rows()),
        };
        let rows_done = stream.record()?;
        pace.check()?;
        let h = spans.around("quotient", stream, || {
            let mut c = match self.form.arrays() {
                2 => None,
                _ => Some(secret::<Fr>(cx, "d_c", n)?),
            };
            let arrays = QuotientArrays {
                a: a.view_mut(),
                b: b.view_mut(),
                c: c.as_mut().map(Scoped::view_mut),
                rows,
            };
            let log_n = n.trailing_zeros();
            Ok(plan.quotient(launcher, stream, log_n, self.form, arrays)?)
        })?;
        drop(b);
        let quotient_done = stream.record()?;
        pace.step(&rows_done)?;
        let counts = counting.wait()?;
        if sums.turn == Turn::BesideH {
            // In the memory that the quotient leaves, and so behind it.
            let scratch = scratch_beside_h.insert(secret(cx, "witness sums", scratch_bytes)?);
            lent_scratch = Some(scratch.view_mut().lend(&streams_beside)?);
        }
        // Each by a thread of its own: what a stream has been given and not begun is limited, and who gives it more
        // waits. Behind thousands of launches for one sum the other would begin when that is nearly over.
        let at = InSection {
            cx,
            gpu,
            key,
            spans: &spans,
            pace: &pace,
        };
        let witness_sums = |stream: &Stream, scratch: DeviceViewMut<'_, u8>| {
            let (uploads, counts) = (witness_uploads, &counts);
            spans.around("witness sums", stream, || {
                sums.witness
                    .begin(at, stream, uploads, view, counts, scratch)
            })
        };
        let (begun, h) = std::thread::scope(|threads| {
            let beside = lent_scratch.as_mut().map(|scratch| {
                let scratch = scratch.view_mut();
                threads.spawn(move || witness_sums(beside, scratch))
            });
            let h = sums.begin_h(at, h_uploads, h.into_view());
            (beside.map(joined), h)
        });
        let h = h?;
        let scratch_bytes = match begun {
            // More full values in one place than was likely: behind all else there is more room.
            Some(Err(super::Error::Msm(Msm::TooLittleScratch { .. }))) => {
                usize::try_from(sums.section_bytes(input_beside)).unwrap_or(usize::MAX)
            }
            Some(begun) => return Ok(PendingSums { h, witness: begun? }),
            None => scratch_bytes,
        };
        drop(lent_scratch);
        drop((scratch_beside, scratch_beside_h, a));
        pace.step(&quotient_done)?;
        let mut scratch = secret::<u8>(cx, "witness sums", scratch_bytes)?;
        let witness = witness_sums(stream, scratch.view_mut())?;
        Ok(PendingSums { h, witness })
    }
}
