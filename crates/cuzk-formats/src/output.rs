//! Writing: little-endian words and iden3 section heads into any [`Write`].

use std::io::{self, Write};

use crate::container::FileType;
use crate::error::{Error, ErrorKind};

/// Bytes gathered before a write; wiped, since a witness passes through.
const BLOCK_BYTES: usize = 1 << 18;

/// Writes through one block.
pub(crate) struct Output<'a> {
    inner: &'a mut dyn Write,
    block: zeroize::Zeroizing<Vec<u8>>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(inner: &'a mut dyn Write) -> Self {
        let block = zeroize::Zeroizing::new(Vec::with_capacity(BLOCK_BYTES));
        Self { inner, block }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.block.len() + bytes.len() > BLOCK_BYTES {
            self.inner
                .write_all(&self.block)
                .map_err(|e| io_error(&e))?;
            self.block.clear();
            if bytes.len() > BLOCK_BYTES {
                return self.inner.write_all(bytes).map_err(|e| io_error(&e));
            }
        }
        self.block.extend_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn u32_le(&mut self, value: u32) -> Result<(), Error> {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64_le(&mut self, value: u64) -> Result<(), Error> {
        self.bytes(&value.to_le_bytes())
    }

    /// A count that the format holds in 32 bits.
    pub(crate) fn count(&mut self, value: usize, what: &'static str) -> Result<(), Error> {
        self.u32_le(count_u32(value, what)?)
    }

    /// Magic, version and number of sections.
    pub(crate) fn preamble(&mut self, file_type: &FileType, sections: u32) -> Result<(), Error> {
        self.bytes(&file_type.magic)?;
        self.u32_le(file_type.version)?;
        self.u32_le(sections)
    }

    /// The head of a section whose body has `len` bytes.
    pub(crate) fn section(&mut self, number: u32, len: u64) -> Result<(), Error> {
        self.u32_le(number)?;
        self.u64_le(len)
    }

    /// Passes on what is gathered.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.inner
            .write_all(&self.block)
            .and_then(|()| self.inner.flush())
            .map_err(|e| io_error(&e))
    }
}

/// A count that the format holds in 32 bits.
pub(crate) fn count_u32(value: usize, what: &'static str) -> Result<u32, Error> {
    u32::try_from(value).map_err(|_| {
        Error::new(
            ErrorKind::Unsupported,
            format!("fewer than 2^32 {what}: the format counts them in 32 bits"),
            value.to_string(),
        )
    })
}

fn io_error(error: &io::Error) -> Error {
    Error::new(
        ErrorKind::Io,
        "to write the output",
        format!("the system error: {error}"),
    )
}
