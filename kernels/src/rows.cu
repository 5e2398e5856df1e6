// A sparse matrix by rows times a packed witness (cuzk/witness.cuh).
//
// An entry is a column, the variable, and an id into the table of distinct coefficients. The table has two elements for
// each coefficient c: c in Montgomery form (c R), and c R^2. So a variable that is 1 adds the first, without a
// multiplication; another value x, a canonical integer, adds the Montgomery product of x and the second, c x R; 0 adds
// nothing and reads nothing further.
//
// Rows of ordinary length have a thread each. Where one of the 32 rows of a warp is long, all 32 are cut into segments
// of up to 512 entries; a warp sums a segment, another one a row's segments. No atomics: results are exact and canonical.
//
// All entries: a grid of one dimension, blocks of 256 threads; no shared memory. columns are below 32 times the words
// of bits and ranks; ids are below half the table's length; out and partial alias nothing.

#include "cuzk/witness.cuh"

using cuzk::Fr;
using cuzk::u16;
using cuzk::u32;
using cuzk::u64;
using cuzk::u8;
using cuzk::Witness;

namespace {

constexpr u32 WHOLE_WARP = 0xffffffffu;
// The length of rows that are cut into segments.
constexpr u32 SEGMENTED = 255;

CUZK_FN void add_entry(Fr& sum, u32 column, u32 id, const Fr* table, const Witness& witness) {
    const u64 both = witness.bits[column / 32];
    const u32 bit = column % 32;
    const u32 full_bits = static_cast<u32>(both >> 32);
    if (((static_cast<u32>(both) >> bit) & 1) != 0) {
        sum = cuzk::add(sum, table[2 * id]);
    } else if (((full_bits >> bit) & 1) != 0 && witness.full_count != 0) {
        const Fr value = cuzk::full_value(witness, column / 32, full_bits, bit);
        const Fr factor = table[2 * id + 1];
        sum = cuzk::add(sum, cuzk::mul(factor, value));
    }
}

template <typename Id>
CUZK_FN void short_rows(const u8* lengths, const u32* starts, const u32* columns, const Id* ids, const Fr* table,
                        const Witness& witness, Fr* out, u32 count) {
    const u32 row = cuzk::grid_first();
    const u32 lane = threadIdx.x % 32;
    const u32 length = row < count ? lengths[row] : 0;
    const u32 entries = length == SEGMENTED ? 0 : length;
    u32 end = entries;
    CUZK_UNROLL
    for (u32 distance = 1; distance < 32; distance *= 2) {
        const u32 below = __shfl_up_sync(WHOLE_WARP, end, distance);
        end += lane >= distance ? below : 0;
    }
    if (row >= count || length == SEGMENTED) {
        return;
    }
    end += starts[row / 32];
    Fr sum = cuzk::fr_zero();
    CUZK_NO_UNROLL
    for (u32 entry = end - entries; entry < end; entry++) {
        add_entry(sum, columns[entry], ids[entry], table, witness);
    }
    out[row] = sum;
}

// The sum over a warp, in lane 0.
CUZK_FN Fr warp_sum(Fr sum) {
    CUZK_NO_UNROLL
    for (u32 distance = 16; distance > 0; distance /= 2) {
        Fr other;
        CUZK_UNROLL
        for (int i = 0; i < 8; i++) {
            other.v[i] = __shfl_down_sync(WHOLE_WARP, sum.v[i], distance);
        }
        sum = cuzk::add(sum, other);
    }
    return sum;
}

template <typename Id>
CUZK_FN void sum_segments(const u32* ranges, const u32* columns, const Id* ids, const Fr* table, const Witness& witness,
                      Fr* partial, u32 count) {
    const u32 segment = cuzk::grid_first() / 32;
    const u32 lane = threadIdx.x % 32;
    const u32 first = segment < count ? ranges[2 * segment] : 0;
    const u32 end = segment < count ? ranges[2 * segment + 1] : 0;
    Fr sum = cuzk::fr_zero();
    CUZK_NO_UNROLL
    for (u32 entry = first + lane; entry < end; entry += 32) {
        add_entry(sum, columns[entry], ids[entry], table, witness);
    }
    sum = warp_sum(sum);
    if (lane == 0 && segment < count) {
        partial[segment] = sum;
    }
}

}  // namespace

// out[i] = row i, for rows of ordinary length; the others are left alone. A thread a row.
// lengths (count), 255 for a row that is cut; starts (count / 32, rounded up): the first entry of row 32 i; columns, ids.
extern "C" __global__ void __launch_bounds__(256)
    cuzk_rows_short_u16(const u8* lengths, const u32* starts, const u32* columns, const u16* ids, const Fr* table,
                        const u64* bits, const u32* ranks, const Fr* full, u32 full_count, Fr* out, u32 count) {
    short_rows(lengths, starts, columns, ids, table, Witness{bits, ranks, full, full_count}, out, count);
}

// The same for tables of more than 2^16 coefficients.
extern "C" __global__ void __launch_bounds__(256)
    cuzk_rows_short_u32(const u8* lengths, const u32* starts, const u32* columns, const u32* ids, const Fr* table,
                        const u64* bits, const u32* ranks, const Fr* full, u32 full_count, Fr* out, u32 count) {
    short_rows(lengths, starts, columns, ids, table, Witness{bits, ranks, full, full_count}, out, count);
}

// partial[i] = the sum of the entries from ranges[2 i] to ranges[2 i + 1]. A warp a segment.
// ranges (count, 2), partial (count).
extern "C" __global__ void __launch_bounds__(256)
    cuzk_rows_segments_u16(const u32* ranges, const u32* columns, const u16* ids, const Fr* table, const u64* bits,
                           const u32* ranks, const Fr* full, u32 full_count, Fr* partial, u32 count) {
    sum_segments(ranges, columns, ids, table, Witness{bits, ranks, full, full_count}, partial, count);
}

// The same for tables of more than 2^16 coefficients.
extern "C" __global__ void __launch_bounds__(256)
    cuzk_rows_segments_u32(const u32* ranges, const u32* columns, const u32* ids, const Fr* table, const u64* bits,
                           const u32* ranks, const Fr* full, u32 full_count, Fr* partial, u32 count) {
    sum_segments(ranges, columns, ids, table, Witness{bits, ranks, full, full_count}, partial, count);
}

// out[rows[i]] = the sum of partial[first[i]] to partial[first[i + 1] - 1]. A warp a row.
// rows (count), first (count + 1).
extern "C" __global__ void __launch_bounds__(256)
    cuzk_rows_join(const u32* rows, const u32* first, const Fr* partial, Fr* out, u32 count) {
    const u32 i = cuzk::grid_first() / 32;
    const u32 lane = threadIdx.x % 32;
    const u32 begin = i < count ? first[i] : 0;
    const u32 end = i < count ? first[i + 1] : 0;
    Fr sum = cuzk::fr_zero();
    CUZK_NO_UNROLL
    for (u32 segment = begin + lane; segment < end; segment += 32) {
        sum = cuzk::add(sum, partial[segment]);
    }
    sum = warp_sum(sum);
    if (lane == 0 && i < count) {
        out[rows[i]] = sum;
    }
}
