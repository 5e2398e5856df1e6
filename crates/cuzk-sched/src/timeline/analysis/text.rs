//! A report for people.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use cuzk_gpu_mem::Bytes;

use super::{Cause, DeviceReport, Report};
use crate::timeline::{Run, on_one_line};

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
pub(super) fn inventory(run: &Run) -> String {
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
