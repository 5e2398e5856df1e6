//! The driver calls of a CUDA device. Each binds the context and names itself in its error.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys::CUmemPool_attribute as PoolAttribute;
use cudarc::driver::{result, sys};

use super::{CudaDriver, library, named};
use crate::driver::{
    AllocKind, Code, Copy, DevicePtr, Driver, DriverError, DriverResult, EventId, HostWork,
    MemInfo, Point, StreamId,
};
use crate::info::DeviceInfo;

/// `CU_MEMHOSTREGISTER_PORTABLE`: page-locked for every context of the process.
const REGISTER_PORTABLE: u32 = 1;

fn event(event: EventId) -> sys::CUevent {
    ptr::with_exposed_provenance_mut(event.0 as usize)
}

fn check(call: &'static str, code: sys::CUresult) -> DriverResult<()> {
    code.result().map_err(named(call))
}

/// Runs boxed host work that `cuLaunchHostFunc` was given; a panic must not cross into the driver.
unsafe extern "C" fn run_host_work(work: *mut c_void) {
    // SAFETY: `enqueue` made this pointer by `Box::into_raw` and the driver calls back once.
    let work = unsafe { Box::from_raw(work.cast::<HostWork>()) };
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(*work)).is_err() {
        tracing::error!("host work enqueued on a CUDA stream panicked");
    }
}

impl CudaDriver {
    fn pool_attribute(&self, attribute: PoolAttribute) -> DriverResult<u64> {
        let mut value = 0_u64;
        // SAFETY: the pool lives as long as `self`; these attributes are 64-bit.
        unsafe { result::mem_pool::get_attribute(self.pool, attribute, (&raw mut value).cast()) }
            .map_err(named("cuMemPoolGetAttribute"))?;
        Ok(value)
    }

    pub(super) fn set_threshold(&self, bytes: u64) -> DriverResult<()> {
        let mut value = bytes;
        let attribute = PoolAttribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool lives as long as `self`; the threshold is 64-bit.
        unsafe { result::mem_pool::set_attribute(self.pool, attribute, (&raw mut value).cast()) }
            .map_err(named("cuMemPoolSetAttribute"))
    }
}

impl Driver for CudaDriver {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn mem_info(&self) -> DriverResult<MemInfo> {
        self.bind()?;
        let (free, total) = result::mem_get_info().map_err(named("cuMemGetInfo"))?;
        Ok(MemInfo {
            total: total as u64,
            free: free as u64,
            pool_reserved: self
                .pool_attribute(PoolAttribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
            pool_used: self.pool_attribute(PoolAttribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
        })
    }

    unsafe fn alloc(
        &self,
        kind: AllocKind,
        bytes: u64,
        stream: StreamId,
    ) -> DriverResult<DevicePtr> {
        self.bind()?;
        // SAFETY: context bound, pool and stream live (contract of `Driver`).
        let ptr = unsafe {
            match kind {
                AllocKind::StreamOrdered => result::mem_pool::alloc_async(
                    self.pool,
                    bytes as usize,
                    self.raw_stream(stream),
                )
                .map_err(named("cuMemAllocFromPoolAsync"))?,
                AllocKind::Synchronous => {
                    result::malloc_sync(bytes as usize).map_err(named("cuMemAlloc"))?
                }
            }
        };
        Ok(DevicePtr(ptr))
    }

    unsafe fn free(&self, kind: AllocKind, ptr: DevicePtr, stream: StreamId) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: the block is live and of this kind (contract of `Driver`).
        unsafe {
            match kind {
                AllocKind::StreamOrdered => result::free_async(ptr.0, self.raw_stream(stream))
                    .map_err(named("cuMemFreeAsync")),
                AllocKind::Synchronous => result::free_sync(ptr.0).map_err(named("cuMemFree")),
            }
        }
    }

    fn trim(&self, keep_bytes: u64) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: the pool lives as long as `self`.
        unsafe { result::mem_pool::trim_to(self.pool, keep_bytes as usize) }
            .map_err(named("cuMemPoolTrimTo"))
    }

    fn set_release_threshold(&self, bytes: u64) -> DriverResult<()> {
        self.bind()?;
        self.set_threshold(bytes)
    }

    unsafe fn host_register(&self, start: usize, bytes: usize) -> DriverResult<()> {
        self.bind()?;
        let start = ptr::with_exposed_provenance_mut(start);
        // SAFETY: the range is mapped and stays so until it is unregistered (contract of `Driver`).
        check("cuMemHostRegister", unsafe {
            sys::cuMemHostRegister_v2(start, bytes, REGISTER_PORTABLE)
        })
    }

    unsafe fn host_unregister(&self, start: usize) -> DriverResult<()> {
        self.bind()?;
        let start = ptr::with_exposed_provenance_mut(start);
        // SAFETY: no copy uses the range any more (contract of `Driver`).
        check("cuMemHostUnregister", unsafe {
            sys::cuMemHostUnregister(start)
        })
    }

    unsafe fn copy(&self, copy: Copy, stream: StreamId) -> DriverResult<()> {
        self.bind()?;
        let stream = self.raw_stream(stream);
        // SAFETY: both ranges stay valid until the stream has passed the copy (contract of `Driver`).
        unsafe {
            match copy {
                Copy::Upload { from, to, bytes } => {
                    let code = sys::cuMemcpyHtoDAsync_v2(to.0, from.cast(), bytes, stream);
                    check("cuMemcpyHtoDAsync", code)
                }
                Copy::Download { from, to, bytes } => {
                    let code = sys::cuMemcpyDtoHAsync_v2(to.cast(), from.0, bytes, stream);
                    check("cuMemcpyDtoHAsync", code)
                }
                Copy::Device { from, to, bytes } => {
                    let code = sys::cuMemcpyDtoDAsync_v2(to.0, from.0, bytes, stream);
                    check("cuMemcpyDtoDAsync", code)
                }
            }
        }
    }

    unsafe fn fill(
        &self,
        ptr: DevicePtr,
        value: u8,
        bytes: usize,
        stream: StreamId,
    ) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: the range lies in a live block (contract of `Driver`).
        unsafe { result::memset_d8_async(ptr.0, value, bytes, self.raw_stream(stream)) }
            .map_err(named("cuMemsetD8Async"))
    }

    unsafe fn enqueue(&self, stream: StreamId, work: HostWork) -> DriverResult<()> {
        self.bind()?;
        let work = Box::into_raw(Box::new(work));
        // SAFETY: the driver hands the pointer to `run_host_work` once.
        let code = unsafe {
            sys::cuLaunchHostFunc(self.raw_stream(stream), Some(run_host_work), work.cast())
        };
        check("cuLaunchHostFunc", code).inspect_err(|_| {
            // SAFETY: the call was refused, so nobody else has the pointer.
            drop(unsafe { Box::from_raw(work) });
        })
    }

    fn create_stream(&self) -> DriverResult<StreamId> {
        self.bind()?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(named("cuStreamCreate"))?;
        Ok(StreamId(stream.expose_provenance() as u64))
    }

    unsafe fn destroy_stream(&self, stream: StreamId) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: the stream is live and dead afterwards (contract of `Driver`).
        unsafe { result::stream::destroy(self.raw_stream(stream)) }
            .map_err(named("cuStreamDestroy"))
    }

    fn create_event(&self, timed: bool) -> DriverResult<EventId> {
        self.bind()?;
        let flags = if timed {
            sys::CUevent_flags::CU_EVENT_DEFAULT
        } else {
            sys::CUevent_flags::CU_EVENT_DISABLE_TIMING
        };
        let event = result::event::create(flags).map_err(named("cuEventCreate"))?;
        Ok(EventId(event.expose_provenance() as u64))
    }

    unsafe fn destroy_event(&self, id: EventId) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: the event is live and dead afterwards (contract of `Driver`).
        unsafe { result::event::destroy(event(id)) }.map_err(named("cuEventDestroy"))
    }

    unsafe fn record(&self, id: EventId, stream: StreamId) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: both handles are live (contract of `Driver`).
        unsafe { result::event::record(event(id), self.raw_stream(stream)) }
            .map_err(named("cuEventRecord"))
    }

    unsafe fn stream_wait(&self, stream: StreamId, id: EventId) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: both handles are live (contract of `Driver`).
        check("cuStreamWaitEvent", unsafe {
            sys::cuStreamWaitEvent(self.raw_stream(stream), event(id), 0)
        })
    }

    unsafe fn wait(&self, point: Point) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: the handle is live (contract of `Driver`).
        unsafe {
            match point {
                Point::Device => result::ctx::synchronize().map_err(named("cuCtxSynchronize")),
                Point::Stream(stream) => result::stream::synchronize(self.raw_stream(stream))
                    .map_err(named("cuStreamSynchronize")),
                Point::Event(id) => {
                    result::event::synchronize(event(id)).map_err(named("cuEventSynchronize"))
                }
            }
        }
    }

    unsafe fn query(&self, point: Point) -> DriverResult<bool> {
        self.bind()?;
        // SAFETY: the handle is live (contract of `Driver`).
        let answer = unsafe {
            match point {
                Point::Device => result::ctx::synchronize().map_err(named("cuCtxSynchronize")),
                Point::Stream(stream) => {
                    check("cuStreamQuery", sys::cuStreamQuery(self.raw_stream(stream)))
                }
                Point::Event(id) => result::event::query(event(id)).map_err(named("cuEventQuery")),
            }
        };
        match answer {
            Ok(()) => Ok(true),
            Err(error) if error.code == Code::NOT_READY => Ok(false),
            Err(error) => Err(error),
        }
    }

    unsafe fn elapsed_ms(&self, begin: EventId, end: EventId) -> DriverResult<f32> {
        self.bind()?;
        let call = "cuEventElapsedTime";
        let Some(elapsed) = library::elapsed_time() else {
            return Err(DriverError::new(call, Code::NOT_SUPPORTED));
        };
        let mut ms = 0.0_f32;
        // SAFETY: the pointer is valid, both events are live (contract of `Driver`).
        match unsafe { elapsed(&mut ms, event(begin), event(end)) } {
            0 => Ok(ms),
            code => Err(DriverError::new(call, Code(code))),
        }
    }

    fn as_cuda(&self) -> Option<&CudaDriver> {
        Some(self)
    }
}
