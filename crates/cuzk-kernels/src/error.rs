//! What can go wrong between the sources and a running kernel, with the command that mends it.

use std::path::PathBuf;

use cuzk_gpu_mem::driver::DriverError;

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything this crate can fail with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Memory, streams, the device itself.
    #[error(transparent)]
    Memory(#[from] cuzk_gpu_mem::Error),

    /// There are no images.
    #[error(
        "no kernel images in {}; build them with `cargo xtask ptx`, or say where they are with CUZK_KERNELS",
        shown(looked_in)
    )]
    Missing {
        /// The folders that were looked in.
        looked_in: Vec<PathBuf>,
    },

    /// Images of other sources than this program was built from.
    #[error(
        "the images of {module} in {place} are not of this program's sources; build them anew with `cargo xtask ptx`"
    )]
    Stale {
        /// The module.
        module: String,
        /// Where they were found.
        place: String,
    },

    /// None of the images runs on the device.
    #[error("no image of {module} for compute capability {}.{} ({place} has: {}); build it with `cargo xtask ptx --sm {capability}`",
            capability / 10, capability % 10, if available.is_empty() { "none".to_owned() } else { available.join(", ") })]
    WrongArchitecture {
        /// The module.
        module: String,
        /// The device's compute capability, 90 for 9.0.
        capability: u32,
        /// The targets there are.
        available: Vec<String>,
        /// Where.
        place: String,
    },

    /// The images are newer than the driver.
    #[error("{file} was built by CUDA {toolkit}, which needs driver {minimum} or newer; this driver supports CUDA {}.{}. Update the NVIDIA driver, or build the images with an older toolkit: `cargo xtask ptx --nvcc PATH`",
            driver / 1000, driver % 1000 / 10)]
    DriverTooOld {
        /// The image.
        file: String,
        /// The toolkit that made it.
        toolkit: String,
        /// As `cuDriverGetVersion` says: 1000 major + 10 minor.
        driver: i32,
        /// The driver's release that first supports the toolkit.
        minimum: &'static str,
    },

    /// A file is not what the manifest says, or the manifest cannot be read.
    #[error("{file}: {reason}; build it anew with `cargo xtask ptx`")]
    Corrupt {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The driver refused an image.
    #[error("the driver refused {file}: {error}{}", if log.is_empty() { String::new() } else { format!("; it says: {log}") })]
    Refused {
        /// The image.
        file: String,
        /// The call and its code.
        error: DriverError,
        /// What the driver's compiler said.
        log: String,
    },

    /// A launch failed.
    #[error("{entry} was not launched: {error}")]
    Launch {
        /// The kernel.
        entry: &'static str,
        /// The call and its code.
        error: DriverError,
    },

    /// A shape that the kernel or CUDA does not allow.
    #[error("{entry}: {reason}")]
    Shape {
        /// The kernel.
        entry: &'static str,
        /// What is wrong with it.
        reason: String,
    },

    /// Two lengths that must agree do not.
    #[error("{entry}: {what} has {found} elements, expected {expected}")]
    Length {
        /// The kernel.
        entry: &'static str,
        /// Which array.
        what: &'static str,
        /// What it should have been.
        expected: usize,
        /// What it was.
        found: usize,
    },

    /// A sparse matrix that contradicts itself.
    #[error("the matrix cannot be used: {what}")]
    Matrix {
        /// What is wrong with it.
        what: String,
    },

    /// A transform, or a pass of one, that there is not.
    #[error("transform: {reason}")]
    Transform {
        /// What is asked for and what there is.
        reason: String,
    },

    /// A stream of one device was given to the launcher of another.
    #[error("{entry}: the stream belongs to another device than the launcher")]
    WrongDevice {
        /// The kernel.
        entry: &'static str,
    },

    /// The device is an emulated one, and this build has no emulated kernels.
    #[error("kernels for an emulated device are in builds with the feature `emu` only")]
    NoEmulator,

    /// An emulated kernel did what CUDA does not allow.
    #[error("emulated {entry}: {message} (seed {seed:#x})")]
    Fault {
        /// The kernel.
        entry: &'static str,
        /// What it did, and where.
        message: String,
        /// The seed of the order in which blocks and threads ran.
        seed: u64,
    },

    /// A known answer did not come out.
    #[error(
        "self-test of {test} on {device}: wrong at element {index}; this device or its driver computes wrongly"
    )]
    SelfTest {
        /// The test.
        test: &'static str,
        /// The device's name.
        device: String,
        /// The first wrong element.
        index: usize,
    },
}

fn shown(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    paths.join(", ")
}

/// The driver's release that first supports a toolkit of that major version.
pub(crate) fn minimum_driver(toolkit: &str) -> &'static str {
    match toolkit.split('.').next() {
        Some("11") => "450",
        Some("12") => "525",
        Some("13") => "580",
        _ => "of the toolkit's release",
    }
}
