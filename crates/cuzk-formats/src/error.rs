//! The one error type of this crate: what is wrong, where, what was expected, what was found.

use std::borrow::Cow;
use std::fmt;

/// What kind of fault an [`Error`] is, for callers that act on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no file at the path.
    NotFound,
    /// The file may not be read.
    PermissionDenied,
    /// A directory.
    Directory,
    /// A device, pipe or socket: something without a fixed length.
    NotRegularFile,
    /// A file of zero bytes.
    Empty,
    /// The operating system failed to read or write.
    Io,
    /// The file became shorter while it was read.
    Shrunk,
    /// The file ends before the data that it announces.
    Truncated,
    /// The file is of another format, or of none known.
    WrongFormat,
    /// The format is known, its version or variant is not supported.
    Unsupported,
    /// The file is for another curve or field.
    WrongCurve,
    /// Sections or arrays are missing, double, or of another length than the header implies.
    BadLayout,
    /// A count, index or field of the file is out of its range.
    OutOfRange,
    /// A field element is not below its modulus.
    NotCanonical,
    /// A curve point is malformed, off the curve, outside the subgroup, or an unwanted identity.
    BadPoint,
    /// Two parts of the file, each well formed, contradict each other.
    Inconsistent,
    /// A text file is not the JSON expected, or a number in it is malformed.
    BadText,
    /// The witness is well formed but is none: its first value is not one.
    BadWitness,
    /// Bytes are not those that their checksum was made of.
    Checksum,
    /// Accepted by default with a note, refused under [`crate::LoadOptions::strict`].
    Strict,
    /// Memory for the data could not be had.
    OutOfMemory,
    /// The caller's cancel flag was set.
    Cancelled,
}

/// What a caller does about an [`Error`]; each class has one exit code in the `cuzk` binary.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorClass {
    /// A bad or unreadable input file.
    BadInput,
    /// A witness that cannot be one.
    BadWitness,
    /// Not enough memory.
    OutOfMemory,
    /// Cancelled by the caller.
    Cancelled,
}

/// Where in a file something is. Every part is optional.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Place {
    /// Number of the section, where the format numbers them.
    pub section: Option<u32>,
    /// Name of the section or array.
    pub name: Option<Cow<'static, str>>,
    /// What is counted by the index, and the index: ("entry", 17).
    pub entry: Option<(&'static str, u64)>,
    /// Byte offset from the start of the file.
    pub offset: Option<u64>,
}

impl Place {
    /// The place of a numbered section.
    pub const fn section(number: u32, name: &'static str) -> Self {
        Self {
            section: Some(number),
            name: Some(Cow::Borrowed(name)),
            entry: None,
            offset: None,
        }
    }

    /// The place of a named part of a format without numbers.
    pub const fn part(name: &'static str) -> Self {
        Self {
            section: None,
            name: Some(Cow::Borrowed(name)),
            entry: None,
            offset: None,
        }
    }

    /// This place, narrowed to an entry.
    #[must_use]
    pub fn entry(mut self, noun: &'static str, index: u64) -> Self {
        self.entry = Some((noun, index));
        self
    }

    /// This place, with the byte offset from the start of the file.
    #[must_use]
    pub fn offset(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        match (self.section, &self.name) {
            (Some(number), Some(name)) => write!(f, "section {number} ({name})")?,
            (Some(number), None) => write!(f, "section {number}")?,
            (None, Some(name)) => f.write_str(name)?,
            (None, None) => {}
        }
        if self.section.is_some() || self.name.is_some() {
            separator = ", ";
        }
        if let Some((noun, index)) = self.entry {
            write!(f, "{separator}{noun} {index}")?;
            separator = " ";
        } else if !separator.is_empty() {
            separator = " ";
        }
        if let Some(offset) = self.offset {
            write!(f, "{separator}at offset {offset}")?;
        }
        Ok(())
    }
}

/// Why a file was refused. No witness value is ever in it, only its index.
///
/// Displays as `c.zkey: section 4 (coefficients), entry 17 at offset 1234: expected a signal below
/// 305, found 4000000000`, followed by a hint where there is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(Box<Detail>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Detail {
    kind: ErrorKind,
    file: Option<String>,
    place: Place,
    expected: Cow<'static, str>,
    found: Cow<'static, str>,
    hint: Option<Cow<'static, str>>,
}

impl Error {
    /// An error of `kind`: `expected` and `found` complete the sentence "expected .., found ..".
    pub fn new(
        kind: ErrorKind,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self(Box::new(Detail {
            kind,
            file: None,
            place: Place::default(),
            expected: expected.into(),
            found: found.into(),
            hint: None,
        }))
    }

    /// The error of a cancelled read.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "to read on", "a request to cancel")
    }

    /// The error of an allocation of `bytes` that failed.
    pub fn out_of_memory(bytes: u64) -> Self {
        Self::new(
            ErrorKind::OutOfMemory,
            format!("{bytes} bytes of memory"),
            "that the allocation failed",
        )
    }

    /// This error at `place`, unless a place is known already.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        if self.0.place.is_empty() {
            self.0.place = place;
        }
        self
    }

    /// This error in `file`, unless a file is known already.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> Self {
        self.0.file.get_or_insert_with(|| file.to_owned());
        self
    }

    /// This error with advice, a sentence without the full stop.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// What kind of fault this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What a caller does about it.
    pub fn class(&self) -> ErrorClass {
        match self.0.kind {
            ErrorKind::BadWitness => ErrorClass::BadWitness,
            ErrorKind::OutOfMemory => ErrorClass::OutOfMemory,
            ErrorKind::Cancelled => ErrorClass::Cancelled,
            _ => ErrorClass::BadInput,
        }
    }

    /// The name of the file or of the bytes read.
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_deref()
    }

    /// Where in the file.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// What was expected there.
    pub fn expected(&self) -> &str {
        &self.0.expected
    }

    /// What was found there.
    pub fn found(&self) -> &str {
        &self.0.found
    }

    /// What to do about it.
    pub fn advice(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Detail {
            file,
            place,
            expected,
            found,
            hint,
            ..
        } = &*self.0;
        if let Some(file) = file {
            write!(f, "{file}: ")?;
        }
        if !place.is_empty() {
            write!(f, "{place}: ")?;
        }
        write!(f, "expected {expected}, found {found}")?;
        if let Some(hint) = hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// Something about a file that a user should know and that is no fault: data, never printed here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// What it is about.
    pub kind: NoteKind,
    /// Where in the file.
    pub place: Place,
    /// The note in words.
    pub text: String,
}

/// What a [`Note`] is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum NoteKind {
    /// Bytes follow the last part of the format.
    TrailingBytes,
    /// A ceremony transcript follows the key.
    CeremonyTail,
    /// A part that proving does not need is missing.
    MissingOptional,
    /// A public input's point is the identity: no proof binds that input.
    UnboundPublicInput,
    /// A part that this crate does not know was skipped.
    UnknownSection,
    /// A length field is wrong while the data is all there.
    LengthDefect,
    /// The file is read under another convention than the usual one of its format.
    Convention,
}

impl Note {
    /// A note.
    pub fn new(kind: NoteKind, place: Place, text: impl Into<String>) -> Self {
        Self {
            kind,
            place,
            text: text.into(),
        }
    }

    /// This note as an error, for [`crate::LoadOptions::strict`].
    pub fn into_error(self) -> Error {
        Error::new(ErrorKind::Strict, "a file without oddities", self.text)
            .at(self.place)
            .hint("refused in strict mode only")
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_as_a_sentence() {
        let error = Error::new(
            ErrorKind::OutOfRange,
            "a signal below 305",
            4_000_000_000u64.to_string(),
        )
        .at(Place::section(4, "coefficients")
            .entry("entry", 17)
            .offset(1234))
        .in_file("c.zkey");
        assert_eq!(
            error.to_string(),
            "c.zkey: section 4 (coefficients), entry 17 at offset 1234: \
             expected a signal below 305, found 4000000000"
        );
        assert_eq!(error.class(), ErrorClass::BadInput);
        assert_eq!(error.clone().at(Place::part("h")), error);
        let error = Error::new(ErrorKind::BadLayout, "x", "y")
            .at(Place::part("h").offset(7))
            .hint("do z");
        assert_eq!(
            error.to_string(),
            "h at offset 7: expected x, found y (do z)"
        );
    }
}
