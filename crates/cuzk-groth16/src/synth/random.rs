//! Reproducible randomness from a seed.

use cuzk_field::{Fr, Scalar};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// A stream of random values; the same for the same seed and purpose.
pub(super) struct Random(ChaCha20Rng);

impl Random {
    /// `purpose` keeps the streams of one seed apart.
    pub(super) fn new(seed: u64, purpose: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        rng.set_stream(purpose);
        Self(rng)
    }

    /// Uniform below `bound`, which is not zero (the bias of 2^-64 `bound` does not matter here).
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    /// True with probability `per_mille` / 1000.
    pub(super) fn chance(&mut self, per_mille: usize) -> bool {
        self.below(1000) < per_mille
    }

    /// A uniform field element, never 0, 1 or -1.
    pub(super) fn full_size(&mut self) -> Fr {
        loop {
            let limbs = std::array::from_fn(|i| self.0.next_u64() >> u32::from(i == 3));
            match Scalar::from_limbs(limbs) {
                Some(scalar) if scalar.limbs()[3] != 0 && scalar.limbs()[3] != u64::MAX >> 1 => {
                    return scalar.into();
                }
                _ => {}
            }
        }
    }
}
