// Elementwise field operations: the device arithmetic, one operation an entry, for tests and the self-test.
//
// Every entry: a grid of one dimension, any number of blocks of any size up to 256 threads; no shared memory; each array
// has `count` elements in Montgomery form, 16-byte aligned; `out` may be one of the inputs, as each element is read
// before it is written and no other is touched. Values are canonical on entry and exit unless the entry says more.
// The arithmetic and its bounds are in cuzk/fr.cuh, cuzk/fp.cuh, cuzk/fp2.cuh and docs/kernels.md.

#include "cuzk/fp2.cuh"
#include "cuzk/kernel.cuh"

using cuzk::Fp;
using cuzk::Fp2;
using cuzk::Fr;
using cuzk::u32;

// out = a + b
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fr_add(const Fr* a, const Fr* b, Fr* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fr x = a[i];
        const Fr y = b[i];
        out[i] = cuzk::add(x, y);
    }
}

// out = a - b
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fr_sub(const Fr* a, const Fr* b, Fr* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fr x = a[i];
        const Fr y = b[i];
        out[i] = cuzk::sub(x, y);
    }
}

// out = -a
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fr_neg(const Fr* a, Fr* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fr x = a[i];
        out[i] = cuzk::neg(x);
    }
}

// out = a b
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fr_mul(const Fr* a, const Fr* b, Fr* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fr x = a[i];
        const Fr y = b[i];
        out[i] = cuzk::mul(x, y);
    }
}

// out = a^2
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fr_sqr(const Fr* a, Fr* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fr x = a[i];
        out[i] = cuzk::sqr(x);
    }
}

// out = 1/a, or 0 for 0 (ePrint 2019/266)
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fr_inv(const Fr* a, Fr* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fr x = a[i];
        out[i] = cuzk::inverse_of(x);
    }
}

// out = a + b in [0, 2r), a and b in [0, 2r)
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fr_add_lazy(const Fr* a, const Fr* b, Fr* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fr x = a[i];
        const Fr y = b[i];
        out[i] = cuzk::add_lazy(x, y);
    }
}

// out = a - b in [0, 2r), a and b in [0, 2r)
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fr_sub_lazy(const Fr* a, const Fr* b, Fr* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fr x = a[i];
        const Fr y = b[i];
        out[i] = cuzk::sub_lazy(x, y);
    }
}

// out = a b in [0, 2r), a canonical, b in [0, 2r)
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fr_mul_lazy(const Fr* a, const Fr* b, Fr* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fr x = a[i];
        const Fr y = b[i];
        out[i] = cuzk::mul_lazy(x, y);
    }
}

// out = a + b
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp_add(const Fp* a, const Fp* b, Fp* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp x = a[i];
        const Fp y = b[i];
        out[i] = cuzk::canonical(cuzk::add(x, y));
    }
}

// out = a - b
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp_sub(const Fp* a, const Fp* b, Fp* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp x = a[i];
        const Fp y = b[i];
        out[i] = cuzk::canonical(cuzk::sub(x, y));
    }
}

// out = -a
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp_neg(const Fp* a, Fp* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp x = a[i];
        out[i] = cuzk::canonical(cuzk::neg(x));
    }
}

// out = a b
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp_mul(const Fp* a, const Fp* b, Fp* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp x = a[i];
        const Fp y = b[i];
        out[i] = cuzk::canonical(cuzk::mul(x, y));
    }
}

// out = a^2
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp_sqr(const Fp* a, Fp* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp x = a[i];
        out[i] = cuzk::canonical(cuzk::sqr(x));
    }
}

// out = 1/a, or 0 for 0 (ePrint 2019/266)
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp_inv(const Fp* a, Fp* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp x = a[i];
        out[i] = cuzk::inverse_of(x);
    }
}

// out = a b, not reduced further: a in [0, 7p), b any twelve words
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp_mul_lazy(const Fp* a, const Fp* b, Fp* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp x = a[i];
        const Fp y = b[i];
        out[i] = cuzk::mul(x, y);
    }
}

// out = a^2, not reduced further: a in [0, 9p)
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp_sqr_lazy(const Fp* a, Fp* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp x = a[i];
        out[i] = cuzk::sqr(x);
    }
}

// out = a in [0, p), a any twelve words
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp_canonical(const Fp* a, Fp* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp x = a[i];
        out[i] = cuzk::canonical_wide(x);
    }
}

// out = a b + c d
extern "C" __global__ void __launch_bounds__(256)
    cuzk_field_ops_fp_mul_sum(const Fp* a, const Fp* b, const Fp* c, const Fp* d, Fp* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp x = a[i];
        const Fp y = b[i];
        const Fp z = c[i];
        const Fp w = d[i];
        out[i] = cuzk::canonical(cuzk::mul_sum(x, y, z, w));
    }
}

// out = a + b
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp2_add(const Fp2* a, const Fp2* b, Fp2* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp2 x = a[i];
        const Fp2 y = b[i];
        out[i] = cuzk::canonical(cuzk::add(x, y));
    }
}

// out = a - b
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp2_sub(const Fp2* a, const Fp2* b, Fp2* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp2 x = a[i];
        const Fp2 y = b[i];
        out[i] = cuzk::canonical(cuzk::sub(x, y));
    }
}

// out = -a
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp2_neg(const Fp2* a, Fp2* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp2 x = a[i];
        out[i] = cuzk::canonical(cuzk::neg(x));
    }
}

// out = a b
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp2_mul(const Fp2* a, const Fp2* b, Fp2* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp2 x = a[i];
        const Fp2 y = b[i];
        out[i] = cuzk::canonical(cuzk::mul(x, y));
    }
}

// out = a^2
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp2_sqr(const Fp2* a, Fp2* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp2 x = a[i];
        out[i] = cuzk::canonical(cuzk::sqr(x));
    }
}

// out = 1/a, or 0 for 0
extern "C" __global__ void __launch_bounds__(256) cuzk_field_ops_fp2_inv(const Fp2* a, Fp2* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fp2 x = a[i];
        out[i] = cuzk::inverse_of(x);
    }
}
