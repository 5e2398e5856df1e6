//! Writing a constraint system.

use std::io::Write;

use cuzk_field::Scalar;
use cuzk_field::constants::FR_MODULUS;

use super::{CONSTRAINTS, ENTRY_BYTES, HEADER, LABELS, MIN_CONSTRAINT_BYTES, R1CS};
use crate::error::Error;
use crate::model::R1cs;
use crate::output::{Output, count_u32};
use crate::prime::le_bytes;

/// Bytes of the header section's body.
const HEADER_BYTES: u64 = 4 + 32 + 4 * 4 + 8 + 4;

/// Writes `r1cs` as an `.r1cs` file: sections 1, 2, 3, every public value as a public input, every
/// other variable as an internal wire, labels equal to wires.
///
/// # Errors
/// Writing fails, or there are 2^32 or more wires or constraints.
pub fn write(r1cs: &R1cs, out: &mut dyn Write) -> Result<(), Error> {
    let num_wires = count_u32(r1cs.num_variables, "wires")?;
    let mut out = Output::new(out);
    out.preamble(&R1CS, 3)?;

    out.section(HEADER, HEADER_BYTES)?;
    out.u32_le(32)?;
    out.bytes(&le_bytes(&FR_MODULUS))?;
    out.u32_le(num_wires)?;
    out.u32_le(0)?;
    out.count(r1cs.num_inputs.saturating_sub(1), "public inputs")?;
    out.u32_le(0)?;
    out.u64_le(u64::from(num_wires))?;
    out.count(r1cs.num_constraints(), "constraints")?;

    let matrices = [&r1cs.a, &r1cs.b, &r1cs.c];
    let entries: u64 = matrices.iter().map(|m| m.num_entries() as u64).sum();
    let rows = r1cs.num_constraints() as u64;
    out.section(
        CONSTRAINTS,
        rows * MIN_CONSTRAINT_BYTES + entries * ENTRY_BYTES,
    )?;
    let coefficients: Vec<[u8; 32]> = r1cs
        .coefficients
        .values()
        .iter()
        .map(|value| Scalar::from(*value).to_le_bytes())
        .collect();
    for row in 0..r1cs.num_constraints() {
        for matrix in matrices {
            let entries = matrix.row(row);
            out.count(entries.len(), "entries of a row")?;
            for (column, coefficient) in entries {
                out.u32_le(column)?;
                out.bytes(&coefficients[coefficient as usize])?;
            }
        }
    }

    out.section(LABELS, u64::from(num_wires) * 8)?;
    for label in 0..u64::from(num_wires) {
        out.u64_le(label)?;
    }
    out.finish()
}
