//! BLS12-381 field elements and curve points **as they lie in memory**, on the host and on the
//! device alike.
//!
//! Every type here is `repr(C)` plain data: what a kernel reads is byte for byte what a host slice
//! holds. Field elements are little-endian limbs in Montgomery form, canonical (below the modulus);
//! the host views them as 64-bit limbs, the device as 32-bit limbs, which is the same bytes on the
//! little-endian machines that this crate supports.
//!
//! | type | bytes | representation |
//! |---|---|---|
//! | [`Scalar`] | 32 | canonical integer below r |
//! | [`Fr`] | 32 | Montgomery, R = 2^256 |
//! | [`Fp`] | 48 | Montgomery, R = 2^384 |
//! | [`Fp2`] | 96 | c0 + c1 u, u^2 = -1 |
//! | [`G1Affine`], [`G2Affine`] | 96, 192 | x, y; infinity is all zero |
//! | [`G1Xyzz`], [`G2Xyzz`] | 192, 384 | x = X/ZZ, y = Y/ZZZ; infinity is ZZ = 0 |
//!
//! Host arithmetic is for the CPU prover and for checks: [`Fp`] goes through `blst`'s assembly
//! and [`Fr`] through `ark-ff`, which inlines (docs/measurements.md, CPU arithmetic). Conversions
//! from and to the `ark-bls12-381` types are explicit ([`ark`]) and copy limbs; nothing transmutes a
//! foreign type.
//!
//! ```
//! use cuzk_field::{Fr, G1Affine, G1Xyzz};
//! let g = G1Affine::generator();
//! let mut sum = G1Xyzz::INFINITY;
//! sum.add_affine(&g);
//! sum.add_affine(&g);
//! assert_eq!(sum.to_affine(), G1Xyzz::from(g).double().to_affine());
//! assert_eq!(Fr::from(2u64) * Fr::from(3u64), Fr::from(6u64));
//! ```
#![deny(unsafe_code)]

#[cfg(target_endian = "big")]
compile_error!(
    "cuzk keeps field elements as little-endian limbs; big-endian hosts are not supported"
);

pub mod ark;
pub mod constants;
mod curve;
pub mod encoding;
mod field;
mod fp;
mod fp2;
mod fr;
mod host;
mod plain;
mod roots;

pub use curve::{Affine, CurveField, G1Affine, G1Xyzz, G2Affine, G2Xyzz, Xyzz};
pub use field::{Field, batch_invert};
pub use fp::Fp;
pub use fp2::Fp2;
pub use fr::{Fr, Scalar};
pub use host::{PairingProduct, pairing_product_is_one};
pub use plain::PlainCurve;
pub use roots::RootGenerator;
