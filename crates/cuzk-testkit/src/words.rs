//! Words that are the same on every machine and in every run.

/// A fixed sequence of 64-bit words (SplitMix64; Steele, Lea, Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Words(u64);

impl Words {
    /// The sequence of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next word.
    pub const fn next_word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// `N` words.
    pub fn limbs<const N: usize>(&mut self) -> [u64; N] {
        std::array::from_fn(|_| self.next_word())
    }

    /// A number below `bound`, 0 when that is 0. Not quite uniform for huge bounds.
    pub const fn below(&mut self, bound: usize) -> usize {
        if bound == 0 {
            return 0;
        }
        (self.next_word() % bound as u64) as usize
    }

    /// One of `choices`.
    ///
    /// # Panics
    /// When there is none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first words of the reference implementation for the seed 1234567.
    #[test]
    fn known_words() {
        let mut words = Words::new(1_234_567);
        assert_eq!(
            words.limbs(),
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }
}
