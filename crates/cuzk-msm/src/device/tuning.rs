//! Window counts, by architecture and size, and what multiples of the bases would gain.

use cuzk_gpu_mem::{Capability, DeviceInfo};
use cuzk_kernels::windows::Windows;

/// Entries of a list that several windows make. H200, 2^22 points: one list of 2^26 takes 20.7 ms, four of 2^24 22.6.
const LIST_ENTRIES: usize = 1 << 26;

const HOPPER_CAPABILITY: Capability = Capability { major: 9, minor: 0 };

/// Terms from which on the rule decides where nothing was measured.
const LEAST_BY_RULE: usize = 1 << 19;

/// From this many terms on, this many windows.
type Row = (usize, u32);

/// Compute capability 9.0: `docs/msm.md` has the figures. Small sums are bound by latency, so few windows serve them as
/// well as many.
const HOPPER: &[Row] = &[
    (25 << 20, 12),
    (6 << 20, 13),
    (3 << 20, 15),
    (3 << 18, 17),
    (1 << 15, 20),
    (1 << 13, 22),
    (1 << 10, 26),
    (1 << 8, 32),
    (0, 51),
];

/// What may be chosen freely.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    /// How scalars are cut.
    pub(super) windows: Windows,
    /// Entries of a list that several windows make, where there is a pipeline.
    pub(super) list_entries: usize,
}

impl Tuning {
    pub(super) fn of(windows: Windows) -> Self {
        Self {
            windows,
            list_entries: LIST_ENTRIES,
        }
    }
}

/// What an addition, its share of the sort included, costs on an H200, and what a bucket does: 0.276 ns and 0.9 ns, from
/// sums of 2^26 terms with 11 and with 12 windows. A bucket is two additions of its reduction, and pairs that meet their
/// sum where it lies.
const ADDITIONS_OF_A_BUCKET: f64 = 3.3;
/// A reduction takes most of a millisecond however small it is. Windows of two widths count two, as they took when sums were
/// measured; they take one now, and what that gains is not measured.
const ADDITIONS_OF_A_REDUCTION: f64 = 3e6;
/// What each further multiple of the bases costs, as a share: their points are gathered from more memory. From 2^20 to 2^26
/// terms and 3 to 13 multiples on an H200.
const SHARE_OF_A_MULTIPLE: f64 = 0.008;

/// What a sum costs, by the model above.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) digits: usize,
    pub(super) buckets: usize,
    reductions: usize,
    multiples: u32,
}

impl Cost {
    pub(super) fn of(terms: usize, windows: &Windows) -> Self {
        let all = (windows.count() * windows.multiples()) as usize;
        Self {
            digits: terms * all,
            buckets: buckets(windows),
            reductions: if windows.wide() == windows.count() {
                1
            } else {
                2
            },
            multiples: windows.multiples(),
        }
    }

    /// In additions.
    pub(super) fn total(&self) -> f64 {
        let additions = self.digits as f64
            + ADDITIONS_OF_A_BUCKET * self.buckets as f64
            + ADDITIONS_OF_A_REDUCTION * self.reductions as f64;
        additions * (1.0 + SHARE_OF_A_MULTIPLE * f64::from(self.multiples - 1))
    }

    /// The share of it that `other` saves.
    pub(super) fn saved(&self, other: &Self) -> f64 {
        1.0 - other.total() / self.total()
    }
}

/// The fewest windows of sums without multiples: 11 have 54 million buckets, 6 GiB of sums, and at 2^27 terms were 2%
/// slower than 12.
const FEWEST: u32 = 12;

/// The windows that cost least by the model.
fn by_rule(terms: usize) -> u32 {
    let counts = FEWEST..=Windows::MAX_COUNT;
    let cost = |count: u32| Cost::of(terms, &Windows::new(count)).total();
    counts
        .min_by(|a, b| cost(*a).total_cmp(&cost(*b)))
        .unwrap_or(Windows::MAX_COUNT)
}

/// The choice for sums of `terms` terms: measured on compute capability 9.0. Elsewhere nothing has been measured, and the
/// rule decides, where a sum is not so small that latency does.
pub(super) fn tuning(device: &DeviceInfo, terms: usize) -> Tuning {
    let row = HOPPER.iter().find(|(from, _)| terms >= *from);
    let measured = row.map_or(Windows::MAX_COUNT, |(_, count)| *count);
    let is_hopper = device.capability == HOPPER_CAPABILITY;
    let count = if is_hopper || terms < LEAST_BY_RULE {
        measured
    } else {
        by_rule(terms)
    };
    Tuning::of(Windows::new(count))
}

/// The choice for sums of `terms` terms, or if that has more buckets than `most_buckets`, so many windows that there are no
/// more, if there are such.
pub(super) fn within_buckets(device: &DeviceInfo, terms: usize, most_buckets: usize) -> Tuning {
    let first = tuning(device, terms).windows.count();
    let mut windows = (first..=Windows::MAX_COUNT).map(Windows::new);
    let fitting = windows.find(|windows| buckets(windows) <= most_buckets);
    Tuning::of(fitting.unwrap_or(Windows::new(Windows::MAX_COUNT)))
}

fn buckets(windows: &Windows) -> usize {
    windows.first_bucket(windows.count())
}

#[cfg(test)]
mod tests {
    use cuzk_gpu_mem::GIB;

    use super::*;

    #[test]
    fn windows_have_no_more_buckets_than_allowed() {
        let device = DeviceInfo::simulated(GIB);
        for most in [usize::MAX, 200_000, 20_000, 2_000] {
            let windows = within_buckets(&device, 1 << 20, most).windows;
            assert!(buckets(&windows) <= most);
            assert!(windows.count() == 17 || buckets(&Windows::new(windows.count() - 1)) > most);
        }
        let least = within_buckets(&device, 1 << 20, 0).windows;
        assert_eq!(least.count(), Windows::MAX_COUNT);
    }

    /// Where the rule was made, it chooses what was measured, or what costs within 3% of it.
    #[test]
    fn the_rule_agrees_with_what_was_measured() {
        for (terms, measured) in [(20, 17), (22, 15), (24, 13), (26, 12), (27, 12)] {
            let terms = 1_usize << terms;
            let cost = |count| Cost::of(terms, &Windows::new(count)).total();
            let chosen = by_rule(terms);
            assert!(cost(chosen) <= cost(measured));
            assert!(
                cost(measured) < 1.03 * cost(chosen),
                "{terms}: {chosen} windows"
            );
        }
    }
}
