//! What a run says: how much of the time kernels ran, and what they waited for when they did not.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use cuzk_gpu_mem::Bytes;

use super::cover::{Cover, streams};
use super::{DeviceFacts, Run, Spans, on_one_line};
use crate::message::Phase;

/// The label of an attempt that found no device memory.
pub(crate) const NOT_ADMITTED: &str = "not admitted";

/// All of it, for people by [`fmt::Display`].
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

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wipe => "secrets being wiped on the device",
            Self::CopyInSection => "a copy inside the compute section",
            Self::HostInSection => "the host inside the compute section",
            Self::Handover => "the permit passing from one partition to the next",
            Self::Memory => "device memory, for which a partition waits",
            Self::Upload => "an upload before computing",
            Self::Staging => "the host, staging",
            Self::Finishing => "the host, finishing, with nothing staged",
            Self::NoWork => "no partition in hand",
        })
    }
}

/// What goes on, as counters along the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Kernel,
    Upload,
    Download,
    Memory,
    Wipe,
    In(Phase),
}

const KINDS: usize = 9;

impl What {
    fn index(self) -> usize {
        match self {
            Self::Kernel => 0,
            Self::Upload => 1,
            Self::Download => 2,
            Self::Memory => 3,
            Self::Wipe => 4,
            Self::In(Phase::Stage) => 5,
            Self::In(Phase::Wait) => 6,
            Self::In(Phase::Compute) => 7,
            Self::In(Phase::Finish) => 8,
        }
    }
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
            inventory: inventory(run),
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

/// One pass along the axis.
#[derive(Default)]
struct Sweep {
    total_ms: f64,
    steady_ms: f64,
    busy_ms: f64,
    upload_ms: f64,
    hidden_ms: f64,
    stalls: BTreeMap<Cause, Stall>,
}

impl Sweep {
    fn over(spans: &[(What, f64, f64)], busy: What) -> Option<Self> {
        let mut edges: Vec<(f64, What, i32)> = Vec::with_capacity(2 * spans.len());
        for (what, begin, end) in spans {
            edges.push((*begin, *what, 1));
            edges.push((*end, *what, -1));
        }
        edges.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (first, last) = (edges.first()?.0, edges.last()?.0);
        let of_busy = || spans.iter().filter(|(what, ..)| *what == busy);
        let begin = of_busy().map(|(_, begin, _)| *begin).fold(last, f64::min);
        let end = of_busy().map(|(_, _, end)| *end).fold(first, f64::max);
        let mut sweep = Self {
            total_ms: last - first,
            steady_ms: (end - begin).max(0.0),
            ..Self::default()
        };
        let mut counts = [0_i32; KINDS];
        let (mut at, mut stretch) = (first, None);
        for (time, what, step) in edges {
            let ms = time - at;
            if ms > 0.0 {
                sweep.segment(&counts, busy, ms, &mut stretch);
                at = time;
            }
            counts[what.index()] += step;
        }
        Some(sweep)
    }

    /// A stretch in which nothing begins or ends. `stretch` is the cause of the one before, and its
    /// length so far.
    fn segment(
        &mut self,
        counts: &[i32; KINDS],
        busy: What,
        ms: f64,
        stretch: &mut Option<(Cause, f64)>,
    ) {
        let is_on = |what: What| counts[what.index()] > 0;
        if is_on(What::Upload) {
            self.upload_ms += ms;
        }
        if is_on(busy) {
            self.busy_ms += ms;
            if is_on(What::Upload) {
                self.hidden_ms += ms;
            }
            *stretch = None;
            return;
        }
        let copies = is_on(What::Upload) || is_on(What::Download);
        let cause = if is_on(What::Wipe) {
            Cause::Wipe
        } else if is_on(What::In(Phase::Compute)) {
            if copies {
                Cause::CopyInSection
            } else {
                Cause::HostInSection
            }
        } else if is_on(What::In(Phase::Wait)) {
            Cause::Handover
        } else if is_on(What::Memory) {
            Cause::Memory
        } else if is_on(What::In(Phase::Stage)) {
            if copies {
                Cause::Upload
            } else {
                Cause::Staging
            }
        } else if is_on(What::In(Phase::Finish)) {
            Cause::Finishing
        } else {
            Cause::NoWork
        };
        let (is_new, length) = match *stretch {
            Some((before, length)) if before == cause => (false, length + ms),
            _ => (true, ms),
        };
        *stretch = Some((cause, length));
        let stall = self.stalls.entry(cause).or_insert(Stall {
            cause,
            ms: 0.0,
            count: 0,
            longest_ms: 0.0,
        });
        stall.ms += ms;
        stall.count += usize::from(is_new);
        stall.longest_ms = stall.longest_ms.max(length);
    }
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

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for device in &self.devices {
            write!(f, "{device}")?;
        }
        if !self.inventory.is_empty() {
            write!(f, "\nover the bus\n{}", self.inventory)?;
        }
        Ok(())
    }
}

impl fmt::Display for DeviceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let busy = if self.has_kernels {
            "kernels ran"
        } else {
            "it computed"
        };
        writeln!(
            f,
            "device {} ({}): {busy} {:.1} of {:.1} ms, {:.1} %; {:.1} ms with begin and end",
            self.device,
            on_one_line(&self.name),
            self.busy_ms,
            self.steady_ms,
            100.0 * self.share(),
            self.total_ms
        )?;
        if self.has_kernels {
            writeln!(f, "  sum of all kernels: {:.1} ms", self.kernel_sum_ms)?;
        }
        if let Some(share) = self.hidden_upload_share {
            writeln!(
                f,
                "  of the uploads' time, under kernels: {:.1} %",
                100.0 * share
            )?;
        }
        for (phase, count, ms) in &self.phases {
            let mean = ms / (*count as f64).max(1.0);
            writeln!(f, "  {phase:<8} {count:>6} times, mean {mean:>10.2} ms")?;
        }
        if !self.stalls.is_empty() {
            writeln!(f, "  not busy while it waited for")?;
        }
        for stall in &self.stalls {
            writeln!(
                f,
                "    {:<50} {:>10.2} ms in {:>5}, longest {:>9.2} ms",
                stall.cause.to_string(),
                stall.ms,
                stall.count,
                stall.longest_ms
            )?;
        }
        Ok(())
    }
}

/// What crossed the bus, by device, direction, buffer and kind of host memory.
fn inventory(run: &Run) -> String {
    /// Device, whether down, buffer, whether pinned.
    type Key<'a> = (usize, bool, &'a str, bool);
    let mut rows: BTreeMap<Key<'_>, (u64, u64, f64)> = BTreeMap::new();
    for copy in &run.transfers {
        let key = (
            copy.device,
            !copy.is_upload,
            copy.label.as_str(),
            copy.pinned,
        );
        let (count, bytes, ms) = rows.entry(key).or_default();
        *count += 1;
        *bytes = bytes.saturating_add(copy.bytes);
        *ms += copy.end_ms - copy.begin_ms;
    }
    let mut text = String::new();
    for ((device, is_down, label, pinned), (count, bytes, ms)) in rows {
        let (way, memory) = (
            if is_down { "down" } else { "up" },
            if pinned { "pinned" } else { "pageable" },
        );
        let rate = if ms > 0.0 {
            format!("{:.1} GB/s", bytes as f64 / ms / 1e6)
        } else {
            "-".to_owned()
        };
        let (bytes, label) = (Bytes(bytes).to_string(), on_one_line(label));
        let _ = writeln!(
            text,
            "  device {device} {way:<5} {label:<20} {memory:<9} {count:>6} copies {bytes:>12} \
             {ms:>10.2} ms {rate:>11}"
        );
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use cuzk_gpu_mem::WIPE;

    use super::*;
    use crate::timeline::{HostSpan, KernelSpan, TransferSpan};

    pub(in crate::timeline) fn phase(
        partition: usize,
        phase: Phase,
        begin_ms: f64,
        end_ms: f64,
    ) -> HostSpan {
        HostSpan {
            device: 0,
            worker: partition % 2,
            job: 1,
            partition,
            attempt: 0,
            label: phase.name().to_owned(),
            phase: Some(phase),
            begin_ms,
            end_ms,
        }
    }

    pub(in crate::timeline) fn run(host: Vec<HostSpan>) -> Run {
        Run {
            format: Run::FORMAT.to_owned(),
            devices: vec![DeviceFacts {
                number: 0,
                name: "a device".to_owned(),
                is_gpu: true,
                workers: 2,
            }],
            host,
            kernels: Vec::new(),
            transfers: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(in crate::timeline) fn kernel(begin_ms: f64, end_ms: f64) -> KernelSpan {
        KernelSpan {
            device: 0,
            worker: 0,
            stream: "compute".to_owned(),
            label: "msm".to_owned(),
            begin_ms,
            end_ms,
        }
    }

    /// stage 0-10 (upload 4-10), compute 10-30 (kernels 12-20, 18-28; copy 28-30), then the other:
    /// stage 35-40, wait 40-41, compute 41-50 (kernel 41-50), finish 50-60.
    #[test]
    fn every_gap_has_its_cause() {
        let mut run = run(vec![
            phase(0, Phase::Stage, 0.0, 10.0),
            phase(0, Phase::Compute, 10.0, 30.0),
            phase(1, Phase::Stage, 35.0, 40.0),
            phase(1, Phase::Wait, 40.0, 41.0),
            phase(1, Phase::Compute, 41.0, 50.0),
            phase(1, Phase::Finish, 50.0, 60.0),
        ]);
        run.kernels = vec![kernel(12.0, 20.0), kernel(18.0, 28.0), kernel(41.0, 50.0)];
        // Behind kernels; beside those of another stream, which is no waiting; and among those of its own.
        for (stream, begin_ms, end_ms) in [
            ("compute", 28.0, 28.5),
            ("upload 0", 45.0, 46.0),
            ("compute", 43.0, 43.25),
        ] {
            run.kernels.push(KernelSpan {
                label: WIPE.to_owned(),
                stream: stream.to_owned(),
                ..kernel(begin_ms, end_ms)
            });
        }
        let copy = |is_upload, begin_ms, end_ms| TransferSpan {
            device: 0,
            stream: "upload 0".to_owned(),
            label: "witness".to_owned(),
            is_upload,
            bytes: 1 << 20,
            pinned: true,
            begin_ms,
            end_ms,
        };
        run.transfers = vec![copy(true, 4.0, 14.0), copy(false, 28.0, 30.0)];
        let report = Report::of(&run);
        let device = &report.devices[0];
        assert_eq!(device.busy_ms, 16.0 + 8.75);
        assert_eq!(device.kernel_sum_ms, 26.75);
        assert_eq!((device.total_ms, device.steady_ms), (60.0, 38.0));
        assert_eq!(device.hidden_upload_share, Some(0.2));
        let mut stalls: Vec<_> = device
            .stalls
            .iter()
            .map(|s| (s.cause, s.ms, s.count))
            .collect();
        stalls.sort_by_key(|(cause, ..)| *cause);
        assert_eq!(
            stalls,
            [
                (Cause::Wipe, 0.75, 2),
                (Cause::CopyInSection, 3.5, 2),
                (Cause::Handover, 1.0, 1),
                (Cause::Upload, 6.0, 1),
                (Cause::Staging, 9.0, 2),
                (Cause::Finishing, 10.0, 1),
                (Cause::NoWork, 5.0, 1),
            ]
        );
        let gaps: f64 = device.stalls.iter().map(|stall| stall.ms).sum();
        assert_eq!(gaps + device.busy_ms, device.total_ms);
        assert!(
            report
                .to_string()
                .contains("kernels ran 24.8 of 38.0 ms, 65.1 %")
        );
    }

    #[test]
    fn without_kernels_the_computing_phases_count() {
        let run = run(vec![
            phase(0, Phase::Compute, 0.0, 6.0),
            phase(1, Phase::Compute, 4.0, 10.0),
        ]);
        let report = Report::of(&run);
        assert_eq!(report.devices[0].busy_ms, 10.0);
        assert_eq!(report.devices[0].share(), 1.0);
        assert!(!report.devices[0].has_kernels);
    }

    #[test]
    fn a_partition_that_waits_for_memory_is_seen_waiting() {
        let mut refused = phase(1, Phase::Stage, 5.0, 5.5);
        refused.label = NOT_ADMITTED.to_owned();
        let run = run(vec![
            phase(0, Phase::Compute, 0.0, 8.0),
            refused,
            phase(1, Phase::Stage, 12.0, 13.0),
            phase(1, Phase::Compute, 13.0, 20.0),
        ]);
        let stalls = &Report::of(&run).devices[0].stalls;
        assert_eq!((stalls[0].cause, stalls[0].ms), (Cause::Memory, 4.0));
    }

    #[test]
    fn an_empty_run_has_nothing_to_report() {
        assert_eq!(Report::of(&run(vec![])).devices, []);
    }
}
