//! Proofs as bytes: A, B, C in the Zcash encoding.
//!
//! Compressed, 192 bytes, it is the form of bellman, bellperson, Zcash and Filecoin, and of
//! ark-serialize; uncompressed, 384 bytes, of ark-serialize alone. A Filecoin proof is several
//! 192-byte proofs back to back. An identity among the points is refused, as bellman does: no prover
//! makes one.
//!
//! **Proof bytes identify nothing.** Anybody can turn a valid proof into another valid proof of the
//! same statement (scale A by t and B by 1/t, for one). To recognise a statement, use its public
//! values.

use cuzk_field::encoding::PointEncoding as _;
use cuzk_field::{G1Affine, G2Affine};

use crate::detect::{FileKind, or_wrong_format};
use crate::error::{Error, ErrorKind, Place};
use crate::model::Proof;
use crate::options::{LoadOptions, Meter};
use crate::points::{Identity, Point, PointForm, read_point};
use crate::source::ReadAt;

/// Bytes of a compressed proof.
pub const COMPRESSED_BYTES: usize = 2 * G1Affine::COMPRESSED_BYTES + G2Affine::COMPRESSED_BYTES;
/// Bytes of an uncompressed proof.
pub const UNCOMPRESSED_BYTES: usize = 2 * COMPRESSED_BYTES;

/// Reads a proof of 192 or 384 bytes; the first bit says which. The curve equation is checked
/// always, the subgroup under [`LoadOptions::subgroup_check`].
///
/// # Errors
/// [`ErrorKind::BadLayout`] for another length, [`ErrorKind::BadPoint`] or
/// [`ErrorKind::NotCanonical`] for the point at fault.
pub fn read(source: &(impl ReadAt + ?Sized), options: &LoadOptions<'_>) -> Result<Proof, Error> {
    read_at(&source, options).map_err(|error| finish_error(&source, error))
}

/// Reads one or more 192-byte proofs back to back.
///
/// # Errors
/// As [`read`]; the place names the proof.
pub fn read_all(
    source: &(impl ReadAt + ?Sized),
    options: &LoadOptions<'_>,
) -> Result<Vec<Proof>, Error> {
    read_all_at(&source, options).map_err(|error| finish_error(&source, error))
}

/// Names the file, and what it is where it is of another kind.
fn finish_error(source: &dyn ReadAt, error: Error) -> Error {
    or_wrong_format(source, error, &[FileKind::ProofBytes]).in_file(source.name())
}

fn read_at(source: &dyn ReadAt, options: &LoadOptions<'_>) -> Result<Proof, Error> {
    let form = match source.len() {
        len if len == COMPRESSED_BYTES as u64 => PointForm::ZcashCompressed,
        len if len == UNCOMPRESSED_BYTES as u64 => PointForm::ZcashUncompressed,
        len => {
            return Err(Error::new(
                ErrorKind::BadLayout,
                format!("a proof of {COMPRESSED_BYTES} or {UNCOMPRESSED_BYTES} bytes"),
                format!("{len} bytes"),
            ));
        }
    };
    read_one(source, 0, form, options)
}

fn read_all_at(source: &dyn ReadAt, options: &LoadOptions<'_>) -> Result<Vec<Proof>, Error> {
    let width = COMPRESSED_BYTES as u64;
    let count = source.len() / width;
    if count == 0 || !source.len().is_multiple_of(width) {
        return Err(Error::new(
            ErrorKind::BadLayout,
            format!("one or more proofs of {width} bytes"),
            format!("{} bytes", source.len()),
        ));
    }
    (0..count)
        .map(|index| {
            read_one(source, index * width, PointForm::ZcashCompressed, options).map_err(|error| {
                let place = error.place().clone().entry("proof", index);
                Error::new(
                    error.kind(),
                    error.expected().to_owned(),
                    error.found().to_owned(),
                )
                .at(place)
            })
        })
        .collect()
}

fn read_one(
    source: &dyn ReadAt,
    offset: u64,
    form: PointForm,
    options: &LoadOptions<'_>,
) -> Result<Proof, Error> {
    fn point<P: Point>(
        source: &dyn ReadAt,
        at: u64,
        form: PointForm,
        name: &'static str,
        options: &LoadOptions<'_>,
    ) -> Result<P, Error> {
        let meter = Meter::new(options, 0);
        read_point(
            source,
            at,
            form,
            Identity::Refused,
            Place::part(name),
            &meter,
        )
    }
    let (g1, g2) = (
        form.bytes::<G1Affine>() as u64,
        form.bytes::<G2Affine>() as u64,
    );
    Ok(Proof {
        a: point(source, offset, form, "A", options)?,
        b: point(source, offset + g1, form, "B", options)?,
        c: point(source, offset + g1 + g2, form, "C", options)?,
    })
}

/// The 192 bytes of bellman and of ark-serialize compressed.
pub fn to_bytes(proof: &Proof) -> [u8; COMPRESSED_BYTES] {
    encode(proof, PointForm::ZcashCompressed)
}

/// The 384 bytes of ark-serialize uncompressed.
pub fn to_uncompressed_bytes(proof: &Proof) -> [u8; UNCOMPRESSED_BYTES] {
    encode(proof, PointForm::ZcashUncompressed)
}

fn encode<const N: usize>(proof: &Proof, form: PointForm) -> [u8; N] {
    let mut out = [0; N];
    let (a, rest) = out.split_at_mut(form.bytes::<G1Affine>());
    let (b, c) = rest.split_at_mut(form.bytes::<G2Affine>());
    form.encode(&proof.a, a);
    form.encode(&proof.b, b);
    form.encode(&proof.c, c);
    out
}
