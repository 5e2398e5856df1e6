//! Field elements as decimal strings.

use cuzk_field::{Fp, Scalar};

use super::text::Parser;
use crate::error::{Error, ErrorKind};

/// 10^19, the largest power of ten in 64 bits.
const CHUNK: u64 = 10_000_000_000_000_000_000;
const CHUNK_DIGITS: usize = 19;

/// Why a string is no element.
enum Fault {
    NotDecimal,
    TooLarge,
}

/// The integer that `digits` write, if it fits `N` limbs.
fn parse<const N: usize>(digits: &str) -> Result<[u64; N], Fault> {
    let is_decimal = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_decimal || (digits.len() > 1 && digits.starts_with('0')) {
        return Err(Fault::NotDecimal);
    }
    // 64 N bits have at most this many digits; longer strings are not worth the arithmetic.
    if digits.len() > N * 64 * 302 / 1000 + 1 {
        return Err(Fault::TooLarge);
    }
    let mut limbs = [0u64; N];
    for digit in digits.bytes() {
        let mut carry = u128::from(digit - b'0');
        for limb in &mut limbs {
            carry += u128::from(*limb) * 10;
            *limb = carry as u64;
            carry >>= 64;
        }
        if carry != 0 {
            return Err(Fault::TooLarge);
        }
    }
    Ok(limbs)
}

/// Appends the digits of an integer.
pub(super) fn push<const N: usize>(out: &mut String, mut limbs: [u64; N]) {
    use std::fmt::Write as _;
    let mut chunks = Vec::with_capacity(N + 1);
    while chunks.is_empty() || limbs.iter().any(|limb| *limb != 0) {
        let mut rest = 0u128;
        for limb in limbs.iter_mut().rev() {
            rest = (rest << 64) | u128::from(*limb);
            *limb = (rest / u128::from(CHUNK)) as u64;
            rest %= u128::from(CHUNK);
        }
        chunks.push(rest as u64);
    }
    let mut width = 0;
    for chunk in chunks.iter().rev() {
        // Writing to a string does not fail.
        let _ = write!(out, "{chunk:0width$}");
        width = CHUNK_DIGITS;
    }
}

/// Reads a string of digits and makes an element of it.
fn element<const N: usize, T>(
    parser: &mut Parser<'_>,
    modulus: &'static str,
    make: impl FnOnce([u64; N]) -> Option<T>,
) -> Result<T, Error> {
    parser.peek();
    let place = parser.place();
    let digits = parser.plain_string("a decimal number in quotes")?;
    let fault = match parse(digits).map(make) {
        Ok(Some(value)) => return Ok(value),
        Err(Fault::NotDecimal) => Fault::NotDecimal,
        Ok(None) | Err(Fault::TooLarge) => Fault::TooLarge,
    };
    Err(match fault {
        Fault::NotDecimal => {
            let shown: String = digits.chars().take(24).collect();
            let error = Error::new(
                ErrorKind::BadText,
                "decimal digits only, without a leading zero",
                format!("\"{}\"", shown.escape_default()),
            );
            if digits.starts_with("0x") || digits.starts_with("0X") {
                error.hint("hexadecimal is not accepted: write it in decimal")
            } else {
                error
            }
        }
        Fault::TooLarge => Error::new(
            ErrorKind::NotCanonical,
            format!("a number below {modulus}"),
            format!("a larger one of {} digits", digits.len()),
        ),
    }
    .at(place))
}

/// A coordinate.
pub(super) fn read_fp(parser: &mut Parser<'_>) -> Result<Fp, Error> {
    element(parser, "the modulus p", Fp::from_canonical_limbs)
}

/// A public value.
pub(super) fn read_scalar(parser: &mut Parser<'_>) -> Result<Scalar, Error> {
    element(parser, "the modulus r", Scalar::from_limbs)
}
