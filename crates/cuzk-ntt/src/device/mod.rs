//! Transforms on a device.
//!
//! The caller owns all memory: transforms work in place on arrays that are lent. A [`DevicePlan`] owns
//! nothing but its tables, which never change; one serves all sizes up to its own, any number of
//! threads and streams. It keeps each stream that has used it.
//!
//! On a card kernels come as images, which `cargo xtask ptx` makes; feature `emu` emulates a device instead. What
//! a program needs beside this crate is `cuzk-gpu-mem`.
//!
//! ```
//! use std::sync::Arc;
//! use cuzk_field::{Fr, RootGenerator};
//! use cuzk_gpu_mem::{Device, Settings, driver::SimDriver};
//! use cuzk_ntt::Direction;
//! use cuzk_ntt::device::{self, DevicePlan, Elements, PlanRequest, Scale};
//!
//! // An emulated device; `Device::open` gives a card.
//! let device = Device::with_driver(Arc::new(SimDriver::new(1 << 30)), Settings::default())?;
//! let launcher = device::open(&device)?;
//! let stream = device.stream("transform")?;
//! let plan = DevicePlan::new(&*launcher, &stream, &PlanRequest::domain(RootGenerator::Seven, 4))?;
//!
//! let values: Vec<Fr> = (0..16u64).map(Fr::from).collect();
//! let mut array = device.alloc("values", 16, &stream)?;
//! stream.upload_slice(&values, &mut array)?;
//! let values_on_device = Elements::natural(array.view_mut());
//! let coefficients = plan.transform(
//!     &*launcher, &stream, 4, Direction::Inverse, Scale::OverN, values_on_device,
//! )?;
//! let again = plan.transform(&*launcher, &stream, 4, Direction::Forward, Scale::One, coefficients)?;
//! let mut found = vec![Fr::default(); 16];
//! stream.download_slice(again.into_view().into_view(), &mut found)?;
//! assert!(found == values);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod order;
mod passes;
mod plan;
mod powers;
mod quotient;
mod request;

pub use crate::form::QuotientForm;
pub use crate::order::{BitReversed, NaturalOrder, Order};
pub use cuzk_kernels::ntt::{MAX_LOG_N, Points, Scale};
pub use cuzk_kernels::{Launcher, open};
pub use error::{Error, Result};
pub use order::Elements;
pub use plan::DevicePlan;
pub use powers::Powers;
pub use quotient::QuotientArrays;
pub use request::PlanRequest;
