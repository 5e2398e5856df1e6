//! What the examples have in common.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use cuzk_bellman::Histogram;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

#[cfg(feature = "sapling")]
pub mod sapling;

/// Runs `work` and gives its result with the time it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// The middle one.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A histogram in per cent.
pub fn shares(histogram: &Histogram) -> String {
    let share = |count: usize| 100.0 * count as f64 / histogram.total().max(1) as f64;
    format!(
        "{:.1} % zero, {:.1} % one, {:.1} % below 2^64, {:.1} % full",
        share(histogram.zeros),
        share(histogram.ones),
        share(histogram.small),
        share(histogram.full)
    )
}

/// Bytes that are the same in every run.
#[derive(Debug)]
pub struct Bytes(ChaCha20Rng);

impl Bytes {
    /// A source for this seed.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha20Rng::seed_from_u64(seed))
    }

    /// The next ones.
    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}
