//! Window counts, by architecture and size.

use cuzk_gpu_mem::DeviceInfo;
use cuzk_kernels::windows::Windows;

/// From this many terms on, this many windows.
type Row = (usize, u32);

/// Compute capability 9.0, and whatever has no table of its own. Windows of 22 bits from 2^25 on, of 20 from 2^23,
/// 17 from 2^21.5, 16 from 2^19: `docs/msm.md` has the figures. Small sums are bound by latency, so few
/// windows serve them as well as many.
const HOPPER: &[Row] = &[
    (25 << 20, 12),
    (6 << 20, 13),
    (3 << 20, 15),
    (1 << 19, 16),
    (1 << 17, 18),
    (1 << 15, 20),
    (1 << 13, 22),
    (1 << 10, 26),
    (1 << 8, 32),
    (0, 51),
];

/// How scalars are cut for sums of `terms` terms.
pub(super) fn windows(_device: &DeviceInfo, terms: usize) -> Windows {
    let count = HOPPER
        .iter()
        .find(|(from, _)| terms >= *from)
        .map_or(Windows::MAX_COUNT, |(_, count)| *count);
    Windows::new(count)
}
