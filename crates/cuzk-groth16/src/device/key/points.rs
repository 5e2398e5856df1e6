//! Points on their way to a device, those at infinity left out.

use std::collections::VecDeque;

use cuzk_field::Affine;
use cuzk_gpu_mem::{DeviceViewMut, Stream, Transfer};
use cuzk_kernels::DeviceCurve;
use cuzk_msm::Bases;
use rayon::prelude::*;

use super::Target;

/// Points of one copy: 24 MiB in G1.
const CHUNK: usize = 1 << 18;
/// Copies under way while the next chunk is filled.
const IN_FLIGHT: usize = 2;
/// Points filled in by one task.
const TASK: usize = 1 << 13;

/// The positions of the points that are not at infinity, in order; `None` if that is all of them.
pub(super) fn finite(count: usize, is_infinity: impl Fn(usize) -> bool + Sync) -> Option<Vec<u32>> {
    if (0..count)
        .into_par_iter()
        .with_min_len(TASK)
        .all(|i| !is_infinity(i))
    {
        return None;
    }
    let positions = (0..count)
        .into_par_iter()
        .with_min_len(TASK)
        .filter(|i| !is_infinity(*i))
        .map(|i| i as u32)
        .collect();
    Some(positions)
}

/// Puts points, or those at `positions`, where they go; to the device through two pinned buffers. Returns when the
/// last copy has been submitted.
pub(super) fn place<F: DeviceCurve>(
    stream: &Stream,
    bases: &dyn Bases<F>,
    positions: Option<&[u32]>,
    target: Target<'_, F>,
) -> cuzk_gpu_mem::Result<()> {
    match target {
        Target::Device(target) => upload(stream, bases, positions, target),
        Target::Host(target) => {
            gather(bases, positions, 0, target);
            Ok(())
        }
    }
}

fn upload<F: DeviceCurve>(
    stream: &Stream,
    bases: &dyn Bases<F>,
    positions: Option<&[u32]>,
    mut target: DeviceViewMut<'_, Affine<F>>,
) -> cuzk_gpu_mem::Result<()> {
    let host = stream.device().host();
    let label = target.label();
    let mut under_way: VecDeque<Transfer<Affine<F>>> = VecDeque::new();
    let count = target.len();
    for first in (0..count).step_by(CHUNK) {
        let len = CHUNK.min(count - first);
        let idle = match under_way.len() {
            0..IN_FLIGHT => None,
            _ => under_way.pop_front(),
        };
        let mut chunk = match idle {
            Some(transfer) => transfer.wait()?,
            None => host.pinned(label, len)?,
        };
        chunk.truncate(len);
        gather(bases, positions, first, &mut chunk);
        let part = target.reborrow().slice(first..first + len);
        under_way.push_back(stream.upload(chunk, part)?);
    }
    Ok(())
}

/// The points from the `first` on, in parallel.
fn gather<F: DeviceCurve>(
    bases: &dyn Bases<F>,
    positions: Option<&[u32]>,
    first: usize,
    target: &mut [Affine<F>],
) {
    target
        .par_chunks_mut(TASK)
        .enumerate()
        .for_each(|(task, points)| {
            let first = first + task * TASK;
            let len = points.len();
            match (positions, bases.as_points()) {
                (None, Some(all)) => points.copy_from_slice(&all[first..first + len]),
                (None, None) => {
                    for (point, i) in points.iter_mut().zip(first..) {
                        *point = bases.get(i);
                    }
                }
                (Some(positions), _) => {
                    for (point, i) in points.iter_mut().zip(&positions[first..first + len]) {
                        *point = bases.get(*i as usize);
                    }
                }
            }
        });
}

/// Which variables a query has a point for.
#[derive(Debug)]
pub(super) struct Bitmap {
    /// Bit i % 32 of word i / 32: variable i has one.
    pub(super) words: Vec<u32>,
    /// Points before each word.
    pub(super) ranks: Vec<u32>,
}

impl Bitmap {
    /// Of `variables` that rise, among `len`.
    pub(super) fn of(len: usize, variables: impl Iterator<Item = usize>) -> Self {
        let mut words = vec![0_u32; len.div_ceil(32)];
        for variable in variables {
            words[variable / 32] |= 1 << (variable % 32);
        }
        let mut before = 0;
        let ranks = words
            .iter()
            .map(|word| {
                before += word.count_ones();
                before - word.count_ones()
            })
            .collect();
        Self { words, ranks }
    }
}
