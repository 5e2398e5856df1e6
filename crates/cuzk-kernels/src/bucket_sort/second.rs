//! `kernels/src/bucket_sort_second.cu`: from columns to buckets.

use super::THREADS;
use crate::declare::kernels;
use crate::{Ptr, PtrMut};

kernels! {
    module "bucket_sort_second";
    /// See [`sort`](super::sort).
    COUNT_BUCKETS = cuzk_bucket_sort_count_buckets[THREADS](
        lows: Ptr<u16>, starts: Ptr<u32>, tile_starts: Ptr<u32>, tile_columns: Ptr<u32>,
        counts: PtrMut<u32>, columns: u32, low_bits: u32,
    );
    /// See [`sort`](super::sort).
    OFFSETS = cuzk_bucket_sort_offsets[THREADS](
        counts: PtrMut<u32>, starts: Ptr<u32>, tile_starts: Ptr<u32>, offsets: PtrMut<u32>, columns: u32,
        low_bits: u32, first_entry: u32,
    );
    /// See [`sort`](super::sort).
    TO_BUCKETS = cuzk_bucket_sort_to_buckets[THREADS](
        indices: Ptr<u32>, lows: Ptr<u16>, starts: Ptr<u32>, tile_starts: Ptr<u32>,
        tile_columns: Ptr<u32>, run_starts: Ptr<u32>, offsets: Ptr<u32>, entries: PtrMut<u32>,
        columns: u32, low_bits: u32, first_entry: u32,
    );
}
