//! Scalars and points of which the host knows enough to check a sum.

use cuzk_field::{Affine, Fr, Scalar, Xyzz};
use cuzk_gpu_mem::{DeviceBuf, DeviceViewMut, Pod, Stream};
use cuzk_kernels::Launcher;
use cuzk_msm::FixedBase;
use cuzk_msm::device::DeviceCurve;
use cuzk_msm::device::fixed_base::FixedBasePlan;
use rayon::prelude::*;

/// Words of a stream of xorshift64.
pub(crate) fn words(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

pub(crate) fn random_scalar(word: &mut impl FnMut() -> u64) -> Scalar {
    loop {
        let limbs = [word(), word(), word(), word() >> 1];
        if let Some(scalar) = Scalar::from_limbs(limbs) {
            return scalar;
        }
    }
}

/// Fills `target` with its first `filled` elements, over and over.
fn repeat<T: Pod>(stream: &Stream, mut target: DeviceViewMut<'_, T>, period: usize) {
    let len = target.len();
    let mut filled = period;
    while filled < len {
        let (source, rest) = target.reborrow().split_at(filled);
        // Whole periods, so that element i stays i modulo the period.
        let more = filled.min(len - filled);
        let source = source.into_view().slice(..more);
        stream.copy(source, rest.slice(..more)).expect("a copy");
        filled += more;
    }
}

/// `len` scalars on the device, which repeat those on the host.
pub(crate) fn repeated(
    stream: &Stream,
    len: usize,
    mut value: impl FnMut() -> Scalar,
) -> (DeviceBuf<Scalar>, Vec<Scalar>) {
    let period = len.min((1 << 22) + 12_345);
    let values: Vec<Scalar> = (0..period).map(|_| value()).collect();
    let mut buffer = room(stream, len);
    stream
        .upload_slice(&values, buffer.view_mut().slice(..period))
        .expect("a copy");
    repeat(stream, buffer.view_mut(), period);
    (buffer, values)
}

pub(crate) fn room<T: Pod>(stream: &Stream, len: usize) -> DeviceBuf<T> {
    stream.device().alloc("bench", len, stream).expect("memory")
}

/// `len` points on the device, and the exponents that they repeat.
pub(crate) fn points<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    len: usize,
) -> (DeviceBuf<Affine<F>>, Vec<Fr>) {
    let period = len.min((1 << 22) + 777);
    let mut word = words(3);
    let exponents: Vec<Scalar> = (0..period).map(|_| random_scalar(&mut word)).collect();
    let mut points = room::<Affine<F>>(stream, len);
    if stream.device().driver().as_cuda().is_some() {
        let info = stream.device().info();
        let plan = FixedBasePlan::<F>::small(info, period, 8 << 30).expect("a plan");
        let host_table = plan.host_table(&Affine::generator());
        let mut table = room(stream, host_table.len());
        stream
            .upload_slice(&host_table, &mut table)
            .expect("a copy");
        let mut scratch = room::<u8>(stream, plan.scratch_bytes());
        let mut scalars = room(stream, period);
        stream
            .upload_slice(&exponents, &mut scalars)
            .expect("a copy");
        let out = points.view_mut().slice(..period);
        plan.run(
            launcher,
            stream,
            table.view(),
            scalars.view(),
            out,
            scratch.view_mut(),
        )
        .expect("multiples");
    } else {
        let multiples = FixedBase::new(&Affine::<F>::generator()).multiply_all(&exponents);
        stream
            .upload_slice(&multiples, points.view_mut().slice(..period))
            .expect("a copy");
    }
    repeat(stream, points.view_mut(), period);
    let exponents = exponents
        .par_iter()
        .map(|scalar| Fr::from(*scalar))
        .collect();
    (points, exponents)
}

/// (sum_i scalars[i] exponents[i]) G over `len` terms, of lists that repeat.
pub(crate) fn expected<F: DeviceCurve>(
    len: usize,
    scalars: &[Scalar],
    exponents: &[Fr],
) -> Affine<F> {
    let sum = sum_of(len, |i| {
        scalars[i % scalars.len()].over_r() * exponents[i % exponents.len()]
    });
    of_exponent(sum * Fr::R)
}

pub(crate) fn sum_of(len: usize, term: impl Fn(usize) -> Fr + Sync) -> Fr {
    const BLOCK: usize = 1 << 16;
    let blocks = (0..len.div_ceil(BLOCK)).into_par_iter();
    let sums = blocks.map(|block| {
        let range = block * BLOCK..len.min((block + 1) * BLOCK);
        range.fold(Fr::from(0), |sum, i| sum + term(i))
    });
    sums.reduce(|| Fr::from(0), |a, b| a + b)
}

pub(crate) fn of_exponent<F: DeviceCurve>(exponent: Fr) -> Affine<F> {
    Xyzz::from(Affine::generator())
        .mul_scalar(&Scalar::from(exponent))
        .to_affine()
}
