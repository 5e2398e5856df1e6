//! Where the kernels run, and kernels against oracles.

use std::fmt::Debug;
use std::ops::Deref;

use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Pod, Stream};
use cuzk_kernels::{Launcher, Result};
use cuzk_testkit::device;

/// A device, and how much its kernels are given.
pub(crate) struct Rig {
    rig: device::Rig,
    /// Random elements for an operation of one multiplication's cost.
    pub(crate) count: usize,
}

impl Deref for Rig {
    type Target = device::Rig;

    fn deref(&self) -> &device::Rig {
        &self.rig
    }
}

/// A kernel of one input.
pub(crate) type Unary<A, T> =
    fn(&dyn Launcher, &Stream, DeviceView<'_, A>, DeviceViewMut<'_, T>) -> Result<()>;

/// A kernel of two inputs.
pub(crate) type Binary<A, B, T> = fn(
    &dyn Launcher,
    &Stream,
    DeviceView<'_, A>,
    DeviceView<'_, B>,
    DeviceViewMut<'_, T>,
) -> Result<()>;

impl Rig {
    pub(crate) fn emulated() -> Self {
        // Under sanitizers each element costs much more.
        let is_sanitized = option_env!("CUZK_SANITIZER").is_some();
        Self {
            rig: device::Rig::emulated(),
            count: if is_sanitized { 64 } else { 4000 },
        }
    }

    pub(crate) fn card() -> Option<Self> {
        Some(Self {
            rig: device::Rig::card()?,
            count: 1 << 20,
        })
    }

    /// What `kernel` writes into `len` elements.
    pub(crate) fn output<T: Pod>(
        &self,
        len: usize,
        kernel: impl FnOnce(&dyn Launcher, &Stream, DeviceViewMut<'_, T>) -> Result<()>,
    ) -> Vec<T> {
        let mut out = self.room(len);
        kernel(&*self.launcher, &self.stream, out.view_mut()).unwrap();
        self.download(&out)
    }

    /// What a kernel of two inputs makes of pairs.
    pub(crate) fn of_pairs<A: Pod, B: Pod, T: Pod>(
        &self,
        kernel: Binary<A, B, T>,
        pairs: &[(A, B)],
    ) -> Vec<T> {
        let (a, b): (Vec<A>, Vec<B>) = pairs.iter().copied().unzip();
        let (a, b) = (self.upload(&a), self.upload(&b));
        self.output(pairs.len(), |launcher, stream, out| {
            kernel(launcher, stream, a.view(), b.view(), out)
        })
    }

    /// What a kernel of one input makes of values.
    pub(crate) fn of_values<A: Pod, T: Pod>(&self, kernel: Unary<A, T>, values: &[A]) -> Vec<T> {
        let input = self.upload(values);
        self.output(values.len(), |launcher, stream, out| {
            kernel(launcher, stream, input.view(), out)
        })
    }

    /// A kernel of one input against `oracle`.
    pub(crate) fn unary<A: Pod + Debug, T: Pod + PartialEq + Debug>(
        &self,
        kernel: Unary<A, T>,
        values: &[A],
        oracle: impl Fn(&A) -> T,
    ) {
        for (value, found) in values.iter().zip(self.of_values(kernel, values)) {
            assert_eq!(found, oracle(value), "of {value:?}");
        }
    }

    /// A kernel of two inputs against `oracle`.
    pub(crate) fn binary<A: Pod + Debug, B: Pod + Debug, T: Pod + PartialEq + Debug>(
        &self,
        kernel: Binary<A, B, T>,
        pairs: &[(A, B)],
        oracle: impl Fn(&A, &B) -> T,
    ) {
        for ((a, b), found) in pairs.iter().zip(self.of_pairs(kernel, pairs)) {
            assert_eq!(found, oracle(a, b), "of {a:?} and {b:?}");
        }
    }
}
