//! What can go wrong, as something a caller can act on. No rendering here needs a driver.

use std::fmt;

use crate::driver::DriverError;
use crate::units::Bytes;

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything this crate can fail with.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no device to work on.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),

    /// Device memory is known not to suffice, pending frees and cached bytes included.
    #[error(transparent)]
    OutOfMemory(Box<OutOfMemory>),

    /// The pinned pool's budget does not allow the request.
    #[error("pinned memory: {} wanted for {label}, {} of {} in use; raise the pinned limit (Settings::pinned_limit) or finish transfers first",
            Bytes(*requested), Bytes(*in_use), Bytes(*limit))]
    PinnedBudget {
        /// What it was for.
        label: &'static str,
        /// Bytes asked for.
        requested: u64,
        /// Bytes handed out.
        in_use: u64,
        /// The pool's budget.
        limit: u64,
    },

    /// The host's operating system gave no memory.
    #[error("host memory: the operating system refused {} for {label}", Bytes(*requested))]
    HostMemory {
        /// What it was for.
        label: &'static str,
        /// Bytes asked for.
        requested: u64,
    },

    /// The device's context is gone; every call says so. CUDA then takes no more work for the device
    /// from this process: go on without it, or in a new process.
    #[error(
        "device {device} is lost since \"{cause}\"; this process cannot use it any more: go on without it or start anew, and check the system log (dmesg, Xid) if this repeats"
    )]
    DeviceLost {
        /// The device's ordinal.
        device: u32,
        /// The first fatal error.
        cause: DriverError,
    },

    /// The device was opened before `fork`; CUDA does not survive a fork.
    #[error(
        "device {device} was opened by process {opened_by} before a fork and cannot be used in process {here}; open devices after forking, or start the child with exec"
    )]
    Forked {
        /// The device's ordinal.
        device: u32,
        /// Who opened it.
        opened_by: u32,
        /// Who uses it.
        here: u32,
    },

    /// An earlier `Drop` failed; it could not say so then.
    #[error(
        "an earlier release of memory or handles on device {device} failed: {first} ({count} in all)"
    )]
    Deferred {
        /// The device's ordinal.
        device: u32,
        /// The first failure.
        first: DriverError,
        /// How many there were.
        count: usize,
    },

    /// A driver call failed for a reason with no case of its own.
    #[error("device {device}: {error}")]
    Driver {
        /// The device's ordinal.
        device: u32,
        /// The call and its code.
        error: DriverError,
    },

    /// Two lengths that must agree do not.
    #[error("{what}: expected {expected} elements, found {found}")]
    Length {
        /// Which lengths.
        what: &'static str,
        /// What it should have been.
        expected: usize,
        /// What it was.
        found: usize,
    },

    /// A buffer was to be staged that the admission holds no promise of.
    #[error("{label}, {}, cannot be staged: {reason}", Bytes(*bytes))]
    NotPromised {
        /// What was to be staged.
        label: &'static str,
        /// Its size.
        bytes: u64,
        /// Why not.
        reason: &'static str,
    },

    /// `len * size_of::<T>()` does not fit the address space.
    #[error("{label}: {len} elements of {size} bytes do not fit the address space")]
    TooLarge {
        /// What it was for.
        label: &'static str,
        /// Elements asked for.
        len: usize,
        /// Bytes of one.
        size: usize,
    },

    /// This thread is inside the device's compute section already, or allocates around it.
    #[error("this thread is inside the compute section of device {device}: {advice}")]
    InsideCompute {
        /// The device's ordinal.
        device: u32,
        /// What to do instead.
        advice: &'static str,
    },

    /// A buffer or stream of one device was given to another.
    #[error("a buffer of another device was given to device {device}")]
    WrongDevice {
        /// The device's ordinal.
        device: u32,
    },
}

impl Error {
    /// Whether memory is short, of the device or of the host, and all else is well.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(
            self,
            Self::OutOfMemory(_) | Self::PinnedBudget { .. } | Self::HostMemory { .. }
        )
    }
}

/// What was asked for, what there was, and who has the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The device's ordinal.
    pub device: u32,
    /// What the memory was for.
    pub label: &'static str,
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes the driver reports free.
    pub free: u64,
    /// Bytes the pool holds and nobody uses, after trimming as far as was allowed.
    pub cached: u64,
    /// Of the ledger's bytes, those freed but not completed.
    pub pending: u64,
    /// The ledger's limit, reserve deducted.
    pub limit: u64,
    /// Who holds the ledger's bytes, largest first.
    pub reserved_by: Vec<(&'static str, u64)>,
}

impl std::error::Error for OutOfMemory {}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "out of device memory on device {}: {} wanted for {}; {} free, {} cached in the pool, {} pending, limit {}",
            self.device,
            Bytes(self.requested),
            self.label,
            Bytes(self.free),
            Bytes(self.cached),
            Bytes(self.pending),
            Bytes(self.limit),
        )?;
        if !self.reserved_by.is_empty() {
            f.write_str("; reserved by")?;
            for (index, (label, bytes)) in self.reserved_by.iter().enumerate() {
                write!(
                    f,
                    "{} {label} {}",
                    if index == 0 { "" } else { "," },
                    Bytes(*bytes)
                )?;
            }
        }
        Ok(())
    }
}

/// Why no device can be used, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The driver's library is not on this machine.
    #[error(
        "no CUDA driver library (libcuda.so.1, nvcuda.dll) was found; install the NVIDIA driver, or in a container run it with GPU access (for example --gpus all), or go on without a device"
    )]
    NoLibrary,
    /// A stub of the toolkit was found in place of the driver.
    #[error(
        "the libcuda found is the toolkit's link-time stub, not a driver; take the toolkit's stubs folder out of LD_LIBRARY_PATH"
    )]
    StubLibrary,
    /// The driver lacks calls this crate needs.
    #[error("the driver supports CUDA {}.{}, needed is {}.{} or newer; update the NVIDIA driver", found / 1000, found % 1000 / 10, needed / 1000, needed % 1000 / 10)]
    DriverTooOld {
        /// As `cuDriverGetVersion` says: 1000 major + 10 minor.
        found: i32,
        /// The oldest that will do.
        needed: i32,
    },
    /// The driver works and sees no device.
    #[error(
        "the driver sees no device{}; check nvidia-smi, and the container's device access",
        visible_note(visible_devices)
    )]
    NoDevice {
        /// The value of `CUDA_VISIBLE_DEVICES`, when set.
        visible_devices: Option<String>,
    },
    /// The user-mode library in the container does not fit the host's kernel driver.
    #[error(
        "the CUDA library and the kernel driver do not fit ({error}); in a container, take the compat libraries out or match the image to the host's driver; after a driver update, reboot"
    )]
    Mismatch {
        /// What `cuInit` said.
        error: DriverError,
    },
    /// A kernel or the hardware failed earlier in this process; the driver takes no more work from it.
    #[error(
        "the device failed earlier in this process ({error}) and takes no more work from it; end the process and start anew, and check the system log (dmesg, Xid) if this repeats"
    )]
    Lost {
        /// What the driver said.
        error: DriverError,
    },
    /// The machine's fabric or driver services are not up.
    #[error(
        "the GPU system is not ready ({error}); check that nvidia-persistenced and, on NVSwitch machines, nvidia-fabricmanager run"
    )]
    NotReady {
        /// What the driver said.
        error: DriverError,
    },
    /// The device is taken in exclusive mode, or access is refused.
    #[error(
        "access to the device was refused ({error}); another process may hold it in exclusive mode, or permissions are missing"
    )]
    Refused {
        /// What the driver said.
        error: DriverError,
    },
    /// No visible device answers to the name given.
    #[error("no visible device is {wanted}; visible are: {}", if visible.is_empty() { "none".to_owned() } else { visible.join(", ") })]
    NotFound {
        /// As the user wrote it.
        wanted: String,
        /// What there is.
        visible: Vec<String>,
    },
    /// Several devices answer to the name given.
    #[error("{wanted} names several devices: {}; write more of its digits", candidates.join(", "))]
    Ambiguous {
        /// As the user wrote it.
        wanted: String,
        /// Those that answer to it.
        candidates: Vec<String>,
    },
    /// The text names no device in any of the known ways.
    #[error(
        "\"{text}\" names no device; write an ordinal (0), a UUID (GPU-... or MIG-...) or a PCI address (0000:01:00.0)"
    )]
    BadName {
        /// As the user wrote it.
        text: String,
    },
    /// The device lacks memory pools.
    #[error(
        "device {device} has no stream-ordered allocator (memory pools); it is too old for this crate"
    )]
    NoPools {
        /// The device's ordinal.
        device: u32,
    },
    /// This process was forked from one that had initialised CUDA.
    #[error(
        "CUDA was initialised by process {opened_by} before a fork and cannot be used in its child {here}; start the child with exec, or open devices after forking"
    )]
    Forked {
        /// Who initialised it.
        opened_by: u32,
        /// Who asks.
        here: u32,
    },
    /// Anything else the driver said while it was opened.
    #[error("the CUDA driver could not be used: {error}")]
    Other {
        /// What it said.
        error: DriverError,
    },
}

fn visible_note(visible_devices: &Option<String>) -> String {
    match visible_devices {
        Some(value) => format!(" (CUDA_VISIBLE_DEVICES is \"{value}\")"),
        None => String::new(),
    }
}
