//! Which of the three files a text is, of which curve and protocol: a first pass over all of it, so
//! that a fault in a point can be told from a file of another kind or curve.

use super::text::Parser;
use crate::detect::FileKind;
use crate::error::{Error, ErrorKind, Note, NoteKind, Place};
use crate::options::LoadOptions;

const PROOF_POINTS: [&str; 3] = ["pi_a", "pi_b", "pi_c"];
const KEY_MEMBERS: [&str; 6] = [
    "nPublic",
    "vk_alpha_1",
    "vk_beta_2",
    "vk_gamma_2",
    "vk_delta_2",
    "IC",
];

/// Which of the three files `text` is, by its members alone.
///
/// # Errors
/// [`ErrorKind::BadText`] when it is no JSON.
pub fn kind_of(text: &[u8]) -> Result<Option<FileKind>, Error> {
    Ok(scan(&mut Parser::new(text)?)?.kind)
}

/// What a first pass over a text finds.
#[derive(Default)]
struct Scan<'a> {
    kind: Option<FileKind>,
    curve: Option<&'a str>,
    protocol: Option<&'a str>,
}

/// Passes over the whole text once: later faults can then be told from another curve or file.
fn scan<'a>(parser: &mut Parser<'a>) -> Result<Scan<'a>, Error> {
    let mut found = Scan::default();
    match parser.peek() {
        Some(b'{') => {
            let mut seen = [false; PROOF_POINTS.len() + KEY_MEMBERS.len() + 2];
            parser.object(|parser, name| {
                let known = ["curve", "protocol"]
                    .iter()
                    .chain(&PROOF_POINTS)
                    .chain(&KEY_MEMBERS)
                    .zip(&mut seen)
                    .find(|(known, _)| **known == name);
                if let Some((known, seen)) = known {
                    parser.enter(known);
                    if std::mem::replace(seen, true) {
                        return Err(parser.error(
                            ErrorKind::BadText,
                            format!("\"{known}\" once"),
                            "it again",
                        ));
                    }
                }
                match name {
                    "curve" => found.curve = Some(parser.plain_string("the name of a curve")?),
                    "protocol" => found.protocol = Some(parser.plain_string("a protocol's name")?),
                    _ => parser.skip_value()?,
                }
                parser.enter("");
                Ok(())
            })?;
            let (proof, key) = seen[2..].split_at(PROOF_POINTS.len());
            found.kind = if proof.iter().all(|seen| *seen) {
                Some(FileKind::ProofJson)
            } else if key.iter().filter(|seen| **seen).count() >= KEY_MEMBERS.len() / 2 {
                Some(FileKind::VerificationKeyJson)
            } else {
                None
            };
        }
        Some(b'[') => {
            parser.skip_value()?;
            found.kind = Some(FileKind::PublicJson);
        }
        _ if parser.null() => found.kind = Some(FileKind::PublicJson),
        _ => parser.skip_value()?,
    }
    parser.finish()?;
    Ok(found)
}

/// Checks kind, curve and protocol. A curve that is not named is taken to be the right one: points
/// of another are not on this one.
pub(super) fn check(
    text: &[u8],
    wanted: FileKind,
    options: &LoadOptions<'_>,
    notes: &mut Vec<Note>,
) -> Result<(), Error> {
    let found = scan(&mut Parser::new(text)?)?;
    if found.kind != Some(wanted) {
        return Err(match found.kind {
            Some(other) => Error::new(ErrorKind::WrongFormat, wanted.name(), other.name())
                .hint("the files may have been swapped"),
            None => Error::new(
                ErrorKind::WrongFormat,
                wanted.name(),
                "JSON without its members",
            ),
        });
    }
    if wanted == FileKind::PublicJson {
        return Ok(());
    }
    let quoted = |name: &str| {
        let shown: String = name.chars().take(24).collect();
        format!("\"{}\"", shown.escape_default())
    };
    if let Some(curve) = found.curve
        && normalised(curve) != "BLS12381"
    {
        return Err(
            Error::new(ErrorKind::WrongCurve, "the curve bls12381", quoted(curve))
                .at(Place::part("curve")),
        );
    }
    match found.protocol {
        Some("groth16") => {}
        Some(other) => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "the protocol groth16",
                quoted(other),
            )
            .at(Place::part("protocol")));
        }
        None => {
            let text = "no protocol is named; read as groth16";
            let note = Note::new(NoteKind::MissingOptional, Place::part("protocol"), text);
            options.note(notes, note)?;
        }
    }
    Ok(())
}

/// A curve's name as it is compared: letters and digits only, in capitals.
fn normalised(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_uppercase())
        .collect()
}
