//! Synthetic keys made on a device and brought back to the host.

use cuzk_field::{Affine, G1Affine, G2Affine, Scalar};
use cuzk_formats::ProvingKey;
use cuzk_gpu_mem::{DeviceBuf, Transfer};
use cuzk_kernels::DeviceCurve;

use super::error::Result;
use super::generator::Generator;
use super::gpu::Gpu;
use crate::synth::KeyExponents;

/// Points of one piece: 100 MB in G1.
const PIECE: usize = 1 << 20;

/// The key that [`KeyExponents::points`] gives, made on a device: minutes for 2^27 rows where a host
/// takes hours.
///
/// # Errors
/// When the device has no room for some 1 GiB, or fails.
pub fn synthetic_key(gpu: &Gpu, exponents: &KeyExponents) -> Result<ProvingKey> {
    let counts = [&exponents.a, &exponents.b, &exponents.h, &exponents.l].map(Vec::len);
    let most = counts.into_iter().max().unwrap_or(0);
    let mut g1 = Multiples::new(gpu, &G1Affine::generator(), most)?;
    exponents.points_by(
        |exponents| g1.of(exponents),
        |exponents| Multiples::new(gpu, &G2Affine::generator(), exponents.len())?.of(exponents),
    )
}

/// Makes multiples of one point piece by piece.
struct Multiples<'g, F: DeviceCurve> {
    gpu: &'g Gpu,
    generator: Generator<'g, F>,
    piece: DeviceBuf<Affine<F>>,
}

impl<'g, F: DeviceCurve> Multiples<'g, F> {
    fn new(gpu: &'g Gpu, point: &Affine<F>, most: usize) -> Result<Self> {
        let piece = most.clamp(1, PIECE);
        Ok(Self {
            gpu,
            generator: Generator::new(gpu, point, piece)?,
            piece: gpu.device().alloc("multiples", piece, gpu.keys())?,
        })
    }

    fn of(&mut self, exponents: &[Scalar]) -> Result<Vec<Affine<F>>> {
        let (stream, host) = (self.gpu.keys(), self.gpu.device().host());
        let mut points = Vec::new();
        points
            .try_reserve_exact(exponents.len())
            .map_err(|_| cuzk_gpu_mem::Error::HostMemory {
                label: "points of a synthetic key",
                requested: size_of::<Affine<F>>() as u64 * exponents.len() as u64,
            })?;
        let mut under_way: Option<Transfer<Affine<F>>> = None;
        for exponents in exponents.chunks(PIECE) {
            let mut piece = self.piece.view_mut().slice(..exponents.len());
            self.generator.multiply(exponents, None, piece.reborrow())?;
            let room = host.pinned("multiples", exponents.len())?;
            let copied = stream.download(piece.into_view(), room)?;
            // The last piece is taken up while this one is made.
            if let Some(last) = under_way.replace(copied) {
                points.extend_from_slice(&last.wait()?);
            }
        }
        if let Some(last) = under_way {
            points.extend_from_slice(&last.wait()?);
        }
        Ok(points)
    }
}
