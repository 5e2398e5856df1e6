//! `cargo xtask bench sched`: proofs per minute against workers, concurrency and partitions.
//!
//! One synthetic circuit, its key in memory; each row is an engine of its own that proves the same
//! number of partitions, each of them verified. The first row is the prover without an engine, one
//! proof after the other. With `--timeline on` what recording costs can be seen.
#![allow(clippy::print_stdout, reason = "a bench reports on standard output")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cuzk_formats::{ProvingKey, Witness};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};
use cuzk_groth16::{Circuit, ProveOptions, Prover};
use cuzk_sched::timeline::Report;
use cuzk_sched::{
    DeviceOptions, JobOptions, Options, Place, Proofs, Scheduler, Statement, SubmitError,
};
use serde_json::json;

const USAGE: &str = "\
options: --log-n 14          rows of the circuit
         --shape porep       or dense
         --workers 1,2,4     of the device
         --concurrency 1,2   jobs worked on at once
         --partitions 1,10   of each job
         --proofs 20         partitions proved in a row of the table, rounded up to whole jobs
         --threads 2         all cores by default
         --timeline on       record, and show the share of time in which the device computed
         --json              one object a line
         --svg FILE          draw the table";

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

#[derive(Debug)]
struct Wanted {
    log_n: u32,
    shape: Shape,
    workers: Vec<usize>,
    concurrency: Vec<usize>,
    partitions: Vec<usize>,
    proofs: usize,
    threads: usize,
    timeline: bool,
    json: bool,
    svg: Option<PathBuf>,
}

/// A row of the table. Without workers there was no engine.
#[derive(Clone, Debug)]
struct Row {
    workers: usize,
    concurrency: usize,
    partitions: usize,
    proofs: usize,
    elapsed: Duration,
    busy_share: Option<f64>,
}

impl Row {
    fn per_minute(&self) -> f64 {
        self.proofs as f64 / self.elapsed.as_secs_f64() * 60.0
    }

    fn name(&self) -> String {
        if self.workers == 0 {
            return "no engine".to_owned();
        }
        format!(
            "{} w, {} c, {} p",
            self.workers, self.concurrency, self.partitions
        )
    }
}

fn main() -> Fallible<()> {
    let wanted = parse(std::env::args().skip(1))?;
    rayon::ThreadPoolBuilder::new()
        .num_threads(wanted.threads)
        .build_global()?;
    let instance = Instance::new(wanted.shape, wanted.log_n, 1)?;
    let key = proving_key(&instance.r1cs, KeyFamily::Circom, 1)?;
    let setting = Setting {
        circuit: Circuit::R1cs(&instance.r1cs),
        witness: Arc::new(instance.witness.clone()),
        key: &key,
    };
    if !wanted.json {
        println!(
            "device cpu, threads {}, 2^{} {:?}, every proof verified",
            rayon::current_num_threads(),
            wanted.log_n,
            wanted.shape
        );
        println!(
            "{:>8} {:>12} {:>11} {:>7} {:>10} {:>15} {:>7}",
            "workers", "concurrency", "partitions", "proofs", "ms/proof", "proofs/minute", "busy"
        );
    }
    let mut rows = vec![setting.without_engine(&wanted)?];
    show(&wanted, &rows[0]);
    for &partitions in &wanted.partitions {
        for &concurrency in &wanted.concurrency {
            for &workers in &wanted.workers {
                let row = setting.row(&wanted, workers, concurrency, partitions)?;
                show(&wanted, &row);
                rows.push(row);
            }
        }
    }
    if let Some(path) = &wanted.svg {
        std::fs::write(path, picture(&rows))?;
    }
    Ok(())
}

fn show(wanted: &Wanted, row: &Row) {
    let ms = row.elapsed.as_secs_f64() * 1e3 / row.proofs as f64;
    if wanted.json {
        let object = json!({
            "workers": row.workers,
            "concurrency": row.concurrency,
            "partitions": row.partitions,
            "proofs": row.proofs,
            "ms_per_proof": ms,
            "proofs_per_minute": row.per_minute(),
            "busy_share": row.busy_share,
        });
        println!("{object}");
        return;
    }
    let busy = row
        .busy_share
        .map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
    println!(
        "{:>8} {:>12} {:>11} {:>7} {ms:>10.1} {:>15.1} {busy:>7}",
        row.workers,
        row.concurrency,
        row.partitions,
        row.proofs,
        row.per_minute()
    );
}

struct Setting<'a> {
    circuit: Circuit<'a>,
    witness: Arc<Witness>,
    key: &'a ProvingKey,
}

impl<'a> Setting<'a> {
    fn without_engine(&self, wanted: &Wanted) -> Fallible<Row> {
        let prover = Prover::new(self.key)?;
        let begun = Instant::now();
        for _ in 0..wanted.proofs {
            let options = ProveOptions::default();
            let proved = prover.prove(self.circuit.clone(), &self.witness, &options)?;
            assert!(proved.verified);
        }
        Ok(Row {
            workers: 0,
            concurrency: 1,
            partitions: 1,
            proofs: wanted.proofs,
            elapsed: begun.elapsed(),
            busy_share: None,
        })
    }

    fn row(
        &self,
        wanted: &Wanted,
        workers: usize,
        concurrency: usize,
        partitions: usize,
    ) -> Fallible<Row> {
        let prover = Prover::new(self.key)?;
        let proofs: Arc<Proofs<'a>> = Arc::new(Proofs::new(prover, self.circuit.clone()));
        let mut options = Options::new([DeviceOptions::new(Place::Cpu)]);
        options.workers_per_device = workers;
        options.concurrency = concurrency;
        options.jobs_max = concurrency + 1;
        options.timeline = wanted.timeline;
        let jobs = wanted.proofs.div_ceil(partitions);
        thread::scope(|scope| {
            let scheduler = Scheduler::start_in(scope, options)?;
            let begun = Instant::now();
            let mut under_way = std::collections::VecDeque::new();
            let mut proved = 0;
            for _ in 0..jobs {
                loop {
                    let statements = (0..partitions)
                        .map(|_| Statement::Witness(Arc::clone(&self.witness)))
                        .collect();
                    match scheduler.submit(&proofs, statements, JobOptions::default()) {
                        Ok(job) => break under_way.push_back(job),
                        // Back-pressure: the oldest makes room.
                        Err(SubmitError::Busy { .. }) => {
                            let oldest = under_way.pop_front().ok_or("busy with nothing")?;
                            proved += finished(oldest)?;
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            for job in under_way {
                proved += finished(job)?;
            }
            let elapsed = begun.elapsed();
            scheduler.drain();
            let report = scheduler.timeline().map(|run| Report::of(&run));
            Ok(Row {
                workers,
                concurrency,
                partitions,
                proofs: proved,
                elapsed,
                busy_share: report.and_then(|report| Some(report.devices.first()?.share())),
            })
        })
    }
}

type ProofJob = cuzk_sched::Job<cuzk_groth16::Proved, cuzk_sched::ProofError>;

fn finished(job: ProofJob) -> Fallible<usize> {
    let finished = job.wait()?;
    assert!(finished.outputs.iter().all(|proved| proved.verified));
    Ok(finished.outputs.len())
}

/// A bar for each row.
fn picture(rows: &[Row]) -> String {
    const LEFT: f64 = 150.0;
    const WIDTH: f64 = 760.0;
    let most = rows.iter().map(Row::per_minute).fold(1e-9, f64::max);
    let height = 40.0 + 26.0 * rows.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1000\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" fill=\"#222\">proofs a minute; w workers, c jobs at once, p \
         partitions a job</text>\n"
    );
    for (index, row) in rows.iter().enumerate() {
        let y = 32.0 + 26.0 * index as f64;
        let length = row.per_minute() / most * WIDTH;
        let colour = if row.workers == 0 {
            "#bbbbbb"
        } else {
            "#8fc1ea"
        };
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#333\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"20\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#111\">{:.1}</text>",
            LEFT - 8.0,
            y + 14.0,
            row.name(),
            LEFT + length + 6.0,
            y + 14.0,
            row.per_minute()
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Wanted, String> {
    let mut wanted = Wanted {
        log_n: 14,
        shape: Shape::Porep,
        workers: vec![1, 2, 4],
        concurrency: vec![1, 2],
        partitions: vec![1, 10],
        proofs: 20,
        threads: 0,
        timeline: false,
        json: false,
        svg: None,
    };
    let number = |text: &str| {
        text.parse::<usize>()
            .map_err(|_| format!("not a number: {text}"))
    };
    let list = |text: String| {
        let numbers: Result<Vec<usize>, _> = text.split(',').map(number).collect();
        numbers.map(|list| list.into_iter().map(|n| n.max(1)).collect())
    };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} takes a value\n{USAGE}"));
        match arg.as_str() {
            // What cargo passes to every bench.
            "--bench" => {}
            // Once, at a size that takes a moment.
            "--test" => {
                wanted.log_n = 6;
                wanted.proofs = 4;
                (wanted.workers, wanted.concurrency) = (vec![2], vec![2]);
                (wanted.partitions, wanted.timeline) = (vec![2], true);
            }
            "--log-n" => wanted.log_n = number(&value()?)? as u32,
            "--shape" => {
                wanted.shape = match value()?.as_str() {
                    "porep" => Shape::Porep,
                    "dense" => Shape::Dense,
                    other => return Err(format!("no shape {other}\n{USAGE}")),
                };
            }
            "--workers" => wanted.workers = list(value()?)?,
            "--concurrency" => wanted.concurrency = list(value()?)?,
            "--partitions" => wanted.partitions = list(value()?)?,
            "--proofs" => wanted.proofs = number(&value()?)?.max(1),
            "--threads" => wanted.threads = number(&value()?)?,
            "--timeline" => wanted.timeline = value()? == "on",
            "--json" => wanted.json = true,
            "--svg" => wanted.svg = Some(value()?.into()),
            other => return Err(format!("unknown option {other}\n{USAGE}")),
        }
    }
    Ok(wanted)
}
