//! `ProvingKey` and `VerifyingKey` of ark-groth16 as ark-serialize writes them, compressed or not.
//!
//! Fields in order, little-endian 64-bit lengths, points in the Zcash encoding, which
//! ark-bls12-381 uses since 0.4. Whether a file is compressed is told by the first bit. Queries may
//! hold identities. Proofs are in [`crate::proof`].
//!
//! A key converted from a circom zkey keeps that key's H basis while this format has no word for it:
//! its `h_query` has 2^k points instead of 2^k - 1, by which it is found and refused.

use std::io::Write;

use cuzk_field::{G1Affine, G2Affine};

use crate::checks::unbound_inputs;
use crate::detect::FileKind;
use crate::error::{Error, ErrorKind, Note, Place};
use crate::keyfile::{
    Array, Count, Front, Parts, Queries, Walk, check_exponents, check_writable, disagree,
    finish_error, write_points,
};
use crate::model::{KeyFlavour, ProvingKey, QueryLayout, VerifyingKey};
use crate::options::{LoadOptions, Meter};
use crate::output::Output;
use crate::points::{Identity, Point, PointForm};
use crate::source::ReadAt;

/// A proving key begins with a verifying key.
const VK_KINDS: [FileKind; 2] = [FileKind::ArkworksVerifyingKey, FileKind::ArkworksProvingKey];

/// Whether points are written with one coordinate or two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Compression {
    /// x and flags. Half the size; reading takes a square root a point.
    Compressed,
    /// Both coordinates.
    Uncompressed,
}

impl Compression {
    fn form(self) -> PointForm {
        match self {
            Self::Compressed => PointForm::ZcashCompressed,
            Self::Uncompressed => PointForm::ZcashUncompressed,
        }
    }

    /// What the first bit of a file says.
    fn of(source: &dyn ReadAt) -> Result<Self, Error> {
        let mut first = [0];
        source.read_exact_at(0, &mut first)?;
        Ok(if first[0] & 0x80 == 0 {
            Self::Uncompressed
        } else {
            Self::Compressed
        })
    }
}

/// The counts of a proving key file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// How points are written.
    pub compression: Compression,
    /// Inputs, the constant ONE included.
    pub num_inputs: u64,
    /// All variables, the constant ONE included.
    pub num_variables: u64,
    /// n, a power of two.
    pub domain_size: u64,
    /// Bytes behind the last point.
    pub tail_bytes: u64,
}

/// A proving key file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProvingKeyFile {
    /// Its counts.
    pub header: Header,
    /// The key: [`KeyFlavour::LIBSNARK`], [`QueryLayout::Full`].
    pub key: ProvingKey,
    /// What is odd about the file.
    pub notes: Vec<Note>,
}

/// A verifying key file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyingKeyFile {
    /// How points are written.
    pub compression: Compression,
    /// The key.
    pub key: VerifyingKey,
    /// What is odd about the file.
    pub notes: Vec<Note>,
}

/// Reads the lengths of a proving key and compares them, at once for a file of any size.
///
/// # Errors
/// A length needs more bytes than there are, or lengths contradict each other.
pub fn read_header(
    source: &(impl ReadAt + ?Sized),
    options: &LoadOptions<'_>,
) -> Result<(Header, Vec<Note>), Error> {
    let mut notes = Vec::new();
    read_parts(&source, options, &mut notes)
        .map(|(header, _)| (header, notes))
        .map_err(|error| finish_error(&source, error, &[FileKind::ArkworksProvingKey]))
}

/// Reads a proving key and checks it: lengths against each other, every point, and by a pairing that
/// beta and delta are the same in both groups. The six points outside of arrays are checked for the
/// subgroup always, the others under [`LoadOptions::subgroup_check`].
///
/// Memory is the key and one small block per thread; all cores decode.
///
/// # Errors
/// An [`Error`] with part, index and offset.
pub fn read_proving_key(
    source: &(impl ReadAt + ?Sized),
    options: &LoadOptions<'_>,
) -> Result<ProvingKeyFile, Error> {
    read_proving_key_at(&source, options)
        .map_err(|error| finish_error(&source, error, &[FileKind::ArkworksProvingKey]))
}

/// Reads a verifying key.
///
/// # Errors
/// As [`read_proving_key`].
pub fn read_verifying_key(
    source: &(impl ReadAt + ?Sized),
    options: &LoadOptions<'_>,
) -> Result<VerifyingKeyFile, Error> {
    read_verifying_key_at(&source, options).map_err(|error| finish_error(&source, error, &VK_KINDS))
}

fn skip_front(walk: &mut Walk<'_>) -> Result<Array, Error> {
    walk.skip::<G1Affine>("vk.alpha_g1")?;
    walk.skip::<G2Affine>("vk.beta_g2")?;
    walk.skip::<G2Affine>("vk.gamma_g2")?;
    walk.skip::<G2Affine>("vk.delta_g2")?;
    walk.inputs("vk.gamma_abc_g1")
}

fn read_parts(
    source: &dyn ReadAt,
    options: &LoadOptions<'_>,
    notes: &mut Vec<Note>,
) -> Result<(Header, Parts), Error> {
    let compression = Compression::of(source)?;
    let mut walk = Walk::new(source, compression.form(), Count::LittleEndian64);
    let ic = skip_front(&mut walk)?;
    walk.skip::<G1Affine>("beta_g1")?;
    walk.skip::<G1Affine>("delta_g1")?;
    let a = walk.array::<G1Affine>("a_query")?;
    let b_g1 = walk.array::<G1Affine>("b_g1_query")?;
    let b_g2 = walk.array::<G2Affine>("b_g2_query")?;
    let h = walk.array::<G1Affine>("h_query")?;
    let l = walk.array::<G1Affine>("l_query")?;
    let queries = Queries {
        ic,
        h,
        l,
        a,
        b_g1,
        b_g2,
    };
    let domain_size = queries.check()?;
    check_full(&queries)?;
    if let Some(note) = walk.trailing("the last point") {
        options.note(notes, note)?;
    }
    let header = Header {
        compression,
        num_inputs: ic.count,
        num_variables: queries.num_variables(),
        domain_size: domain_size as u64,
        tail_bytes: walk.left(),
    };
    let parts = Parts {
        domain_size,
        queries,
    };
    Ok((header, parts))
}

/// A and B have one entry per variable. ark-groth16's sums stop at the shorter of points and
/// scalars, so that a short key gives an invalid proof without a word.
fn check_full(queries: &Queries) -> Result<(), Error> {
    let variables = queries.num_variables();
    let expected = || {
        format!(
            "{variables} points, one per variable: {} inputs and {} of l_query",
            queries.ic.count, queries.l.count
        )
    };
    for array in [queries.a, queries.b_g1, queries.b_g2] {
        if array.count != variables {
            return Err(disagree(array, expected()));
        }
    }
    Ok(())
}

/// Reads the verifying key's points but those of the inputs.
fn read_front(walk: &mut Walk<'_>) -> Result<VerifyingKey, Error> {
    Ok(VerifyingKey {
        alpha_g1: walk.vital("vk.alpha_g1")?,
        beta_g2: walk.vital("vk.beta_g2")?,
        gamma_g2: walk.vital("vk.gamma_g2")?,
        delta_g2: walk.vital("vk.delta_g2")?,
        gamma_abc_g1: Vec::new(),
    })
}

fn read_proving_key_at(
    source: &dyn ReadAt,
    options: &LoadOptions<'_>,
) -> Result<ProvingKeyFile, Error> {
    let mut notes = Vec::new();
    let (header, parts) = read_parts(source, options, &mut notes)?;
    let form = header.compression.form();
    let mut walk = Walk::new(source, form, Count::LittleEndian64);
    let vk = read_front(&mut walk)?;
    walk.inputs("vk.gamma_abc_g1")?;
    let front = Front {
        vk,
        beta_g1: walk.vital("beta_g1")?,
        delta_g1: walk.vital("delta_g1")?,
    };
    check_exponents(
        (front.beta_g1, front.vk.beta_g2),
        (front.delta_g1, front.vk.delta_g2),
    )
    .map_err(|error| error.at(Place::part("beta_g1, beta_g2, delta_g1, delta_g2")))?;
    let (layout, identity) = (QueryLayout::Full, Identity::Allowed);
    let key = walk.read_key(front, &parts, layout, identity, options)?;
    if let Some(note) = unbound_inputs(&key.vk.gamma_abc_g1, Place::part("vk.gamma_abc_g1")) {
        options.note(&mut notes, note)?;
    }
    Ok(ProvingKeyFile { header, key, notes })
}

fn read_verifying_key_at(
    source: &dyn ReadAt,
    options: &LoadOptions<'_>,
) -> Result<VerifyingKeyFile, Error> {
    let compression = Compression::of(source)?;
    let form = compression.form();
    let mut walk = Walk::new(source, form, Count::LittleEndian64);
    let ic = skip_front(&mut walk)?;
    let mut notes = Vec::new();
    let mut key = read_front(&mut Walk::new(source, form, Count::LittleEndian64))?;
    let meter = Meter::new(options, ic.count * form.bytes::<G1Affine>() as u64);
    key.gamma_abc_g1 = walk.read(ic, Identity::Allowed, &meter)?;
    if let Some(note) = unbound_inputs(&key.gamma_abc_g1, Place::part("vk.gamma_abc_g1")) {
        options.note(&mut notes, note)?;
    }
    if let Some(note) = walk.trailing("the last point") {
        options.note(&mut notes, note)?;
    }
    Ok(VerifyingKeyFile {
        compression,
        key,
        notes,
    })
}

/// Writes a proving key as ark-serialize does.
///
/// # Errors
/// The key is of another flavour or layout, its lengths contradict each other, or writing fails.
pub fn write_proving_key(
    key: &ProvingKey,
    compression: Compression,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if key.flavour != KeyFlavour::LIBSNARK || key.query_layout != QueryLayout::Full {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "a key of the arkworks flavour with one entry per variable",
            "another flavour or layout",
        )
        .hint("the format does not say in which basis H stands"));
    }
    check_writable(key)?;
    let variables = key.num_variables();
    if key.a_query.len() != variables || key.b_g1_query.len() != variables {
        return Err(Error::new(
            ErrorKind::Inconsistent,
            format!("{variables} points in a_query and b_g1_query"),
            format!("{} and {}", key.a_query.len(), key.b_g1_query.len()),
        ));
    }
    let form = compression.form();
    let mut out = Output::new(out);
    write_vk(&mut out, form, &key.vk)?;
    write_points(&mut out, form, &[key.beta_g1, key.delta_g1])?;
    write_array(&mut out, form, &key.a_query)?;
    write_array(&mut out, form, &key.b_g1_query)?;
    write_array(&mut out, form, &key.b_g2_query)?;
    write_array(&mut out, form, &key.h_query)?;
    write_array(&mut out, form, &key.l_query)?;
    out.finish()
}

/// Writes a verifying key as ark-serialize does.
///
/// # Errors
/// Writing fails.
pub fn write_verifying_key(
    key: &VerifyingKey,
    compression: Compression,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut out = Output::new(out);
    write_vk(&mut out, compression.form(), key)?;
    out.finish()
}

fn write_vk(out: &mut Output<'_>, form: PointForm, key: &VerifyingKey) -> Result<(), Error> {
    write_points(out, form, &[key.alpha_g1])?;
    write_points(out, form, &[key.beta_g2, key.gamma_g2, key.delta_g2])?;
    write_array(out, form, &key.gamma_abc_g1)
}

fn write_array<P: Point>(out: &mut Output<'_>, form: PointForm, points: &[P]) -> Result<(), Error> {
    out.u64_le(points.len() as u64)?;
    write_points(out, form, points)
}
