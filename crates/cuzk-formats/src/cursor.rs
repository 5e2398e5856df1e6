//! Sequential reading over a [`ReadAt`], within bounds.

use crate::error::{Error, ErrorKind};
use crate::source::ReadAt;

/// Whether `count` items of `item_bytes` fit into `left` bytes; no product overflows.
pub(crate) fn fits(count: u64, item_bytes: u64, left: u64) -> bool {
    count
        .checked_mul(item_bytes)
        .is_some_and(|bytes| bytes <= left)
}

/// A position that only moves forward, ending at `end`.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    source: &'a dyn ReadAt,
    position: u64,
    end: u64,
}

impl<'a> Cursor<'a> {
    /// Over the whole source.
    pub(crate) fn new(source: &'a dyn ReadAt) -> Self {
        Self::range(source, 0, source.len())
    }

    /// Over the bytes from `start` to `end`.
    pub(crate) fn range(source: &'a dyn ReadAt, start: u64, end: u64) -> Self {
        Self {
            source,
            position: start,
            end,
        }
    }

    /// Byte offset from the start of the source.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Bytes left before the end.
    pub(crate) fn left(&self) -> u64 {
        self.end.saturating_sub(self.position)
    }

    /// Moves on by `bytes`.
    pub(crate) fn skip(&mut self, bytes: u64) -> Result<(), Error> {
        if bytes > self.left() {
            return Err(self.too_short(bytes));
        }
        self.position += bytes;
        Ok(())
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut out = [0; N];
        self.fill(&mut out)?;
        Ok(out)
    }

    /// Fills `out` with the next bytes.
    pub(crate) fn fill(&mut self, out: &mut [u8]) -> Result<(), Error> {
        let wanted = out.len() as u64;
        if wanted > self.left() {
            return Err(self.too_short(wanted));
        }
        self.source.read_exact_at(self.position, out)?;
        self.position += wanted;
        Ok(())
    }

    /// A little-endian u32.
    pub(crate) fn u32_le(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    /// A big-endian u32.
    pub(crate) fn u32_be(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_be_bytes)
    }

    /// A little-endian u64.
    pub(crate) fn u64_le(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    fn too_short(&self, wanted: u64) -> Error {
        Error::new(
            ErrorKind::Truncated,
            format!("{wanted} more bytes at offset {}", self.position),
            format!("{}", self.left()),
        )
        .in_file(self.source.name())
    }
}
