//! The header section.

use super::{
    CONSTRAINTS, CUSTOM_GATE_USES, CUSTOM_GATES, HEADER, LABELS, MIN_CONSTRAINT_BYTES, R1CS,
};
use crate::container::{Container, Section};
use crate::cursor::fits;
use crate::error::{Error, ErrorKind, Note};
use crate::options::LoadOptions;
use crate::prime::expect_scalar_field;
use crate::source::ReadAt;

/// What the header of an `.r1cs` file says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Wires, the constant ONE included.
    pub num_wires: u32,
    /// Public outputs.
    pub num_public_outputs: u32,
    /// Public inputs.
    pub num_public_inputs: u32,
    /// Private inputs.
    pub num_private_inputs: u32,
    /// Signals of the source before simplification.
    pub num_labels: u64,
    /// Constraints.
    pub num_constraints: u32,
    /// Bytes of the constraint section.
    pub constraint_bytes: u64,
}

impl Header {
    /// Public values: outputs, then inputs, without the constant ONE.
    pub fn num_public(&self) -> u32 {
        self.num_public_outputs + self.num_public_inputs
    }
}

/// Reads the header and the table of contents, nothing else: at once for a file of any size.
///
/// # Errors
/// The file is malformed, for another prime, or has custom gates.
pub fn read_header(
    source: &(impl ReadAt + ?Sized),
    options: &LoadOptions<'_>,
) -> Result<(Header, Vec<Note>), Error> {
    let mut notes = Vec::new();
    read_parts(&source, options, &mut notes)
        .map(|(header, _)| (header, notes))
        .map_err(|error| error.in_file(source.name()))
}

/// The header and the constraint section.
pub(super) fn read_parts(
    source: &dyn ReadAt,
    options: &LoadOptions<'_>,
    notes: &mut Vec<Note>,
) -> Result<(Header, Section), Error> {
    let container = Container::scan(source, &R1CS)?;
    container.check(options, notes)?;
    let constraints = container.require(CONSTRAINTS)?;
    let section = container.require(HEADER)?;
    let header = read_section(source, section, constraints.len)
        .map_err(|error| error.at(R1CS.place(HEADER).offset(section.offset)))?;
    if !fits(
        u64::from(header.num_constraints),
        MIN_CONSTRAINT_BYTES,
        constraints.len,
    ) {
        return Err(Error::new(
            ErrorKind::BadLayout,
            format!(
                "at least {} bytes for {} constraints",
                u64::from(header.num_constraints) * MIN_CONSTRAINT_BYTES,
                header.num_constraints
            ),
            format!("{}", constraints.len),
        )
        .at(R1CS.place(CONSTRAINTS).offset(constraints.offset)));
    }
    if container.find(LABELS)?.is_some() {
        container.require_len(LABELS, u64::from(header.num_wires) * 8, || {
            format!("8 for each of {} wires", header.num_wires)
        })?;
    }
    for number in [CUSTOM_GATES, CUSTOM_GATE_USES] {
        refuse_custom_gates(source, &container, number)?;
    }
    Ok((header, constraints))
}

fn read_section(
    source: &dyn ReadAt,
    section: Section,
    constraint_bytes: u64,
) -> Result<Header, Error> {
    let mut cursor = section.cursor(source);
    expect_scalar_field(&mut cursor)?;
    let header = Header {
        num_wires: cursor.u32_le()?,
        num_public_outputs: cursor.u32_le()?,
        num_public_inputs: cursor.u32_le()?,
        num_private_inputs: cursor.u32_le()?,
        num_labels: cursor.u64_le()?,
        num_constraints: cursor.u32_le()?,
        constraint_bytes,
    };
    if cursor.left() != 0 {
        return Err(Error::new(
            ErrorKind::BadLayout,
            format!("{} bytes", section.len - cursor.left()),
            section.len.to_string(),
        ));
    }
    let named = 1
        + u64::from(header.num_public_outputs)
        + u64::from(header.num_public_inputs)
        + u64::from(header.num_private_inputs);
    if named > u64::from(header.num_wires) {
        return Err(Error::new(
            ErrorKind::Inconsistent,
            format!("at least {named} wires for ONE, outputs and inputs"),
            header.num_wires.to_string(),
        ));
    }
    Ok(header)
}

/// Groth16 setup ignores these sections, so what they say would go unenforced. An empty one holds
/// nothing, or a count of zero.
fn refuse_custom_gates(
    source: &dyn ReadAt,
    container: &Container,
    number: u32,
) -> Result<(), Error> {
    let Some(section) = container.find(number)? else {
        return Ok(());
    };
    let mut cursor = section.cursor(source);
    if section.len == 0 || (section.len == 4 && cursor.u32_le()? == 0) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Unsupported,
        "no custom gates",
        format!("a section of {} bytes", section.len),
    )
    .at(R1CS.place(number).offset(section.offset))
    .hint("custom gates are for PLONK; Groth16 would not enforce them: compile without them"))
}
