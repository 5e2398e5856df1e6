//! snarkjs Groth16 `.zkey` files, version 1.
//!
//! [`read_header`] looks at the header and the table of contents; [`read`] loads and checks the
//! whole key with all cores; [`write()`] writes a key for snarkjs to use.

mod coefficients;
mod header;
mod transcript;
mod write;

pub use header::{Header, read_header};
pub use transcript::Transcript;
pub use write::write;

use cuzk_field::{G1Affine, G2Affine};

use crate::ab_matrices::AbMatrices;
use crate::checks::unbound_inputs;
use crate::container::{Container, FileType};
use crate::error::{Error, ErrorKind, Note, NoteKind};
use crate::keyfile::check_exponents;
use crate::model::{CoefficientTable, KeyFlavour, ProvingKey, QueryLayout, VerifyingKey};
use crate::options::{LoadOptions, Meter};
use crate::points::{Identity, Point, PointArray, PointForm};
use crate::source::ReadAt;

const PROTOCOL: u32 = 1;
const HEADER: u32 = 2;
const IC: u32 = 3;
const COEFFICIENTS: u32 = 4;
const A: u32 = 5;
const B1: u32 = 6;
const B2: u32 = 7;
const C: u32 = 8;
const H: u32 = 9;
const TRANSCRIPT: u32 = 10;

pub(crate) const ZKEY: FileType = FileType {
    magic: *b"zkey",
    version: 1,
    name: "a snarkjs key (.zkey)",
    sections: &[
        (PROTOCOL, "protocol"),
        (HEADER, "header"),
        (IC, "IC"),
        (COEFFICIENTS, "coefficients"),
        (A, "A"),
        (B1, "B1"),
        (B2, "B2"),
        (C, "C"),
        (H, "H"),
        (TRANSCRIPT, "ceremony transcript"),
    ],
};

const G1_BYTES: u64 = 96;
const G2_BYTES: u64 = 192;

/// A snarkjs key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zkey {
    /// Counts and what else the header says.
    pub header: Header,
    /// The points, [`KeyFlavour::CIRCOM`].
    pub key: ProvingKey,
    /// The rows of A and B, those for the inputs included. There is no C in the file.
    pub matrices: AbMatrices,
    /// The ceremony's transcript, where the file has one that can be read.
    pub transcript: Option<Transcript>,
    /// What is odd about the file.
    pub notes: Vec<Note>,
}

impl Zkey {
    /// Rows of the circuit itself, without those of the inputs, which must be the last: row
    /// `num_constraints + s` has a 1 at input s in A and nothing in B. `None` when they are not,
    /// as in a key that snarkjs did not make.
    pub fn num_constraints(&self) -> Option<usize> {
        let AbMatrices { a, b, .. } = &self.matrices;
        let circuit_rows = a.num_rows().checked_sub(self.key.num_inputs())?;
        let are_inputs = (0u32..)
            .zip(circuit_rows..a.num_rows())
            .all(|(input, row)| {
                a.row(row).eq([(input, CoefficientTable::ONE)]) && b.row(row).len() == 0
            });
        are_inputs.then_some(circuit_rows)
    }
}

/// Reads a key and checks it: section lengths, every point, every coefficient entry, and by two
/// pairings that delta and beta are the same in both groups. The points of the header are checked
/// for the subgroup always, the others under [`LoadOptions::subgroup_check`].
///
/// Memory is the key and one small block per thread; all cores decode.
///
/// # Errors
/// An [`Error`] with section, entry and offset.
pub fn read(source: &(impl ReadAt + ?Sized), options: &LoadOptions<'_>) -> Result<Zkey, Error> {
    read_at(&source, options).map_err(|error| error.in_file(source.name()))
}

fn read_at(source: &dyn ReadAt, options: &LoadOptions<'_>) -> Result<Zkey, Error> {
    let mut notes = Vec::new();
    let (header, container) = header::read_parts(source, options, &mut notes)?;
    let header_points = header::read_points(source, &container)?;
    let meter = Meter::new(options, header.body_bytes());
    // The rows are put in order by one thread, the points decoded by all: side by side the points
    // take the longer.
    let (matrices, points) = rayon::join(
        || coefficients::read(source, &container, &header, &meter),
        || Queries::read(source, &container, &header, &meter),
    );
    let (matrices, points) = (matrices?, points?);
    check_exponents(
        (header_points.beta_g1, header_points.beta_g2),
        (header_points.delta_g1, header_points.delta_g2),
    )
    .map_err(|error| error.at(ZKEY.place(HEADER)))?;
    let transcript = read_transcript(source, &container, options, &mut notes)?;
    if let Some(note) = unbound_inputs(&points.ic, ZKEY.place(IC)) {
        options.note(&mut notes, note)?;
    }
    let key = ProvingKey {
        flavour: KeyFlavour::CIRCOM,
        domain_size: header.domain_size as usize,
        vk: VerifyingKey {
            alpha_g1: header_points.alpha_g1,
            beta_g2: header_points.beta_g2,
            gamma_g2: header_points.gamma_g2,
            delta_g2: header_points.delta_g2,
            gamma_abc_g1: points.ic,
        },
        beta_g1: header_points.beta_g1,
        delta_g1: header_points.delta_g1,
        query_layout: QueryLayout::Full,
        a_query: points.a,
        b_g1_query: points.b_g1,
        b_g2_query: points.b_g2,
        h_query: points.h,
        l_query: points.l,
    };
    Ok(Zkey {
        header,
        key,
        matrices,
        transcript,
        notes,
    })
}

/// A missing or unreadable transcript does not stop a prover.
fn read_transcript(
    source: &dyn ReadAt,
    container: &Container,
    options: &LoadOptions<'_>,
    notes: &mut Vec<Note>,
) -> Result<Option<Transcript>, Error> {
    let Some(section) = container.find(TRANSCRIPT)? else {
        let text = "no ceremony transcript: proving works, contributing to the key does not";
        let place = ZKEY.place(TRANSCRIPT);
        options.note(notes, Note::new(NoteKind::MissingOptional, place, text))?;
        return Ok(None);
    };
    match Transcript::read(source, section) {
        Ok(transcript) => Ok(Some(transcript)),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::Truncated | ErrorKind::BadLayout | ErrorKind::OutOfRange
            ) =>
        {
            let text = format!("the ceremony transcript cannot be read: {error}");
            let place = ZKEY.place(TRANSCRIPT).offset(section.offset);
            options.note(notes, Note::new(NoteKind::CeremonyTail, place, text))?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The arrays of points.
struct Queries {
    ic: Vec<G1Affine>,
    a: Vec<G1Affine>,
    b_g1: Vec<G1Affine>,
    b_g2: Vec<G2Affine>,
    l: Vec<G1Affine>,
    h: Vec<G1Affine>,
}

impl Queries {
    fn read(
        source: &dyn ReadAt,
        container: &Container,
        header: &Header,
        meter: &Meter<'_>,
    ) -> Result<Self, Error> {
        fn array<P: Point>(
            source: &dyn ReadAt,
            container: &Container,
            number: u32,
            label: &'static str,
            meter: &Meter<'_>,
        ) -> Result<Vec<P>, Error> {
            let section = container.require(number)?;
            let point_bytes = PointForm::Iden3.bytes::<P>() as u64;
            PointArray {
                source,
                offset: section.offset,
                // `header::read_parts` has compared the length with the header's count.
                count: section.len / point_bytes,
                form: PointForm::Iden3,
                identity: Identity::Allowed,
                place: ZKEY.place(number),
                label,
            }
            .read(meter)
        }
        debug_assert_eq!(
            container.require(A)?.len,
            u64::from(header.num_variables) * G1_BYTES
        );
        Ok(Self {
            ic: array(source, container, IC, "IC", meter)?,
            a: array(source, container, A, "A", meter)?,
            b_g1: array(source, container, B1, "B1", meter)?,
            b_g2: array(source, container, B2, "B2", meter)?,
            l: array(source, container, C, "C", meter)?,
            h: array(source, container, H, "H", meter)?,
        })
    }
}
