//! `kernels/src/witness.cu`: packed witnesses, and what is read from them.

use cuzk_field::Scalar;
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use crate::declare::kernels;
use crate::device_type::{Ptr, PtrMut};
use crate::error::{Error, Result};
use crate::launcher::{Launcher, Shape};
use crate::lengths::exactly;

/// Threads of a block of these kernels.
const THREADS: u32 = 256;

/// Variables a word.
pub const WORD: usize = 32;

kernels! {
    module "witness";
    /// See [`unpack`].
    UNPACK = cuzk_witness_unpack[THREADS](
        bits: Ptr<u64>,
        ranks: Ptr<u32>,
        full: Ptr<Scalar>,
        full_count: u32,
        first: u32,
        out: PtrMut<Scalar>,
        count: u32,
    );
    /// See [`full_variables`].
    FULL_VARIABLES = cuzk_witness_full_variables[THREADS](
        bits: Ptr<u64>,
        ranks: Ptr<u32>,
        variables: PtrMut<u32>,
        full_count: u32,
        words: u32,
    );
}

/// A packed witness on the device.
///
/// `bits[i]` is about variables 32 i to 32 i + 31: its low half says which are one, its high half
/// which are neither zero nor one. Those stand in `full`, canonical, in variable order, and
/// `ranks[i]` is how many of them come before variable 32 i. A kernel reads nothing outside of the
/// arrays, whatever they hold.
#[derive(Clone, Copy, Debug)]
pub struct PackedWitness<'a> {
    /// Two bits a variable, 32 variables a word.
    pub bits: DeviceView<'a, u64>,
    /// One rank a word.
    pub ranks: DeviceView<'a, u32>,
    /// The values that are neither zero nor one.
    pub full: DeviceView<'a, Scalar>,
}

impl PackedWitness<'_> {
    /// Variables there are words for.
    pub(crate) fn capacity(&self) -> usize {
        self.bits.len() * WORD
    }

    /// Compares the lengths and what is needed of them.
    pub(crate) fn check(&self, entry: &'static str, variables: usize) -> Result<()> {
        let words = self.bits.len();
        for (what, fine, expected, found) in [
            ("ranks", self.ranks.len() == words, words, self.ranks.len()),
            (
                "bits",
                self.capacity() >= variables && words <= 1 << 27,
                variables.div_ceil(WORD),
                words,
            ),
            (
                "full",
                self.full.len() <= self.capacity() && u32::try_from(self.full.len()).is_ok(),
                self.capacity(),
                self.full.len(),
            ),
        ] {
            if !fine {
                return Err(Error::Length {
                    entry,
                    what,
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }

    pub(crate) fn full_count(&self) -> u32 {
        self.full.len() as u32
    }
}

/// The word of [`PackedWitness::bits`] about up to [`WORD`] variables with these values.
#[inline]
pub fn word_of(values: &[Scalar]) -> u64 {
    let (mut ones, mut full) = (0_u32, 0_u32);
    for (bit, value) in values.iter().take(WORD).enumerate() {
        let [low, a, b, c] = *value.limbs();
        let is_bit = (low & !1) | a | b | c == 0;
        ones |= u32::from(is_bit && low == 1) << bit;
        full |= u32::from(!is_bit) << bit;
    }
    u64::from(ones) | u64::from(full) << WORD
}

/// The half of such a word that says which variables are one.
#[inline]
pub fn ones_of(word: u64) -> u32 {
    word as u32
}

/// The half that says which are neither zero nor one.
#[inline]
pub fn full_of(word: u64) -> u32 {
    (word >> WORD) as u32
}

/// The places of the bits that are set, rising.
#[inline]
pub fn places(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros() as usize;
        bits &= bits.checked_sub(1)?;
        Some(place)
    })
}

/// `out[i]` = variable `first + i`, canonical.
pub fn unpack(
    launcher: &dyn Launcher,
    stream: &Stream,
    witness: PackedWitness<'_>,
    first: usize,
    out: DeviceViewMut<'_, Scalar>,
) -> Result<()> {
    witness.check(UNPACK.declaration().entry, first.saturating_add(out.len()))?;
    let PackedWitness { bits, ranks, full } = witness;
    let _guards = (
        bits.on(stream)?,
        ranks.on(stream)?,
        full.on(stream)?,
        out.on(stream)?,
    );
    let shape = Shape::covering(out.len(), THREADS);
    // SAFETY: there are words for the last variable, of which the numbers fit 32 bits; a view to
    // write aliases no other; the guards keep the buffers until the stream has passed the launch.
    unsafe {
        UNPACK.launch(
            launcher,
            stream,
            shape,
            (
                (&bits).into(),
                (&ranks).into(),
                (&full).into(),
                witness.full_count(),
                first as u32,
                (&out).into(),
                out.len() as u32,
            ),
        )
    }
}

/// `out[k]` = the variable of the value `full[k]`.
pub fn full_variables(
    launcher: &dyn Launcher,
    stream: &Stream,
    witness: PackedWitness<'_>,
    out: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let entry = FULL_VARIABLES.declaration().entry;
    witness.check(entry, 0)?;
    exactly(entry, "variables", witness.full.len(), out.len())?;
    let PackedWitness { bits, ranks, .. } = witness;
    let _guards = (bits.on(stream)?, ranks.on(stream)?, out.on(stream)?);
    let shape = Shape::covering(bits.len(), THREADS);
    // SAFETY: bits and ranks have as many words as are said; what is written lies below full_count,
    // the length of `out`; a view to write aliases no other; the guards keep the buffers.
    unsafe {
        FULL_VARIABLES.launch(
            launcher,
            stream,
            shape,
            (
                (&bits).into(),
                (&ranks).into(),
                (&out).into(),
                witness.full_count(),
                bits.len() as u32,
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_tells_ones_from_other_values() {
        let values = [
            Scalar::ZERO,
            Scalar::ONE,
            Scalar::from(2),
            Scalar::MINUS_ONE,
            Scalar::ONE,
        ];
        let word = word_of(&values);
        assert_eq!(word, 0b1100 << 32 | 0b10010);
        assert_eq!(places(ones_of(word)).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(places(full_of(word)).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(word_of(&[]), 0);
        let full = word_of(&[Scalar::from(1 << 32); 40]);
        assert_eq!((ones_of(full), full_of(full)), (0, u32::MAX));
        assert!(places(u32::MAX).eq(0..WORD));
    }
}
