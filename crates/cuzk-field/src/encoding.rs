//! Byte encodings of points: the Zcash encoding (bellman, arkworks, Filecoin) and iden3's
//! little-endian Montgomery form (zkeys).
//!
//! Decoding checks canonical coordinates and the curve equation, always; the subgroup is a separate
//! question ([`crate::Affine::is_in_subgroup`]), since it costs a hundred to two hundred times as much.
//! Neither decoding nor the `write_` forms touch the heap.
//!
//! | one thread of a Xeon server, November 2026 | G1 | G2 |
//! |---|---|---|
//! | decode iden3's form | 0.11 µs | 0.27 µs |
//! | decode the Zcash encoding, uncompressed | 0.2 µs | 0.4 µs |
//! | decode the Zcash encoding, compressed (a square root) | 13 µs | 26 µs |
//! | check the subgroup | 39 µs | 45 µs |

use std::fmt;

use crate::curve::{Affine, CurveField, G1Affine, G2Affine};
use crate::field::limbs_less_than;
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
const COMPRESSED_INFINITY: u8 = COMPRESSED | INFINITY;
const COMPRESSED_LARGER_Y: u8 = COMPRESSED | LARGER_Y;

/// A point type with its fixed-width encodings.
///
/// Slices of another length than the method asks for are a fault of the caller and panic.
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
    /// Reads iden3's form: little-endian Montgomery coordinates, all zero for infinity.
    /// `bytes.len()` must be [`Self::UNCOMPRESSED_BYTES`].
    fn from_iden3(bytes: &[u8]) -> Result<Self, PointError>;

    /// Writes the Zcash encoding, uncompressed. `out.len()` must be [`Self::UNCOMPRESSED_BYTES`].
    fn write_zcash_uncompressed(&self, out: &mut [u8]);
    /// Writes the Zcash encoding, compressed. `out.len()` must be [`Self::COMPRESSED_BYTES`].
    fn write_zcash_compressed(&self, out: &mut [u8]);
    /// Writes iden3's form. `out.len()` must be [`Self::UNCOMPRESSED_BYTES`].
    fn write_iden3(&self, out: &mut [u8]);

    /// The Zcash encoding, uncompressed.
    fn to_zcash_uncompressed(&self) -> Vec<u8> {
        let mut out = vec![0; Self::UNCOMPRESSED_BYTES];
        self.write_zcash_uncompressed(&mut out);
        out
    }
    /// The Zcash encoding, compressed.
    fn to_zcash_compressed(&self) -> Vec<u8> {
        let mut out = vec![0; Self::COMPRESSED_BYTES];
        self.write_zcash_compressed(&mut out);
        out
    }
    /// iden3's form.
    fn to_iden3(&self) -> Vec<u8> {
        let mut out = vec![0; Self::UNCOMPRESSED_BYTES];
        self.write_iden3(&mut out);
        out
    }
}

/// How the 48-byte words of a coordinate are written.
#[derive(Clone, Copy)]
enum Form {
    /// Big-endian canonical integers, the coefficient of u first.
    Zcash,
    /// Little-endian Montgomery form, the coefficient of 1 first.
    Iden3,
}

/// A coordinate as one or two 48-byte words.
trait Coordinate: CurveField {
    const BYTES: usize;
    /// `None` unless every word is below p.
    fn decode(bytes: &[u8], form: Form) -> Option<Self>;
    fn encode(&self, out: &mut [u8], form: Form);
    /// Whether `self > other` in the Zcash order: as integers, the coefficient of u first.
    fn is_larger(&self, other: &Self) -> bool;
    /// Decompresses; blst looks at the flags too.
    fn uncompress(bytes: &[u8]) -> Result<Affine<Self>, blst::BLST_ERROR>;
}

/// The one word of a slice of 48 bytes.
#[inline]
fn word(bytes: &[u8]) -> &[u8; 48] {
    bytes.try_into().expect("a word of 48 bytes")
}

impl Coordinate for Fp {
    const BYTES: usize = 48;

    #[inline]
    fn decode(bytes: &[u8], form: Form) -> Option<Self> {
        match form {
            Form::Zcash => Self::from_be_bytes(word(bytes)),
            Form::Iden3 => Self::from_montgomery_le_bytes(word(bytes)),
        }
    }

    fn encode(&self, out: &mut [u8], form: Form) {
        out.copy_from_slice(&match form {
            Form::Zcash => self.to_be_bytes(),
            Form::Iden3 => self.to_montgomery_le_bytes(),
        });
    }

    fn is_larger(&self, other: &Self) -> bool {
        limbs_less_than(&other.canonical_limbs(), &self.canonical_limbs())
    }

    fn uncompress(bytes: &[u8]) -> Result<G1Affine, blst::BLST_ERROR> {
        host::g1_uncompress(word(bytes))
    }
}

impl Coordinate for Fp2 {
    const BYTES: usize = 96;

    #[inline]
    fn decode(bytes: &[u8], form: Form) -> Option<Self> {
        let (first, second) = bytes.split_at(48);
        let (first, second) = (Fp::decode(first, form)?, Fp::decode(second, form)?);
        Some(match form {
            Form::Zcash => Self::new(second, first),
            Form::Iden3 => Self::new(first, second),
        })
    }

    fn encode(&self, out: &mut [u8], form: Form) {
        let (first, second) = out.split_at_mut(48);
        let words = match form {
            Form::Zcash => (self.c1, self.c0),
            Form::Iden3 => (self.c0, self.c1),
        };
        words.0.encode(first, form);
        words.1.encode(second, form);
    }

    fn is_larger(&self, other: &Self) -> bool {
        if self.c1 == other.c1 {
            self.c0.is_larger(&other.c0)
        } else {
            self.c1.is_larger(&other.c1)
        }
    }

    fn uncompress(bytes: &[u8]) -> Result<G2Affine, blst::BLST_ERROR> {
        host::g2_uncompress(bytes.try_into().expect("a compressed point of 96 bytes"))
    }
}

/// x and y in `form`, canonical and on the curve; all zero reads as infinity.
#[inline]
fn decode_affine<F: Coordinate>(bytes: &[u8], form: Form) -> Result<Affine<F>, PointError> {
    assert_eq!(bytes.len(), 2 * F::BYTES, "bytes of an uncompressed point");
    let (x, y) = bytes.split_at(F::BYTES);
    let point = Affine {
        x: F::decode(x, form).ok_or(PointError::CoordinateNotCanonical)?,
        y: F::decode(y, form).ok_or(PointError::CoordinateNotCanonical)?,
    };
    if point.is_on_curve() {
        Ok(point)
    } else {
        Err(PointError::NotOnCurve)
    }
}

/// Whether all bits but the flags are clear.
fn is_zero_but_flags(bytes: &[u8]) -> bool {
    bytes[0] & !FLAGS == 0 && bytes[1..].iter().all(|b| *b == 0)
}

impl<F: Coordinate> PointEncoding for Affine<F> {
    const COMPRESSED_BYTES: usize = F::BYTES;

    #[inline]
    fn from_zcash_uncompressed(bytes: &[u8]) -> Result<Self, PointError> {
        let flags = bytes[0] & FLAGS;
        if flags == INFINITY && is_zero_but_flags(bytes) {
            return Ok(Self::INFINITY);
        }
        if flags != 0 {
            return Err(PointError::BadFlags { flags });
        }
        let point = decode_affine(bytes, Form::Zcash)?;
        if point.is_infinity() {
            // All zero without the flag: what mpcparams files write; not this encoding.
            return Err(PointError::BadFlags { flags });
        }
        Ok(point)
    }

    fn from_zcash_compressed(bytes: &[u8]) -> Result<Self, PointError> {
        let flags = bytes[0] & FLAGS;
        let fits = match flags {
            COMPRESSED | COMPRESSED_LARGER_Y => true,
            COMPRESSED_INFINITY => is_zero_but_flags(bytes),
            _ => false,
        };
        if !fits {
            return Err(PointError::BadFlags { flags });
        }
        F::uncompress(bytes).map_err(|error| match error {
            // The flags fit, so this is all that blst can mean by it.
            blst::BLST_ERROR::BLST_BAD_ENCODING => PointError::CoordinateNotCanonical,
            _ => PointError::NotOnCurve,
        })
    }

    #[inline]
    fn from_iden3(bytes: &[u8]) -> Result<Self, PointError> {
        decode_affine(bytes, Form::Iden3)
    }

    fn write_zcash_uncompressed(&self, out: &mut [u8]) {
        let (x, y) = out.split_at_mut(F::BYTES);
        self.x.encode(x, Form::Zcash);
        self.y.encode(y, Form::Zcash);
        if self.is_infinity() {
            out[0] = INFINITY;
        }
    }

    fn write_zcash_compressed(&self, out: &mut [u8]) {
        self.x.encode(out, Form::Zcash);
        out[0] |= if self.is_infinity() {
            COMPRESSED_INFINITY
        } else if self.y.is_larger(&-self.y) {
            COMPRESSED_LARGER_Y
        } else {
            COMPRESSED
        };
    }

    fn write_iden3(&self, out: &mut [u8]) {
        let (x, y) = out.split_at_mut(F::BYTES);
        self.x.encode(x, Form::Iden3);
        self.y.encode(y, Form::Iden3);
    }
}

const _: () = assert!(
    G1Affine::UNCOMPRESSED_BYTES == size_of::<G1Affine>()
        && G2Affine::UNCOMPRESSED_BYTES == size_of::<G2Affine>()
);
