// CUDA's device language for a host compiler: what a `.cu` of kernels/src uses, and no more.
//
// cuzk/kernel.cuh includes this file where nvcc is not the compiler. A block's threads are fibers of one OS thread,
// or, under CUZK_EMULATOR_THREADS, OS threads of their own (for the thread sanitizer). Barriers and
// warp operations are real: they wait, and check what CUDA leaves undefined. block.hpp has them.
//
// Not here on purpose: `__shared__` (kernels say CUZK_SHARED, of cuzk/shared.cuh, so that every
// block gets fresh, poisoned memory that the address sanitizer watches), `__activemask` (what it
// gives depends on the compiler), anything that lets one block wait for another.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CUZK_EMULATOR 1

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

#define __shared__ _Pragma("GCC error \"say CUZK_SHARED (cuzk/shared.cuh) for shared memory\"")

struct uint3 {
    unsigned x, y, z;
};

struct alignas(8) uint2 {
    unsigned x, y;
};

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};

struct dim3 {
    unsigned x, y, z;
};

inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }

namespace cuzk_emulator {

// A place in a kernel, for comparing and for messages.
struct Site {
    const char* file;
    int line;
};

// What threads do together. The threads of one operation must agree on it, its mask and its place.
enum class Operation : int {
    none,
    barrier,
    barrier_count,
    barrier_and,
    barrier_or,
    sync_warp,
    shuffle,
    ballot,
    any,
    all,
    match_any,
    reduce_add,
};

// Where the running thread is.
struct Here {
    uint3 thread;
    uint3 block;
    dim3 block_size;
    dim3 grid_size;
    unsigned lane;
};

extern __thread const Here* here;

// Block-wide; every thread of the block must come, none may have left.
int barrier(Operation operation, int value, Site site);

// Warp-wide, among the lanes of `mask`. `source` is the lane whose value a shuffle takes.
uint64_t exchange(Operation operation, uint32_t mask, uint64_t value, unsigned source, Site site);

// `bytes` of the block's shared memory, one array per key; 0xa5 in every byte until written.
void* shared(const void* key, size_t bytes, size_t alignment);
// The bytes that the launch asked for.
void* dynamic_shared();

[[noreturn]] void trap(Site site);

template <typename T>
inline uint64_t to_bits(T value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "warp operations take 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <typename T>
inline T from_bits(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
}

enum class Shuffle { index, up, down, exclusive_or };

template <typename T>
inline T shuffle(Shuffle how, uint32_t mask, T value, int delta, int width, Site site) {
    const int lane = static_cast<int>(here->lane);
    const int first = lane & ~(width - 1);
    int source = 0;
    bool inside = false;
    switch (how) {
        case Shuffle::index:
            source = first + (delta & (width - 1));
            inside = true;
            break;
        case Shuffle::up:
            source = lane - delta;
            inside = source >= first;
            break;
        case Shuffle::down:
            source = lane + delta;
            inside = source < first + width;
            break;
        case Shuffle::exclusive_or:
            source = lane ^ delta;
            inside = source < first + width;
            break;
    }
    // Lanes outside the segment keep their own value, as on a card.
    const unsigned from = static_cast<unsigned>(inside ? source : lane);
    return from_bits<T>(exchange(Operation::shuffle, mask, to_bits(value), from, site));
}

}  // namespace cuzk_emulator

#define threadIdx (::cuzk_emulator::here->thread)
#define blockIdx (::cuzk_emulator::here->block)
#define blockDim (::cuzk_emulator::here->block_size)
#define gridDim (::cuzk_emulator::here->grid_size)
#define warpSize 32

#define CUZK_EMULATOR_SITE (::cuzk_emulator::Site{__FILE__, __LINE__})
#define CUZK_EMULATOR_BARRIER(operation, value) \
    ::cuzk_emulator::barrier(::cuzk_emulator::Operation::operation, value, CUZK_EMULATOR_SITE)
#define CUZK_EMULATOR_EXCHANGE(operation, mask, value) \
    ::cuzk_emulator::exchange(::cuzk_emulator::Operation::operation, mask, value, 0, CUZK_EMULATOR_SITE)
#define CUZK_EMULATOR_SHUFFLE(how, mask, value, delta, ...) \
    ::cuzk_emulator::shuffle(::cuzk_emulator::Shuffle::how, mask, value, delta, \
                             ::cuzk_emulator::width_or_warp(__VA_ARGS__), CUZK_EMULATOR_SITE)

namespace cuzk_emulator {
inline int width_or_warp(int width = 32) { return width; }
}  // namespace cuzk_emulator

#define __syncthreads() ((void)CUZK_EMULATOR_BARRIER(barrier, 0))
#define __syncthreads_count(predicate) CUZK_EMULATOR_BARRIER(barrier_count, (predicate) ? 1 : 0)
#define __syncthreads_and(predicate) CUZK_EMULATOR_BARRIER(barrier_and, (predicate) ? 1 : 0)
#define __syncthreads_or(predicate) CUZK_EMULATOR_BARRIER(barrier_or, (predicate) ? 1 : 0)

// The mask is always written out: the portability rules want it.
#define __syncwarp(mask) ((void)CUZK_EMULATOR_EXCHANGE(sync_warp, mask, 0))
#define __ballot_sync(mask, predicate) \
    (static_cast<unsigned>(CUZK_EMULATOR_EXCHANGE(ballot, mask, (predicate) ? 1 : 0)))
#define __any_sync(mask, predicate) \
    (static_cast<int>(CUZK_EMULATOR_EXCHANGE(any, mask, (predicate) ? 1 : 0)))
#define __all_sync(mask, predicate) \
    (static_cast<int>(CUZK_EMULATOR_EXCHANGE(all, mask, (predicate) ? 1 : 0)))
#define __match_any_sync(mask, value) \
    (static_cast<unsigned>(CUZK_EMULATOR_EXCHANGE(match_any, mask, ::cuzk_emulator::to_bits(value))))
#define __reduce_add_sync(mask, value) \
    (static_cast<unsigned>(CUZK_EMULATOR_EXCHANGE(reduce_add, mask, static_cast<unsigned>(value))))

#define __shfl_sync(mask, value, lane, ...) \
    CUZK_EMULATOR_SHUFFLE(index, mask, value, lane __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_up_sync(mask, value, delta, ...) \
    CUZK_EMULATOR_SHUFFLE(up, mask, value, static_cast<int>(delta) __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_down_sync(mask, value, delta, ...) \
    CUZK_EMULATOR_SHUFFLE(down, mask, value, static_cast<int>(delta) __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_xor_sync(mask, value, lanes, ...) \
    CUZK_EMULATOR_SHUFFLE(exclusive_or, mask, value, lanes __VA_OPT__(, ) __VA_ARGS__)

#define __trap() ::cuzk_emulator::trap(CUZK_EMULATOR_SITE)

// Relaxed, as on a card. Each returns the old value.
template <typename T>
inline T atomicAdd(T* address, T value) {
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
template <typename T>
inline T atomicSub(T* address, T value) {
    return __atomic_fetch_sub(address, value, __ATOMIC_RELAXED);
}
template <typename T>
inline T atomicAnd(T* address, T value) {
    return __atomic_fetch_and(address, value, __ATOMIC_RELAXED);
}
template <typename T>
inline T atomicOr(T* address, T value) {
    return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);
}
template <typename T>
inline T atomicXor(T* address, T value) {
    return __atomic_fetch_xor(address, value, __ATOMIC_RELAXED);
}
template <typename T>
inline T atomicExch(T* address, T value) {
    return __atomic_exchange_n(address, value, __ATOMIC_RELAXED);
}
template <typename T>
inline T atomicCAS(T* address, T expected, T value) {
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
template <typename T>
inline T atomicMax(T* address, T value) {
    T old = __atomic_load_n(address, __ATOMIC_RELAXED);
    while (old < value &&
           !__atomic_compare_exchange_n(address, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return old;
}
template <typename T>
inline T atomicMin(T* address, T value) {
    T old = __atomic_load_n(address, __ATOMIC_RELAXED);
    while (value < old &&
           !__atomic_compare_exchange_n(address, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return old;
}

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

template <typename T>
inline T __ldg(const T* address) {
    return *address;
}
inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __popcll(unsigned long long value) { return __builtin_popcountll(value); }
inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value)); }
inline int __ffs(int value) { return __builtin_ffs(value); }
inline unsigned __brev(unsigned value) {
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; ++bit) {
        reversed |= ((value >> bit) & 1u) << (31 - bit);
    }
    return reversed;
}
