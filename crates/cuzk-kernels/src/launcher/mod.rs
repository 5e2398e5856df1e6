//! How kernels get onto a stream: through the driver of a card, or on an emulated device.

pub(crate) mod cuda;
#[cfg(feature = "emu")]
pub mod emulator;
mod raw;

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use cuzk_gpu_mem::{Device, Stream};

use crate::declare::Declaration;
use crate::device_type::DeviceType;
use crate::error::{Error, Result};
use crate::image::ImageSet;
use cuda::CudaLauncher;

/// Blocks, threads of each, and the shared memory that a kernel asks for by size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
}

impl Shape {
    /// A row of blocks.
    pub fn blocks(blocks: u32, threads: u32) -> Self {
        Self {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            shared_bytes: 0,
        }
    }

    /// As many blocks of `threads` as give each of `count` elements a thread.
    pub fn covering(count: usize, threads: u32) -> Self {
        let blocks = count.div_ceil(threads as usize);
        // Too many are refused when the shape is checked, by CUDA's own limit.
        Self::blocks(u32::try_from(blocks).unwrap_or(u32::MAX), threads)
    }

    /// The same with dynamic shared memory.
    #[must_use]
    pub fn with_shared(self, bytes: u32) -> Self {
        Self {
            shared_bytes: bytes,
            ..self
        }
    }

    /// Whether there is no block in it.
    pub fn is_empty(&self) -> bool {
        self.grid.contains(&0)
    }

    /// Threads of one block.
    pub fn threads(&self) -> u64 {
        self.block.iter().map(|&size| u64::from(size)).product()
    }

    pub(crate) fn check(&self, declaration: &Declaration) -> Result<()> {
        let refuse = |reason| {
            Err(Error::Shape {
                entry: declaration.entry,
                reason,
            })
        };
        let [x, y, z] = self.grid;
        if x > i32::MAX as u32 || y > 65_535 || z > 65_535 {
            return refuse(format!(
                "a grid of {x} x {y} x {z} blocks is too large for CUDA"
            ));
        }
        let threads = self.threads();
        if threads == 0 || threads > u64::from(declaration.threads) {
            return refuse(format!(
                "blocks of {threads} threads, where 1 to {} are allowed",
                declaration.threads
            ));
        }
        Ok(())
    }
}

/// One argument, borrowed.
#[derive(Clone, Copy)]
pub struct Argument<'a> {
    pub(crate) address: *const c_void,
    #[cfg_attr(not(feature = "emu"), allow(dead_code, reason = "the emulator copies"))]
    pub(crate) bytes: usize,
    borrowed: PhantomData<&'a ()>,
}

impl<'a> Argument<'a> {
    pub(crate) fn of<T: DeviceType>(value: &'a T) -> Self {
        Self {
            address: std::ptr::from_ref(value).cast(),
            bytes: size_of::<T>(),
            borrowed: PhantomData,
        }
    }
}

impl fmt::Debug for Argument<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Argument({} bytes)", self.bytes)
    }
}

/// Launches kernels on one device.
pub trait Launcher: fmt::Debug + Send + Sync {
    /// The device.
    fn device(&self) -> &Device;

    /// Puts one launch into `stream`.
    ///
    /// # Safety
    /// The arguments are of the declaration's types, in order; the shape is not empty and within
    /// CUDA's and the declaration's limits; the stream belongs to the launcher's device; the kernel's
    /// own contract holds. [`Kernel::launch`](crate::Kernel::launch) sees to all but the last.
    unsafe fn submit(
        &self,
        declaration: &'static Declaration,
        shape: Shape,
        arguments: &[Argument<'_>],
        stream: &Stream,
    ) -> Result<()>;
}

/// The launcher that suits the device: its card's, with the images found as
/// [`ImageSet::find`] says, or the emulator.
pub fn open(device: &Device) -> Result<Box<dyn Launcher>> {
    if device.driver().as_cuda().is_some() {
        return Ok(Box::new(CudaLauncher::new(device, ImageSet::find()?)?));
    }
    #[cfg(feature = "emu")]
    return Ok(Box::new(emulator::EmulatorLauncher::new(device)));
    #[cfg(not(feature = "emu"))]
    Err(Error::NoEmulator)
}

pub(crate) fn same_device(one: &Device, other: &Device) -> bool {
    Arc::ptr_eq(one.driver(), other.driver())
}
