//! `vk_alphabeta_12`: e(alpha, beta) as snarkjs writes it.

use ark_bls12_381::{Bls12_381, Fq6};
use ark_ec::pairing::Pairing as _;
use cuzk_field::{Fp2, G1Affine, G2Affine};

use super::point::Coordinate as _;
use super::write::Writer;

/// Writes e(alpha, beta) in the tower Fp2\[v\]/(v^3 - 1 - u), then \[w\]/(w^2 - v): 2 x 3 x 2 numbers.
pub(super) fn write(alpha: &G1Affine, beta: &G2Affine, out: &mut Writer) {
    let (alpha, beta): (ark_bls12_381::G1Affine, ark_bls12_381::G2Affine) =
        ((*alpha).into(), (*beta).into());
    let value = Bls12_381::pairing(alpha, beta).0;
    let write_fp6 = |value: Fq6, out: &mut Writer| {
        out.array(|out| {
            for coefficient in [value.c0, value.c1, value.c2] {
                Fp2::from(coefficient).write(out);
            }
        });
    };
    out.array(|out| {
        write_fp6(value.c0, out);
        write_fp6(value.c1, out);
    });
}
