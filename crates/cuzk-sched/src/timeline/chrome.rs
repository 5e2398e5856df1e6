//! A run as a trace that Chrome (chrome://tracing) and Perfetto open.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use serde_json::{Value, json};

use super::Run;

/// Writes the trace, in the JSON object format: a process for each device, a thread for each worker and
/// stream.
///
/// # Errors
/// What `out` says.
pub fn write(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let mut events = Events::begin(out)?;
    for device in &run.devices {
        events.push(&json!({
            "ph": "M", "name": "process_name", "pid": device.number,
            "args": { "name": format!("device {} ({})", device.number, device.name) },
        }))?;
    }
    let mut lanes = Lanes::default();
    for span in &run.host {
        let lane = format!("worker {}", span.worker);
        let tid = lanes.number(&mut events, span.device, lane, span.worker)?;
        let name = match span.phase {
            Some(_) => format!("{} {}/{}", span.label, span.job, span.partition),
            None => span.label.clone(),
        };
        events.push(&json!({
            "ph": "X", "pid": span.device, "tid": tid, "name": name,
            "cat": if span.phase.is_some() { "phase" } else { "stage" },
            "ts": span.begin_ms * 1e3, "dur": length(span.begin_ms, span.end_ms),
            "args": {
                "job": span.job, "partition": span.partition, "attempt": span.attempt,
            },
        }))?;
    }
    for span in &run.kernels {
        let tid = lanes.number(&mut events, span.device, span.stream.clone(), 1000)?;
        events.push(&json!({
            "ph": "X", "pid": span.device, "tid": tid, "name": span.label, "cat": "kernels",
            "ts": span.begin_ms * 1e3, "dur": length(span.begin_ms, span.end_ms),
            "args": { "worker": span.worker },
        }))?;
    }
    for copy in &run.transfers {
        let lane = format!("{} copies", copy.stream);
        let tid = lanes.number(&mut events, copy.device, lane, 2000)?;
        events.push(&json!({
            "ph": "X", "pid": copy.device, "tid": tid,
            "name": format!("{} {}", if copy.is_upload { "up" } else { "down" }, copy.label),
            "cat": "transfers",
            "ts": copy.begin_ms * 1e3, "dur": length(copy.begin_ms, copy.end_ms),
            "args": { "bytes": copy.bytes, "pinned": copy.pinned },
        }))?;
    }
    events.end()
}

/// Events as they are made: all of them as values would take many times their text.
struct Events<'w> {
    out: BufWriter<&'w mut dyn Write>,
    is_first: bool,
}

impl<'w> Events<'w> {
    fn begin(out: &'w mut dyn Write) -> io::Result<Self> {
        let mut out = BufWriter::new(out);
        out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
        Ok(Self {
            out,
            is_first: true,
        })
    }

    fn push(&mut self, event: &Value) -> io::Result<()> {
        let between: &[u8] = if self.is_first { b"\n" } else { b",\n" };
        self.is_first = false;
        self.out.write_all(between)?;
        Ok(serde_json::to_writer(&mut self.out, event)?)
    }

    fn end(mut self) -> io::Result<()> {
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }
}

/// In microseconds; clocks of two kinds can be some apart.
fn length(begin_ms: f64, end_ms: f64) -> f64 {
    ((end_ms - begin_ms) * 1e3).max(0.0)
}

/// Threads by device and name.
#[derive(Default)]
struct Lanes(BTreeMap<(usize, String), usize>);

impl Lanes {
    fn number(
        &mut self,
        events: &mut Events<'_>,
        device: usize,
        name: String,
        base: usize,
    ) -> io::Result<usize> {
        let next = base.saturating_add(self.0.len());
        let key = (device, name);
        if let Some(number) = self.0.get(&key) {
            return Ok(*number);
        }
        events.push(&json!({
            "ph": "M", "name": "thread_name", "pid": device, "tid": next,
            "args": { "name": key.1 },
        }))?;
        events.push(&json!({
            "ph": "M", "name": "thread_sort_index", "pid": device, "tid": next,
            "args": { "sort_index": next },
        }))?;
        self.0.insert(key, next);
        Ok(next)
    }
}
