//! A worker: one thread with one partition in hand, from staging to its verified result.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use cuzk_gpu_mem::{Recorder, Stream};

use crate::message::{Outcome, Phase, Report, Task, ToEngine, ToWorker, Waiting};
use crate::queue::Order;
use crate::timeline::{Log, NOT_ADMITTED};
use crate::turnstile::Turnstile;
use crate::work::{Context, Demand, Fault, Flag, Place, Preparation, Section, Staging, Work};

/// What all workers of a device share.
#[derive(Debug)]
pub(crate) struct DeviceShared {
    pub(crate) place: Place,
    /// Who computes next.
    pub(crate) turnstile: Turnstile<Order>,
    /// Set while the device is quarantined.
    pub(crate) out: Arc<Flag>,
    pub(crate) recorder: Option<Recorder>,
}

/// A worker's own.
pub(crate) struct Seat<W: Work> {
    pub(crate) number: usize,
    pub(crate) device_number: usize,
    /// Among the device's workers.
    pub(crate) local_number: usize,
    pub(crate) device: Arc<DeviceShared>,
    pub(crate) log: Option<Arc<Log>>,
    pub(crate) inbox: Receiver<ToWorker<W>>,
    pub(crate) engine: Sender<ToEngine<W>>,
}

/// Names of upload streams, one for each worker of a device.
const UPLOADS: [&str; 8] = [
    "upload 0", "upload 1", "upload 2", "upload 3", "upload 4", "upload 5", "upload 6", "upload 7",
];

impl<W: Work> Seat<W> {
    pub(crate) fn run(self) {
        let mut upload = None;
        while let Ok(ToWorker::Run(task)) = self.inbox.recv() {
            let outcome = self.attempt(*task, &mut upload);
            let report = Report::Ended {
                worker: self.number,
                outcome,
            };
            if self.engine.send(ToEngine::Report(report)).is_err() {
                return;
            }
        }
    }

    /// Whatever happens in it, a panic included, ends here, and what was held is let go.
    fn attempt(&self, mut task: Task<W>, upload: &mut Option<Stream>) -> Outcome<W> {
        let phase = Cell::new(Phase::Stage);
        let begun = Cell::new(Instant::now());
        let prepared = task.prepared.take();
        let attempt = AssertUnwindSafe(|| self.phases(&task, prepared, upload, &phase, &begun));
        let result = catch_unwind(attempt);
        let label = match &result {
            Ok(Err(Ending::NotAdmitted(..))) => NOT_ADMITTED,
            _ => phase.get().name(),
        };
        let context = self.context(&task);
        context.note_phase(label, phase.get(), begun.get());
        let hold = task.hold;
        match result {
            Ok(Err(Ending::NotAdmitted(error, prepared, demand))) => {
                let waiting = Waiting {
                    prepared,
                    demand,
                    hold,
                };
                Outcome::NotAdmitted(error, Box::new(waiting))
            }
            result => {
                drop(hold);
                match result {
                    Ok(Ok(output)) => Outcome::Done(output),
                    Ok(Err(Ending::Fault(fault))) => Outcome::Fault(fault),
                    Ok(Err(Ending::NotAdmitted(..))) => unreachable!("matched above"),
                    Err(panic) => Outcome::Panicked(phase.get(), panic_text(panic)),
                }
            }
        }
    }

    fn phases(
        &self,
        task: &Task<W>,
        prepared: Option<W::Prepared>,
        upload: &mut Option<Stream>,
        phase: &Cell<Phase>,
        begun: &Cell<Instant>,
    ) -> Result<W::Output, Ending<W>> {
        let context = self.context(task);
        let enter = |next: Phase| {
            if next != Phase::Stage {
                context.note_phase(phase.get().name(), phase.get(), begun.get());
            }
            phase.set(next);
            begun.set(Instant::now());
            let report = Report::Began {
                worker: self.number,
                phase: next,
            };
            let _ = self.engine.send(ToEngine::Report(report));
            context.check().map_err(Fault::from)
        };
        enter(Phase::Stage)?;
        let (work, input) = (&task.work, &*task.input);
        let (prepared, demand) = match prepared {
            Some(prepared) => (prepared, Arc::clone(&task.demand)),
            None => {
                let Preparation { prepared, demand } = work.prepare(input, &context)?;
                let demand = demand.map_or_else(|| Arc::clone(&task.demand), Arc::new);
                (prepared, demand)
            }
        };
        let (staged, admission) = match &self.device.place {
            Place::Cpu => (work.stage(input, prepared, &context, Staging::Cpu)?, None),
            Place::Device(device) => {
                context.check().map_err(Fault::from)?;
                let bytes = demand.compute_bytes.saturating_add(task.keep_device_bytes);
                let admitted = device.admit("partition", &demand.staging, bytes, Duration::ZERO);
                let mut admission = match admitted {
                    Err(error @ cuzk_gpu_mem::Error::OutOfMemory(_)) => {
                        return Err(Ending::NotAdmitted(error, prepared, demand));
                    }
                    admitted => admitted.map_err(Fault::from)?,
                };
                let upload = self.upload(device, upload)?;
                let staging = Staging::Device {
                    admission: &mut admission,
                    upload,
                };
                let staged = work.stage(input, prepared, &context, staging)?;
                (staged, Some(admission))
            }
        };
        enter(Phase::Wait)?;
        let turn = self
            .device
            .turnstile
            .enter(&task.order, || context.is_stopped())
            .ok_or(Fault::Stopped)?;
        enter(Phase::Compute)?;
        let computed = match (&self.device.place, admission) {
            (Place::Device(device), Some(admission)) => device
                .compute_admitted(admission, context.recorder().cloned(), |cx| {
                    work.compute(input, staged, &context, Section::Device(cx))
                })
                .map_err(Fault::from)??,
            _ => work.compute(input, staged, &context, Section::Cpu)?,
        };
        drop(turn);
        enter(Phase::Finish)?;
        let mut output = work.finish(input, computed, &context)?;
        if task.verify {
            context.check().map_err(Fault::from)?;
            work.verify(input, &mut output, &context)?;
        }
        Ok(output)
    }

    fn context<'a>(&'a self, task: &'a Task<W>) -> Context<'a> {
        Context {
            part: task.id,
            attempt: task.attempt,
            device: self.device_number,
            worker: self.number,
            place: &self.device.place,
            stop: &task.stop,
            keep_device_bytes: task.keep_device_bytes,
            verify: task.verify,
            recorder: self.recorder(),
            log: self.log.as_deref(),
        }
    }

    /// The device's, for what this worker does there.
    fn recorder(&self) -> Option<Recorder> {
        let recorder = self.device.recorder.as_ref()?;
        Some(recorder.of_worker(self.number))
    }

    fn upload<'a>(
        &self,
        device: &cuzk_gpu_mem::Device,
        upload: &'a mut Option<Stream>,
    ) -> Result<&'a Stream, Fault<W::Error>> {
        if upload.is_none() {
            let label = UPLOADS.get(self.local_number).copied().unwrap_or("upload");
            let stream = device.stream(label)?;
            stream.set_recorder(self.recorder());
            *upload = Some(stream);
        }
        upload.as_ref().ok_or(Fault::Stopped)
    }
}

/// How an attempt ends that has no result.
enum Ending<W: Work> {
    NotAdmitted(cuzk_gpu_mem::Error, W::Prepared, Arc<Demand>),
    Fault(Fault<W::Error>),
}

impl<W: Work> From<Fault<W::Error>> for Ending<W> {
    fn from(fault: Fault<W::Error>) -> Self {
        Self::Fault(fault)
    }
}

pub(crate) fn panic_text(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic
            .downcast_ref::<&str>()
            .map_or("no text", |text| text)
            .to_owned(),
    }
}
