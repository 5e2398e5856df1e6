// Witnesses of which most values are zero or one: packed (cuzk/witness.cuh), and read for base sets.
//
// A base set has a base for each variable of a range, or of a bitmap, in the order of the variables. Its terms with
// scalar one become a list of base indices, those with any other scalar but zero a list of base indices with a list of
// scalars. A tile is 256 words of 32 variables; counts of tiles are summed by one block, so each tile knows where its
// part of a list begins, and lists are in the order of the variables.

#include "cuzk/block_scan.cuh"
#include "cuzk/windows.cuh"
#include "cuzk/witness.cuh"

using cuzk::Fr;
using cuzk::u32;
using cuzk::u64;

namespace {

constexpr u32 threads = 256;

// Which variables of a word have a base.
CUZK_FN u32 word_of_set(const u32* density, u32 word, u32 first, u32 end) {
    const u32 begin = word * 32;
    u32 mask = 0xffffffffu;
    if (first > begin) {
        mask = first - begin >= 32 ? 0 : mask << (first - begin);
    }
    if (end < begin + 32) {
        mask = end <= begin ? 0 : mask & (0xffffffffu >> (begin + 32 - end));
    }
    return density == nullptr ? mask : mask & density[word];
}

// Of the variables of a word with a base, those whose rank among all lies in [first, end); `rank` is that of the word's
// first one.
CUZK_FN u32 keep_ranks(u32 mask, u32 rank, u32 first, u32 end) {
    if (rank >= first && end >= rank && end - rank >= 32) {
        return mask;
    }
    u32 kept = 0;
    for (u32 left = mask; left != 0; ++rank) {
        const u32 bit = left & (0u - left);
        left ^= bit;
        kept |= rank >= first && rank < end ? bit : 0;
    }
    return kept;
}

CUZK_FN u32 rank_of(const u32* density_ranks, u32 word, u32 first) {
    const u32 begin = word * 32;
    return density_ranks != nullptr ? density_ranks[word] : begin > first ? begin - first : 0;
}

CUZK_FN Fr integer_of(const Fr* scalars, u32 i, u32 form) {
    Fr x = scalars[i];
    if (form == 1) {
        return cuzk::mul(Fr{{1, 0, 0, 0, 0, 0, 0, 0}}, x);
    }
    return cuzk::canonical(cuzk::canonical(x));
}

}  // namespace

// bits[i] of 32 variables: its low half says which are one, its high half which are neither zero nor one.
// counts[tile] = how many are neither, of 256 words.
// Blocks of 256 threads, one a tile of 8192 variables. scalars (count), any value, integers (form 0) or Montgomery form
// (1); bits (ceil(count / 32)).
extern "C" __global__ void __launch_bounds__(threads)
    cuzk_sparse_terms_classify(const Fr* scalars, u32 form, u32 count, u64* bits, u32* counts) {
    CUZK_SHARED(u32, warp_totals, threads / 32);
    const u32 lane = threadIdx.x % 32;
    u32 full_count = 0;
    for (u32 turn = 0; turn < 32; ++turn) {
        const u32 word = blockIdx.x * 256 + turn * 8 + threadIdx.x / 32;
        const u64 i = static_cast<u64>(word) * 32 + lane;
        bool is_one = false;
        bool is_full = false;
        if (i < count) {
            const Fr x = integer_of(scalars, static_cast<u32>(i), form);
            u32 upper = 0;
            CUZK_UNROLL
            for (u32 k = 1; k < 8; ++k) {
                upper |= x.v[k];
            }
            is_one = upper == 0 && x.v[0] == 1;
            is_full = upper != 0 || x.v[0] > 1;
        }
        const u32 ones = __ballot_sync(cuzk::whole_warp, is_one);
        const u32 full = __ballot_sync(cuzk::whole_warp, is_full);
        if (lane == 0 && static_cast<u64>(word) * 32 < count) {
            bits[word] = (static_cast<u64>(full) << 32) | ones;
            full_count += static_cast<u32>(__popc(full));
        }
    }
    u32 all;
    cuzk::block_exclusive_sum(full_count, warp_totals, all);
    if (threadIdx.x == 0) {
        counts[blockIdx.x] = all;
    }
}

// In each of the rows of `counts`, each tile's count becomes the sum of those before it; totals[row] = the sum of all.
// A block of 1024 threads a row. counts: (rows, tiles); totals: (rows).
extern "C" __global__ void __launch_bounds__(1024)
    cuzk_sparse_terms_tile_starts(u32* counts, u32* totals, u32 tiles) {
    CUZK_SHARED(u32, warp_totals, 32);
    const u32 all = cuzk::block_exclusive_sums(counts + static_cast<u64>(blockIdx.x) * tiles, tiles, warp_totals);
    if (threadIdx.x == 0) {
        totals[blockIdx.x] = all;
    }
}

// ranks[word] = the values neither zero nor one before the word; full[k] = the k-th of them, an integer.
// Blocks of 256 threads, one a tile. starts (tiles): what became of the counts; full (capacity): what lies beyond is
// left out. Others as above.
extern "C" __global__ void __launch_bounds__(threads)
    cuzk_sparse_terms_pack(const Fr* scalars, u32 form, u32 count, const u64* bits, const u32* starts, u32* ranks,
                           Fr* full, u32 capacity) {
    CUZK_SHARED(u32, warp_totals, threads / 32);
    const u32 word = blockIdx.x * 256 + threadIdx.x;
    const bool is_there = static_cast<u64>(word) * 32 < count;
    u32 left = is_there ? static_cast<u32>(bits[word] >> 32) : 0;
    u32 all;
    u32 rank =
        starts[blockIdx.x] + cuzk::block_exclusive_sum(static_cast<u32>(__popc(left)), warp_totals, all);
    if (is_there) {
        ranks[word] = rank;
    }
    while (left != 0) {
        const u32 bit = static_cast<u32>(__ffs(static_cast<int>(left))) - 1;
        left &= left - 1;
        if (rank < capacity) {
            full[rank] = integer_of(scalars, word * 32 + bit, form);
        }
        ++rank;
    }
}

// counts[0][tile] and counts[1][tile] = the set's terms with scalar one, and with any other but zero. Only variables of
// rank first_rank to end_rank - 1 among those with a base count: a batch of bases.
// Blocks of 256 threads, one a tile. bits (words); density (words) or null, density_ranks (words) as below; counts:
// (2, tiles).
extern "C" __global__ void __launch_bounds__(threads)
    cuzk_sparse_terms_count(const u64* bits, u32 words, const u32* density, const u32* density_ranks, u32 first, u32 end,
                            u32 first_rank, u32 end_rank, u32* counts) {
    CUZK_SHARED(u32, warp_totals, threads / 32);
    const u32 word = blockIdx.x * 256 + threadIdx.x;
    u32 ones = 0;
    u32 full = 0;
    if (word < words) {
        const u32 mask = keep_ranks(
            word_of_set(density, word, first, end), rank_of(density_ranks, word, first), first_rank, end_rank);
        const u64 both = bits[word];
        ones = static_cast<u32>(__popc(static_cast<u32>(both) & mask));
        full = static_cast<u32>(__popc(static_cast<u32>(both >> 32) & mask));
    }
    u32 all_ones;
    u32 all_full;
    cuzk::block_exclusive_sum(ones, warp_totals, all_ones);
    cuzk::block_exclusive_sum(full, warp_totals, all_full);
    if (threadIdx.x == 0) {
        counts[blockIdx.x] = all_ones;
        counts[gridDim.x + blockIdx.x] = all_full;
    }
}

// totals[stride k] and totals[stride k + 1] += the set's terms with scalar one, and with any other but zero, of rank
// bounds.at[k] to bounds.at[k + 1] - 1, for each of at most 63 batches k.
// Blocks of 256 threads, one a tile. bits, density, density_ranks as for counting; bounds rise; totals
// (stride (batches - 1) + 2).
extern "C" __global__ void __launch_bounds__(threads)
    cuzk_sparse_terms_count_batches(const u64* bits, u32 words, const u32* density, const u32* density_ranks, u32 first,
                                    u32 end, cuzk::RankBounds bounds, u32 batches, u32 stride, u32* totals) {
    CUZK_SHARED(u32, counters, 128);
    if (threadIdx.x < 128) {
        counters[threadIdx.x] = 0;
    }
    __syncthreads();
    const u32 word = blockIdx.x * 256 + threadIdx.x;
    const u32 mask = word < words ? word_of_set(density, word, first, end) : 0;
    if (mask != 0) {
        const u64 both = bits[word];
        const u32 rank = rank_of(density_ranks, word, first);
        const u32 past = rank + static_cast<u32>(__popc(mask));
        // The last batch that begins at or before the word's first rank, or the first of all.
        u32 batch = 0;
        for (u32 step = 32; step != 0; step /= 2) {
            if (batch + step < batches && bounds.at[batch + step] <= rank) {
                batch += step;
            }
        }
        for (; batch < batches && bounds.at[batch] < past; ++batch) {
            const u32 kept = keep_ranks(mask, rank, bounds.at[batch], bounds.at[batch + 1]);
            atomicAdd(&counters[2 * batch], static_cast<u32>(__popc(static_cast<u32>(both) & kept)));
            atomicAdd(&counters[2 * batch + 1], static_cast<u32>(__popc(static_cast<u32>(both >> 32) & kept)));
        }
    }
    __syncthreads();
    if (threadIdx.x < 2 * batches && counters[threadIdx.x] != 0) {
        atomicAdd(&totals[stride * (threadIdx.x / 2) + threadIdx.x % 2], counters[threadIdx.x]);
    }
}

// ones[p] = the base of the p-th term with scalar one; rest_bases[p], rest_scalars[p] = base and scalar of the p-th with
// any other. The base of a variable is first_base + how many of the set's variables come before it, modulo 2^32; with a
// density the range is that of all words. Ranks as for counting.
// Blocks of 256 threads, one a tile. starts: (2, tiles), what became of the counts of the same set; density_ranks
// (words): the bits of the density before each word, null with it; ones (ones_len), rest_bases and rest_scalars
// (rest_len): what lies beyond is left out; ranks (words), full (full_len) as packed; 32 KiB of static shared memory.
extern "C" __global__ void __launch_bounds__(threads)
    cuzk_sparse_terms_list(const u64* bits, const u32* ranks, const Fr* full, u32 full_len, u32 words,
                           const u32* density, const u32* density_ranks, u32 first, u32 end, u32 first_rank,
                           u32 end_rank, u32 first_base, const u32* starts, u32* ones, u32 ones_len, u32* rest_bases, Fr* rest_scalars, u32 rest_len) {
    CUZK_SHARED(u32, warp_totals, threads / 32);
    CUZK_SHARED(u32, staged, 32 * threads);
    const u32 word = blockIdx.x * 256 + threadIdx.x;
    u32 mask = 0;
    u64 both = 0;
    u32 base = 0;
    if (word < words) {
        const u32 members = word_of_set(density, word, first, end);
        const u32 rank = rank_of(density_ranks, word, first);
        mask = keep_ranks(members, rank, first_rank, end_rank);
        both = bits[word];
        // Of the word's first variable of the batch: those before it have been left out.
        base = first_base + rank;
        if (mask != 0) {
            base += static_cast<u32>(__popc(members & ((mask & (0u - mask)) - 1)));
        }
    }
    u32 one_bits = static_cast<u32>(both) & mask;
    u32 all_ones;
    u32 slot = cuzk::block_exclusive_sum(static_cast<u32>(__popc(one_bits)), warp_totals, all_ones);
    while (one_bits != 0) {
        const u32 bit = static_cast<u32>(__ffs(static_cast<int>(one_bits))) - 1;
        one_bits &= one_bits - 1;
        staged[slot] = base + static_cast<u32>(__popc(mask & ((1u << bit) - 1)));
        ++slot;
    }
    const u32 full_bits = static_cast<u32>(both >> 32);
    u32 rest_bits = full_bits & mask;
    u32 all_rest;
    u32 place = starts[gridDim.x + blockIdx.x] +
                cuzk::block_exclusive_sum(static_cast<u32>(__popc(rest_bits)), warp_totals, all_rest);
    while (rest_bits != 0) {
        const u32 bit = static_cast<u32>(__ffs(static_cast<int>(rest_bits))) - 1;
        rest_bits &= rest_bits - 1;
        const u32 below = (1u << bit) - 1;
        const u32 source = ranks[word] + static_cast<u32>(__popc(full_bits & below));
        if (place < rest_len) {
            rest_bases[place] = base + static_cast<u32>(__popc(mask & below));
            rest_scalars[place] = source < full_len ? full[source] : cuzk::fr_zero();
        }
        ++place;
    }
    __syncthreads();
    const u32 start = starts[blockIdx.x];
    for (u32 i = threadIdx.x; i < all_ones; i += threads) {
        if (start + i < ones_len) {
            ones[start + i] = staged[i];
        }
    }
}

// offsets[set] = the terms with scalar one of the sets before, and behind the last set of all.
// One block. totals: (sets, 2), of ones and of others; offsets: (sets + 1).
extern "C" __global__ void __launch_bounds__(32)
    cuzk_sparse_terms_ones_offsets(const u32* totals, u32* offsets, u32 sets) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        u32 sum = 0;
        for (u32 set = 0; set < sets; ++set) {
            offsets[set] = sum;
            sum += totals[2 * set];
        }
        offsets[sets] = sum;
    }
}
