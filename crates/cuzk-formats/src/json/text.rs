//! A pull parser for JSON text, in place and without a tree.
//!
//! A tree of values would multiply a hostile file in memory and lose the offsets that errors name.
//! Here nothing is kept but what the reader takes. The grammar is that of RFC 8259; on top of it
//! member names and values that are looked at may hold no escapes (no tool writes any there), so
//! that one text cannot be read in two ways.

use crate::error::{Error, ErrorKind, Place};

/// How deep values that are skipped may nest.
const DEPTH_MAX: u32 = 64;

/// A position in a text, and the part of the file that errors name.
pub(super) struct Parser<'a> {
    text: &'a str,
    position: usize,
    part: &'static str,
    entry: Option<(&'static str, u64)>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            Error::new(ErrorKind::BadText, "UTF-8 text", "other bytes")
                .at(Place::default().offset(error.valid_up_to() as u64))
        })?;
        Ok(Self {
            text,
            position: 0,
            part: "",
            entry: None,
        })
    }

    /// Names the part that is read next.
    pub(super) fn enter(&mut self, part: &'static str) {
        self.part = part;
        self.entry = None;
    }

    /// Names the entry of the part.
    pub(super) fn entry(&mut self, noun: &'static str, index: u64) {
        self.entry = Some((noun, index));
    }

    /// The place of the next token.
    pub(super) fn place(&self) -> Place {
        let place = if self.part.is_empty() {
            Place::default()
        } else {
            Place::part(self.part)
        };
        let place = place.offset(self.position as u64);
        match self.entry {
            Some((noun, index)) => place.entry(noun, index),
            None => place,
        }
    }

    pub(super) fn error(
        &self,
        kind: ErrorKind,
        expected: impl Into<std::borrow::Cow<'static, str>>,
        found: impl Into<std::borrow::Cow<'static, str>>,
    ) -> Error {
        Error::new(kind, expected, found).at(self.place())
    }

    /// An error of kind [`ErrorKind::BadText`] that names the next token.
    fn unexpected(&self, expected: &'static str) -> Error {
        let found = match self.byte() {
            None => "the end of the text",
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a string",
            Some(b'-' | b'0'..=b'9') => "a number without quotes",
            Some(b't' | b'f' | b'n') => "a literal",
            Some(0) => {
                return self
                    .error(ErrorKind::BadText, expected, "a zero byte")
                    .hint("some tools leave zero bytes behind the text: cut them off");
            }
            Some(byte) => {
                let found = match self.text[self.position..].chars().next() {
                    Some(c) if !c.is_control() => format!("the character '{c}'"),
                    _ => format!("the byte 0x{byte:02x}"),
                };
                return self.error(ErrorKind::BadText, expected, found);
            }
        };
        self.error(ErrorKind::BadText, expected, found)
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
    }

    /// The first byte of the next token.
    pub(super) fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.byte()
    }

    /// Takes `byte` if it is the next token.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.position += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), Error> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.unexpected(expected))
        }
    }

    /// That nothing follows.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        self.enter("");
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end of the text")),
        }
    }

    /// An object: `member` is called with each name and reads the value.
    pub(super) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.expect(b'{', "an object")?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a member name in quotes"));
            }
            let name = self.plain_string("a member name")?;
            self.expect(b':', "a colon")?;
            member(self, name)?;
            if self.take(b'}') {
                return Ok(());
            }
            self.expect(b',', "a comma or the end of the object")?;
        }
    }

    /// An array: `element` is called with each index and reads the value. Returns the length.
    pub(super) fn array(
        &mut self,
        expected: &'static str,
        mut element: impl FnMut(&mut Self, u64) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        self.expect(b'[', expected)?;
        if self.take(b']') {
            return Ok(0);
        }
        let mut length = 0;
        loop {
            element(self, length)?;
            length += 1;
            if self.take(b']') {
                return Ok(length);
            }
            self.expect(b',', "a comma or the end of the array")?;
        }
    }

    /// An array of exactly `N` elements.
    pub(super) fn fixed_array<T: Copy + Default, const N: usize>(
        &mut self,
        expected: &'static str,
        mut element: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<[T; N], Error> {
        let mut out = [T::default(); N];
        let start = self.place();
        let wrong = |found: String| Error::new(ErrorKind::BadText, expected, found).at(start);
        let mut read = 0;
        self.array(expected, |parser, _| {
            if read == N {
                return Err(parser.error(ErrorKind::BadText, expected, "more elements"));
            }
            out[read] = element(parser)?;
            read += 1;
            Ok(())
        })?;
        if read < N {
            return Err(wrong(format!("{read} elements")));
        }
        Ok(out)
    }

    /// A string without escapes.
    pub(super) fn plain_string(&mut self, what: &'static str) -> Result<&'a str, Error> {
        let start = self.position;
        let raw = self.string(what)?;
        if raw.contains('\\') {
            self.position = start;
            return Err(self.error(
                ErrorKind::BadText,
                format!("{what} without escapes"),
                "a backslash",
            ));
        }
        Ok(raw)
    }

    /// A string as it stands between its quotes, escapes included.
    fn string(&mut self, what: &'static str) -> Result<&'a str, Error> {
        self.expect(b'"', what)?;
        let start = self.position;
        loop {
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(0x20..) => self.position += 1,
                _ => return Err(self.unexpected("the end of the string")),
            }
        }
        // Quotes and backslashes are ASCII, so both ends are character boundaries.
        let raw = &self.text[start..self.position];
        self.position += 1;
        Ok(raw)
    }

    fn escape(&mut self) -> Result<(), Error> {
        self.position += 1;
        let length = match self.byte() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 1,
            Some(b'u') => {
                let digits = self
                    .text
                    .as_bytes()
                    .get(self.position + 1..self.position + 5);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(self.unexpected("four hexadecimal digits after \\u"));
                }
                5
            }
            _ => return Err(self.unexpected("an escape of JSON")),
        };
        self.position += length;
        Ok(())
    }

    /// A whole number without quotes.
    pub(super) fn small_integer(&mut self) -> Result<u64, Error> {
        self.skip_space();
        let start = self.position;
        self.number()?;
        let digits = &self.text[start..self.position];
        digits.parse().map_err(|_| {
            self.position = start;
            self.error(
                ErrorKind::OutOfRange,
                "a whole number",
                digits.chars().take(32).collect::<String>(),
            )
        })
    }

    /// Takes the literal `null` if it is next.
    pub(super) fn null(&mut self) -> bool {
        self.peek();
        let is_next = self.text[self.position..].starts_with("null");
        self.position += if is_next { 4 } else { 0 };
        is_next
    }

    /// Passes over one value.
    pub(super) fn skip_value(&mut self) -> Result<(), Error> {
        self.skip_nested(DEPTH_MAX)
    }

    fn skip_nested(&mut self, depth_left: u32) -> Result<(), Error> {
        let Some(deeper) = depth_left.checked_sub(1) else {
            return Err(self.unexpected("values nested less deeply"));
        };
        match self.peek() {
            Some(b'{') => self.object(|parser, _| parser.skip_nested(deeper)),
            Some(b'[') => self
                .array("an array", |parser, _| parser.skip_nested(deeper))
                .map(drop),
            Some(b'"') => self.string("a string").map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                let rest = &self.text[self.position..];
                match ["true", "false", "null"]
                    .iter()
                    .find(|literal| rest.starts_with(**literal))
                {
                    Some(literal) => {
                        self.position += literal.len();
                        Ok(())
                    }
                    None => Err(self.unexpected("a value")),
                }
            }
        }
    }

    /// -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)?
    fn number(&mut self) -> Result<(), Error> {
        self.position += usize::from(self.byte() == Some(b'-'));
        if self.byte() == Some(b'0') {
            self.position += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.position += 1;
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.position += 1;
            self.position += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Error> {
        if !matches!(self.byte(), Some(b'0'..=b'9')) {
            return Err(self.unexpected("a number"));
        }
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.position += 1;
        }
        Ok(())
    }
}
