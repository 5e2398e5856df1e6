//! The iden3 binary container: magic, version, and sections in any order.

use crate::cursor::{Cursor, fits};
use crate::detect::{FileKind, guess_format, sniff};
use crate::error::{Error, ErrorKind, Note, NoteKind, Place};
use crate::options::LoadOptions;
use crate::source::ReadAt;

/// What a kind of container file looks like.
pub(crate) struct FileType {
    pub(crate) magic: [u8; 4],
    pub(crate) version: u32,
    /// "a snarkjs key (.zkey)".
    pub(crate) name: &'static str,
    /// Known sections by number and name.
    pub(crate) sections: &'static [(u32, &'static str)],
}

impl FileType {
    /// The place of section `number`.
    pub(crate) fn place(&self, number: u32) -> Place {
        Place::section(number, self.section_name(number))
    }

    fn section_name(&self, number: u32) -> &'static str {
        let known = self.sections.iter().find(|(known, _)| *known == number);
        known.map_or("unknown", |(_, name)| name)
    }
}

/// A section's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Section {
    pub(crate) number: u32,
    /// Of the body, from the start of the file.
    pub(crate) offset: u64,
    /// As the file says; within the file once [`Container::check`] has passed.
    pub(crate) len: u64,
}

impl Section {
    /// A cursor over the body.
    pub(crate) fn cursor(self, source: &dyn ReadAt) -> Cursor<'_> {
        Cursor::range(source, self.offset, self.end())
    }

    /// Behind the body.
    pub(crate) fn end(self) -> u64 {
        self.offset.saturating_add(self.len)
    }
}

/// A section of an iden3 file as the table of contents has it, for inspection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SectionInfo {
    /// Its number.
    pub number: u32,
    /// What a section of this number holds.
    pub name: &'static str,
    /// Of its body, from the start of the file.
    pub offset: u64,
    /// Bytes of its body, as the file says.
    pub bytes: u64,
}

/// The sections of an `.r1cs`, `.wtns` or `.zkey` file in the file's order, whether or not they
/// make sense. The last one may reach beyond the end of the file.
///
/// # Errors
/// The file is none of these, or its first bytes are malformed.
pub fn sections(source: &(impl ReadAt + ?Sized)) -> Result<Vec<SectionInfo>, Error> {
    let source: &dyn ReadAt = &source;
    let file_type = match sniff(source) {
        Some(FileKind::R1cs) => &crate::r1cs::R1CS,
        Some(FileKind::Wtns) => &crate::wtns::WTNS,
        _ => &crate::zkey::ZKEY,
    };
    let container =
        Container::scan(source, file_type).map_err(|error| error.in_file(source.name()))?;
    let info = |section: &Section| SectionInfo {
        number: section.number,
        name: file_type.section_name(section.number),
        offset: section.offset,
        bytes: section.len,
    };
    Ok(container.sections.iter().map(info).collect())
}

/// More sections than any tool writes; a table of 2^32 entries is not worth reading.
const MAX_SECTIONS: u32 = 1024;

/// Magic, version, count.
const PREAMBLE_BYTES: u64 = 12;
/// Number and length of a section.
const SECTION_HEAD_BYTES: u64 = 12;

/// The table of contents of a container.
pub(crate) struct Container {
    file_type: &'static FileType,
    sections: Vec<Section>,
    /// Behind the last section.
    end: u64,
    file_len: u64,
    /// What stopped the scan; the section at fault is the last of `sections`.
    fault: Option<Error>,
}

impl Container {
    /// Reads the table of contents. A section that overruns the file ends the scan and is kept as
    /// [`Self::check`]'s error, since a witness may yet be read.
    pub(crate) fn scan(source: &dyn ReadAt, file_type: &'static FileType) -> Result<Self, Error> {
        let file_len = source.len();
        if file_len < PREAMBLE_BYTES {
            return Err(Error::new(
                ErrorKind::Truncated,
                format!("{} of at least {PREAMBLE_BYTES} bytes", file_type.name),
                format!("{file_len} bytes"),
            )
            .hint("the file is too short to be anything; make it again"));
        }
        let mut cursor = Cursor::new(source);
        check_magic(source, &cursor.array()?, file_type)?;
        let version = cursor.u32_le()?;
        if version != file_type.version {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("version {}", file_type.version),
                format!("version {version}"),
            )
            .at(Place::part("file header").offset(4)));
        }
        let count = cursor.u32_le()?;
        if count > MAX_SECTIONS || !fits(u64::from(count), SECTION_HEAD_BYTES, cursor.left()) {
            return Err(Error::new(
                ErrorKind::BadLayout,
                format!("at most {MAX_SECTIONS} sections that fit into the file"),
                format!("{count} sections in a file of {file_len} bytes"),
            )
            .at(Place::part("file header").offset(8)));
        }
        let mut container = Self {
            file_type,
            sections: Vec::with_capacity(count as usize),
            end: cursor.position(),
            file_len,
            fault: None,
        };
        for index in 0..count {
            if let Err(fault) = container.scan_section(&mut cursor, index, count) {
                container.fault = Some(fault);
                break;
            }
        }
        container.end = cursor.position();
        Ok(container)
    }

    fn scan_section(
        &mut self,
        cursor: &mut Cursor<'_>,
        index: u32,
        count: u32,
    ) -> Result<(), Error> {
        let at = cursor.position();
        if cursor.left() < SECTION_HEAD_BYTES {
            return Err(Error::new(
                ErrorKind::Truncated,
                format!("{count} sections"),
                format!("the end of the file after {index}"),
            )
            .at(Place::part("section table").offset(at))
            .hint("the file is cut off; copy or make it again"));
        }
        let number = cursor.u32_le()?;
        let section = Section {
            number,
            len: cursor.u64_le()?,
            offset: cursor.position(),
        };
        self.sections.push(section);
        let left = cursor.left();
        cursor.skip(section.len).map_err(|_| {
            Error::new(
                ErrorKind::Truncated,
                format!("a section of {} bytes", section.len),
                format!("{left} bytes up to the end of the file"),
            )
            .at(self.file_type.place(number).offset(section.offset))
            .hint("the file is cut off or its length field is damaged; copy or make it again")
        })
    }

    /// Checks that all sections lie within the file, that no known one occurs twice and that
    /// nothing follows the last.
    pub(crate) fn check(
        &self,
        options: &LoadOptions<'_>,
        notes: &mut Vec<Note>,
    ) -> Result<(), Error> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        for section in &self.sections {
            let place = self.file_type.place(section.number);
            let known = self.file_type.sections.iter();
            if known.clone().any(|(number, _)| *number == section.number) {
                self.find(section.number)?;
            } else {
                let text = format!("section {} is of no known type; skipped", section.number);
                let place = place.offset(section.offset);
                options.note(notes, Note::new(NoteKind::UnknownSection, place, text))?;
            }
        }
        if self.end < self.file_len {
            let bytes = self.file_len - self.end;
            let text = format!("{bytes} bytes follow the last section; ignored");
            let place = Place::default().offset(self.end);
            options.note(notes, Note::new(NoteKind::TrailingBytes, place, text))?;
        }
        Ok(())
    }

    /// The section `number` if there is one.
    ///
    /// # Errors
    /// [`ErrorKind::BadLayout`] when there are two.
    pub(crate) fn find(&self, number: u32) -> Result<Option<Section>, Error> {
        let mut found = self.sections.iter().filter(|s| s.number == number);
        let first = found.next().copied();
        match found.next() {
            None => Ok(first),
            Some(second) => Err(Error::new(
                ErrorKind::BadLayout,
                format!("section {number} once"),
                "it twice",
            )
            .at(self.file_type.place(number).offset(second.offset))),
        }
    }

    /// The section `number`.
    ///
    /// # Errors
    /// [`ErrorKind::BadLayout`] when there is none, or two.
    pub(crate) fn require(&self, number: u32) -> Result<Section, Error> {
        self.find(number)?.ok_or_else(|| {
            let numbers: Vec<String> = self.sections.iter().map(|s| s.number.to_string()).collect();
            Error::new(
                ErrorKind::BadLayout,
                format!("section {number}"),
                format!("only the sections [{}]", numbers.join(", ")),
            )
            .at(self.file_type.place(number))
        })
    }

    /// The section `number`, whose body must have `len` bytes, the length of `meaning`.
    ///
    /// # Errors
    /// [`ErrorKind::BadLayout`] when it is missing, double or of another length.
    pub(crate) fn require_len(
        &self,
        number: u32,
        len: u64,
        meaning: impl FnOnce() -> String,
    ) -> Result<Section, Error> {
        let section = self.require(number)?;
        if section.len != len {
            return Err(Error::new(
                ErrorKind::BadLayout,
                format!("{len} bytes ({})", meaning()),
                format!("{}", section.len),
            )
            .at(self.file_type.place(number).offset(section.offset)));
        }
        Ok(section)
    }
}

fn check_magic(
    source: &dyn ReadAt,
    magic: &[u8; 4],
    file_type: &'static FileType,
) -> Result<(), Error> {
    if *magic == file_type.magic {
        return Ok(());
    }
    let found = match guess_format(source) {
        Some(format) => format.to_owned(),
        None => format!(
            "a file that begins with the bytes \"{}\"",
            magic.escape_ascii()
        ),
    };
    Err(Error::new(ErrorKind::WrongFormat, file_type.name, found)
        .hint("perhaps two file arguments are swapped"))
}
