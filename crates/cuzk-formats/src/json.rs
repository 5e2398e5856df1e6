//! The JSON files of snarkjs: `verification_key.json`, `proof.json` and `public.json`.
//!
//! Numbers are decimal strings and must be below their modulus: no signs, exponents, hexadecimal or
//! leading zeros. A G1 point is `[x, y, "1"]`, a G2 point `[[x0, x1], [y0, y1], ["1", "0"]]`; the
//! third coordinate is 0 for infinity, and any other one means Jacobian coordinates. Every point
//! must be on the curve; the subgroup is checked on request, and always by `verify`.
//! `vk_alphabeta_12` is never trusted: readers skip it, [`verification_key_to_string`] computes it.
//! Members of other names are skipped, known ones may not come twice.
//!
//! The texts written are byte for byte those of snarkjs 0.7.6.

mod decimal;
mod kind;
mod pairing;
mod point;
mod text;
mod write;

use cuzk_field::Scalar;

use crate::checks::unbound_inputs;
use crate::detect::{FileKind, or_wrong_format};
use crate::error::{Error, ErrorKind, Note, NoteKind, Place};
use crate::model::{Proof, VerifyingKey};
use crate::options::LoadOptions;
use crate::points::Identity;
use crate::source::ReadAt;
pub use kind::kind_of;
use text::Parser;
use write::Writer;

/// The largest text that is read. The key of the most public values that are accepted has 150 MB.
const TEXT_BYTES_MAX: u64 = 256 << 20;

/// The most public values that are read or written. It keeps memory within a small multiple of the
/// text, since a short text can write many identities or zeros.
pub const PUBLIC_VALUES_MAX: usize = 1 << 19;

/// Reads `verification_key.json`.
///
/// # Errors
/// [`ErrorKind::BadText`] for other JSON or none, [`ErrorKind::WrongFormat`] for one of the other
/// files, [`ErrorKind::WrongCurve`], [`ErrorKind::Unsupported`] for another protocol,
/// [`ErrorKind::NotCanonical`] and [`ErrorKind::BadPoint`] for its points, [`ErrorKind::BadLayout`]
/// where `IC` disagrees with `nPublic`. An identity in `IC` is a note.
pub fn read_verification_key(
    source: &(impl ReadAt + ?Sized),
    options: &LoadOptions<'_>,
) -> Result<(VerifyingKey, Vec<Note>), Error> {
    read(&source, FileKind::VerificationKeyJson, |text| {
        key_from_text(text, options)
    })
}

/// Reads `proof.json`. An identity among its points is refused: no prover makes one.
///
/// # Errors
/// As [`read_verification_key`].
pub fn read_proof(
    source: &(impl ReadAt + ?Sized),
    options: &LoadOptions<'_>,
) -> Result<(Proof, Vec<Note>), Error> {
    read(&source, FileKind::ProofJson, |text| {
        proof_from_text(text, options)
    })
}

/// Reads `public.json`, an array. `null` is an empty one, with a note: rapidsnark writes it so.
///
/// # Errors
/// [`ErrorKind::BadText`], [`ErrorKind::WrongFormat`], and [`ErrorKind::NotCanonical`] for a value
/// that is not below r.
pub fn read_public(
    source: &(impl ReadAt + ?Sized),
    options: &LoadOptions<'_>,
) -> Result<(Vec<Scalar>, Vec<Note>), Error> {
    read(&source, FileKind::PublicJson, |text| {
        public_from_text(text, options)
    })
}

/// Reads the whole text, and names the file in errors.
fn read<T>(
    source: &dyn ReadAt,
    wanted: FileKind,
    parse: impl FnOnce(&[u8]) -> Result<T, Error>,
) -> Result<T, Error> {
    let load = || {
        let len = source.len();
        if len > TEXT_BYTES_MAX {
            return Err(Error::new(
                ErrorKind::WrongFormat,
                format!("a JSON text of at most {TEXT_BYTES_MAX} bytes"),
                format!("{len} bytes"),
            ));
        }
        // Below the bound, hence within usize.
        let mut text = Vec::new();
        text.try_reserve_exact(len as usize)
            .map_err(|_| Error::out_of_memory(len))?;
        text.resize(len as usize, 0);
        source.read_exact_at(0, &mut text)?;
        parse(&text)
    };
    load().map_err(|error| or_wrong_format(source, error, &[wanted]).in_file(source.name()))
}

fn missing(name: &'static str) -> Error {
    Error::new(
        ErrorKind::BadText,
        format!("a member \"{name}\""),
        "none of that name",
    )
}

fn key_from_text(
    text: &[u8],
    options: &LoadOptions<'_>,
) -> Result<(VerifyingKey, Vec<Note>), Error> {
    let mut notes = Vec::new();
    kind::check(text, FileKind::VerificationKeyJson, options, &mut notes)?;
    let (mut num_public, mut alpha, mut beta, mut gamma, mut delta) =
        (None, None, None, None, None);
    let mut ic = None;
    let parser = &mut Parser::new(text)?;
    parser.object(|parser, name| {
        let vital = Identity::Refused;
        match name {
            "nPublic" => {
                parser.enter("nPublic");
                num_public = Some(parser.small_integer()?);
            }
            "vk_alpha_1" => {
                parser.enter("vk_alpha_1");
                alpha = Some(point::read(parser, options, vital)?);
            }
            "vk_beta_2" => {
                parser.enter("vk_beta_2");
                beta = Some(point::read(parser, options, vital)?);
            }
            "vk_gamma_2" => {
                parser.enter("vk_gamma_2");
                gamma = Some(point::read(parser, options, vital)?);
            }
            "vk_delta_2" => {
                parser.enter("vk_delta_2");
                delta = Some(point::read(parser, options, vital)?);
            }
            "IC" => {
                parser.enter("IC");
                let mut points = Vec::new();
                parser.array("an array of G1 points", |parser, index| {
                    parser.entry("point", index);
                    check_count(parser, index, PUBLIC_VALUES_MAX as u64 + 1)?;
                    points.push(point::read(parser, options, Identity::Allowed)?);
                    Ok(())
                })?;
                ic = Some(points);
            }
            _ => parser.skip_value()?,
        }
        parser.enter("");
        Ok(())
    })?;
    let key = VerifyingKey {
        alpha_g1: alpha.ok_or_else(|| missing("vk_alpha_1"))?,
        beta_g2: beta.ok_or_else(|| missing("vk_beta_2"))?,
        gamma_g2: gamma.ok_or_else(|| missing("vk_gamma_2"))?,
        delta_g2: delta.ok_or_else(|| missing("vk_delta_2"))?,
        gamma_abc_g1: ic.ok_or_else(|| missing("IC"))?,
    };
    let num_public = num_public.ok_or_else(|| missing("nPublic"))?;
    if num_public.checked_add(1) != Some(key.gamma_abc_g1.len() as u64) {
        return Err(Error::new(
            ErrorKind::BadLayout,
            format!("one point more than nPublic = {num_public}"),
            format!("{} points", key.gamma_abc_g1.len()),
        )
        .at(Place::part("IC")));
    }
    if let Some(note) = unbound_inputs(&key.gamma_abc_g1, Place::part("IC")) {
        options.note(&mut notes, note)?;
    }
    Ok((key, notes))
}

fn proof_from_text(text: &[u8], options: &LoadOptions<'_>) -> Result<(Proof, Vec<Note>), Error> {
    let mut notes = Vec::new();
    kind::check(text, FileKind::ProofJson, options, &mut notes)?;
    let (mut a, mut b, mut c) = (None, None, None);
    let parser = &mut Parser::new(text)?;
    parser.object(|parser, name| {
        match name {
            "pi_a" => {
                parser.enter("pi_a");
                a = Some(point::read(parser, options, Identity::Refused)?);
            }
            "pi_b" => {
                parser.enter("pi_b");
                b = Some(point::read(parser, options, Identity::Refused)?);
            }
            "pi_c" => {
                parser.enter("pi_c");
                c = Some(point::read(parser, options, Identity::Refused)?);
            }
            _ => parser.skip_value()?,
        }
        parser.enter("");
        Ok(())
    })?;
    let proof = Proof {
        a: a.ok_or_else(|| missing("pi_a"))?,
        b: b.ok_or_else(|| missing("pi_b"))?,
        c: c.ok_or_else(|| missing("pi_c"))?,
    };
    Ok((proof, notes))
}

fn public_from_text(
    text: &[u8],
    options: &LoadOptions<'_>,
) -> Result<(Vec<Scalar>, Vec<Note>), Error> {
    let mut notes = Vec::new();
    kind::check(text, FileKind::PublicJson, options, &mut notes)?;
    let mut values = Vec::new();
    let parser = &mut Parser::new(text)?;
    if parser.null() {
        let text = "null, read as no public values";
        let note = Note::new(NoteKind::Convention, Place::default(), text);
        options.note(&mut notes, note)?;
    } else {
        parser.array("an array of decimal strings", |parser, index| {
            parser.entry("public value", index);
            check_count(parser, index, PUBLIC_VALUES_MAX as u64)?;
            values.push(decimal::read_scalar(parser)?);
            Ok(())
        })?;
    }
    Ok((values, notes))
}

fn check_count(parser: &Parser<'_>, index: u64, most: u64) -> Result<(), Error> {
    if index < most {
        return Ok(());
    }
    Err(too_many().at(parser.place()))
}

fn too_many() -> Error {
    Error::new(
        ErrorKind::OutOfRange,
        format!("at most {PUBLIC_VALUES_MAX} public values"),
        "more",
    )
}

/// `verification_key.json`, `vk_alphabeta_12` computed.
///
/// # Errors
/// The key takes more than [`PUBLIC_VALUES_MAX`] public values.
pub fn verification_key_to_string(key: &VerifyingKey) -> Result<String, Error> {
    if key.num_public() > PUBLIC_VALUES_MAX {
        return Err(too_many());
    }
    let mut out = Writer::new();
    out.object(|object| {
        object.member("protocol", |out| out.string("groth16"));
        object.member("curve", |out| out.string("bls12381"));
        object.member("nPublic", |out| out.integer(key.num_public()));
        object.member("vk_alpha_1", |out| point::write(&key.alpha_g1, out));
        object.member("vk_beta_2", |out| point::write(&key.beta_g2, out));
        object.member("vk_gamma_2", |out| point::write(&key.gamma_g2, out));
        object.member("vk_delta_2", |out| point::write(&key.delta_g2, out));
        object.member("vk_alphabeta_12", |out| {
            pairing::write(&key.alpha_g1, &key.beta_g2, out);
        });
        object.member("IC", |out| {
            out.array(|out| {
                for point in &key.gamma_abc_g1 {
                    point::write(point, out);
                }
            });
        });
    });
    Ok(out.finish())
}

/// `proof.json`.
pub fn proof_to_string(proof: &Proof) -> String {
    let mut out = Writer::new();
    out.object(|object| {
        object.member("pi_a", |out| point::write(&proof.a, out));
        object.member("pi_b", |out| point::write(&proof.b, out));
        object.member("pi_c", |out| point::write(&proof.c, out));
        object.member("protocol", |out| out.string("groth16"));
        object.member("curve", |out| out.string("bls12381"));
    });
    out.finish()
}

/// `public.json`.
///
/// # Errors
/// There are more than [`PUBLIC_VALUES_MAX`] values.
pub fn public_to_string(values: &[Scalar]) -> Result<String, Error> {
    if values.len() > PUBLIC_VALUES_MAX {
        return Err(too_many());
    }
    let mut out = Writer::new();
    out.array(|out| {
        for value in values {
            out.decimal(*value.limbs());
        }
    });
    Ok(out.finish())
}
