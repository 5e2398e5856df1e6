//! What lies within what, without looking at every pair.

use std::collections::BTreeMap;

use cuzk_gpu_mem::WIPE;

use super::KernelSpan;

/// What a stream launched, and when it wiped.
#[derive(Default)]
pub(super) struct Stream {
    pub(super) launches: Vec<(f64, f64)>,
    pub(super) wipes: Vec<(f64, f64)>,
}

/// By their names.
pub(super) fn streams<'r>(kernels: &[&'r KernelSpan]) -> BTreeMap<&'r str, Stream> {
    let mut streams: BTreeMap<&str, Stream> = BTreeMap::new();
    for span in kernels {
        let stream = streams.entry(&span.stream).or_default();
        let spans = if span.label == WIPE {
            &mut stream.wipes
        } else {
            &mut stream.launches
        };
        // Clocks may be microseconds apart.
        if span.end_ms > span.begin_ms {
            spans.push((span.begin_ms, span.end_ms));
        }
    }
    streams
}

/// A union of intervals: in order, none touching the next.
pub(super) struct Cover {
    pub(super) intervals: Vec<(f64, f64)>,
    /// The length of all that lie before each.
    before: Vec<f64>,
}

impl Cover {
    pub(super) fn of(mut spans: Vec<(f64, f64)>) -> Self {
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut intervals: Vec<(f64, f64)> = Vec::new();
        for (begin, end) in spans {
            match intervals.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => intervals.push((begin, end)),
            }
        }
        let lengths = intervals.iter().scan(0.0, |sum, (begin, end)| {
            let before = *sum;
            *sum += end - begin;
            Some(before)
        });
        Self {
            before: lengths.collect(),
            intervals,
        }
    }

    /// How much of it lies before a time.
    pub(super) fn before(&self, ms: f64) -> f64 {
        let next = self.intervals.partition_point(|(begin, _)| *begin < ms);
        next.checked_sub(1).map_or(0.0, |last| {
            let (begin, end) = self.intervals[last];
            self.before[last] + (end.min(ms) - begin)
        })
    }

    /// What is left of it.
    pub(super) fn without(self, other: &Self) -> Vec<(f64, f64)> {
        let mut left = Vec::new();
        let mut others = other.intervals.iter().peekable();
        for (mut begin, end) in self.intervals {
            while let Some((from, to)) = others.peek()
                && *from < end
            {
                if begin < *from {
                    left.push((begin, *from));
                }
                begin = begin.max(*to);
                if *to > end {
                    break;
                }
                others.next();
            }
            if begin < end {
                left.push((begin, end));
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Phase;
    use crate::timeline::Report;
    use crate::timeline::analysis::tests::{kernel, phase, run};

    /// Kernels and wipes that lie across each other in every way, against a count by hand of each millisecond.
    #[test]
    fn wipes_are_taken_from_what_ran() {
        let kernels = [
            (0.0, 10.0),
            (4.0, 12.0),
            (20.0, 30.0),
            (30.0, 31.0),
            (40.0, 44.0),
        ];
        let wipes = [
            (-2.0, 1.0),
            (3.0, 5.0),
            (4.0, 6.0),
            (11.0, 22.0),
            (25.0, 26.0),
            (39.0, 50.0),
        ];
        let mut run = run(vec![phase(0, Phase::Compute, 0.0, 50.0)]);
        run.kernels = kernels.map(|(begin, end)| kernel(begin, end)).to_vec();
        for (begin, end) in wipes {
            run.kernels.push(KernelSpan {
                label: WIPE.to_owned(),
                ..kernel(begin, end)
            });
        }
        let is_in = |spans: &[(f64, f64)], ms: f64| {
            spans
                .iter()
                .any(|(begin, end)| (*begin..*end).contains(&ms))
        };
        let middles = || (-5..60).map(|ms| f64::from(ms) + 0.5);
        let ran = middles().filter(|ms| is_in(&kernels, *ms) && !is_in(&wipes, *ms));
        let sum: usize = kernels
            .iter()
            .map(|kernel| {
                let of_it = middles().filter(|ms| is_in(&[*kernel], *ms) && !is_in(&wipes, *ms));
                of_it.count()
            })
            .sum();
        let device = &Report::of(&run).devices[0];
        assert_eq!(device.busy_ms, ran.count() as f64);
        assert_eq!(device.kernel_sum_ms, sum as f64);
    }
}
