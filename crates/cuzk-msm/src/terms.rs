//! Sorting the terms of a sum by what they cost.

use cuzk_field::{CurveField, Scalar};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::bases::Bases;
use crate::digits::Windows;
use crate::pippenger::Selection;

/// What a scalar costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScalarClass {
    /// Nothing.
    Zero,
    /// One addition.
    One,
    /// One subtraction.
    MinusOne,
    /// An addition in each window.
    Full,
}

impl ScalarClass {
    /// The class of a scalar.
    #[inline]
    pub fn of(scalar: &Scalar) -> Self {
        if scalar.is_zero() {
            Self::Zero
        } else if scalar.is_one() {
            Self::One
        } else if *scalar == Scalar::MINUS_ONE {
            Self::MinusOne
        } else {
            Self::Full
        }
    }
}

/// The terms of a sum: bases at infinity and zero scalars are gone.
///
/// A signed index is `2 index + 1` where the point is subtracted, `2 index` otherwise. What is here
/// follows from the witness, so it is wiped.
#[derive(Clone)]
pub(crate) struct Terms {
    /// Signed indices of bases with scalar 1 or -1.
    pub(crate) units: Zeroizing<Vec<u32>>,
    /// Indices of bases with any other scalar.
    pub(crate) full: Zeroizing<Vec<u32>>,
    /// Their scalars' positions.
    pub(crate) scalars: Zeroizing<Vec<u32>>,
}

/// Terms looked at by one task.
const BLOCK: usize = 1 << 14;

impl Terms {
    /// Sorts the terms; `bases.len()` is below 2^31 and fits the selection, checked by the caller.
    pub(crate) fn sort<F: CurveField>(
        bases: &dyn Bases<F>,
        selection: Selection<'_>,
        scalars: &[Scalar],
    ) -> Self {
        let blocks: Vec<Self> = (0..bases.len().div_ceil(BLOCK))
            .into_par_iter()
            .map_init(Self::of_a_block, |terms, block| {
                terms.clear();
                for index in block * BLOCK..bases.len().min((block + 1) * BLOCK) {
                    terms.push(bases, index, selection.scalar_index(index), scalars);
                }
                terms.clone()
            })
            .collect();
        let mut all = Self {
            units: Zeroizing::new(Vec::with_capacity(
                blocks.iter().map(|b| b.units.len()).sum(),
            )),
            full: Zeroizing::new(Vec::with_capacity(
                blocks.iter().map(|b| b.full.len()).sum(),
            )),
            scalars: Zeroizing::new(Vec::with_capacity(
                blocks.iter().map(|b| b.full.len()).sum(),
            )),
        };
        for block in blocks {
            all.units.extend_from_slice(&block.units);
            all.full.extend_from_slice(&block.full);
            all.scalars.extend_from_slice(&block.scalars);
        }
        all
    }

    /// With room for all terms of a block: what a growing list leaves behind is not wiped.
    fn of_a_block() -> Self {
        let list = || Zeroizing::new(Vec::with_capacity(BLOCK));
        Self {
            units: list(),
            full: list(),
            scalars: list(),
        }
    }

    fn clear(&mut self) {
        self.units.clear();
        self.full.clear();
        self.scalars.clear();
    }

    fn push<F: CurveField>(
        &mut self,
        bases: &dyn Bases<F>,
        index: usize,
        scalar_index: usize,
        scalars: &[Scalar],
    ) {
        let class = ScalarClass::of(&scalars[scalar_index]);
        if class == ScalarClass::Zero || bases.is_infinity(index) {
            return;
        }
        let index = index as u32;
        match class {
            ScalarClass::Zero => {}
            ScalarClass::One => self.units.push(index << 1),
            ScalarClass::MinusOne => self.units.push((index << 1) | 1),
            ScalarClass::Full => {
                self.full.push(index);
                self.scalars.push(scalar_index as u32);
            }
        }
    }

    /// The scalars of a range of the full terms, recoded.
    pub(crate) fn recode(
        &self,
        windows: Windows,
        range: std::ops::Range<usize>,
        scalars: &[Scalar],
    ) -> Zeroizing<Vec<[u64; 4]>> {
        Zeroizing::new(
            self.scalars[range]
                .par_iter()
                .map(|index| windows.recode(&scalars[*index as usize]))
                .collect(),
        )
    }
}
