//! `kernels/src/fixed_base.cu`: multiples of one point as sums of entries of its table.

use cuzk_field::Scalar;
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use crate::declare::kernels;
use crate::device_type::{Ptr, PtrMut};
use crate::error::Result;
use crate::launcher::{Launcher, Shape};
use crate::lengths::exactly;
use crate::windows::Windows;

const THREADS: u32 = 128;

kernels! {
    module "fixed_base";
    /// See [`entries`].
    ENTRIES = cuzk_fixed_base_entries[THREADS](
        scalars: Ptr<Scalar>,
        count: u32,
        windows: Windows,
        window_count: u32,
        entries: PtrMut<u32>,
        offsets: PtrMut<u32>,
    );
}

/// The entries (scalars, windows) of the table that each scalar's multiple is the sum of, as
/// [`pair_tree`](crate::pair_tree) adds them, and where those of each scalar begin (scalars + 1).
pub fn entries(
    launcher: &dyn Launcher,
    stream: &Stream,
    scalars: DeviceView<'_, Scalar>,
    windows: &Windows,
    entries: DeviceViewMut<'_, u32>,
    offsets: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let entry = ENTRIES.declaration().entry;
    let count = scalars.len();
    let window_count = windows.count();
    let terms = count.saturating_mul(window_count as usize);
    for (what, expected, found) in [
        ("entries", terms, entries.len()),
        ("offsets", count + 1, offsets.len()),
        ("scalars", count.min(1 << 26), count),
    ] {
        exactly(entry, what, expected, found)?;
    }
    let _guards = (
        scalars.on(stream)?,
        entries.on(stream)?,
        offsets.on(stream)?,
    );
    // SAFETY: a thread a scalar and one more; the arrays have the lengths that the counts imply, below 2^32;
    // views to write alias no other; the guards keep all.
    unsafe {
        ENTRIES.launch(
            launcher,
            stream,
            Shape::covering(count + 1, THREADS),
            (
                (&scalars).into(),
                count as u32,
                *windows,
                window_count,
                (&entries).into(),
                (&offsets).into(),
            ),
        )
    }
}
