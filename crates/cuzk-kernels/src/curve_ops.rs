//! `kernels/src/curve_ops.cu`: point operations, element by element.
//!
//! Points are on their curve, coordinates canonical. Every pair is allowed: equal, opposite, infinite.

use cuzk_field::{G1Affine, G1Xyzz, G2Affine, G2Xyzz};

use crate::elementwise::elementwise;

elementwise! {
    module "curve_ops", 128 threads;
    /// `a + b`.
    G1_ADD_AFFINE g1_add_affine = cuzk_curve_ops_g1_add_affine(a: G1Xyzz, b: G1Affine) -> G1Xyzz;
    /// a + b, by the form that G2 uses.
    G1_ADD_AFFINE_CLOSED g1_add_affine_closed = cuzk_curve_ops_g1_add_affine_closed(a: G1Xyzz, b: G1Affine) -> G1Xyzz;
    /// `a + b`.
    G1_ADD_XYZZ g1_add_xyzz = cuzk_curve_ops_g1_add_xyzz(a: G1Xyzz, b: G1Xyzz) -> G1Xyzz;
    /// `2 a`.
    G1_DOUBLE_XYZZ g1_double_xyzz = cuzk_curve_ops_g1_double_xyzz(a: G1Xyzz) -> G1Xyzz;
    /// `2 a`.
    G1_DOUBLE_AFFINE g1_double_affine = cuzk_curve_ops_g1_double_affine(a: G1Affine) -> G1Xyzz;
    /// `-a`.
    G1_NEG_AFFINE g1_neg_affine = cuzk_curve_ops_g1_neg_affine(a: G1Affine) -> G1Affine;
    /// `-a`.
    G1_NEG_XYZZ g1_neg_xyzz = cuzk_curve_ops_g1_neg_xyzz(a: G1Xyzz) -> G1Xyzz;
    /// `a`.
    G1_TO_AFFINE g1_to_affine = cuzk_curve_ops_g1_to_affine(a: G1Xyzz) -> G1Affine;
    /// a + b, by the affine formulas with an inversion for each pair.
    G1_PAIR_SUM g1_pair_sum = cuzk_curve_ops_g1_pair_sum(a: G1Affine, b: G1Affine) -> G1Affine;
    /// `a + b`.
    G2_ADD_AFFINE g2_add_affine = cuzk_curve_ops_g2_add_affine(a: G2Xyzz, b: G2Affine) -> G2Xyzz;
    /// `a + b`.
    G2_ADD_XYZZ g2_add_xyzz = cuzk_curve_ops_g2_add_xyzz(a: G2Xyzz, b: G2Xyzz) -> G2Xyzz;
    /// `2 a`.
    G2_DOUBLE_XYZZ g2_double_xyzz = cuzk_curve_ops_g2_double_xyzz(a: G2Xyzz) -> G2Xyzz;
    /// `2 a`.
    G2_DOUBLE_AFFINE g2_double_affine = cuzk_curve_ops_g2_double_affine(a: G2Affine) -> G2Xyzz;
    /// `-a`.
    G2_NEG_AFFINE g2_neg_affine = cuzk_curve_ops_g2_neg_affine(a: G2Affine) -> G2Affine;
    /// `-a`.
    G2_NEG_XYZZ g2_neg_xyzz = cuzk_curve_ops_g2_neg_xyzz(a: G2Xyzz) -> G2Xyzz;
    /// `a`.
    G2_TO_AFFINE g2_to_affine = cuzk_curve_ops_g2_to_affine(a: G2Xyzz) -> G2Affine;
    /// a + b, by the affine formulas with an inversion for each pair.
    G2_PAIR_SUM g2_pair_sum = cuzk_curve_ops_g2_pair_sum(a: G2Affine, b: G2Affine) -> G2Affine;
}
