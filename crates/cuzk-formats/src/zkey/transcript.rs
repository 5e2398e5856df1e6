//! The ceremony transcript, as far as an inspection shows it.

use crate::container::Section;
use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Place};
use crate::source::ReadAt;

/// Points and hash of a contribution: three G1, one G2, 64 bytes.
const CONTRIBUTION_BYTES: u64 = 3 * 96 + 192 + 64;
/// Type and parameter length follow.
const CONTRIBUTION_TAIL_BYTES: u64 = 4 + 4;

/// What section 10 says. The contributions' points are not checked: a prover does not use them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transcript {
    /// The hash of the circuit.
    pub circuit_hash: [u8; 64],
    /// Contributions to the key.
    pub num_contributions: u32,
    /// Those of them that are random beacons.
    pub num_beacons: u32,
    /// Offset of the section in the file.
    pub offset: u64,
}

impl Transcript {
    /// Walks the section, which must be used up.
    pub(super) fn read(source: &dyn ReadAt, section: Section) -> Result<Self, Error> {
        let mut cursor = section.cursor(source);
        let circuit_hash = cursor.array()?;
        let num_contributions = cursor.u32_le()?;
        let mut num_beacons = 0;
        for index in 0..num_contributions {
            num_beacons += u32::from(contribution(&mut cursor, index)?);
        }
        if cursor.left() != 0 {
            return Err(Error::new(
                ErrorKind::BadLayout,
                format!("{num_contributions} contributions to fill the section"),
                format!("{} bytes left over", cursor.left()),
            ));
        }
        Ok(Self {
            circuit_hash,
            num_contributions,
            num_beacons,
            offset: section.offset,
        })
    }
}

/// Whether it is a beacon.
fn contribution(cursor: &mut Cursor<'_>, index: u32) -> Result<bool, Error> {
    // In one comparison, so that a hostile count ends at once.
    if cursor.left() < CONTRIBUTION_BYTES + CONTRIBUTION_TAIL_BYTES {
        return Err(Error::new(
            ErrorKind::Truncated,
            format!("contribution {index}"),
            format!("{} bytes up to the end of the section", cursor.left()),
        ));
    }
    cursor.skip(CONTRIBUTION_BYTES)?;
    let offset = cursor.position();
    let kind = cursor.u32_le()?;
    if kind > 1 {
        return Err(Error::new(
            ErrorKind::OutOfRange,
            "a contribution of type 0 or 1",
            kind.to_string(),
        )
        .at(Place::default().offset(offset)));
    }
    let parameter_bytes = cursor.u32_le()?;
    cursor.skip(u64::from(parameter_bytes))?;
    Ok(kind == 1)
}
