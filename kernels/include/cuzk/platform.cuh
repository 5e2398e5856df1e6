// What differs between nvcc and the host compiler, apart from carries (carry.cuh) and the thread's place in its
// grid (kernel.cuh).
//
// Every other header and every kernel is written once against these names and compiles with both.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)

// Inlined into every caller.
#define CUZK_FN static __device__ __forceinline__
// The same for members that are not static.
#define CUZK_FN_MEMBER __device__ __forceinline__
// Called, not inlined. Field elements travel by value in registers, four of them if need be, which keeps a point
// addition short; a reference or a pointer would send them through local memory.
#define CUZK_CALL [[maybe_unused]] static __device__ __noinline__
// Evaluated at compile time only; the result becomes literals in the code.
#define CUZK_CONST __host__ __device__ constexpr
#define CUZK_UNROLL _Pragma("unroll")
#define CUZK_NO_UNROLL _Pragma("unroll 1")

#else

#define CUZK_FN [[maybe_unused]] static inline
#define CUZK_FN_MEMBER inline
#define CUZK_CALL [[maybe_unused]] static
#define CUZK_CONST constexpr
#define CUZK_UNROLL
#define CUZK_NO_UNROLL

#endif

namespace cuzk {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

// x, of which the compiler forgets where it came from: what follows from it is computed anew, not kept in registers.
CUZK_FN u32 forgotten(u32 x) {
#if defined(__CUDACC__)
    asm volatile("" : "+r"(x));
#endif
    return x;
}

// N limbs, least significant first; a plain array that can be returned.
template <int N>
struct Limbs {
    u32 v[N];
};

}  // namespace cuzk
