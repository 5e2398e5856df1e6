//! What may be an argument of a kernel.

use std::fmt;
use std::marker::PhantomData;

use cuzk_field::{Affine, Fp, Fp2, Fr, Scalar, Xyzz};
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Pod};

use crate::curve::DeviceCurve;

/// A type that host and device lay out alike.
///
/// # Safety
/// The type is `repr(C)` or `repr(transparent)` plain data, of the same size and alignment as the
/// C++ type that [`DeviceType::c_type`] names.
pub unsafe trait DeviceType: Copy + 'static {
    /// Whether it is an address.
    const IS_POINTER: bool = false;

    /// Its name in C++.
    fn c_type() -> String;
}

macro_rules! device_types {
    ($($rust:ty = $c:literal, $bytes:literal, $align:literal;)*) => {
        $(
            // SAFETY: plain data; the sizes and alignments are those of the headers in kernels/include,
            // and `cargo xtask abi` has the C++ compiler compare the types by name.
            unsafe impl DeviceType for $rust {
                fn c_type() -> String {
                    $c.to_owned()
                }
            }
            const _: () = {
                assert!(size_of::<$rust>() == $bytes);
                assert!(align_of::<$rust>() == $align);
            };
        )*
    };
}

device_types! {
    u8 = "cuzk::u8", 1, 1;
    u16 = "cuzk::u16", 2, 2;
    u32 = "cuzk::u32", 4, 4;
    u64 = "cuzk::u64", 8, 8;
    i32 = "cuzk::i32", 4, 4;
    Fr = "cuzk::Fr", 32, 16;
    Scalar = "cuzk::Scalar", 32, 16;
    Fp = "cuzk::Fp", 48, 16;
    Fp2 = "cuzk::Fp2", 96, 16;
    Chunk = "cuzk::Chunk", 16, 16;
    Slab = "cuzk::pair_plan::Slab", 16, 4;
}

/// Sixteen bytes of a field element; component planes (`pair_lanes.cuh`) are made of them.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(crate) struct Chunk([u32; 4]);

/// A slab of sorted entries, as `kernels/include/cuzk/pair_plan.cuh` has it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Slab([u32; 4]);

// SAFETY: points of both groups are `repr(C, align(32))` coordinates; the sizes are those of g1.cuh and
// g2.cuh, and `cargo xtask abi` has the C++ compiler compare the types by name.
unsafe impl<F: DeviceCurve> DeviceType for Affine<F> {
    fn c_type() -> String {
        format!("cuzk::{}Affine", F::GROUP)
    }
}

// SAFETY: as for affine points.
unsafe impl<F: DeviceCurve> DeviceType for Xyzz<F> {
    fn c_type() -> String {
        format!("cuzk::{}Xyzz", F::GROUP)
    }
}

const _: () = {
    assert!(size_of::<Affine<Fp>>() == 96 && align_of::<Affine<Fp>>() == 32);
    assert!(size_of::<Affine<Fp2>>() == 192 && align_of::<Affine<Fp2>>() == 32);
    assert!(size_of::<Xyzz<Fp>>() == 192 && align_of::<Xyzz<Fp>>() == 32);
    assert!(size_of::<Xyzz<Fp2>>() == 384 && align_of::<Xyzz<Fp2>>() == 32);
};

/// The address of elements that a kernel reads.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Ptr<T>(u64, PhantomData<fn() -> T>);

/// The address of elements that a kernel writes, and may read.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct PtrMut<T>(u64, PhantomData<fn(T) -> T>);

// SAFETY: an address of 64 bits, as `const T*` is on the device and on hosts this crate builds for.
unsafe impl<T: DeviceType> DeviceType for Ptr<T> {
    const IS_POINTER: bool = true;

    fn c_type() -> String {
        format!("const {}*", T::c_type())
    }
}

// SAFETY: as for `Ptr`.
unsafe impl<T: DeviceType> DeviceType for PtrMut<T> {
    const IS_POINTER: bool = true;

    fn c_type() -> String {
        format!("{}*", T::c_type())
    }
}

impl<T: DeviceType + Pod> From<&DeviceView<'_, T>> for Ptr<T> {
    fn from(view: &DeviceView<'_, T>) -> Self {
        Self(view.ptr().0, PhantomData)
    }
}

impl<T: DeviceType + Pod> From<&DeviceViewMut<'_, T>> for PtrMut<T> {
    fn from(view: &DeviceViewMut<'_, T>) -> Self {
        Self(view.ptr().0, PhantomData)
    }
}

impl Ptr<u32> {
    /// The address of elements that a kernel reads as words.
    pub(crate) fn words<T: Pod>(view: &DeviceView<'_, T>) -> Self {
        Self(view.ptr().0, PhantomData)
    }
}

impl Ptr<Fr> {
    /// The address of integers that a kernel reads as limbs.
    pub(crate) fn elements(view: &DeviceView<'_, Scalar>) -> Self {
        Self(view.ptr().0, PhantomData)
    }
}

impl PtrMut<Fr> {
    /// The address of integers that a kernel writes as limbs.
    pub(crate) fn elements(view: &DeviceViewMut<'_, Scalar>) -> Self {
        Self(view.ptr().0, PhantomData)
    }
}

impl<T> Ptr<T> {
    /// No address, where the kernel allows that.
    pub(crate) const NULL: Self = Self(0, PhantomData);
}

impl<T> PtrMut<T> {
    /// No address, where the kernel allows that.
    pub(crate) const NULL: Self = Self(0, PhantomData);
}

impl<T: DeviceType> Ptr<T> {
    /// The same address, of what lies there in other units.
    pub(crate) fn cast<U: DeviceType>(self) -> Ptr<U> {
        Ptr(self.0, PhantomData)
    }
}

impl<T: DeviceType> PtrMut<T> {
    /// The same address, of what lies there in other units.
    pub(crate) fn cast<U: DeviceType>(self) -> PtrMut<U> {
        PtrMut(self.0, PhantomData)
    }
}

#[cfg(feature = "emu")]
impl<T: DeviceType> PtrMut<T> {
    /// The address of host memory, for a kernel that the emulator runs without a device.
    pub fn of_host(slice: &mut [T]) -> Self {
        Self(slice.as_mut_ptr().expose_provenance() as u64, PhantomData)
    }
}

impl<T> fmt::Debug for Ptr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

impl<T> fmt::Debug for PtrMut<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}
