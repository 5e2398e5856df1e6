//! Number-theoretic transforms over the scalar field of BLS12-381, for both root families, and the
//! quotient polynomial of Groth16: here on the CPU, in [`device`] on a GPU or an emulated one.
//!
//! Transforms need no permutation pass: the inverse goes from natural to bit-reversed order, the
//! forward one from bit-reversed to natural, which is the order in which a prover chains them.
//!
//! [`HostPlan`] has the calls of [`device::DevicePlan`] on the CPU; [`Domain`] is what lies below it.
//!
//! ```
//! use cuzk_field::{Field, Fr, RootGenerator};
//! use cuzk_ntt::{Direction, Domain};
//! let domain = Domain::new(8, RootGenerator::Seven)?;
//! let values: Vec<Fr> = (0..8u64).map(Fr::from).collect();
//! let mut data = values.clone();
//! domain.natural_to_bit_reversed(&mut data, Direction::Inverse);
//! domain.bit_reversed_to_natural(&mut data, Direction::Forward);
//! let n = Fr::from(8u64);
//! assert!(data.iter().zip(&values).all(|(got, value)| *got == *value * n));
//! # Ok::<(), cuzk_ntt::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod device;
mod domain;
mod form;
mod host;
mod order;
mod products;
mod quotient;
mod transform;

pub use cuzk_kernels::ntt::Scale;
pub use domain::{Domain, Error};
pub use form::QuotientForm;
pub use host::{HostElements, HostPlan};
pub use order::{BitReversed, NaturalOrder, Order};
pub use products::quotient_products;
pub use quotient::{TAU_POWER_SHIFT, quotient_coefficients, quotient_odd_values};
pub use transform::{Direction, bit_reverse_permute};
