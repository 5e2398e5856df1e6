//! Progress on a terminal; on anything else nothing.

use std::time::Duration;

use cuzk_formats::Progress;
use cuzk_groth16::StageCallback;
use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::shown;

/// A bar on stderr that disappears when dropped. Hidden unless stderr is a terminal.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar over the bytes of a file.
    pub(crate) fn reading(what: &str) -> Self {
        let bar = ProgressBar::new(0);
        let template = "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        bar.set_style(style(template));
        bar.set_message(format!("reading {what}"));
        Self(bar)
    }

    /// A bar over the bytes of an output.
    pub(crate) fn writing(what: &str) -> Self {
        let bar = Self::reading(what);
        bar.0.set_message(format!("writing {what}"));
        bar
    }

    /// A bar over steps of equal length.
    pub(crate) fn counting(what: &str, steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        bar.set_style(style("{msg} {bar:30} {percent}% {elapsed} {eta}"));
        bar.set_message(what.to_owned());
        Self(bar)
    }

    /// So many steps more.
    pub(crate) fn advance(&self, steps: u64) {
        self.0.inc(steps);
    }

    /// A line with the time that has passed.
    pub(crate) fn working(what: &str) -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(style("{spinner} {msg} {elapsed}"));
        bar.set_message(what.to_owned());
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Self(bar)
    }

    /// What is going on.
    pub(crate) fn say(&self, what: &str) {
        self.0.set_message(shown(what, ""));
    }

    /// Runs `print` while the bar is not on the terminal.
    pub(crate) fn hidden<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    /// What a prover tells of the stages that it begins.
    pub(crate) fn stages(&self) -> StageCallback {
        let bar = self.0.clone();
        StageCallback::new(move |stage| bar.set_message(format!("proving: {stage}")))
    }

    /// What a reader reports.
    pub(crate) fn update(&self, progress: Progress) {
        self.0.set_length(progress.total_bytes);
        self.0.set_position(progress.done_bytes);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
