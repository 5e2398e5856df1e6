//! The sums of [`crate::device`] on the CPU: the same plans, scalars, witnesses and base sets, in host memory. Results are equal
//! to the last bit. Nothing waits, so a run gives its sums at once.

use std::marker::PhantomData;
use std::ops::Range;

use cuzk_field::{Affine, CurveField, Fr, Scalar};
use cuzk_kernels::witness::{WORD, full_of, ones_of, places, word_of};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::bases::{Bases, ByRef};
use crate::device::TermCounts;
use crate::pippenger::{Error, Selection, msm_selected};

/// Scalars of one vector in host memory.
#[derive(Clone, Copy, Debug)]
pub enum HostScalars<'a> {
    /// Integers below r.
    Canonical(&'a [Scalar]),
    /// Field elements in Montgomery form.
    Montgomery(&'a [Fr]),
}

impl HostScalars<'_> {
    /// How many scalars.
    pub fn len(&self) -> usize {
        match self {
            Self::Canonical(scalars) => scalars.len(),
            Self::Montgomery(scalars) => scalars.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What `work` makes of them as integers. Those made here are wiped.
    fn as_integers<R>(&self, work: impl FnOnce(&[Scalar]) -> R) -> R {
        match self {
            Self::Canonical(scalars) => work(scalars),
            Self::Montgomery(scalars) => {
                let scalars = scalars.par_iter().map(|scalar| Scalar::from(*scalar));
                work(&Zeroizing::new(scalars.collect::<Vec<_>>()))
            }
        }
    }
}

/// Sums over one list of bases, one for each of several scalar vectors: [`crate::device::MsmPlan`] on the CPU.
#[derive(Clone, Debug)]
pub struct HostMsmPlan<F> {
    bases: usize,
    vectors: usize,
    group: PhantomData<fn(F)>,
}

impl<F: CurveField> HostMsmPlan<F> {
    /// A plan for so many bases and scalar vectors.
    pub fn new(bases: usize, vectors: usize) -> Self {
        Self {
            bases,
            vectors,
            group: PhantomData,
        }
    }

    /// Computes `sum_i scalars[v][i] bases[i]` for each v. `bases` are points of the group of order r, equal, opposite and
    /// infinite ones among them.
    ///
    /// # Errors
    /// When bases, vectors or scalars are not as many as planned; for 2^31 bases and more.
    pub fn run(
        &self,
        bases: &(impl Bases<F> + ?Sized),
        scalars: &[HostScalars<'_>],
    ) -> Result<Vec<Affine<F>>, Error> {
        let bases: &dyn Bases<F> = &ByRef(bases);
        check("bases", self.bases, bases.len())?;
        check("scalar vectors", self.vectors, scalars.len())?;
        for vector in scalars {
            check("scalars", self.bases, vector.len())?;
        }
        let sum = |vector: &HostScalars<'_>| {
            let sum = vector.as_integers(|scalars| msm_selected(bases, Selection::All, scalars));
            Ok(sum?.to_affine())
        };
        scalars.iter().map(sum).collect()
    }
}

/// A packed witness in host memory, laid out as [`PackedWitness`](crate::device::PackedWitness) is on the device. Wiped when
/// dropped.
#[derive(Clone)]
pub struct HostWitness {
    bits: Zeroizing<Vec<u64>>,
    ranks: Zeroizing<Vec<u32>>,
    full: Zeroizing<Vec<Scalar>>,
}

impl std::fmt::Debug for HostWitness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostWitness")
            .field("words", &self.bits.len())
            .field("full", &self.full.len())
            .finish_non_exhaustive()
    }
}

impl HostWitness {
    /// Packs the values of all variables.
    ///
    /// # Errors
    /// [`Error::TooManyTerms`] for 2^31 variables and more.
    pub fn pack(values: HostScalars<'_>) -> Result<Self, Error> {
        check_terms(values.len())?;
        Ok(values.as_integers(Self::of_integers))
    }

    fn of_integers(values: &[Scalar]) -> Self {
        let bits: Vec<u64> = values.par_chunks(WORD).map(word_of).collect();
        let mut rank = 0;
        let counted = bits.iter().map(|word| {
            let before = rank;
            rank += full_of(*word).count_ones();
            before
        });
        let ranks = counted.collect();
        // Of its final size at once: what a growing list leaves behind is not wiped.
        let mut full = Zeroizing::new(Vec::with_capacity(rank as usize));
        for (word, values) in bits.iter().zip(values.chunks(WORD)) {
            full.extend(places(full_of(*word)).map(|place| values[place]));
        }
        Self {
            bits: Zeroizing::new(bits),
            ranks: Zeroizing::new(ranks),
            full,
        }
    }

    /// Two bits a variable, 32 variables a word: the low half says which are one, the high half which are neither zero nor one.
    pub fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// Values before each word that are neither zero nor one.
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// The values that are neither zero nor one.
    pub fn full(&self) -> &[Scalar] {
        &self.full
    }

    /// A variable's value; that of one behind the last is zero.
    fn at(&self, variable: usize) -> Scalar {
        let Some(word) = self.bits.get(variable / WORD) else {
            return Scalar::ZERO;
        };
        let (place, full) = (variable % WORD, full_of(*word));
        if full >> place & 1 == 1 {
            let before = (full & ((1 << place) - 1)).count_ones();
            return self.full[(self.ranks[variable / WORD] + before) as usize];
        }
        Scalar::from(u64::from(ones_of(*word) >> place & 1))
    }
}

/// Which variables have a base in a set.
#[derive(Clone, Debug)]
pub enum HostMembers<'a> {
    /// These.
    Range(Range<usize>),
    /// Variable 32 i + k where bit k of word i is set; as many words as the witness has.
    Bitmap(&'a [u32]),
}

impl HostMembers<'_> {
    /// Which variables of a word of the witness are members.
    fn word(&self, word: usize) -> u32 {
        match self {
            Self::Range(range) => below(range.end, word) & !below(range.start, word),
            Self::Bitmap(words) => words.get(word).copied().unwrap_or(0),
        }
    }
}

/// The variables of a word that are below `end`.
fn below(end: usize, word: usize) -> u32 {
    let bits = end.saturating_sub(word * WORD).min(WORD);
    ((1_u64 << bits) - 1) as u32
}

/// A list of bases, one for each member, in the order of the variables.
#[derive(Clone, Debug)]
pub struct HostBaseSet<'a> {
    /// The variables with a base.
    pub members: HostMembers<'a>,
    /// Where the list begins in the array of bases it is part of.
    pub first_base: u32,
}

impl HostBaseSet<'_> {
    fn count(&self, witness: &HostWitness) -> TermCounts {
        let mut counts = TermCounts::default();
        for (i, word) in witness.bits.iter().enumerate() {
            let members = self.members.word(i);
            counts.ones += (ones_of(*word) & members).count_ones() as usize;
            counts.rest += (full_of(*word) & members).count_ones() as usize;
        }
        counts
    }

    /// Holds the members against the words of a witness.
    fn check(&self, words: usize) -> Result<(), Error> {
        match &self.members {
            HostMembers::Range(range) if range.start > range.end => {
                check("variables of a range at least", range.start, range.end)
            }
            HostMembers::Range(range) if range.end > words * WORD => {
                check("variables in words of the witness", words * WORD, range.end)
            }
            HostMembers::Range(_) => Ok(()),
            HostMembers::Bitmap(bitmap) => check("words of a set's bitmap", words, bitmap.len()),
        }
    }
}

/// How many terms of each set are ones, and how many neither zeros nor ones: [`crate::device::count_terms`] on the CPU.
/// Members beyond the witness count as zeros.
pub fn count_terms_on_host(witness: &HostWitness, sets: &[HostBaseSet<'_>]) -> Vec<TermCounts> {
    sets.par_iter().map(|set| set.count(witness)).collect()
}

/// Sums over mostly sparse witnesses for several base sets, which are parts of one array of bases:
/// [`crate::device::SparsePlan`] on the CPU.
#[derive(Clone, Debug)]
pub struct HostSparsePlan<F> {
    variables: usize,
    counts: Vec<TermCounts>,
    group: PhantomData<fn(F)>,
}

impl<F: CurveField> HostSparsePlan<F> {
    /// A plan for a witness of so many variables and sets with these terms.
    pub fn new(variables: usize, counts: &[TermCounts]) -> Self {
        Self {
            variables,
            counts: counts.to_vec(),
            group: PhantomData,
        }
    }

    /// Computes, for each set, the sum over its members of their values times their bases.
    ///
    /// # Errors
    /// When sets or words of the witness are not as many as planned, a set has other terms than were counted or members beyond
    /// the witness, a bitmap is not of as many words as the witness, or a member has no base.
    pub fn run(
        &self,
        bases: &(impl Bases<F> + ?Sized),
        witness: &HostWitness,
        sets: &[HostBaseSet<'_>],
    ) -> Result<Vec<Affine<F>>, Error> {
        let bases: &dyn Bases<F> = &ByRef(bases);
        check("sets", self.counts.len(), sets.len())?;
        let words = self.variables.div_ceil(WORD);
        check("words of the witness", words, witness.bits.len())?;
        // All that is said is checked before anything is computed, or memory taken for it.
        for (set, planned) in sets.iter().zip(&self.counts) {
            set.check(words)?;
            let found = set.count(witness);
            check("ones of a set", planned.ones, found.ones)?;
            let what = "values of a set that are neither zero nor one";
            check(what, planned.rest, found.rest)?;
        }
        let sum = |(set, counts): (&HostBaseSet<'_>, &TermCounts)| {
            let terms = counts.ones + counts.rest;
            let mut indices = Zeroizing::new(Vec::with_capacity(terms));
            let mut scalars = Zeroizing::new(Vec::with_capacity(terms));
            let members = (0..words).flat_map(|word| {
                places(set.members.word(word)).map(move |place| word * WORD + place)
            });
            for (base, variable) in (set.first_base as usize..).zip(members) {
                if base >= bases.len() {
                    return Err(Error::TermOutOfRange {
                        term: variable,
                        index: base,
                        bases: bases.len(),
                    });
                }
                let value = witness.at(variable);
                if !value.is_zero() {
                    check_terms(base)?;
                    indices.push(base as u32);
                    scalars.push(value);
                }
            }
            let picked = Picked {
                bases,
                indices: &indices,
            };
            Ok(msm_selected(&picked, Selection::All, &scalars)?.to_affine())
        };
        sets.iter().zip(&self.counts).map(sum).collect()
    }
}

/// Some of a list of bases.
struct Picked<'a, F: CurveField> {
    bases: &'a dyn Bases<F>,
    indices: &'a [u32],
}

impl<F: CurveField> Bases<F> for Picked<'_, F> {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn get(&self, index: usize) -> Affine<F> {
        self.bases.get(self.indices[index] as usize)
    }

    fn is_infinity(&self, index: usize) -> bool {
        self.bases.is_infinity(self.indices[index] as usize)
    }
}

fn check(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Count {
        what,
        expected,
        found,
    })
}

fn check_terms(terms: usize) -> Result<(), Error> {
    match terms <= (u32::MAX >> 1) as usize {
        true => Ok(()),
        false => Err(Error::TooManyTerms { bases: terms }),
    }
}
