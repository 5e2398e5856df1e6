//! Typed declarations: what a kernel is called, what it takes, how many threads its blocks have.
//!
//! ```compile_fail,E0308
//! # use cuzk_kernels::*;
//! # unsafe fn f(launcher: &dyn Launcher, stream: &cuzk_gpu_mem::Stream, values: Ptr<u32>) {
//! // The second argument is an array to write, not a number.
//! let _ = unsafe { block_check::SUM.launch(launcher, stream, Shape::blocks(1, 256), (values, 1)) };
//! # }
//! ```

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;

use cuzk_gpu_mem::Stream;

use crate::device_type::DeviceType;
use crate::error::{Error, Result};
use crate::launcher::{Argument, Launcher, Shape, same_device};

/// One parameter of a kernel.
#[derive(Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its C++ type.
    pub c_type: fn() -> String,
    /// Its size.
    pub bytes: usize,
    /// Its alignment.
    pub align: usize,
    /// Whether it is an address.
    pub is_pointer: bool,
}

impl Parameter {
    /// A parameter of type `T`.
    pub const fn of<T: DeviceType>(name: &'static str) -> Self {
        Self {
            name,
            c_type: T::c_type,
            bytes: size_of::<T>(),
            align: align_of::<T>(),
            is_pointer: T::IS_POINTER,
        }
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", (self.c_type)(), self.name)
    }
}

/// Calls a host-compiled kernel with arguments at the addresses given.
pub(crate) type Emulated = unsafe extern "C-unwind" fn(*mut c_void);

/// What is known of a kernel.
#[derive(Debug)]
pub struct Declaration {
    /// The `.cu` of `kernels/src`, without ending.
    pub module: &'static str,
    /// The name of the entry.
    pub entry: &'static str,
    /// Threads of a block, at most: its `__launch_bounds__`.
    pub threads: u32,
    /// What it takes, in order.
    pub parameters: &'static [Parameter],
    /// The host-compiled kernel, in builds that have it.
    #[cfg_attr(
        not(feature = "emu"),
        allow(dead_code, reason = "the emulator calls it")
    )]
    pub(crate) emulated: Option<Emulated>,
}

/// A kernel whose arguments are an `A`, a tuple.
pub struct Kernel<A> {
    declaration: Declaration,
    arguments: PhantomData<fn(A)>,
}

impl<A> fmt::Debug for Kernel<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kernel").field(&self.declaration).finish()
    }
}

impl<A: Arguments> Kernel<A> {
    #[doc(hidden)] // The macro's business: it makes the parts agree.
    pub const fn new(declaration: Declaration) -> Self {
        Self {
            declaration,
            arguments: PhantomData,
        }
    }

    /// What is known of it.
    pub const fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// Launches it on `stream`. No block, no launch.
    ///
    /// # Safety
    /// The kernel's contract (the comment above its entry) holds: every array has the length that
    /// shape and arguments imply, none aliases another against it, and all live until the stream has
    /// passed the launch, as an [`OnStream`](cuzk_gpu_mem::OnStream) of its view sees to.
    pub unsafe fn launch(
        &'static self,
        launcher: &dyn Launcher,
        stream: &Stream,
        shape: Shape,
        arguments: A,
    ) -> Result<()> {
        let declaration = &self.declaration;
        shape.check(declaration)?;
        if !same_device(launcher.device(), stream.device()) {
            return Err(Error::WrongDevice {
                entry: declaration.entry,
            });
        }
        launcher.device().check()?;
        if shape.is_empty() {
            return Ok(());
        }
        // SAFETY: the arguments are those of the declaration, by their types; the rest is the
        // caller's promise.
        arguments.with(|list| unsafe { launcher.submit(declaration, shape, list, stream) })
    }
}

/// A tuple of arguments.
pub trait Arguments {
    /// Hands over a list of them.
    fn with<R>(&self, use_list: impl FnOnce(&[Argument<'_>]) -> R) -> R;
}

macro_rules! tuples {
    ($($($name:ident)+;)*) => {
        $(
            impl<$($name: DeviceType),+> Arguments for ($($name,)+) {
                fn with<R>(&self, use_list: impl FnOnce(&[Argument<'_>]) -> R) -> R {
                    #[allow(non_snake_case)]
                    let ($($name,)+) = self;
                    use_list(&[$(Argument::of($name)),+])
                }
            }
        )*
    };
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
    A B C D E F G H I;
    A B C D E F G H I J;
    A B C D E F G H I J K;
    A B C D E F G H I J K L;
    A B C D E F G H I J K L M;
    A B C D E F G H I J K L M N;
    A B C D E F G H I J K L M N O;
    A B C D E F G H I J K L M N O P;
    A B C D E F G H I J K L M N O P Q;
    A B C D E F G H I J K L M N O P Q S;
}

/// Declares the kernels of one `.cu`: statics of type [`Kernel`] and the list `DECLARATIONS`.
macro_rules! kernels {
    (
        module $module:literal;
        $(
            $(#[$attribute:meta])*
            $name:ident = $entry:ident [$threads:expr] ($($parameter:ident: $type:ty),+ $(,)?);
        )*
    ) => {
        $(
            $(#[$attribute])*
            pub static $name: $crate::Kernel<($($type,)+)> = $crate::Kernel::new($crate::Declaration {
                module: $module,
                entry: stringify!($entry),
                threads: $threads,
                parameters: &[$($crate::Parameter::of::<$type>(stringify!($parameter))),+],
                emulated: $crate::declare::emulated!($entry($($type),+)),
            });
        )*

        /// All of this module.
        pub static DECLARATIONS: &[&$crate::Declaration] = &[$($name.declaration()),*];
    };
}
pub(crate) use kernels;

/// The host-compiled kernel behind a function that takes the addresses of its arguments.
#[cfg(feature = "emu")]
macro_rules! emulated {
    ($entry:ident($($type:ty),+)) => {{
        unsafe extern "C-unwind" {
            fn $entry($(_: $type),+);
        }
        unsafe extern "C-unwind" fn call(arguments: *mut std::ffi::c_void) {
            let mut next = arguments as *const *const std::ffi::c_void;
            // SAFETY: the emulator gives as many addresses as there are parameters, each of a value
            // of its type, by the typed launch; the kernel's contract is the caller's of the launch.
            unsafe {
                $entry($({
                    let value = (*next).cast::<$type>();
                    next = next.add(1);
                    *value
                }),+);
            }
            let _ = next;
        }
        Some(call as $crate::declare::Emulated)
    }};
}

#[cfg(not(feature = "emu"))]
macro_rules! emulated {
    ($entry:ident($($type:ty),+)) => {
        None
    };
}
pub(crate) use emulated;
