//! Writing a key for snarkjs.

use std::io::Write;

use cuzk_field::constants::{FP_MODULUS, FR_MODULUS, FR_R2};
use cuzk_field::encoding::PointEncoding;
use cuzk_field::{Affine, CurveField, Fr, G1Affine, G2Affine};
use rayon::prelude::*;

use super::header::ENTRY_BYTES;
use super::{
    A, B1, B2, C, COEFFICIENTS, G1_BYTES, G2_BYTES, H, HEADER, IC, PROTOCOL, TRANSCRIPT, ZKEY,
};
use crate::ab_matrices::AbMatrices;
use crate::error::{Error, ErrorKind};
use crate::model::{KeyFlavour, ProvingKey, QueryLayout};
use crate::output::{Output, count_u32};
use crate::prime::le_bytes;

/// Bytes of the header section's body.
const HEADER_BYTES: u64 = 4 + 48 + 4 + 32 + 3 * 4 + 3 * G1_BYTES + 3 * G2_BYTES;
/// A hash of zeros and no contribution.
const TRANSCRIPT_BYTES: u64 = 64 + 4;
/// Points encoded at a time, by all cores.
const BLOCK_POINTS: usize = 1 << 14;

/// Writes a key with its rows as a `.zkey`: sections 1 to 10 in order, a transcript without
/// contributions and with a circuit hash of zeros.
///
/// `matrices` hold the rows of the inputs too, as [`super::read`] gives them.
///
/// # Errors
/// The key is not of the circom flavour with one entry per variable, its lengths disagree, a count
/// needs more than 32 bits, or writing fails.
pub fn write(key: &ProvingKey, matrices: &AbMatrices, out: &mut dyn Write) -> Result<(), Error> {
    check_writable(key, matrices)?;
    let mut out = Output::new(out);
    out.preamble(&ZKEY, 10)?;
    out.section(PROTOCOL, 4)?;
    out.u32_le(1)?;
    write_header(key, &mut out)?;
    write_g1(&mut out, IC, &key.vk.gamma_abc_g1)?;
    write_coefficients(matrices, &mut out)?;
    write_g1(&mut out, A, &key.a_query)?;
    write_g1(&mut out, B1, &key.b_g1_query)?;
    out.section(B2, key.b_g2_query.len() as u64 * G2_BYTES)?;
    write_points(&mut out, &key.b_g2_query)?;
    write_g1(&mut out, C, &key.l_query)?;
    write_g1(&mut out, H, &key.h_query)?;
    out.section(TRANSCRIPT, TRANSCRIPT_BYTES)?;
    out.bytes(&[0; TRANSCRIPT_BYTES as usize])?;
    out.finish()
}

fn check_writable(key: &ProvingKey, matrices: &AbMatrices) -> Result<(), Error> {
    if key.flavour != KeyFlavour::CIRCOM || key.query_layout != QueryLayout::Full {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "a key of the circom flavour with one entry per variable",
            "another flavour or layout",
        )
        .hint("the H points of arkworks and bellman keys stand in another basis"));
    }
    let variables = key.num_variables();
    let rows = matrices.a.num_rows().max(matrices.b.num_rows());
    for (what, len, wanted) in [
        ("a_query", key.a_query.len(), variables),
        ("b_g1_query", key.b_g1_query.len(), variables),
        ("b_g2_query", key.b_g2_query.len(), variables),
        ("h_query", key.h_query.len(), key.domain_size),
        ("rows", rows.max(key.domain_size), key.domain_size),
    ] {
        if len != wanted {
            return Err(Error::new(
                ErrorKind::Inconsistent,
                format!("{wanted} entries in {what}"),
                len.to_string(),
            ));
        }
    }
    Ok(())
}

fn write_header(key: &ProvingKey, out: &mut Output<'_>) -> Result<(), Error> {
    out.section(HEADER, HEADER_BYTES)?;
    out.u32_le(48)?;
    out.bytes(&le_bytes(&FP_MODULUS))?;
    out.u32_le(32)?;
    out.bytes(&le_bytes(&FR_MODULUS))?;
    out.count(key.num_variables(), "variables")?;
    out.count(key.vk.num_public(), "public values")?;
    out.count(key.domain_size, "domain elements")?;
    write_points(out, &[key.vk.alpha_g1, key.beta_g1])?;
    write_points(out, &[key.vk.beta_g2, key.vk.gamma_g2])?;
    write_points(out, &[key.delta_g1])?;
    write_points(out, &[key.vk.delta_g2])
}

fn write_coefficients(matrices: &AbMatrices, out: &mut Output<'_>) -> Result<(), Error> {
    let sides = [(0u32, &matrices.a), (1, &matrices.b)];
    let entries = matrices.a.num_entries() + matrices.b.num_entries();
    let count = count_u32(entries, "entries of A and B")?;
    out.section(COEFFICIENTS, 4 + u64::from(count) * ENTRY_BYTES)?;
    out.u32_le(count)?;
    // The Montgomery product of c R with R^2 is c R^2, whose limbs the file holds.
    let r_squared = Fr::from_montgomery_limbs(FR_R2).expect("R^2 mod r is below r");
    let values: Vec<Vec<u8>> = matrices
        .coefficients
        .values()
        .iter()
        .map(|value| le_bytes((*value * r_squared).montgomery_limbs()))
        .collect();
    for row in 0..matrices.a.num_rows().max(matrices.b.num_rows()) {
        let number = count_u32(row, "rows")?;
        for (side, matrix) in sides {
            if row >= matrix.num_rows() {
                continue;
            }
            for (signal, coefficient) in matrix.row(row) {
                out.u32_le(side)?;
                out.u32_le(number)?;
                out.u32_le(signal)?;
                out.bytes(&values[coefficient as usize])?;
            }
        }
    }
    Ok(())
}

fn write_g1(out: &mut Output<'_>, number: u32, points: &[G1Affine]) -> Result<(), Error> {
    out.section(number, points.len() as u64 * G1_BYTES)?;
    write_points(out, points)
}

fn write_points<F: CurveField>(out: &mut Output<'_>, points: &[Affine<F>]) -> Result<(), Error>
where
    Affine<F>: PointEncoding,
{
    let point_bytes = Affine::<F>::UNCOMPRESSED_BYTES;
    let mut bytes = vec![0; points.len().min(BLOCK_POINTS) * point_bytes];
    for block in points.chunks(BLOCK_POINTS) {
        let bytes = &mut bytes[..block.len() * point_bytes];
        bytes
            .par_chunks_exact_mut(point_bytes)
            .zip(block)
            .for_each(|(bytes, point)| point.write_iden3(bytes));
        out.bytes(bytes)?;
    }
    Ok(())
}

const _: () = assert!(
    G1_BYTES as usize == G1Affine::UNCOMPRESSED_BYTES
        && G2_BYTES as usize == G2Affine::UNCOMPRESSED_BYTES
);
