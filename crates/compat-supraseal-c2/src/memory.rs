//! The caller's memory: the one module that reads and writes it.
//!
//! Like the crate that this one stands for, its functions are safe to call by their types and rely on
//! the caller for what the types cannot say: pointers are valid for the lengths given and nobody writes
//! there meanwhile; `S` is a field element of 32 bytes in Montgomery form, little-endian words; `PR` is a
//! proof of three affine points of 96, 192 and 96 bytes in Montgomery form, whose memory need not be
//! initialised. What can be checked is: sizes of types, null pointers, lengths of slices, every element
//! below r, popcounts.
#![allow(unsafe_code)]

use cuzk_field::encoding::PointEncoding as _;
use cuzk_field::{Fr, G1Affine, G2Affine};
use cuzk_formats::Proof;
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::error::Error;

/// A field element as the caller has it.
pub(crate) type Bytes = [u8; 32];

/// Bytes of a proof as the caller has it.
pub(crate) const PROOF_BYTES: usize =
    2 * G1Affine::UNCOMPRESSED_BYTES + G2Affine::UNCOMPRESSED_BYTES;

/// Writes a proof over memory that need not be initialised. `size_of::<PR>()` is [`PROOF_BYTES`].
pub(crate) fn write<PR>(slot: &mut PR, proof: &Proof) {
    let mut bytes = proof.a.to_iden3();
    bytes.extend(proof.b.to_iden3());
    bytes.extend(proof.c.to_iden3());
    assert_eq!(bytes.len(), size_of::<PR>());
    // SAFETY: the slot is exclusively ours and as large as the bytes, which hold three points as the
    // caller promises that `PR` does.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), std::ptr::from_mut(slot).cast(), bytes.len());
    }
}

/// Elements in the caller's memory.
pub(crate) fn elements<'a, S>(
    part: &'static str,
    data: *const S,
    len: usize,
) -> Result<&'a [Bytes], Error> {
    if size_of::<S>() != size_of::<Bytes>() {
        let found = format!("{}", size_of::<S>());
        return Err(argument("bytes of a field element", "32".into(), found));
    }
    list(part, data.cast(), len)
}

/// Elements copied, each found to be canonical.
pub(crate) fn copied(
    circuit: usize,
    part: &'static str,
    elements: &[Bytes],
) -> Result<Zeroizing<Vec<Fr>>, Error> {
    // With room for a power of two, as the transforms want them, so that rows are not copied again.
    let mut copy = Zeroizing::new(Vec::with_capacity(elements.len().next_power_of_two()));
    copy.par_extend(
        elements
            .par_iter()
            .map(|bytes| Fr::from_montgomery_le_bytes(bytes).unwrap_or_default()),
    );
    // Zero stands for what is not canonical: looked for only where there is one.
    let faulty = copy
        .par_iter()
        .zip(elements)
        .position_first(|(copy, bytes)| *copy == Fr::default() && *bytes != [0; 32]);
    match faulty {
        Some(index) => Err(Error::NotCanonical {
            circuit,
            part,
            index,
        }),
        None => Ok(copy),
    }
}

/// A list in the caller's memory.
pub(crate) fn list<'a, T>(
    what: &'static str,
    data: *const T,
    len: usize,
) -> Result<&'a [T], Error> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() || !data.is_aligned() {
        return Err(argument(
            what,
            "an aligned pointer".into(),
            format!("{data:p}"),
        ));
    }
    let bytes = len.checked_mul(size_of::<T>());
    if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        let expected = "a length that memory has room for".into();
        return Err(argument(what, expected, format!("{len}")));
    }
    // SAFETY: neither null nor misaligned, and no longer than a slice may be; the caller promises that it is
    // valid for `len` values and not written meanwhile. Every bit pattern is a `T`: bytes or words.
    Ok(unsafe { std::slice::from_raw_parts(data, len) })
}

/// Words of a density as bytes.
pub(crate) fn words<D>(words: &[D]) -> &[u8] {
    // SAFETY: the caller promises plain words, which have no padding; bytes have no alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

pub(crate) fn at_least(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if found >= expected {
        return Ok(());
    }
    Err(argument(
        what,
        format!("at least {expected}"),
        format!("{found}"),
    ))
}

pub(crate) fn argument(what: &'static str, expected: String, found: String) -> Error {
    Error::Argument {
        what,
        expected,
        found,
    }
}
