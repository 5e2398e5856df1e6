//! The table: a row for each engine that is wanted.

use std::sync::Arc;
use std::time::Duration;

use cuzk_sched::Proofs;
use cuzk_sched::timeline::Report;
use serde_json::json;

use super::Fallible;
use super::args::Wanted;
use super::engine::{Engine, Setting};

/// A row of the table. Without workers there was no engine.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) device: String,
    pub(crate) gpus: usize,
    pub(crate) log_n: u32,
    pub(crate) workers: usize,
    pub(crate) concurrency: usize,
    pub(crate) partitions: usize,
    pub(crate) proofs: usize,
    pub(crate) elapsed: Duration,
    pub(crate) busy_share: Option<f64>,
}

impl Row {
    pub(crate) fn per_minute(&self) -> f64 {
        self.proofs as f64 / self.elapsed.as_secs_f64() * 60.0
    }

    pub(crate) fn ms(&self) -> f64 {
        self.elapsed.as_secs_f64() * 1e3 / self.proofs as f64
    }

    pub(crate) fn devices(&self) -> String {
        match self.gpus {
            0 | 1 => self.device.clone(),
            several => format!("{several} x {}", self.device),
        }
    }

    pub(crate) fn name(&self) -> String {
        if self.workers == 0 {
            return "the prover alone".to_owned();
        }
        format!(
            "{} w, {} c, {} p",
            self.workers, self.concurrency, self.partitions
        )
    }
}

/// The rows so far, each printed as it comes.
pub(crate) struct Table<'w> {
    pub(crate) wanted: &'w Wanted,
    rows: Vec<Row>,
}

impl<'w> Table<'w> {
    /// An empty one, its head printed.
    pub(crate) fn new(wanted: &'w Wanted) -> Self {
        if !wanted.json {
            println!(
                "{:>4} {:>5} {:>8} {:>12} {:>11} {:>7} {:>10} {:>15} {:>7}",
                "2^",
                "GPUs",
                "workers",
                "concurrency",
                "partitions",
                "proofs",
                "ms/proof",
                "proofs/minute",
                "busy"
            );
        }
        Self {
            wanted,
            rows: Vec::new(),
        }
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn note(&self, text: impl FnOnce() -> String) {
        if !self.wanted.json {
            println!("{}", text());
        }
    }

    pub(crate) fn push(&mut self, row: Row) {
        if self.wanted.json {
            let object = json!({
                "device": row.device,
                "gpus": row.gpus,
                "log_n": row.log_n,
                "workers": row.workers,
                "concurrency": row.concurrency,
                "partitions": row.partitions,
                "proofs": row.proofs,
                "ms_per_proof": row.ms(),
                "proofs_per_minute": row.per_minute(),
                "busy_share": row.busy_share,
            });
            println!("{object}");
        } else {
            let share = row
                .busy_share
                .map(|share| format!("{:.1} %", 100.0 * share));
            println!(
                "{:>4} {:>5} {:>8} {:>12} {:>11} {:>7} {:>10.1} {:>15.1} {:>7}",
                row.log_n,
                row.gpus,
                row.workers,
                row.concurrency,
                row.partitions,
                row.proofs,
                row.ms(),
                row.per_minute(),
                share.unwrap_or_else(|| "-".to_owned())
            );
        }
        self.rows.push(row);
    }

    /// A row for each engine that is wanted.
    pub(crate) fn of_engines<'k>(
        &mut self,
        setting: &Setting<'_>,
        proofs: &Arc<Proofs<'k>>,
    ) -> Fallible<()> {
        let wanted = self.wanted;
        let counts = match (setting.gpus.len(), wanted.gpus.as_slice()) {
            (0, _) => vec![0],
            (all, []) => vec![all],
            (_, counts) => counts.to_vec(),
        };
        let mut last = None;
        for gpus in counts {
            for &partitions in &wanted.partitions {
                for &concurrency in &wanted.concurrency {
                    for &workers in &wanted.workers {
                        let engine = Engine {
                            gpus,
                            workers,
                            concurrency,
                            partitions,
                            timeline: wanted.timeline,
                        };
                        let (row, run) = setting.row(proofs, engine)?;
                        self.push(row);
                        if let Some(run) = run.as_ref().filter(|_| wanted.report) {
                            self.note(|| Report::of(run).to_string());
                        }
                        if let (Some(path), Some(run)) = (&wanted.run, run) {
                            std::fs::write(path, serde_json::to_vec(&run)?)?;
                        }
                        last = Some(engine);
                    }
                }
            }
        }
        match last {
            Some(engine) if wanted.overhead > 0 => self.overhead(setting, proofs, engine),
            _ => Ok(()),
        }
    }

    /// What recording costs: the same engine without and with, in turn.
    fn overhead<'k>(
        &mut self,
        setting: &Setting<'_>,
        proofs: &Arc<Proofs<'k>>,
        engine: Engine,
    ) -> Fallible<()> {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..self.wanted.overhead {
            // Neither is always the first.
            for timeline in [round % 2 == 1, round % 2 == 0] {
                let (row, _) = setting.row(proofs, Engine { timeline, ..engine })?;
                times[usize::from(timeline)].push(row.ms());
            }
        }
        for times in &mut times {
            times.sort_by(f64::total_cmp);
        }
        let [off, on] = times;
        let middle = |times: &[f64]| times[times.len() / 2];
        let line = json!({
            "timeline": "overhead", "log_n": setting.log_n, "off_ms": off, "on_ms": on,
            "percent": 100.0 * (middle(&on) / middle(&off) - 1.0),
        });
        println!("{line}");
        Ok(())
    }
}
