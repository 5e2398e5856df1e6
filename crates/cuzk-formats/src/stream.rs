//! A range of a source read front to back through one block.

use crate::error::{Error, ErrorKind};
use crate::options::Meter;
use crate::source::ReadAt;

const BLOCK_BYTES: usize = 1 << 18;

/// Small records taken one after the other; reports progress and can be cancelled at each block.
pub(crate) struct Stream<'a> {
    source: &'a dyn ReadAt,
    /// Offset in the source behind the bytes that `block` holds.
    read_to: u64,
    end: u64,
    block: Vec<u8>,
    /// The unread part of `block`.
    at: usize,
    filled: usize,
    meter: &'a Meter<'a>,
    label: &'static str,
}

impl<'a> Stream<'a> {
    /// Over the bytes from `start` to `end`, which lie within the source.
    pub(crate) fn new(
        source: &'a dyn ReadAt,
        start: u64,
        end: u64,
        meter: &'a Meter<'a>,
        label: &'static str,
    ) -> Self {
        let block_bytes = end.saturating_sub(start).min(BLOCK_BYTES as u64) as usize;
        Self {
            source,
            read_to: start,
            end,
            block: vec![0; block_bytes],
            at: 0,
            filled: 0,
            meter,
            label,
        }
    }

    /// Offset in the source of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.read_to - (self.filled - self.at) as u64
    }

    /// Bytes not taken yet.
    pub(crate) fn left(&self) -> u64 {
        self.end - self.offset()
    }

    /// The next `N` bytes, `N` being far below a block.
    #[inline]
    pub(crate) fn take<const N: usize>(&mut self) -> Result<&[u8; N], Error> {
        if self.filled - self.at < N {
            self.refill(N)?;
        }
        let at = self.at;
        self.at += N;
        // The slice has N bytes: `refill` saw to it.
        Ok(self.block[at..]
            .first_chunk()
            .expect("a block holds a record"))
    }

    #[cold]
    fn refill(&mut self, wanted: usize) -> Result<(), Error> {
        if wanted as u64 > self.left() {
            return Err(Error::new(
                ErrorKind::Truncated,
                format!("{wanted} more bytes at offset {}", self.offset()),
                format!("{}", self.left()),
            ));
        }
        self.block.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        let room = (self.block.len() - self.filled) as u64;
        let bytes = room.min(self.end - self.read_to) as usize;
        let filled = self.filled;
        self.source
            .read_exact_at(self.read_to, &mut self.block[filled..filled + bytes])?;
        self.filled += bytes;
        self.read_to += bytes as u64;
        self.meter.advance(self.label, bytes as u64)
    }
}

/// Little-endian u32 at the start of `bytes`, which holds at least four.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes[at..].first_chunk().expect("four bytes");
    u32::from_le_bytes(*word)
}

/// 32 little-endian bytes at `at` as limbs, least significant first.
#[inline]
pub(crate) fn limbs_at(bytes: &[u8], at: usize) -> [u64; 4] {
    let (words, _) = bytes[at..at + 32].as_chunks::<8>();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}
