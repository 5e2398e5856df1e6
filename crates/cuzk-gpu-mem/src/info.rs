//! What a device is, as data.

use std::fmt;

use crate::units::Bytes;

/// Compute capability, as in sm_90: `Capability { major: 9, minor: 0 }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability {
    /// 9 in sm_90.
    pub major: u32,
    /// 0 in sm_90.
    pub minor: u32,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A PCI address, `domain:bus:device.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    /// PCI domain.
    pub domain: u32,
    /// Bus.
    pub bus: u32,
    /// Slot.
    pub device: u32,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04x}:{:02x}:{:02x}.0",
            self.domain, self.bus, self.device
        )
    }
}

/// A device's UUID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The facts about one device, read without opening a context on it.
///
/// Plans are made from these figures and from [`MemInfo`](crate::MemInfo), never from the name: a
/// MIG slice of a big card is a small device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Position in the driver's list, after `CUDA_VISIBLE_DEVICES`.
    pub ordinal: u32,
    /// As the driver calls it.
    pub name: String,
    /// Its UUID.
    pub uuid: Uuid,
    /// Where it sits.
    pub pci: PciAddress,
    /// Compute capability.
    pub capability: Capability,
    /// Device memory.
    pub total_bytes: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// L2 cache.
    pub l2_bytes: u64,
    /// Shared memory that one block may ask for.
    pub shared_bytes_per_block: u32,
    /// Copy engines.
    pub copy_engines: u32,
    /// Peak clock.
    pub clock_khz: u32,
    /// Whether the stream-ordered allocator exists.
    pub has_pools: bool,
    /// `cuDriverGetVersion`: 1000 major + 10 minor.
    pub driver_version: i32,
}

impl DeviceInfo {
    /// An emulated device of that size.
    pub fn simulated(total_bytes: u64) -> Self {
        Self {
            ordinal: 0,
            name: "simulated device".to_owned(),
            uuid: Uuid(*b"cuzk-sim-device0"),
            pci: PciAddress {
                domain: 0,
                bus: 0,
                device: 0,
            },
            capability: Capability { major: 0, minor: 0 },
            total_bytes,
            multiprocessors: 1,
            l2_bytes: 1 << 20,
            shared_bytes_per_block: 48 << 10,
            copy_engines: 2,
            clock_khz: 0,
            has_pools: true,
            driver_version: 0,
        }
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} (sm {}, {}, {} SMs, PCI {}, GPU-{}, driver for CUDA {}.{})",
            self.ordinal,
            self.name,
            self.capability,
            Bytes(self.total_bytes),
            self.multiprocessors,
            self.pci,
            self.uuid,
            self.driver_version / 1000,
            self.driver_version % 1000 / 10,
        )
    }
}
