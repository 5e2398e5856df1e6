//! iden3 `.wtns` files, version 2.
//!
//! Values are secret: no error holds one, buffers are wiped.

use std::io::Write;

use cuzk_field::Scalar;
use cuzk_field::constants::FR_MODULUS;
use zeroize::Zeroize as _;

use crate::array::ItemArray;
use crate::container::{Container, FileType, Section};
use crate::error::{Error, ErrorKind, Note, NoteKind};
use crate::model::Witness;
use crate::options::{LoadOptions, Meter};
use crate::output::Output;
use crate::prime::{expect_scalar_field, le_bytes};
use crate::source::ReadAt;

const HEADER: u32 = 1;
const VALUES: u32 = 2;

pub(crate) const WTNS: FileType = FileType {
    magic: *b"wtns",
    version: 2,
    name: "a witness (.wtns)",
    sections: &[(HEADER, "header"), (VALUES, "values")],
};

const VALUE_BYTES: u64 = 32;
const HEADER_BYTES: u64 = 4 + 32 + 4;

/// A witness with what is odd about its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WtnsFile {
    /// The values; the first is one.
    pub witness: Witness,
    /// What is odd about the file.
    pub notes: Vec<Note>,
}

/// How many values the file holds, without reading them.
///
/// # Errors
/// The file is malformed or for another prime.
pub fn read_header(
    source: &(impl ReadAt + ?Sized),
    options: &LoadOptions<'_>,
) -> Result<(u32, Vec<Note>), Error> {
    let mut notes = Vec::new();
    read_parts(&source, options, &mut notes)
        .map(|(count, _)| (count, notes))
        .map_err(|error| error.in_file(source.name()))
}

/// Reads a witness. Memory is the witness and one small block per thread.
///
/// # Errors
/// The file is malformed or for another prime; a value is not below r
/// ([`ErrorKind::NotCanonical`], with its index); the first value is not one
/// ([`ErrorKind::BadWitness`]).
pub fn read(source: &(impl ReadAt + ?Sized), options: &LoadOptions<'_>) -> Result<WtnsFile, Error> {
    read_at(&source, options).map_err(|error| error.in_file(source.name()))
}

fn read_at(source: &dyn ReadAt, options: &LoadOptions<'_>) -> Result<WtnsFile, Error> {
    let mut notes = Vec::new();
    let (count, section) = read_parts(source, options, &mut notes)?;
    let place = WTNS.place(VALUES);
    let array = ItemArray {
        source,
        offset: section.offset,
        count: u64::from(count),
        item_bytes: VALUE_BYTES as usize,
        nouns: "values",
        place: &place,
        label: "witness",
    };
    let meter = Meter::new(options, u64::from(count) * VALUE_BYTES);
    let mut values = Vec::new();
    let result = array.read_into(&mut values, Scalar::ZERO, &meter, |bytes, index| {
        let bytes = bytes.first_chunk().expect("32 bytes a value");
        Scalar::from_le_bytes(bytes).ok_or_else(|| {
            let offset = section.offset + index * VALUE_BYTES;
            Error::new(
                ErrorKind::NotCanonical,
                "a value below the modulus r",
                "one that is not",
            )
            .at(place.clone().entry("value", index).offset(offset))
        })
    });
    if let Err(error) = result {
        // What was read, not the memory reserved for the rest: wiping would touch all its pages.
        values.iter_mut().zeroize();
        return Err(error);
    }
    // From here on the values are wiped when dropped.
    let witness = Witness::new(values);
    if !witness.values().first().is_some_and(Scalar::is_one) {
        return Err(Error::new(
            ErrorKind::BadWitness,
            "the constant one as the first value",
            if count == 0 {
                "no value"
            } else {
                "another value"
            },
        )
        .at(place.entry("value", 0).offset(section.offset))
        .hint("the witness is damaged or was not made by a circom witness generator"));
    }
    Ok(WtnsFile { witness, notes })
}

/// The number of values and the section that holds exactly these.
fn read_parts(
    source: &dyn ReadAt,
    options: &LoadOptions<'_>,
    notes: &mut Vec<Note>,
) -> Result<(u32, Section), Error> {
    let container = Container::scan(source, &WTNS)?;
    let Some(header) = container.find(HEADER)? else {
        container.check(options, notes)?;
        container.require(HEADER)?;
        unreachable!("a section that is not found is not there");
    };
    let count = read_section(source, header)
        .map_err(|error| error.at(WTNS.place(HEADER).offset(header.offset)))?;
    let values_bytes = u64::from(count) * VALUE_BYTES;
    if let Some(section) = container.find(VALUES)?
        && section.len != values_bytes
        && source.len() - section.offset == values_bytes
    {
        length_defect(section, count, options, notes)?;
        return Ok((
            count,
            Section {
                len: values_bytes,
                ..section
            },
        ));
    }
    container.check(options, notes)?;
    let section = container.require_len(VALUES, values_bytes, || {
        format!("32 for each of {count} values")
    })?;
    Ok((count, section))
}

fn length_defect(
    section: Section,
    count: u32,
    options: &LoadOptions<'_>,
    notes: &mut Vec<Note>,
) -> Result<(), Error> {
    let place = WTNS.place(VALUES).offset(section.offset);
    let wanted = u64::from(count) * VALUE_BYTES;
    if !options.accept_wtns_length_defect {
        return Err(Error::new(
            ErrorKind::BadLayout,
            format!("a section length of {wanted} bytes for {count} values"),
            format!("{}, while the values are all there", section.len),
        )
        .at(place)
        .hint(
            "the JavaScript witness generator writes a wrong length for witnesses of 4 GiB and \
             more: make it with the C++ or WebAssembly command line generator, or accept the \
             defect explicitly",
        ));
    }
    let text = format!(
        "the section length is {} where {wanted} is right; accepted as asked",
        section.len
    );
    options.note(notes, Note::new(NoteKind::LengthDefect, place, text))
}

fn read_section(source: &dyn ReadAt, section: Section) -> Result<u32, Error> {
    let mut cursor = section.cursor(source);
    expect_scalar_field(&mut cursor)?;
    let count = cursor.u32_le()?;
    if cursor.left() != 0 {
        return Err(Error::new(
            ErrorKind::BadLayout,
            format!("{HEADER_BYTES} bytes"),
            section.len.to_string(),
        ));
    }
    Ok(count)
}

/// Writes a witness as a `.wtns` file.
///
/// # Errors
/// Writing fails, or there are 2^32 or more values.
pub fn write(witness: &Witness, out: &mut dyn Write) -> Result<(), Error> {
    let mut out = Output::new(out);
    out.preamble(&WTNS, 2)?;
    out.section(HEADER, HEADER_BYTES)?;
    out.u32_le(VALUE_BYTES as u32)?;
    out.bytes(&le_bytes(&FR_MODULUS))?;
    out.count(witness.values().len(), "values")?;
    out.section(VALUES, witness.values().len() as u64 * VALUE_BYTES)?;
    for value in witness.values() {
        out.bytes(zeroize::Zeroizing::new(value.to_le_bytes()).as_slice())?;
    }
    out.finish()
}
