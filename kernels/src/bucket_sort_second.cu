// Digits of scalars sorted by bucket, the second pass: from columns to buckets (cuzk/bucket_sort.cuh).

#include "cuzk/bucket_sort.cuh"

using cuzk::u16;
using cuzk::u32;
using cuzk::u64;
using cuzk::bucket_sort::at_a_time;
using cuzk::bucket_sort::threads;
using cuzk::bucket_sort::tile_len;

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
