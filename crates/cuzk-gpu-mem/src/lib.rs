//! GPU and pinned memory, owned in one place.
//!
//! CUDA has two allocators that do not see each other's spare bytes. What `cuMemFreeAsync` returns
//! stays in a pool that `cuMemGetInfo` calls used, and a plain `cuMemAlloc` fails on a card that
//! looks empty while a free is still pending on its stream. Two workers, a buffer freed one line
//! too late, or one page registered twice, and a program dies with gigabytes to spare. This crate
//! makes that impossible to write by accident. It knows nothing of cryptography.
//!
//! | module | what it holds |
//! |---|---|
//! | [`driver`] | the seam below: [`CudaDriver`](driver::CudaDriver) and the emulated [`SimDriver`](driver::SimDriver) |
//! | `select`, `info` | [`list`], [`Selector`], [`DeviceInfo`]: devices, without touching them |
//! | `device`, `settings` | [`Device`]: one device, opened |
//! | `budget`, `alloc`, `reclaim` | the ledger, allocation with retry, completed frees, [`TrimPolicy`] |
//! | `buffer` | [`DeviceBuf`], [`Staged`], views |
//! | `host` | [`HostMemory`]: pinned pool and registrations |
//! | `stream`, `transfer` | [`Stream`], [`Event`], copies that own or borrow what they use |
//! | `permit` | [`Device::compute`]: one section at a time, which leaves nothing behind |
//! | `plan` | [`Footprint`], [`StagingPlan`], [`Admission`] |
//! | `recorder` | [`Recorder`]: spans and transfers, the bus inventory |
//!
//! Terms, invariants and policies are in `docs/memory.md`.
//!
//! ```
//! use std::sync::Arc;
//! use cuzk_gpu_mem::{Device, Settings, driver::SimDriver};
//!
//! // On a machine with a card: Device::open(&"0".parse()?, Settings::default())?
//! let device = Device::with_driver(Arc::new(SimDriver::new(16 << 30)), Settings::default())?;
//! let stream = device.stream("main")?;
//!
//! let mut table = device.alloc::<u32>("table", 4, &stream)?;
//! let pinned = device.host().pinned_from("table", &[1, 2, 3, 4])?;
//! stream.upload(pinned, &mut table)?.wait()?;
//!
//! let back = stream.download(&table, device.host().pinned("table", 4)?)?.wait()?;
//! assert_eq!(*back, [1, 2, 3, 4]);
//! # Ok::<(), cuzk_gpu_mem::Error>(())
//! ```

mod alloc;
mod budget;
mod buffer;
mod bus;
mod device;
pub mod driver;
mod error;
mod host;
mod info;
mod link;
mod pages;
mod permit;
mod plan;
mod reclaim;
mod recorder;
mod select;
mod settings;
mod shared;
mod stream;
mod transfer;
mod units;
mod view;

/// What may cross to the device: plain data without padding, for which any bytes are valid.
pub use bytemuck::Pod;

pub use budget::{Budget, BudgetState, Reservation};
pub use buffer::{DeviceBuf, Staged};
pub use bus::Bus;
pub use device::Device;
pub use driver::cuda::{PoolChoice, PoolSettings};
pub use driver::{AllocKind, DevicePtr, MemInfo, Priority};
pub use error::{Error, OutOfMemory, Result, Unavailable};
pub use host::{
    HostMemory, HostRegistration, HostRegistrationMut, PinnedBuf, PinnedUse, RegistrationScope,
};
pub use info::{Capability, DeviceInfo, PciAddress, Uuid};
pub use permit::{Compute, Scoped};
pub use plan::{Admission, Footprint, StagingPlan, StagingRequest, Tier};
pub use reclaim::{TrimPolicy, TrimReport};
pub use recorder::{Direction, OpenSpan, Recorder, Span, Timeline, TransferRecord, WIPE};
pub use select::{Selector, list};
pub use settings::{Settings, Sharing};
pub use shared::SharedBuf;
pub use stream::{Event, Stream};
pub use transfer::{Transfer, TransferScope};
pub use units::{Bytes, GIB, MIB};
pub use view::{Carve, DeviceView, DeviceViewMut, Lent, LentMut, OnStream};
