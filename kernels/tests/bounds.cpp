// Proves the ranges that the lazy forms claim, and looks for lost carries at their edges.
//
// Three parts; the program prints what it found and exits with 1 if a claim does not hold:
//   1. Words: for the rows of a multiplication, an upper bound of the running value after each row against the words
//      that hold it (docs/kernels.md, "Bounds"). It gives the largest row operand.
//   2. Values: an interval type with the operations of Fp walks through the point formulas themselves and through
//      what closed operations are made of, and checks every precondition on the way.
//   3. Edges: the arithmetic itself, on operands at the very ends of their ranges; the portable carry chains abort
//      when a carry is lost.
//
// Build: a C++17 compiler with kernels/include on the include path. With CUZK_BOUNDS_LIBRARY there is no main, for a test
// that links this file and calls cuzk_prove_bounds.

#include <cstdio>
#include <cstdlib>

#include "cuzk/g1.cuh"
#include "cuzk/g2.cuh"

namespace {

using cuzk::u32;
using cuzk::u64;

int failures = 0;

void claim(bool holds, const char* what) {
    if (!holds) {
        failures++;
        std::printf("FAILS: %s\n", what);
    }
}

// All bounds are long double. Fractions and products carry a relative allowance, far above the rounding of a whole
// formula (2^-64 an operation) and far below every slack; sums and differences of small integers are exact.
constexpr long double allowance = 1.0L + 1e-15L;
constexpr long double two_32 = 4294967296.0L;

template <int N>
long double fraction(const cuzk::Limbs<N>& a) {
    // a / 2^(32N), rounded up
    long double x = 0;
    for (int i = 0; i < N; i++) {
        x = (x + a.v[i]) / two_32;
    }
    return x * allowance;
}

const long double p_fraction = fraction(cuzk::fp::modulus);
const long double r_fraction = fraction(cuzk::fr::modulus);
const long double m_fraction = fraction(cuzk::multiple_shifted(cuzk::fp::modulus, cuzk::fp::minus_inverse));

// 1. Words -----------------------------------------------------------------------------------------------------------

// Fp, in units of 2^384: whether every row of a product with row operands of `row` in sum stays within 13 words.
bool fp_rows_fit(long double row) {
    long double kept = 0;
    for (int i = 0; i < 12; i++) {
        long double value = kept + row * two_32;
        if (i >= 10) {
            value += p_fraction * two_32;
        }
        if (value * allowance >= two_32) {
            return false;
        }
        kept = value / two_32;
        if (i < 10) {
            // The shifted value and q M together are below 13 words, too.
            kept += m_fraction * two_32;
            if (kept * allowance >= two_32) {
                return false;
            }
        }
    }
    return kept * allowance < 1;
}

// Fr, in units of 2^256: two rows, then a reduction step.
bool fr_rows_fit(long double row) {
    const long double two_64 = two_32 * two_32;
    long double kept = 0;
    for (int i = 0; i < 4; i++) {
        if ((kept + row * two_32) * allowance >= two_32) {
            return false;
        }
        const long double value = kept + (row + r_fraction) * two_64;
        if (value * allowance >= two_64) {
            return false;
        }
        kept = value / two_64;
    }
    return kept * allowance < 1;
}

template <class Fits>
long double largest(Fits fits) {
    long double low = 0;
    long double high = 1;
    for (int i = 0; i < 60; i++) {
        const long double middle = (low + high) / 2;
        (fits(middle) ? low : high) = middle;
    }
    return low;
}

}  // namespace

// 2. Values ----------------------------------------------------------------------------------------------------------

namespace bounds {

// A value in [0, v p).
struct Value {
    long double v;
};

const long double storable = 1.0L / (p_fraction * allowance);

Value made(long double v, const char* what) {
    claim(v < storable, what);
    return Value{v};
}

Value add_raw(const Value& a, const Value& b) { return made(a.v + b.v, "add_raw: twelve words"); }
Value dbl_raw(const Value& a) { return add_raw(a, a); }
template <int K>
Value sub_raw(const Value& a, const Value& b) {
    claim(b.v <= K, "sub_raw: the subtrahend is at most K p");
    return made(a.v + K, "sub_raw: twelve words");
}
template <int K>
Value neg_raw(const Value& b) {
    claim(b.v <= K, "neg_raw: the operand is at most K p");
    return made(K, "neg_raw: twelve words");
}
template <int K>
Value reduce_by(const Value& a) {
    const long double k = K;
    return Value{a.v - k > k ? a.v - k : (a.v > k ? k : a.v)};
}
Value closed(const Value& a, const char* what) {
    claim(a.v <= 2, what);
    return Value{2};
}
Value add(const Value& a, const Value& b) {
    closed(a, "add takes [0, 2p)");
    closed(b, "add takes [0, 2p)");
    return closed(reduce_by<2>(add_raw(a, b)), "add gives [0, 2p)");
}
Value dbl(const Value& a) { return add(a, a); }
Value sub(const Value& a, const Value& b) {
    closed(a, "sub takes [0, 2p)");
    return closed(b, "sub takes [0, 2p)");
}
Value neg(const Value& a) { return closed(a, "neg takes [0, 2p)"); }
Value canonical(const Value& a) {
    claim(a.v <= 2, "canonical takes [0, 2p)");
    return Value{1};
}
Value mul_sum(const Value& a, const Value& b, const Value& c, const Value& d) {
    claim(fp_rows_fit((a.v + c.v) * p_fraction), "mul_sum: row operands");
    return made(((a.v * b.v + c.v * d.v) * p_fraction + 1 + 1 / two_32) * allowance, "mul_sum: twelve words");
}
Value mul(const Value& a, const Value& b) { return mul_sum(a, b, Value{0}, Value{0}); }
Value sqr(const Value& a) { return made((a.v * a.v * p_fraction + 1 + 1 / two_32) * allowance, "sqr: twelve words"); }
Value mul_call(const Value& a, const Value& b) { return mul(a, b); }
Value sqr_call(const Value& a) { return sqr(a); }
Value mul_diff_call(const Value& a, const Value& b, const Value& c, const Value& d) {
    return mul_sum(a, b, neg_raw<2>(c), d);
}
template <int K>
bool is_multiple(const Value& a) {
    claim(a.v <= K + 1, "is_multiple: the operand is below (K + 1) p");
    return false;
}
bool is_zero(const Value& a) { return is_multiple<1>(a); }
bool is_exact_zero(const Value&) { return false; }
Value zero_of(const Value&) { return Value{0}; }
Value one_of(const Value&) { return Value{1}; }

using Point = cuzk::Xyzz<Value>;

bool within(const Point& a, long double y) { return a.x.v <= 2 && a.y.v <= y && a.zz.v <= 2 && a.zzz.v <= 2; }

void formulas() {
    const Value two{2};
    const cuzk::Affine<Value> q{Value{1}, Value{1}};

    Point lazy{two, Value{3}, two, two};
    cuzk::add_affine_lazy(lazy, q);
    std::printf("add_affine_lazy: from X, ZZ, ZZZ < 2p, Y < 3p to X < %.4Lf, Y < %.4Lf, ZZ < %.4Lf, ZZZ < %.4Lf\n",
                lazy.x.v, lazy.y.v, lazy.zz.v, lazy.zzz.v);
    claim(within(lazy, 3), "add_affine_lazy keeps its ranges");
    claim(reduce_by<2>(lazy.y).v <= 2, "finish_lazy gives Y in [0, 2p)");

    Point sum{two, two, two, two};
    cuzk::add_affine(sum, q);
    claim(within(sum, 2), "add_affine keeps [0, 2p)");
    sum = Point{two, two, two, two};
    cuzk::add_xyzz(sum, Point{two, two, two, two});
    claim(within(sum, 2), "add_xyzz keeps [0, 2p)");
    sum = Point{two, two, two, two};
    cuzk::double_xyzz(sum);
    claim(within(sum, 2), "double_xyzz keeps [0, 2p)");
    cuzk::double_affine(sum, q);
    claim(within(sum, 2), "double_affine gives [0, 2p)");
    Value slope;
    cuzk::pair_denominator(slope, q, q);
    cuzk::pair_sum(q, q, cuzk::PairKind::chord, Value{1});
    cuzk::pair_sum(q, q, cuzk::PairKind::tangent, Value{1});

    // What Fp and Fp2 promise for operands in [0, 2p): the expressions of fp.cuh and fp2.cuh.
    claim(mul(two, two).v <= 2 && sqr(two).v <= 2, "Fp: mul and sqr are closed");
    claim(mul_sum(two, two, two, two).v <= 2, "Fp: mul_sum is closed");
    claim(mul_diff_call(two, two, two, two).v <= 2, "Fp: mul_diff is closed; Fp2: mul is closed");
    claim(mul(add_raw(two, two), sub(two, two)).v <= 2, "Fp2: sqr, real part");
    claim(mul(dbl_raw(two), two).v <= 2, "Fp2: sqr, imaginary part");
    claim(mul_sum(Value{1}, Value{1}, Value{1}, Value{1}).v <= 2, "Fp2: norm of a canonical value");
}

}  // namespace bounds

// 3. Edges -----------------------------------------------------------------------------------------------------------

namespace {

using cuzk::Fp;
using cuzk::Fr;

template <class T, int N>
T from(const cuzk::Limbs<N>& a) {
    T out;
    for (int i = 0; i < N; i++) {
        out.v[i] = a.v[i];
    }
    return out;
}

// The value itself, one less, and its words with runs of ones below a given word.
template <class T, int N, class Use>
void neighbours(const cuzk::Limbs<N>& a, Use use) {
    T x = from<T, N>(a);
    use(x);
    T less = x;
    for (int i = 0; i < N && less.v[i]-- == 0; i++) {
    }
    use(less);
    for (int words = 1; words < N; words++) {
        T ones = x;
        T zeros = x;
        for (int i = 0; i < words; i++) {
            ones.v[i] = 0xffffffff;
            zeros.v[i] = 0;
        }
        int i = words;
        while (i < N && ones.v[i]-- == 0) {
            i++;
        }
        use(ones);
        use(zeros);
    }
}

// Products with `rows` as row operand give the same residue with the operands' canonical values.
template <class T>
bool same(const T& a, const T& b) {
    return cuzk::limbs_are_equal(a.v, b.v);
}

long edges() {
    long count = 0;
    const cuzk::Limbs<12> all_ones = {{~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u}};
    const auto check = [&](const Fp& row, const Fp& x) {
        const Fp row_c = cuzk::canonical_wide(row);
        const Fp x_c = cuzk::canonical_wide(x);
        const Fp expected = cuzk::canonical(cuzk::mul(row_c, x_c));
        claim(same(cuzk::canonical_wide(cuzk::mul(row, x)), expected), "mul at the edge");
        claim(same(cuzk::canonical(cuzk::mul(x_c, row_c)), expected), "mul commutes");
        count += 2;
    };
    for (u32 k = 1; k <= 7; k++) {
        neighbours<Fp>(cuzk::multiple(cuzk::fp::modulus, k), [&](const Fp& row) {
            neighbours<Fp>(all_ones, [&](const Fp& x) { check(row, x); });
            for (u32 j = 1; j <= 9; j++) {
                neighbours<Fp>(cuzk::multiple(cuzk::fp::modulus, j), [&](const Fp& x) { check(row, x); });
            }
        });
    }
    for (u32 k = 1; k <= 9; k++) {
        neighbours<Fp>(cuzk::multiple(cuzk::fp::modulus, k), [&](const Fp& a) {
            const Fp c = cuzk::canonical_wide(a);
            const Fp expected = cuzk::canonical(cuzk::mul(c, c));
            claim(same(cuzk::canonical_wide(cuzk::sqr(a)), expected), "sqr at the edge");
            count++;
        });
    }
    for (u32 k = 1; k <= 6; k++) {
        neighbours<Fp>(cuzk::multiple(cuzk::fp::modulus, k), [&](const Fp& a) {
            neighbours<Fp>(cuzk::multiple(cuzk::fp::modulus, 7 - k), [&](const Fp& c) {
                const Fp b = from<Fp>(cuzk::multiple(cuzk::fp::modulus, 3));
                const Fp d = from<Fp>(cuzk::fp::r2_limbs);
                const Fp expected = cuzk::canonical(cuzk::mul(cuzk::canonical_wide(c), d));
                claim(same(cuzk::canonical_wide(cuzk::mul_sum(a, b, c, d)), expected), "mul_sum at the edge");
                count++;
            });
        });
    }
    // Fr: canonical and slightly larger row operands, any words beside them.
    const cuzk::Limbs<8> ones8 = {{~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u}};
    neighbours<Fr>(cuzk::fr::modulus, [&](const Fr& row) {
        const Fr row_c = cuzk::canonical(row);
        const auto use = [&](const Fr& x) {
            const Fr x_c = cuzk::canonical(cuzk::canonical(x));
            const Fr expected = cuzk::mul(x_c, row_c);
            const Fr got = cuzk::mul_lazy(row, x);
            claim(same(cuzk::canonical(cuzk::canonical(got)), expected), "Fr: mul_lazy at the edge");
            count++;
        };
        neighbours<Fr>(cuzk::fr::modulus, use);
        neighbours<Fr>(cuzk::multiple(cuzk::fr::modulus, 2), use);
        if (same(row, row_c)) {
            neighbours<Fr>(ones8, use);
        }
        claim(same(cuzk::sqr(row_c), cuzk::mul(row_c, row_c)), "Fr: sqr at the edge");
    });
    return count;
}

}  // namespace

// 0 if all claims hold, else 1.
extern "C" int cuzk_prove_bounds() {
    const long double fp_row = largest(fp_rows_fit) / p_fraction;
    const long double fr_row = largest(fr_rows_fit) / r_fraction;
    std::printf("2^384 = %.4Lf p, 2^256 = %.4Lf r\n", 1 / p_fraction, 1 / r_fraction);
    std::printf("largest row operand: %.4Lf p (claimed 7.6), %.4Lf r (claimed 1.2)\n", fp_row, fr_row);
    claim(fp_row > 7.6L, "Fp: row operands up to 7.6 p");
    claim(fr_row > 1.2L, "Fr: row operands up to 1.2 r");
    claim(2 * r_fraction + 1 < 1.906L, "Fr: canonical times [0, 2r) stays below 1.906 r");
    claim((1.2L * 1.2L * r_fraction + 1) * r_fraction < 1, "Fr: sqr_lazy fits for x < 1.2 r");
    claim((9.2L * 9.2L * p_fraction + 1 + 1 / two_32) * p_fraction < 1, "Fp: sqr fits for a < 9.2 p");
    bounds::formulas();
    std::printf("%ld products at the edges of their ranges\n", edges());
    std::printf(failures == 0 ? "all bounds hold\n" : "%d claims fail\n", failures);
    return failures == 0 ? 0 : 1;
}

#if !defined(CUZK_BOUNDS_LIBRARY)
int main() { return cuzk_prove_bounds(); }
#endif
