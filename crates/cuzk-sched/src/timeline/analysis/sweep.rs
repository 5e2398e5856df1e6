//! One pass along the axis: what goes on at a time, and what a device waits for.

use std::collections::BTreeMap;

use super::{Cause, Stall};
use crate::message::Phase;

/// What goes on, as counters along the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Kernel,
    Upload,
    Download,
    Memory,
    Wipe,
    In(Phase),
}

const KINDS: usize = 9;

impl What {
    fn index(self) -> usize {
        match self {
            Self::Kernel => 0,
            Self::Upload => 1,
            Self::Download => 2,
            Self::Memory => 3,
            Self::Wipe => 4,
            Self::In(Phase::Stage) => 5,
            Self::In(Phase::Wait) => 6,
            Self::In(Phase::Compute) => 7,
            Self::In(Phase::Finish) => 8,
        }
    }
}

/// One pass along the axis.
#[derive(Default)]
pub(super) struct Sweep {
    pub(super) total_ms: f64,
    pub(super) steady_ms: f64,
    pub(super) busy_ms: f64,
    pub(super) upload_ms: f64,
    pub(super) hidden_ms: f64,
    pub(super) stalls: BTreeMap<Cause, Stall>,
}

impl Sweep {
    /// None where nothing happened. `busy` is what a device does that does not wait.
    pub(super) fn over(spans: &[(What, f64, f64)], busy: What) -> Option<Self> {
        let mut edges: Vec<(f64, What, i32)> = Vec::with_capacity(2 * spans.len());
        for (what, begin, end) in spans {
            edges.push((*begin, *what, 1));
            edges.push((*end, *what, -1));
        }
        edges.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (first, last) = (edges.first()?.0, edges.last()?.0);
        let of_busy = || spans.iter().filter(|(what, ..)| *what == busy);
        let begin = of_busy().map(|(_, begin, _)| *begin).fold(last, f64::min);
        let end = of_busy().map(|(_, _, end)| *end).fold(first, f64::max);
        let mut sweep = Self {
            total_ms: last - first,
            steady_ms: (end - begin).max(0.0),
            ..Self::default()
        };
        let mut counts = [0_i32; KINDS];
        let (mut at, mut stretch) = (first, None);
        for (time, what, step) in edges {
            let ms = time - at;
            if ms > 0.0 {
                sweep.segment(&counts, busy, ms, &mut stretch);
                at = time;
            }
            counts[what.index()] += step;
        }
        Some(sweep)
    }

    /// A stretch in which nothing begins or ends. `stretch` is the cause of the one before, and its
    /// length so far.
    fn segment(
        &mut self,
        counts: &[i32; KINDS],
        busy: What,
        ms: f64,
        stretch: &mut Option<(Cause, f64)>,
    ) {
        let is_on = |what: What| counts[what.index()] > 0;
        if is_on(What::Upload) {
            self.upload_ms += ms;
        }
        if is_on(busy) {
            self.busy_ms += ms;
            if is_on(What::Upload) {
                self.hidden_ms += ms;
            }
            *stretch = None;
            return;
        }
        let copies = is_on(What::Upload) || is_on(What::Download);
        let cause = if is_on(What::Wipe) {
            Cause::Wipe
        } else if is_on(What::In(Phase::Compute)) {
            if copies {
                Cause::CopyInSection
            } else {
                Cause::HostInSection
            }
        } else if is_on(What::In(Phase::Wait)) {
            Cause::Handover
        } else if is_on(What::Memory) {
            Cause::Memory
        } else if is_on(What::In(Phase::Stage)) {
            if copies {
                Cause::Upload
            } else {
                Cause::Staging
            }
        } else if is_on(What::In(Phase::Finish)) {
            Cause::Finishing
        } else {
            Cause::NoWork
        };
        let (is_new, length) = match *stretch {
            Some((before, length)) if before == cause => (false, length + ms),
            _ => (true, ms),
        };
        *stretch = Some((cause, length));
        let stall = self.stalls.entry(cause).or_insert(Stall {
            cause,
            ms: 0.0,
            count: 0,
            longest_ms: 0.0,
        });
        stall.ms += ms;
        stall.count += usize::from(is_new);
        stall.longest_ms = stall.longest_ms.max(length);
    }
}
