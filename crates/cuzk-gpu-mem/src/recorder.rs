//! What happened when: spans and transfers, timed by the device.
//!
//! Lower crates fill a [`Recorder`]; the scheduler and the command line read it. Events are only
//! recorded here, and asked for their times when the work is over, so recording never waits.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::Result;
use crate::stream::{Event, Stream, StreamCore};
use crate::units::Bytes;

/// The label of spans in which the device overwrites secrets with zeros: no kernel runs in them. Only the end of a secret
/// block's life and [`Stream::wipe`] make them.
pub const WIPE: &str = "wipe";

/// Which way bytes crossed the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Host to device.
    Up,
    /// Device to host.
    Down,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Down => "down",
        })
    }
}

/// A stage of work on a stream. Times are milliseconds since the recorder was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// What was done.
    pub label: &'static str,
    /// Who asked for it.
    pub worker: usize,
    /// Where it ran.
    pub stream: &'static str,
    /// When the stream got to it.
    pub begin_ms: f64,
    /// When the stream had done it.
    pub end_ms: f64,
}

/// One copy over the bus.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferRecord {
    /// The device buffer it filled or read.
    pub label: &'static str,
    /// Which way.
    pub direction: Direction,
    /// How much.
    pub bytes: u64,
    /// Whether all its host pages were page-locked, ragged ends aside.
    pub pinned: bool,
    /// Where it ran.
    pub stream: &'static str,
    /// When it began.
    pub begin_ms: f64,
    /// When it ended.
    pub end_ms: f64,
}

/// Everything recorded, with times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Stages, in the order they began to be recorded.
    pub spans: Vec<Span>,
    /// Copies, in the order they were submitted.
    pub transfers: Vec<TransferRecord>,
}

#[derive(Debug)]
enum What {
    Span {
        worker: usize,
    },
    Transfer {
        direction: Direction,
        bytes: u64,
        pinned: bool,
    },
}

#[derive(Debug)]
struct Entry {
    label: &'static str,
    stream: &'static str,
    what: What,
    begin: Event,
    end: Event,
}

/// Collects spans and transfers of one device. Clones collect together.
#[derive(Clone, Debug)]
pub struct Recorder {
    origin: Arc<Event>,
    entries: Arc<Mutex<Vec<Entry>>>,
    worker: usize,
}

/// An entry whose end is still to come. Dropping it without an end records nothing.
#[derive(Debug)]
#[must_use = "a span is recorded when it is ended"]
pub struct OpenSpan {
    recorder: Recorder,
    label: &'static str,
    what: What,
    begin: Event,
}

impl Recorder {
    /// A recorder whose time begins now, on the device of `stream`.
    pub fn new(stream: &Stream) -> Result<Self> {
        let origin = stream.record_timed()?;
        Ok(Self {
            origin: Arc::new(origin),
            entries: Arc::default(),
            worker: 0,
        })
    }

    /// The same recorder for somebody else: spans that this one opens are `worker`'s.
    #[must_use]
    pub fn of_worker(&self, worker: usize) -> Self {
        Self {
            worker,
            ..self.clone()
        }
    }

    /// Opens a span at the present end of `stream`, which is of the recorder's device.
    pub fn span(&self, label: &'static str, stream: &Stream) -> Result<OpenSpan> {
        stream.core.link.ready()?;
        self.open_span(label, &stream.core)
    }

    fn open_span(&self, label: &'static str, stream: &StreamCore) -> Result<OpenSpan> {
        let worker = self.worker;
        self.open(label, What::Span { worker }, stream)
    }

    fn open(&self, label: &'static str, what: What, stream: &StreamCore) -> Result<OpenSpan> {
        // Times of two devices have nothing to do with each other.
        stream.same_device(&self.origin.link)?;
        let begin = stream.record_timed()?;
        Ok(OpenSpan {
            recorder: self.clone(),
            label,
            what,
            begin,
        })
    }

    /// A wipe that cannot be timed is still made.
    pub(crate) fn begin_wipe(&self, stream: &StreamCore) -> Option<OpenSpan> {
        self.open_span(WIPE, stream)
            .inspect_err(|error| tracing::debug!(%error, "wipe not recorded"))
            .ok()
    }

    /// A transfer that cannot be timed is still made.
    pub(crate) fn begin_transfer(
        &self,
        label: &'static str,
        direction: Direction,
        bytes: u64,
        pinned: bool,
        stream: &StreamCore,
    ) -> Option<OpenSpan> {
        self.open(
            label,
            What::Transfer {
                direction,
                bytes,
                pinned,
            },
            stream,
        )
        .inspect_err(|error| tracing::debug!(%error, label, "transfer not recorded"))
        .ok()
    }

    /// Waits for what was recorded and gives it times. The entries stay.
    pub fn timeline(&self) -> Result<Timeline> {
        let mut timeline = Timeline::default();
        self.origin.wait()?;
        for entry in self.entries.lock().iter() {
            entry.end.wait()?;
            let begin_ms = entry.begin.since(&self.origin)?.as_secs_f64() * 1e3;
            let end_ms = begin_ms + entry.end.since(&entry.begin)?.as_secs_f64() * 1e3;
            let (label, stream) = (entry.label, entry.stream);
            match entry.what {
                What::Span { worker } => {
                    timeline.spans.push(Span {
                        label,
                        worker,
                        stream,
                        begin_ms,
                        end_ms,
                    });
                }
                What::Transfer {
                    direction,
                    bytes,
                    pinned,
                } => {
                    timeline.transfers.push(TransferRecord {
                        label,
                        direction,
                        bytes,
                        pinned,
                        stream,
                        begin_ms,
                        end_ms,
                    });
                }
            }
        }
        Ok(timeline)
    }
}

impl OpenSpan {
    /// Ends the span at the present end of `stream`; on a stream of another device, or where no
    /// event can be recorded, the span is not recorded.
    pub fn end(self, stream: &Stream) {
        self.end_on(&stream.core);
    }

    pub(crate) fn end_on(self, stream: &StreamCore) {
        let Self {
            recorder,
            label,
            what,
            begin,
        } = self;
        let ended = stream
            .same_device(&begin.link)
            .and_then(|()| stream.record_timed());
        match ended {
            Ok(end) => {
                let stream = stream.label;
                recorder.entries.lock().push(Entry {
                    label,
                    stream,
                    what,
                    begin,
                    end,
                });
            }
            Err(error) => tracing::debug!(%error, label, "span not recorded"),
        }
    }
}

/// Transfers of one label, direction and kind, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    count: u64,
    bytes: u64,
    ms: f64,
}

impl Timeline {
    /// The inventory of what crossed the bus: a table for people, one line per label, direction
    /// and kind of host memory, and the totals.
    pub fn inventory(&self) -> String {
        let mut rows: BTreeMap<(Direction, &str, bool), Sum> = BTreeMap::new();
        let mut totals: BTreeMap<Direction, Sum> = BTreeMap::new();
        for transfer in &self.transfers {
            let key = (transfer.direction, transfer.label, transfer.pinned);
            for sum in [
                rows.entry(key).or_default(),
                totals.entry(transfer.direction).or_default(),
            ] {
                sum.count += 1;
                sum.bytes += transfer.bytes;
                sum.ms += transfer.end_ms - transfer.begin_ms;
            }
        }
        let mut text = format!(
            "{:<5} {:<20} {:<8} {:>6} {:>12} {:>10} {:>8}\n",
            "way", "buffer", "memory", "copies", "bytes", "ms", "GB/s"
        );
        let mut line = |direction: Direction, label: &str, memory: &str, sum: Sum| {
            let rate = if sum.ms > 0.0 {
                format!("{:.1}", sum.bytes as f64 / sum.ms / 1e6)
            } else {
                "-".to_owned()
            };
            text.push_str(&format!(
                "{:<5} {label:<20} {memory:<8} {:>6} {:>12} {:>10.3} {rate:>8}\n",
                direction.to_string(),
                sum.count,
                Bytes(sum.bytes).to_string(),
                sum.ms,
            ));
        };
        for ((direction, label, pinned), sum) in rows {
            line(
                direction,
                label,
                if pinned { "pinned" } else { "pageable" },
                sum,
            );
        }
        for (direction, sum) in totals {
            line(direction, "total", "", sum);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inventory_sums_by_label_direction_and_kind() {
        let transfer = |label, direction, bytes, pinned, ms| TransferRecord {
            label,
            direction,
            bytes,
            pinned,
            stream: "upload",
            begin_ms: 1.0,
            end_ms: 1.0 + ms,
        };
        let timeline = Timeline {
            spans: vec![],
            transfers: vec![
                transfer("d_a", Direction::Up, 4_000_000, true, 0.5),
                transfer("d_a", Direction::Up, 4_000_000, true, 0.5),
                transfer("d_b", Direction::Up, 1024, false, 0.0),
                transfer("sums", Direction::Down, 2048, true, 0.25),
            ],
        };
        let text = timeline.inventory();
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|l| l.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[1],
            ["up", "d_a", "pinned", "2", "7.63", "MiB", "1.000", "8.0"]
        );
        assert_eq!(
            lines[2],
            ["up", "d_b", "pageable", "1", "1", "KiB", "0.000", "-"]
        );
        assert_eq!(
            lines[3],
            ["down", "sums", "pinned", "1", "2", "KiB", "0.250", "0.0"]
        );
        assert_eq!(
            lines[4],
            ["up", "total", "3", "7.63", "MiB", "1.000", "8.0"]
        );
        assert_eq!(lines[5], ["down", "total", "1", "2", "KiB", "0.250", "0.0"]);
        assert_eq!(lines.len(), 6);
    }
}
