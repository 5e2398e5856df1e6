//! `kernels/src/multiples.cu`: multiples of many points by a power of two.

use cuzk_field::{Affine, Fp, Fp2};
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use crate::curve::DeviceCurve;
use crate::declare::{Kernel, kernels};
use crate::device_type::{Ptr, PtrMut};
use crate::error::Result;
use crate::launcher::{Launcher, Shape};
use crate::lengths::exactly;

const THREADS: u32 = 128;

/// The kernel of one group.
pub(crate) type MultiplesKernel<F> = Kernel<(Ptr<Affine<F>>, u32, u32, PtrMut<Affine<F>>)>;

kernels! {
    module "multiples";
    /// See [`multiply`].
    G1 = cuzk_multiples_g1[THREADS](
        points: Ptr<Affine<Fp>>, count: u32, doublings: u32, out: PtrMut<Affine<Fp>>,
    );
    /// See [`multiply`].
    G2 = cuzk_multiples_g2[THREADS](
        points: Ptr<Affine<Fp2>>, count: u32, doublings: u32, out: PtrMut<Affine<Fp2>>,
    );
}

/// `out[i]` = 2^`doublings` `points[i]`, canonical: canonical points on the curve, infinity (0, 0), fewer than 2^31 of
/// them.
pub fn multiply<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    points: DeviceView<'_, Affine<F>>,
    doublings: u32,
    out: DeviceViewMut<'_, Affine<F>>,
) -> Result<()> {
    let kernel = F::kernels().multiples;
    let entry = kernel.declaration().entry;
    exactly(entry, "out", points.len(), out.len())?;
    exactly(entry, "points", points.len().min(1 << 31), points.len())?;
    let _guards = (points.on(stream)?, out.on(stream)?);
    // SAFETY: a thread a point; both arrays have as many, and `out` aliases nothing; the guards keep both.
    unsafe {
        kernel.launch(
            launcher,
            stream,
            Shape::covering(points.len(), THREADS),
            (
                (&points).into(),
                points.len() as u32,
                doublings,
                (&out).into(),
            ),
        )
    }
}
