//! `kernels/src/field_ops.cu`: field operations, element by element.
//!
//! Canonical in, canonical out, but for the entries named `lazy`, which say what they take. The bounds
//! are in `docs/kernels.md`.

use cuzk_field::{Fp, Fp2, Fr};

use crate::elementwise::elementwise;

elementwise! {
    module "field_ops", 256 threads;
    /// `a + b`.
    FR_ADD fr_add = cuzk_field_ops_fr_add(a: Fr, b: Fr) -> Fr;
    /// `a - b`.
    FR_SUB fr_sub = cuzk_field_ops_fr_sub(a: Fr, b: Fr) -> Fr;
    /// `-a`.
    FR_NEG fr_neg = cuzk_field_ops_fr_neg(a: Fr) -> Fr;
    /// `a b`.
    FR_MUL fr_mul = cuzk_field_ops_fr_mul(a: Fr, b: Fr) -> Fr;
    /// `a^2`.
    FR_SQR fr_sqr = cuzk_field_ops_fr_sqr(a: Fr) -> Fr;
    /// 1/a, or 0 for 0 (ePrint 2019/266).
    FR_INV fr_inv = cuzk_field_ops_fr_inv(a: Fr) -> Fr;
    /// a + b in `[0, 2r)`, a and b in `[0, 2r)`.
    FR_ADD_LAZY fr_add_lazy = cuzk_field_ops_fr_add_lazy(a: Fr, b: Fr) -> Fr;
    /// a - b in `[0, 2r)`, a and b in `[0, 2r)`.
    FR_SUB_LAZY fr_sub_lazy = cuzk_field_ops_fr_sub_lazy(a: Fr, b: Fr) -> Fr;
    /// a b in `[0, 2r)`, a canonical, b in `[0, 2r)`.
    FR_MUL_LAZY fr_mul_lazy = cuzk_field_ops_fr_mul_lazy(a: Fr, b: Fr) -> Fr;
    /// `a + b`.
    FP_ADD fp_add = cuzk_field_ops_fp_add(a: Fp, b: Fp) -> Fp;
    /// `a - b`.
    FP_SUB fp_sub = cuzk_field_ops_fp_sub(a: Fp, b: Fp) -> Fp;
    /// `-a`.
    FP_NEG fp_neg = cuzk_field_ops_fp_neg(a: Fp) -> Fp;
    /// `a b`.
    FP_MUL fp_mul = cuzk_field_ops_fp_mul(a: Fp, b: Fp) -> Fp;
    /// `a^2`.
    FP_SQR fp_sqr = cuzk_field_ops_fp_sqr(a: Fp) -> Fp;
    /// 1/a, or 0 for 0 (ePrint 2019/266).
    FP_INV fp_inv = cuzk_field_ops_fp_inv(a: Fp) -> Fp;
    /// a b, not reduced further: a in `[0, 7p)`, b any twelve words.
    FP_MUL_LAZY fp_mul_lazy = cuzk_field_ops_fp_mul_lazy(a: Fp, b: Fp) -> Fp;
    /// a^2, not reduced further: a in `[0, 9p)`.
    FP_SQR_LAZY fp_sqr_lazy = cuzk_field_ops_fp_sqr_lazy(a: Fp) -> Fp;
    /// a in `[0, p)`, a any twelve words.
    FP_CANONICAL fp_canonical = cuzk_field_ops_fp_canonical(a: Fp) -> Fp;
    /// `a b + c d`.
    FP_MUL_SUM fp_mul_sum = cuzk_field_ops_fp_mul_sum(a: Fp, b: Fp, c: Fp, d: Fp) -> Fp;
    /// `a + b`.
    FP2_ADD fp2_add = cuzk_field_ops_fp2_add(a: Fp2, b: Fp2) -> Fp2;
    /// `a - b`.
    FP2_SUB fp2_sub = cuzk_field_ops_fp2_sub(a: Fp2, b: Fp2) -> Fp2;
    /// `-a`.
    FP2_NEG fp2_neg = cuzk_field_ops_fp2_neg(a: Fp2) -> Fp2;
    /// `a b`.
    FP2_MUL fp2_mul = cuzk_field_ops_fp2_mul(a: Fp2, b: Fp2) -> Fp2;
    /// `a^2`.
    FP2_SQR fp2_sqr = cuzk_field_ops_fp2_sqr(a: Fp2) -> Fp2;
    /// 1/a, or 0 for 0.
    FP2_INV fp2_inv = cuzk_field_ops_fp2_inv(a: Fp2) -> Fp2;
}
