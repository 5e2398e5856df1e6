//! Arrays of fixed-width items, decoded by all cores straight into their place.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::cursor::fits;
use crate::error::{Error, ErrorKind, Place};
use crate::options::Meter;
use crate::source::ReadAt;

/// Items per read: 400 KB of G1 points, so that reading and decoding overlap between threads and a
/// thread's buffer stays in its cache.
const BLOCK_ITEMS: u64 = 4096;
/// Items between two looks at whether one has failed: a hundred blocks for each of many cores, so
/// that waiting for the last is no loss. A multiple of [`BLOCK_ITEMS`].
const STRETCH_ITEMS: usize = 1 << 20;

/// An array within a source.
pub(crate) struct ItemArray<'a> {
    pub(crate) source: &'a dyn ReadAt,
    /// Of the first item.
    pub(crate) offset: u64,
    pub(crate) count: u64,
    pub(crate) item_bytes: usize,
    /// What the items are called in errors.
    pub(crate) nouns: &'static str,
    /// Where errors say the array is.
    pub(crate) place: &'a Place,
    /// The label of its progress.
    pub(crate) label: &'static str,
}

impl ItemArray<'_> {
    /// Reads every item and decodes it, as [`Self::read_into`] does.
    pub(crate) fn read<T, D>(
        &self,
        filler: T,
        meter: &Meter<'_>,
        decode: D,
    ) -> Result<Vec<T>, Error>
    where
        T: Copy + Send + Sync,
        D: Fn(&[u8], u64) -> Result<T, Error> + Sync,
    {
        let mut items = Vec::new();
        self.read_into(&mut items, filler, meter, decode)?;
        Ok(items)
    }

    /// Reads every item and decodes it into `items`, which is empty; `filler` stands for items not
    /// decoded because another failed. Memory is the result and one block per thread; the blocks
    /// are wiped. After an error some items may have been decoded: a caller with secrets wipes them.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] when the source cannot hold the array (nothing is allocated then),
    /// else the error of the first item at fault.
    pub(crate) fn read_into<T, D>(
        &self,
        items: &mut Vec<T>,
        filler: T,
        meter: &Meter<'_>,
        decode: D,
    ) -> Result<(), Error>
    where
        T: Copy + Send + Sync,
        D: Fn(&[u8], u64) -> Result<T, Error> + Sync,
    {
        let left = self.source.len().saturating_sub(self.offset);
        if !fits(self.count, self.item_bytes as u64, left) {
            return Err(Error::new(
                ErrorKind::Truncated,
                format!("{} {} of {} bytes", self.count, self.nouns, self.item_bytes),
                format!("{left} bytes up to the end of the file"),
            )
            .at(self.place.clone().offset(self.offset)));
        }
        let memory_bytes = self.count.saturating_mul(size_of::<T>() as u64);
        let count = usize::try_from(self.count).map_err(|_| Error::out_of_memory(memory_bytes))?;
        items
            .try_reserve_exact(count)
            .map_err(|_| Error::out_of_memory(memory_bytes))?;
        let failure = FirstFailure::default();
        for start in (0..count).step_by(STRETCH_ITEMS) {
            let end = count.min(start + STRETCH_ITEMS);
            let stretch = (start..end)
                .into_par_iter()
                .with_min_len(BLOCK_ITEMS as usize / 4)
                .map_init(
                    || Block::new(self),
                    |block, index| {
                        self.item(block, index as u64, &failure, meter, &decode)
                            .unwrap_or(filler)
                    },
                );
            items.par_extend(stretch);
            if failure.has_occurred() {
                break;
            }
        }
        match failure.into_error() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Item `index`; `None` when it is at fault or one before it is.
    #[inline]
    fn item<T>(
        &self,
        block: &mut Block,
        index: u64,
        failure: &FirstFailure,
        meter: &Meter<'_>,
        decode: impl Fn(&[u8], u64) -> Result<T, Error>,
    ) -> Option<T> {
        if failure.is_before(index) {
            return None;
        }
        block
            .load(self, index, meter)
            .and_then(|bytes| decode(bytes, index))
            .map_err(|error| failure.record(index, error))
            .ok()
    }
}

/// The block of encoded items that a thread holds.
struct Block {
    number: Option<u64>,
    /// Never reallocated, so that what it held is wiped.
    bytes: Zeroizing<Vec<u8>>,
}

impl Block {
    fn new(array: &ItemArray<'_>) -> Self {
        let bytes = BLOCK_ITEMS.min(array.count) as usize * array.item_bytes;
        Self {
            number: None,
            bytes: Zeroizing::new(vec![0; bytes]),
        }
    }

    /// The bytes of item `index`; reads its block when another is held.
    fn load(
        &mut self,
        array: &ItemArray<'_>,
        index: u64,
        meter: &Meter<'_>,
    ) -> Result<&[u8], Error> {
        let item_bytes = array.item_bytes;
        let number = index / BLOCK_ITEMS;
        let start = number * BLOCK_ITEMS;
        if self.number != Some(number) {
            let len = BLOCK_ITEMS.min(array.count - start) as usize * item_bytes;
            self.number = None;
            let offset = array.offset + start * item_bytes as u64;
            array.source.read_exact_at(offset, &mut self.bytes[..len])?;
            self.number = Some(number);
            // Threads may share a block where their ranges meet; only its first item counts it.
            let counted = if index == start { len as u64 } else { 0 };
            meter.advance(array.label, counted)?;
        }
        let at = (index - start) as usize * item_bytes;
        Ok(&self.bytes[at..at + item_bytes])
    }
}

/// The failure with the smallest index of several threads' work.
#[derive(Default)]
struct FirstFailure {
    /// 1 + the smallest index that failed; 0 for none.
    bound: AtomicU64,
    error: Mutex<Option<(u64, Error)>>,
}

impl FirstFailure {
    fn has_occurred(&self) -> bool {
        self.bound.load(Ordering::Relaxed) != 0
    }

    fn is_before(&self, index: u64) -> bool {
        let bound = self.bound.load(Ordering::Relaxed);
        bound != 0 && index >= bound
    }

    fn record(&self, index: u64, error: Error) {
        // Nothing is worth reading after a cancellation.
        let index = if error.kind() == ErrorKind::Cancelled {
            0
        } else {
            index
        };
        let mut held = self
            .error
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if held.as_ref().is_none_or(|(first, _)| index < *first) {
            *held = Some((index, error));
            self.bound.store(index + 1, Ordering::Relaxed);
        }
    }

    fn into_error(self) -> Option<Error> {
        self.error
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .map(|(_, error)| error)
    }
}
