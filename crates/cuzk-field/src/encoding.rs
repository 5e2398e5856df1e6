//! Byte encodings of points: the Zcash encoding (bellman, arkworks, Filecoin) and iden3's
//! little-endian Montgomery form (zkeys).
//!
//! Decoding checks canonical coordinates and the curve equation, always; the subgroup is a separate
//! question ([`crate::Affine::is_in_subgroup`]), since it costs some hundred times as much.

use std::fmt;

use crate::curve::{Affine, CurveField, G1Affine, G2Affine};
use crate::fp::Fp;
use crate::fp2::Fp2;
use crate::host;

/// Why bytes are not a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PointError {
    /// A coordinate is not below p.
    CoordinateNotCanonical,
    /// The coordinates satisfy no curve equation (or, compressed, x is no point's).
    NotOnCurve,
    /// The flag bits contradict the length or the content.
    BadFlags {
        /// The three flag bits, in their place in the first byte.
        flags: u8,
    },
}

impl fmt::Display for PointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CoordinateNotCanonical => f.write_str("a coordinate is not below the modulus p"),
            Self::NotOnCurve => f.write_str("the point is not on the curve"),
            Self::BadFlags { flags } => {
                write!(f, "flag bits 0x{flags:02x} do not fit this encoding")
            }
        }
    }
}

impl std::error::Error for PointError {}

const COMPRESSED: u8 = 0x80;
const INFINITY: u8 = 0x40;
const LARGER_Y: u8 = 0x20;
const FLAGS: u8 = COMPRESSED | INFINITY | LARGER_Y;

/// A point type with its fixed-width encodings.
pub trait PointEncoding: Sized {
    /// Bytes of one compressed point: x and three flag bits.
    const COMPRESSED_BYTES: usize;
    /// Bytes of one uncompressed point, which is also its size in memory.
    const UNCOMPRESSED_BYTES: usize = 2 * Self::COMPRESSED_BYTES;

    /// Reads the Zcash encoding, uncompressed: big-endian, the coefficient of u first.
    /// `bytes.len()` must be [`Self::UNCOMPRESSED_BYTES`].
    fn from_zcash_uncompressed(bytes: &[u8]) -> Result<Self, PointError>;
    /// Reads the Zcash encoding, compressed. `bytes.len()` must be [`Self::COMPRESSED_BYTES`].
    fn from_zcash_compressed(bytes: &[u8]) -> Result<Self, PointError>;
    /// Writes the Zcash encoding, uncompressed.
    fn to_zcash_uncompressed(&self) -> Vec<u8>;
    /// Writes the Zcash encoding, compressed.
    fn to_zcash_compressed(&self) -> Vec<u8>;
    /// Reads iden3's form: little-endian Montgomery coordinates, all zero for infinity.
    /// `bytes.len()` must be [`Self::UNCOMPRESSED_BYTES`].
    fn from_iden3(bytes: &[u8]) -> Result<Self, PointError>;
    /// Writes iden3's form.
    fn to_iden3(&self) -> Vec<u8>;
}

/// A coordinate as consecutive 48-byte words.
trait Coordinate: CurveField {
    const WORDS: usize;
    /// Words in the order c0, c1.
    fn from_words(words: impl Iterator<Item = Option<Fp>>) -> Option<Self>;
    fn words(&self) -> Vec<Fp>;
    fn uncompress(bytes: &[u8]) -> Result<Affine<Self>, blst::BLST_ERROR>;
}

impl Coordinate for Fp {
    const WORDS: usize = 1;
    fn from_words(mut words: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        words.next()?
    }
    fn words(&self) -> Vec<Self> {
        vec![*self]
    }
    fn uncompress(bytes: &[u8]) -> Result<G1Affine, blst::BLST_ERROR> {
        let bytes = bytes
            .try_into()
            .map_err(|_| blst::BLST_ERROR::BLST_BAD_ENCODING)?;
        host::g1_uncompress(bytes)
    }
}

impl Coordinate for Fp2 {
    const WORDS: usize = 2;
    fn from_words(mut words: impl Iterator<Item = Option<Fp>>) -> Option<Self> {
        Some(Self::new(words.next()??, words.next()??))
    }
    fn words(&self) -> Vec<Fp> {
        vec![self.c0, self.c1]
    }
    fn uncompress(bytes: &[u8]) -> Result<G2Affine, blst::BLST_ERROR> {
        let bytes = bytes
            .try_into()
            .map_err(|_| blst::BLST_ERROR::BLST_BAD_ENCODING)?;
        host::g2_uncompress(bytes)
    }
}

fn checked<F: CurveField>(x: Option<F>, y: Option<F>) -> Result<Affine<F>, PointError> {
    let point = Affine {
        x: x.ok_or(PointError::CoordinateNotCanonical)?,
        y: y.ok_or(PointError::CoordinateNotCanonical)?,
    };
    if point.is_on_curve() {
        Ok(point)
    } else {
        Err(PointError::NotOnCurve)
    }
}

impl<F: Coordinate> PointEncoding for Affine<F> {
    const COMPRESSED_BYTES: usize = 48 * F::WORDS;

    fn from_zcash_uncompressed(bytes: &[u8]) -> Result<Self, PointError> {
        let flags = bytes[0] & FLAGS;
        if flags == INFINITY {
            let rest_is_zero = bytes[0] == INFINITY && bytes[1..].iter().all(|b| *b == 0);
            return if rest_is_zero {
                Ok(Self::INFINITY)
            } else {
                Err(PointError::BadFlags { flags })
            };
        }
        if flags != 0 {
            return Err(PointError::BadFlags { flags });
        }
        let (words, _) = bytes.as_chunks::<48>();
        let (x, y) = words.split_at(F::WORDS);
        // Big-endian throughout: the coefficient of u stands first.
        let read = |words: &[[u8; 48]]| F::from_words(words.iter().rev().map(Fp::from_be_bytes));
        let point = checked(read(x), read(y))?;
        if point.is_infinity() {
            // All zero without the flag: what mpcparams files write; not this encoding.
            return Err(PointError::BadFlags { flags });
        }
        Ok(point)
    }

    fn from_zcash_compressed(bytes: &[u8]) -> Result<Self, PointError> {
        let flags = bytes[0] & FLAGS;
        let is_infinity = flags & INFINITY != 0;
        let rest_is_zero = bytes[0] & !FLAGS == 0 && bytes[1..].iter().all(|b| *b == 0);
        if flags & COMPRESSED == 0 || (is_infinity && (flags & LARGER_Y != 0 || !rest_is_zero)) {
            return Err(PointError::BadFlags { flags });
        }
        let mut first = bytes.to_vec();
        first[0] &= !FLAGS;
        let (words, _) = first.as_chunks::<48>();
        if words.iter().any(|word| Fp::from_be_bytes(word).is_none()) {
            return Err(PointError::CoordinateNotCanonical);
        }
        F::uncompress(bytes).map_err(|_| PointError::NotOnCurve)
    }

    fn to_zcash_uncompressed(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::UNCOMPRESSED_BYTES);
        for coordinate in [self.x, self.y] {
            for word in coordinate.words().iter().rev() {
                out.extend_from_slice(&word.to_be_bytes());
            }
        }
        if self.is_infinity() {
            out[0] = INFINITY;
        }
        out
    }

    fn to_zcash_compressed(&self) -> Vec<u8> {
        let mut out = self.to_zcash_uncompressed();
        out.truncate(Self::COMPRESSED_BYTES);
        out[0] |= COMPRESSED;
        if !self.is_infinity() && is_larger(&self.y.words(), &(-self.y).words()) {
            out[0] |= LARGER_Y;
        }
        out
    }

    fn from_iden3(bytes: &[u8]) -> Result<Self, PointError> {
        let (words, _) = bytes.as_chunks::<48>();
        let (x, y) = words.split_at(F::WORDS);
        let read =
            |words: &[[u8; 48]]| F::from_words(words.iter().map(Fp::from_montgomery_le_bytes));
        checked(read(x), read(y))
    }

    fn to_iden3(&self) -> Vec<u8> {
        let words = [self.x.words(), self.y.words()].concat();
        words
            .iter()
            .flat_map(|word| word.to_montgomery_le_bytes())
            .collect()
    }
}

/// Whether `a > b` as integers, the last word most significant.
fn is_larger(a: &[Fp], b: &[Fp]) -> bool {
    for (a, b) in a.iter().zip(b).rev() {
        let (a, b) = (a.canonical_limbs(), b.canonical_limbs());
        if a != b {
            return crate::field::limbs_less_than(&b, &a);
        }
    }
    false
}

const _: () = assert!(
    G1Affine::UNCOMPRESSED_BYTES == size_of::<G1Affine>()
        && G2Affine::UNCOMPRESSED_BYTES == size_of::<G2Affine>()
);
