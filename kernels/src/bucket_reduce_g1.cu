// Weighted sums of the buckets of windows in G1: cuzk/bucket_reduce.cuh has the terms.
//
// Every entry: a grid of one dimension; no dynamic shared memory. sums (windows, buckets), canonical points on the curve;
// partial (windows, parts), lines (windows, rows + columns), pairs (windows, 2), out (windows): canonical. With one part a line
// `partial` has the layout of `lines`, and cuzk_bucket_reduce_g1_sum_lines is left out.

#include "cuzk/bucket_reduce.cuh"

using cuzk::u32;
using Point = cuzk::G1Affine;
using Sum = cuzk::G1Xyzz;
namespace reduce = cuzk::bucket_reduce;

namespace {

struct Slot {
    Sum sum;
    // 224 bytes apart, 16-byte accesses of eight threads meet each bank at most twice.
    u32 padding[8];
};

constexpr u32 weigh_threads = 128;

}  // namespace

// The parts of all lines; blocks of at most 128 threads, any number.
extern "C" __global__ void __launch_bounds__(128) cuzk_bucket_reduce_g1_sum_parts(
    const Point* sums, u32 windows, u32 buckets, u32 log_columns, u32 rows, u32 part, u32 row_parts, u32 column_parts,
    Sum* partial) {
    CUZK_SHARED(Slot, slots, 128);
    reduce::sum_parts(
        slots[threadIdx.x].sum, sums, windows, {buckets, log_columns, rows, part, row_parts, column_parts}, partial);
}

// The lines; blocks of at most 128 threads, any number.
extern "C" __global__ void __launch_bounds__(128) cuzk_bucket_reduce_g1_sum_lines(
    const Sum* partial, u32 windows, u32 log_columns, u32 rows, u32 row_parts, u32 column_parts, Sum* lines) {
    CUZK_SHARED(Slot, slots, 128);
    reduce::sum_lines(slots[threadIdx.x].sum, partial, windows, {0, log_columns, rows, 0, row_parts, column_parts}, lines);
}

// The lines as points in affine coordinates, (count), to lines; blocks of at most 128 threads, any number.
extern "C" __global__ void __launch_bounds__(128)
    cuzk_bucket_reduce_g1_lift(const Point* points, u32 count, Sum* lines) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        Sum sum;
        cuzk::set_affine(sum, points[i]);
        lines[i] = sum;
    }
}

// The weighted sums of rows and columns; two blocks a window of exactly 128 threads. A thread has 2^log_per_row_thread of
// the rows or 2^log_per_column_thread of the columns.
extern "C" __global__ void __launch_bounds__(128) cuzk_bucket_reduce_g1_weigh(
    const Sum* lines, u32 log_columns, u32 rows, u32 log_per_row_thread, u32 log_per_column_thread, Sum* pairs) {
    CUZK_SHARED(Sum, plain, weigh_threads);
    CUZK_SHARED(Sum, weighted, weigh_threads);
    const u32 window = blockIdx.x / 2;
    const u32 columns = 1u << log_columns;
    const bool is_row = blockIdx.x % 2 == 0;
    reduce::weigh<cuzk::Fp, weigh_threads>(
        plain, weighted, lines + (static_cast<cuzk::u64>(window) * (rows + columns) + (is_row ? 0 : rows)),
        is_row ? rows : columns, is_row ? 0 : 1, is_row ? log_per_row_thread : log_per_column_thread, pairs[blockIdx.x]);
}

// The two of each window joined; blocks of at most 128 threads, any number.
extern "C" __global__ void __launch_bounds__(128)
    cuzk_bucket_reduce_g1_join(const Sum* pairs, u32 windows, u32 log_columns, Sum* out) {
    CUZK_SHARED(Slot, slots, 128);
    reduce::join(slots[threadIdx.x].sum, pairs, windows, log_columns, out);
}
