// The lines of windows of buckets (cuzk/bucket_reduce.cuh) as sorted entries, for pair trees to sum: every bucket is an entry of
// its row and of its column.

#include "cuzk/kernel.cuh"

using cuzk::u32;
using cuzk::u64;

// entries (windows, 2, buckets): those of a window's rows one after another, then those of its columns; an entry is the number of
// a bucket over all windows, of which first_bucket come before these. offsets (windows, rows + 2^log_columns), and one more: where
// each line begins, counted from the first entry of all windows. A row may be shorter, and those behind it are empty:
// buckets <= rows 2^log_columns. Grid of one dimension, blocks of at most 256 threads, any number; entries of all windows < 2^31.
extern "C" __global__ void __launch_bounds__(256)
    cuzk_bucket_lines_entries(u32 windows, u32 buckets, u32 first_bucket, u32 log_columns, u32 rows, u32* entries,
                              u32* offsets) {
    const u32 columns = 1u << log_columns;
    const u32 lines = rows + columns;
    // Columns below `longer` reach into the last row that is not empty.
    const u32 last_row = buckets == 0 ? 0 : (buckets - 1) >> log_columns;
    const u32 longer = buckets - (last_row << log_columns);
    for (u64 item = cuzk::grid_first(); item < 2 * static_cast<u64>(windows) * buckets; item += cuzk::grid_stride()) {
        const u32 window = static_cast<u32>(item / (2 * buckets));
        u32 place = static_cast<u32>(item % (2 * buckets));
        if (place >= buckets) {
            place -= buckets;
            const bool is_longer = place < longer * (last_row + 1);
            const u32 left = is_longer ? place : place - longer * (last_row + 1);
            const u32 length = is_longer ? last_row + 1 : last_row;
            place = ((left % length) << log_columns) + (is_longer ? 0 : longer) + left / length;
        }
        entries[item] = first_bucket + window * buckets + place;
    }
    for (u32 item = cuzk::grid_first(); item <= windows * lines; item += cuzk::grid_stride()) {
        const u32 window = item / lines;
        const u32 line = item % lines;
        u32 begin = line * columns < buckets ? line * columns : buckets;
        if (line >= rows) {
            const u32 column = line - rows;
            begin = buckets + column * last_row + (column < longer ? column : longer);
        }
        offsets[item] = 2 * (first_bucket + window * buckets) + begin;
    }
}
