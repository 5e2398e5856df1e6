//! What a row measures, and the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cuzk_gpu_mem::{Device, Recorder, Result, Stream, Timeline};

/// How often the ledger is read.
const SAMPLE: Duration = Duration::from_millis(1);

/// One row's measurement under way.
pub(crate) struct Meter {
    recorder: Recorder,
    begun: Instant,
    stop: Arc<AtomicBool>,
    peak: Arc<AtomicU64>,
    sampler: Option<JoinHandle<()>>,
}

impl Meter {
    pub(crate) fn begin(device: &Device, stream: &Stream) -> Result<Self> {
        let (stop, peak) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (stopped, highest, of) = (Arc::clone(&stop), Arc::clone(&peak), device.clone());
        let sampler = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                highest.fetch_max(of.budget().state().held(), Ordering::Relaxed);
                std::thread::sleep(SAMPLE);
            }
        });
        Ok(Self {
            recorder: Recorder::new(stream)?,
            begun: Instant::now(),
            stop,
            peak,
            sampler: Some(sampler),
        })
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    pub(crate) fn end(mut self, partitions: usize) -> Result<Measured> {
        let wall = self.begun.elapsed();
        self.stop.store(true, Ordering::Relaxed);
        if let Some(sampler) = self.sampler.take() {
            let _ = sampler.join();
        }
        Ok(Measured {
            partitions: partitions as f64,
            wall_ms: wall.as_secs_f64() * 1e3,
            peak_bytes: self.peak.load(Ordering::Relaxed),
            timeline: self.recorder.timeline()?,
        })
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// What a row did.
pub(crate) struct Measured {
    partitions: f64,
    wall_ms: f64,
    peak_bytes: u64,
    timeline: Timeline,
}

/// Milliseconds that at least one of the intervals covers.
fn covered(mut intervals: Vec<(f64, f64)>) -> f64 {
    intervals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut covered, mut reached) = (0.0, f64::NEG_INFINITY);
    for (begin, end) in intervals {
        covered += (end - begin.max(reached)).max(0.0);
        reached = reached.max(end);
    }
    covered
}

impl Measured {
    fn span_ms(&self, labels: &[&str]) -> f64 {
        let spans = self.timeline.spans.iter();
        let spans = spans.filter(|span| labels.contains(&span.label));
        covered(spans.map(|span| (span.begin_ms, span.end_ms)).collect()) / self.partitions
    }

    fn kernel_ms(&self) -> f64 {
        let spans = self.timeline.spans.iter();
        covered(spans.map(|span| (span.begin_ms, span.end_ms)).collect()) / self.partitions
    }

    fn upload_ms(&self) -> f64 {
        let copies = self.timeline.transfers.iter();
        covered(copies.map(|copy| (copy.begin_ms, copy.end_ms)).collect()) / self.partitions
    }

    fn gigabytes(&self) -> f64 {
        let bytes: u64 = self.timeline.transfers.iter().map(|copy| copy.bytes).sum();
        bytes as f64 / 1e9 / self.partitions
    }
}

/// All rows.
pub(crate) struct Table {
    title: String,
    rows: Vec<(String, std::result::Result<Measured, String>)>,
}

impl Table {
    pub(crate) fn new(device: &Device, log_n: u32) -> Self {
        let limit = device.budget().state().limit;
        let limit = cuzk_gpu_mem::Bytes(limit);
        Self {
            title: format!(
                "PoRep shape 2^{log_n} on {}, limit {limit}; per partition",
                device.info().name
            ),
            rows: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, name: &str, row: std::result::Result<Measured, String>) {
        // At once as well: at 2^27 rows the whole table takes minutes, and may be cut short.
        if self.rows.is_empty() {
            self.print_head();
        }
        print_row(name, &row);
        self.rows.push((name.to_owned(), row));
    }

    fn print_head(&self) {
        println!("\n{}", self.title);
        println!(
            "{:<52} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>8} {:>8}",
            "",
            "wall ms",
            "rows",
            "quotient",
            "H sum",
            "sums",
            "copies",
            "stalls",
            "GB",
            "peak GiB",
            "kernels"
        );
    }

    pub(crate) fn print(&self) {
        for (name, row) in &self.rows {
            if let Ok(row) = row {
                println!("\n{name}: over the bus, {} partitions", row.partitions);
                print!("{}", row.timeline.inventory());
            }
        }
        self.print_head();
        for (name, row) in &self.rows {
            print_row(name, row);
        }
        println!(
            "copies: time in which the bus was in use; stalls: time in which no step was under way on the device. A sum \
             whose bases come beside it counts as under way while it waits for them."
        );
    }
}

fn print_row(name: &str, row: &std::result::Result<Measured, String>) {
    match row {
        Ok(row) => {
            let wall = row.wall_ms / row.partitions;
            let kernels = row.kernel_ms();
            println!(
                "{name:<52} {wall:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>7.2} {:>8.2} {:>7.1}%",
                row.span_ms(&["rows"]),
                row.span_ms(&["quotient"]),
                row.span_ms(&["H sum"]),
                row.span_ms(&["sums", "witness sums"]),
                row.upload_ms(),
                wall - kernels,
                row.gigabytes(),
                row.peak_bytes as f64 / f64::from(1 << 30),
                100.0 * kernels / wall,
            );
        }
        Err(error) => println!("{name:<52} not here: {error}"),
    }
}
