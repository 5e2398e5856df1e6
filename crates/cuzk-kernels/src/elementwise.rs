//! Kernels that compute `out[i]` from the i-th elements of their inputs: declaration and wrapper in one.

use crate::error::{Error, Result};
use crate::launcher::Shape;

/// Elements of an array at most: the index `i + stride` of the loop stays below 2^32.
const MAX_COUNT: usize = 1 << 31;

/// The shape of a launch over `len` elements, with all lengths compared.
pub(crate) fn shape_of(
    entry: &'static str,
    threads: u32,
    len: usize,
    inputs: &[(&'static str, usize)],
) -> Result<Shape> {
    for &(what, found) in inputs {
        if found != len {
            return Err(Error::Length {
                entry,
                what,
                expected: len,
                found,
            });
        }
    }
    if len > MAX_COUNT {
        return Err(Error::Length {
            entry,
            what: "out",
            expected: MAX_COUNT,
            found: len,
        });
    }
    Ok(Shape::covering(len, threads))
}

/// Declares kernels of the form `entry(const A* a, .., Out* out, u32 count)` and their wrappers.
macro_rules! elementwise {
    (
        module $module:literal, $threads:literal threads;
        $(
            $(#[$attribute:meta])*
            $name:ident $function:ident = $entry:ident($($input:ident: $type:ty),+) -> $out:ty;
        )*
    ) => {
        $crate::declare::kernels! {
            module $module;
            $(
                $(#[$attribute])*
                $name = $entry[$threads](
                    $($input: $crate::Ptr<$type>,)+
                    out: $crate::PtrMut<$out>,
                    count: u32,
                );
            )*
        }

        $(
            $(#[$attribute])*
            pub fn $function(
                launcher: &dyn $crate::Launcher,
                stream: &cuzk_gpu_mem::Stream,
                $($input: cuzk_gpu_mem::DeviceView<'_, $type>,)+
                out: cuzk_gpu_mem::DeviceViewMut<'_, $out>,
            ) -> $crate::Result<()> {
                let entry = $name.declaration().entry;
                let inputs = [$((stringify!($input), $input.len())),+];
                let shape = $crate::elementwise::shape_of(entry, $threads, out.len(), &inputs)?;
                let _guards = ($($input.on(stream)?,)+ out.on(stream)?);
                let count = out.len() as u32;
                // SAFETY: each array has `count` elements; a view to write aliases no other; the
                // guards keep all buffers until the stream has passed the launch.
                unsafe {
                    $name.launch(
                        launcher,
                        stream,
                        shape,
                        ($((&$input).into(),)+ (&out).into(), count),
                    )
                }
            }
        )*
    };
}
pub(crate) use elementwise;
