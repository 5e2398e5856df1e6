//! The device code of cuzk: where its images come from, what its kernels take, and how they run.
//!
//! `kernels/` at the root of the repository holds the device code. `cargo xtask ptx` compiles it for
//! cards; this crate finds, checks and loads what comes of that. With the feature `emu` the same
//! files are compiled by the host's C++ compiler and run on an emulated device. A kernel is called
//! through one safe function, which checks lengths and shapes; the function takes any [`Launcher`],
//! so what is written and tested on the emulator runs unchanged on a card.
//!
//! | module | what it holds |
//! |---|---|
//! | `declare` | [`Kernel`], the typed declaration, and the `kernels!` macro behind it |
//! | `device_type` | [`DeviceType`]: what may be an argument, [`Ptr`] and [`PtrMut`] |
//! | `launcher` | [`Launcher`] and its two kinds, [`CudaLauncher`] and `EmulatorLauncher` |
//! | `image`, [`manifest`], [`digest`], [`sources`] | images of `cargo xtask ptx`: found, checked, chosen |
//! | [`block_check`], [`field_ops`], [`curve_ops`], [`field_bench`] | kernels that check and time the arithmetic |
//! | [`ntt`], [`ntt_vector`] | transforms and what lies between them |
//! | [`windows`], [`bucket_sort`], [`pair_tree`], [`bucket_reduce`], [`fixed_base`], [`multiples`] | sums: recoding, sorting, adding up, reducing; multiples of one point, and of many |
//! | [`witness`], [`rows`], [`sparse_terms`] | the packed witness, and what is computed from it |
//! | [`group_ntt`], [`point_check`] | transforms over points; whether points are on their curve and in the subgroup |
//! | `self_test` | [`self_test`]: known answers, on any launcher |
//!
//! `docs/kernels.md` says how to add a kernel.
//!
//! ```no_run
//! use cuzk_gpu_mem::{Device, Settings};
//!
//! let device = Device::open(&"0".parse()?, Settings::default())?;
//! let launcher = cuzk_kernels::open(&device)?;
//! cuzk_kernels::self_test(&*launcher)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(not(target_pointer_width = "64"))]
compile_error!("device pointers are 64-bit; so must the host's be");

pub mod block_check;
pub mod bucket_reduce;
pub mod bucket_sort;
mod curve;
pub mod curve_ops;
mod declare;
mod device_type;
#[allow(dead_code, reason = "shared with the build script and xtask")]
pub mod digest;
mod elementwise;
mod error;
pub mod field_bench;
pub mod field_ops;
pub mod fixed_base;
pub mod group_ntt;
mod image;
mod launcher;
mod lengths;
#[allow(dead_code, reason = "shared with the build script and xtask")]
pub mod manifest;
pub mod multiples;
pub mod ntt;
pub mod ntt_vector;
pub mod pair_tree;
pub mod point_check;
pub mod rows;
mod self_test;
#[allow(dead_code, reason = "shared with the build script and xtask")]
pub mod sources;
pub mod sparse_terms;
pub mod windows;
pub mod witness;

pub use curve::DeviceCurve;
pub use declare::{Arguments, Declaration, Kernel, Parameter};
pub use device_type::{DeviceType, Ptr, PtrMut};
pub use error::{Error, Result};
pub use image::ImageSet;
pub use launcher::cuda::CudaLauncher;
#[cfg(feature = "emu")]
pub use launcher::emulator::{self, EmulatorLauncher};
pub use launcher::{Argument, Launcher, Shape, open};
pub use self_test::{SelfTest, self_test};

/// Every kernel there is; `cargo xtask abi` compares this list with the device code.
pub fn declarations() -> Vec<&'static Declaration> {
    [
        block_check::DECLARATIONS,
        bucket_sort::DECLARATIONS,
        bucket_sort::second::DECLARATIONS,
        multiples::DECLARATIONS,
        curve_ops::DECLARATIONS,
        field_bench::DECLARATIONS,
        field_ops::DECLARATIONS,
        ntt::DECLARATIONS,
        ntt_vector::DECLARATIONS,
        rows::DECLARATIONS,
        sparse_terms::DECLARATIONS,
        witness::DECLARATIONS,
        bucket_reduce::LINES,
        bucket_reduce::g1::DECLARATIONS,
        bucket_reduce::g2::DECLARATIONS,
        fixed_base::DECLARATIONS,
        group_ntt::DECLARATIONS,
        point_check::DECLARATIONS,
        pair_tree::DECLARATIONS,
        pair_tree::g1_rounds::DECLARATIONS,
        pair_tree::g1_tail::DECLARATIONS,
        pair_tree::g2_rounds::DECLARATIONS,
        pair_tree::g2_tail::DECLARATIONS,
    ]
    .concat()
}
