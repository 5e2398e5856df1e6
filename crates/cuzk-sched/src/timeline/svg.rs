//! A run as a picture: time to the right, one lane for each worker and each stream.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use cuzk_gpu_mem::WIPE;

use super::{HostSpan, KernelSpan, Run, Spans, TransferSpan, on_one_line};
use crate::message::Phase;

const WIDTH: f64 = 1600.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 70.0;
const LANE: f64 = 34.0;
const STREAM: f64 = 22.0;
const GAP: f64 = 6.0;
const DEVICE_GAP: f64 = 26.0;
/// Roughly, of a letter at a size of 11.
const LETTER: f64 = 6.4;

/// Draws it.
pub fn waterfall(run: &Run) -> String {
    let canvas = Canvas::of(run);
    let mut body = String::new();
    let mut y = TOP;
    let all = run.by_device();
    for device in &run.devices {
        if let Some(spans) = all.get(&device.number) {
            y += canvas.device(&mut body, spans, device.number, &device.name, y) + DEVICE_GAP;
        }
    }
    let height = y.max(TOP + LANE) + 10.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    canvas.legend(&mut svg);
    canvas.axis(&mut svg, height);
    svg.push_str(&body);
    svg.push_str("</svg>\n");
    svg
}

/// What is drawn of a stream, in this order.
#[derive(Default)]
struct Lane<'r> {
    launches: Vec<&'r KernelSpan>,
    wipes: Vec<&'r KernelSpan>,
    copies: Vec<&'r TransferSpan>,
}

/// The axis.
struct Canvas {
    begin_ms: f64,
    end_ms: f64,
    jobs: usize,
}

impl Canvas {
    fn of(run: &Run) -> Self {
        let host = run.host.iter().map(|s| (s.begin_ms, s.end_ms));
        let kernels = run.kernels.iter().map(|s| (s.begin_ms, s.end_ms));
        let copies = run.transfers.iter().map(|s| (s.begin_ms, s.end_ms));
        let all = host.chain(kernels).chain(copies);
        let (begin, end) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(b, e), (x, y)| {
            (b.min(x), e.max(y))
        });
        let is_empty = begin >= end;
        Self {
            begin_ms: if is_empty { 0.0 } else { begin },
            end_ms: if is_empty { 1.0 } else { end },
            jobs: run
                .host
                .iter()
                .map(|s| s.job)
                .collect::<BTreeSet<_>>()
                .len(),
        }
    }

    fn x(&self, ms: f64) -> f64 {
        let share = (ms - self.begin_ms) / (self.end_ms - self.begin_ms);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    /// Ticks at round times.
    fn axis(&self, svg: &mut String, height: f64) {
        let span = self.end_ms - self.begin_ms;
        let rough = span / 12.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        // A dozen and some, however short the run.
        for tick in (0..40).map(|tick| f64::from(tick) * step) {
            if tick > span {
                break;
            }
            let x = self.x(self.begin_ms + tick);
            let text = time(tick, step);
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"#e0e0e0\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{text}</text>",
                TOP - 14.0,
                height - 8.0,
                TOP - 18.0
            );
        }
    }

    fn legend(&self, svg: &mut String) {
        let mut x = LEFT;
        let entries = [
            ("stage", colour(Phase::Stage)),
            ("wait for the permit", colour(Phase::Wait)),
            ("compute", colour(Phase::Compute)),
            ("finish and verify", colour(Phase::Finish)),
            ("kernels", KERNELS),
            ("wipe", WIPES),
            ("upload", UPLOAD),
            ("download", DOWNLOAD),
        ];
        for (name, colour) in entries {
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"14\" width=\"14\" height=\"14\" fill=\"{colour}\" \
                 stroke=\"#777\" stroke-width=\"0.5\"/>\
                 <text x=\"{}\" y=\"25\" fill=\"#222\">{name}</text>",
                x + 19.0
            );
            x += 40.0 + LETTER * name.len() as f64;
        }
        let numbers = if self.jobs > 1 {
            "numbers: job / partition"
        } else {
            "numbers: partition"
        };
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"25\" fill=\"#555\">{numbers}</text>"
        );
    }

    /// Draws a device's lanes; gives their height.
    fn device(
        &self,
        svg: &mut String,
        spans: &Spans<'_>,
        device: usize,
        name: &str,
        top: f64,
    ) -> f64 {
        let mut workers: BTreeMap<usize, Vec<&HostSpan>> = BTreeMap::new();
        for span in &spans.host {
            workers.entry(span.worker).or_default().push(span);
        }
        let mut streams: BTreeMap<&str, Lane<'_>> = BTreeMap::new();
        for span in &spans.kernels {
            let lane = streams.entry(&span.stream).or_default();
            // A wipe may lie within the launches that its block was for.
            let bars = if span.label == WIPE {
                &mut lane.wipes
            } else {
                &mut lane.launches
            };
            bars.push(span);
        }
        for copy in &spans.transfers {
            streams.entry(&copy.stream).or_default().copies.push(copy);
        }
        let _ = writeln!(
            svg,
            "<text x=\"8\" y=\"{:.1}\" font-weight=\"bold\" fill=\"#222\">device {device}: {}</text>",
            top + 6.0,
            escaped(name)
        );
        let mut y = top + 14.0;
        for (worker, spans) in workers {
            lane_name(svg, &format!("worker {worker}"), y, LANE);
            // Stages within phases lie over them, at half the height.
            for span in spans.iter().filter(|span| span.phase.is_some()) {
                self.phase(svg, span, y);
            }
            for span in spans.iter().filter(|span| span.phase.is_none()) {
                let (begin, end) = (span.begin_ms, span.end_ms);
                let label = escaped(&span.label);
                let hint = format!("{label}, partition {}/{}", span.job, span.partition);
                self.bar(
                    svg,
                    (begin, end),
                    (y + LANE - 13.0, 13.0),
                    STAGES,
                    &label,
                    &hint,
                );
            }
            y += LANE + GAP;
        }
        for (stream, lane) in streams {
            lane_name(svg, stream, y, STREAM);
            for (spans, colour) in [(lane.launches, KERNELS), (lane.wipes, WIPES)] {
                for span in spans {
                    let label = escaped(&span.label);
                    let at = (span.begin_ms, span.end_ms);
                    let hint = format!("{label}, worker {}", span.worker);
                    self.bar(svg, at, (y, STREAM), colour, &label, &hint);
                }
            }
            for copy in lane.copies {
                let colour = if copy.is_upload { UPLOAD } else { DOWNLOAD };
                let label = escaped(&copy.label);
                let hint = format!("{label}: {} bytes", copy.bytes);
                let at = (copy.begin_ms, copy.end_ms);
                self.bar(svg, at, (y, STREAM), colour, &label, &hint);
            }
            y += STREAM + GAP;
        }
        y - top
    }

    fn phase(&self, svg: &mut String, span: &HostSpan, y: f64) {
        let Some(phase) = span.phase else { return };
        let number = if self.jobs > 1 {
            format!("{}/{}", span.job, span.partition)
        } else {
            span.partition.to_string()
        };
        let label = match phase {
            Phase::Compute => number.clone(),
            Phase::Stage | Phase::Finish => number.clone(),
            Phase::Wait => String::new(),
        };
        let again = if span.attempt > 0 {
            format!(", attempt {}", u64::from(span.attempt) + 1)
        } else {
            String::new()
        };
        let hint = format!("{} {number}{again}", escaped(&span.label));
        let at = (span.begin_ms, span.end_ms);
        self.bar(svg, at, (y, LANE), colour(phase), &label, &hint);
    }

    /// A bar with its label, if there is room for it.
    fn bar(
        &self,
        svg: &mut String,
        (begin_ms, end_ms): (f64, f64),
        (y, height): (f64, f64),
        colour: &str,
        label: &str,
        hint: &str,
    ) {
        let x = self.x(begin_ms);
        let width = (self.x(end_ms) - x).max(0.4);
        let _ = write!(
            svg,
            "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{height:.1}\" \
             fill=\"{colour}\" stroke=\"#777\" stroke-width=\"0.3\">\
             <title>{hint}: {:.3} ms at {:.3}</title></rect>",
            end_ms - begin_ms,
            begin_ms
        );
        if LETTER * label.chars().count() as f64 + 4.0 <= width {
            // Above the stages within a phase.
            let text_y = y + if height >= LANE {
                14.0
            } else {
                height / 2.0 + 4.0
            };
            let _ = write!(
                svg,
                "<text x=\"{:.2}\" y=\"{text_y:.1}\" fill=\"#111\">{label}</text>",
                x + 3.0
            );
        }
        svg.push('\n');
    }
}

const KERNELS: &str = "#6f9fe0";
const WIPES: &str = "#d05050";
const UPLOAD: &str = "#f0a030";
const DOWNLOAD: &str = "#b06ac0";
const STAGES: &str = "#ffffff";

fn colour(phase: Phase) -> &'static str {
    match phase {
        Phase::Stage => "#f7d794",
        Phase::Wait => "#e8e8e8",
        Phase::Compute => "#8fc1ea",
        Phase::Finish => "#a9d8a2",
    }
}

fn lane_name(svg: &mut String, name: &str, y: f64, height: f64) {
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#333\">{}</text>",
        LEFT - 8.0,
        y + height / 2.0 + 4.0,
        escaped(name)
    );
}

/// A time with as many digits as steps of that size need.
fn time(ms: f64, step_ms: f64) -> String {
    if step_ms >= 1000.0 {
        format!("{:.0} s", ms / 1e3)
    } else if step_ms >= 100.0 {
        format!("{:.1} s", ms / 1e3)
    } else if step_ms >= 1.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{ms:.2} ms")
    }
}

/// Labels come from a file.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in on_one_line(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}
