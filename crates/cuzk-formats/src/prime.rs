//! The primes that iden3 files name their field by.

use cuzk_field::constants::{FP_MODULUS, FR_MODULUS};

use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind};

/// Scalar fields that circom compiles for, as big-endian hexadecimal.
const NAMED: [(&str, &str); 7] = [
    (
        "BN254 (bn128)",
        "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001",
    ),
    (
        "grumpkin",
        "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47",
    ),
    (
        "pallas",
        "40000000000000000000000000000000224698fc094cf91b992d30ed00000001",
    ),
    (
        "vesta",
        "40000000000000000000000000000000224698fc0994a8dd8c46eb2100000001",
    ),
    (
        "secq256r1",
        "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff",
    ),
    (
        "bls12377",
        "12ab655e9a2ca55660b44d1e5c37b00159aa76fed00000010a11800000000001",
    ),
    ("goldilocks", "ffffffff00000001"),
];

/// Little-endian bytes of limbs.
pub(crate) fn le_bytes<const N: usize>(limbs: &[u64; N]) -> Vec<u8> {
    limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect()
}

/// The largest field that is read, to name it in the error.
const FIELD_BYTES_MAX: u32 = 256;

/// A field's size, and the prime of that size.
fn read_prime(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Error> {
    let bytes = cursor.u32_le()?;
    if bytes == 0 || bytes > FIELD_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::OutOfRange,
            format!("a field size of 1 to {FIELD_BYTES_MAX} bytes (BLS12-381 has 32 and 48)"),
            bytes.to_string(),
        ));
    }
    let mut prime = vec![0; bytes as usize];
    cursor.fill(&mut prime)?;
    Ok(prime)
}

/// Reads a field's size and prime, which must be r.
///
/// # Errors
/// [`ErrorKind::WrongCurve`], which names the curve where it is known.
pub(crate) fn expect_scalar_field(cursor: &mut Cursor<'_>) -> Result<(), Error> {
    let bytes = &read_prime(cursor)?;
    if *bytes == le_bytes(&FR_MODULUS) {
        return Ok(());
    }
    Err(wrong_curve("the prime r of BLS12-381", bytes)
        .hint("compile the circuit with --prime bls12381 and make key and witness from that"))
}

/// Reads a field's size and prime, which must be p.
///
/// # Errors
/// As [`expect_scalar_field`].
pub(crate) fn expect_base_field(cursor: &mut Cursor<'_>) -> Result<(), Error> {
    let bytes = &read_prime(cursor)?;
    if *bytes == le_bytes(&FP_MODULUS) {
        return Ok(());
    }
    Err(wrong_curve("the prime q of BLS12-381", bytes)
        .hint("the key must come from a powers-of-tau file made for bls12381"))
}

fn wrong_curve(expected: &'static str, bytes: &[u8]) -> Error {
    let digits: String = bytes
        .iter()
        .rev()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let digits = digits.trim_start_matches('0');
    let named = NAMED.iter().find(|(_, prime)| *prime == digits);
    let found = match named {
        // The base field of BN254 is the scalar field of grumpkin.
        Some(("grumpkin", _)) if expected.contains('q') => "that of BN254 (bn128)".to_owned(),
        Some((name, _)) => format!("that of {name}"),
        None => format!("0x{digits}"),
    };
    Error::new(ErrorKind::WrongCurve, expected, found)
}
