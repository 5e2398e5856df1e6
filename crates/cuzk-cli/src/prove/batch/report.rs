//! What is told of many proofs: a line each, and the sum.

use std::path::PathBuf;
use std::time::Duration;

use cuzk_groth16::Proved;
use cuzk_sched::Options;
use serde_json::{Value, json};

use super::Task;
use crate::args::ProofFormat;
use crate::exit::{Exit, shown};
use crate::load::Loader;
use crate::prove::gpu_use::GpuUse;
use crate::prove::result::{hex, parsed};
use crate::report::{Lines, Outcome, millis};
use crate::{memory, signals};

/// One partition's result.
pub(super) struct Line<'a> {
    pub(super) name: String,
    pub(super) number: usize,
    pub(super) index: usize,
    pub(super) proved: &'a Proved,
    pub(super) elapsed_ms: f64,
    pub(super) attempts: u32,
    /// Where it was proved, of several devices.
    pub(super) device: Option<&'a String>,
    pub(super) places: Option<&'a [PathBuf; 2]>,
    pub(super) texts: &'a [Vec<u8>; 2],
}

impl Line<'_> {
    pub(super) fn text(&self) -> String {
        let verified = if self.proved.verified {
            "verified"
        } else {
            "not verified"
        };
        let mut line = format!("{:<24} {verified} {:>10.1} ms", self.name, self.elapsed_ms);
        if let Some(device) = self.device {
            line.push_str(&format!("  {device}"));
        }
        if let Some([proof, _]) = self.places {
            line.push_str(&format!("  {}", proof.display()));
        }
        shown(&line, "") + "\n"
    }

    pub(super) fn json(&self, format: ProofFormat) -> Value {
        let mut line = json!({
            "witness": self.name,
            "proof_number": self.number,
            "partition": self.index,
            "verified": self.proved.verified,
            "attempts": self.attempts,
            "elapsed_ms": self.elapsed_ms,
        });
        if let Some(device) = self.device {
            line["device"] = device.as_str().into();
        }
        if let Some([proof, public]) = self.places {
            line["proof_path"] = proof.display().to_string().into();
            line["public_path"] = public.display().to_string().into();
        } else {
            let [proof, public] = self.texts;
            line["proof"] = match format {
                ProofFormat::Snarkjs => parsed(&String::from_utf8_lossy(proof)),
                _ => hex(proof).into(),
            };
            line["public"] = parsed(&String::from_utf8_lossy(public));
        }
        line
    }
}

/// What came of all of it.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) proved: usize,
    pub(super) failed: usize,
    pub(super) not_begun: usize,
    /// The timeline could not be written.
    pub(super) is_timeline_lost: bool,
    /// A result could not be written.
    pub(super) is_full: bool,
    pub(super) proving: Duration,
    pub(super) exit: Exit,
}

impl Tally {
    pub(super) fn outcome(
        self,
        task: Task<'_>,
        options: &Options,
        gpus: &[GpuUse],
        loader: &Loader,
    ) -> Outcome {
        let Task {
            args,
            batch,
            device,
            begun,
            ..
        } = task;
        let proving = self.proving;
        let all = batch.partitions * batch.proofs;
        let not_begun = all - self.proved - self.failed;
        let timeline = args.many.timeline.as_ref();
        let timeline = timeline.filter(|_| !self.is_timeline_lost);
        let per_minute = self.proved as f64 / proving.as_secs_f64().max(1e-9) * 60.0;
        let per_minute = (per_minute * 10.0).round() / 10.0;
        let peak_host_bytes = memory::peak_host_bytes();
        let json = json!({
            "command": "prove",
            "version": env!("CARGO_PKG_VERSION"),
            "partitions": all,
            "partitions_per_proof": batch.partitions,
            "proved": self.proved,
            "failed": self.failed,
            "not_begun": not_begun,
            "verified": options.verify,
            "workers_per_device": options.workers_per_device,
            "concurrency": options.concurrency,
            "device": device,
            "gpus": gpus.iter().map(GpuUse::to_json).collect::<Vec<_>>(),
            "stages": loader.stages,
            "prove_ms": millis(proving),
            "partitions_per_minute": per_minute,
            "elapsed_ms": millis(begun.elapsed()),
            "peak_host_bytes": peak_host_bytes,
            "timeline_path": timeline.map(|path| path.display().to_string()),
            "notes": loader.notes.texts(),
        });
        let mut lines = Lines::default();
        lines.line("proved", format_args!("{} of {all}", self.proved));
        if self.failed + not_begun > 0 {
            lines.line("failed", self.failed);
            lines.line("not begun", not_begun);
        }
        lines.line("device", device);
        lines.line(
            "rate",
            format_args!(
                "{per_minute:.1} a minute, {} workers, {} proofs at once",
                options.workers_per_device, options.concurrency
            ),
        );
        lines.line(
            "total",
            format_args!("{:>10.1} ms", millis(begun.elapsed())),
        );
        let verified = if options.verify {
            "yes, each"
        } else {
            "no: --no-verify was given"
        };
        lines.line("verified", verified);
        Outcome {
            json,
            text: lines.finish(),
            exit: signals::received().unwrap_or(self.exit),
        }
    }
}
