//! The blinding factors r and s.

use cuzk_field::Scalar;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::Error;

/// r and s, wiped when dropped and never printed.
///
/// They are uniform in the field, drawn from the operating system by rejection, and new for every
/// proof. Only feature `caller-blinding` lets a caller fix them. The multiplications by them are not
/// constant time.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Blinding {
    pub(crate) r: Scalar,
    pub(crate) s: Scalar,
}

impl Blinding {
    /// Fresh factors from the operating system.
    ///
    /// # Errors
    /// [`Error::NoEntropy`] when it has none; there is no fallback.
    pub fn random() -> Result<Self, Error> {
        Self::draw(|bytes| getrandom::fill(bytes).map_err(|error| error.to_string()))
    }

    /// r and s as given. The proof is zero-knowledge only if both are uniform, secret and used once.
    #[cfg(feature = "caller-blinding")]
    pub fn from_caller(r: Scalar, s: Scalar) -> Self {
        Self { r, s }
    }

    /// Factors from a source of random bytes.
    fn draw(mut fill: impl FnMut(&mut [u8]) -> Result<(), String>) -> Result<Self, Error> {
        let mut blinding = Self {
            r: Scalar::ZERO,
            s: Scalar::ZERO,
        };
        for factor in [&mut blinding.r, &mut blinding.s] {
            let mut bytes = Zeroizing::new([0; 32]);
            loop {
                fill(bytes.as_mut()).map_err(|what| Error::NoEntropy { what })?;
                // 255 random bits are below r with probability 0.906.
                bytes[31] &= 0x7f;
                if let Some(scalar) = Scalar::from_le_bytes(&bytes) {
                    *factor = scalar;
                    break;
                }
            }
        }
        Ok(blinding)
    }
}

impl std::fmt::Debug for Blinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Blinding(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// r / 2^248 = 0x73 = 115.9: top bytes 0 to 0x73, all but the last equally likely.
    #[test]
    fn factors_are_uniform_below_r() {
        const DRAWS: usize = 50_000;
        let mut histogram = [0usize; 256];
        for _ in 0..DRAWS {
            let blinding = Blinding::random().unwrap();
            for scalar in [blinding.r, blinding.s] {
                histogram[scalar.to_le_bytes()[31] as usize] += 1;
            }
        }
        let total = (2 * DRAWS) as f64;
        let expected = total / 115.93;
        let above_248_bits: usize = histogram[1..].iter().sum();
        assert!(
            above_248_bits as f64 > total * 0.98,
            "r is drawn from 248 bits"
        );
        for (byte, count) in histogram.iter().enumerate() {
            match byte {
                // Six standard deviations of a binomial.
                0..=0x72 => assert!(
                    (*count as f64 - expected).abs() < 6.0 * expected.sqrt(),
                    "top byte {byte:#x} came {count} times, expected {expected}"
                ),
                0x73 => {}
                _ => assert_eq!(*count, 0, "values above r"),
            }
        }
    }

    #[test]
    fn values_above_r_are_drawn_again() {
        let mut draws = 0;
        let blinding = Blinding::draw(|bytes| {
            draws += 1;
            bytes.fill(if draws == 1 { 0xff } else { draws });
            Ok(())
        })
        .unwrap();
        assert_eq!(draws, 3);
        assert_eq!(blinding.r.to_le_bytes(), [2; 32]);
        assert_eq!(blinding.s.to_le_bytes(), [3; 32]);
    }

    #[test]
    fn without_entropy_there_is_no_proof() {
        let error = Blinding::draw(|_| Err("no device".into())).unwrap_err();
        assert_eq!(
            error,
            Error::NoEntropy {
                what: "no device".into()
            }
        );
    }

    #[test]
    fn debug_hides_the_values() {
        let blinding = Blinding::random().unwrap();
        assert_eq!(format!("{blinding:?}"), "Blinding(..)");
        assert_eq!(format!("{:?}", blinding.r), "Scalar(..)");
    }
}
