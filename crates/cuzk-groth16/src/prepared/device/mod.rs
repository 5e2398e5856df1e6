//! The bases of the four-transform quotient, made on a device: the same points as on the CPU.

mod columns;
mod cost;
mod transform;

use cuzk_field::{Field as _, Fr, G1Affine, Scalar};
use cuzk_formats::{HBasis, ProvingKey, R1cs};
use cuzk_gpu_mem::{DeviceBuf, DeviceView, DeviceViewMut};
use cuzk_ntt::{Domain, bit_reverse_permute};

use super::bases::{begin, inverse, scale_of_tau_powers};
use super::transform::ProgressFn;
use crate::device::{Gpu, Result};
use columns::Columns;
use transform::GroupTransform;

pub use cost::{DeviceCost, measure_multiplication};
pub use transform::transform;

/// [`super::four_transform_bases`] on a device, which holds one array of points at a time for keys of tau
/// powers and two for circom keys: [`DeviceCost`] says how much memory that is.
///
/// # Errors
/// As on the CPU; when the device fails or has no room. After an error the key is as it was.
pub fn four_transform_bases(
    gpu: &Gpu,
    key: &mut ProvingKey,
    r1cs: &R1cs,
    progress: ProgressFn<'_>,
) -> Result<()> {
    let (domain, shift) = begin(key, r1cs)?;
    let columns = Columns::of(r1cs);
    let transform = GroupTransform::new(gpu, domain.size(), progress)?;
    let maker = Maker {
        transform: &transform,
        domain: &domain,
        h: &key.h_query,
        room: columns.multiples_at_once(),
    };
    let (p, q) = match key.flavour.h_basis {
        HBasis::OddLagrange => (None, maker.q_of_odd_lagrange(shift)?),
        _ => {
            let (p, q) = maker.of_tau_powers(shift)?;
            (Some(p), q)
        }
    };
    let l = columns.l_without_c(&transform, &key.l_query, q, r1cs)?;
    if let Some(p) = p {
        key.h_query = p;
    }
    key.l_query = l;
    key.flavour.h_basis = HBasis::CosetLagrange { shift };
    Ok(())
}

/// Makes P and Q. Q is left on the device, in bit-reversed order and with room behind it.
struct Maker<'a> {
    transform: &'a GroupTransform<'a>,
    domain: &'a Domain,
    h: &'a [G1Affine],
    room: usize,
}

impl Maker<'_> {
    /// P_j = (n z)^-1 sum_i w^(-ij) g^(-i) H_i and Q_k = (n z)^-1 sum_i w^(-ik) H_i, H_(n-1) at infinity.
    fn of_tau_powers(&self, shift: Fr) -> Result<(Vec<G1Affine>, DeviceBuf<G1Affine>)> {
        let n = self.domain.size();
        let transform = self.transform;
        let factors = transform.factors(self.domain.root_inverse())?;
        let first = scale_of_tau_powers(self.domain, shift);
        let mut array = transform.points("P and Q", n + self.room)?;
        self.load(array.view_mut().slice(..n))?;
        transform.check_subgroup("H", array.view().slice(..self.h.len()))?;
        let transformed = |base, points: DeviceViewMut<'_, G1Affine>| {
            self.scale_and_transform(base, first, factors.view(), points)
        };
        transformed(inverse(shift), array.view_mut().slice(..n))?;
        let mut p = vec![G1Affine::INFINITY; n];
        let stream = transform.stream();
        stream.download_slice(array.view().slice(..n), &mut p)?;
        bit_reverse_permute(&mut p);
        self.load(array.view_mut().slice(..n))?;
        transformed(Fr::ONE, array.view_mut().slice(..n))?;
        Ok((p, array))
    }

    /// Q_k = n^-1 sum_i w^(-ik) g^i sum_j w^(ij) H_j.
    fn q_of_odd_lagrange(&self, shift: Fr) -> Result<DeviceBuf<G1Affine>> {
        let n = self.domain.size();
        let transform = self.transform;
        let mut sums = transform.points("H", n)?;
        self.load(sums.view_mut())?;
        transform.check_subgroup("H", sums.view())?;
        let factors = transform.factors(self.domain.root())?;
        transform.run(sums.view_mut(), factors.view())?;
        drop(factors);
        // Back into natural order, and scaled.
        let mut q = transform.points("Q", n + self.room)?;
        let first = self.domain.size_inverse();
        transform.scale_bit_reversed(sums.view(), shift, first, q.view_mut().slice(..n))?;
        drop(sums);
        let factors = transform.factors(self.domain.root_inverse())?;
        transform.run(q.view_mut().slice(..n), factors.view())?;
        Ok(q)
    }

    /// H, and infinity behind it.
    fn load(&self, array: DeviceViewMut<'_, G1Affine>) -> Result<()> {
        let (given, rest) = array.split_at(self.h.len());
        let stream = self.transform.stream();
        stream.upload_slice(self.h, given)?;
        stream.fill(rest, 0)?;
        Ok(())
    }

    fn scale_and_transform(
        &self,
        base: Fr,
        first: Fr,
        factors: DeviceView<'_, Scalar>,
        mut points: DeviceViewMut<'_, G1Affine>,
    ) -> Result<()> {
        self.transform.scale(points.reborrow(), base, first)?;
        self.transform.run(points, factors)
    }
}
