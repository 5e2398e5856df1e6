//! What must hold of a prepared key besides its checksums.

use cuzk_field::{Affine, CurveField, Field as _, Fp, Fr};
use rayon::prelude::*;

use super::PreparedKey;
use super::section::Section;
use crate::error::{Error, ErrorKind, Place};
use crate::model::{CoefficientTable, QueryLayout};

/// Coordinates below p, on the curve, in the subgroup and not infinity.
pub(super) fn vital<F: CurveField>(points: &[Affine<F>], offset: u64) -> Result<(), Error> {
    self::points(points, 0, offset, true, Section::Vital)?;
    match points.iter().position(Affine::is_infinity) {
        None => Ok(()),
        Some(index) => {
            let offset = offset + (index * size_of::<Affine<F>>()) as u64;
            Err(Error::new(
                ErrorKind::BadPoint,
                "a point other than the identity",
                "the identity (point at infinity)",
            )
            .at(Section::Vital.place().offset(offset)))
        }
    }
}

/// Coordinates below p and points on their curve, the first of which is number `first` of a section that
/// begins at `offset`.
pub(super) fn points<F: CurveField>(
    points: &[Affine<F>],
    first: u64,
    offset: u64,
    subgroup: bool,
    section: Section,
) -> Result<(), Error> {
    for (index, point) in (first..).zip(points) {
        let is_canonical = [&point.x, &point.y].into_iter().all(|coordinate| {
            (0..F::DEGREE).all(|i| {
                let limbs = *coordinate.coefficient(i).montgomery_limbs();
                Fp::from_montgomery_limbs(limbs).is_some()
            })
        });
        let (kind, expected, found) = if !is_canonical {
            (
                ErrorKind::NotCanonical,
                "coordinates below the modulus p",
                "a coordinate that is not below it",
            )
        } else if !point.is_on_curve() {
            (
                ErrorKind::BadPoint,
                "a point of the curve BLS12-381",
                "one that is not on it",
            )
        } else if subgroup && !point.is_in_subgroup() {
            (
                ErrorKind::BadPoint,
                "a point of the subgroup of order r",
                "a point of the curve outside of it",
            )
        } else {
            continue;
        };
        let offset = offset + index * size_of::<Affine<F>>() as u64;
        let place = section.place().entry("point", index).offset(offset);
        return Err(Error::new(kind, expected, found).at(place));
    }
    Ok(())
}

/// A table of these values: distinct, none zero, 1 and -1 first.
pub(super) fn coefficients(values: Vec<Fr>) -> Result<CoefficientTable, Error> {
    let fault = |index: usize, kind, expected: &'static str, found: &'static str| {
        let place = Section::Coefficients.place();
        Err(Error::new(kind, expected, found).at(place.entry("coefficient", index as u64)))
    };
    let mut table = CoefficientTable::new();
    for (index, value) in values.into_iter().enumerate() {
        if Fr::from_montgomery_limbs(*value.montgomery_limbs()).is_none() {
            return fault(
                index,
                ErrorKind::NotCanonical,
                "a value below r",
                "one that is not",
            );
        }
        if value.is_zero() || table.intern(value) as usize != index {
            return fault(
                index,
                ErrorKind::Inconsistent,
                "1, -1, then distinct values other than 0",
                "another",
            );
        }
    }
    Ok(table)
}

/// Indices below `count`.
pub(super) fn indices(indices: &[u32], count: u64, section: Section) -> Result<(), Error> {
    match indices
        .par_iter()
        .position_first(|index| u64::from(*index) >= count)
    {
        None => Ok(()),
        Some(entry) => Err(Error::new(
            ErrorKind::OutOfRange,
            format!("an index below {count}"),
            indices[entry].to_string(),
        )
        .at(section.place().entry("entry", entry as u64))),
    }
}

/// The variables whose bits are set: `num_points` of `num_variables`.
pub(super) fn variables(
    words: &[u64],
    num_variables: u64,
    num_points: u64,
    section: Section,
) -> Result<Vec<u32>, Error> {
    let set: u64 = words.par_iter().map(|w| u64::from(w.count_ones())).sum();
    let beyond = num_variables % 64;
    let is_clean = beyond == 0 || words.last().is_none_or(|word| word >> beyond == 0);
    if set != num_points || !is_clean {
        return Err(Error::new(
            ErrorKind::Inconsistent,
            format!("{num_points} of {num_variables} variables"),
            if is_clean {
                set.to_string()
            } else {
                "bits beyond the last".into()
            },
        )
        .at(section.place()));
    }
    let mut variables = Vec::new();
    variables
        .try_reserve_exact(num_points as usize)
        .map_err(|_| Error::out_of_memory(4 * num_points))?;
    for (index, word) in words.iter().enumerate() {
        let mut word = *word;
        while word != 0 {
            variables.push((64 * index) as u32 + word.trailing_zeros());
            word &= word - 1;
        }
    }
    Ok(variables)
}

/// What the parts of a key ask of each other, for one that was read and for one that is to be written.
pub(super) fn key(prepared: &PreparedKey) -> Result<(), Error> {
    let key = &prepared.key;
    let (variables, inputs) = (key.num_variables(), key.num_inputs());
    let same = |name: &'static str, found: usize, expected: usize| {
        if found == expected {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Inconsistent,
            format!("{expected} {name}"),
            found.to_string(),
        )
        .at(Place::part("prepared key")))
    };
    if key.query_layout != QueryLayout::Compact {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "a key of the compact layout",
            "one with a point for every variable",
        ));
    }
    same("inputs among the variables", variables.min(inputs), inputs)?;
    same(
        "H points",
        key.h_query.len(),
        key.flavour.h_len(key.domain_size),
    )?;
    same("A points", key.a_query.len(), prepared.variables.a.len())?;
    same("B points", key.b_g1_query.len(), prepared.variables.b.len())?;
    same(
        "B points in G2",
        key.b_g2_query.len(),
        prepared.variables.b.len(),
    )?;
    let matrices = &prepared.matrices;
    same("rows of B", matrices.b.num_rows(), matrices.a.num_rows())?;
    let coefficients = matrices.coefficients.values().len() as u64;
    for (matrix, columns, ids) in [
        (&matrices.a, Section::AColumns, Section::AIds),
        (&matrices.b, Section::BColumns, Section::BIds),
    ] {
        indices(matrix.columns(), variables as u64, columns)?;
        indices(matrix.coefficients(), coefficients, ids)?;
    }
    for (list, section) in [
        (&prepared.variables.a, Section::AVariables),
        (&prepared.variables.b, Section::BVariables),
    ] {
        indices(list, variables as u64, section)?;
        if !list.is_sorted_by(|a, b| a < b) {
            return Err(Error::new(
                ErrorKind::Inconsistent,
                "variables in rising order",
                "another order",
            )
            .at(section.place()));
        }
    }
    Ok(())
}
