// The lines of windows of buckets (cuzk/bucket_reduce.cuh) as sorted entries, for pair trees to sum: every bucket is an entry of
// its row and of its column.

#include "cuzk/kernel.cuh"

using cuzk::u32;
using cuzk::u64;

// entries (windows, 2, buckets): those of a window's rows one after another, then those of its columns; entry k is the number of
// a bucket over all windows. offsets (windows, rows + 2^log_columns), and one more: where each line begins. The last row may be
// shorter. Grid of one dimension, blocks of at most 256 threads, any number; 2 windows buckets < 2^31.
extern "C" __global__ void __launch_bounds__(256)
    cuzk_bucket_lines_entries(u32 windows, u32 buckets, u32 log_columns, u32 rows, u32* entries, u32* offsets) {
    const u32 columns = 1u << log_columns;
    const u32 lines = rows + columns;
    // Columns below `longer` reach into the last row.
    const u32 longer = buckets - (rows - 1) * columns;
    for (u64 item = cuzk::grid_first(); item < 2 * static_cast<u64>(windows) * buckets; item += cuzk::grid_stride()) {
        const u32 window = static_cast<u32>(item / (2 * buckets));
        u32 place = static_cast<u32>(item % (2 * buckets));
        if (place >= buckets) {
            place -= buckets;
            const bool is_longer = place < longer * rows;
            const u32 left = is_longer ? place : place - longer * rows;
            const u32 length = is_longer ? rows : rows - 1;
            place = ((left % length) << log_columns) + (is_longer ? 0 : longer) + left / length;
        }
        entries[item] = window * buckets + place;
    }
    for (u32 item = cuzk::grid_first(); item <= windows * lines; item += cuzk::grid_stride()) {
        const u32 window = item / lines;
        const u32 line = item % lines;
        u32 begin = line * columns < buckets ? line * columns : buckets;
        if (line >= rows) {
            const u32 column = line - rows;
            begin = buckets + column * (rows - 1) + (column < longer ? column : longer);
        }
        offsets[item] = 2 * window * buckets + begin;
    }
}
