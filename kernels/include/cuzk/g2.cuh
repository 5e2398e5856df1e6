// G2: y^2 = x^3 + 4 (1 + u) over Fp2.
#pragma once

#include "cuzk/curve.cuh"

namespace cuzk {

using G2Affine = Affine<Fp2>;
using G2Xyzz = Xyzz<Fp2>;

static_assert(sizeof(Fp2) == 96 && alignof(Fp2) == 16);
static_assert(sizeof(G2Affine) == 192 && alignof(G2Affine) == 32);
static_assert(sizeof(G2Xyzz) == 384 && alignof(G2Xyzz) == 32);

}  // namespace cuzk
