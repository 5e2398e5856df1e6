//! The transform of `cuzk-ntt` over points of G1, on a device.

use cuzk_field::{Field as _, Fp, Fr, G1Affine, Scalar};
use cuzk_gpu_mem::{DeviceBuf, DeviceView, DeviceViewMut, Stream};
use cuzk_kernels::{group_ntt, point_check};
use cuzk_ntt::bit_reverse_permute;
use rayon::prelude::*;

use super::super::bases::outside_subgroup;
use super::super::transform::ProgressFn;
use crate::device::{Gpu, Result};

/// Pairs or points of a launch, after which progress is reported: a tenth of a second on a large card.
pub(super) const SLAB: usize = 1 << 20;

/// Elements of one task.
const TASK: usize = 1 << 13;

/// [`super::super::transform`] on a device: sum_i root^(ij) points_i for every j, in place and in natural
/// order.
///
/// # Errors
/// As on the CPU; when the device fails or has no room.
pub fn transform(
    gpu: &Gpu,
    points: &mut [G1Affine],
    root: Fr,
    progress: ProgressFn<'_>,
) -> Result<()> {
    let n = points.len();
    if !n.is_power_of_two() {
        return Err(crate::Error::from(cuzk_ntt::Error::Size { size: n }).into());
    }
    let transform = GroupTransform::new(gpu, n, progress)?;
    let mut array = transform.points("points", n)?;
    transform.stream().upload_slice(points, &mut array)?;
    let factors = transform.factors(root)?;
    transform.run(array.view_mut(), factors.view())?;
    transform.stream().download_slice(&array, points)?;
    bit_reverse_permute(points);
    Ok(())
}

/// What transforms of one size share: a stream and the multiples that threads hold.
pub(super) struct GroupTransform<'a> {
    gpu: &'a Gpu,
    stream: Stream,
    n: usize,
    scratch: parking_lot::Mutex<DeviceBuf<Fp>>,
    progress: ProgressFn<'a>,
}

/// Elements of scratch for launches over up to `count` points or pairs.
pub(super) fn scratch_len(gpu: &Gpu, count: usize) -> usize {
    group_ntt::scratch_len(gpu.launcher(), count.min(SLAB))
}

impl<'a> GroupTransform<'a> {
    pub(super) fn new(gpu: &'a Gpu, n: usize, progress: ProgressFn<'a>) -> Result<Self> {
        let stream = gpu.device().stream("group transform")?;
        // Multiples of entries of C may be more than n.
        let scratch = scratch_len(gpu, SLAB);
        let scratch = gpu.device().alloc("multiples", scratch, &stream)?;
        Ok(Self {
            gpu,
            stream,
            n,
            scratch: parking_lot::Mutex::new(scratch),
            progress,
        })
    }

    pub(super) fn gpu(&self) -> &Gpu {
        self.gpu
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(super) fn n(&self) -> usize {
        self.n
    }

    /// Room for points.
    pub(super) fn points(&self, label: &'static str, count: usize) -> Result<DeviceBuf<G1Affine>> {
        Ok(self.gpu.device().alloc(label, count, &self.stream)?)
    }

    /// The endomorphism by which points are multiplied is a multiplication in the subgroup only.
    pub(super) fn check_subgroup(
        &self,
        name: &str,
        points: DeviceView<'_, G1Affine>,
    ) -> Result<()> {
        let mut word = self
            .gpu
            .device()
            .alloc("first wrong point", 1, &self.stream)?;
        self.stream.upload_slice(&[u32::MAX], &mut word)?;
        let launcher = self.gpu.launcher();
        point_check::in_subgroup(launcher, &self.stream, points, word.view_mut())?;
        let mut first_wrong = [0];
        self.stream.download_slice(&word, &mut first_wrong)?;
        match first_wrong {
            [u32::MAX] => Ok(()),
            [index] => Err(outside_subgroup(name, index as usize).into()),
        }
    }

    /// The factor of each block of the last stage, and so of every stage: root^i in bit-reversed order.
    pub(super) fn factors(&self, root: Fr) -> Result<DeviceBuf<Scalar>> {
        let count = (self.n / 2).max(1);
        let mut powers = vec![Fr::ONE; count];
        // Bit s of the index stands for bit log(count) - 1 - s of the exponent.
        let mut done = 1;
        while done < count {
            let step = root.pow((count / (2 * done)) as u64);
            let (low, rest) = powers.split_at_mut(done);
            rest[..done]
                .par_iter_mut()
                .with_min_len(TASK)
                .zip(low)
                .for_each(|(to, from)| *to = *from * step);
            done *= 2;
        }
        let scalars: Vec<Scalar> = powers
            .into_par_iter()
            .with_min_len(TASK)
            .map(Scalar::from)
            .collect();
        let mut factors = self.gpu.device().alloc("factors", count, &self.stream)?;
        self.stream.upload_slice(&scalars, &mut factors)?;
        Ok(factors)
    }

    /// n points from natural into bit-reversed order of what is summed, unscaled. Stage s splits blocks
    /// modulo x^m - c^2 into x^(m/2) - c and x^(m/2) + c.
    pub(super) fn run(
        &self,
        mut points: DeviceViewMut<'_, G1Affine>,
        factors: DeviceView<'_, Scalar>,
    ) -> Result<()> {
        let mut scratch = self.scratch.lock();
        let pairs = self.n / 2;
        let mut half = pairs;
        while half > 0 {
            for start in (0..pairs).step_by(SLAB) {
                let end = (start + SLAB).min(pairs);
                group_ntt::butterflies(
                    self.gpu.launcher(),
                    &self.stream,
                    points.reborrow(),
                    factors,
                    half,
                    start..end,
                    scratch.view_mut(),
                )?;
                // Those of the first block are multiplied by one.
                self.report((end - start.max(half).min(end)) as u64)?;
            }
            half /= 2;
        }
        Ok(())
    }

    /// `points[i]` becomes `first base^i points[i]`.
    pub(super) fn scale(
        &self,
        mut points: DeviceViewMut<'_, G1Affine>,
        base: Fr,
        first: Fr,
    ) -> Result<()> {
        let count = points.len();
        let mut scratch = self.scratch.lock();
        let mut scalars = self.scalars(count)?;
        for start in (0..count).step_by(SLAB) {
            let len = SLAB.min(count - start);
            self.powers(base, first, start, scalars.view_mut().slice(..len))?;
            group_ntt::scale(
                self.gpu.launcher(),
                &self.stream,
                points.reborrow().slice(start..start + len),
                scalars.view().slice(..len),
                scratch.view_mut(),
            )?;
            self.report(len as u64)?;
        }
        Ok(())
    }

    /// `target[i]` = `first base^i` times the point that stands for i in `points`, which are in
    /// bit-reversed order.
    pub(super) fn scale_bit_reversed(
        &self,
        points: DeviceView<'_, G1Affine>,
        base: Fr,
        first: Fr,
        mut target: DeviceViewMut<'_, G1Affine>,
    ) -> Result<()> {
        let count = points.len();
        let mut scalars = self.scalars(count)?;
        let mut places = self.indices(count.min(SLAB))?;
        let mut ids = self.indices(count.min(SLAB))?;
        let natural: Vec<u32> = (0..count.min(SLAB) as u32).collect();
        self.stream.upload_slice(&natural, &mut ids)?;
        for start in (0..count).step_by(SLAB) {
            let len = SLAB.min(count - start);
            self.powers(base, first, start, scalars.view_mut().slice(..len))?;
            let reversed: Vec<u32> = (start..start + len).map(|i| self.place(i)).collect();
            self.stream
                .upload_slice(&reversed, places.view_mut().slice(..len))?;
            self.multiply(
                points,
                places.view().slice(..len),
                scalars.view().slice(..len),
                ids.view().slice(..len),
                target.reborrow().slice(start..start + len),
            )?;
        }
        Ok(())
    }

    /// `target[i] = scalars[ids[i]] points[indices[i]]`.
    pub(super) fn multiply(
        &self,
        points: DeviceView<'_, G1Affine>,
        indices: DeviceView<'_, u32>,
        scalars: DeviceView<'_, Scalar>,
        ids: DeviceView<'_, u32>,
        target: DeviceViewMut<'_, G1Affine>,
    ) -> Result<()> {
        let count = target.len();
        let mut scratch = self.scratch.lock();
        let (launcher, scratch) = (self.gpu.launcher(), scratch.view_mut());
        group_ntt::multiply(
            launcher,
            &self.stream,
            points,
            indices,
            scalars,
            ids,
            target,
            scratch,
        )?;
        self.report(count as u64)
    }

    /// Where the element that stands for i lies in bit-reversed order.
    pub(super) fn place(&self, i: usize) -> u32 {
        match self.n.trailing_zeros() {
            0 => 0,
            bits => (i.reverse_bits() >> (usize::BITS - bits)) as u32,
        }
    }

    pub(super) fn indices(&self, count: usize) -> Result<DeviceBuf<u32>> {
        Ok(self.gpu.device().alloc("indices", count, &self.stream)?)
    }

    /// Room for the scalars of a slab.
    fn scalars(&self, count: usize) -> Result<DeviceBuf<Scalar>> {
        let device = self.gpu.device();
        Ok(device.alloc("scalars", count.min(SLAB), &self.stream)?)
    }

    /// `first base^i` for i from `start`.
    fn powers(
        &self,
        base: Fr,
        first: Fr,
        start: usize,
        target: DeviceViewMut<'_, Scalar>,
    ) -> Result<()> {
        let mut powers = vec![Scalar::ZERO; target.len()];
        powers
            .par_chunks_mut(TASK)
            .enumerate()
            .for_each(|(task, powers)| {
                let mut power = first * base.pow((start + task * TASK) as u64);
                for to in powers {
                    *to = power.into();
                    power *= base;
                }
            });
        self.stream.upload_slice(&powers, target)?;
        Ok(())
    }

    /// Waits for the device and reports what it has done.
    fn report(&self, multiplications: u64) -> Result<()> {
        self.stream.synchronize()?;
        (self.progress)(multiplications);
        Ok(())
    }
}
