//! A real device, through the driver's library, loaded at run time.
//!
//! cudarc finds the library and names its types; the calls are declared in `raw`. The library is
//! asked for before the first of them, since cudarc panics where there is none.

mod calls;
mod library;
mod raw;

pub use raw::find_call;

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys;

pub use library::MIN_DRIVER_VERSION;

use crate::driver::{DriverResult, StreamId};
use crate::error::Unavailable;
use crate::info::DeviceInfo;

/// Which pool stream-ordered allocations come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolChoice {
    /// A pool of one's own: its cached bytes are certainly ours to trim.
    #[default]
    Own,
    /// The device's default pool, shared with other code in the process that allocates from it.
    Default,
}

/// Which pool, and how much it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// Own or default.
    pub choice: PoolChoice,
    /// Bytes the pool keeps over a synchronisation. 0 is CUDA's default and makes every large
    /// allocation map memory anew (milliseconds); `u64::MAX`, ours, keeps all (microseconds), and
    /// trimming is up to the ledger.
    pub release_threshold: u64,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            choice: PoolChoice::Own,
            release_threshold: u64::MAX,
        }
    }
}

/// A CUDA device: its primary context, retained, and a pool.
///
/// Every call binds the context to the calling thread first, so any thread may call. Code that
/// launches kernels does the same with [`CudaDriver::bind`].
#[derive(Debug)]
pub struct CudaDriver {
    info: DeviceInfo,
    device: sys::CUdevice,
    context: sys::CUcontext,
    pool: sys::CUmemoryPool,
    owns_pool: bool,
    /// The process that retained the context; a forked child must not touch it.
    pid: u32,
}

// SAFETY: context and pool handles may be used from any thread (CUDA driver API, "thread safety");
// every call binds the context to its own thread first.
unsafe impl Send for CudaDriver {}
// SAFETY: as above; no call mutates the struct.
unsafe impl Sync for CudaDriver {}

/// All devices the driver shows and can describe; opens no context.
pub(crate) fn list() -> Result<Vec<DeviceInfo>, Unavailable> {
    library::init()?;
    library::list()
}

impl CudaDriver {
    /// Opens the device of that ordinal: retains its primary context and prepares the pool.
    pub fn open(ordinal: u32, pool: PoolSettings) -> Result<Arc<Self>, Unavailable> {
        library::init()?;
        let info = library::device(ordinal)?;
        if !info.has_pools {
            return Err(Unavailable::NoPools { device: ordinal });
        }
        let device = library::handle_of(ordinal as i32).map_err(library::unavailable)?;
        // SAFETY: `device` comes from `cuDeviceGet`, and the pointer is valid.
        let context =
            raw::handle(|context| unsafe { raw::cuDevicePrimaryCtxRetain(context, device) })
                .map_err(library::unavailable)?;
        let mut driver = Self {
            info,
            device,
            context,
            pool: ptr::null_mut(),
            owns_pool: false,
            pid: std::process::id(),
        };
        driver.prepare_pool(pool).map_err(library::unavailable)?;
        Ok(Arc::new(driver))
    }

    fn prepare_pool(&mut self, settings: PoolSettings) -> DriverResult<()> {
        self.bind()?;
        match settings.choice {
            PoolChoice::Default => {
                self.pool = raw::handle(|pool| {
                    // SAFETY: `device` comes from `cuDeviceGet`, and the pointer is valid.
                    unsafe { raw::cuDeviceGetDefaultMemPool(pool, self.device) }
                })?;
            }
            PoolChoice::Own => {
                let props = sys::CUmemPoolProps {
                    allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
                    handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
                    location: sys::CUmemLocation {
                        type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                        id: self.device,
                    },
                    win32SecurityAttributes: ptr::null_mut(),
                    maxSize: 0,
                    usage: 0,
                    reserved: [0; 54],
                };
                // SAFETY: `props` is fully initialised and outlives the call.
                self.pool = raw::handle(|pool| unsafe { raw::cuMemPoolCreate(pool, &props) })?;
                self.owns_pool = true;
            }
        }
        self.set_threshold(settings.release_threshold)
    }

    /// Binds the device's context to the calling thread, if it is not bound already.
    pub fn bind(&self) -> DriverResult<()> {
        // SAFETY: the library is there, and the pointer is valid.
        let current = raw::handle(|context| unsafe { raw::cuCtxGetCurrent(context) })?;
        if current != self.context {
            // SAFETY: the context is retained for as long as `self` lives.
            unsafe { raw::cuCtxSetCurrent(self.context)? };
        }
        Ok(())
    }

    /// The stream as cudarc's raw layer takes it, for launching kernels into it.
    pub fn raw_stream(&self, stream: StreamId) -> sys::CUstream {
        ptr::with_exposed_provenance_mut(stream.0 as usize)
    }

    /// The retained primary context.
    pub fn raw_context(&self) -> sys::CUcontext {
        self.context
    }

    /// The pool that stream-ordered allocations come from.
    pub fn raw_pool(&self) -> sys::CUmemoryPool {
        self.pool
    }
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        if std::process::id() != self.pid {
            return;
        }
        // Nobody is left to tell: streams, events and blocks hold the driver alive, so all are gone.
        if self.owns_pool && self.bind().is_ok() {
            // SAFETY: the pool is ours and every block from it has been freed or abandoned.
            let _ = unsafe { raw::cuMemPoolDestroy(self.pool) };
        }
        // SAFETY: retained once in `open`.
        let _ = unsafe { raw::cuDevicePrimaryCtxRelease(self.device) };
    }
}
