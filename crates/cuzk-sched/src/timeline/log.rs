//! Collecting a run.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cuzk_gpu_mem::{Direction, Recorder};

use super::{DeviceFacts, HostSpan, KernelSpan, Run, TransferSpan};

/// Host spans as they happen. The devices' are in their recorders.
#[derive(Debug)]
pub(crate) struct Log {
    epoch: Instant,
    spans: Mutex<Vec<HostSpan>>,
    /// By device, when its recorder's time began, by the host's clock.
    began_ms: Mutex<Vec<f64>>,
}

impl Log {
    pub(crate) fn new(epoch: Instant) -> Self {
        Self {
            epoch,
            spans: Mutex::default(),
            began_ms: Mutex::default(),
        }
    }

    /// Milliseconds since the engine's start.
    pub(crate) fn at(&self, time: Instant) -> f64 {
        time.saturating_duration_since(self.epoch).as_secs_f64() * 1e3
    }

    pub(crate) fn push(&self, span: HostSpan) {
        lock(&self.spans).push(span);
    }

    /// The next device's recorder began, on an idle stream that has been waited for since.
    pub(crate) fn device_began(&self, time: Instant) {
        lock(&self.began_ms).push(self.at(time));
    }

    pub(crate) fn run(&self, devices: Vec<DeviceFacts>, recorders: &[Option<&Recorder>]) -> Run {
        let mut run = Run {
            format: Run::FORMAT.to_owned(),
            devices,
            host: lock(&self.spans).clone(),
            kernels: Vec::new(),
            transfers: Vec::new(),
            notes: Vec::new(),
        };
        run.host.sort_by(|a, b| {
            a.begin_ms
                .total_cmp(&b.begin_ms)
                .then(a.worker.cmp(&b.worker))
        });
        let began_ms = lock(&self.began_ms).clone();
        for (device, (recorder, offset_ms)) in recorders.iter().zip(began_ms).enumerate() {
            let Some(recorder) = recorder else { continue };
            let timeline = match recorder.timeline() {
                Ok(timeline) => timeline,
                Err(error) => {
                    run.notes
                        .push(format!("device {device}: no times: {error}"));
                    continue;
                }
            };
            run.kernels
                .extend(timeline.spans.into_iter().map(|span| KernelSpan {
                    device,
                    worker: span.worker,
                    stream: span.stream.to_owned(),
                    label: span.label.to_owned(),
                    begin_ms: span.begin_ms + offset_ms,
                    end_ms: span.end_ms + offset_ms,
                }));
            let transfers = timeline.transfers.into_iter();
            run.transfers.extend(transfers.map(|copy| TransferSpan {
                device,
                stream: copy.stream.to_owned(),
                label: copy.label.to_owned(),
                is_upload: copy.direction == Direction::Up,
                bytes: copy.bytes,
                pinned: copy.pinned,
                begin_ms: copy.begin_ms + offset_ms,
                end_ms: copy.end_ms + offset_ms,
            }));
        }
        run
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
