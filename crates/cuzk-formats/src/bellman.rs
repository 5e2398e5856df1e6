//! Parameter files of bellman, bellperson, Filecoin and Zcash, and their verifying keys.
//!
//! No magic, no version; big-endian 32-bit counts, points in the Zcash encoding, uncompressed. The
//! A and B queries hold only variables that occur ([`QueryLayout::Compact`]), so that proving needs
//! the constraint system too. No point may be the identity, as in bellman.
//!
//! Ceremony files have a transcript behind the last array: it is skipped with a note. 192-byte
//! proofs are in [`crate::proof`].

use std::io::Write;

use cuzk_field::{G1Affine, G2Affine};

use crate::detect::FileKind;
use crate::error::{Error, ErrorKind, Note, NoteKind, Place};
use crate::keyfile::{
    Count, Front, Parts, Queries, Walk, check_exponents, check_writable, disagree, finish_error,
    write_points,
};
use crate::model::{KeyFlavour, ProvingKey, QueryLayout, VerifyingKey};
use crate::options::{LoadOptions, Meter};
use crate::output::{Output, count_u32};
use crate::points::{Identity, Point, PointForm};
use crate::source::ReadAt;

const FORM: PointForm = PointForm::ZcashUncompressed;

/// Parameters begin with a verifying key.
const VK_KINDS: [FileKind; 2] = [FileKind::BellmanVk, FileKind::BellmanParams];

/// Bytes of a transcript's head (hash and count) and of one contribution.
const TRANSCRIPT_HEAD_BYTES: u64 = 64 + 4;
const CONTRIBUTION_BYTES: u64 = 544;

/// The counts of a parameter file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Inputs, the constant ONE included: points of `ic`.
    pub num_inputs: u64,
    /// Other variables: points of `l`.
    pub num_aux: u64,
    /// n, a power of two: one more than there are points in `h`.
    pub domain_size: u64,
    /// Points of the A query.
    pub num_a: u64,
    /// Points of each B query.
    pub num_b: u64,
    /// Bytes behind the last point.
    pub tail_bytes: u64,
}

/// A parameter file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Params {
    /// Its counts.
    pub header: Header,
    /// The key: [`KeyFlavour::LIBSNARK`], [`QueryLayout::Compact`].
    pub key: ProvingKey,
    /// What is odd about the file.
    pub notes: Vec<Note>,
}

/// A verifying key file: the first parts of a parameter file, beta and delta in G1 included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vk {
    /// The verifying key.
    pub key: VerifyingKey,
    /// beta in G1, which only provers use.
    pub beta_g1: G1Affine,
    /// delta in G1, which only provers use.
    pub delta_g1: G1Affine,
    /// What is odd about the file.
    pub notes: Vec<Note>,
}

/// Reads the counts of a parameter file and compares them, at once for a file of any size.
///
/// # Errors
/// A count needs more bytes than there are, or counts contradict each other.
pub fn read_header(
    source: &(impl ReadAt + ?Sized),
    options: &LoadOptions<'_>,
) -> Result<(Header, Vec<Note>), Error> {
    let mut notes = Vec::new();
    read_parts(&source, options, &mut notes)
        .map(|(header, _)| (header, notes))
        .map_err(|error| finish_error(&source, error, &[FileKind::BellmanParams]))
}

/// Reads a parameter file and checks it: counts, every point, and by a pairing that beta and delta
/// are the same in both groups. The six points at the front are checked for the subgroup always,
/// the others under [`LoadOptions::subgroup_check`], which takes about 40 µs a point and core.
///
/// Memory is the key and one small block per thread; all cores decode.
///
/// # Errors
/// An [`Error`] with part, index and offset.
pub fn read_params(
    source: &(impl ReadAt + ?Sized),
    options: &LoadOptions<'_>,
) -> Result<Params, Error> {
    read_params_at(&source, options)
        .map_err(|error| finish_error(&source, error, &[FileKind::BellmanParams]))
}

/// Reads a verifying key file.
///
/// # Errors
/// As [`read_params`].
pub fn read_vk(source: &(impl ReadAt + ?Sized), options: &LoadOptions<'_>) -> Result<Vk, Error> {
    read_vk_at(&source, options).map_err(|error| finish_error(&source, error, &VK_KINDS))
}

fn skip_vital(walk: &mut Walk<'_>) -> Result<(), Error> {
    walk.skip::<G1Affine>("alpha_g1")?;
    walk.skip::<G1Affine>("beta_g1")?;
    walk.skip::<G2Affine>("beta_g2")?;
    walk.skip::<G2Affine>("gamma_g2")?;
    walk.skip::<G1Affine>("delta_g1")?;
    walk.skip::<G2Affine>("delta_g2")
}

fn read_parts(
    source: &dyn ReadAt,
    options: &LoadOptions<'_>,
    notes: &mut Vec<Note>,
) -> Result<(Header, Parts), Error> {
    let mut walk = Walk::new(source, FORM, Count::BigEndian32);
    skip_vital(&mut walk)?;
    let queries = Queries {
        ic: walk.inputs("ic")?,
        h: walk.array::<G1Affine>("h")?,
        l: walk.array::<G1Affine>("l")?,
        a: walk.array::<G1Affine>("a")?,
        b_g1: walk.array::<G1Affine>("b_g1")?,
        b_g2: walk.array::<G2Affine>("b_g2")?,
    };
    let domain_size = check_counts(&queries)?;
    let header = Header {
        num_inputs: queries.ic.count,
        num_aux: queries.l.count,
        domain_size: domain_size as u64,
        num_a: queries.a.count,
        num_b: queries.b_g1.count,
        tail_bytes: walk.left(),
    };
    if let Some(note) = tail_note(source, &walk)? {
        options.note(notes, note)?;
    }
    let parts = Parts {
        domain_size,
        queries,
    };
    Ok((header, parts))
}

/// A holds all inputs and some of the rest, B some of both.
fn check_counts(queries: &Queries) -> Result<usize, Error> {
    let domain_size = queries.check()?;
    let (inputs, variables) = (queries.ic.count, queries.num_variables());
    if queries.a.count < inputs || queries.a.count > variables {
        let expected = format!(
            "{inputs} to {variables} points: each of {inputs} inputs, and those of {} other \
             variables that occur",
            queries.l.count
        );
        return Err(disagree(queries.a, expected));
    }
    if queries.b_g1.count > variables {
        let expected = format!("at most {variables} points, one per variable");
        return Err(disagree(queries.b_g1, expected));
    }
    Ok(domain_size)
}

/// What follows the last point.
fn tail_note(source: &dyn ReadAt, walk: &Walk<'_>) -> Result<Option<Note>, Error> {
    let (bytes, offset) = (walk.left(), walk.position());
    if bytes >= TRANSCRIPT_HEAD_BYTES {
        let mut count = [0; 4];
        source.read_exact_at(offset + 64, &mut count)?;
        let contributions = u64::from(u32::from_be_bytes(count));
        if bytes == TRANSCRIPT_HEAD_BYTES + contributions * CONTRIBUTION_BYTES {
            let place = Place::default().offset(offset);
            let text = format!("a ceremony transcript of {contributions} contributions follows");
            return Ok(Some(Note::new(NoteKind::CeremonyTail, place, text)));
        }
    }
    Ok(walk.trailing("the last point"))
}

/// Reads the points at the front; the walk stands behind them then.
fn read_front(walk: &mut Walk<'_>) -> Result<Front, Error> {
    let alpha_g1 = walk.vital("alpha_g1")?;
    let beta_g1 = walk.vital("beta_g1")?;
    let beta_g2 = walk.vital("beta_g2")?;
    let gamma_g2 = walk.vital("gamma_g2")?;
    let delta_g1 = walk.vital("delta_g1")?;
    let delta_g2 = walk.vital("delta_g2")?;
    check_exponents((beta_g1, beta_g2), (delta_g1, delta_g2))
        .map_err(|error| error.at(Place::part("beta_g1, beta_g2, delta_g1, delta_g2")))?;
    Ok(Front {
        vk: VerifyingKey {
            alpha_g1,
            beta_g2,
            gamma_g2,
            delta_g2,
            gamma_abc_g1: Vec::new(),
        },
        beta_g1,
        delta_g1,
    })
}

fn read_params_at(source: &dyn ReadAt, options: &LoadOptions<'_>) -> Result<Params, Error> {
    let mut notes = Vec::new();
    let (header, parts) = read_parts(source, options, &mut notes)?;
    let mut walk = Walk::new(source, FORM, Count::BigEndian32);
    let front = read_front(&mut walk)?;
    let (layout, identity) = (QueryLayout::Compact, Identity::Refused);
    Ok(Params {
        header,
        key: walk.read_key(front, &parts, layout, identity, options)?,
        notes,
    })
}

fn read_vk_at(source: &dyn ReadAt, options: &LoadOptions<'_>) -> Result<Vk, Error> {
    let mut walk = Walk::new(source, FORM, Count::BigEndian32);
    skip_vital(&mut walk)?;
    let ic = walk.inputs("ic")?;
    let trailing = walk.trailing("the verifying key (parameters begin with one, too)");
    let mut walk = Walk::new(source, FORM, Count::BigEndian32);
    let front = read_front(&mut walk)?;
    let meter = Meter::new(options, ic.count * FORM.bytes::<G1Affine>() as u64);
    let gamma_abc_g1 = walk.read(ic, Identity::Refused, &meter)?;
    let mut notes = Vec::new();
    if let Some(note) = trailing {
        options.note(&mut notes, note)?;
    }
    let Front {
        vk: mut key,
        beta_g1,
        delta_g1,
    } = front;
    key.gamma_abc_g1 = gamma_abc_g1;
    Ok(Vk {
        key,
        beta_g1,
        delta_g1,
        notes,
    })
}

/// Writes a parameter file, without a tail.
///
/// # Errors
/// The key is of another flavour or layout, holds an identity, its lengths contradict each other, a
/// count needs more than 32 bits, or writing fails.
pub fn write_params(key: &ProvingKey, out: &mut dyn Write) -> Result<(), Error> {
    if key.flavour != KeyFlavour::LIBSNARK || key.query_layout != QueryLayout::Compact {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "a key of bellman's flavour, with points for the variables that occur",
            "another flavour or layout",
        ));
    }
    check_writable(key)?;
    let mut out = Output::new(out);
    write_front(&key.vk, key.beta_g1, key.delta_g1, &mut out)?;
    write_array(&mut out, &key.h_query, "h")?;
    write_array(&mut out, &key.l_query, "l")?;
    write_array(&mut out, &key.a_query, "a")?;
    write_array(&mut out, &key.b_g1_query, "b_g1")?;
    write_array(&mut out, &key.b_g2_query, "b_g2")?;
    out.finish()
}

/// Writes a verifying key file.
///
/// # Errors
/// As [`write_params`].
pub fn write_vk(
    key: &VerifyingKey,
    beta_g1: G1Affine,
    delta_g1: G1Affine,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut out = Output::new(out);
    write_front(key, beta_g1, delta_g1, &mut out)?;
    out.finish()
}

fn write_front(
    key: &VerifyingKey,
    beta_g1: G1Affine,
    delta_g1: G1Affine,
    out: &mut Output<'_>,
) -> Result<(), Error> {
    for g1 in [key.alpha_g1, beta_g1] {
        write_points(out, FORM, &[g1])?;
    }
    write_points(out, FORM, &[key.beta_g2, key.gamma_g2])?;
    write_points(out, FORM, &[delta_g1])?;
    write_points(out, FORM, &[key.delta_g2])?;
    write_array(out, &key.gamma_abc_g1, "ic")
}

fn write_array<P: Point>(
    out: &mut Output<'_>,
    points: &[P],
    part: &'static str,
) -> Result<(), Error> {
    if let Some(index) = points.iter().position(Point::is_infinity) {
        return Err(Error::new(
            ErrorKind::BadPoint,
            "a point other than the identity",
            "the identity (point at infinity)",
        )
        .at(Place::part(part).entry("point", index as u64))
        .hint("bellman has no place for identities"));
    }
    out.bytes(&count_u32(points.len(), part)?.to_be_bytes())?;
    write_points(out, FORM, points)
}
