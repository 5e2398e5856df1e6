//! What the bases of the four-transform quotient cost on a device, before they are made.

use std::time::{Duration, Instant};

use cuzk_field::{Fr, G1Affine};
use cuzk_formats::{HBasis, KeyFlavour, R1cs};

use super::super::columns::num_multiples;
use super::super::cost::Cost;
use super::columns::Room;
use super::transform::{GroupTransform, SLAB, scratch_len};
use crate::device::{Gpu, Result};

/// What [`super::four_transform_bases`] takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceCost {
    /// Scalar multiplications in G1, nearly all of the time.
    pub multiplications: u64,
    /// Memory on the device.
    pub device_bytes: u64,
    /// Memory of the host beside the key and the constraint system.
    pub host_bytes: u64,
}

impl DeviceCost {
    /// The cost for a key of this flavour and domain and its constraint system.
    ///
    /// # Errors
    /// When the device cannot have so many points at all.
    pub fn of(gpu: &Gpu, flavour: KeyFlavour, domain_size: usize, r1cs: &R1cs) -> Result<Self> {
        let n = domain_size as u64;
        let point = size_of::<G1Affine>() as u64;
        let variables = r1cs.num_variables as u64;
        let multiples = num_multiples(r1cs);
        let entries = r1cs.c.num_entries();
        let rounds =
            Room::of(entries, r1cs.num_variables).device_bytes(gpu.device().info(), multiples)?;
        let scratch = 48 * scratch_len(gpu, SLAB) as u64 + 32 * SLAB.min(domain_size) as u64;
        let coefficients = 32 * r1cs.coefficients.values().len() as u64;
        // Circom keys take one array into another, which has its factors later.
        let (arrays, kept) = match flavour.h_basis {
            HBasis::OddLagrange => (2, 0),
            _ => (1, 1),
        };
        let transforms = point * arrays * n + 16 * n + 8 * SLAB.min(domain_size) as u64;
        let sums = point * n + coefficients + rounds;
        Ok(Self {
            multiplications: Cost::of(flavour, domain_size, r1cs).multiplications,
            device_bytes: scratch + transforms.max(sums),
            // P; factors twice; C by columns; L'.
            host_bytes: point * kept * n
                + 64 * (n / 2)
                + 8 * entries as u64
                + 8 * variables
                + point * variables,
        })
    }

    /// The time it takes at that of one multiplication, [`measure_multiplication`].
    pub fn time(&self, multiplication: Duration) -> Duration {
        Duration::from_secs_f64(multiplication.as_secs_f64() * self.multiplications as f64)
    }
}

/// The time of one scalar multiplication when the whole device multiplies: some ten milliseconds are
/// spent on finding out.
///
/// # Errors
/// When the device fails or has no room.
pub fn measure_multiplication(gpu: &Gpu) -> Result<Duration> {
    // One multiplication a thread: a block's is the least scratch there is.
    let count = scratch_len(gpu, SLAB) / scratch_len(gpu, 1) * 128;
    let transform = GroupTransform::new(gpu, count, &|_| {})?;
    let mut points = transform.points("points", count)?;
    let generator = vec![G1Affine::generator(); count];
    transform.stream().upload_slice(&generator, &mut points)?;
    let mut elapsed = Duration::MAX;
    for factor in [3_u64, 5] {
        let factor = Fr::from(factor);
        let begun = Instant::now();
        transform.scale(points.view_mut(), factor, factor)?;
        elapsed = elapsed.min(begun.elapsed());
    }
    Ok(elapsed / count as u32)
}
