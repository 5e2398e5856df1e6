// Digits of scalars sorted by bucket, the first pass: to columns (cuzk/bucket_sort.cuh), and the tables of both.

#include "cuzk/bucket_sort.cuh"

using cuzk::Fr;
using cuzk::u16;
using cuzk::u32;
using cuzk::u64;
using cuzk::Windows;
using cuzk::bucket_sort::at_a_time;
using cuzk::bucket_sort::threads;
using cuzk::bucket_sort::tile_len;

namespace {

// Windows of a group at most.
constexpr u32 max_windows = 64;

// How the scalars lie: as integers, in Montgomery form, or recoded, in eight planes of one word of each.
enum Form : u32 { integers = 0, montgomery = 1, planes = 2 };

// Not for planes.
CUZK_FN Fr load_recoded(const Windows& windows, const u32* scalars, u32 i, u32 form) {
    const uint4* const halves = reinterpret_cast<const uint4*>(scalars) + 2 * static_cast<u64>(i);
    const uint4 low = halves[0];
    const uint4 high = halves[1];
    Fr x = Fr{{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    if (form == montgomery) {
        x = cuzk::mul(Fr{{1, 0, 0, 0, 0, 0, 0, 0}}, x);
    }
    return cuzk::recode(windows, x);
}

// Where the columns of set s begin among those of a part, whose first set is `first`.
CUZK_FN u32 column_of_set(const Windows& windows, u32 s, u32 first, u32 low_bits) {
    return (cuzk::first_bucket(windows, s) - cuzk::first_bucket(windows, first)) >> low_bits;
}

CUZK_FN u32 tiles_of(u32 count) { return count / tile_len + (count % tile_len != 0 ? 1 : 0); }

}  // namespace

// counts[g tiles + t][c] = the digits of tile t's scalars in column c of the part's sets, first_set and the `set_count`
// from there, in group g = blockIdx.y of the windows. Where recoded is not null, it gets the recoded scalars, eight planes
// of `count` words; the scalars must not be recoded already.
// A grid (tiles, groups) of blocks of 512 threads; 16 KiB and 4 bytes a column of dynamic shared memory, 1 KiB of static; at
// most 64 sets.
// scalars: 8 words each, 16-byte aligned, any value; counts: (groups tiles + 1, columns), all rows but the last are written.
extern "C" __global__ void __launch_bounds__(threads)
    cuzk_bucket_sort_count(const u32* scalars, u32 form, u32 count, Windows windows, u32 first_set, u32 set_count,
                           u32 low_bits, u32 columns, u32* counts, u32* recoded) {
    // Of each window: the word in which it begins, the bit of that, its width, its first column.
    CUZK_SHARED(uint4, places, max_windows);
    CUZK_SHARED_DYNAMIC(u32, shared);
    u32* const word = shared + threadIdx.x;
    u32* const counters = shared + 8 * threads;
    const u32 first_window = blockIdx.y * windows.sets + first_set;
    if (threadIdx.x < set_count) {
        const u32 w = first_window + threadIdx.x;
        const u32 bit = cuzk::first_bit(windows, w);
        places[threadIdx.x] = make_uint4(bit / 32, bit % 32, cuzk::window_width(windows, w),
                                         column_of_set(windows, first_set + threadIdx.x, first_set, low_bits));
    }
    const u32 last_window = first_window + set_count - 1;
    const u32 first_word = cuzk::first_bit(windows, first_window) / 32;
    const u32 last_word = (cuzk::first_bit(windows, last_window) + cuzk::window_width(windows, last_window) - 1) / 32;
    const u32 tiles = tiles_of(count);
    const u32 tile = blockIdx.x;
    for (u32 c = threadIdx.x; c < columns; c += threads) {
        counters[c] = 0;
    }
    __syncthreads();
    const u32 tile_begin = tile * tile_len;
    const u32 tile_end = count - tile_begin < tile_len ? count : tile_begin + tile_len;
    for (u32 i = tile_begin + threadIdx.x; i < tile_end; i += threads) {
        if (form == planes) {
            CUZK_UNROLL
            for (u32 j = 0; j < 8; ++j) {
                if (j >= first_word && j <= last_word) {
                    word[j * threads] = scalars[static_cast<u64>(j) * count + i];
                }
            }
        } else {
            const Fr x = load_recoded(windows, scalars, i, form);
            CUZK_UNROLL
            for (u32 j = 0; j < 8; ++j) {
                word[j * threads] = x.v[j];
                if (recoded != nullptr && blockIdx.y == 0) {
                    recoded[static_cast<u64>(j) * count + i] = x.v[j];
                }
            }
        }
        for (u32 first = 0; first < set_count; first += 4) {
            CUZK_UNROLL
            for (u32 j = 0; j < 4; ++j) {
                if (first + j < set_count) {
                    const uint4 place = places[first + j];
                    const u32 next = place.x < last_word ? place.x + 1 : last_word;
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
    const u64 row = static_cast<u64>(blockIdx.y) * tiles + tile;
    for (u32 c = threadIdx.x; c < columns; c += threads) {
        counts[row * columns + c] = counters[c];
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

namespace {

struct Words {
    u32 word;
    u32 next;
};

// Words `at` and at + 1 of a scalar that is recoded here.
CUZK_FN Words two_words(const Windows& windows, const u32* scalars, u32 i, u32 form, u32 at) {
    const Fr x = load_recoded(windows, scalars, i, form);
    Words words = {0, 0};
    CUZK_UNROLL
    for (u32 v = 0; v < 8; ++v) {
        words.word = v == at ? x.v[v] : words.word;
        words.next = v == at + 1 ? x.v[v] : words.next;
    }
    return words;
}

// Moves the digits of window blockIdx.y of a part, those of set first_set first and then those of the next, group after
// group, of a tile to their columns.
template <bool PLANES>
CUZK_FN void to_columns(const u32* scalars, u32 form, u32 count, const Windows& windows, u32 first_set, u32 set_count,
                        u32 low_bits, u32 columns, const u32* run_starts, const u32* bases, u32 first_base,
                        u32 multiple_stride, u32* indices, u16* lows) {
    CUZK_SHARED(u32, warp_totals, threads / 32);
    CUZK_SHARED_DYNAMIC(u32, staged);
    u16* const staged_bins = reinterpret_cast<u16*>(staged + tile_len);
    const u32 tiles = tiles_of(count);
    const u32 tile = blockIdx.x;
    const u32 group = blockIdx.y / set_count;
    const u32 set = first_set + blockIdx.y % set_count;
    const u32 w = group * windows.sets + set;
    const u32 bins = 1u << (cuzk::set_width(windows, set) - 1 - low_bits);
    u32* const next = staged + tile_len + tile_len / 2;
    u32* const displacement = next + bins;
    const u32* const row = run_starts + (static_cast<u64>(group) * tiles + tile) * columns +
                           column_of_set(windows, set, first_set, low_bits);
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
    const u32 tile_begin = tile * tile_len;
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
            if (PLANES && i < count) {
                words[j] = scalars[static_cast<u64>(at) * count + i];
                above[j] = shift + width > 32 ? scalars[static_cast<u64>(at + 1) * count + i] : 0;
            }
        }
        if (!PLANES) {
            CUZK_NO_UNROLL
            for (u32 j = 0; j < at_a_time; ++j) {
                const u32 i = tile_begin + k + j * threads;
                if (i < count) {
                    const Words two = two_words(windows, scalars, i, form, at);
                    CUZK_UNROLL
                    for (u32 v = 0; v < at_a_time; ++v) {
                        words[v] = v == j ? two.word : words[v];
                        above[v] = v == j ? two.next : above[v];
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
    const u32 first_of_group = group * multiple_stride;
    for (u32 first = threadIdx.x; first < all; first += 4 * threads) {
        CUZK_UNROLL
        for (u32 j = 0; j < 4; ++j) {
            const u32 slot = first + j * threads;
            if (slot < all) {
                const u32 record = staged[slot];
                const u32 place = displacement[staged_bins[slot]] + slot;
                const u32 i = tile_begin + (record & 0x7fff);
                const u32 base = first_of_group + (bases == nullptr ? first_base + i : bases[i]);
                indices[place] = base | (((record >> 15) & 1) << 31);
                lows[place] = static_cast<u16>(record >> 16);
            }
        }
    }
}

}  // namespace

// Moves the digits of a part's sets to their columns: indices[p] = the base's index, with bit 31 set where it is subtracted;
// lows[p] = the bucket within the column. The base of scalar i in the first group of windows is bases[i], or first_base + i
// where bases is null; in group g it is that plus g multiple_stride.
// A grid (tiles, groups set_count) of blocks of 512 threads; dynamic shared memory: 6 bytes for each of tile_len
// digits and 8 bytes for each column of the widest set.
// scalars in planes, count, windows, first_set, set_count, low_bits as for counting; run_starts: (groups tiles + 1,
// columns) of this part.
extern "C" __global__ void __launch_bounds__(threads)
    cuzk_bucket_sort_planes_to_columns(const u32* scalars, u32 count, Windows windows, u32 first_set, u32 set_count,
                                       u32 low_bits, u32 columns, const u32* run_starts, const u32* bases,
                                       u32 first_base, u32 multiple_stride, u32* indices, u16* lows) {
    to_columns<true>(scalars, planes, count, windows, first_set, set_count, low_bits, columns, run_starts, bases,
                     first_base, multiple_stride, indices, lows);
}

// The same for scalars in another form.
extern "C" __global__ void __launch_bounds__(threads)
    cuzk_bucket_sort_to_columns(const u32* scalars, u32 form, u32 count, Windows windows, u32 first_set, u32 set_count,
                                u32 low_bits, u32 columns, const u32* run_starts, const u32* bases, u32 first_base,
                                u32 multiple_stride, u32* indices, u16* lows) {
    to_columns<false>(scalars, form, count, windows, first_set, set_count, low_bits, columns, run_starts, bases,
                      first_base, multiple_stride, indices, lows);
}
