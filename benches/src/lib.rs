//! Criterion benches of the cuzk crates: `cargo xtask bench NAME`, one file of `benches/` a name.
//!
//! Every bench checks its result once before it is timed, and `cargo xtask test` runs each body
//! once, so none rots. What the benches share is here.
#![forbid(unsafe_code)]

/// A fixed sequence of 64-bit words (SplitMix64; Steele, Lea, Flood, OOPSLA 2014): inputs that are
/// the same on every machine and in every run.
#[derive(Clone, Debug)]
pub struct Words(u64);

impl Words {
    /// The sequence of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// `N` words.
    pub fn limbs<const N: usize>(&mut self) -> [u64; N] {
        std::array::from_fn(|_| self.next_word())
    }

    /// The next word.
    pub const fn next_word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
