//! How bases that come from the host are cut.

use std::ops::{Range, RangeInclusive};

use cuzk_field::Affine;
use cuzk_gpu_mem::Carve;

use super::DeviceCurve;

/// Bytes of the first batch of sparse sums: 64 MB are on the device in 1.2 ms, in which nothing is computed.
const SPARSE_FIRST_BYTES: u64 = 64 << 20;
/// Bytes of a batch of sparse sums at most: they wait for the bus, so what matters is what is left to do behind the last.
const SPARSE_BYTES: RangeInclusive<u64> = 16 << 20..=512 << 20;
/// The share of the scratch that two batches of sparse sums take. Each batch is some seventy launches, however small it is, so
/// fewer are better: H200, 2^27 rows in 16 GiB, 1151 ms a proof with a third, 1169 with a quarter.
const SPARSE_SHARE: u64 = 3;

/// How an array of bases is cut into batches: data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches {
    ranges: Vec<Range<usize>>,
}

impl Batches {
    /// Batches that grow from `first` bases to `largest`, each at most twice the one before: what is computed with one
    /// takes at least as long as the next needs to come. Those that no longer grow are equal, since small ones are slow.
    pub fn new(bases: usize, first: usize, largest: usize) -> Self {
        let mut ranges = Vec::new();
        let largest = largest.max(1);
        let (mut start, mut len) = (0, first.clamp(1, largest));
        while len < largest && start + len < bases {
            ranges.push(start..start + len);
            start += len;
            len = largest.min(2 * len);
        }
        let rest = bases - start;
        let count = rest.div_ceil(len).max(1);
        for index in 0..count {
            ranges.push(start + rest * index / count..start + rest * (index + 1) / count);
        }
        Self { ranges }
    }

    /// Batches for sums over sparse witnesses that may have `scratch_limit` bytes.
    pub fn sparse<F: DeviceCurve>(bases: usize, scratch_limit: u64) -> Self {
        let (least, most) = SPARSE_BYTES.into_inner();
        let bytes = (scratch_limit / (2 * SPARSE_SHARE)).clamp(least, most);
        let bases_in = |bytes: u64| bytes as usize / size_of::<Affine<F>>();
        Self::new(
            bases,
            bases_in(bytes.min(SPARSE_FIRST_BYTES)),
            bases_in(bytes),
        )
    }

    /// How many there are: at least one.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Bases of each, in turn.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// Bases of all together.
    pub fn bases(&self) -> usize {
        self.ranges.last().map_or(0, |range| range.end)
    }

    /// Bases of the largest.
    pub fn largest(&self) -> usize {
        self.ranges.iter().map(Range::len).max().unwrap_or(0)
    }

    /// Bytes of two of the largest on the device.
    pub(super) fn buffer_bytes<F: DeviceCurve>(&self) -> usize {
        2 * Carve::bytes_of::<Affine<F>>(self.largest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_and_cover() {
        for (bases, first, largest) in [
            (0, 1, 1),
            (1, 5, 9),
            (100, 3, 10),
            (64, 64, 64),
            (65, 1, 64),
            (7, 0, 0),
        ] {
            let batches = Batches::new(bases, first, largest);
            let ranges = batches.ranges();
            assert_eq!(ranges[0].start, 0);
            assert_eq!(batches.bases(), bases);
            for pair in ranges.windows(2) {
                assert_eq!(pair[0].end, pair[1].start);
                assert!(pair[1].len() <= 2 * pair[0].len());
            }
            assert!(batches.largest() <= largest.max(1));
        }
    }
}
