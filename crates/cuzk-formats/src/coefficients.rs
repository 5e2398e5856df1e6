//! Coefficients of files turned into indices of a [`CoefficientTable`], and rows made tidy.

use cuzk_field::{Fr, Scalar};

use crate::error::{Error, ErrorKind};
use crate::model::{CoefficientTable, Matrix, TooManyEntries};

/// What a coefficient c is stored as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CoefficientForm {
    /// c (r1cs).
    Plain,
    /// c R^2 mod r with R = 2^256 (zkey).
    TimesRSquared,
}

impl CoefficientForm {
    fn decode(self, raw: Scalar) -> Fr {
        match self {
            Self::Plain => Fr::from(raw),
            // The Montgomery product with a plain 1 divides by R once: c R is left.
            Self::TimesRSquared => raw.over_r() * Scalar::ONE.over_r(),
        }
    }
}

/// Slots of the cache: more than the few thousand distinct coefficients of large circuits, 320 KiB.
const CACHE_SLOTS: usize = 1 << 13;

/// A table under construction, behind a direct-mapped cache of the stored forms: circuits repeat
/// few coefficients, so most need neither a conversion nor a lookup.
pub(crate) struct Interner {
    form: CoefficientForm,
    table: CoefficientTable,
    /// Stored limbs and index; all zero is an empty slot, since zero is never entered.
    cache: Vec<([u64; 4], u32)>,
}

impl Interner {
    pub(crate) fn new(form: CoefficientForm) -> Self {
        Self {
            form,
            table: CoefficientTable::new(),
            cache: vec![([0; 4], 0); CACHE_SLOTS],
        }
    }

    /// The index of the coefficient stored as `limbs`; `None` for zero.
    ///
    /// # Errors
    /// [`ErrorKind::NotCanonical`] when `limbs` is not below r.
    #[inline]
    pub(crate) fn index(&mut self, limbs: [u64; 4]) -> Result<Option<u32>, Error> {
        let mixed = limbs[0] ^ limbs[1].rotate_left(17) ^ limbs[2].rotate_left(31) ^ limbs[3];
        let slot = (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51) as usize;
        let (cached, index) = self.cache[slot];
        if limbs == [0; 4] {
            return Ok(None);
        }
        if cached == limbs {
            return Ok(Some(index));
        }
        let raw = Scalar::from_limbs(limbs).ok_or_else(not_canonical)?;
        let index = self.table.intern(self.form.decode(raw));
        self.cache[slot] = (limbs, index);
        Ok(Some(index))
    }

    pub(crate) fn table_mut(&mut self) -> &mut CoefficientTable {
        &mut self.table
    }

    pub(crate) fn into_table(self) -> CoefficientTable {
        self.table
    }
}

const _: () = assert!(CACHE_SLOTS == 1 << (64 - 51));

pub(crate) fn not_canonical() -> Error {
    Error::new(
        ErrorKind::NotCanonical,
        "a coefficient below the modulus r",
        "one that is not",
    )
}

impl From<TooManyEntries> for Error {
    fn from(_: TooManyEntries) -> Self {
        Self::new(
            ErrorKind::Unsupported,
            "fewer than 2^32 entries in a matrix",
            "more",
        )
    }
}

/// Ends the row under construction with each column once and no zero coefficient. A row whose
/// columns rise already is left as it is.
pub(crate) fn end_row_merged(
    matrix: &mut Matrix,
    table: &mut CoefficientTable,
    scratch: &mut Vec<(u32, u32)>,
) -> Result<(), TooManyEntries> {
    let (columns, _) = matrix.open_row();
    if !columns.is_sorted_by(|a, b| a < b) {
        let (columns, coefficients) = matrix.open_row();
        scratch.clear();
        scratch.extend(columns.iter().copied().zip(coefficients.iter().copied()));
        scratch.sort_unstable_by_key(|(column, _)| *column);
        matrix.clear_open_row();
        for run in scratch.chunk_by(|a, b| a.0 == b.0) {
            let (column, mut index) = run[0];
            if run.len() > 1 {
                let values = table.values();
                let mut sum = values[index as usize];
                for (_, index) in &run[1..] {
                    sum += values[*index as usize];
                }
                if sum == Fr::default() {
                    continue;
                }
                index = table.intern(sum);
            }
            matrix.push_entry(column, index);
        }
    }
    matrix.end_row()
}
