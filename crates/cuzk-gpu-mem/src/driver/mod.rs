//! The lower seam: what a device must be able to do, and the two that can.
//!
//! [`Driver`] is the only door to a device. [`CudaDriver`] goes through it to a real card;
//! [`SimDriver`] is a device in host memory, of a size of your choosing, which hoards, delays and
//! fails the way real ones do. Everything above this module is written once for both.
//!
//! The trait is the middle of three floors: below it the raw calls (cudarc's `sys`), above it the
//! safe types of this crate. Nothing outside the crate needs to call it, except code that launches
//! kernels or writes an emulator.

mod code;
pub mod cuda;
pub mod sim;

use std::fmt;

pub use code::{Code, DriverError, DriverResult};
pub use cuda::CudaDriver;
pub use sim::SimDriver;

use crate::DeviceInfo;

/// An address in device memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevicePtr(pub u64);

impl DevicePtr {
    /// The address of an empty allocation; never dereferenced.
    pub const NULL: Self = Self(0);

    /// The address `bytes` further on.
    pub fn offset(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

impl fmt::Debug for DevicePtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

/// A stream as its driver names it (for CUDA, the `CUstream` pointer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// An event as its driver names it (for CUDA, the `CUevent` pointer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u64);

/// Which of CUDA's two allocators a block comes from.
///
/// They do not see each other's spare bytes; that is why both are kept in one ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllocKind {
    /// `cuMemAllocFromPoolAsync`: drawn from a pool in stream order. The one for hot paths.
    StreamOrdered,
    /// `cuMemAlloc`: immediate, outside any pool.
    Synchronous,
}

/// One reading of a device's memory, in bytes.
///
/// `free` is what the synchronous allocator could get now. `pool_reserved - pool_used` is what the
/// pool holds and nobody uses: the driver reports those bytes as used, although they can be had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemInfo {
    /// All memory of the device.
    pub total: u64,
    /// Free to the synchronous allocator and to other processes.
    pub free: u64,
    /// Held by our pool, in use or not.
    pub pool_reserved: u64,
    /// Of those, in use. Freed blocks leave this count when the free is issued, not when it is done.
    pub pool_used: u64,
}

impl MemInfo {
    /// Bytes the pool holds and nobody uses, completed or still pending.
    pub fn cached(&self) -> u64 {
        self.pool_reserved.saturating_sub(self.pool_used)
    }

    /// Bytes that could be had now, once pending frees have completed and the pool is trimmed.
    pub fn obtainable(&self) -> u64 {
        self.free + self.cached()
    }
}

/// One copy, as the driver is asked for it.
#[derive(Clone, Copy, Debug)]
pub enum Copy {
    /// Host to device.
    Upload {
        /// First byte read.
        from: *const u8,
        /// First byte written.
        to: DevicePtr,
        /// Length.
        bytes: usize,
    },
    /// Device to host.
    Download {
        /// First byte read.
        from: DevicePtr,
        /// First byte written.
        to: *mut u8,
        /// Length.
        bytes: usize,
    },
    /// Within the device.
    Device {
        /// First byte read.
        from: DevicePtr,
        /// First byte written.
        to: DevicePtr,
        /// Length.
        bytes: usize,
    },
}

/// Whose blocks start first when several streams have some waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Behind those of high priority.
    #[default]
    Normal,
    /// Before those of normal priority. What runs already is not interrupted.
    High,
}

/// What to wait for, or to ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Everything submitted to the device.
    Device,
    /// Everything submitted to the stream.
    Stream(StreamId),
    /// The event's last record.
    Event(EventId),
}

/// Host work that runs in stream order.
pub type HostWork = Box<dyn FnOnce() + Send>;

/// A device, as this crate needs it.
///
/// Calls may come from any thread; an implementation binds its own context. An error leaves the
/// device as it was before the call, except one that [`Code::is_fatal`] names.
///
/// # Safety
///
/// The safe types of this crate rely on an implementation: the handles and blocks that it gives out are
/// live, of this device and given to nobody else until they are destroyed or freed; a wait returns when
/// what is waited for is done; calls on one stream take effect in their order, and an event orders
/// streams as CUDA's do; [`Driver::as_cuda`] gives the driver itself.
///
/// The unsafe methods share one contract, kept by the safe types of this crate:
/// *handles* are live and come from this driver; *device ranges* lie inside one live allocation;
/// *host ranges* stay valid, and unaliased as their direction demands, until the stream has passed
/// the call; a block is freed once, with the kind it was allocated with.
pub unsafe trait Driver: fmt::Debug + Send + Sync {
    /// What is known about the device without asking it again.
    fn info(&self) -> &DeviceInfo;

    /// Reads the device's memory state.
    fn mem_info(&self) -> DriverResult<MemInfo>;

    /// Allocates `bytes > 0`. A stream-ordered block may be used on `stream` from now on, on
    /// others after an event.
    ///
    /// # Safety
    /// See the trait: `stream` is live.
    unsafe fn alloc(
        &self,
        kind: AllocKind,
        bytes: u64,
        stream: StreamId,
    ) -> DriverResult<DevicePtr>;

    /// Frees a block: a stream-ordered one once `stream` gets there, a synchronous one now.
    ///
    /// # Safety
    /// See the trait. No work uses a synchronous block any more; work on a stream-ordered one is
    /// ordered before this call on `stream`.
    unsafe fn free(&self, kind: AllocKind, ptr: DevicePtr, stream: StreamId) -> DriverResult<()>;

    /// Gives the pool's completed idle bytes back to the device until it holds `keep_bytes`.
    fn trim(&self, keep_bytes: u64) -> DriverResult<()>;

    /// Sets how many bytes the pool keeps over a synchronisation.
    fn set_release_threshold(&self, bytes: u64) -> DriverResult<()>;

    /// Page-locks host memory for every context.
    ///
    /// # Safety
    /// The range is mapped, page-aligned, and stays mapped until [`Driver::host_unregister`].
    unsafe fn host_register(&self, start: usize, bytes: usize) -> DriverResult<()>;

    /// Undoes one [`Driver::host_register`], named by its first address.
    ///
    /// # Safety
    /// No copy that uses the range is under way.
    unsafe fn host_unregister(&self, start: usize) -> DriverResult<()>;

    /// Copies in stream order.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn copy(&self, copy: Copy, stream: StreamId) -> DriverResult<()>;

    /// Sets `bytes` bytes to `value` in stream order.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn fill(
        &self,
        ptr: DevicePtr,
        value: u8,
        bytes: usize,
        stream: StreamId,
    ) -> DriverResult<()>;

    /// Runs `work` on the host when the stream gets there. Work must not call the driver. On an
    /// emulator this is how kernels run; on a card it is `cuLaunchHostFunc`.
    ///
    /// # Safety
    /// See the trait: what `work` touches stays valid until the stream has passed it.
    unsafe fn enqueue(&self, stream: StreamId, work: HostWork) -> DriverResult<()>;

    /// A stream that does not synchronise with the null stream.
    fn create_stream(&self, priority: Priority) -> DriverResult<StreamId>;

    /// Destroys a stream; its work still completes.
    ///
    /// # Safety
    /// See the trait; the handle is dead afterwards.
    unsafe fn destroy_stream(&self, stream: StreamId) -> DriverResult<()>;

    /// An event; only a `timed` one can be asked for elapsed time.
    fn create_event(&self, timed: bool) -> DriverResult<EventId>;

    /// Destroys an event.
    ///
    /// # Safety
    /// See the trait; the handle is dead afterwards.
    unsafe fn destroy_event(&self, event: EventId) -> DriverResult<()>;

    /// Marks the stream's present end with the event.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn record(&self, event: EventId, stream: StreamId) -> DriverResult<()>;

    /// Makes the stream, not the host, wait for the event.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn stream_wait(&self, stream: StreamId, event: EventId) -> DriverResult<()>;

    /// Blocks the host until `point` is reached.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn wait(&self, point: Point) -> DriverResult<()>;

    /// Whether `point` is reached; for [`Point::Device`] always waits.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn query(&self, point: Point) -> DriverResult<bool>;

    /// Milliseconds between two timed events that have both completed.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn elapsed_ms(&self, begin: EventId, end: EventId) -> DriverResult<f32>;

    /// The CUDA driver, where this is one: kernels are launched through it.
    fn as_cuda(&self) -> Option<&CudaDriver> {
        None
    }
}
