// Digits of scalars sorted by bucket: two passes, each of which counts, sums the counts and moves.
//
// A *column* is a bin of one window: 2^low_bits buckets that follow each other. Columns of all windows, and of all parts
// (scalar vectors), are numbered in one row, and bucket b of column c has the number c 2^low_bits + b. The first pass
// takes tiles of scalars and gathers each tile's digits by column; the second takes tiles of one column each and gathers
// by bucket. A tile is gathered in shared memory and written out in runs. Counts of a tile stand in a row of a table
// that is then summed down its columns, so each tile knows where its runs begin, and no block waits for another. Any
// distribution costs about the same: a column with many digits has many tiles.
//
// Digits of zero are dropped. The order within a bucket is that of chance.

#include "cuzk/block_scan.cuh"
#include "cuzk/windows.cuh"

using cuzk::Fr;
using cuzk::u16;
using cuzk::u32;
using cuzk::u64;
using cuzk::Windows;

namespace {

constexpr u32 threads = 512;
// Elements of a tile: six bytes each of shared memory, beside two tables of up to 2^11 words, so that a multiprocessor
// holds two blocks.
constexpr u32 tile_len = 28 * threads;
// Elements that a thread has on their way at a time.
constexpr u32 at_a_time = 7;
// Windows at most.
constexpr u32 max_windows = 64;

// How the scalars lie: as integers, in Montgomery form, or recoded, in eight planes of one word of each.
enum Form : u32 { integers = 0, montgomery = 1, planes = 2 };

CUZK_FN Fr load_recoded(const Windows& windows, const u32* scalars, u32 i, u32 count, Form form) {
    Fr x;
    if (form == planes) {
        CUZK_UNROLL
        for (u32 word = 0; word < 8; ++word) {
            x.v[word] = scalars[static_cast<u64>(word) * count + i];
        }
        return x;
    }
    const uint4* const halves = reinterpret_cast<const uint4*>(scalars) + 2 * static_cast<u64>(i);
    const uint4 low = halves[0];
    const uint4 high = halves[1];
    x = Fr{{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    if (form == montgomery) {
        x = cuzk::mul(Fr{{1, 0, 0, 0, 0, 0, 0, 0}}, x);
    }
    return cuzk::recode(windows, x);
}

// Where the columns of window w begin among those of a part, whose first window is `first`.
CUZK_FN u32 column_of_window(const Windows& windows, u32 w, u32 first, u32 low_bits) {
    return (cuzk::first_bucket(windows, w) - cuzk::first_bucket(windows, first)) >> low_bits;
}

}  // namespace

// counts[tile][c] = the digits of the tile's scalars in column c of the part's windows, first_window and the
// `window_count` from there. Where recoded is not null, it gets the recoded scalars, eight planes of `count` words; the
// scalars must not be recoded already.
// A block a tile, of 512 threads; 16 KiB and 4 bytes a column of dynamic shared memory, 1 KiB of static; at most 64
// windows.
// scalars: 8 words each, 16-byte aligned, any value; counts: (tiles + 1, columns), all rows but the last are written.
extern "C" __global__ void __launch_bounds__(threads)
    cuzk_bucket_sort_count(const u32* scalars, u32 form, u32 count, Windows windows, u32 first_window, u32 window_count,
                           u32 low_bits, u32 columns, u32* counts, u32* recoded) {
    // Of each window: the word in which it begins, the bit of that, its width, its first column.
    CUZK_SHARED(uint4, places, max_windows);
    CUZK_SHARED_DYNAMIC(u32, shared);
    u32* const word = shared + threadIdx.x;
    u32* const counters = shared + 8 * threads;
    for (u32 c = threadIdx.x; c < columns; c += threads) {
        counters[c] = 0;
    }
    if (threadIdx.x < window_count) {
        const u32 w = first_window + threadIdx.x;
        const u32 bit = cuzk::first_bit(windows, w);
        places[threadIdx.x] = make_uint4(bit / 32, bit % 32, cuzk::window_width(windows, w),
                                         column_of_window(windows, w, first_window, low_bits));
    }
    __syncthreads();
    const u32 tile_begin = blockIdx.x * tile_len;
    const u32 tile_end = count - tile_begin < tile_len ? count : tile_begin + tile_len;
    for (u32 i = tile_begin + threadIdx.x; i < tile_end; i += threads) {
        const Fr x = load_recoded(windows, scalars, i, count, static_cast<Form>(form));
        CUZK_UNROLL
        for (u32 j = 0; j < 8; ++j) {
            word[j * threads] = x.v[j];
            if (recoded != nullptr) {
                recoded[static_cast<u64>(j) * count + i] = x.v[j];
            }
        }
        for (u32 first = 0; first < window_count; first += 4) {
            CUZK_UNROLL
            for (u32 j = 0; j < 4; ++j) {
                if (first + j < window_count) {
                    const uint4 place = places[first + j];
                    const u32 next = place.x < 7 ? place.x + 1 : 7;
                    const u32 magnitude =
                        cuzk::digit_at(place.y, place.z, word[place.x * threads], word[next * threads]).magnitude;
                    if (magnitude != 0) {
                        // Additions of one whose result is not used are joined by the hardware.
                        atomicAdd(&counters[place.w + ((magnitude - 1) >> low_bits)], 1u);
                    }
                }
            }
        }
    }
    __syncthreads();
    for (u32 c = threadIdx.x; c < columns; c += threads) {
        counts[static_cast<u64>(blockIdx.x) * columns + c] = counters[c];
    }
}

// totals[c] = the sum of counts[row][c] over all rows.
// A block of 1024 threads for 32 columns. counts: (rows or more, columns); totals: (columns).
extern "C" __global__ void __launch_bounds__(1024)
    cuzk_bucket_sort_column_totals(const u32* counts, u32* totals, u32 rows, u32 columns) {
    CUZK_SHARED(u32, sums, 1024);
    const u32 column = blockIdx.x * 32 + threadIdx.x % 32;
    u32 sum = 0;
    if (column < columns) {
        for (u32 row = threadIdx.x / 32; row < rows; row += 32) {
            sum += counts[static_cast<u64>(row) * columns + column];
        }
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (u32 half = 512; half >= 32; half /= 2) {
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x < 32 && column < columns) {
        totals[column] = sums[threadIdx.x];
    }
}

// starts[c] = the totals before column c; tile_starts[c] = the tiles of the second pass before it: each column
// has as few as hold its digits.
// One block of 1024 threads. totals: (columns); starts, tile_starts: (columns + 1).
extern "C" __global__ void __launch_bounds__(1024)
    cuzk_bucket_sort_column_starts(const u32* totals, u32* starts, u32* tile_starts, u32 columns) {
    CUZK_SHARED(u32, warp_totals, 32);
    const u32 each = (columns + 1023) / 1024;
    const u32 begin = threadIdx.x * each < columns ? threadIdx.x * each : columns;
    const u32 end = begin + each < columns ? begin + each : columns;
    u32 sum = 0;
    u32 tiles = 0;
    for (u32 c = begin; c < end; ++c) {
        sum += totals[c];
        tiles += (totals[c] + tile_len - 1) / tile_len;
    }
    u32 all;
    u32 all_tiles;
    u32 start = cuzk::block_exclusive_sum(sum, warp_totals, all);
    u32 tile_start = cuzk::block_exclusive_sum(tiles, warp_totals, all_tiles);
    for (u32 c = begin; c < end; ++c) {
        starts[c] = start;
        tile_starts[c] = tile_start;
        start += totals[c];
        tile_start += (totals[c] + tile_len - 1) / tile_len;
    }
    if (threadIdx.x == 0) {
        starts[columns] = all;
        tile_starts[columns] = all_tiles;
    }
}

// tile_columns[t] = the column of tile t of the second pass.
// Blocks of 256 threads, a warp a column. tile_starts: (columns + 1); tile_columns: (tile_starts[columns] or more).
extern "C" __global__ void __launch_bounds__(256)
    cuzk_bucket_sort_tile_columns(const u32* tile_starts, u32* tile_columns, u32 columns) {
    const u32 column = cuzk::grid_first() / 32;
    if (column < columns) {
        for (u32 tile = tile_starts[column] + threadIdx.x % 32; tile < tile_starts[column + 1]; tile += 32) {
            tile_columns[tile] = column;
        }
    }
}

// counts[row][c] becomes starts[c] + the counts of column c in the rows before; the row behind the last gets where the
// column's digits end.
// A block of 1024 threads for 32 columns. counts: (rows + 1, columns); starts: (columns).
extern "C" __global__ void __launch_bounds__(1024)
    cuzk_bucket_sort_run_starts(u32* counts, const u32* starts, u32 rows, u32 columns) {
    CUZK_SHARED(u32, sums, 1024);
    const u32 column = blockIdx.x * 32 + threadIdx.x % 32;
    const u32 lane = threadIdx.x / 32;
    const u32 each = (rows + 31) / 32;
    const u32 begin = lane * each < rows ? lane * each : rows;
    const u32 end = begin + each < rows ? begin + each : rows;
    u32 sum = 0;
    CUZK_NO_UNROLL
    for (u32 row = begin; row < end && column < columns; row += 8) {
        CUZK_UNROLL
        for (u32 j = 0; j < 8; ++j) {
            sum += row + j < end ? counts[static_cast<u64>(row + j) * columns + column] : 0;
        }
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (column >= columns) {
        return;
    }
    u32 running = starts[column];
    for (u32 before = 0; before < lane; ++before) {
        running += sums[before * 32 + threadIdx.x % 32];
    }
    CUZK_NO_UNROLL
    for (u32 row = begin; row < end; row += 8) {
        u32 values[8];
        CUZK_UNROLL
        for (u32 j = 0; j < 8; ++j) {
            values[j] = row + j < end ? counts[static_cast<u64>(row + j) * columns + column] : 0;
        }
        CUZK_UNROLL
        for (u32 j = 0; j < 8; ++j) {
            if (row + j < end) {
                counts[static_cast<u64>(row + j) * columns + column] = running;
            }
            running += values[j];
        }
    }
    if (lane == 31) {
        counts[static_cast<u64>(rows) * columns + column] = running;
    }
}

// Moves the digits of window first_window + blockIdx.y of a tile to their columns: indices[p] = the base's index, with
// bit 31 set where it is subtracted; lows[p] = the bucket within the column. The base of scalar i is bases[i], or
// first_base + i where bases is null.
// Blocks (tiles, windows) of 512 threads; dynamic shared memory: 6 bytes for each of tile_len digits and 8 bytes for
// each column of the widest window.
// scalars, form, count, windows, first_window, low_bits as for counting; run_starts: (tiles + 1, columns) of this part.
extern "C" __global__ void __launch_bounds__(threads)
    cuzk_bucket_sort_to_columns(const u32* scalars, u32 form, u32 count, Windows windows, u32 first_window,
                                u32 low_bits, u32 columns, const u32* run_starts, const u32* bases, u32 first_base,
                                u32* indices, u16* lows) {
    CUZK_SHARED(u32, warp_totals, threads / 32);
    CUZK_SHARED_DYNAMIC(u32, staged);
    u16* const staged_bins = reinterpret_cast<u16*>(staged + tile_len);
    const u32 w = first_window + blockIdx.y;
    const u32 bins = 1u << (cuzk::window_width(windows, w) - 1 - low_bits);
    u32* const next = staged + tile_len + tile_len / 2;
    u32* const displacement = next + bins;
    const u32* const row = run_starts + static_cast<u64>(blockIdx.x) * columns +
                           column_of_window(windows, w, first_window, low_bits);
    for (u32 b = threadIdx.x; b < bins; b += threads) {
        const u32 start = row[b];
        displacement[b] = start;
        next[b] = row[columns + b] - start;
    }
    __syncthreads();
    const u32 all = cuzk::block_exclusive_sums(next, bins, warp_totals);
    for (u32 b = threadIdx.x; b < bins; b += threads) {
        displacement[b] -= next[b];
    }
    __syncthreads();
    const u32 at = cuzk::first_bit(windows, w) / 32;
    const u32 shift = cuzk::first_bit(windows, w) % 32;
    const u32 width = cuzk::window_width(windows, w);
    const u32 tile_begin = blockIdx.x * tile_len;
    // Every thread of the block makes the same turns.
    CUZK_NO_UNROLL
    for (u32 turn = 0; turn < tile_len && tile_begin + turn < count; turn += at_a_time * threads) {
        const u32 k = turn + threadIdx.x;
        u32 words[at_a_time];
        u32 above[at_a_time];
        CUZK_UNROLL
        for (u32 j = 0; j < at_a_time; ++j) {
            const u32 i = tile_begin + k + j * threads;
            words[j] = 0;
            above[j] = 0;
            if (i < count && form == planes) {
                words[j] = scalars[static_cast<u64>(at) * count + i];
                above[j] = shift + width > 32 ? scalars[static_cast<u64>(at + 1) * count + i] : 0;
            }
        }
        if (form != planes) {
            CUZK_NO_UNROLL
            for (u32 j = 0; j < at_a_time; ++j) {
                const u32 i = tile_begin + k + j * threads;
                if (i < count) {
                    const Fr x = load_recoded(windows, scalars, i, count, static_cast<Form>(form));
                    u32 word = 0;
                    u32 next_word = 0;
                    CUZK_UNROLL
                    for (u32 v = 0; v < 8; ++v) {
                        word = v == at ? x.v[v] : word;
                        next_word = v == at + 1 ? x.v[v] : next_word;
                    }
                    CUZK_UNROLL
                    for (u32 v = 0; v < at_a_time; ++v) {
                        words[v] = v == j ? word : words[v];
                        above[v] = v == j ? next_word : above[v];
                    }
                }
            }
        }
        bool is_common = false;
        CUZK_UNROLL
        for (u32 j = 0; j < at_a_time; ++j) {
            const cuzk::Digit digit = cuzk::digit_at(shift, width, words[j], above[j]);
            const u32 bucket = digit.magnitude - 1;
            const u32 bin = bucket >> low_bits;
            const bool is_there = digit.magnitude != 0 && tile_begin + k + j * threads < count;
            if (j == 0) {
                is_common = cuzk::has_common_key(bin, is_there);
            }
            u32 slot = 0;
            if (is_common) {
                slot = cuzk::count_common(next, bin, is_there);
            } else if (is_there) {
                slot = atomicAdd(&next[bin], 1u);
            }
            if (is_there) {
                const u32 low = bucket & ((1u << low_bits) - 1);
                const u32 negative = digit.is_negative ? 1u : 0u;
                staged[slot] = (k + j * threads) | (negative << 15) | (low << 16);
                staged_bins[slot] = static_cast<u16>(bin);
            }
        }
    }
    __syncthreads();
    for (u32 first = threadIdx.x; first < all; first += 4 * threads) {
        CUZK_UNROLL
        for (u32 j = 0; j < 4; ++j) {
            const u32 slot = first + j * threads;
            if (slot < all) {
                const u32 record = staged[slot];
                const u32 place = displacement[staged_bins[slot]] + slot;
                const u32 i = tile_begin + (record & 0x7fff);
                const u32 base = bases == nullptr ? first_base + i : bases[i];
                indices[place] = base | (((record >> 15) & 1) << 31);
                lows[place] = static_cast<u16>(record >> 16);
            }
        }
    }
}

namespace {

// No bucket of a column has this number.
constexpr u32 none = 0xffff;

// A tile of the second pass: places begin to end, in one column.
struct ColumnTile {
    u32 column;
    u32 begin;
    u32 end;
    bool is_last;
};

// Columns are cut evenly, at multiples of 32 from their begin.
CUZK_FN ColumnTile column_tile(u32 tile, const u32* starts, const u32* tile_starts, const u32* tile_columns) {
    const u32 column = tile_columns[tile];
    const u32 tiles = tile_starts[column + 1] - tile_starts[column];
    const u32 rank = tile - tile_starts[column];
    const u32 start = starts[column];
    const u32 end = starts[column + 1];
    const u32 each = ((end - start + tiles - 1) / tiles + 31) / 32 * 32;
    const u32 from = start + rank * each < end ? start + rank * each : end;
    const u32 to = from + each < end ? from + each : end;
    return {column, from, to, rank + 1 == tiles};
}

}  // namespace

// counts[tile][b] = the digits of a tile in bucket b of its column.
// Blocks of 512 threads, as many as there can be tiles; 4 bytes of dynamic shared memory a bucket of a column.
// lows as moved to columns; starts, tile_starts: (columns + 1); tile_columns; counts: (tiles, 2^low_bits).
extern "C" __global__ void __launch_bounds__(threads)
    cuzk_bucket_sort_count_buckets(const u16* lows, const u32* starts, const u32* tile_starts, const u32* tile_columns,
                                   u32* counts, u32 columns, u32 low_bits) {
    CUZK_SHARED_DYNAMIC(u32, counters);
    if (blockIdx.x >= tile_starts[columns]) {
        return;
    }
    const u32 buckets = 1u << low_bits;
    for (u32 b = threadIdx.x; b < buckets; b += threads) {
        counters[b] = 0;
    }
    __syncthreads();
    const ColumnTile tile = column_tile(blockIdx.x, starts, tile_starts, tile_columns);
    for (u32 p = tile.begin; p < tile.end; p += at_a_time * threads) {
        u32 low[at_a_time];
        CUZK_UNROLL
        for (u32 j = 0; j < at_a_time; ++j) {
            const u32 at = p + j * threads + threadIdx.x;
            low[j] = at < tile.end ? lows[at] : none;
        }
        CUZK_UNROLL
        for (u32 j = 0; j < at_a_time; ++j) {
            if (low[j] != none) {
                atomicAdd(&counters[low[j]], 1u);
            }
        }
    }
    __syncthreads();
    for (u32 b = threadIdx.x; b < buckets; b += threads) {
        counts[(static_cast<u64>(blockIdx.x) << low_bits) + b] = counters[b];
    }
}

// offsets[bucket] = first_entry + where the bucket's digits begin; counts[tile][b] becomes where those of the tile do.
// A block of 512 threads a column; 4 bytes of dynamic shared memory a bucket of a column.
// counts: (tiles, 2^low_bits); starts, tile_starts: (columns + 1); offsets: (columns 2^low_bits + 1).
extern "C" __global__ void __launch_bounds__(threads)
    cuzk_bucket_sort_offsets(u32* counts, const u32* starts, const u32* tile_starts, u32* offsets, u32 columns,
                             u32 low_bits, u32 first_entry) {
    CUZK_SHARED(u32, warp_totals, threads / 32);
    CUZK_SHARED_DYNAMIC(u32, sums);
    const u32 buckets = 1u << low_bits;
    const u32 first = tile_starts[blockIdx.x];
    const u32 end = tile_starts[blockIdx.x + 1];
    for (u32 b = threadIdx.x; b < buckets; b += threads) {
        u32 sum = 0;
        CUZK_NO_UNROLL
        for (u32 tile = first; tile < end; tile += 8) {
            CUZK_UNROLL
            for (u32 j = 0; j < 8; ++j) {
                sum += tile + j < end ? counts[(static_cast<u64>(tile + j) << low_bits) + b] : 0;
            }
        }
        sums[b] = sum;
    }
    __syncthreads();
    cuzk::block_exclusive_sums(sums, buckets, warp_totals);
    const u32 start = starts[blockIdx.x];
    for (u32 b = threadIdx.x; b < buckets; b += threads) {
        u32 running = start + sums[b];
        offsets[(blockIdx.x << low_bits) + b] = first_entry + running;
        CUZK_NO_UNROLL
        for (u32 tile = first; tile < end; tile += 8) {
            u32 count[8];
            CUZK_UNROLL
            for (u32 j = 0; j < 8; ++j) {
                count[j] = tile + j < end ? counts[(static_cast<u64>(tile + j) << low_bits) + b] : 0;
            }
            CUZK_UNROLL
            for (u32 j = 0; j < 8; ++j) {
                if (tile + j < end) {
                    counts[(static_cast<u64>(tile + j) << low_bits) + b] = running;
                }
                running += count[j];
            }
        }
    }
    if (blockIdx.x + 1 == columns && threadIdx.x == 0) {
        offsets[columns << low_bits] = first_entry + starts[columns];
    }
}

// Moves the digits of a tile to their buckets: entries[p] = what was in `indices`.
// Blocks of 512 threads, as many as there can be tiles; dynamic shared memory: 6 bytes for each of tile_len digits and 8
// for each bucket of a column.
// run_starts: (tiles, 2^low_bits), the others as above; entries does not alias indices.
extern "C" __global__ void __launch_bounds__(threads)
    cuzk_bucket_sort_to_buckets(const u32* indices, const u16* lows, const u32* starts, const u32* tile_starts,
                                const u32* tile_columns, const u32* run_starts, const u32* offsets, u32* entries,
                                u32 columns, u32 low_bits, u32 first_entry) {
    CUZK_SHARED(u32, warp_totals, threads / 32);
    CUZK_SHARED_DYNAMIC(u32, staged);
    if (blockIdx.x >= tile_starts[columns]) {
        return;
    }
    const u32 buckets = 1u << low_bits;
    u16* const staged_lows = reinterpret_cast<u16*>(staged + tile_len);
    u32* const next = staged + tile_len + tile_len / 2;
    u32* const displacement = next + buckets;
    const ColumnTile tile = column_tile(blockIdx.x, starts, tile_starts, tile_columns);
    const u32* const row = run_starts + (static_cast<u64>(blockIdx.x) << low_bits);
    // Where the runs of the tile after this end this one's.
    const u32* const ends = tile.is_last ? offsets + (tile.column << low_bits) + 1 : row + buckets;
    const u32 before = tile.is_last ? first_entry : 0;
    for (u32 b = threadIdx.x; b < buckets; b += threads) {
        const u32 start = row[b];
        displacement[b] = start;
        next[b] = ends[b] - before - start;
    }
    __syncthreads();
    cuzk::block_exclusive_sums(next, buckets, warp_totals);
    for (u32 b = threadIdx.x; b < buckets; b += threads) {
        displacement[b] -= next[b];
    }
    __syncthreads();
    const u32 len = tile.end - tile.begin;
    CUZK_NO_UNROLL
    for (u32 p = tile.begin; p < tile.end; p += at_a_time * threads) {
        u32 low[at_a_time];
        u32 index[at_a_time];
        CUZK_UNROLL
        for (u32 j = 0; j < at_a_time; ++j) {
            const u32 at = p + j * threads + threadIdx.x;
            low[j] = at < tile.end ? lows[at] : none;
            index[j] = at < tile.end ? indices[at] : 0;
        }
        const bool is_common = cuzk::has_common_key(low[0], low[0] != none);
        CUZK_UNROLL
        for (u32 j = 0; j < at_a_time; ++j) {
            u32 slot = 0;
            if (is_common) {
                slot = cuzk::count_common(next, low[j], low[j] != none);
            } else if (low[j] != none) {
                slot = atomicAdd(&next[low[j]], 1u);
            }
            if (low[j] != none) {
                staged[slot] = index[j];
                staged_lows[slot] = static_cast<u16>(low[j]);
            }
        }
    }
    __syncthreads();
    for (u32 first = threadIdx.x; first < len; first += 4 * threads) {
        CUZK_UNROLL
        for (u32 j = 0; j < 4; ++j) {
            const u32 slot = first + j * threads;
            if (slot < len) {
                entries[displacement[staged_lows[slot]] + slot] = staged[slot];
            }
        }
    }
}
