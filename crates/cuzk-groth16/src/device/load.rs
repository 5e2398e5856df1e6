//! Points of a prepared key's file, read into device memory: verified by all threads, copied from pinned batches
//! while the next one is read, and checked on the device.

use std::collections::VecDeque;

use cuzk_field::Affine;
use cuzk_formats::prepared::{CHUNK_BYTES, Reader, Section};
use cuzk_gpu_mem::{DeviceViewMut, Stream, Transfer};
use cuzk_kernels::{DeviceCurve, point_check};
use rayon::prelude::*;

use super::error::Result;
use super::gpu::Gpu;
use crate::error::Error;

/// Chunks of the file in a batch: 48 MiB.
const BATCH_CHUNKS: usize = 128;
/// Batches on their way while the next one is read.
const IN_FLIGHT: usize = 2;

/// Fills `target` with the points of a section. Each chunk is held against its checksum, each point against its
/// curve; infinity is kept. Returns when all is there.
///
/// # Errors
/// [`super::Error::File`] for what reading gives, and a section of another length; [`Error::Point`] for
/// coordinates that are not below p, or not of a point of the curve.
pub fn load_points<F: DeviceCurve>(
    gpu: &Gpu,
    stream: &Stream,
    reader: &Reader<'_>,
    section: Section,
    mut target: DeviceViewMut<'_, Affine<F>>,
) -> Result<()> {
    let point_bytes = size_of::<Affine<F>>();
    let (expected, found) = (target.bytes() as u64, reader.section_bytes(section));
    if found != expected {
        return Err(Error::Key {
            what: format!("its section {section:?} has {found} bytes instead of {expected}"),
        }
        .into());
    }
    let batch_len = BATCH_CHUNKS * CHUNK_BYTES / point_bytes;
    let count = target.len();
    let host = gpu.device().host();
    let label = target.label();
    // The first point of each batch that is not right.
    let batches = count.div_ceil(batch_len);
    let mut wrong = gpu.device().alloc("wrong points", batches, stream)?;
    stream.fill(&mut wrong, 0xff)?;
    let mut under_way: VecDeque<Transfer<Affine<F>>> = VecDeque::new();
    for batch in 0..batches {
        let first = batch * batch_len;
        let len = batch_len.min(count - first);
        let idle = match under_way.len() {
            0..IN_FLIGHT => None,
            _ => under_way.pop_front(),
        };
        let mut points = match idle {
            Some(transfer) => transfer.wait()?,
            None => host.pinned(label, len)?,
        };
        points.truncate(len);
        bytemuck::cast_slice_mut::<Affine<F>, u8>(&mut points)
            .par_chunks_mut(CHUNK_BYTES)
            .enumerate()
            .try_for_each(|(chunk, bytes)| {
                reader.read_chunk(section, (batch * BATCH_CHUNKS + chunk) as u64, bytes)
            })?;
        let mut part = target.reborrow().slice(first..first + len);
        under_way.push_back(stream.upload(points, part.reborrow())?);
        let word = wrong.view_mut().slice(batch..=batch);
        point_check::on_curve(gpu.launcher(), stream, part.into_view(), word)?;
    }
    let mut found = vec![u32::MAX; batches];
    stream.download_slice(&wrong, &mut found)?;
    match found.iter().position(|index| *index != u32::MAX) {
        None => Ok(()),
        Some(batch) => Err(Error::Point {
            point: format!("{section:?}[{}]", batch * batch_len + found[batch] as usize),
            what: "is not a point of its curve with coordinates below p",
        }
        .into()),
    }
}
