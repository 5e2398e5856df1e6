//! Results: for people aligned lines, for machines one JSON object.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use cuzk_formats::Note;
use serde::Serialize;
use serde_json::Value;

use crate::exit::{Exit, Failure, shown};

/// What a command has to say when it is done.
pub(crate) struct Outcome {
    /// For machines.
    pub(crate) json: Value,
    /// For people; whole lines.
    pub(crate) text: String,
    /// How the program ends.
    pub(crate) exit: Exit,
}

impl Outcome {
    /// A successful outcome.
    pub(crate) fn success(json: Value, text: String) -> Self {
        Self {
            json,
            text,
            exit: Exit::Success,
        }
    }

    /// Prints the result on stdout.
    pub(crate) fn print(self, is_json: bool) -> Exit {
        let text = if is_json {
            format!("{}\n", self.json)
        } else {
            self.text
        };
        crate::after_printing(write_out(&text), self.exit)
    }
}

/// Prints a part of a result that is not to wait for the rest. A reader that has gone away ends it.
pub(crate) fn stream(text: &str) -> Result<(), Failure> {
    write_out(text).map_err(Failure::Result)
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Milliseconds with a resolution of microseconds.
pub(crate) fn millis(elapsed: Duration) -> f64 {
    (elapsed.as_secs_f64() * 1e6).round() / 1e3
}

/// A stage of a command with its wall time.
#[derive(Clone, Serialize, Debug)]
pub(crate) struct StageTime {
    name: String,
    elapsed_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mb_per_s: Option<f64>,
}

impl StageTime {
    /// A stage.
    pub(crate) fn new(name: &str, elapsed: Duration) -> Self {
        Self {
            name: name.to_owned(),
            elapsed_ms: millis(elapsed),
            file_bytes: None,
            mb_per_s: None,
        }
    }

    /// A stage that read or wrote a file of this size.
    pub(crate) fn moving(name: &str, elapsed: Duration, file_bytes: u64) -> Self {
        let rate = file_bytes as f64 / 1e6 / elapsed.as_secs_f64().max(1e-9);
        Self {
            file_bytes: Some(file_bytes),
            mb_per_s: Some((rate * 10.0).round() / 10.0),
            ..Self::new(name, elapsed)
        }
    }

    /// Times `work`.
    pub(crate) fn of<T>(stages: &mut Vec<Self>, name: &str, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = work();
        stages.push(Self::new(name, begun.elapsed()));
        result
    }
}

/// Lines of a name and a value, the values below each other.
#[derive(Default)]
pub(crate) struct Lines(String);

impl Lines {
    /// Appends a line.
    pub(crate) fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        let value = shown(&value.to_string(), "");
        let _ = writeln!(self.0, "{:<18} {value}", format!("{name}:"));
    }

    /// Appends the stages and their times.
    pub(crate) fn stages(&mut self, stages: &[StageTime]) {
        for stage in stages {
            let rate = match stage.mb_per_s {
                Some(rate) => format!("  {rate:.0} MB/s"),
                None => String::new(),
            };
            let name = format!("  {}", stage.name);
            self.line(&name, format_args!("{:>10.1} ms{rate}", stage.elapsed_ms));
        }
    }

    /// Appends text as it is.
    pub(crate) fn raw(&mut self, text: &str) {
        self.0.push_str(text);
        if !text.ends_with('\n') {
            self.0.push('\n');
        }
    }

    /// All lines.
    pub(crate) fn finish(self) -> String {
        self.0
    }
}

/// Notes on one file: warned of once, and kept for the result.
#[derive(Default)]
pub(crate) struct Notes(Vec<String>);

impl Notes {
    /// Takes the notes on a file.
    pub(crate) fn add(&mut self, file: &str, notes: &[Note]) {
        for note in notes {
            let text = format!("{file}: {note}");
            tracing::warn!("{}", shown(&text, ""));
            self.0.push(text);
        }
    }

    /// All notes.
    pub(crate) fn texts(&self) -> &[String] {
        &self.0
    }
}
