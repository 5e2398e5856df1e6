//! The header, and the lengths that it implies.

use cuzk_field::{G1Affine, G2Affine};

use super::{
    A, B1, B2, C, COEFFICIENTS, G1_BYTES, G2_BYTES, H, HEADER, IC, PROTOCOL, TRANSCRIPT, ZKEY,
};
use crate::container::Container;
use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Note};
use crate::options::{LoadOptions, Meter};
use crate::points::{Identity, Point, PointForm, read_point};
use crate::prime::{expect_base_field, expect_scalar_field};
use crate::source::ReadAt;

/// Bytes of a coefficient entry: matrix, row, signal, value.
pub(super) const ENTRY_BYTES: u64 = 3 * 4 + 32;

/// What the header of a `.zkey` says, and the number of entries of its coefficient section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Variables, the constant ONE included.
    pub num_variables: u32,
    /// Public values, without the constant ONE.
    pub num_public: u32,
    /// n, a power of two.
    pub domain_size: u32,
    /// Entries of A and B together, repeats included.
    pub num_coefficients: u32,
    /// Whether the file has a ceremony transcript.
    pub has_transcript: bool,
}

impl Header {
    /// Bytes of all sections whose length the counts imply.
    pub(super) fn body_bytes(&self) -> u64 {
        self.section_lengths()
            .iter()
            .map(|(_, bytes, _)| bytes)
            .sum::<u64>()
            + u64::from(self.num_coefficients) * ENTRY_BYTES
    }

    /// Section, bytes and what they hold.
    fn section_lengths(&self) -> [(u32, u64, String); 6] {
        let variables = u64::from(self.num_variables);
        let inputs = u64::from(self.num_public) + 1;
        let domain = u64::from(self.domain_size);
        let per_variable = |point: u64| format!("{point} for each of {variables} variables");
        [
            (
                IC,
                inputs * G1_BYTES,
                format!("{G1_BYTES} for each of {inputs} inputs"),
            ),
            (A, variables * G1_BYTES, per_variable(G1_BYTES)),
            (B1, variables * G1_BYTES, per_variable(G1_BYTES)),
            (B2, variables * G2_BYTES, per_variable(G2_BYTES)),
            (
                C,
                (variables - inputs) * G1_BYTES,
                format!(
                    "{G1_BYTES} for each of {} private variables",
                    variables - inputs
                ),
            ),
            (
                H,
                domain * G1_BYTES,
                format!("{G1_BYTES} for each of {domain} domain elements"),
            ),
        ]
    }
}

/// The points of the header. None is infinity, all are in the subgroup.
pub(super) struct HeaderPoints {
    pub(super) alpha_g1: G1Affine,
    pub(super) beta_g1: G1Affine,
    pub(super) beta_g2: G2Affine,
    pub(super) gamma_g2: G2Affine,
    pub(super) delta_g1: G1Affine,
    pub(super) delta_g2: G2Affine,
}

/// Reads the header and the table of contents and compares all section lengths, without reading
/// points or coefficients: at once for a file of any size.
///
/// # Errors
/// The file is malformed, for another curve or another protocol.
pub fn read_header(
    source: &(impl ReadAt + ?Sized),
    options: &LoadOptions<'_>,
) -> Result<(Header, Vec<Note>), Error> {
    let mut notes = Vec::new();
    read_parts(&source, options, &mut notes)
        .map(|(header, _)| (header, notes))
        .map_err(|error| error.in_file(source.name()))
}

pub(super) fn read_parts(
    source: &dyn ReadAt,
    options: &LoadOptions<'_>,
    notes: &mut Vec<Note>,
) -> Result<(Header, Container), Error> {
    let container = Container::scan(source, &ZKEY)?;
    container.check(options, notes)?;
    check_protocol(source, &container)?;
    let section = container.require(HEADER)?;
    let mut header = read_counts(source, &container)
        .map_err(|error| error.at(ZKEY.place(HEADER).offset(section.offset)))?;
    for (number, bytes, meaning) in header.section_lengths() {
        container.require_len(number, bytes, || meaning)?;
    }
    let section = container.require(COEFFICIENTS)?;
    let place = ZKEY.place(COEFFICIENTS).offset(section.offset);
    header.num_coefficients = section
        .cursor(source)
        .u32_le()
        .map_err(|error| error.at(place))?;
    container.require_len(
        COEFFICIENTS,
        4 + u64::from(header.num_coefficients) * ENTRY_BYTES,
        || {
            format!(
                "4 and {ENTRY_BYTES} for each of {} entries",
                header.num_coefficients
            )
        },
    )?;
    header.has_transcript = container.find(TRANSCRIPT)?.is_some();
    Ok((header, container))
}

fn check_protocol(source: &dyn ReadAt, container: &Container) -> Result<(), Error> {
    let section = container.require_len(PROTOCOL, 4, || "a protocol number".to_owned())?;
    let protocol = section.cursor(source).u32_le()?;
    let found = match protocol {
        1 => return Ok(()),
        2 => "PLONK (2)".to_owned(),
        10 => "FFLONK (10)".to_owned(),
        other => other.to_string(),
    };
    Err(
        Error::new(ErrorKind::Unsupported, "the protocol Groth16 (1)", found)
            .at(ZKEY.place(PROTOCOL).offset(section.offset))
            .hint("make the key with snarkjs groth16 setup"),
    )
}

/// Checks both primes; leaves the cursor at the counts.
fn read_primes(cursor: &mut Cursor<'_>) -> Result<(), Error> {
    expect_base_field(cursor)?;
    expect_scalar_field(cursor)
}

fn read_counts(source: &dyn ReadAt, container: &Container) -> Result<Header, Error> {
    let section = container.require(HEADER)?;
    let mut cursor = section.cursor(source);
    read_primes(&mut cursor)?;
    let header = Header {
        num_variables: cursor.u32_le()?,
        num_public: cursor.u32_le()?,
        domain_size: cursor.u32_le()?,
        num_coefficients: 0,
        has_transcript: false,
    };
    cursor.skip(3 * G1_BYTES + 3 * G2_BYTES)?;
    if cursor.left() != 0 {
        return Err(Error::new(
            ErrorKind::BadLayout,
            format!("{} bytes", section.len - cursor.left()),
            section.len.to_string(),
        ));
    }
    if header.num_public >= header.num_variables {
        return Err(Error::new(
            ErrorKind::Inconsistent,
            format!(
                "fewer public values than variables ({})",
                header.num_variables
            ),
            header.num_public.to_string(),
        ));
    }
    // 2^32, the largest domain of the field, does not fit into the header's 32 bits.
    if !header.domain_size.is_power_of_two() || header.domain_size < 2 {
        return Err(Error::new(
            ErrorKind::OutOfRange,
            "a domain size that is a power of two and at least 2",
            header.domain_size.to_string(),
        ));
    }
    Ok(header)
}

/// Reads the six points. They are few and everything depends on them: always fully checked.
pub(super) fn read_points(
    source: &dyn ReadAt,
    container: &Container,
) -> Result<HeaderPoints, Error> {
    let section = container.require(HEADER)?;
    let mut cursor = section.cursor(source);
    read_primes(&mut cursor)?;
    cursor.skip(3 * 4)?;
    Ok(HeaderPoints {
        alpha_g1: header_point(source, &mut cursor, "header, alpha1")?,
        beta_g1: header_point(source, &mut cursor, "header, beta1")?,
        beta_g2: header_point(source, &mut cursor, "header, beta2")?,
        gamma_g2: header_point(source, &mut cursor, "header, gamma2")?,
        delta_g1: header_point(source, &mut cursor, "header, delta1")?,
        delta_g2: header_point(source, &mut cursor, "header, delta2")?,
    })
}

fn header_point<P: Point>(
    source: &dyn ReadAt,
    cursor: &mut Cursor<'_>,
    name: &'static str,
) -> Result<P, Error> {
    let options = LoadOptions {
        subgroup_check: true,
        ..LoadOptions::default()
    };
    let point = read_point(
        source,
        cursor.position(),
        PointForm::Iden3,
        Identity::Refused,
        crate::error::Place::section(HEADER, name),
        &Meter::new(&options, 0),
    )?;
    cursor.skip(PointForm::Iden3.bytes::<P>() as u64)?;
    Ok(point)
}
