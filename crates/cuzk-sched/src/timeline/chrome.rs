//! A run as a trace that Chrome (chrome://tracing) and Perfetto open.

use serde_json::{Value, json};

use super::Run;

/// The trace, in the JSON object format: a process for each device, a thread for each worker and
/// stream.
pub fn trace(run: &Run) -> Value {
    let mut events = Vec::new();
    for device in &run.devices {
        events.push(json!({
            "ph": "M", "name": "process_name", "pid": device.number,
            "args": { "name": format!("device {} ({})", device.number, device.name) },
        }));
    }
    let mut lanes = Lanes::default();
    for span in &run.host {
        let tid = lanes.number(
            &mut events,
            span.device,
            format!("worker {}", span.worker),
            span.worker,
        );
        let name = match span.phase {
            Some(_) => format!("{} {}/{}", span.label, span.job, span.partition),
            None => span.label.clone(),
        };
        events.push(json!({
            "ph": "X", "pid": span.device, "tid": tid, "name": name,
            "cat": if span.phase.is_some() { "phase" } else { "stage" },
            "ts": span.begin_ms * 1e3, "dur": length(span.begin_ms, span.end_ms),
            "args": {
                "job": span.job, "partition": span.partition, "attempt": span.attempt,
            },
        }));
    }
    for span in &run.kernels {
        let tid = lanes.number(&mut events, span.device, span.stream.clone(), 1000);
        events.push(json!({
            "ph": "X", "pid": span.device, "tid": tid, "name": span.label, "cat": "kernels",
            "ts": span.begin_ms * 1e3, "dur": length(span.begin_ms, span.end_ms),
            "args": { "worker": span.worker },
        }));
    }
    for copy in &run.transfers {
        let lane = format!("{} copies", copy.stream);
        let tid = lanes.number(&mut events, copy.device, lane, 2000);
        events.push(json!({
            "ph": "X", "pid": copy.device, "tid": tid,
            "name": format!("{} {}", if copy.is_upload { "up" } else { "down" }, copy.label),
            "cat": "transfers",
            "ts": copy.begin_ms * 1e3, "dur": length(copy.begin_ms, copy.end_ms),
            "args": { "bytes": copy.bytes, "pinned": copy.pinned },
        }));
    }
    json!({ "displayTimeUnit": "ms", "traceEvents": events })
}

/// In microseconds; clocks of two kinds can be some apart.
fn length(begin_ms: f64, end_ms: f64) -> f64 {
    ((end_ms - begin_ms) * 1e3).max(0.0)
}

/// Threads by device and name.
#[derive(Default)]
struct Lanes(std::collections::BTreeMap<(usize, String), usize>);

impl Lanes {
    fn number(
        &mut self,
        events: &mut Vec<Value>,
        device: usize,
        name: String,
        base: usize,
    ) -> usize {
        let next = base.saturating_add(self.0.len());
        *self
            .0
            .entry((device, name))
            .or_insert_with_key(|(_, name)| {
                events.push(json!({
                    "ph": "M", "name": "thread_name", "pid": device, "tid": next,
                    "args": { "name": name },
                }));
                events.push(json!({
                    "ph": "M", "name": "thread_sort_index", "pid": device, "tid": next,
                    "args": { "sort_index": next },
                }));
                next
            })
    }
}
