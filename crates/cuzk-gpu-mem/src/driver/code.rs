//! Driver result codes, named here so that rendering an error needs no driver.

use std::fmt;

/// A result of a driver call.
pub type DriverResult<T> = Result<T, DriverError>;

/// A `CUresult` as a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

macro_rules! codes {
    ($($name:ident = $value:literal $doc:literal,)*) => {
        impl Code {
            $(#[doc = $doc] pub const $name: Self = Self($value);)*

            /// The name without its `CUDA_ERROR_` prefix; empty for a code this crate has no name for.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* _ => "" }
            }

            /// One line for a reader who does not know the code.
            pub fn explain(self) -> &'static str {
                match self { $(Self::$name => $doc,)* _ => "a driver error without a name here" }
            }
        }
    };
}

codes! {
    INVALID_VALUE = 1 "a parameter was out of range, or a copy touched two host registrations",
    OUT_OF_MEMORY = 2 "the allocator found no memory",
    NOT_INITIALIZED = 3 "the driver was not initialised",
    DEINITIALIZED = 4 "the driver is shutting down",
    STUB_LIBRARY = 34 "the library is a link-time stub, not a driver",
    DEVICE_UNAVAILABLE = 46 "the device is busy in exclusive mode",
    NO_DEVICE = 100 "the driver sees no device",
    INVALID_DEVICE = 101 "no device of that ordinal",
    DEVICE_NOT_LICENSED = 102 "the device has no licence",
    INVALID_CONTEXT = 201 "no valid context is bound",
    ECC_UNCORRECTABLE = 214 "an uncorrectable memory error",
    NVLINK_UNCORRECTABLE = 220 "an uncorrectable link error",
    OPERATING_SYSTEM = 304 "a call to the operating system failed",
    INVALID_HANDLE = 400 "not a live handle",
    NOT_READY = 600 "the work has not completed yet",
    ILLEGAL_ADDRESS = 700 "a kernel touched an illegal address",
    LAUNCH_OUT_OF_RESOURCES = 701 "a launch asked for too many resources",
    LAUNCH_TIMEOUT = 702 "a kernel ran into the watchdog",
    CONTEXT_IS_DESTROYED = 709 "the context was destroyed",
    ASSERT = 710 "a device assertion failed",
    HOST_MEMORY_ALREADY_REGISTERED = 712 "a page of the range is registered already",
    HOST_MEMORY_NOT_REGISTERED = 713 "the range is not registered",
    HARDWARE_STACK_ERROR = 714 "a hardware stack error",
    ILLEGAL_INSTRUCTION = 715 "an illegal instruction",
    MISALIGNED_ADDRESS = 716 "a kernel used a misaligned address",
    INVALID_ADDRESS_SPACE = 717 "an instruction met the wrong address space",
    INVALID_PC = 718 "the program counter left the program",
    LAUNCH_FAILED = 719 "a kernel failed",
    NOT_PERMITTED = 800 "the operation is not permitted",
    NOT_SUPPORTED = 801 "the operation is not supported here",
    SYSTEM_NOT_READY = 802 "the system is not ready to run CUDA",
    SYSTEM_DRIVER_MISMATCH = 803 "the user-mode library and the kernel driver are of different versions",
    COMPAT_NOT_SUPPORTED_ON_DEVICE = 804 "forward compatibility is not supported on this device",
    UNKNOWN = 999 "an unknown internal error",
}

impl Code {
    /// Whether the context is lost: every later call on it fails, and on a card so does making
    /// another one in this process.
    pub fn is_fatal(self) -> bool {
        matches!(
            self,
            Self::DEINITIALIZED
                | Self::ECC_UNCORRECTABLE
                | Self::NVLINK_UNCORRECTABLE
                | Self::ILLEGAL_ADDRESS
                | Self::LAUNCH_TIMEOUT
                | Self::CONTEXT_IS_DESTROYED
                | Self::ASSERT
                | Self::HARDWARE_STACK_ERROR
                | Self::ILLEGAL_INSTRUCTION
                | Self::MISALIGNED_ADDRESS
                | Self::INVALID_ADDRESS_SPACE
                | Self::INVALID_PC
                | Self::LAUNCH_FAILED
                | Self::UNKNOWN
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            "" => write!(f, "CUDA error {}", self.0),
            name => write!(f, "CUDA error {} ({name})", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A failed driver call: which one, and its code. Rendering it calls no driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {code}: {}", code.explain())]
pub struct DriverError {
    /// The driver's own name of the call.
    pub call: &'static str,
    /// What it returned.
    pub code: Code,
}

impl DriverError {
    /// An error of `call`.
    pub fn new(call: &'static str, code: Code) -> Self {
        Self { call, code }
    }
}
