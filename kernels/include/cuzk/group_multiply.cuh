// A multiple of a point of order r in G1.
//
// k = k1 + k2 lambda with lambda = z^2 - 1 of 128 bits and lambda (x, y) = (beta x, y): remainder and quotient of a
// division, both below 2^128, since k < r = lambda^2 + lambda + 1. Both halves share 128 doublings. Digits are odd and at
// most 15 in size, and each half gets its own; there are two ways to find them:
//
//   sliding  at each bit where the signed digits b_(j-1) - b_j of k begin to differ from zero, five of them are taken
//            together (the left-to-right form of width 5, Okeya et al., CRYPTO 2004): one addition in six bits on average. For
//            warps whose threads have one scalar, which go in step then;
//   fixed    sum s_j 2^j with s_j = 2 b_(j+1) - 1 (an odd k is that sum), four of them together: one addition in four bits,
//            in every thread at the same bit. An even half is taken as the next odd one, and the point subtracted at the end.
//
// The multiples q, 3 q, ..., 15 q of a thread lie in global memory, plane by plane, x, y and beta x of each. They share one
// Z, which costs no inversion: with 2 q = (X, Y, Z), (X, Y) and (Z^2 x, Z^3 y) are affine points of an isomorphic curve; there
// 2 q is added seven times, each sum's Z being a multiple of that before; and in the end all sums are scaled to the last
// one's Z, which makes them affine points of one more isomorphic curve. The sums of digits are taken on it, and their Z is
// multiplied by what was left out.
#pragma once

#include "cuzk/jacobian.cuh"
#include "cuzk/pair_lanes.cuh"

namespace cuzk {
namespace group {

// Multiples held, and planes of 16 bytes a thread: nine a multiple, three for the Z left out.
inline constexpr u32 multiples = 8;
inline constexpr u32 table_planes = 9 * multiples + 3;
static_assert(table_planes == 3 * 25);

// z^2 - 1
inline constexpr Limbs<4> lambda = {{0xffffffff, 0x00000000, 0x0001a402, 0xac45a401}};

// 2^(2 (p - 1) / 3) in Montgomery form
inline constexpr Limbs<12> beta_limbs = {{0x8671f071, 0xcd03c9e4, 0x1fcda5d2, 0x5dab2246, 0xd3851b95, 0x587042af,
                                          0x01bacb9e, 0x8eb60ebe, 0x83d050d2, 0x03f97d6e, 0x54638741, 0x18f02065}};

CUZK_FN Fp beta() {
    constexpr Limbs<12> m = beta_limbs;
    Fp r;
    CUZK_UNROLL
    for (int i = 0; i < 12; i++) {
        r.v[i] = m.v[i];
    }
    return r;
}

// A thread's place among the planes of its grid.
struct Table {
    Chunk* first;
    u32 stride;
};

// table_planes / 3 elements of Fp for each thread of the grid
CUZK_FN Table own_table(Fp* planes) { return Table{reinterpret_cast<Chunk*>(planes) + grid_first(), grid_stride()}; }

// Components of a multiple, and the one behind all.
enum Component : u32 { x_of = 0, y_of = 1, beta_x_of = 2, z_left_out = 3 * multiples };

CUZK_FN Fp load(const Table& table, u32 multiple, u32 component) {
    return load_planes(table.first, table.stride, 3 * multiple + component, 0);
}
CUZK_FN void store(const Table& table, u32 multiple, u32 component, const Fp& a) {
    store_planes(table.first, table.stride, 3 * multiple + component, 0, a);
}

// Shifts left by COUNT bits, below 32.
template <int COUNT>
CUZK_FN void shift_left(u32 (&k)[5]) {
    CUZK_UNROLL
    for (int i = 4; i > 0; i--) {
        k[i] = k[i] << COUNT | k[i - 1] >> (32 - COUNT);
    }
    k[0] <<= COUNT;
}

// k1 and k2 of a scalar below r, in words 0 to 3.
CUZK_FN void split(u32 (&k1)[5], u32 (&k2)[5], const Scalar& k) {
    constexpr Limbs<4> m = lambda;
    // The upper 127 bits are below lambda.
    u32 rest[4] = {k.v[4], k.v[5], k.v[6], k.v[7]};
    u32 next[5] = {0, k.v[0], k.v[1], k.v[2], k.v[3]};
    u32 quotient[4] = {0, 0, 0, 0};
    CUZK_NO_UNROLL
    for (int i = 0; i < 128; i++) {
        // Doubled it may have 129 bits, less lambda it has 128.
        const u32 carry = rest[3] >> 31;
        CUZK_UNROLL
        for (int j = 3; j > 0; j--) {
            rest[j] = rest[j] << 1 | rest[j - 1] >> 31;
            quotient[j] = quotient[j] << 1 | quotient[j - 1] >> 31;
        }
        rest[0] = rest[0] << 1 | next[4] >> 31;
        quotient[0] <<= 1;
        shift_left<1>(next);
        u32 less[4];
        const u32 borrow = sub_limbs_borrow(less, rest, m.v);
        if (carry != 0 || borrow == 0) {
            CUZK_UNROLL
            for (int j = 0; j < 4; j++) {
                rest[j] = less[j];
            }
            quotient[0] |= 1;
        }
    }
    CUZK_UNROLL
    for (int j = 0; j < 4; j++) {
        k1[j] = rest[j];
        k2[j] = quotient[j];
    }
    k1[4] = 0;
    k2[4] = 0;
}

// A half with its digits yet to come, the next one's bits on top.
struct Digits {
    u32 k[5];
    // Sliding: bits of the window that are left, how many of them stand below its odd digit and it, the digit.
    u32 left;
    u32 at;
    i32 digit;
    // Fixed: whether the half is even.
    u32 is_even;
};

// Takes a half in words 0 to 3.
CUZK_FN void begin(Digits& d, bool sliding) {
    d.left = 0;
    d.at = 0;
    d.digit = 0;
    d.is_even = sliding ? 0 : ~d.k[0] & 1;
    if (sliding) {
        // A zero bit, then the half.
        shift_left<31>(d.k);
        return;
    }
    // Bits 1 to 127, a one above them.
    CUZK_UNROLL
    for (int i = 0; i < 3; i++) {
        d.k[i] = d.k[i] >> 1 | d.k[i + 1] << 31;
    }
    d.k[3] = d.k[3] >> 1 | 0x80000000u;
    CUZK_UNROLL
    for (int i = 4; i > 0; i--) {
        d.k[i] = d.k[i - 1];
    }
    d.k[0] = 0;
}

// The digit to be added at a bit, 128 first, or 0.
CUZK_FN i32 next(Digits& d, u32 bit, bool sliding) {
    if (!sliding) {
        if (bit % 4 != 0 || bit == 128) {
            return 0;
        }
        const i32 digit = 2 * static_cast<i32>(d.k[4] >> 28) - 15;
        shift_left<4>(d.k);
        return digit;
    }
    if (d.left == 0 && ((d.k[4] >> 31 ^ d.k[4] >> 30) & 1) != 0) {
        // Five bits, the uppermost of negative weight, and the bit below them.
        const i32 value = (static_cast<i32>(d.k[4]) >> 27) + static_cast<i32>(d.k[4] >> 26 & 1);
        const u32 zeros = static_cast<u32>(__ffs(value)) - 1;
        d.digit = value >> zeros;
        d.left = 5;
        d.at = zeros + 1;
    }
    shift_left<1>(d.k);
    if (d.left == 0) {
        return 0;
    }
    const bool here = d.left == d.at;
    d.left--;
    return here ? d.digit : 0;
}

// Fills in the multiples of the point q = (x, y), which is finite and in `sum`'s x and y. `sum` is used up.
CUZK_CALL void tabulate_call(G1Jacobian* scratch, Table table) {
    G1Jacobian& sum = *scratch;
    // q scaled by the Z of 2 q, and 2 q itself (mdbl-2007-bl), which keeps the place of the last multiple until that is there.
    sum.z = dbl(sum.y);
    store(table, 0, z_left_out, sum.z);
    const Fp zz = sqr_call(sum.z);
    store(table, 0, x_of, mul_call(sum.x, zz));
    store(table, 0, y_of, mul_call(mul_call(sum.y, zz), sum.z));
    sum.z = fp_one();
    double_call(&sum);
    store(table, multiples - 1, x_of, sum.x);
    store(table, multiples - 1, y_of, sum.y);
    sum = G1Jacobian{load(table, 0, x_of), load(table, 0, y_of), fp_one()};
    CUZK_NO_UNROLL
    for (u32 i = 1; i < multiples; i++) {
        Fp h;
        Fp r;
        differences(h, r, sum, load(table, multiples - 1, x_of), load(table, multiples - 1, y_of));
        // The ratio to the Z before.
        store(table, i, beta_x_of, h);
        add_by_differences_call(&sum, h, r);
        store(table, i, x_of, sum.x);
        store(table, i, y_of, sum.y);
    }
    store(table, 0, z_left_out, mul_call(sum.z, load(table, 0, z_left_out)));
    // The scale is in `sum`'s z, the next one in its x.
    sum.z = fp_one();
    CUZK_NO_UNROLL
    for (u32 i = multiples; i-- > 0;) {
        if (i != 0) {
            sum.x = mul_call(sum.z, load(table, i, beta_x_of));
        }
        const Fp square = sqr_call(sum.z);
        store(table, i, y_of, mul_call(load(table, i, y_of), mul_call(square, sum.z)));
        const Fp x = mul_call(load(table, i, x_of), square);
        store(table, i, x_of, x);
        store(table, i, beta_x_of, mul_call(x, beta()));
        sum.z = sum.x;
    }
}

// sum += digit q, or digit lambda q in the second half. The digit is odd.
CUZK_FN void add_multiple(G1Jacobian& sum, const Table& table, i32 digit, bool second_half) {
    const u32 magnitude = static_cast<u32>(digit < 0 ? -digit : digit);
    const u32 multiple = magnitude / 2;
    const Fp x = load(table, multiple, second_half ? beta_x_of : x_of);
    Fp y = load(table, multiple, y_of);
    if (digit < 0) {
        y = neg(y);
    }
    add_finite_call(&sum, x, y);
}

// sum = k q for q of order r or infinite and k below r. `sum` and the digits of both halves, digits[0] and digits[128],
// are in shared memory: beside the operands of a product there is no room for them.
CUZK_FN void multiply(G1Jacobian& sum, Digits* digits, const G1Affine& q, const Scalar& k, bool sliding, const Table& table) {
    if (is_infinity(q)) {
        set_infinity(sum);
        return;
    }
    sum.x = q.x;
    sum.y = q.y;
    tabulate_call(&sum, table);
    split(digits[0].k, digits[128].k, k);
    begin(digits[0], sliding);
    begin(digits[128], sliding);
    set_infinity(sum);
    // Bits from 128 down; at the end the two odd halves that stand for even ones.
    CUZK_NO_UNROLL
    for (u32 step = 0; step <= 129; step++) {
        const bool at_end = step == 129;
        if (!at_end && !is_infinity(sum)) {
            double_call(&sum);
        }
        CUZK_NO_UNROLL
        for (u32 half = 0; half < 2; half++) {
            Digits& d = digits[128 * half];
            const i32 digit = at_end ? -static_cast<i32>(d.is_even) : next(d, 128 - step, sliding);
            if (digit != 0) {
                add_multiple(sum, table, digit, half != 0);
            }
        }
    }
    sum.z = mul_call(sum.z, load(table, 0, z_left_out));
}

// The affine point of 1/Z, canonical.
CUZK_FN G1Affine scaled(const Fp& x, const Fp& y, const Fp& z_inverse) {
    const Fp square = sqr_call(z_inverse);
    return G1Affine{canonical(mul_call(x, square)), canonical(mul_call(y, mul_call(square, z_inverse)))};
}

CUZK_FN G1Affine to_affine(const G1Jacobian& a) {
    const Fp z_inverse = inverse_call(canonical(a.z));
    return scaled(a.x, a.y, z_inverse);
}

// low = a + t and high = a - t for the point a of low, with one inversion: both have the same Z. t is used up.
CUZK_CALL void write_sum_and_difference_call(G1Affine* low_point, G1Affine* high_point, G1Jacobian* sum) {
    G1Affine& low = *low_point;
    G1Affine& high = *high_point;
    G1Jacobian& t = *sum;
    if (is_infinity(t)) {
        high = low;
        return;
    }
    if (is_infinity(low)) {
        low = to_affine(t);
        high = neg(low);
        return;
    }
    Fp h;
    Fp r;
    differences(h, r, t, low.x, low.y);
    if (is_zero(h)) {
        // The point is t or -t.
        const bool is_equal = is_zero(r);
        double_call(&t);
        high = to_affine(t);
        low = G1Affine{fp_zero(), fp_zero()};
        if (is_equal) {
            low = high;
            high = G1Affine{fp_zero(), fp_zero()};
        } else {
            high = neg(high);
        }
        return;
    }
    const Fp z = mul_call(t.z, h);
    const Fp hh = sqr_call(h);
    const Fp hhh = mul_call(h, hh);
    // t's x and z make room for v and r.
    t.x = mul_call(t.x, hh);
    t.z = r;
    const Fp z_inverse = inverse_call(canonical(z));
    CUZK_NO_UNROLL
    for (u32 i = 0; i < 2; i++) {
        const Fp x = sub(sub(sqr_call(t.z), hhh), dbl(t.x));
        const Fp y = mul_diff_call(t.z, sub(t.x, x), t.y, hhh);
        G1Affine* const to = i == 0 ? &low : &high;
        *to = scaled(x, y, z_inverse);
        // r is y_a - y_t, then y_a + y_t.
        t.z = add(t.z, dbl(t.y));
        t.y = neg(t.y);
    }
}

}  // namespace group
}  // namespace cuzk
