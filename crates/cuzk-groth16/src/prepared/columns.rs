//! The sparse sums by which the part of C moves into L.

use cuzk_field::{G1Affine, Scalar};
use cuzk_formats::{CoefficientTable, R1cs};
use cuzk_msm::{multiply_each, signed_sums};

use super::transform::ProgressFn;
use crate::error::Error;

/// Entries multiplied together.
const SLAB: usize = 1 << 16;

/// L_v - sum_k C_kv Q_k for every variable v, L_v being infinity for inputs. `q` is used up.
pub(super) fn l_without_c(
    l: &[G1Affine],
    q: Vec<G1Affine>,
    r1cs: &R1cs,
    progress: ProgressFn<'_>,
) -> Result<Vec<G1Affine>, Error> {
    // Bases: Q, then L, then a multiple of a Q for each entry that is neither 1 nor -1.
    let first_l = q.len();
    let first_multiple = first_l + l.len();
    let mut bases = q;
    bases.extend_from_slice(l);
    append_multiples(&mut bases, r1cs, progress)?;
    // A term is an index and a sign in 32 bits.
    if bases.len() > (u32::MAX >> 1) as usize {
        let bases = bases.len();
        return Err(cuzk_msm::Error::TooManyTerms { bases }.into());
    }
    let term = |index: usize, is_negated: bool| (index as u32) << 1 | u32::from(is_negated);

    // A counting sort by variable: L first, then the entries of C.
    let inputs = r1cs.num_inputs;
    let mut offsets = vec![0usize; r1cs.num_variables + 1];
    for offset in &mut offsets[inputs + 1..] {
        *offset = 1;
    }
    for column in r1cs.c.columns() {
        offsets[*column as usize + 1] += 1;
    }
    let mut total = 0;
    for offset in &mut offsets {
        total += *offset;
        *offset = total;
    }
    let mut terms = vec![0u32; total];
    let mut next = offsets.clone();
    let mut place = |variable: usize, term: u32| {
        terms[next[variable]] = term;
        next[variable] += 1;
    };
    for i in 0..l.len() {
        place(inputs + i, term(first_l + i, false));
    }
    let mut multiple = first_multiple;
    for row in 0..r1cs.c.num_rows() {
        for (column, coefficient) in r1cs.c.row(row) {
            let term = match coefficient {
                CoefficientTable::ONE => term(row, true),
                CoefficientTable::MINUS_ONE => term(row, false),
                _ => {
                    multiple += 1;
                    term(multiple - 1, true)
                }
            };
            place(column as usize, term);
        }
    }
    Ok(signed_sums(&bases, &terms, &offsets)?)
}

/// How many entries of C are neither 1 nor -1.
pub(super) fn num_multiples(r1cs: &R1cs) -> usize {
    let coefficients = r1cs.c.coefficients().iter();
    coefficients
        .filter(|coefficient| **coefficient > CoefficientTable::MINUS_ONE)
        .count()
}

/// Appends C_kv Q_k for each such entry, row by row.
fn append_multiples(
    bases: &mut Vec<G1Affine>,
    r1cs: &R1cs,
    progress: ProgressFn<'_>,
) -> Result<(), Error> {
    bases.reserve_exact(num_multiples(r1cs));
    let mut entries = (0..r1cs.c.num_rows()).flat_map(|row| {
        let entries = r1cs.c.row(row);
        entries.filter_map(move |(_, coefficient)| {
            (coefficient > CoefficientTable::MINUS_ONE).then_some((row, coefficient))
        })
    });
    loop {
        let (points, scalars): (Vec<G1Affine>, Vec<Scalar>) = entries
            .by_ref()
            .take(SLAB)
            .map(|(row, coefficient)| {
                let coefficient = r1cs.coefficients.values()[coefficient as usize];
                (bases[row], Scalar::from(coefficient))
            })
            .unzip();
        if points.is_empty() {
            return Ok(());
        }
        bases.append(&mut multiply_each(&points, &scalars)?);
        progress(points.len() as u64);
    }
}
