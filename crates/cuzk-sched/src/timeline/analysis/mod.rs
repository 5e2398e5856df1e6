//! What a run says: how much of the time kernels ran, and what they waited for when they did not.

mod sweep;
#[cfg(test)]
pub(super) mod tests;
mod text;

use std::collections::BTreeMap;

use self::sweep::{Sweep, What};
use super::cover::{Cover, streams};
use super::{DeviceFacts, Run, Spans};
use crate::message::Phase;

/// The label of an attempt that found no device memory.
pub(crate) const NOT_ADMITTED: &str = "not admitted";

/// All of it, for people by [`Display`](std::fmt::Display).
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// One for each device that did something.
    pub devices: Vec<DeviceReport>,
    inventory: String,
}

/// One device's share.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReport {
    /// Its number.
    pub device: usize,
    /// Its name.
    pub name: String,
    /// Whether kernels were recorded. Without them busy is what the workers' computing phases cover.
    pub has_kernels: bool,
    /// From the first thing done there to the last.
    pub total_ms: f64,
    /// From the first computing to the last.
    pub steady_ms: f64,
    /// The union of the kernels' intervals, or of the computing phases: never more than one
    /// millisecond a millisecond.
    pub busy_ms: f64,
    /// The sum of all kernels' intervals, which overlap on several streams.
    pub kernel_sum_ms: f64,
    /// The part of the uploads' time in which the device was busy.
    pub hidden_upload_share: Option<f64>,
    /// What the rest of the time went into, the longest first.
    pub stalls: Vec<Stall>,
    /// By phase, how often it was run and how long in all.
    pub phases: Vec<(Phase, usize, f64)>,
}

/// Time in which the device was not busy, by what was going on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// What was going on.
    pub cause: Cause,
    /// How long in all.
    pub ms: f64,
    /// Stretches of it.
    pub count: usize,
    /// The longest of them.
    pub longest_ms: f64,
}

/// What a device that is not busy waits for. Where several things go on, the first of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Secrets are overwritten on the device.
    Wipe,
    /// A copy, inside the compute section.
    CopyInSection,
    /// The host, inside the compute section.
    HostInSection,
    /// The permit is passed on, or asked for: a partition is staged and none computes.
    Handover,
    /// Device memory, for which a partition waits.
    Memory,
    /// An upload: nothing is staged yet.
    Upload,
    /// The host, which stages.
    Staging,
    /// The host, which finishes; no partition follows.
    Finishing,
    /// There is no partition in hand.
    NoWork,
}

impl Report {
    /// Reads a run.
    pub fn of(run: &Run) -> Self {
        let all = run.by_device();
        let of = |device: &DeviceFacts| {
            device_report(all.get(&device.number)?, device.number, &device.name)
        };
        Self {
            devices: run.devices.iter().filter_map(of).collect(),
            inventory: text::inventory(run),
        }
    }
}

fn device_report(of_device: &Spans<'_>, device: usize, name: &str) -> Option<DeviceReport> {
    let mut spans: Vec<(What, f64, f64)> = Vec::new();
    let mut phases: BTreeMap<Phase, (usize, f64)> = BTreeMap::new();
    let mut refused: BTreeMap<(u64, usize), f64> = BTreeMap::new();
    for span in &of_device.host {
        let Some(phase) = span.phase else { continue };
        let part = (span.job, span.partition);
        if span.label == NOT_ADMITTED {
            refused.entry(part).or_insert(span.begin_ms);
            continue;
        }
        if let Some(since) = refused.remove(&part) {
            spans.push((What::Memory, since, span.begin_ms));
        }
        spans.push((What::In(phase), span.begin_ms, span.end_ms));
        let (count, ms) = phases.entry(phase).or_default();
        *count += 1;
        *ms += span.end_ms - span.begin_ms;
    }
    let mut kernel_sum_ms = 0.0;
    let mut has_kernels = false;
    for stream in streams(&of_device.kernels).into_values() {
        let wipes = Cover::of(stream.wipes);
        for (begin, end) in &stream.launches {
            kernel_sum_ms += (end - begin - (wipes.before(*end) - wipes.before(*begin))).max(0.0);
        }
        // What it launched around a wipe did not run meanwhile.
        let ran = Cover::of(stream.launches).without(&wipes);
        has_kernels |= !ran.is_empty();
        spans.extend(
            ran.into_iter()
                .map(|(begin, end)| (What::Kernel, begin, end)),
        );
        let wipes = wipes.intervals.iter();
        spans.extend(wipes.map(|(begin, end)| (What::Wipe, *begin, *end)));
    }
    for copy in &of_device.transfers {
        let what = if copy.is_upload {
            What::Upload
        } else {
            What::Download
        };
        spans.push((what, copy.begin_ms, copy.end_ms));
    }
    // A span that ends before it begins (clocks apart by microseconds) is empty.
    spans.retain(|(_, begin, end)| end > begin);
    let busy = if has_kernels {
        What::Kernel
    } else {
        What::In(Phase::Compute)
    };
    let sweep = Sweep::over(&spans, busy)?;
    let mut stalls: Vec<Stall> = sweep.stalls.into_values().collect();
    stalls.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    Some(DeviceReport {
        device,
        name: name.to_owned(),
        has_kernels,
        total_ms: sweep.total_ms,
        steady_ms: sweep.steady_ms,
        busy_ms: sweep.busy_ms,
        kernel_sum_ms,
        hidden_upload_share: (sweep.upload_ms > 0.0).then(|| sweep.hidden_ms / sweep.upload_ms),
        stalls,
        phases: phases
            .into_iter()
            .map(|(phase, (count, ms))| (phase, count, ms))
            .collect(),
    })
}

impl DeviceReport {
    /// Of the time from the first computing to the last, the part in which kernels ran.
    pub fn share(&self) -> f64 {
        if self.steady_ms > 0.0 {
            self.busy_ms / self.steady_ms
        } else {
            0.0
        }
    }
}
