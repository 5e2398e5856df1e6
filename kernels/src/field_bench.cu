// Throughput of the arithmetic, for `xtask bench field`: chains of dependent operations, one a thread, and sums of
// gathered points. Every result is written, so it can be checked.
//
// Chains: a grid of one dimension with exactly one thread for each element, blocks of 128 threads; no shared memory;
// arrays of gridDim.x * 128 elements in Montgomery form, canonical on entry and exit; `y` and `x` do not overlap.

#include "cuzk/async_copy.cuh"
#include "cuzk/g1.cuh"
#include "cuzk/shared.cuh"

using cuzk::Fp;
using cuzk::Fr;
using cuzk::u32;

// x = x y^turns in the Montgomery sense: `turns` multiplications in a chain
extern "C" __global__ void __launch_bounds__(128) cuzk_field_bench_fp_mul(Fp* x, const Fp* y, u32 turns) {
    const u32 i = cuzk::grid_first();
    Fp a = x[i];
    const Fp b = y[i];
    CUZK_NO_UNROLL
    for (u32 turn = 0; turn < turns; turn++) {
        a = cuzk::mul(a, b);
    }
    x[i] = cuzk::canonical(a);
}

// x = x^(2^turns)
extern "C" __global__ void __launch_bounds__(128) cuzk_field_bench_fp_sqr(Fp* x, u32 turns) {
    const u32 i = cuzk::grid_first();
    Fp a = x[i];
    CUZK_NO_UNROLL
    for (u32 turn = 0; turn < turns; turn++) {
        a = cuzk::sqr(a);
    }
    x[i] = cuzk::canonical(a);
}

// x = x y^turns; the chain's value is the lazy operand, in [0, 2r), y the row operand
extern "C" __global__ void __launch_bounds__(128) cuzk_field_bench_fr_mul(Fr* x, const Fr* y, u32 turns) {
    const u32 i = cuzk::grid_first();
    Fr a = x[i];
    const Fr b = y[i];
    CUZK_NO_UNROLL
    for (u32 turn = 0; turn < turns; turn++) {
        a = cuzk::mul_lazy(b, a);
    }
    x[i] = cuzk::canonical(a);
}

// x = x^(2^turns), reduced each time
extern "C" __global__ void __launch_bounds__(128) cuzk_field_bench_fr_sqr(Fr* x, u32 turns) {
    const u32 i = cuzk::grid_first();
    Fr a = x[i];
    CUZK_NO_UNROLL
    for (u32 turn = 0; turn < turns; turn++) {
        a = cuzk::sqr(a);
    }
    x[i] = cuzk::canonical(a);
}

namespace {

constexpr u32 gather_threads = 128;

// The sum of one thread in shared memory. 224 bytes apart, the 16-byte accesses of eight threads meet each bank at most
// twice; 192 apart it would be four times.
struct SumSlot {
    cuzk::G1Xyzz sum;
    u32 padding[8];
};

CUZK_FN void gather_begin(cuzk::G1Affine& slot, const cuzk::G1Affine* point) {
    char* to = reinterpret_cast<char*>(&slot);
    const char* from = reinterpret_cast<const char*>(point);
    CUZK_UNROLL
    for (u32 k = 0; k < 96; k += 16) {
        cuzk::copy_async_16(to + k, from + k);
    }
}

}  // namespace

// sums[b] = the sum over j of points[indices[j * buckets + b]], by mixed XYZZ addition (madd-2008-s).
// Blocks of exactly 128 threads, at least `buckets` threads in all; 40,960 bytes of static shared memory.
// points (table), canonical; indices (per_bucket, buckets), each below the table's length; sums (buckets), canonical.
// per_bucket is at least 1. Each thread copies its next point into its own slot while it adds the one before, and
// keeps its sum in shared memory: with it in registers the loop does not fit into 128 and spills.
extern "C" __global__ void __launch_bounds__(128, 4) cuzk_field_bench_g1_gather(
    const cuzk::G1Affine* points, const u32* indices, cuzk::G1Xyzz* sums, u32 buckets, u32 per_bucket) {
    CUZK_SHARED(cuzk::G1Affine, coming_points, gather_threads);
    CUZK_SHARED(SumSlot, sum_slots, gather_threads);
    const u32 bucket = cuzk::grid_first();
    if (bucket >= buckets) {
        return;
    }
    cuzk::G1Affine& coming = coming_points[threadIdx.x];
    cuzk::G1Xyzz& sum = sum_slots[threadIdx.x].sum;
    const u32* index = indices + bucket;
    gather_begin(coming, points + *index);
    cuzk::set_infinity(sum);
    CUZK_NO_UNROLL
    for (u32 j = 1; j <= per_bucket; j++) {
        cuzk::copy_async_wait();
        const cuzk::G1Affine point = coming;
        if (j < per_bucket) {
            index += buckets;
            gather_begin(coming, points + *index);
        }
        cuzk::add_affine_lazy(sum, point);
    }
    cuzk::finish_lazy(sum);
    sums[bucket] = cuzk::canonical(sum);
}
