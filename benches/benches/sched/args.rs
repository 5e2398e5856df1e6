//! What is to be measured.

use std::path::PathBuf;

use cuzk_groth16::synth::Shape;

const USAGE: &str = "\
options: --device cpu        or cuda: the GPUs of this machine; or emu: emulated ones
         --gpus 1,2          how many of them work, each with its workers; all: as many as there are
         --log-n 14          rows of the circuit, or a list of such
         --shape porep       or dense
         --workers 1,2,4     of each device
         --concurrency 1,2   jobs worked on at once
         --partitions 1,10   of each job
         --proofs 20         partitions proved in a row of the table, rounded up to whole jobs
         --threads 2         all cores by default
         --vram-limit 16GiB  of each GPU
         --ballast           takes what a GPU has beyond that limit, as another program would
         --timeline on       record, and show the share of time in which kernels ran
         --report            what the timeline of each row says
         --run FILE          the timeline of the last row, for `cuzk timeline`
         --overhead 5        so many rounds with the timeline off and on in turn, for the last row's engine
         --json              one object a line
         --svg FILE          draw the table";

/// Where proofs are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    Cpu,
    Cuda,
    Emulator,
}

/// What is to be measured.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) device: Where,
    /// How many GPUs work; empty is all.
    pub(crate) gpus: Vec<usize>,
    pub(crate) log_n: Vec<u32>,
    pub(crate) shape: Shape,
    pub(crate) workers: Vec<usize>,
    pub(crate) concurrency: Vec<usize>,
    pub(crate) partitions: Vec<usize>,
    pub(crate) proofs: usize,
    pub(crate) threads: usize,
    pub(crate) vram_limit: Option<u64>,
    pub(crate) ballast: bool,
    pub(crate) timeline: bool,
    pub(crate) report: bool,
    pub(crate) run: Option<PathBuf>,
    pub(crate) overhead: usize,
    pub(crate) json: bool,
    pub(crate) svg: Option<PathBuf>,
}

impl Wanted {
    /// Reads the command line.
    pub(crate) fn of(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut wanted = Self {
            device: Where::Cpu,
            gpus: vec![1],
            log_n: vec![14],
            shape: Shape::Porep,
            workers: vec![1, 2, 4],
            concurrency: vec![1, 2],
            partitions: vec![1, 10],
            proofs: 20,
            threads: 0,
            vram_limit: None,
            ballast: false,
            timeline: false,
            report: false,
            run: None,
            overhead: 0,
            json: false,
            svg: None,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} takes a value\n{USAGE}"));
            match arg.as_str() {
                // What cargo passes to every bench.
                "--bench" => {}
                // Once, at a size that takes a moment.
                "--test" => wanted.smallest(),
                "--device" => {
                    wanted.device = match value()?.as_str() {
                        "cpu" => Where::Cpu,
                        "cuda" => Where::Cuda,
                        "emu" => Where::Emulator,
                        other => return Err(format!("no device {other}\n{USAGE}")),
                    };
                }
                "--gpus" => {
                    wanted.gpus = match value()?.as_str() {
                        "all" => Vec::new(),
                        text => list(text)?,
                    };
                }
                "--log-n" => {
                    let sizes = list(&value()?)?;
                    wanted.log_n = sizes.into_iter().map(|n| n as u32).collect();
                }
                "--shape" => {
                    wanted.shape = match value()?.as_str() {
                        "porep" => Shape::Porep,
                        "dense" => Shape::Dense,
                        other => return Err(format!("no shape {other}\n{USAGE}")),
                    };
                }
                "--workers" => wanted.workers = list(&value()?)?,
                "--concurrency" => wanted.concurrency = list(&value()?)?,
                "--partitions" => wanted.partitions = list(&value()?)?,
                "--proofs" => wanted.proofs = number(&value()?)?.max(1),
                "--threads" => wanted.threads = number(&value()?)?,
                "--vram-limit" => wanted.vram_limit = Some(bytes(&value()?)?),
                "--ballast" => wanted.ballast = true,
                "--timeline" => wanted.timeline = value()? == "on",
                "--report" => wanted.report = true,
                "--run" => wanted.run = Some(value()?.into()),
                "--overhead" => wanted.overhead = number(&value()?)?,
                "--json" => wanted.json = true,
                "--svg" => wanted.svg = Some(value()?.into()),
                other => return Err(format!("unknown option {other}\n{USAGE}")),
            }
        }
        wanted.timeline |= wanted.report || wanted.run.is_some();
        Ok(wanted)
    }

    fn smallest(&mut self) {
        self.log_n = vec![6];
        self.proofs = 4;
        (self.workers, self.concurrency) = (vec![2], vec![2]);
        (self.partitions, self.timeline) = (vec![2], true);
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("not a number: {text}"))
}

fn list(text: &str) -> Result<Vec<usize>, String> {
    let numbers = text.split(',').map(|text| Ok(number(text)?.max(1)));
    numbers.collect()
}

/// A size as `16GiB`.
fn bytes(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix("GiB").and_then(|n| n.parse::<u64>().ok());
    let bytes = number.map(|gib| gib << 30);
    bytes.ok_or_else(|| format!("{text}: a size is written as 16GiB"))
}
