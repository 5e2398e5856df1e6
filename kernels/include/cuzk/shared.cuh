// Shared memory of a block, by name.
//
// CUZK_SHARED(uint32_t, sums, 32) declares an array of 32 words, undefined until written, as
// `__shared__ uint32_t sums[32]` does. The emulator gives each block an array of its own, filled with
// 0xa5, between the address sanitizer's guards.
//
// CUZK_SHARED_DYNAMIC(uint32_t, words) names the bytes that the launch asked for, 16-byte aligned.
#pragma once

#include "cuzk/kernel.cuh"

#ifdef __CUDACC__

#define CUZK_SHARED(type, name, count) __shared__ type name[count]
#define CUZK_SHARED_DYNAMIC(type, name) \
    extern __shared__ uint4 cuzk_dynamic_shared[]; \
    type* const name = reinterpret_cast<type*>(cuzk_dynamic_shared)

#else

#define CUZK_SHARED(type, name, count) \
    static const char cuzk_shared_key_##name = 0; \
    type(&name)[count] = *static_cast<type(*)[count]>( \
        ::cuzk_emulator::shared(&cuzk_shared_key_##name, sizeof(type[count]), alignof(type)))
#define CUZK_SHARED_DYNAMIC(type, name) \
    type* const name = static_cast<type*>(::cuzk_emulator::dynamic_shared())

#endif
