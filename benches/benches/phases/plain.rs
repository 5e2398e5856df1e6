//! Proofs without cuzk's ledger, stages and sums: what comes to the device when is written down here.

use std::collections::VecDeque;
use std::sync::Arc;

use cuzk_field::{Affine, Fp, Fp2, Fr, G1Affine, G2Affine, Scalar, Xyzz};
use cuzk_formats::Proof;
use cuzk_gpu_mem::{Bus, DeviceBuf, DeviceView, Pod, Recorder, Stream, TrimPolicy};
use cuzk_groth16::Verifier;
use cuzk_groth16::device::{Error, Gpu, Result};
use cuzk_kernels::DeviceCurve;
use cuzk_msm::device::{HostBases, MsmPlan, Patient, Pending, Scalars, Streams};
use cuzk_ntt::device::{DevicePlan, PlanRequest, QuotientArrays, QuotientForm};

use super::FAMILY;
use super::inputs::Inputs;
use super::table::{Measured, Meter};

/// When rows come to the device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// When their partition's turn has come.
    InTurn,
    /// While the partition before computes.
    Ahead,
}

/// How sums get their bases.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sums {
    /// In eight batches, each waited for.
    Batches,
    /// In batches beside the computation; results are waited for when the next partition is under way.
    Streamed,
    /// They are there.
    Resident,
}

/// Batches of a sum.
const BATCHES: usize = 8;
const FORM: QuotientForm = QuotientForm::Coefficients;

pub(crate) struct Plain<'g> {
    gpu: &'g Gpu,
    log_n: u32,
    tables: DevicePlan,
    stream: Stream,
    upload: Stream,
    streams: Arc<Streams>,
    resident: Option<Resident>,
}

struct Resident {
    h: DeviceBuf<G1Affine>,
    g1: Vec<DeviceBuf<G1Affine>>,
    g2: DeviceBuf<G2Affine>,
}

/// A partition's sums: of H, L, A and B in G1, and of B in G2.
type Points = (Vec<G1Affine>, G2Affine);

/// Sums under way, those that have been waited for among them.
enum UnderWay {
    Done(Points),
    Pending(Vec<Pending<Fp>>, Pending<Fp2>),
}

impl UnderWay {
    fn wait(self) -> Result<Points> {
        match self {
            Self::Done(points) => Ok(points),
            Self::Pending(g1, g2) => {
                let g1: Result<Vec<_>> = g1.into_iter().map(|sum| Ok(sum.wait()?[0])).collect();
                Ok((g1?, g2.wait()?[0]))
            }
        }
    }
}

impl<'g> Plain<'g> {
    pub(crate) fn new(gpu: &'g Gpu, log_n: u32) -> Result<Self> {
        let device = gpu.device();
        let stream = device.stream("compute")?;
        let generator = FAMILY.flavour().root_generator;
        // As the provers' plans: a twelfth of the device at most.
        let limit = device.budget().state().limit / 12;
        let request = PlanRequest::quotient(generator, log_n, FORM).within(limit);
        Ok(Self {
            gpu,
            log_n,
            tables: DevicePlan::new(gpu.launcher(), &stream, &request)?,
            upload: device.stream("upload")?,
            streams: Arc::new(Streams::new(device)?),
            stream,
            resident: None,
        })
    }

    /// One partition to warm up, then `partitions` of them.
    pub(crate) fn partitions(
        &mut self,
        inputs: &Inputs,
        memory: Memory,
        sums: Sums,
        partitions: usize,
    ) -> Result<Measured> {
        self.resident = match sums {
            Sums::Resident => Some(self.bring_key(inputs)?),
            _ => None,
        };
        let mut meter = None;
        let (mut staged, mut last) = (None, VecDeque::new());
        for partition in 0..=partitions {
            if partition == 1 {
                for sums in last.drain(..) {
                    verify(inputs, UnderWay::wait(sums)?)?;
                }
                self.stream.synchronize()?;
                self.upload.synchronize()?;
                let begun = Meter::begin(self.gpu.device(), &self.stream)?;
                self.record(Some(begun.recorder()));
                meter = Some(begun);
            }
            let rows = match staged.take() {
                Some(rows) => rows,
                None => {
                    let room = self.room_for_rows(&self.stream)?;
                    self.bring_rows(inputs, &self.stream, room)?
                }
            };
            let ahead = memory == Memory::Ahead && partition < partitions;
            let recorder = meter.as_ref().map(Meter::recorder);
            let (under_way, next) = self.partition(inputs, rows, sums, ahead, recorder)?;
            staged = next;
            last.push_back(under_way);
            // Not before the next one is under way.
            let keep = usize::from(sums != Sums::Batches);
            while last.len() > keep {
                last.pop_front().map(UnderWay::wait).transpose()?;
            }
        }
        let mut points = None;
        for sums in last {
            points = Some(sums.wait()?);
        }
        let measured = meter.map(|meter| meter.end(partitions)).transpose()?;
        self.record(None);
        if let Some(points) = points {
            verify(inputs, points)?;
        }
        measured.ok_or_else(|| unreachable!("at least one partition is measured"))
    }

    fn record(&self, recorder: Option<&Recorder>) {
        for stream in [&self.stream, &self.upload] {
            stream.set_recorder(recorder.cloned());
        }
    }

    /// Room for A w and B w on the device.
    fn room_for_rows(&self, stream: &Stream) -> Result<[DeviceBuf<Fr>; 2]> {
        let (device, n) = (self.gpu.device(), 1 << self.log_n);
        Ok([
            device.alloc("d_a", n, stream)?,
            device.alloc("d_b", n, stream)?,
        ])
    }

    /// A w and B w on the device.
    fn bring_rows(
        &self,
        inputs: &Inputs,
        stream: &Stream,
        mut room: [DeviceBuf<Fr>; 2],
    ) -> Result<[DeviceBuf<Fr>; 2]> {
        for (rows, on_device) in inputs.rows.iter().zip(&mut room) {
            stream.upload_slice(rows, on_device.view_mut().slice(..rows.len()))?;
        }
        Ok(room)
    }

    fn bring_key(&self, inputs: &Inputs) -> Result<Resident> {
        let g1 = inputs
            .g1
            .iter()
            .map(|(points, _)| self.bring("key", points));
        let g1 = g1.collect::<Result<_>>()?;
        Ok(Resident {
            h: self.bring("key", &inputs.h)?,
            g1,
            g2: self.bring("key", &inputs.g2.0)?,
        })
    }

    fn bring<T: Pod>(&self, label: &'static str, values: &[T]) -> Result<DeviceBuf<T>> {
        let mut on_device = self.gpu.device().alloc(label, values.len(), &self.stream)?;
        self.stream.upload_slice(values, &mut on_device)?;
        Ok(on_device)
    }

    /// One partition, and the rows of the next where they are to be brought ahead.
    fn partition(
        &self,
        inputs: &Inputs,
        [mut a, mut b]: [DeviceBuf<Fr>; 2],
        sums: Sums,
        ahead: bool,
        recorder: Option<&Recorder>,
    ) -> Result<(UnderWay, Option<[DeviceBuf<Fr>; 2]>)> {
        let (device, stream, n) = (self.gpu.device(), &self.stream, 1_usize << self.log_n);
        let span = |label| {
            recorder
                .map(|recorder| recorder.span(label, stream))
                .transpose()
        };
        let quotient = span("quotient")?;
        let mut c = device.alloc::<Fr>("d_c", n, stream)?;
        let arrays = QuotientArrays {
            a: a.view_mut(),
            b: b.view_mut(),
            c: Some(c.view_mut()),
            rows: inputs.rows[0].len(),
        };
        let h = self
            .tables
            .quotient(self.gpu.launcher(), stream, self.log_n, FORM, arrays)?
            .into_view();
        if let Some(span) = quotient {
            span.end(stream);
        }
        drop((b, c));
        let h = h.slice(..inputs.h.len());
        if sums == Sums::Batches {
            // Only now is there room for the next rows.
            stream.synchronize()?;
            let room = ahead
                .then(|| self.room_for_rows(&self.upload))
                .transpose()?;
            return std::thread::scope(|threads| {
                let next =
                    room.map(|room| threads.spawn(|| self.bring_rows(inputs, &self.upload, room)));
                let mut g1 = vec![self.batches("H sum", &inputs.h, Values::There(h), recorder)?];
                for (points, values) in &inputs.g1 {
                    g1.push(self.batches("sums", points, Values::Host(values), recorder)?);
                }
                let (points, values) = &inputs.g2;
                let g2 = self.batches("sums", points, Values::Host(values), recorder)?;
                let next = next
                    .map(|next| next.join().expect("no panic"))
                    .transpose()?;
                Ok((UnderWay::Done((g1, g2)), next))
            });
        }
        // Values before their sum, bases batch by batch, the next rows last.
        let resident = self.resident.as_ref();
        let there = resident.map(|key| &key.h);
        let mut g1 = vec![self.sum("H sum", &inputs.h, there, h, recorder)?];
        for (i, (points, values)) in inputs.g1.iter().enumerate() {
            let there = resident.map(|key| &key.g1[i]);
            let values = self.bring("values", values)?;
            g1.push(self.sum("sums", points, there, values.view(), recorder)?);
        }
        let (points, values) = &inputs.g2;
        let there = resident.map(|key| &key.g2);
        let values = self.bring("values", values)?;
        let g2 = self.sum("sums", points, there, values.view(), recorder)?;
        drop(a);
        let room = ahead
            .then(|| self.room_for_rows(&self.upload))
            .transpose()?;
        let next = room
            .map(|room| self.bring_rows(inputs, &self.upload, room))
            .transpose()?;
        Ok((UnderWay::Pending(g1, g2), next))
    }

    /// A sum batch by batch.
    fn batches<F: DeviceCurve>(
        &self,
        label: &'static str,
        points: &[Affine<F>],
        values: Values<'_>,
        recorder: Option<&Recorder>,
    ) -> Result<Affine<F>> {
        let (device, stream) = (self.gpu.device(), &self.stream);
        let batch = points.len().div_ceil(BATCHES).max(1);
        let mut d_bases = device.alloc::<Affine<F>>("bases", batch, stream)?;
        let mut d_values = match values {
            Values::Host(_) => device.alloc::<Scalar>("values", batch, stream)?,
            Values::There(_) => device.alloc("values", 0, stream)?,
        };
        let mut sum = Xyzz::INFINITY;
        let mut scratch: Option<DeviceBuf<u8>> = None;
        for first in (0..points.len()).step_by(batch) {
            let part = first..points.len().min(first + batch);
            let len = part.len();
            stream.upload_slice(&points[part.clone()], d_bases.view_mut().slice(..len))?;
            let of_batch = match values {
                Values::There(values) => values.slice(part),
                Values::Host(values) => {
                    stream.upload_slice(&values[part], d_values.view_mut().slice(..len))?;
                    d_values.view().slice(..len)
                }
            };
            let room = device.usable()? + scratch.as_ref().map_or(0, |scratch| scratch.bytes());
            let plan = MsmPlan::<F>::resident(device.info(), len, 1, room)?;
            let bytes = usize::try_from(plan.footprint().device).expect("64 bits");
            let scratch = match &mut scratch {
                Some(scratch) if scratch.len() >= bytes => scratch,
                scratch => {
                    *scratch = None;
                    scratch.insert(device.alloc("scratch", bytes, stream)?)
                }
            };
            let result = device.host().pinned("sums", plan.result_len())?;
            let span = recorder
                .map(|recorder| recorder.span(label, stream))
                .transpose()?;
            let pending = plan.run(
                self.gpu.launcher(),
                stream,
                d_bases.view().slice(..len),
                &[Scalars::Canonical(of_batch)],
                scratch.view_mut().slice(..bytes),
                result,
            )?;
            if let Some(span) = span {
                span.end(stream);
            }
            sum.add_affine(&pending.wait()?[0]);
        }
        Ok(Xyzz::normalize_all(&[sum])[0])
    }

    /// A sum over bases that are there, or come beside the computation.
    fn sum<F: DeviceCurve>(
        &self,
        label: &'static str,
        points: &[Affine<F>],
        there: Option<&DeviceBuf<Affine<F>>>,
        values: DeviceView<'_, Scalar>,
        recorder: Option<&Recorder>,
    ) -> Result<Pending<F>> {
        let (device, stream) = (self.gpu.device(), &self.stream);
        let (info, streams) = (device.info(), Some(&self.streams));
        let planned = |room: u64| match there {
            Some(_) => MsmPlan::<F>::resident_beside(streams, info, points.len(), 1, room),
            None => MsmPlan::streamed_beside(streams, info, points.len(), 1, room),
        };
        let plan = match planned(device.usable()?) {
            Ok(plan) => plan,
            // The last sum's scratch is free when that is done.
            Err(_) => {
                stream.synchronize()?;
                device.trim(TrimPolicy::Streams)?;
                planned(device.usable()?)?
            }
        };
        let bytes = usize::try_from(plan.footprint().device).expect("64 bits");
        let mut scratch = device.alloc::<u8>("scratch", bytes, stream)?;
        let result = device.host().pinned("sums", plan.result_len())?;
        let span = recorder
            .map(|recorder| recorder.span(label, stream))
            .transpose()?;
        let (launcher, values) = (self.gpu.launcher(), [Scalars::Canonical(values)]);
        let scratch = scratch.view_mut();
        let pending = match there {
            Some(there) => plan.run(launcher, stream, there.view(), &values, scratch, result)?,
            None => self.upload.scope(|uploads| {
                plan.run_streamed(
                    launcher,
                    stream,
                    HostBases {
                        pieces: &[points],
                        uploads,
                        pace: &Patient,
                        bus: &Bus::new(),
                    },
                    &values,
                    scratch,
                    result,
                )
            })??,
        };
        if let Some(span) = span {
            span.end(stream);
        }
        Ok(pending)
    }
}

/// Scalars of a sum in batches.
#[derive(Clone, Copy)]
enum Values<'a> {
    There(DeviceView<'a, Scalar>),
    Host(&'a [Scalar]),
}

/// Puts a proof together with r = s = 0, which hides nothing, and verifies it.
fn verify(inputs: &Inputs, (g1, g2): Points) -> Result<()> {
    let vk = &inputs.vk;
    let [h, l, a, _] = g1[..] else {
        unreachable!("four sums in G1");
    };
    let sum = |x: G1Affine, y: G1Affine| {
        let mut sum = Xyzz::from(x);
        sum.add_affine(&y);
        Xyzz::normalize_all(&[sum])[0]
    };
    let mut b = Xyzz::from(vk.beta_g2);
    b.add_affine(&g2);
    let proof = Proof {
        a: sum(vk.alpha_g1, a),
        b: Xyzz::normalize_all(&[b])[0],
        c: sum(l, h),
    };
    let verifier = Verifier::new(vk).map_err(Error::from)?;
    Ok(verifier.verify(&inputs.public, &proof)?)
}
