//! Multiples of one point made on a device, as synthetic keys need them.
//!
//! A multiple is a bucket whose entries are the windows of its exponent: entry w is d 2^(13 w) times the
//! point, from a table, d the signed digit. The pair trees that sum the buckets of a multi-scalar
//! multiplication sum these as well.

use std::collections::VecDeque;

use cuzk_field::{Affine, Scalar, Xyzz};
use cuzk_gpu_mem::{DeviceBuf, DeviceViewMut, Stream, Transfer};
use cuzk_kernels::DeviceCurve;
use cuzk_msm::device::accumulate::{AccumulatePlan, Existing};
use rayon::prelude::*;

use super::error::Result;
use super::gpu::Gpu;

/// Bits of a window.
const WIDTH: usize = 13;
/// Points of a window's table: magnitudes 1 to 2^(WIDTH - 1).
const DIGITS: usize = 1 << (WIDTH - 1);
/// Windows of a scalar of 255 bits; the topmost has 8 bits, so the last carry has a place.
const WINDOWS: usize = 20;
/// Multiples made at once on a card: 168 MB of entries.
const CHUNK: usize = 1 << 21;
/// An index that stands for infinity: no table reaches it.
const NOTHING: u32 = (1 << 30) - 1;
/// Entries of subtracted points have this bit.
const NEGATIVE: u32 = 1 << 31;
/// Scalars of one task.
const TASK: usize = 1 << 12;

const _: () = assert!(WINDOWS * WIDTH > 256 && (WINDOWS - 1) * WIDTH < 255);

/// Multiplies one point.
pub(super) struct Generator<'g, F: DeviceCurve> {
    gpu: &'g Gpu,
    stream: &'g Stream,
    table: DeviceBuf<Affine<F>>,
    chunk: usize,
    entries: DeviceBuf<u32>,
    /// WINDOWS i for i from 0 to the chunk's length.
    offsets: DeviceBuf<u32>,
    scratch: DeviceBuf<u8>,
    under_way: VecDeque<Transfer<u32>>,
}

impl<'g, F: DeviceCurve> Generator<'g, F> {
    /// For up to `count` multiples at a time of `point`.
    pub(super) fn new(gpu: &'g Gpu, point: &Affine<F>, count: usize) -> Result<Self> {
        let (device, stream) = (gpu.device(), gpu.upload());
        let chunk = count.clamp(1, CHUNK);
        let multiples = table(point);
        let mut table = device.alloc("multiples", multiples.len(), stream)?;
        stream.upload_slice(&multiples, &mut table)?;
        let starts: Vec<u32> = (0..=chunk).map(|i| (WINDOWS * i) as u32).collect();
        let mut offsets = device.alloc("offsets", starts.len(), stream)?;
        stream.upload_slice(&starts, &mut offsets)?;
        let scratch_bytes = plan::<F>(gpu, chunk)?.scratch_bytes();
        Ok(Self {
            gpu,
            stream,
            table,
            chunk,
            entries: device.alloc("entries", WINDOWS * chunk, stream)?,
            offsets,
            scratch: device.alloc("generator", scratch_bytes, stream)?,
            under_way: VecDeque::new(),
        })
    }

    /// `target[i]` = `exponents[positions[i]]` times the point, or `exponents[i]` without positions.
    /// Returns when the last chunk has been submitted.
    pub(super) fn multiply(
        &mut self,
        exponents: &[Scalar],
        positions: Option<&[u32]>,
        mut target: DeviceViewMut<'_, Affine<F>>,
    ) -> Result<()> {
        let count = target.len();
        for first in (0..count).step_by(self.chunk) {
            let len = self.chunk.min(count - first);
            let mut entries = match self.under_way.len() {
                0 | 1 => self.gpu.device().host().pinned("entries", WINDOWS * len)?,
                _ => match self.under_way.pop_front() {
                    Some(transfer) => transfer.wait()?,
                    None => continue,
                },
            };
            if entries.len() < WINDOWS * len {
                entries = self.gpu.device().host().pinned("entries", WINDOWS * len)?;
            }
            entries.truncate(WINDOWS * len);
            entries
                .par_chunks_mut(WINDOWS * TASK)
                .enumerate()
                .for_each(|(task, entries)| {
                    for (i, entries) in (first + task * TASK..).zip(entries.chunks_mut(WINDOWS)) {
                        let exponent = match positions {
                            Some(positions) => &exponents[positions[i] as usize],
                            None => &exponents[i],
                        };
                        write_entries(exponent, entries);
                    }
                });
            let stream = self.stream;
            let mut on_device = self.entries.view_mut().slice(..WINDOWS * len);
            let transfer = stream.upload(entries, on_device.reborrow())?;
            self.under_way.push_back(transfer);
            plan::<F>(self.gpu, len)?.run(
                self.gpu.launcher(),
                stream,
                self.table.view(),
                on_device.as_view(),
                self.offsets.view().slice(..=len),
                target.reborrow().slice(first..first + len),
                Existing::Replace,
                self.scratch.view_mut(),
            )?;
        }
        Ok(())
    }
}

fn plan<F: DeviceCurve>(gpu: &Gpu, count: usize) -> Result<AccumulatePlan<F>> {
    let (info, entries) = (gpu.device().info(), WINDOWS * count);
    let plan = AccumulatePlan::with_longest(info, entries, count, WINDOWS, usize::MAX)?;
    Ok(plan)
}

/// (windows, digits): d 2^(WIDTH w) times the point at w DIGITS + d - 1.
fn table<F: DeviceCurve>(point: &Affine<F>) -> Vec<Affine<F>> {
    let mut starts = vec![Xyzz::from(*point)];
    for w in 1..WINDOWS {
        let mut start = starts[w - 1];
        for _ in 0..WIDTH {
            start = start.double();
        }
        starts.push(start);
    }
    starts
        .par_iter()
        .flat_map_iter(|start| {
            let mut multiple = *start;
            let multiples: Vec<Xyzz<F>> = (0..DIGITS)
                .map(|_| {
                    let this = multiple;
                    multiple.add_xyzz(start);
                    this
                })
                .collect();
            Xyzz::normalize_all(&multiples)
        })
        .collect()
}

/// Digits from -2^(WIDTH - 1) + 1 to 2^(WIDTH - 1), lowest first.
fn write_entries(exponent: &Scalar, entries: &mut [u32]) {
    let limbs = exponent.limbs();
    let mut carry = 0;
    for (w, entry) in entries.iter_mut().enumerate() {
        let bit = w * WIDTH;
        let (limb, shift) = (bit / 64, bit % 64);
        let mut bits = limbs.get(limb).map_or(0, |limb| limb >> shift);
        if shift > 64 - WIDTH {
            bits |= limbs.get(limb + 1).map_or(0, |limb| limb << (64 - shift));
        }
        let digit = (bits as usize & ((1 << WIDTH) - 1)) + carry;
        carry = usize::from(digit > DIGITS);
        let index = |magnitude: usize| (w * DIGITS + magnitude - 1) as u32;
        *entry = match digit {
            0 => NOTHING,
            _ if carry == 0 => index(digit),
            _ if digit == 1 << WIDTH => NOTHING,
            _ => NEGATIVE | index((1 << WIDTH) - digit),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_add_up() {
        for exponent in [
            Scalar::ZERO,
            Scalar::ONE,
            Scalar::MINUS_ONE,
            Scalar::from(1 << 12),
            Scalar::from((1 << 12) + 1),
            Scalar::from(u64::MAX),
            Scalar::from_limbs([u64::MAX; 4].map(|limb| limb >> 2)).unwrap(),
        ] {
            let mut entries = [0; WINDOWS];
            write_entries(&exponent, &mut entries);
            // As two sums, of what is added and what is subtracted.
            let mut sums = [[0_u64; 5]; 2];
            for (w, entry) in entries.iter().enumerate() {
                if *entry == NOTHING {
                    continue;
                }
                let index = (entry & !NEGATIVE) as usize;
                assert_eq!(index / DIGITS, w);
                let magnitude = (index % DIGITS + 1) as u128;
                let sum = &mut sums[usize::from(entry & NEGATIVE != 0)];
                let (limb, shift) = (w * WIDTH / 64, w * WIDTH % 64);
                let mut carry = magnitude << shift;
                for limb in &mut sum[limb..] {
                    carry += u128::from(*limb);
                    *limb = carry as u64;
                    carry >>= 64;
                }
            }
            let mut borrow = false;
            for ((plus, minus), expected) in sums[0]
                .iter()
                .zip(sums[1])
                .zip(exponent.limbs().iter().chain([&0]))
            {
                let (difference, a) = plus.overflowing_sub(minus);
                let (difference, b) = difference.overflowing_sub(u64::from(borrow));
                borrow = a || b;
                assert_eq!(difference, *expected);
            }
            assert!(!borrow);
        }
    }
}
