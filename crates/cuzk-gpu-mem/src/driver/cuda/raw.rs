//! The calls of the driver's library: the lowest floor.
//!
//! Declared by hand, with their codes as numbers. cudarc declares them to return an enum, of which a
//! code that only a newer driver knows would be an invalid value; and it panics where a driver lacks
//! a call. Its types of handles and parameters serve here too.
#![allow(non_snake_case)] // the names are CUDA's

use std::ffi::{c_char, c_int, c_uint, c_void};

use cudarc::driver::sys;
use sys::{CUcontext, CUdevice, CUdeviceptr, CUevent, CUmemoryPool, CUstream};

use crate::driver::DriverResult;

/// What `cuLaunchHostFunc` calls.
pub(super) type HostFunction = unsafe extern "C" fn(*mut c_void);

/// Looks a call up in the driver's library.
///
/// # Safety
/// The library is there ([`sys::is_culib_present`]), and `Call` is the type that `cuda.h` gives the
/// symbol, with a 32-bit number for its `CUresult`.
pub unsafe fn find_call<Call: Copy>(symbol: &str) -> Option<Call> {
    // SAFETY: as the caller promises.
    unsafe {
        sys::culib()
            .get::<Call>(symbol.as_bytes())
            .ok()
            .map(|call| *call)
    }
}

/// Declares calls of the driver's library: name, symbol, parameters as in `cuda.h`. All return a
/// `CUresult`, which is a number here; what a driver lacks is `NOT_SUPPORTED`.
///
/// # Safety
/// The functions that it makes are unsafe: the library is there
/// (`cudarc::driver::sys::is_culib_present`), and what `cuda.h` says of the call.
#[macro_export]
macro_rules! driver_calls {
    ($($name:ident = $symbol:literal ($($parameter:ident: $type:ty),* $(,)?);)*) => {
        $(
            /// # Safety
            /// The library is there, and what `cuda.h` says of the call.
            pub(super) unsafe fn $name($($parameter: $type),*) -> $crate::driver::DriverResult<()> {
                type Call = unsafe extern "C" fn($($type),*) -> u32;
                static FOUND: std::sync::OnceLock<Option<Call>> = std::sync::OnceLock::new();
                const SYMBOL: &str = $symbol;
                // SAFETY: the library is there, as the caller promises; the type is that of `cuda.h`.
                let found = FOUND.get_or_init(|| unsafe { $crate::driver::cuda::find_call(SYMBOL) });
                let code = match found {
                    // SAFETY: as the caller promises.
                    Some(call) => $crate::driver::Code(unsafe { call($($parameter),*) }),
                    None => $crate::driver::Code::NOT_SUPPORTED,
                };
                match code {
                    $crate::driver::Code(0) => Ok(()),
                    code => Err($crate::driver::DriverError::new(stringify!($name), code)),
                }
            }
        )*

        #[cfg(test)]
        const SYMBOLS: &[(&str, &str)] = &[$((stringify!($name), $symbol)),*];
    };
}

driver_calls! {
    cuInit = "cuInit"(flags: c_uint);
    cuDriverGetVersion = "cuDriverGetVersion"(version: *mut c_int);
    cuDeviceGetCount = "cuDeviceGetCount"(count: *mut c_int);
    cuDeviceGet = "cuDeviceGet"(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetName = "cuDeviceGetName"(name: *mut c_char, len: c_int, device: CUdevice);
    cuDeviceGetUuid = "cuDeviceGetUuid_v2"(uuid: *mut sys::CUuuid, device: CUdevice);
    cuDeviceTotalMem = "cuDeviceTotalMem_v2"(bytes: *mut usize, device: CUdevice);
    cuDeviceGetAttribute = "cuDeviceGetAttribute"(
        value: *mut c_int, attribute: sys::CUdevice_attribute, device: CUdevice
    );
    cuDeviceGetDefaultMemPool = "cuDeviceGetDefaultMemPool"(
        pool: *mut CUmemoryPool, device: CUdevice
    );
    cuDevicePrimaryCtxRetain = "cuDevicePrimaryCtxRetain"(
        context: *mut CUcontext, device: CUdevice
    );
    cuDevicePrimaryCtxRelease = "cuDevicePrimaryCtxRelease_v2"(device: CUdevice);
    cuCtxGetCurrent = "cuCtxGetCurrent"(context: *mut CUcontext);
    cuCtxSetCurrent = "cuCtxSetCurrent"(context: CUcontext);
    cuCtxSynchronize = "cuCtxSynchronize"();
    cuMemGetInfo = "cuMemGetInfo_v2"(free: *mut usize, total: *mut usize);
    cuMemAlloc = "cuMemAlloc_v2"(block: *mut CUdeviceptr, bytes: usize);
    cuMemFree = "cuMemFree_v2"(block: CUdeviceptr);
    cuMemAllocFromPoolAsync = "cuMemAllocFromPoolAsync"(
        block: *mut CUdeviceptr, bytes: usize, pool: CUmemoryPool, stream: CUstream
    );
    cuMemFreeAsync = "cuMemFreeAsync"(block: CUdeviceptr, stream: CUstream);
    cuMemPoolCreate = "cuMemPoolCreate"(
        pool: *mut CUmemoryPool, properties: *const sys::CUmemPoolProps
    );
    cuMemPoolDestroy = "cuMemPoolDestroy"(pool: CUmemoryPool);
    cuMemPoolTrimTo = "cuMemPoolTrimTo"(pool: CUmemoryPool, keep_bytes: usize);
    cuMemPoolGetAttribute = "cuMemPoolGetAttribute"(
        pool: CUmemoryPool, attribute: sys::CUmemPool_attribute, value: *mut c_void
    );
    cuMemPoolSetAttribute = "cuMemPoolSetAttribute"(
        pool: CUmemoryPool, attribute: sys::CUmemPool_attribute, value: *mut c_void
    );
    cuMemHostRegister = "cuMemHostRegister_v2"(start: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostUnregister = "cuMemHostUnregister"(start: *mut c_void);
    cuMemcpyHtoDAsync = "cuMemcpyHtoDAsync_v2"(
        to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream
    );
    cuMemcpyDtoHAsync = "cuMemcpyDtoHAsync_v2"(
        to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream
    );
    cuMemcpyDtoDAsync = "cuMemcpyDtoDAsync_v2"(
        to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream
    );
    cuMemsetD8Async = "cuMemsetD8Async"(
        to: CUdeviceptr, value: u8, bytes: usize, stream: CUstream
    );
    cuLaunchHostFunc = "cuLaunchHostFunc"(
        stream: CUstream, function: HostFunction, data: *mut c_void
    );
    cuStreamCreateWithPriority = "cuStreamCreateWithPriority"(
        stream: *mut CUstream, flags: c_uint, priority: c_int
    );
    cuStreamDestroy = "cuStreamDestroy_v2"(stream: CUstream);
    cuStreamQuery = "cuStreamQuery"(stream: CUstream);
    cuStreamSynchronize = "cuStreamSynchronize"(stream: CUstream);
    cuStreamWaitEvent = "cuStreamWaitEvent"(stream: CUstream, event: CUevent, flags: c_uint);
    cuEventCreate = "cuEventCreate"(event: *mut CUevent, flags: c_uint);
    cuEventDestroy = "cuEventDestroy_v2"(event: CUevent);
    cuEventQuery = "cuEventQuery"(event: CUevent);
    cuEventRecord = "cuEventRecord"(event: CUevent, stream: CUstream);
    cuEventSynchronize = "cuEventSynchronize"(event: CUevent);
    // Every driver has this form; cudarc's bindings for CUDA 13 have the newer `_v2` only.
    cuEventElapsedTime = "cuEventElapsedTime"(ms: *mut f32, begin: CUevent, end: CUevent);
}

/// What a call writes through its first parameter.
pub(super) fn returned<T: Default>(
    call: impl FnOnce(*mut T) -> DriverResult<()>,
) -> DriverResult<T> {
    let mut value = T::default();
    call(&raw mut value)?;
    Ok(value)
}

/// [`returned`] for handles.
pub(super) fn handle<T>(
    call: impl FnOnce(*mut *mut T) -> DriverResult<()>,
) -> DriverResult<*mut T> {
    let mut handle = std::ptr::null_mut();
    call(&raw mut handle)?;
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A symbol is its call's name, with the version of its form where it has one. On a machine with
    /// a driver, each is there.
    #[test]
    fn symbols_are_named_after_their_calls() {
        // SAFETY: only looks for a library of the driver's names.
        let present = unsafe { sys::is_culib_present() };
        for (name, symbol) in SYMBOLS {
            assert_eq!(symbol.strip_suffix("_v2").unwrap_or(symbol), *name);
            if present {
                // SAFETY: looked up, not called.
                let found = unsafe { sys::culib().get::<HostFunction>(symbol.as_bytes()) };
                assert!(found.is_ok(), "{symbol}");
            }
        }
    }
}
