// Carry chains: PTX under nvcc, and beside it the same meaning in portable C++.
//
// One flag lives between the calls. An addition leaves a carry, a subtraction a borrow, and PTX keeps both in the
// same bit with opposite sense on the machine: `subc` after `add.cc` compiles and gives wrong results. The portable
// twin therefore tracks the *kind* of the flag and aborts when an operation takes the wrong kind or a flag that
// nothing has set. It also aborts when an operation named `_top` loses a carry out of the last word, where the code
// claims that none can occur.
//
// Suffixes follow PTX: `_cc` sets the flag, `c_` (addc, subc, madc) takes it. `_wide` is the 64-bit product of two
// words, added to the pair (hi, lo); ptxas makes one IMAD.WIDE of the two instructions.
#pragma once

#include "cuzk/platform.cuh"

#if !defined(__CUDACC__)
#include <cstdio>
#include <cstdlib>
#endif

namespace cuzk {

#if defined(__CUDACC__)

// The statements are volatile so that the compiler keeps their order: the flag is not an operand it can see.

CUZK_FN u32 add_cc(u32 a, u32 b) {
    u32 r;
    asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
CUZK_FN u32 addc_cc(u32 a, u32 b) {
    u32 r;
    asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
CUZK_FN u32 addc(u32 a, u32 b) {
    u32 r;
    asm volatile("addc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
CUZK_FN u32 addc_top(u32 a, u32 b) { return addc(a, b); }

CUZK_FN u32 sub_cc(u32 a, u32 b) {
    u32 r;
    asm volatile("sub.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
CUZK_FN u32 subc_cc(u32 a, u32 b) {
    u32 r;
    asm volatile("subc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
CUZK_FN u32 subc(u32 a, u32 b) {
    u32 r;
    asm volatile("subc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

// (hi, lo) = a b
CUZK_FN void mul_wide(u32& lo, u32& hi, u32 a, u32 b) {
    asm volatile("mul.lo.u32 %0, %2, %3;\n\tmul.hi.u32 %1, %2, %3;" : "=&r"(lo), "=r"(hi) : "r"(a), "r"(b));
}
// (hi, lo) = a b + (c_hi, c_lo); carry out
CUZK_FN void mad_wide_cc(u32& lo, u32& hi, u32 a, u32 b, u32 c_lo, u32 c_hi) {
    asm volatile("mad.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.cc.u32 %1, %2, %3, %5;"
                 : "=&r"(lo), "=r"(hi)
                 : "r"(a), "r"(b), "r"(c_lo), "r"(c_hi));
}
// (hi, lo) = a b + (c_hi, c_lo) + carry; carry out
CUZK_FN void madc_wide_cc(u32& lo, u32& hi, u32 a, u32 b, u32 c_lo, u32 c_hi) {
    asm volatile("madc.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.cc.u32 %1, %2, %3, %5;"
                 : "=&r"(lo), "=r"(hi)
                 : "r"(a), "r"(b), "r"(c_lo), "r"(c_hi));
}
// (hi, lo) = a b + (c_hi, c_lo) + carry, which fits
CUZK_FN void madc_wide_top(u32& lo, u32& hi, u32 a, u32 b, u32 c_lo, u32 c_hi) {
    asm volatile("madc.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.u32 %1, %2, %3, %5;"
                 : "=&r"(lo), "=r"(hi)
                 : "r"(a), "r"(b), "r"(c_lo), "r"(c_hi));
}
// (hi, lo) = a b + (c_hi, c_lo) + carry modulo 2^64
CUZK_FN void madc_wide(u32& lo, u32& hi, u32 a, u32 b, u32 c_lo, u32 c_hi) { madc_wide_top(lo, hi, a, b, c_lo, c_hi); }
// (hi, lo) = a b + (c_hi, c_lo) modulo 2^64
CUZK_FN void mad_wide(u32& lo, u32& hi, u32 a, u32 b, u32 c_lo, u32 c_hi) {
    asm volatile("mad.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.u32 %1, %2, %3, %5;"
                 : "=&r"(lo), "=r"(hi)
                 : "r"(a), "r"(b), "r"(c_lo), "r"(c_hi));
}
// a b + c + carry modulo 2^32
CUZK_FN u32 madc_lo(u32 a, u32 b, u32 c) {
    u32 r;
    asm volatile("madc.lo.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
// -x, spelled so that ptxas does not fold the negation into later products and split their pairs.
CUZK_FN u32 negate_hidden(u32 x) {
    u32 r;
    asm volatile("{\n\t.reg .u32 t;\n\tnot.b32 t, %1;\n\tadd.u32 %0, t, 1;\n\t}" : "=r"(r) : "r"(x));
    return r;
}

#else

namespace flag {

enum class Kind { none, carry, borrow };

struct State {
    Kind kind = Kind::none;
    u32 bit = 0;
};

inline thread_local State state;

[[noreturn]] inline void fail(const char* what) {
    std::fprintf(stderr, "cuzk carry chain: %s\n", what);
    std::abort();
}

static inline u32 take(Kind kind) {
    if (state.kind != kind) {
        fail(kind == Kind::carry ? "a carry is taken, but none was set" : "a borrow is taken, but none was set");
    }
    state.kind = Kind::none;
    return state.bit;
}
static inline u32 leave(Kind kind, u64 sum) {
    state.kind = kind;
    state.bit = static_cast<u32>(sum >> 32) & 1;
    return static_cast<u32>(sum);
}
static inline u32 last(u64 sum) {
    if ((sum >> 32) != 0) {
        fail("a carry is lost at the top");
    }
    return static_cast<u32>(sum);
}

// (hi, lo) = a b + (c_hi, c_lo) + carry_in; the carry out
static inline u32 mad(u32& lo, u32& hi, u32 a, u32 b, u32 c_lo, u32 c_hi, u32 carry_in) {
    const u64 product = static_cast<u64>(a) * b;
    const u64 addend = (static_cast<u64>(c_hi) << 32) | c_lo;
    const u64 partial = product + addend;
    const u64 sum = partial + carry_in;
    lo = static_cast<u32>(sum);
    hi = static_cast<u32>(sum >> 32);
    return static_cast<u32>(partial < product) + static_cast<u32>(sum < partial);
}

}  // namespace flag

CUZK_FN u32 add_cc(u32 a, u32 b) { return flag::leave(flag::Kind::carry, static_cast<u64>(a) + b); }
CUZK_FN u32 addc_cc(u32 a, u32 b) {
    const u32 c = flag::take(flag::Kind::carry);
    return flag::leave(flag::Kind::carry, static_cast<u64>(a) + b + c);
}
CUZK_FN u32 addc(u32 a, u32 b) { return a + b + flag::take(flag::Kind::carry); }
CUZK_FN u32 addc_top(u32 a, u32 b) { return flag::last(static_cast<u64>(a) + b + flag::take(flag::Kind::carry)); }

CUZK_FN u32 sub_cc(u32 a, u32 b) { return flag::leave(flag::Kind::borrow, static_cast<u64>(a) - b); }
CUZK_FN u32 subc_cc(u32 a, u32 b) {
    const u32 c = flag::take(flag::Kind::borrow);
    return flag::leave(flag::Kind::borrow, static_cast<u64>(a) - b - c);
}
CUZK_FN u32 subc(u32 a, u32 b) { return a - b - flag::take(flag::Kind::borrow); }

CUZK_FN void mul_wide(u32& lo, u32& hi, u32 a, u32 b) {
    const u64 product = static_cast<u64>(a) * b;
    lo = static_cast<u32>(product);
    hi = static_cast<u32>(product >> 32);
}
CUZK_FN void mad_wide_cc(u32& lo, u32& hi, u32 a, u32 b, u32 c_lo, u32 c_hi) {
    const u32 carry = flag::mad(lo, hi, a, b, c_lo, c_hi, 0);
    flag::state = {flag::Kind::carry, carry};
}
CUZK_FN void madc_wide_cc(u32& lo, u32& hi, u32 a, u32 b, u32 c_lo, u32 c_hi) {
    const u32 carry = flag::mad(lo, hi, a, b, c_lo, c_hi, flag::take(flag::Kind::carry));
    flag::state = {flag::Kind::carry, carry};
}
CUZK_FN void madc_wide_top(u32& lo, u32& hi, u32 a, u32 b, u32 c_lo, u32 c_hi) {
    if (flag::mad(lo, hi, a, b, c_lo, c_hi, flag::take(flag::Kind::carry)) != 0) {
        flag::fail("a carry is lost at the top of a product");
    }
}
CUZK_FN void madc_wide(u32& lo, u32& hi, u32 a, u32 b, u32 c_lo, u32 c_hi) {
    (void)flag::mad(lo, hi, a, b, c_lo, c_hi, flag::take(flag::Kind::carry));
}
CUZK_FN void mad_wide(u32& lo, u32& hi, u32 a, u32 b, u32 c_lo, u32 c_hi) {
    (void)flag::mad(lo, hi, a, b, c_lo, c_hi, 0);
}
CUZK_FN u32 madc_lo(u32 a, u32 b, u32 c) { return a * b + c + flag::take(flag::Kind::carry); }
CUZK_FN u32 negate_hidden(u32 x) { return 0u - x; }

#endif

}  // namespace cuzk
