//! Kernels on an emulated device: the same `.cu`, compiled by the host's compiler (`emulator/`).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cuzk_gpu_mem::{Device, Stream};
use parking_lot::Mutex;

use super::{Argument, Launcher, Shape};
use crate::declare::{Arguments, kernels};
use crate::declare::{Declaration, Emulated, Kernel};
use crate::device_type::PtrMut;
use crate::error::{Error, Result};

/// `struct cuzk_emulator_shape` of emulator.cpp.
#[repr(C)]
struct RawShape {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u64,
}

unsafe extern "C" {
    fn cuzk_emulator_launch(
        body: Emulated,
        arguments: *mut c_void,
        shape: *const RawShape,
        seed: u64,
        workers: u32,
        message: *mut c_char,
        message_bytes: usize,
    ) -> c_int;
}

/// Arguments of a launch that may run later, on another thread.
struct Owned {
    /// The values, each at a multiple of 16 bytes.
    words: Vec<u128>,
    /// Where each begins, in words.
    starts: Vec<usize>,
}

impl Owned {
    fn copy(arguments: &[Argument<'_>]) -> Self {
        let mut owned = Self {
            words: Vec::new(),
            starts: Vec::new(),
        };
        for argument in arguments {
            let start = owned.words.len();
            owned.starts.push(start);
            owned.words.resize(start + argument.bytes.div_ceil(16), 0);
            // SAFETY: the argument is borrowed, so readable; the room was just made.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    argument.address.cast::<u8>(),
                    owned.words[start..].as_mut_ptr().cast::<u8>(),
                    argument.bytes,
                );
            }
        }
        owned
    }

    /// # Safety
    /// As for [`Launcher::submit`].
    unsafe fn run(
        &mut self,
        body: Emulated,
        shape: Shape,
        seed: u64,
        workers: u32,
    ) -> Result<(), String> {
        let words = self.words.as_mut_ptr();
        let mut addresses: Vec<*mut u128> = self
            .starts
            .iter()
            .map(|&start| words.wrapping_add(start))
            .collect();
        let raw = RawShape {
            grid: shape.grid,
            block: shape.block,
            shared_bytes: u64::from(shape.shared_bytes),
        };
        let mut message = [0 as c_char; 1024];
        // SAFETY: `body` takes the addresses of its arguments, which live until the call returns;
        // shape and message are valid. What the kernel does is the caller's promise.
        let code = unsafe {
            cuzk_emulator_launch(
                body,
                addresses.as_mut_ptr().cast(),
                &raw,
                seed,
                workers,
                message.as_mut_ptr(),
                message.len(),
            )
        };
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the emulator ends the message with a zero.
        let message = unsafe { CStr::from_ptr(message.as_ptr()) };
        Err(message.to_string_lossy().into_owned())
    }
}

/// What went wrong on the emulated device, once it has.
type FirstFault = Arc<Mutex<Option<(&'static str, String, u64)>>>;

/// Runs kernels in stream order on an emulated device.
#[derive(Debug)]
pub struct EmulatorLauncher {
    device: Device,
    seed: AtomicU64,
    workers: u32,
    fault: FirstFault,
}

impl EmulatorLauncher {
    /// A launcher whose blocks and threads run in an order of this moment, or of the seed in
    /// `CUZK_EMULATOR_SEED`.
    pub fn new(device: &Device) -> Self {
        let given = std::env::var("CUZK_EMULATOR_SEED").ok().and_then(|text| {
            let digits = text.strip_prefix("0x");
            digits.map_or_else(
                || text.parse().ok(),
                |hex| u64::from_str_radix(hex, 16).ok(),
            )
        });
        Self::with_seed(device, given.unwrap_or_else(seed_of_now))
    }

    /// A launcher whose blocks and threads run in an order of that seed.
    pub fn with_seed(device: &Device, seed: u64) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            device: device.clone(),
            seed: AtomicU64::new(seed),
            workers: cores as u32,
            fault: FirstFault::default(),
        }
    }

    /// What a kernel did that CUDA does not allow, the first time. The device is lost from then on.
    pub fn fault(&self) -> Option<Error> {
        let fault = self.fault.lock();
        let (entry, message, seed) = fault.as_ref()?;
        Some(Error::Fault {
            entry,
            message: message.clone(),
            seed: *seed,
        })
    }
}

fn seed_of_now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos() as u64)
}

impl Launcher for EmulatorLauncher {
    fn device(&self) -> &Device {
        &self.device
    }

    unsafe fn submit(
        &self,
        declaration: &'static Declaration,
        shape: Shape,
        arguments: &[Argument<'_>],
        stream: &Stream,
    ) -> Result<()> {
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        let entry = declaration.entry;
        let body = declaration.emulated.ok_or(Error::NoEmulator)?;
        let seed = self.seed.fetch_add(1, Ordering::Relaxed);
        let mut owned = Owned::copy(arguments);
        let (fault, workers) = (Arc::clone(&self.fault), self.workers);
        let work = move || {
            // SAFETY: passed on.
            if let Err(message) = unsafe { owned.run(body, shape, seed, workers) } {
                tracing::error!(entry, seed, message, "emulated kernel");
                fault.lock().get_or_insert((entry, message, seed));
                // The emulated device takes a panic for a kernel that failed: it is lost.
                std::panic::resume_unwind(Box::new(entry));
            }
        };
        // The work owns its arguments; the arrays they name are the caller's promise.
        stream.enqueue(work)?;
        match self.fault() {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }
}

/// Runs a kernel here and now, without a device.
///
/// # Safety
/// The kernel's contract, as for [`Kernel::launch`], on host memory.
pub unsafe fn run<A: Arguments>(
    kernel: &Kernel<A>,
    shape: Shape,
    arguments: A,
    seed: u64,
) -> Result<()> {
    let declaration = kernel.declaration();
    let entry = declaration.entry;
    shape.check(declaration)?;
    let body = declaration.emulated.ok_or(Error::NoEmulator)?;
    let mut owned = arguments.with(Owned::copy);
    // SAFETY: the arguments are the declaration's, by their types; the rest is the caller's promise.
    unsafe { owned.run(body, shape, seed, 2) }.map_err(|message| Error::Fault {
        entry,
        message,
        seed,
    })
}

/// Kernels that do what a card would not survive: tests of the emulator itself.
#[doc(hidden)]
pub mod faulty {
    use super::*;

    kernels! {
        module "faulty";
        /// Two halves at two barriers.
        TWO_BARRIERS = cuzk_faulty_two_barriers[1024](out: PtrMut<u32>);
        /// One thread leaves before a barrier.
        EARLY_RETURN = cuzk_faulty_early_return[1024](out: PtrMut<u32>);
        /// Half of a mask does not come.
        MISSING_LANES = cuzk_faulty_missing_lanes[1024](out: PtrMut<u32>);
        /// One mask, two operations.
        TWO_OPERATIONS = cuzk_faulty_two_operations[1024](out: PtrMut<u32>);
        /// Warp and block wait for each other.
        DEADLOCK = cuzk_faulty_deadlock[1024](out: PtrMut<u32>);
        /// A shuffle from outside the mask.
        FOREIGN_LANE = cuzk_faulty_foreign_lane[1024](out: PtrMut<u32>);
        /// Shared memory read before it is written.
        UNWRITTEN = cuzk_faulty_unwritten[32](out: PtrMut<u32>);
        /// Shared memory written past its end.
        PAST_THE_END = cuzk_faulty_past_the_end[32](out: PtrMut<u32>);
        /// A race in shared memory.
        RACE = cuzk_faulty_race[64](out: PtrMut<u32>);
        /// A race between blocks.
        BLOCK_RACE = cuzk_faulty_block_race[64](out: PtrMut<u32>);
        /// Undefined behaviour of C++.
        SHIFT = cuzk_faulty_shift[1024](out: PtrMut<u32>);
        /// `__trap`.
        TRAP = cuzk_faulty_trap[1024](out: PtrMut<u32>);
    }
}
