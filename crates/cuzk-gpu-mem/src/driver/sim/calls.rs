//! The driver calls of the emulated device.

use parking_lot::MutexGuard;

use super::engine::Op;
use super::{SimDriver, State, invalid};
use crate::DeviceInfo;
use crate::driver::{
    AllocKind, Code, Copy, DevicePtr, Driver, DriverResult, EventId, HostWork, MemInfo, Point,
    Priority, StreamId,
};

/// A pointer that crosses to whichever thread runs the stream.
struct SendPtr<T>(*mut T);
// SAFETY: the contract of `Driver` keeps the range valid and unaliased until the stream has passed
// the operation, on whichever thread that happens.
unsafe impl<T> Send for SendPtr<T> {}

impl<T> SendPtr<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

fn device(ptr: DevicePtr) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(ptr.0 as usize)
}

impl SimDriver {
    fn stream_of<'a>(
        &'a self,
        call: &'static str,
        stream: StreamId,
    ) -> DriverResult<MutexGuard<'a, State>> {
        let state = self.enter(call)?;
        if !state.engine.has_stream(stream.0) {
            return invalid(call, Code::INVALID_HANDLE);
        }
        Ok(state)
    }

    fn submit(&self, mut state: MutexGuard<'_, State>, stream: StreamId, op: Op) {
        let limit = state.queue_limit;
        self.run_until(&mut state, stream.0, |engine| {
            engine.queued(stream.0) < limit
        });
        state.engine.submit(stream.0, |_| op);
        self.run_eagerly(&mut state);
    }
}

impl State {
    /// A copy may touch unregistered pages only, or lie within one registration.
    fn host_range_ok(&self, start: usize, bytes: usize) -> bool {
        let end = start + bytes;
        let mut touching = self
            .registered
            .range(..end)
            .rev()
            .take_while(|(s, len)| *s + *len > start);
        match touching.next() {
            None => true,
            Some((&first, &len)) => first <= start && end <= first + len,
        }
    }

    fn registered_overlaps(&self, start: usize, bytes: usize) -> bool {
        self.registered
            .range(..start + bytes)
            .next_back()
            .is_some_and(|(s, len)| s + len > start)
    }
}

// SAFETY: blocks are host memory of its own, handles are numbers that it has not used before; each stream is
// a queue, and waits return when their queues have got there. It is no CUDA driver.
unsafe impl Driver for SimDriver {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn mem_info(&self) -> DriverResult<MemInfo> {
        let state = self.enter("cuMemGetInfo")?;
        let (info, latency) = (state.memory.info(), state.info_latency);
        drop(state);
        if !latency.is_zero() {
            std::thread::sleep(latency);
        }
        Ok(info)
    }

    unsafe fn alloc(
        &self,
        kind: AllocKind,
        bytes: u64,
        stream: StreamId,
    ) -> DriverResult<DevicePtr> {
        let call = match kind {
            AllocKind::StreamOrdered => "cuMemAllocFromPoolAsync",
            AllocKind::Synchronous => "cuMemAlloc",
        };
        let mut state = self.stream_of(call, stream)?;
        if bytes == 0 {
            return invalid(call, Code::INVALID_VALUE);
        }
        match state.memory.alloc(kind, bytes, stream.0) {
            Some(ptr) => Ok(DevicePtr(ptr)),
            None => invalid(call, Code::OUT_OF_MEMORY),
        }
    }

    unsafe fn free(&self, kind: AllocKind, ptr: DevicePtr, stream: StreamId) -> DriverResult<()> {
        let call = match kind {
            AllocKind::StreamOrdered => "cuMemFreeAsync",
            AllocKind::Synchronous => "cuMemFree",
        };
        let mut state = self.enter(call)?;
        if !state.memory.owns(kind, ptr.0) {
            return invalid(call, Code::INVALID_VALUE);
        }
        match kind {
            AllocKind::Synchronous => state.memory.free_synchronous(ptr.0),
            AllocKind::StreamOrdered => {
                if !state.engine.has_stream(stream.0) {
                    return invalid(call, Code::INVALID_HANDLE);
                }
                let seq = state
                    .engine
                    .submit(stream.0, |seq| Op::Free { ptr: ptr.0, seq });
                state.memory.issue_free(ptr.0, stream.0, seq);
                self.run_eagerly(&mut state);
            }
        }
        Ok(())
    }

    fn trim(&self, keep_bytes: u64) -> DriverResult<()> {
        self.enter("cuMemPoolTrimTo")?.memory.trim(keep_bytes);
        Ok(())
    }

    fn set_release_threshold(&self, bytes: u64) -> DriverResult<()> {
        self.enter("cuMemPoolSetAttribute")?
            .memory
            .set_threshold(bytes);
        Ok(())
    }

    unsafe fn host_register(&self, start: usize, bytes: usize) -> DriverResult<()> {
        let call = "cuMemHostRegister";
        let mut state = self.enter(call)?;
        let in_use: usize = state.registered.values().sum();
        if bytes == 0 {
            return invalid(call, Code::INVALID_VALUE);
        }
        if state.registered_overlaps(start, bytes) {
            return invalid(call, Code::HOST_MEMORY_ALREADY_REGISTERED);
        }
        if bytes > state.registered_range_limit
            || in_use.saturating_add(bytes) > state.registered_limit
        {
            return invalid(call, Code::OUT_OF_MEMORY);
        }
        state.registered.insert(start, bytes);
        state.registrations += 1;
        Ok(())
    }

    unsafe fn host_unregister(&self, start: usize) -> DriverResult<()> {
        let call = "cuMemHostUnregister";
        match self.enter(call)?.registered.remove(&start) {
            Some(_) => Ok(()),
            None => invalid(call, Code::HOST_MEMORY_NOT_REGISTERED),
        }
    }

    unsafe fn copy(&self, copy: Copy, stream: StreamId) -> DriverResult<()> {
        let (call, from, to, bytes, host) = match copy {
            Copy::Upload { from, to, bytes } => (
                "cuMemcpyHtoDAsync",
                from.cast_mut(),
                device(to),
                bytes,
                Some(from.addr()),
            ),
            Copy::Download { from, to, bytes } => (
                "cuMemcpyDtoHAsync",
                device(from),
                to,
                bytes,
                Some(to.addr()),
            ),
            Copy::Device { from, to, bytes } => {
                ("cuMemcpyDtoDAsync", device(from), device(to), bytes, None)
            }
        };
        let state = self.stream_of(call, stream)?;
        let device_ok = match copy {
            Copy::Upload { to, .. } => state.memory.contains(to.0, bytes),
            Copy::Download { from, .. } => state.memory.contains(from.0, bytes),
            Copy::Device { from, to, .. } => {
                state.memory.contains(from.0, bytes) && state.memory.contains(to.0, bytes)
            }
        };
        if !device_ok || host.is_some_and(|start| !state.host_range_ok(start, bytes)) {
            return invalid(call, Code::INVALID_VALUE);
        }
        let (from, to) = (SendPtr(from), SendPtr(to));
        let work = Box::new(move || {
            // SAFETY: both ranges are valid until the stream has passed this operation (contract of
            // `Driver`); `copy` allows them to overlap.
            unsafe { std::ptr::copy(from.get(), to.get(), bytes) }
        });
        self.submit(state, stream, Op::Work(work));
        Ok(())
    }

    unsafe fn fill(
        &self,
        ptr: DevicePtr,
        value: u8,
        bytes: usize,
        stream: StreamId,
    ) -> DriverResult<()> {
        let call = "cuMemsetD8Async";
        let state = self.stream_of(call, stream)?;
        if !state.memory.contains(ptr.0, bytes) {
            return invalid(call, Code::INVALID_VALUE);
        }
        let start = SendPtr(device(ptr));
        let work = Box::new(move || {
            // SAFETY: the range is valid until the stream has passed this operation.
            unsafe { std::ptr::write_bytes(start.get(), value, bytes) }
        });
        self.submit(state, stream, Op::Work(work));
        Ok(())
    }

    unsafe fn enqueue(&self, stream: StreamId, work: HostWork) -> DriverResult<()> {
        let state = self.stream_of("cuLaunchHostFunc", stream)?;
        self.submit(state, stream, Op::Work(work));
        Ok(())
    }

    fn create_stream(&self, _priority: Priority) -> DriverResult<StreamId> {
        Ok(StreamId(
            self.enter("cuStreamCreateWithPriority")?
                .engine
                .create_stream(),
        ))
    }

    unsafe fn destroy_stream(&self, stream: StreamId) -> DriverResult<()> {
        let mut state = self.stream_of("cuStreamDestroy", stream)?;
        while self.step_once(&mut state, stream.0) {}
        state.engine.destroy_stream(stream.0);
        Ok(())
    }

    fn create_event(&self, timed: bool) -> DriverResult<EventId> {
        Ok(EventId(
            self.enter("cuEventCreate")?.engine.create_event(timed),
        ))
    }

    unsafe fn destroy_event(&self, event: EventId) -> DriverResult<()> {
        let call = "cuEventDestroy";
        match self.enter(call)?.engine.events.remove(&event.0) {
            Some(_) => Ok(()),
            None => invalid(call, Code::INVALID_HANDLE),
        }
    }

    unsafe fn record(&self, event: EventId, stream: StreamId) -> DriverResult<()> {
        let call = "cuEventRecord";
        let mut state = self.stream_of(call, stream)?;
        if !state.engine.events.contains_key(&event.0) {
            return invalid(call, Code::INVALID_HANDLE);
        }
        state.engine.record(event.0, stream.0);
        self.run_eagerly(&mut state);
        Ok(())
    }

    unsafe fn stream_wait(&self, stream: StreamId, event: EventId) -> DriverResult<()> {
        let call = "cuStreamWaitEvent";
        let mut state = self.stream_of(call, stream)?;
        if !state.engine.events.contains_key(&event.0) {
            return invalid(call, Code::INVALID_HANDLE);
        }
        state.engine.wait_event(stream.0, event.0);
        self.run_eagerly(&mut state);
        Ok(())
    }

    unsafe fn wait(&self, point: Point) -> DriverResult<()> {
        match point {
            Point::Device => {
                let mut state = self.enter("cuCtxSynchronize")?;
                for id in state.engine.stream_ids() {
                    self.run_until(&mut state, id, |engine| {
                        engine.streams.get(&id).is_none_or(|stream| stream.idle())
                    });
                }
                state.memory.observe(|free| free.executed);
            }
            Point::Stream(stream) => {
                let mut state = self.stream_of("cuStreamSynchronize", stream)?;
                self.run_until(&mut state, stream.0, |engine| {
                    engine
                        .streams
                        .get(&stream.0)
                        .is_none_or(|stream| stream.idle())
                });
                state
                    .memory
                    .observe(|free| free.executed && free.stream == stream.0);
            }
            Point::Event(event) => {
                let call = "cuEventSynchronize";
                let mut state = self.enter(call)?;
                let Some((stream, seq)) = state
                    .engine
                    .events
                    .get(&event.0)
                    .map(|event| (event.stream, event.seq))
                else {
                    return invalid(call, Code::INVALID_HANDLE);
                };
                self.run_until(&mut state, stream, |engine| engine.event_reached(event.0));
                state
                    .memory
                    .observe(|free| free.stream == stream && free.seq < seq);
            }
        }
        Ok(())
    }

    unsafe fn query(&self, point: Point) -> DriverResult<bool> {
        // A query that finds the work done makes no freed bytes available (measured): only waiting
        // does.
        match point {
            Point::Device => {
                // SAFETY: no handle is involved.
                unsafe { self.wait(point)? };
                Ok(true)
            }
            Point::Stream(stream) => {
                let state = self.stream_of("cuStreamQuery", stream)?;
                let found = state.engine.streams.get(&stream.0);
                Ok(found.is_none_or(|stream| stream.idle()))
            }
            Point::Event(event) => {
                let call = "cuEventQuery";
                let state = self.enter(call)?;
                if !state.engine.events.contains_key(&event.0) {
                    return invalid(call, Code::INVALID_HANDLE);
                }
                Ok(state.engine.event_reached(event.0))
            }
        }
    }

    unsafe fn elapsed_ms(&self, begin: EventId, end: EventId) -> DriverResult<f32> {
        let call = "cuEventElapsedTime";
        let state = self.enter(call)?;
        let at = |id: EventId| match state.engine.events.get(&id.0) {
            Some(event) if event.timed => match event.at {
                Some(at) if state.engine.event_reached(id.0) => Ok(at),
                _ => invalid(call, Code::NOT_READY),
            },
            _ => invalid(call, Code::INVALID_HANDLE),
        };
        let (begin, end) = (at(begin)?, at(end)?);
        let ms = |a: std::time::Instant, b: std::time::Instant| (b - a).as_secs_f32() * 1e3;
        Ok(if end >= begin {
            ms(begin, end)
        } else {
            -ms(end, begin)
        })
    }
}
