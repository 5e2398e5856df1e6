//! Window counts, by architecture and size.

use cuzk_gpu_mem::DeviceInfo;
use cuzk_kernels::windows::Windows;

/// Entries of a list that several windows make. H200, 2^22 points: one list of 2^26 takes 20.7 ms, four of 2^24 22.6.
const LIST_ENTRIES: usize = 1 << 26;

/// From this many terms on, this many windows.
type Row = (usize, u32);

/// Compute capability 9.0, and whatever has no table of its own: `docs/msm.md` has the figures. Small sums are bound by latency, so few
/// windows serve them as well as many.
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

/// The choice for sums of `terms` terms.
pub(super) fn tuning(_device: &DeviceInfo, terms: usize) -> Tuning {
    let count = HOPPER
        .iter()
        .find(|(from, _)| terms >= *from)
        .map_or(Windows::MAX_COUNT, |(_, count)| *count);
    Tuning {
        windows: Windows::new(count),
        list_entries: LIST_ENTRIES,
    }
}
