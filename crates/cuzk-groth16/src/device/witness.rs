//! The witness on its way to a device: bits as two bitmaps, the other values packed.

use cuzk_field::Scalar;
use cuzk_gpu_mem::{DeviceBuf, HostMemory, PinnedBuf, Pod, Stream};
use cuzk_kernels::witness::{PackedWitness, WORD, full_of, ones_of, places, word_of};
use rayon::prelude::*;

/// Words packed by one task: 2^14 variables, half a megabyte of witness.
const TASK_WORDS: usize = 512;

/// A witness in pinned memory as [`cuzk_kernels::witness::PackedWitness`] has it on the device: a
/// thirtieth of its size where nearly all values are bits. Wiped before the memory is used again.
#[derive(Debug)]
pub struct PinnedWitness {
    pub(crate) bits: PinnedBuf<u64>,
    pub(crate) ranks: PinnedBuf<u32>,
    pub(crate) full: PinnedBuf<Scalar>,
    variables: usize,
    ones: usize,
}

impl PinnedWitness {
    /// Packs `values`, in parallel; it reads them once, and those that are not bits twice.
    ///
    /// # Errors
    /// When the pinned pool has no room.
    ///
    /// # Panics
    /// When there are 2^32 values or more.
    pub fn pack(host: &HostMemory, values: &[Scalar]) -> cuzk_gpu_mem::Result<Self> {
        assert!(u32::try_from(values.len()).is_ok(), "2^32 variables");
        let words = values.len().div_ceil(WORD);
        let mut bits = host.pinned::<u64>("witness bits", words)?;
        let mut ranks = host.pinned::<u32>("witness ranks", words)?;
        bits.mark_secret();
        ranks.mark_secret();
        let counts: Vec<[usize; 2]> = bits
            .par_chunks_mut(TASK_WORDS)
            .zip(values.par_chunks(TASK_WORDS * WORD))
            .map(|(bits, values)| classify(values, bits))
            .collect();
        let ones = counts.iter().map(|[ones, _]| ones).sum();
        let num_full = counts.iter().map(|[_, full]| full).sum();
        let mut full = host.pinned::<Scalar>("witness values", num_full)?;
        full.mark_secret();
        let mut first = 0;
        let mut rest: &mut [Scalar] = &mut full;
        let shares: Vec<(usize, &mut [Scalar])> = counts
            .iter()
            .map(|[_, count]| {
                let (share, others) = std::mem::take(&mut rest).split_at_mut(*count);
                rest = others;
                first += count;
                (first - count, share)
            })
            .collect();
        bits.par_chunks(TASK_WORDS)
            .zip(ranks.par_chunks_mut(TASK_WORDS))
            .zip(values.par_chunks(TASK_WORDS * WORD))
            .zip(shares)
            .for_each(|(((bits, ranks), values), (first, full))| {
                gather(values, bits, first as u32, ranks, full);
            });
        Ok(Self {
            bits,
            ranks,
            full,
            variables: values.len(),
            ones,
        })
    }

    /// Uploads it, asynchronously, into memory of its own.
    ///
    /// # Errors
    /// When the device has no room.
    pub fn upload(self, stream: &Stream) -> cuzk_gpu_mem::Result<DeviceWitness> {
        Ok(DeviceWitness {
            bits: send(stream, "witness bits", self.bits)?,
            ranks: send(stream, "witness ranks", self.ranks)?,
            full: send(stream, "witness values", self.full)?,
        })
    }

    /// Variables.
    pub fn len(&self) -> usize {
        self.variables
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.variables == 0
    }

    /// Values that are neither zero nor one.
    pub fn num_full(&self) -> usize {
        self.full.len()
    }

    /// Values that are one.
    pub fn num_ones(&self) -> usize {
        self.ones
    }

    /// Bytes that are uploaded.
    pub fn bytes(&self) -> u64 {
        (size_of_val(&*self.bits) + size_of_val(&*self.ranks) + size_of_val(&*self.full)) as u64
    }
}

/// A witness on the device. Wiped before its memory is used again.
#[derive(Debug)]
pub struct DeviceWitness {
    bits: DeviceBuf<u64>,
    ranks: DeviceBuf<u32>,
    full: DeviceBuf<Scalar>,
}

impl DeviceWitness {
    /// What kernels read.
    pub fn view(&self) -> PackedWitness<'_> {
        PackedWitness {
            bits: self.bits.view(),
            ranks: self.ranks.view(),
            full: self.full.view(),
        }
    }
}

/// A resident copy of a pinned buffer; the buffer goes back to its pool behind the copy.
fn send<T: Pod>(
    stream: &Stream,
    label: &'static str,
    source: PinnedBuf<T>,
) -> cuzk_gpu_mem::Result<DeviceBuf<T>> {
    let mut target = stream.device().alloc(label, source.len(), stream)?;
    target.mark_secret();
    drop(stream.upload(source, &mut target)?);
    Ok(target)
}

/// Fills the bitmaps of `values`; returns how many are one, and how many neither zero nor one.
fn classify(values: &[Scalar], bits: &mut [u64]) -> [usize; 2] {
    let mut counts = [0; 2];
    for (word, values) in bits.iter_mut().zip(values.chunks(WORD)) {
        *word = word_of(values);
        counts[0] += ones_of(*word).count_ones() as usize;
        counts[1] += full_of(*word).count_ones() as usize;
    }
    counts
}

/// Copies the values that the bitmaps name, of which `first` come before.
fn gather(values: &[Scalar], bits: &[u64], first: u32, ranks: &mut [u32], full: &mut [Scalar]) {
    let mut next = 0;
    for ((word, rank), values) in bits.iter().zip(ranks).zip(values.chunks(WORD)) {
        *rank = first + next as u32;
        for place in places(full_of(*word)) {
            full[next] = values[place];
            next += 1;
        }
    }
}
