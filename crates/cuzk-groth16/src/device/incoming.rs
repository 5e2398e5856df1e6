//! What a proof brings to the device: staged before its compute section where the plan has room, else
//! uploaded inside.

use cuzk_field::{Fr, Scalar};
use cuzk_gpu_mem::{
    Admission, Compute, Lent, PinnedBuf, Pod, Result, Scoped, Staged, StagingRequest, Stream,
};
use cuzk_kernels::witness::PackedWitness;

use super::witness::PinnedWitness;

/// One array on its way.
#[derive(Debug)]
enum Array<T: Pod> {
    /// Its copy is under way or done, on the upload stream.
    Staged(Staged<T>),
    /// To be copied inside the section.
    Pinned(&'static str, PinnedBuf<T>),
}

fn request<T: Pod>(label: &'static str, array: &[T]) -> StagingRequest {
    StagingRequest {
        label,
        bytes: size_of_val(array) as u64,
    }
}

impl<T: Pod> Array<T> {
    /// Begins the copy if the array was promised room.
    fn stage(
        admission: &mut Admission,
        upload: &Stream,
        label: &'static str,
        source: PinnedBuf<T>,
    ) -> Result<Self> {
        let Some(mut staged) = admission.stage(label, source.len(), upload)? else {
            return Ok(Self::Pinned(label, source));
        };
        staged.mark_secret();
        // The buffer goes back to the pool behind the copy; the section waits for it on the device.
        drop(staged.upload(0, source)?);
        Ok(Self::Staged(staged))
    }

    fn enter<'cx>(self, cx: &Compute<'cx>) -> Result<Scoped<'cx, T>> {
        match self {
            Self::Staged(staged) => cx.enter(staged),
            Self::Pinned(label, source) => {
                let mut array = cx.alloc(label, source.len())?;
                array.mark_secret();
                drop(cx.stream().upload(source, &mut array)?);
                Ok(array)
            }
        }
    }
}

/// A packed witness on its way.
#[derive(Debug)]
pub(super) struct IncomingWitness {
    bits: Array<u64>,
    ranks: Array<u32>,
    full: Array<Scalar>,
}

const BITS: &str = "witness bits";
const RANKS: &str = "witness ranks";
const FULL: &str = "witness values";

impl IncomingWitness {
    pub(super) fn requests(witness: &PinnedWitness) -> [StagingRequest; 3] {
        [
            request(BITS, &witness.bits),
            request(RANKS, &witness.ranks),
            request(FULL, &witness.full),
        ]
    }

    pub(super) fn stage(
        admission: &mut Admission,
        upload: &Stream,
        witness: PinnedWitness,
    ) -> Result<Self> {
        Ok(Self {
            bits: Array::stage(admission, upload, BITS, witness.bits)?,
            ranks: Array::stage(admission, upload, RANKS, witness.ranks)?,
            full: Array::stage(admission, upload, FULL, witness.full)?,
        })
    }

    pub(super) fn enter<'cx>(self, cx: &Compute<'cx>) -> Result<WitnessInside<'cx>> {
        Ok(WitnessInside {
            bits: self.bits.enter(cx)?,
            ranks: self.ranks.enter(cx)?,
            full: self.full.enter(cx)?,
        })
    }
}

/// A packed witness in a compute section.
#[derive(Debug)]
pub(super) struct WitnessInside<'cx> {
    bits: Scoped<'cx, u64>,
    ranks: Scoped<'cx, u32>,
    full: Scoped<'cx, Scalar>,
}

/// A witness lent to several streams.
pub(super) struct LentWitness<'a> {
    bits: Lent<'a, u64>,
    ranks: Lent<'a, u32>,
    full: Lent<'a, Scalar>,
}

impl LentWitness<'_> {
    pub(super) fn view(&self) -> PackedWitness<'_> {
        PackedWitness {
            bits: self.bits.view(),
            ranks: self.ranks.view(),
            full: self.full.view(),
        }
    }
}

impl WitnessInside<'_> {
    pub(super) fn lend(&self, streams: &[&Stream]) -> Result<LentWitness<'_>> {
        Ok(LentWitness {
            bits: self.bits.view().lend(streams)?,
            ranks: self.ranks.view().lend(streams)?,
            full: self.full.view().lend(streams)?,
        })
    }

    pub(super) fn view(&self) -> PackedWitness<'_> {
        PackedWitness {
            bits: self.bits.view(),
            ranks: self.ranks.view(),
            full: self.full.view(),
        }
    }
}

/// Rows that the caller has evaluated, in pinned memory, on their way.
#[derive(Debug)]
pub(super) struct IncomingRows {
    a: Array<Fr>,
    b: Array<Fr>,
}

/// A w and B w in pinned memory.
#[derive(Debug)]
pub(super) struct HostRows {
    pub(super) a: PinnedBuf<Fr>,
    pub(super) b: PinnedBuf<Fr>,
}

impl IncomingRows {
    pub(super) fn requests(rows: &HostRows) -> [StagingRequest; 2] {
        [request("d_a", &rows.a), request("d_b", &rows.b)]
    }

    pub(super) fn stage(
        admission: &mut Admission,
        upload: &Stream,
        rows: HostRows,
    ) -> Result<Self> {
        Ok(Self {
            a: Array::stage(admission, upload, "d_a", rows.a)?,
            b: Array::stage(admission, upload, "d_b", rows.b)?,
        })
    }

    pub(super) fn enter<'cx>(self, cx: &Compute<'cx>) -> Result<[Scoped<'cx, Fr>; 2]> {
        Ok([self.a.enter(cx)?, self.b.enter(cx)?])
    }
}
