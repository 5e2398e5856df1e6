//! `cuzk::FrFactor`: an element known in advance, with what a product with it needs.

use bytemuck::{Pod, Zeroable};
use cuzk_field::{Fr, Scalar};

use crate::device_type::DeviceType;

/// -1/r modulo 2^256.
const MINUS_INVERSE: [u64; 4] = [
    0xffff_fffe_ffff_ffff,
    0x53ba_5bff_fffe_5bfd,
    0x181b_2c17_0004_ec06,
    0x3d44_3ab0_d7bf_2839,
];

/// w as an integer below r and floor(2^256 w / r), each of four limbs, least significant first.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct Factor {
    value: [u64; 4],
    quotient: [u64; 4],
}

// SAFETY: `repr(C)`, made of u64 alone; all zero is a value.
unsafe impl Zeroable for Factor {}
// SAFETY: as above; eight words without padding, as the assertion below says.
unsafe impl Pod for Factor {}

// SAFETY: `repr(C)`, eight words of 64 bits, which are the sixteen of 32 bits of kernels/include/cuzk/factor.cuh on
// the little-endian hosts that cuzk-field is for.
unsafe impl DeviceType for Factor {
    fn c_type() -> String {
        "cuzk::FrFactor".to_owned()
    }
}

const _: () = assert!(size_of::<Factor>() == 64 && align_of::<Factor>() == 16);

impl From<Fr> for Factor {
    /// The quotient is (2^256 w - m) / r with m = 2^256 w mod r, the Montgomery form: -m / r modulo 2^256.
    fn from(element: Fr) -> Self {
        let m = element.montgomery_limbs();
        let mut quotient = [0_u64; 4];
        for (i, m) in m.iter().enumerate() {
            let mut carry = 0_u128;
            for j in 0..4 - i {
                let sum = u128::from(*m) * u128::from(MINUS_INVERSE[j])
                    + u128::from(quotient[i + j])
                    + carry;
                quotient[i + j] = sum as u64;
                carry = sum >> 64;
            }
        }
        Self {
            value: *Scalar::from(element).limbs(),
            quotient,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_field::Field as _;
    use cuzk_field::constants::FR_MODULUS;

    /// value 2^256 = quotient r + remainder, with remainder < r: as 512-bit integers.
    #[test]
    fn the_quotient_is_that_of_the_division() {
        for element in [
            Fr::ONE,
            -Fr::ONE,
            Fr::from(5),
            Fr::R,
            Fr::ZERO,
            Fr::from(7).pow(1 << 40),
        ] {
            let Factor { value, quotient } = element.into();
            let mut sum = [0_u64; 8];
            sum[..4].copy_from_slice(element.montgomery_limbs());
            for (i, q) in quotient.iter().enumerate() {
                let mut carry = 0_u128;
                for (j, r) in FR_MODULUS.iter().enumerate() {
                    let word = u128::from(*q) * u128::from(*r) + u128::from(sum[i + j]) + carry;
                    sum[i + j] = word as u64;
                    carry = word >> 64;
                }
                for word in &mut sum[i + 4..] {
                    carry += u128::from(*word);
                    *word = carry as u64;
                    carry >>= 64;
                }
            }
            assert_eq!(sum[..4], [0; 4]);
            assert_eq!(sum[4..], value);
        }
    }
}
