//! Streams and events: order on the device, waits that do not block the host, elapsed time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::device::Device;
use crate::driver::{DriverResult, EventId, Point, Priority, StreamId};
use crate::error::{Error, Result};
use crate::link::Link;
use crate::recorder::Recorder;

/// An ordered queue of work on a device.
///
/// It is not `Clone`: who is lent one, as a compute section lends its own, cannot keep it and queue
/// work after the section has ended. Share one by reference, or in an `Arc`.
#[derive(Debug)]
pub struct Stream {
    pub(crate) device: Device,
    pub(crate) core: Arc<StreamCore>,
}

#[derive(Debug)]
pub(crate) struct StreamCore {
    pub(crate) link: Arc<Link>,
    pub(crate) id: StreamId,
    pub(crate) label: &'static str,
    recorder: Mutex<Option<Recorder>>,
    /// Fences recorded so far; held while one is recorded, so that the numbers are in order.
    fences: Mutex<u64>,
    /// The number of the newest fence known to be passed.
    pub(crate) passed: AtomicU64,
}

impl StreamCore {
    pub(crate) fn create(
        link: &Arc<Link>,
        label: &'static str,
        priority: Priority,
    ) -> Result<Arc<Self>> {
        let id = link.run(|driver| driver.create_stream(priority))?;
        Ok(Arc::new(Self {
            link: Arc::clone(link),
            id,
            label,
            recorder: Mutex::default(),
            fences: Mutex::default(),
            passed: AtomicU64::new(0),
        }))
    }

    pub(crate) fn recorder(&self) -> Option<Recorder> {
        self.recorder.lock().clone()
    }

    pub(crate) fn set_recorder(&self, recorder: Option<Recorder>) {
        *self.recorder.lock() = recorder;
    }

    /// Marks the present end of the stream with a recycled event.
    pub(crate) fn mark(&self) -> Result<Event> {
        self.link.same_process()?;
        self.mark_raw().map_err(|error| self.link.fail(error))
    }

    /// [`StreamCore::mark`] for those who keep the driver's error.
    pub(crate) fn mark_raw(&self) -> DriverResult<Event> {
        let event = Event::untimed(&self.link)?;
        // SAFETY: the event and this stream are live and of this link's driver.
        unsafe { self.link.driver().record(event.id, self.id)? };
        Ok(event)
    }

    /// [`StreamCore::mark_raw`] with a number that grows along the stream.
    pub(crate) fn mark_in_order(&self) -> DriverResult<(Event, u64)> {
        let mut fences = self.fences.lock();
        let event = self.mark_raw()?;
        *fences += 1;
        Ok((event, *fences))
    }

    /// Marks the present end of the stream with an event that has a time. Failures of earlier drops
    /// are not told here.
    pub(crate) fn record_timed(&self) -> Result<Event> {
        let event = Event::timed(&self.link)?;
        self.link.run(|driver| {
            // SAFETY: the event and this stream are live and of this link's driver.
            unsafe { driver.record(event.id, self.id) }
        })?;
        Ok(event)
    }

    pub(crate) fn same_device(&self, link: &Arc<Link>) -> Result<()> {
        if Arc::ptr_eq(&self.link, link) {
            Ok(())
        } else {
            Err(Error::WrongDevice {
                device: self.link.ordinal(),
            })
        }
    }

    /// Later work here waits, on the device, for what `other` has been given so far.
    pub(crate) fn follow(&self, other: &Arc<Self>) -> Result<()> {
        if self.id == other.id {
            return Ok(());
        }
        let event = other.mark()?;
        // SAFETY: the event and this stream are live and of this link's driver.
        self.link
            .run(|driver| unsafe { driver.stream_wait(self.id, event.id) })
    }

    /// The same where it must not fail: where the device cannot be told to wait, the host waits.
    pub(crate) fn follow_or_settle(&self, other: &Arc<Self>) {
        if let Err(Error::Driver { error, .. }) = self.follow(other) {
            self.link.defer(error);
            let _ = other.settle();
        }
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is live while `self` is.
        self.link
            .run(|driver| unsafe { driver.wait(Point::Stream(self.id)) })
    }

    /// Waits until the stream certainly uses nothing any more, because host memory it uses is about
    /// to be released. A wait that fails on a live device is followed by asking; a device that does
    /// not answer either is given up as lost.
    pub(crate) fn settle(&self) -> Result<()> {
        const UNANSWERED: u32 = 1000;
        let outcome = self.synchronize();
        let Err(Error::Driver { error, .. }) = outcome else {
            return outcome;
        };
        let mut unanswered = 0;
        while unanswered < UNANSWERED && self.link.usable() {
            match self.link.run(|driver| {
                // SAFETY: the stream is live while `self` is.
                unsafe { driver.query(Point::Stream(self.id)) }
            }) {
                Ok(true) => return outcome,
                // A stream that is merely busy is waited for, however long it takes.
                Ok(false) => {
                    std::thread::yield_now();
                    let _ = self.synchronize();
                }
                Err(_) => unanswered += 1,
            }
        }
        Err(self.link.lose(error))
    }
}

impl Drop for StreamCore {
    fn drop(&mut self) {
        // SAFETY: the last owner lets go; work already submitted still completes.
        self.link
            .run_in_drop(|driver| unsafe { driver.destroy_stream(self.id) });
    }
}

impl Stream {
    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The name given at creation; transfers and spans carry it.
    pub fn label(&self) -> &'static str {
        self.core.label
    }

    /// The driver's name of the stream, for launching kernels into it.
    pub fn id(&self) -> StreamId {
        self.core.id
    }

    /// Records transfers on this stream into `recorder` from now on, or no longer.
    pub fn set_recorder(&self, recorder: Option<Recorder>) {
        self.core.set_recorder(recorder);
    }

    /// An event at the present end of the stream.
    pub fn record(&self) -> Result<Event> {
        self.core.link.ready()?;
        self.core.mark()
    }

    /// A timed event at the present end of the stream; two of them give an elapsed time.
    pub fn record_timed(&self) -> Result<Event> {
        self.core.link.ready()?;
        self.core.record_timed()
    }

    /// Later work on this stream waits for `event`; the host does not.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        self.core.link.ready()?;
        self.same_device(&event.link)?;
        // SAFETY: the event and this stream are live and of this link's driver.
        self.core
            .link
            .run(|driver| unsafe { driver.stream_wait(self.core.id, event.id) })
    }

    /// Later work on this stream waits for all work `other` has been given so far.
    pub fn follow(&self, other: &Stream) -> Result<()> {
        self.core.link.ready()?;
        self.same_device(&other.core.link)?;
        self.core.follow(&other.core)
    }

    /// Blocks the host until the stream has done all its work.
    pub fn synchronize(&self) -> Result<()> {
        self.core.link.ready()?;
        self.core.synchronize()
    }

    /// Whether the stream has done all its work.
    pub fn is_idle(&self) -> Result<bool> {
        self.core.link.ready()?;
        // SAFETY: the stream is live while `self` is.
        self.core
            .link
            .run(|driver| unsafe { driver.query(Point::Stream(self.core.id)) })
    }

    /// Runs `work` on the host once the stream gets there. It must not use the device.
    pub fn enqueue(&self, work: impl FnOnce() + Send + 'static) -> Result<()> {
        self.core.link.ready()?;
        // SAFETY: the stream is live; `work` owns what it touches.
        self.core
            .link
            .run(|driver| unsafe { driver.enqueue(self.core.id, Box::new(work)) })
    }

    pub(crate) fn same_device(&self, link: &Arc<Link>) -> Result<()> {
        self.core.same_device(link)
    }
}

/// A place in a stream.
#[derive(Debug)]
pub struct Event {
    pub(crate) link: Arc<Link>,
    pub(crate) id: EventId,
    timed: bool,
}

impl Event {
    fn untimed(link: &Arc<Link>) -> DriverResult<Self> {
        let id = link.take_event()?;
        Ok(Self {
            link: Arc::clone(link),
            id,
            timed: false,
        })
    }

    pub(crate) fn timed(link: &Arc<Link>) -> Result<Self> {
        let id = link.run(|driver| driver.create_event(true))?;
        Ok(Self {
            link: Arc::clone(link),
            id,
            timed: true,
        })
    }

    /// Whether the stream has got past it.
    pub fn is_reached(&self) -> Result<bool> {
        // SAFETY: the event is live while `self` is.
        self.link
            .run(|driver| unsafe { driver.query(Point::Event(self.id)) })
    }

    /// Blocks the host until the stream gets past it.
    pub fn wait(&self) -> Result<()> {
        // SAFETY: the event is live while `self` is.
        self.link
            .run(|driver| unsafe { driver.wait(Point::Event(self.id)) })
    }

    /// Time from `begin` to this event; both timed, reached and of one device.
    pub fn since(&self, begin: &Event) -> Result<Duration> {
        if !Arc::ptr_eq(&self.link, &begin.link) {
            return Err(Error::WrongDevice {
                device: self.link.ordinal(),
            });
        }
        // SAFETY: both events are live while their owners are, and of this link's driver.
        let ms = self
            .link
            .run(|driver| unsafe { driver.elapsed_ms(begin.id, self.id) })?;
        Ok(Duration::from_secs_f64(f64::from(ms.max(0.0)) / 1e3))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.timed {
            // SAFETY: the last owner lets go; streams that wait for it still do.
            self.link
                .run_in_drop(|driver| unsafe { driver.destroy_event(self.id) });
        } else {
            self.link.return_event(self.id);
        }
    }
}

/// Numbers threads, so that a lock can name its holder in an atomic.
pub(crate) fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local! {
        static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    MINE.with(|mine| *mine)
}
