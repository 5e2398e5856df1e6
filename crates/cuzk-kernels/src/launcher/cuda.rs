//! Kernels on a card, through the driver's library.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::Arc;

use cudarc::driver::sys;
use cuzk_gpu_mem::driver::{CudaDriver, Driver};
use cuzk_gpu_mem::{Device, Stream};
use parking_lot::Mutex;

use super::raw;
use super::{Argument, Launcher, Shape};
use crate::declare::Declaration;
use crate::error::{Error, Result};
use crate::image::{ImageSet, Loaded, too_old};

/// Shared memory, static and dynamic together, that needs no leave.
const SHARED_BYTES_FREE: u32 = 48 << 10;

/// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`.
const UNSUPPORTED_PTX_VERSION: u32 = 222;

/// Loads images and launches their kernels.
pub struct CudaLauncher {
    device: Device,
    images: ImageSet,
    loaded: Mutex<HashMap<&'static str, Module>>,
}

impl std::fmt::Debug for CudaLauncher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CudaLauncher")
            .field("device", &self.device)
            .field("images", &self.images.place())
            .finish_non_exhaustive()
    }
}

/// An image in the device's context.
struct Module {
    raw: sys::CUmodule,
    file: String,
    functions: HashMap<&'static str, Function>,
}

#[derive(Clone, Copy)]
struct Function {
    raw: sys::CUfunction,
    /// Dynamic shared memory it may have so far.
    shared_bytes: u32,
}

// SAFETY: handles of a context may be used from any thread that has the context bound (CUDA driver
// API); every use here binds it first.
unsafe impl Send for Module {}

impl CudaLauncher {
    /// A launcher with these images, all of which suit the device. Each is loaded when its first
    /// kernel is launched.
    pub fn new(device: &Device, images: ImageSet) -> Result<Self> {
        images.check(capability(device), device.info().driver_version)?;
        Ok(Self {
            device: device.clone(),
            images,
            loaded: Mutex::default(),
        })
    }

    /// The images.
    pub fn images(&self) -> &ImageSet {
        &self.images
    }

    fn function(&self, declaration: &Declaration, shared_bytes: u32) -> Result<sys::CUfunction> {
        let mut loaded = self.loaded.lock();
        if !loaded.contains_key(declaration.module) {
            let driver_version = self.device.info().driver_version;
            let image =
                self.images
                    .load(declaration.module, capability(&self.device), driver_version)?;
            loaded.insert(declaration.module, load(&image, driver_version)?);
        }
        let module = loaded.get_mut(declaration.module).expect("just loaded");
        module.function(declaration, shared_bytes)
    }
}

fn capability(device: &Device) -> u32 {
    let capability = device.info().capability;
    10 * capability.major + capability.minor
}

/// Loads an image into the context that is bound.
fn load(image: &Loaded, driver_version: i32) -> Result<Module> {
    use sys::CUjit_option_enum as Option;

    let mut log = vec![0_u8; 4096];
    let mut options = [
        Option::CU_JIT_ERROR_LOG_BUFFER,
        Option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    // Each value is passed in the place of a pointer.
    let mut values: [*mut c_void; 2] = [
        log.as_mut_ptr().cast(),
        std::ptr::without_provenance_mut(log.len()),
    ];
    // PTX is read up to a zero.
    let mut bytes = image.bytes.to_vec();
    bytes.push(0);
    let mut raw = std::ptr::null_mut();
    // SAFETY: the image ends with a zero, the log lives until the call returns, two options have two
    // values.
    let outcome = unsafe {
        raw::cuModuleLoadDataEx(
            &mut raw,
            bytes.as_ptr().cast(),
            2,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    if let Err(error) = outcome {
        if error.code.0 == UNSUPPORTED_PTX_VERSION {
            return Err(too_old(image.file.clone(), &image.toolkit, driver_version));
        }
        let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
        return Err(Error::Refused {
            file: image.file.clone(),
            error,
            log: String::from_utf8_lossy(&log[..end]).trim().to_owned(),
        });
    }
    tracing::debug!(file = image.file, "kernel image loaded");
    Ok(Module {
        raw,
        file: image.file.clone(),
        functions: HashMap::new(),
    })
}

impl Module {
    fn function(
        &mut self,
        declaration: &Declaration,
        shared_bytes: u32,
    ) -> Result<sys::CUfunction> {
        let refused = |file: &str, error| Error::Refused {
            file: file.to_owned(),
            error,
            log: declaration.entry.to_owned(),
        };
        let mut function = match self.functions.get(declaration.entry) {
            Some(function) => *function,
            None => {
                let name = CString::new(declaration.entry).expect("entries are identifiers");
                let mut raw = std::ptr::null_mut();
                // SAFETY: the module is loaded for as long as `self` lives; the name ends with a zero.
                unsafe { raw::cuModuleGetFunction(&mut raw, self.raw, name.as_ptr()) }
                    .map_err(|error| refused(&self.file, error))?;
                let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
                let mut own_bytes = 0;
                // SAFETY: the function is of a loaded module; the result is written to a local.
                unsafe { raw::cuFuncGetAttribute(&mut own_bytes, attribute, raw) }
                    .map_err(|error| refused(&self.file, error))?;
                Function {
                    raw,
                    shared_bytes: SHARED_BYTES_FREE.saturating_sub(own_bytes.unsigned_abs()),
                }
            }
        };
        if shared_bytes > function.shared_bytes {
            let attribute =
                sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is of a loaded module.
            unsafe { raw::cuFuncSetAttribute(function.raw, attribute, shared_bytes as i32) }
                .map_err(|error| Error::Launch {
                    entry: declaration.entry,
                    error,
                })?;
            function.shared_bytes = shared_bytes;
        }
        self.functions.insert(declaration.entry, function);
        Ok(function.raw)
    }
}

/// The card's driver; there is one, by [`CudaLauncher::new`]'s callers.
fn cuda(driver: &Arc<dyn Driver>) -> Result<&CudaDriver> {
    driver.as_cuda().ok_or(Error::NoEmulator)
}

impl Launcher for CudaLauncher {
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
        let entry = declaration.entry;
        let driver = cuda(self.device.driver())?;
        driver
            .bind()
            .map_err(|error| Error::Launch { entry, error })?;
        let function = self.function(declaration, shape.shared_bytes)?;
        let mut addresses: Vec<*mut c_void> = arguments
            .iter()
            .map(|argument| argument.address.cast_mut())
            .collect();
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (shape.grid, shape.block);
        // SAFETY: function and stream are live and of the context just bound; the addresses are of
        // the values that the entry takes, which the call copies; the rest is the caller's promise.
        unsafe {
            raw::cuLaunchKernel(
                function,
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                shape.shared_bytes,
                driver.raw_stream(stream.id()),
                addresses.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        }
        .map_err(|error| Error::Launch { entry, error })
    }
}

impl Drop for CudaLauncher {
    fn drop(&mut self) {
        let Some(driver) = self.device.driver().as_cuda() else {
            return;
        };
        // A process that was forked, or a lost context, has nothing to unload.
        if !self.device.is_usable() || driver.bind().is_err() {
            return;
        }
        for module in self.loaded.get_mut().values() {
            // SAFETY: loaded once, here; launches keep their code until they are done.
            if let Err(error) = unsafe { raw::cuModuleUnload(module.raw) } {
                tracing::warn!(
                    file = module.file,
                    ?error,
                    "a kernel image was not unloaded"
                );
            }
        }
    }
}
