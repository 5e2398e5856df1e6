//! The driver's library: is it there, is it new enough, does it work, what does it see.

use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

use cudarc::driver::sys;
use cudarc::driver::sys::CUdevice_attribute as Attribute;

use super::raw;
use crate::driver::{Code, DriverError, DriverResult};
use crate::error::Unavailable;
use crate::info::{Capability, DeviceInfo, PciAddress, Uuid};
use crate::select::Selector;

/// The oldest driver that has every call this crate makes: CUDA 11.4, for `cuDeviceGetUuid_v2`.
/// (Memory pools came with 11.2.)
pub const MIN_DRIVER_VERSION: i32 = 11040;

/// What the one attempt to initialise came to, and who made it.
struct Init {
    pid: u32,
    version: i32,
    outcome: Result<(), Unavailable>,
}

static INIT: OnceLock<Init> = OnceLock::new();

/// Initialises the driver once per process; later calls repeat the first answer.
///
/// A machine without a GPU thus probes once. A child forked after the probe is told so.
pub(super) fn init() -> Result<(), Unavailable> {
    init_once(&INIT, load)
}

fn init_once(
    once: &OnceLock<Init>,
    load: impl FnOnce() -> Result<i32, Unavailable>,
) -> Result<(), Unavailable> {
    let init = once.get_or_init(|| {
        let (version, outcome) = match load() {
            Ok(version) => (version, Ok(())),
            Err(error) => (0, Err(error)),
        };
        Init {
            pid: std::process::id(),
            version,
            outcome,
        }
    });
    let here = std::process::id();
    if init.pid != here && init.outcome.is_ok() {
        return Err(Unavailable::Forked {
            opened_by: init.pid,
            here,
        });
    }
    init.outcome.clone()
}

fn load() -> Result<i32, Unavailable> {
    // SAFETY: only looks for a library of the driver's names; loading the driver runs no code of ours.
    if !unsafe { sys::is_culib_present() } {
        return Err(Unavailable::NoLibrary);
    }
    // SAFETY: the library is there, and the pointer is valid.
    let version = raw::returned(|version| unsafe { raw::cuDriverGetVersion(version) })
        .map_err(unavailable)?;
    if version < MIN_DRIVER_VERSION {
        return Err(Unavailable::DriverTooOld {
            found: version,
            needed: MIN_DRIVER_VERSION,
        });
    }
    // SAFETY: the library is there.
    unsafe { raw::cuInit(0) }.map_err(unavailable)?;
    Ok(version)
}

/// What an error met while opening means to the user.
pub(super) fn unavailable(error: DriverError) -> Unavailable {
    match error.code {
        Code::NO_DEVICE | Code::INVALID_DEVICE => Unavailable::NoDevice {
            visible_devices: std::env::var("CUDA_VISIBLE_DEVICES").ok(),
        },
        Code::STUB_LIBRARY => Unavailable::StubLibrary,
        Code::SYSTEM_DRIVER_MISMATCH | Code::COMPAT_NOT_SUPPORTED_ON_DEVICE => {
            Unavailable::Mismatch { error }
        }
        Code::SYSTEM_NOT_READY => Unavailable::NotReady { error },
        Code::DEVICE_UNAVAILABLE | Code::NOT_PERMITTED | Code::DEVICE_NOT_LICENSED => {
            Unavailable::Refused { error }
        }
        code if code.is_fatal() => Unavailable::Lost { error },
        _ => Unavailable::Other { error },
    }
}

/// How many devices the driver shows. [`init`] has succeeded.
fn count() -> Result<c_int, Unavailable> {
    // SAFETY: the library is there, and the pointer is valid.
    let count =
        raw::returned(|count| unsafe { raw::cuDeviceGetCount(count) }).map_err(unavailable)?;
    if count == 0 {
        return Err(unavailable(DriverError::new(
            "cuDeviceGetCount",
            Code::NO_DEVICE,
        )));
    }
    Ok(count)
}

/// Every device the driver shows and can describe. [`init`] has succeeded.
pub(super) fn list() -> Result<Vec<DeviceInfo>, Unavailable> {
    described(count()?, describe)
}

/// One device. [`init`] has succeeded.
pub(super) fn device(ordinal: u32) -> Result<DeviceInfo, Unavailable> {
    let count = count()?;
    match c_int::try_from(ordinal) {
        Ok(ordinal) if ordinal < count => describe(ordinal).map_err(unavailable),
        _ => Selector::Ordinal(ordinal).pick(&described(count, describe)?),
    }
}

/// Those of the devices that can be described: one that has failed, or is taken, hides no other.
/// Without any, what the first one said.
fn described(
    count: c_int,
    describe: impl Fn(c_int) -> DriverResult<DeviceInfo>,
) -> Result<Vec<DeviceInfo>, Unavailable> {
    let mut devices = Vec::new();
    let mut first_error = None;
    for ordinal in 0..count {
        match describe(ordinal) {
            Ok(info) => devices.push(info),
            Err(error) => {
                tracing::warn!(ordinal, %error, "the device cannot be described and is not listed");
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if devices.is_empty() => Err(unavailable(error)),
        _ => Ok(devices),
    }
}

fn describe(ordinal: c_int) -> DriverResult<DeviceInfo> {
    let device = handle_of(ordinal)?;
    let attribute = |attribute| {
        // SAFETY: `device` comes from `cuDeviceGet`, and the pointer is valid.
        raw::returned(|value| unsafe { raw::cuDeviceGetAttribute(value, attribute, device) })
            .map(|value| u32::try_from(value).unwrap_or(0))
    };
    // SAFETY: as above.
    let total = raw::returned(|bytes| unsafe { raw::cuDeviceTotalMem(bytes, device) })?;
    Ok(DeviceInfo {
        ordinal: ordinal as u32,
        name: name(device)?,
        uuid: uuid(device)?,
        pci: PciAddress {
            domain: attribute(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?,
            bus: attribute(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?,
            device: attribute(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?,
        },
        capability: Capability {
            major: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            minor: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        },
        total_bytes: total as u64,
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2_bytes: u64::from(attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        shared_bytes_per_block: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?,
        copy_engines: attribute(Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)?,
        clock_khz: attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        has_pools: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0,
        driver_version: INIT.get().map_or(0, |init| init.version),
    })
}

/// The driver's handle of a device.
pub(super) fn handle_of(ordinal: c_int) -> DriverResult<sys::CUdevice> {
    // SAFETY: the library is there, and the pointer is valid.
    raw::returned(|device| unsafe { raw::cuDeviceGet(device, ordinal) })
}

fn name(device: sys::CUdevice) -> DriverResult<String> {
    let mut name = [0_u8; 256];
    let (start, len) = (name.as_mut_ptr().cast::<c_char>(), name.len() as c_int);
    // SAFETY: `start` is valid for `len` bytes, and `device` comes from `cuDeviceGet`.
    unsafe { raw::cuDeviceGetName(start, len, device)? };
    let end = name.iter().position(|&byte| byte == 0);
    Ok(String::from_utf8_lossy(&name[..end.unwrap_or(name.len())]).into_owned())
}

fn uuid(device: sys::CUdevice) -> DriverResult<Uuid> {
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: the pointer is valid for a UUID; a MIG slice answers with its own.
    unsafe { raw::cuDeviceGetUuid(&raw mut uuid, device)? };
    Ok(Uuid(uuid.bytes.map(|byte| byte as u8)))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A machine without a GPU is probed once; later answers cost nothing. (GP-16)
    #[test]
    fn the_probe_is_made_once() {
        let loads = Cell::new(0);
        let once = OnceLock::new();
        for _ in 0..1000 {
            let load = || {
                loads.set(loads.get() + 1);
                Err(Unavailable::NoLibrary)
            };
            assert_eq!(init_once(&once, load), Err(Unavailable::NoLibrary));
        }
        assert_eq!(loads.get(), 1);
    }

    /// A process that has not initialised CUDA itself must not use what its parent has.
    #[test]
    fn a_child_of_the_process_that_probed_is_told() {
        let once = OnceLock::new();
        let opened_by = std::process::id() + 1;
        let init = Init {
            pid: opened_by,
            version: MIN_DRIVER_VERSION,
            outcome: Ok(()),
        };
        assert!(once.set(init).is_ok());
        let here = std::process::id();
        assert_eq!(
            init_once(&once, || Ok(0)),
            Err(Unavailable::Forked { opened_by, here })
        );
    }

    #[test]
    fn a_device_that_fails_hides_no_other() {
        let broken = DriverError::new("cuDeviceGetAttribute", Code::ECC_UNCORRECTABLE);
        let describe = |ordinal: c_int| match ordinal {
            1 => Err(broken),
            _ => Ok(DeviceInfo {
                ordinal: ordinal as u32,
                ..DeviceInfo::simulated(1 << 30)
            }),
        };
        let ordinals = |devices: Vec<DeviceInfo>| -> Vec<u32> {
            devices.iter().map(|info| info.ordinal).collect()
        };
        assert_eq!(described(3, describe).map(ordinals), Ok(vec![0, 2]));
        assert_eq!(
            described(1, |_| Err(broken)),
            Err(Unavailable::Lost { error: broken })
        );
    }
}
