//! iden3 `.r1cs` files, version 1.
//!
//! [`read_header`] looks at the header alone, whatever the size of the file; [`scan()`] walks the
//! constraints in constant memory; [`read`] makes an [`R1cs`] of them; [`write()`] is the inverse.

mod header;
mod scan;
mod write;

pub use header::{Header, read_header};
pub use scan::{Statistics, scan};
pub use write::write;

use crate::coefficients::{CoefficientForm, Interner, end_row_merged};
use crate::container::FileType;
use crate::error::{Error, Note};
use crate::model::{Matrix, R1cs};
use crate::options::{LoadOptions, Meter};
use crate::source::ReadAt;
use scan::Visitor;

const HEADER: u32 = 1;
const CONSTRAINTS: u32 = 2;
const LABELS: u32 = 3;
const CUSTOM_GATES: u32 = 4;
const CUSTOM_GATE_USES: u32 = 5;

pub(crate) const R1CS: FileType = FileType {
    magic: *b"r1cs",
    version: 1,
    name: "a constraint system (.r1cs)",
    sections: &[
        (HEADER, "header"),
        (CONSTRAINTS, "constraints"),
        (LABELS, "wire to label map"),
        (CUSTOM_GATES, "custom gates list"),
        (CUSTOM_GATE_USES, "custom gates application"),
    ],
};

/// Bytes of an entry of a linear combination: wire id and coefficient.
const ENTRY_BYTES: u64 = 4 + 32;
/// The least bytes of a constraint: three empty linear combinations.
const MIN_CONSTRAINT_BYTES: u64 = 3 * 4;

/// A constraint system with what its file says about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct R1csFile {
    /// Counts.
    pub header: Header,
    /// The constraints. Columns rise within each row; repeated wire ids are summed and zero
    /// coefficients left out.
    pub r1cs: R1cs,
    /// What is odd about the file.
    pub notes: Vec<Note>,
}

/// Reads a constraint system, front to back, in memory of about a third of the file.
///
/// # Errors
/// An [`Error`] with section and, for constraints, number and offset: the file is malformed, for
/// another prime, or has custom gates (which Groth16 would not enforce).
pub fn read(source: &(impl ReadAt + ?Sized), options: &LoadOptions<'_>) -> Result<R1csFile, Error> {
    read_at(&source, options).map_err(|error| error.in_file(source.name()))
}

fn read_at(source: &dyn ReadAt, options: &LoadOptions<'_>) -> Result<R1csFile, Error> {
    let mut notes = Vec::new();
    let (header, section) = header::read_parts(source, options, &mut notes)?;
    let meter = Meter::new(options, section.len);
    let rows = header.num_constraints as usize;
    let matrix = || {
        Matrix::with_row_capacity(rows)
            .map_err(|_| Error::out_of_memory(u64::from(header.num_constraints) * 4))
    };
    let mut builder = Builder {
        matrices: [matrix()?, matrix()?, matrix()?],
        interner: Interner::new(CoefficientForm::Plain),
        scratch: Vec::new(),
    };
    scan::walk(source, section, &header, &meter, &mut builder)?;
    let [a, b, c] = builder.matrices;
    let r1cs = R1cs {
        num_inputs: header.num_public() as usize + 1,
        num_variables: header.num_wires as usize,
        a,
        b,
        c,
        coefficients: builder.interner.into_table(),
    };
    Ok(R1csFile {
        header,
        r1cs,
        notes,
    })
}

struct Builder {
    matrices: [Matrix; 3],
    interner: Interner,
    scratch: Vec<(u32, u32)>,
}

impl Visitor for Builder {
    #[inline]
    fn entry(&mut self, matrix: usize, wire: u32, limbs: [u64; 4]) -> Result<(), Error> {
        if let Some(coefficient) = self.interner.index(limbs)? {
            self.matrices[matrix].push_entry(wire, coefficient);
        }
        Ok(())
    }

    #[inline]
    fn end_combination(&mut self, matrix: usize) -> Result<(), Error> {
        let matrix = &mut self.matrices[matrix];
        end_row_merged(matrix, self.interner.table_mut(), &mut self.scratch)?;
        Ok(())
    }
}
