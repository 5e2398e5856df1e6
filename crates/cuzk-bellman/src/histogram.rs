//! What a witness is made of.

use cuzk_formats::Witness;

/// How many values of a witness are of which size. Zeros cost a prover nothing and ones an addition,
/// so its speed depends on this.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Histogram {
    /// Values that are 0.
    pub zeros: usize,
    /// Values that are 1.
    pub ones: usize,
    /// Values from 2 to 2^64 - 1.
    pub small: usize,
    /// All others.
    pub full: usize,
}

impl Histogram {
    /// Counts the values, the constant ONE included.
    pub fn of(witness: &Witness) -> Self {
        let mut histogram = Self::default();
        for value in witness.values() {
            let [low, rest @ ..] = value.limbs();
            let count = match (low, rest) {
                (0, [0, 0, 0]) => &mut histogram.zeros,
                (1, [0, 0, 0]) => &mut histogram.ones,
                (_, [0, 0, 0]) => &mut histogram.small,
                _ => &mut histogram.full,
            };
            *count += 1;
        }
        histogram
    }

    /// All values.
    pub fn total(&self) -> usize {
        self.zeros + self.ones + self.small + self.full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_field::Scalar;

    #[test]
    fn borders() {
        let values = [
            Scalar::ONE,
            Scalar::ZERO,
            Scalar::from(2),
            Scalar::from(u64::MAX),
            Scalar::from_limbs([0, 1, 0, 0]).unwrap(),
            Scalar::from_limbs([1, 0, 0, 1]).unwrap(),
            Scalar::MINUS_ONE,
        ];
        let histogram = Histogram::of(&Witness::new(values.to_vec()));
        let expected = Histogram {
            zeros: 1,
            ones: 1,
            small: 2,
            full: 3,
        };
        assert_eq!(histogram, expected);
        assert_eq!(histogram.total(), 7);
    }
}
