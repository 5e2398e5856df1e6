//! The driver calls of a CUDA device. Each binds the context and names itself in its error.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys;
use cudarc::driver::sys::CUmemPool_attribute as PoolAttribute;

use super::{CudaDriver, raw};
use crate::driver::{
    AllocKind, Code, Copy, DevicePtr, Driver, DriverResult, EventId, HostWork, MemInfo, Point,
    Priority, StreamId,
};
use crate::info::DeviceInfo;

/// `CU_MEMHOSTREGISTER_PORTABLE`: page-locked for every context of the process.
const REGISTER_PORTABLE: u32 = 1;

fn event(event: EventId) -> sys::CUevent {
    ptr::with_exposed_provenance_mut(event.0 as usize)
}

/// Runs boxed host work that `cuLaunchHostFunc` was given; a panic must not cross into the driver.
unsafe extern "C" fn run_host_work(work: *mut c_void) {
    // SAFETY: `enqueue` made this pointer by `Box::into_raw` and the driver calls back once.
    let work = unsafe { Box::from_raw(work.cast::<HostWork>()) };
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(*work)).is_err() {
        tracing::error!("host work enqueued on a CUDA stream panicked");
    }
}

/// How often memory is read at most until the pool has not changed meanwhile: what it has grown by would count as free, too.
const MOST_LOOKS: usize = 8;

impl CudaDriver {
    fn pool_attribute(&self, attribute: PoolAttribute) -> DriverResult<u64> {
        raw::returned(|value: *mut u64| {
            // SAFETY: the pool lives as long as `self`; these attributes are 64-bit.
            unsafe { raw::cuMemPoolGetAttribute(self.pool, attribute, value.cast()) }
        })
    }

    pub(super) fn set_threshold(&self, bytes: u64) -> DriverResult<()> {
        let mut value = bytes;
        let attribute = PoolAttribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool lives as long as `self`; the threshold is 64-bit.
        unsafe { raw::cuMemPoolSetAttribute(self.pool, attribute, (&raw mut value).cast()) }
    }
}

// SAFETY: handles and blocks are those of CUDA, made in the context that this driver keeps; waits and orders
// are CUDA's own.
unsafe impl Driver for CudaDriver {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn mem_info(&self) -> DriverResult<MemInfo> {
        self.bind()?;
        let reserved = || self.pool_attribute(PoolAttribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
        let mut before = reserved()?;
        let mut looks = 0;
        loop {
            let (mut free, mut total) = (0, 0);
            // SAFETY: context bound, both pointers valid.
            unsafe { raw::cuMemGetInfo(&raw mut free, &raw mut total)? };
            let pool_used = self.pool_attribute(PoolAttribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?;
            let after = reserved()?;
            looks += 1;
            if before == after || looks == MOST_LOOKS {
                return Ok(MemInfo {
                    total: total as u64,
                    free: free as u64,
                    pool_reserved: before.min(after),
                    pool_used,
                });
            }
            before = after;
        }
    }

    unsafe fn alloc(
        &self,
        kind: AllocKind,
        bytes: u64,
        stream: StreamId,
    ) -> DriverResult<DevicePtr> {
        self.bind()?;
        let bytes = bytes as usize;
        // SAFETY: context bound, pool and stream live (contract of `Driver`).
        let block = raw::returned(|block| unsafe {
            match kind {
                AllocKind::StreamOrdered => {
                    raw::cuMemAllocFromPoolAsync(block, bytes, self.pool, self.raw_stream(stream))
                }
                AllocKind::Synchronous => raw::cuMemAlloc(block, bytes),
            }
        });
        block.map(DevicePtr)
    }

    unsafe fn free(&self, kind: AllocKind, ptr: DevicePtr, stream: StreamId) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: the block is live and of this kind (contract of `Driver`).
        unsafe {
            match kind {
                AllocKind::StreamOrdered => raw::cuMemFreeAsync(ptr.0, self.raw_stream(stream)),
                AllocKind::Synchronous => raw::cuMemFree(ptr.0),
            }
        }
    }

    fn trim(&self, keep_bytes: u64) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: the pool lives as long as `self`.
        unsafe { raw::cuMemPoolTrimTo(self.pool, keep_bytes as usize) }
    }

    fn set_release_threshold(&self, bytes: u64) -> DriverResult<()> {
        self.bind()?;
        self.set_threshold(bytes)
    }

    unsafe fn host_register(&self, start: usize, bytes: usize) -> DriverResult<()> {
        self.bind()?;
        let start = ptr::with_exposed_provenance_mut(start);
        // SAFETY: the range is mapped and stays so until it is unregistered (contract of `Driver`).
        unsafe { raw::cuMemHostRegister(start, bytes, REGISTER_PORTABLE) }
    }

    unsafe fn host_unregister(&self, start: usize) -> DriverResult<()> {
        self.bind()?;
        let start = ptr::with_exposed_provenance_mut(start);
        // SAFETY: no copy uses the range any more (contract of `Driver`).
        unsafe { raw::cuMemHostUnregister(start) }
    }

    unsafe fn copy(&self, copy: Copy, stream: StreamId) -> DriverResult<()> {
        self.bind()?;
        let stream = self.raw_stream(stream);
        // SAFETY: both ranges stay valid until the stream has passed the copy (contract of `Driver`).
        unsafe {
            match copy {
                Copy::Upload { from, to, bytes } => {
                    raw::cuMemcpyHtoDAsync(to.0, from.cast(), bytes, stream)
                }
                Copy::Download { from, to, bytes } => {
                    raw::cuMemcpyDtoHAsync(to.cast(), from.0, bytes, stream)
                }
                Copy::Device { from, to, bytes } => {
                    raw::cuMemcpyDtoDAsync(to.0, from.0, bytes, stream)
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
        unsafe { raw::cuMemsetD8Async(ptr.0, value, bytes, self.raw_stream(stream)) }
    }

    unsafe fn enqueue(&self, stream: StreamId, work: HostWork) -> DriverResult<()> {
        self.bind()?;
        let work = Box::into_raw(Box::new(work));
        // SAFETY: the driver hands the pointer to `run_host_work` once.
        let launched =
            unsafe { raw::cuLaunchHostFunc(self.raw_stream(stream), run_host_work, work.cast()) };
        launched.inspect_err(|_| {
            // SAFETY: the call was refused, so nobody else has the pointer.
            drop(unsafe { Box::from_raw(work) });
        })
    }

    fn create_stream(&self, priority: Priority) -> DriverResult<StreamId> {
        self.bind()?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // Low numbers go first; what the device does not have becomes the nearest that it has.
        let priority = match priority {
            Priority::Normal => 0,
            Priority::High => i32::MIN,
        };
        // SAFETY: context bound, the pointer valid.
        let stream = raw::handle(|stream| unsafe {
            raw::cuStreamCreateWithPriority(stream, flags, priority)
        })?;
        Ok(StreamId(stream.expose_provenance() as u64))
    }

    unsafe fn destroy_stream(&self, stream: StreamId) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: the stream is live and dead afterwards (contract of `Driver`).
        unsafe { raw::cuStreamDestroy(self.raw_stream(stream)) }
    }

    fn create_event(&self, timed: bool) -> DriverResult<EventId> {
        self.bind()?;
        let flags = if timed {
            sys::CUevent_flags::CU_EVENT_DEFAULT
        } else {
            sys::CUevent_flags::CU_EVENT_DISABLE_TIMING
        };
        // SAFETY: context bound, the pointer valid.
        let event = raw::handle(|event| unsafe { raw::cuEventCreate(event, flags as u32) })?;
        Ok(EventId(event.expose_provenance() as u64))
    }

    unsafe fn destroy_event(&self, id: EventId) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: the event is live and dead afterwards (contract of `Driver`).
        unsafe { raw::cuEventDestroy(event(id)) }
    }

    unsafe fn record(&self, id: EventId, stream: StreamId) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: both handles are live (contract of `Driver`).
        unsafe { raw::cuEventRecord(event(id), self.raw_stream(stream)) }
    }

    unsafe fn stream_wait(&self, stream: StreamId, id: EventId) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: both handles are live (contract of `Driver`).
        unsafe { raw::cuStreamWaitEvent(self.raw_stream(stream), event(id), 0) }
    }

    unsafe fn wait(&self, point: Point) -> DriverResult<()> {
        self.bind()?;
        // SAFETY: the handle is live (contract of `Driver`).
        unsafe {
            match point {
                Point::Device => raw::cuCtxSynchronize(),
                Point::Stream(stream) => raw::cuStreamSynchronize(self.raw_stream(stream)),
                Point::Event(id) => raw::cuEventSynchronize(event(id)),
            }
        }
    }

    unsafe fn query(&self, point: Point) -> DriverResult<bool> {
        self.bind()?;
        // SAFETY: the handle is live (contract of `Driver`).
        let answer = unsafe {
            match point {
                Point::Device => raw::cuCtxSynchronize(),
                Point::Stream(stream) => raw::cuStreamQuery(self.raw_stream(stream)),
                Point::Event(id) => raw::cuEventQuery(event(id)),
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
        // SAFETY: the pointer is valid, both events are live (contract of `Driver`).
        raw::returned(|ms| unsafe { raw::cuEventElapsedTime(ms, event(begin), event(end)) })
    }

    fn as_cuda(&self) -> Option<&CudaDriver> {
        Some(self)
    }
}
