//! What the memory benches share: the device, repetition, the table.
//!
//! These benches are not Criterion's: they time a card, whole buffers at a time, and print one
//! table. Without a card, or with `--test`, the bodies run once on an emulated device, so that none
//! rots; the figures then mean nothing, and the output says so.
#![allow(dead_code)] // each bench uses its part

use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::{Device, GIB, Selector, Settings};

/// A figure: its name, its value, its unit.
pub(crate) struct Row {
    name: String,
    value: f64,
    unit: &'static str,
}

/// One run of a bench.
pub(crate) struct Bench {
    /// The device measured.
    pub(crate) device: Device,
    /// Whether the figures mean something.
    pub(crate) real: bool,
    name: &'static str,
    json: bool,
    rows: Vec<Row>,
}

impl Bench {
    /// Reads the options (`--device NAME`, `--vram-limit SIZE`, `--json`, `--test`) and opens the device.
    pub(crate) fn open(name: &'static str) -> Self {
        let args: Vec<String> = std::env::args().collect();
        let has = |option: &str| args.iter().any(|arg| arg == option);
        let named = args
            .iter()
            .position(|arg| arg == "--device")
            .and_then(|at| args.get(at + 1));
        let settings = Settings {
            limit: option("--vram-limit").map(|text| bytes(&text)),
            ..Settings::default()
        };
        let opened = match named {
            Some(text) => text
                .parse::<Selector>()
                .map_err(Into::into)
                .and_then(|selector| Device::open(&selector, settings)),
            None => Device::open_first(&settings),
        };
        let (device, real) = match opened {
            Ok(device) if !has("--test") => (device, true),
            outcome => {
                let why = outcome.map_or_else(|error| error.to_string(), |_| "--test".to_owned());
                println!("{name}: emulated device, the figures mean nothing ({why})");
                let driver = Arc::new(SimDriver::new(16 * GIB));
                (
                    Device::with_driver(driver, Settings::default()).expect("an emulated device"),
                    false,
                )
            }
        };
        println!("{name}: {}", device.info());
        Self {
            device,
            real,
            name,
            json: has("--json"),
            rows: Vec::new(),
        }
    }

    /// The size to measure with: `bytes` on a card, a token size otherwise.
    pub(crate) fn size(&self, bytes: u64) -> u64 {
        if self.real {
            bytes
        } else {
            bytes.min(256 << 10)
        }
    }

    /// The rounds to measure: `rounds` on a card, two otherwise.
    pub(crate) fn rounds(&self, rounds: usize) -> usize {
        if self.real { rounds } else { rounds.min(2) }
    }

    /// Notes and prints a figure.
    pub(crate) fn row(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        let name = name.into();
        println!("  {name:<56} {value:>12.3} {unit}");
        self.rows.push(Row { name, value, unit });
    }

    /// A rate from bytes and the median of times.
    pub(crate) fn rate(&mut self, name: impl Into<String>, bytes: u64, times: Vec<Duration>) {
        let seconds = median(times).as_secs_f64();
        self.row(name, bytes as f64 / seconds.max(1e-9) / 1e9, "GB/s");
    }

    /// Prints the whole as one line of JSON, where asked to.
    pub(crate) fn finish(self) {
        if !self.json {
            return;
        }
        let rows: Vec<String> = self
            .rows
            .iter()
            .map(|row| {
                format!(
                    "{{\"name\":{:?},\"value\":{:.6},\"unit\":{:?}}}",
                    row.name, row.value, row.unit
                )
            })
            .collect();
        println!(
            "{{\"bench\":{:?},\"device\":{:?},\"real\":{},\"rows\":[{}]}}",
            self.name,
            self.device.info().to_string(),
            self.real,
            rows.join(",")
        );
    }
}

/// What stands behind an option.
pub(crate) fn option(name: &str) -> Option<String> {
    std::env::args().skip_while(|arg| arg != name).nth(1)
}

/// Whether an option is given.
pub(crate) fn has(name: &str) -> bool {
    std::env::args().any(|arg| arg == name)
}

/// A size as `16GiB` or `512MiB`.
fn bytes(text: &str) -> u64 {
    let (number, unit) = text.split_at(text.len().saturating_sub(3));
    let unit = match unit {
        "GiB" => 1 << 30,
        "MiB" => 1 << 20,
        _ => panic!("{text}: a size is written as 16GiB or 512MiB"),
    };
    number.parse::<u64>().expect("a number") * unit
}

/// How long `body` takes.
pub(crate) fn time(body: impl FnOnce()) -> Duration {
    let start = Instant::now();
    body();
    start.elapsed()
}

/// The middle of an odd number of times, the upper middle of an even one.
pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
