// Copies from global to shared memory that run beside the arithmetic.
#pragma once

#include "cuzk/platform.cuh"

#if !defined(__CUDACC__)
#include <cstring>
#endif

namespace cuzk {

#if defined(__CUDACC__)

// 16 bytes; both addresses are multiples of 16.
CUZK_FN void copy_async_16(void* shared, const void* global) {
    const u32 to = static_cast<u32>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}
// Ends a group of copies.
CUZK_FN void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all groups that this thread has ended but the last. Other threads need a barrier besides.
CUZK_FN void copy_async_wait_but_last() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }
// Waits for all copies that this thread has begun. Other threads need a barrier besides.
CUZK_FN void copy_async_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#else

CUZK_FN void copy_async_16(void* shared, const void* global) { std::memcpy(shared, global, 16); }
CUZK_FN void copy_async_commit() {}
CUZK_FN void copy_async_wait_but_last() {}
CUZK_FN void copy_async_wait() {}

#endif

}  // namespace cuzk
