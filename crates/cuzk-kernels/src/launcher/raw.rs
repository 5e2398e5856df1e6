//! The calls of the driver's library that load and launch; `cuzk_gpu_mem` has the others.
// names and parameters are CUDA's
#![allow(non_snake_case, clippy::too_many_arguments)]

use std::ffi::{c_char, c_int, c_uint, c_void};

use cudarc::driver::sys::{CUfunction, CUfunction_attribute, CUjit_option, CUmodule, CUstream};

cuzk_gpu_mem::driver_calls! {
    cuModuleLoadDataEx = "cuModuleLoadDataEx"(
        module: *mut CUmodule, image: *const c_void, options: c_uint, names: *mut CUjit_option,
        values: *mut *mut c_void,
    );
    cuModuleGetFunction = "cuModuleGetFunction"(
        function: *mut CUfunction, module: CUmodule, name: *const c_char
    );
    cuModuleUnload = "cuModuleUnload"(module: CUmodule);
    cuFuncGetAttribute = "cuFuncGetAttribute"(
        value: *mut c_int, attribute: CUfunction_attribute, function: CUfunction
    );
    cuFuncSetAttribute = "cuFuncSetAttribute"(
        function: CUfunction, attribute: CUfunction_attribute, value: c_int
    );
    cuLaunchKernel = "cuLaunchKernel"(
        function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared_bytes: c_uint, stream: CUstream,
        parameters: *mut *mut c_void, extra: *mut *mut c_void,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A symbol is its call's name. On a machine with a driver, each is there.
    #[test]
    fn symbols_are_named_after_their_calls() {
        // SAFETY: only looks for a library of the driver's names.
        let present = unsafe { cudarc::driver::sys::is_culib_present() };
        for (name, symbol) in SYMBOLS {
            assert_eq!(symbol, name);
            // SAFETY: looked up, not called.
            let found = || unsafe {
                cuzk_gpu_mem::driver::cuda::find_call::<unsafe extern "C" fn()>(symbol)
            };
            assert!(!present || found().is_some(), "{symbol}");
        }
    }
}
