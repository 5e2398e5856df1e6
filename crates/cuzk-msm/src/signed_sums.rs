//! Many sums of few points each.

use cuzk_field::{Affine, CurveField, Xyzz};
use rayon::prelude::*;

use crate::bases::ByRef;
use crate::pair_tree::{BLOCK_TERMS, PairTree};
use crate::pippenger::Error;

/// The sum of each run of terms. A term is `2 index + 1` where the base is subtracted, `2 index`
/// otherwise; run j is `terms[offsets[j]..offsets[j + 1]]`, and an empty one sums to infinity. One run may
/// hold any share of the terms.
///
/// # Errors
/// [`Error::Runs`] unless the offsets rise from 0 to the number of terms, [`Error::TermOutOfRange`] for a
/// base that is not there.
pub fn signed_sums<F: CurveField>(
    bases: &[Affine<F>],
    terms: &[u32],
    offsets: &[usize],
) -> Result<Vec<Affine<F>>, Error> {
    let bounds = (offsets.first(), offsets.last());
    if bounds != (Some(&0), Some(&terms.len())) || !offsets.is_sorted() {
        return Err(Error::Runs { terms: terms.len() });
    }
    let is_outside = |term: &u32| (term >> 1) as usize >= bases.len();
    if let Some(term) = terms.par_iter().position_first(is_outside) {
        return Err(Error::TermOutOfRange {
            term,
            index: (terms[term] >> 1) as usize,
            bases: bases.len(),
        });
    }
    // Runs are cut at block borders; the pieces of a run that spans blocks are added up below.
    let pieces: Vec<Vec<(usize, Affine<F>)>> = terms
        .par_chunks(BLOCK_TERMS)
        .enumerate()
        .map_init(PairTree::default, |tree, (block, terms)| {
            let start = block * BLOCK_TERMS;
            // The last run that begins at or before the block: empty ones before it are passed over.
            let first = offsets.partition_point(|offset| *offset <= start) - 1;
            let run = std::cell::Cell::new(first);
            let sums = tree.sum_runs(&ByRef(bases), terms, |i| {
                while offsets[run.get() + 1] <= start + i {
                    run.set(run.get() + 1);
                }
                (run.get() - first) as u32
            });
            sums.into_iter()
                .map(|(run, sum)| (first + run as usize, sum))
                .collect()
        })
        .collect();
    let mut sums = vec![Affine::INFINITY; offsets.len() - 1];
    let mut pieces = pieces.into_iter().flatten().peekable();
    while let Some((run, point)) = pieces.next() {
        sums[run] = point;
        if pieces.peek().is_some_and(|(next, _)| *next == run) {
            let mut sum = Xyzz::from(point);
            while let Some((_, point)) = pieces.next_if(|(next, _)| *next == run) {
                sum.add_affine(&point);
            }
            sums[run] = sum.to_affine();
        }
    }
    Ok(sums)
}
