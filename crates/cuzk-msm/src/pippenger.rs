//! The sum of scalar multiples.

use cuzk_field::{Affine, CurveField, Scalar, Xyzz};
use rayon::prelude::*;

use crate::bases::{Bases, ByRef};
use crate::digits::Windows;
use crate::pair_tree::{BLOCK_TERMS, PairTree};
use crate::terms::Terms;

/// Why a sum cannot be computed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bases and scalars do not pair up.
    #[error("{bases} bases cannot be paired with {scalars} scalars")]
    LengthMismatch {
        /// Bases given.
        bases: usize,
        /// Scalars given, or selected.
        scalars: usize,
    },
    /// A selection names a scalar that is not there.
    #[error("base {base} is paired with scalar {index}, but there are {scalars}")]
    SelectionOutOfRange {
        /// The base.
        base: usize,
        /// The scalar it asks for.
        index: usize,
        /// Scalars given.
        scalars: usize,
    },
    /// Runs of terms that are none.
    #[error("the offsets of runs do not rise from 0 to the number of terms, {terms}")]
    Runs {
        /// Terms given.
        terms: usize,
    },
    /// A term names a base that is not there.
    #[error("term {term} names base {index}, but there are {bases}")]
    TermOutOfRange {
        /// The term.
        term: usize,
        /// The base it asks for.
        index: usize,
        /// Bases given.
        bases: usize,
    },
    /// Not as many of something as were planned for.
    #[error("{expected} {what} were planned for, and there are {found}")]
    Count {
        /// Of what.
        what: &'static str,
        /// What the plan says.
        expected: usize,
        /// Given.
        found: usize,
    },
    /// More terms than one call takes.
    #[error("{bases} bases are more than the 2^31 - 1 of one sum")]
    TooManyTerms {
        /// Bases given.
        bases: usize,
    },
}

/// Which scalar goes with which base.
#[derive(Clone, Copy, Debug)]
pub enum Selection<'a> {
    /// Base i goes with scalar i.
    All,
    /// Base i goes with scalar `indices[i]`.
    Indices(&'a [u32]),
}

impl Selection<'_> {
    #[inline]
    pub(crate) fn scalar_index(self, base: usize) -> usize {
        match self {
            Self::All => base,
            Self::Indices(indices) => indices[base] as usize,
        }
    }

    fn check(self, bases: usize, scalars: usize) -> Result<(), Error> {
        let selected = match self {
            Self::All => scalars,
            Self::Indices(indices) => indices.len(),
        };
        if bases != selected {
            return Err(Error::LengthMismatch {
                bases,
                scalars: selected,
            });
        }
        // Signed indices take 32 bits.
        if bases > (u32::MAX >> 1) as usize {
            return Err(Error::TooManyTerms { bases });
        }
        if let Self::Indices(indices) = self
            && let Some(base) = indices.iter().position(|index| *index as usize >= scalars)
        {
            let index = indices[base] as usize;
            return Err(Error::SelectionOutOfRange {
                base,
                index,
                scalars,
            });
        }
        Ok(())
    }
}

/// `sum_i scalars[i] bases[i]`. Bases at infinity are allowed; all must be on the curve and of order r.
///
/// # Errors
/// When the lengths differ.
pub fn msm<F: CurveField>(
    bases: &(impl Bases<F> + ?Sized),
    scalars: &[Scalar],
) -> Result<Xyzz<F>, Error> {
    msm_dyn(&ByRef(bases), Selection::All, scalars)
}

/// `sum_i scalars[selection(i)] bases[i]`.
///
/// # Errors
/// When the selection does not have one valid index for each base.
pub fn msm_selected<F: CurveField>(
    bases: &dyn Bases<F>,
    selection: Selection<'_>,
    scalars: &[Scalar],
) -> Result<Xyzz<F>, Error> {
    msm_dyn(bases, selection, scalars)
}

/// Full terms handled together: bounds the sorted lists of all windows in flight.
const CHUNK_TERMS: usize = 1 << 22;

fn msm_dyn<F: CurveField>(
    bases: &dyn Bases<F>,
    selection: Selection<'_>,
    scalars: &[Scalar],
) -> Result<Xyzz<F>, Error> {
    selection.check(bases.len(), scalars.len())?;
    let terms = Terms::sort(bases, selection, scalars);
    let (mut sum, full) = rayon::join(
        || sum_units(bases, &terms.units),
        || {
            let mut sum = Xyzz::INFINITY;
            for start in (0..terms.full.len()).step_by(CHUNK_TERMS) {
                let end = terms.full.len().min(start + CHUNK_TERMS);
                sum.add_xyzz(&sum_full(bases, &terms, start..end, scalars));
            }
            sum
        },
    );
    sum.add_xyzz(&full);
    Ok(sum)
}

/// The sum of points by signed index.
fn sum_units<F: CurveField>(bases: &dyn Bases<F>, signed_indices: &[u32]) -> Xyzz<F> {
    let partial: Vec<_> = signed_indices
        .par_chunks(BLOCK_TERMS)
        .map_init(PairTree::default, |tree, block| {
            tree.sum_runs(bases, block, |_| 0)
        })
        .collect();
    let mut sum = Xyzz::INFINITY;
    for (_, point) in partial.iter().flatten() {
        sum.add_affine(point);
    }
    sum
}

fn sum_full<F: CurveField>(
    bases: &dyn Bases<F>,
    terms: &Terms,
    range: std::ops::Range<usize>,
    scalars: &[Scalar],
) -> Xyzz<F> {
    if range.is_empty() {
        return Xyzz::INFINITY;
    }
    let windows = Windows::for_terms(range.len());
    let recoded = terms.recode(windows, range.clone(), scalars);
    let indices = &terms.full[range];
    let window_sums: Vec<Xyzz<F>> = (0..windows.count())
        .into_par_iter()
        .map(|window| sum_window(bases, indices, &recoded, windows, window))
        .collect();
    let mut sum = Xyzz::INFINITY;
    for window_sum in window_sums.iter().rev() {
        for _ in 0..windows.width() {
            sum = sum.double();
        }
        sum.add_xyzz(window_sum);
    }
    sum
}

/// sum_i digit_i bases[indices[i]] over one window.
fn sum_window<F: CurveField>(
    bases: &dyn Bases<F>,
    indices: &[u32],
    recoded: &[[u64; 4]],
    windows: Windows,
    window: u32,
) -> Xyzz<F> {
    // A counting sort by bucket; `ends[b]` becomes the end of bucket b's run. Bucket 0 is dropped.
    let mut ends = zeroize::Zeroizing::new(vec![0u32; windows.buckets() + 1]);
    for scalar in recoded {
        ends[windows.digit(scalar, window).bucket as usize] += 1;
    }
    ends[0] = 0;
    let mut total = 0;
    for end in ends.iter_mut() {
        total += std::mem::replace(end, total);
    }
    let mut sorted = zeroize::Zeroizing::new(vec![0u32; total as usize]);
    for (scalar, index) in recoded.iter().zip(indices) {
        let digit = windows.digit(scalar, window);
        if digit.bucket != 0 {
            let place = &mut ends[digit.bucket as usize];
            sorted[*place as usize] = (index << 1) | u32::from(digit.negative);
            *place += 1;
        }
    }
    // Runs are cut at block borders; the pieces of a run that spans blocks are added up below.
    let pieces: Vec<Vec<(u32, Affine<F>)>> = sorted
        .par_chunks(BLOCK_TERMS)
        .enumerate()
        .map_init(PairTree::default, |tree, (block, signed_indices)| {
            let start = (block * BLOCK_TERMS) as u32;
            let first = ends.partition_point(|end| *end <= start) as u32;
            let bucket = std::cell::Cell::new(first);
            tree.sum_runs(bases, signed_indices, |i| {
                while ends[bucket.get() as usize] <= start + i as u32 {
                    bucket.set(bucket.get() + 1);
                }
                bucket.get()
            })
        })
        .collect();
    let mut buckets = vec![Affine::INFINITY; windows.buckets()];
    let mut pieces = pieces.into_iter().flatten().peekable();
    while let Some((bucket, point)) = pieces.next() {
        buckets[bucket as usize - 1] = point;
        if pieces.peek().is_some_and(|(next, _)| *next == bucket) {
            let mut sum = Xyzz::from(point);
            while let Some((_, point)) = pieces.next_if(|(next, _)| *next == bucket) {
                sum.add_affine(&point);
            }
            buckets[bucket as usize - 1] = sum.to_affine();
        }
    }
    PairTree::default().weighted_sum(buckets)
}
