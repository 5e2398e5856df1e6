// Sums of buckets weighted with their numbers: sum_k (k + 1) B_k over the M buckets of each window.
//
// With k = row H + col the sum is H sum_row row R_row + sum_col (col + 1) C_col, where R_row is the plain sum of a row and
// C_col that of a column: two additions a bucket, all of them mixed and without order, and then two weighted sums of about
// sqrt(M) points. A *line* is a row or a column; the lines of a window are its rows, then its columns.
#pragma once

#include "cuzk/pair_tail.cuh"

namespace cuzk {
namespace bucket_reduce {

// How a window is cut.
struct Grid {
    u32 buckets;
    // H = 2^log_columns
    u32 log_columns;
    u32 rows;
    // Buckets that one thread adds up; the parts that a row and a column have of that.
    u32 part;
    u32 row_parts;
    u32 column_parts;
};

CUZK_FN u32 columns_of(const Grid& grid) { return 1u << grid.log_columns; }
CUZK_FN u32 lines_of(const Grid& grid) { return grid.rows + columns_of(grid); }
CUZK_FN u32 parts_of(const Grid& grid) { return grid.rows * grid.row_parts + columns_of(grid) * grid.column_parts; }

// partial[window][part] = the sum of a part of a line: row by row the parts of each, then column by column the first part
// of each, and so on.
template <class F>
CUZK_FN void sum_parts(Xyzz<F>& sum, const Affine<F>* sums, u32 windows, const Grid& grid, Xyzz<F>* partial) {
    const u32 parts = parts_of(grid);
    const u32 row_parts = grid.rows * grid.row_parts;
    const u64 count = static_cast<u64>(windows) * parts;
    for (u64 item = grid_first(); item < count; item += grid_stride()) {
        const u32 window = static_cast<u32>(item / parts);
        const u32 part = static_cast<u32>(item % parts);
        // Buckets first, first + step, ..., below end.
        u32 first;
        u32 end;
        u32 step;
        if (part < row_parts) {
            const u32 row = part / grid.row_parts;
            const u32 from = part % grid.row_parts * grid.part;
            const u32 to = from + grid.part < columns_of(grid) ? from + grid.part : columns_of(grid);
            first = (row << grid.log_columns) + from;
            end = (row << grid.log_columns) + to;
            step = 1;
        } else {
            const u32 column = (part - row_parts) & (columns_of(grid) - 1);
            const u32 from = ((part - row_parts) >> grid.log_columns) * grid.part;
            const u32 to = from + grid.part < grid.rows ? from + grid.part : grid.rows;
            first = (from << grid.log_columns) + column;
            end = ((to - 1) << grid.log_columns) + column + 1;
            step = columns_of(grid);
        }
        end = end < grid.buckets ? end : grid.buckets;
        const Affine<F>* window_sums = sums + static_cast<u64>(window) * grid.buckets;
        set_infinity(sum);
        CUZK_NO_UNROLL
        for (u32 k = first; k < end; k += step) {
            const Affine<F> point = window_sums[k];
            pair_tail::add_point(sum, point);
        }
        pair_tail::finish(sum);
        partial[item] = canonical(sum);
    }
}

// lines[window][line] = the sum of its parts.
template <class F>
CUZK_FN void sum_lines(Xyzz<F>& sum, const Xyzz<F>* partial, u32 windows, const Grid& grid, Xyzz<F>* lines) {
    const u32 line_count = lines_of(grid);
    const u32 row_parts = grid.rows * grid.row_parts;
    for (u32 item = grid_first(); item < windows * line_count; item += grid_stride()) {
        const u32 window = item / line_count;
        const u32 line = item % line_count;
        const bool is_row = line < grid.rows;
        const u32 first = is_row ? line * grid.row_parts : row_parts + line - grid.rows;
        const u32 step = is_row ? 1 : columns_of(grid);
        const u32 parts = is_row ? grid.row_parts : grid.column_parts;
        const Xyzz<F>* from = partial + (static_cast<u64>(window) * parts_of(grid) + first);
        set_infinity(sum);
        CUZK_NO_UNROLL
        for (u32 i = 0; i < parts; i++) {
            const Xyzz<F> term = from[i * step];
            add_xyzz(sum, term);
        }
        lines[item] = canonical(sum);
    }
}

// sum_i (i + offset) lines[i] over `count` lines, offset 0 or 1, by one block of THREADS threads, a power of two. Thread t has
// lines t per_thread and on, per_thread = 2^log_per_thread. With S_t the sum of its lines and T_t = sum_j j lines[t per_thread
// + j], the result is sum_t T_t + per_thread sum_t t S_t, and sum_t t S_t = sum_(t >= 1) sum_(u >= t) S_u.
template <class F, u32 THREADS>
CUZK_FN void weigh(Xyzz<F>* plain, Xyzz<F>* weighted, const Xyzz<F>* lines, u32 count, u32 offset, u32 log_per_thread, Xyzz<F>& out) {
    const u32 t = threadIdx.x;
    const u32 per_thread = 1u << log_per_thread;
    set_infinity(plain[t]);
    set_infinity(weighted[t]);
    CUZK_NO_UNROLL
    for (u32 j = per_thread; j-- > 0;) {
        const u32 line = (t << log_per_thread) + j;
        if (line < count) {
            const Xyzz<F> term = lines[line];
            add_xyzz(plain[t], term);
        }
        if (j > 0) {
            add_xyzz(weighted[t], plain[t]);
        }
    }
    __syncthreads();
    CUZK_NO_UNROLL
    for (u32 step = 1; step < THREADS; step *= 2) {
        Xyzz<F> other;
        set_infinity(other);
        if (t + step < THREADS) {
            other = plain[t + step];
        }
        __syncthreads();
        add_xyzz(plain[t], other);
        __syncthreads();
    }
    if (t == 0) {
        if (offset != 0) {
            add_xyzz(weighted[0], plain[0]);
        }
    } else {
        CUZK_NO_UNROLL
        for (u32 i = 0; i < log_per_thread; i++) {
            double_xyzz(plain[t]);
        }
        add_xyzz(weighted[t], plain[t]);
    }
    __syncthreads();
    CUZK_NO_UNROLL
    for (u32 half = THREADS / 2; half > 0; half /= 2) {
        if (t < half) {
            add_xyzz(weighted[t], weighted[t + half]);
        }
        __syncthreads();
    }
    if (t == 0) {
        out = canonical(weighted[0]);
    }
}

// out[window] = 2^log_columns pair[0] + pair[1]
template <class F>
CUZK_FN void join(Xyzz<F>& sum, const Xyzz<F>* pairs, u32 windows, u32 log_columns, Xyzz<F>* out) {
    for (u32 window = grid_first(); window < windows; window += grid_stride()) {
        sum = pairs[2 * window];
        CUZK_NO_UNROLL
        for (u32 i = 0; i < log_columns; i++) {
            double_xyzz(sum);
        }
        const Xyzz<F> other = pairs[2 * window + 1];
        add_xyzz(sum, other);
        out[window] = canonical(sum);
    }
}

}  // namespace bucket_reduce
}  // namespace cuzk
