//! The compute permit: one section computes on a device at a time, and leaves nothing behind.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::Pod;
use crate::alloc::Source;
use crate::budget::Claim;
use crate::buffer::{DeviceBuf, Staged};
use crate::device::Device;
use crate::driver::AllocKind;
use crate::error::{Error, Result};
use crate::plan::Admission;
use crate::reclaim::{Patience, TrimPolicy};
use crate::recorder::Recorder;
use crate::settings::Sharing;
use crate::stream::{Stream, thread_number};
use crate::view::{DeviceView, DeviceViewMut};

/// One lock per device, and who holds it. There is no queue: who asks, and when, is decided above.
#[derive(Debug, Default)]
pub(crate) struct Permit {
    lock: Mutex<()>,
    /// The number of the thread inside; 0 is nobody.
    holder: AtomicUsize,
}

/// For whom something is done: a compute section, or anybody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Inside,
    Outside,
}

impl Permit {
    fn held_here(&self) -> bool {
        self.holder.load(Ordering::Acquire) == thread_number()
    }

    fn held_elsewhere(&self) -> bool {
        !matches!(self.holder.load(Ordering::Acquire), 0) && !self.held_here()
    }

    /// A trim policy cut down to what other threads' sections allow. Who works for the section is
    /// not restricted, on whichever thread.
    pub(crate) fn at_most(&self, policy: TrimPolicy, side: Side) -> TrimPolicy {
        if side == Side::Outside && self.held_elsewhere() {
            policy.min(TrimPolicy::Completed)
        } else {
            policy
        }
    }

    pub(crate) fn refuse_inside(&self, device: u32, advice: &'static str) -> Result<()> {
        if self.held_here() {
            Err(Error::InsideCompute { device, advice })
        } else {
            Ok(())
        }
    }
}

/// Ends a section, also one that panics: its frees complete before anyone else may compute.
/// Declared after the lock's guard, so it goes first.
struct Held<'a> {
    device: &'a Device,
    drained: bool,
}

impl Held<'_> {
    /// Freed before the lock: the section's frees are not merely issued, they have completed.
    fn drain(&mut self) -> Result<()> {
        self.drained = true;
        self.device.reclaim(Patience::TakeWhatIsDone); // puts fences behind the frees
        let drained = self.device.inner.compute_stream.synchronize();
        self.device.reclaim(Patience::TakeWhatIsDone);
        drained?;
        if self.device.inner.settings.sharing == Sharing::Shared {
            self.device.release(TrimPolicy::Completed, Side::Inside)?;
        }
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if !self.drained && self.device.inner.link.usable() {
            let _ = self.drain();
        }
        self.device.inner.compute_stream.set_recorder(None);
        self.device.inner.permit.holder.store(0, Ordering::Release);
    }
}

/// A compute section, from the inside. `'cx` is the section; what carries it cannot leave.
#[derive(Debug)]
pub struct Compute<'cx> {
    device: &'cx Device,
    claim: &'cx Claim,
    stream: Stream,
    section: Section<'cx>,
}

/// Invariant in `'cx`, and made only by [`Device::compute`], which takes any `'cx`: so no lifetime
/// outside the closure equals it.
type Section<'cx> = PhantomData<fn(&'cx ()) -> &'cx ()>;

/// A buffer that lives within a compute section, freed in it.
#[derive(Debug)]
pub struct Scoped<'cx, T: Pod> {
    buffer: DeviceBuf<T>,
    section: Section<'cx>,
}

impl Device {
    /// Runs `body` as the device's only compute section.
    ///
    /// Staged buffers enter by value ([`Compute::enter`]); scratch is allocated inside
    /// ([`Compute::alloc`]). Neither can leave: both carry the section's lifetime, which no type
    /// outside the closure can name. Host results can, and so can buffers said to be resident.
    /// When this returns, the section's work is done and its memory is back in the ledger; only
    /// then is the permit given up.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use cuzk_gpu_mem::{Device, Settings, driver::SimDriver};
    /// # let device = Device::with_driver(Arc::new(SimDriver::new(1 << 30)), Settings::default())?;
    /// let upload = device.stream("upload")?;
    /// let mut staged = device.stage::<u64>("d_a", 3, &upload)?;
    /// staged.upload_slice(&[1, 2, 3])?;
    /// let sum = device.compute(|cx| -> cuzk_gpu_mem::Result<u64> {
    ///     let d_a = cx.enter(staged)?;
    ///     let mut host = [0; 3];
    ///     cx.stream().download_slice(d_a.view(), &mut host)?;
    ///     Ok(host.iter().sum())
    /// })??;
    /// assert_eq!(sum, 6);
    /// assert_eq!(device.budget().state().held(), 0);
    /// # Ok::<(), cuzk_gpu_mem::Error>(())
    /// ```
    ///
    /// A section that is started inside another one, and an allocation beside the section's own, are
    /// refused as [`Error::InsideCompute`] on the thread that is inside. Other threads are not known
    /// to work for it: one that starts a section waits for the permit, so a section must never wait
    /// for a thread that may (a thread pool whose jobs call [`Device::compute`]). Lend `cx` to those
    /// threads instead; it is `Sync`.
    ///
    /// ```
    /// # fn f(device: &cuzk_gpu_mem::Device) -> cuzk_gpu_mem::Result<()> {
    /// device.compute(|cx| {
    ///     std::thread::scope(|threads| {
    ///         threads.spawn(|| cx.alloc::<u64>("scratch", 8).map(drop));
    ///     });
    /// })
    /// # }
    /// ```
    ///
    /// A buffer of the section cannot be returned from it:
    ///
    /// ```compile_fail
    /// # fn f(device: &cuzk_gpu_mem::Device) {
    /// let kept = device.compute(|cx| cx.alloc::<u64>("scratch", 8).unwrap());
    /// # }
    /// ```
    ///
    /// nor be put away outside of it:
    ///
    /// ```compile_fail,E0521
    /// # fn f(device: &cuzk_gpu_mem::Device) {
    /// let mut kept = None;
    /// device.compute(|cx| {
    ///     kept = Some(cx.alloc::<u64>("scratch", 8).unwrap());
    /// });
    /// # }
    /// ```
    ///
    /// A staged buffer that has entered is gone from outside:
    ///
    /// ```compile_fail,E0382
    /// # fn f(device: &cuzk_gpu_mem::Device, d_a: cuzk_gpu_mem::Staged<u64>) {
    /// device.compute(move |cx| { let _d_a = cx.enter(d_a); });
    /// drop(d_a); // the buffer that used to be freed one line too late
    /// # }
    /// ```
    ///
    /// and before that it cannot be computed on:
    ///
    /// ```compile_fail,E0599
    /// # fn f(d_a: cuzk_gpu_mem::Staged<u64>) {
    /// let _ = d_a.view();
    /// # }
    /// ```
    pub fn compute<R>(&self, body: impl for<'cx> FnOnce(&Compute<'cx>) -> R) -> Result<R> {
        self.section(self.inner.budget.open_claim(), None, body)
    }

    /// [`Device::compute`] under an admission: the memory that was claimed for the section is there.
    pub fn compute_admitted<R>(
        &self,
        admission: Admission,
        recorder: Option<Recorder>,
        body: impl for<'cx> FnOnce(&Compute<'cx>) -> R,
    ) -> Result<R> {
        let claim = admission.into_claim();
        if !claim.is_of(&self.inner.budget) {
            let device = self.info().ordinal;
            return Err(Error::WrongDevice { device });
        }
        self.section(claim, recorder, body)
    }

    fn section<R>(
        &self,
        claim: Claim,
        recorder: Option<Recorder>,
        body: impl for<'cx> FnOnce(&Compute<'cx>) -> R,
    ) -> Result<R> {
        let permit = &self.inner.permit;
        self.inner.link.ready()?;
        permit.refuse_inside(
            self.info().ordinal,
            "a section does not start another; pass its Compute down instead",
        )?;
        let _guard = permit.lock.lock();
        permit.holder.store(thread_number(), Ordering::Release);
        let mut held = Held {
            device: self,
            drained: false,
        };
        let stream = self.compute_stream();
        stream.set_recorder(recorder);
        let result = body(&Compute {
            device: self,
            claim: &claim,
            stream,
            section: PhantomData,
        });
        let drained = held.drain();
        drop(claim);
        drained.map(|()| result)
    }
}

impl<'cx> Compute<'cx> {
    /// The device.
    pub fn device(&self) -> &'cx Device {
        self.device
    }

    /// The section's stream; its buffers are at home there. Lent for the section: what is queued
    /// there is done when the section ends.
    ///
    /// ```compile_fail,E0521
    /// # fn f(device: &cuzk_gpu_mem::Device) {
    /// let mut kept = None;
    /// let _ = device.compute(|cx| kept = Some(cx.stream()));
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0277
    /// fn f<T: Clone>() {}
    /// f::<cuzk_gpu_mem::Stream>();
    /// ```
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Takes a staged buffer in. The section's stream waits for its filling; the host does not.
    pub fn enter<T: Pod>(&self, staged: Staged<T>) -> Result<Scoped<'cx, T>> {
        let mut buffer = staged.into_buffer();
        buffer.move_to(&self.stream)?;
        if let Some(reservation) = &mut buffer.raw.reservation {
            self.claim.take_in(reservation);
        }
        Ok(Scoped {
            buffer,
            section: PhantomData,
        })
    }

    /// Allocates scratch, drawn on the section's claim. Undefined until written.
    pub fn alloc<T: Pod>(&self, label: &'static str, len: usize) -> Result<Scoped<'cx, T>> {
        let source = Source::Claim(self.claim);
        let kind = AllocKind::StreamOrdered;
        let buffer = self
            .device
            .alloc_from(source, label, len, kind, &self.stream)?;
        Ok(Scoped {
            buffer,
            section: PhantomData,
        })
    }

    /// [`Compute::alloc`], zeroed.
    pub fn alloc_zeroed<T: Pod>(&self, label: &'static str, len: usize) -> Result<Scoped<'cx, T>> {
        let mut buffer = self.alloc(label, len)?;
        self.stream.fill(buffer.view_mut(), 0)?;
        Ok(buffer)
    }

    /// Allocates a buffer that outlives the section: part of a resident key, not scratch.
    pub fn alloc_resident<T: Pod>(&self, label: &'static str, len: usize) -> Result<DeviceBuf<T>> {
        let kind = AllocKind::StreamOrdered;
        self.device
            .alloc_from(Source::Outside, label, len, kind, &self.stream)
    }
}

impl<T: Pod> Scoped<'_, T> {
    /// Elements.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.buffer.bytes()
    }

    /// All of it, to read.
    pub fn view(&self) -> DeviceView<'_, T> {
        self.buffer.view()
    }

    /// All of it, to write.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        self.buffer.view_mut()
    }

    /// See [`DeviceBuf::mark_secret`].
    pub fn mark_secret(&mut self) {
        self.buffer.mark_secret();
    }

    /// See [`DeviceBuf::mark_wiped_from`].
    pub fn mark_wiped_from(&mut self, element: usize) {
        self.buffer.mark_wiped_from(element);
    }
}

impl<'a, T: Pod> From<&'a Scoped<'_, T>> for DeviceView<'a, T> {
    fn from(buffer: &'a Scoped<'_, T>) -> Self {
        buffer.view()
    }
}

impl<'a, T: Pod> From<&'a mut Scoped<'_, T>> for DeviceViewMut<'a, T> {
    fn from(buffer: &'a mut Scoped<'_, T>) -> Self {
        buffer.view_mut()
    }
}
