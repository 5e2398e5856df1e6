//! Values to compute with: hostile ones, random ones, and those beyond the modulus.

use cuzk_field::constants::{FP_MODULUS, FR_MODULUS};
use cuzk_field::{Fp, Fp2, Fr};
use cuzk_gpu_mem::Pod;
use cuzk_testkit::limbs::corners;

/// splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn limbs<const N: usize>(&mut self, top_bits: u32) -> [u64; N] {
        let mut limbs = std::array::from_fn(|_| self.word());
        limbs[N - 1] >>= 64 - top_bits;
        limbs
    }

    pub(crate) fn fr(&mut self) -> Fr {
        loop {
            if let Some(value) = Fr::from_montgomery_limbs(self.limbs(63)) {
                return value;
            }
        }
    }

    pub(crate) fn fp(&mut self) -> Fp {
        loop {
            if let Some(value) = Fp::from_montgomery_limbs(self.limbs(61)) {
                return value;
            }
        }
    }

    pub(crate) fn fp2(&mut self) -> Fp2 {
        Fp2::new(self.fp(), self.fp())
    }
}

pub(crate) fn hostile_fr() -> Vec<Fr> {
    let values = corners(FR_MODULUS).into_iter();
    values
        .map(|limbs| Fr::from_montgomery_limbs(limbs).unwrap())
        .collect()
}

pub(crate) fn hostile_fp() -> Vec<Fp> {
    let values = corners(FP_MODULUS).into_iter();
    values
        .map(|limbs| Fp::from_montgomery_limbs(limbs).unwrap())
        .collect()
}

pub(crate) fn hostile_fp2() -> Vec<Fp2> {
    let values: Vec<Fp> = hostile_fp().into_iter().step_by(6).collect();
    values
        .iter()
        .flat_map(|a| values.iter().map(|b| Fp2::new(*a, *b)))
        .collect()
}

/// Every pair of hostile values, then random ones.
pub(crate) fn pairs<T: Copy>(
    hostile: &[T],
    count: usize,
    mut random: impl FnMut() -> T,
) -> Vec<(T, T)> {
    let mut pairs: Vec<(T, T)> = hostile
        .iter()
        .flat_map(|a| hostile.iter().map(|b| (*a, *b)))
        .collect();
    pairs.extend((0..count).map(|_| (random(), random())));
    pairs
}

pub(crate) fn firsts<T: Copy>(pairs: &[(T, T)]) -> Vec<T> {
    pairs.iter().map(|(a, _)| *a).collect()
}

pub(crate) fn add_limbs<const N: usize>(a: [u64; N], b: [u64; N]) -> [u64; N] {
    let mut carry = false;
    let sum = std::array::from_fn(|i| {
        let (sum, c1) = a[i].overflowing_add(b[i]);
        let (sum, c2) = sum.overflowing_add(u64::from(carry));
        carry = c1 | c2;
        sum
    });
    assert!(!carry);
    sum
}

/// The same residue, one modulus higher; limbs that no constructor of `Fr` gives.
pub(crate) fn lifted_fr(value: Fr, times: usize) -> Fr {
    let lift = |limbs, _| add_limbs(limbs, FR_MODULUS);
    let limbs = (0..times).fold(bytes_of::<_, 4>(value), lift);
    value_of(limbs)
}

pub(crate) fn lifted_fp(value: Fp, times: usize) -> Fp {
    let lift = |limbs, _| add_limbs(limbs, FP_MODULUS);
    let limbs = (0..times).fold(bytes_of::<_, 6>(value), lift);
    value_of(limbs)
}

pub(crate) fn bytes_of<T: Pod, const N: usize>(value: T) -> [u64; N] {
    bytemuck::cast(value)
}

pub(crate) fn value_of<T: Pod, const N: usize>(limbs: [u64; N]) -> T {
    bytemuck::cast(limbs)
}

/// Subtracts the modulus while that is possible.
pub(crate) fn reduced<const N: usize>(mut limbs: [u64; N], modulus: [u64; N]) -> [u64; N] {
    while limbs.iter().rev().ge(modulus.iter().rev()) {
        let mut borrow = false;
        for (limb, m) in limbs.iter_mut().zip(modulus) {
            let (d, b1) = limb.overflowing_sub(m);
            let (d, b2) = d.overflowing_sub(u64::from(borrow));
            (*limb, borrow) = (d, b1 | b2);
        }
    }
    limbs
}
