//! A device in host memory: of any size, hoarding, slow, shared, or failing, as a test wants it.
//!
//! Copies and enqueued work really run, in stream order, on the bytes behind each block; an
//! emulator's kernels run through [`Driver::enqueue`](crate::driver::Driver::enqueue). A [`DevicePtr`](crate::driver::DevicePtr) of
//! this driver is the host address of its byte. Large blocks are mapped lazily, so a 16 GiB device
//! costs only what is touched.
//!
//! What the pool does with freed bytes follows the card measured for this project; `docs/memory.md`
//! has the table, and the conformance suite compares both step by step.

mod calls;
mod engine;
mod fault;
mod memory;

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::DeviceInfo;
use crate::driver::{Code, DriverError, DriverResult, StreamId};
use engine::{Engine, Op, Step};
use fault::Faults;
use memory::Memory;

/// When an operation runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completion {
    /// As soon as nothing before it is outstanding, on the submitting thread.
    #[default]
    Eager,
    /// When somebody waits for it, or the test calls [`SimDriver::step`].
    Lazy,
}

/// Counts that must come back to where they were when nothing leaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimCounts {
    /// Blocks allocated and not freed.
    pub blocks: usize,
    /// Streams created and not destroyed.
    pub streams: usize,
    /// Events created and not destroyed.
    pub events: usize,
    /// Host ranges registered.
    pub registrations: usize,
}

#[derive(Debug)]
struct State {
    memory: Memory,
    engine: Engine,
    faults: Faults,
    completion: Completion,
    /// Page-locked ranges: start to length.
    registered: BTreeMap<usize, usize>,
    registered_limit: usize,
    registered_range_limit: usize,
    registrations: u64,
    info_latency: Duration,
    queue_limit: usize,
}

/// The emulated device.
#[derive(Debug)]
pub struct SimDriver {
    info: DeviceInfo,
    state: Mutex<State>,
    /// Rung whenever an operation has run or a hold is lifted.
    progress: Condvar,
}

impl SimDriver {
    /// A device of `bytes` bytes whose driver gives cached bytes back on demand, as today's do.
    pub fn new(bytes: u64) -> Self {
        Self::with_info(DeviceInfo::simulated(bytes), true)
    }

    /// The same with an older driver: cached bytes stay in the pool until it is trimmed.
    pub fn hoarding(bytes: u64) -> Self {
        Self::with_info(DeviceInfo::simulated(bytes), false)
    }

    /// A device that describes itself as `info`; `gives_back` is what its driver does with
    /// completed, cached bytes when the synchronous allocator runs short.
    pub fn with_info(info: DeviceInfo, gives_back: bool) -> Self {
        let memory = Memory::new(info.total_bytes, gives_back);
        let state = State {
            memory,
            engine: Engine::default(),
            faults: Faults::default(),
            completion: Completion::Eager,
            registered: BTreeMap::new(),
            registered_limit: usize::MAX,
            registered_range_limit: usize::MAX,
            registrations: 0,
            info_latency: Duration::ZERO,
            queue_limit: usize::MAX,
        };
        Self {
            info,
            state: Mutex::new(state),
            progress: Condvar::new(),
        }
    }

    /// Chooses when operations run from now on.
    pub fn set_completion(&self, completion: Completion) {
        let mut state = self.state.lock();
        state.completion = completion;
        self.run_eagerly(&mut state);
    }

    /// Holds a stream back: nothing in it runs, and who waits for it waits, until
    /// [`SimDriver::release`]. A hold models a long kernel.
    pub fn hold(&self, stream: StreamId) {
        if let Some(stream) = self.state.lock().engine.streams.get_mut(&stream.0) {
            stream.held = true;
        }
    }

    /// Lifts a hold.
    pub fn release(&self, stream: StreamId) {
        let mut state = self.state.lock();
        if let Some(stream) = state.engine.streams.get_mut(&stream.0) {
            stream.held = false;
        }
        self.run_eagerly(&mut state);
        self.progress.notify_all();
    }

    /// Runs one operation of the stream, if one can run; says whether it did.
    pub fn step(&self, stream: StreamId) -> bool {
        let mut state = self.state.lock();
        self.step_once(&mut state, stream.0)
    }

    /// Other programs hold `bytes` of the device, or as much as they can get.
    pub fn set_tenants(&self, bytes: u64) {
        self.state.lock().memory.set_tenants(bytes);
    }

    /// The `nth` driver call from now, the first being 1, fails with `code`.
    pub fn fail_nth(&self, nth: u64, code: Code) {
        self.state.lock().faults.fail_nth(nth, code);
    }

    /// Every `every`-th driver call fails with `code`.
    pub fn fail_every(&self, every: u64, code: Code) {
        self.state.lock().faults.fail_every(every, code);
    }

    /// The `nth` call of that name (`"cuMemHostRegister"`) from now fails with `code`.
    pub fn fail_call(&self, call: &'static str, nth: u64, code: Code) {
        self.state.lock().faults.fail_call(call, nth, code);
    }

    /// The context is lost: every call fails with `code` until [`SimDriver::heal`].
    pub fn lose(&self, code: Code) {
        self.state.lock().faults.lose(code);
    }

    /// Forgets all failures set and had.
    pub fn heal(&self) {
        self.state.lock().faults.clear();
    }

    /// Driver calls so far.
    pub fn calls(&self) -> u64 {
        self.state.lock().faults.calls()
    }

    /// Bytes that may be registered in all; more is refused, as under a memlock limit.
    pub fn set_registered_limit(&self, bytes: usize) {
        self.state.lock().registered_limit = bytes;
    }

    /// Bytes that one registration may have; real drivers refuse very long ones.
    pub fn set_registered_range_limit(&self, bytes: usize) {
        self.state.lock().registered_range_limit = bytes;
    }

    /// Successful registrations so far.
    pub fn registrations(&self) -> u64 {
        self.state.lock().registrations
    }

    /// Memory figures are read, then take so long to arrive: by then they may be old.
    pub fn set_info_latency(&self, latency: Duration) {
        self.state.lock().info_latency = latency;
    }

    /// Operations that may wait on a stream, at least 1: a copy, a fill or work beyond that waits in the driver, as on a card,
    /// where they are about a thousand.
    pub fn set_queue_limit(&self, operations: usize) {
        self.state.lock().queue_limit = operations.max(1);
    }

    /// What is alive now.
    pub fn counts(&self) -> SimCounts {
        let state = self.state.lock();
        SimCounts {
            blocks: state.memory.live_blocks(),
            streams: state.engine.live_streams(),
            events: state.engine.events.len(),
            registrations: state.registered.len(),
        }
    }

    /// The most bytes that were ever allocated at once, by both allocators.
    pub fn peak_bytes(&self) -> u64 {
        self.state.lock().memory.peak()
    }

    fn run_eagerly(&self, state: &mut MutexGuard<'_, State>) {
        while state.completion == Completion::Eager {
            let ids = state.engine.stream_ids();
            let mut ran = false;
            for id in ids {
                ran |= self.step_once(state, id);
            }
            if !ran {
                return;
            }
        }
    }

    /// Runs one operation that `id` needs to get further; says whether one ran.
    fn step_once(&self, state: &mut MutexGuard<'_, State>, id: u64) -> bool {
        let (owner, op) = match state.engine.step(id) {
            Step::Run(owner, op) => (owner, op),
            Step::Blocked | Step::Idle => return false,
        };
        let mut panicked = false;
        match op {
            // Host work may take long and may itself be parallel: it runs without the lock.
            Op::Work(work) => MutexGuard::unlocked(state, || {
                let work = std::panic::AssertUnwindSafe(work);
                panicked = std::panic::catch_unwind(work).is_err();
            }),
            Op::Free { ptr, seq } => state.memory.execute_free(ptr, owner, seq),
            Op::Record { event, seq } => state.engine.stamp(event, owner, seq),
            Op::Wait { .. } => {}
        }
        if panicked {
            state.faults.lose(Code::LAUNCH_FAILED);
        }
        state.engine.finish(owner);
        self.progress.notify_all();
        true
    }

    /// Runs what must run until `reached`; waits for other threads where it cannot.
    fn run_until(
        &self,
        state: &mut MutexGuard<'_, State>,
        stream: u64,
        reached: impl Fn(&Engine) -> bool,
    ) {
        while !reached(&state.engine) {
            if !self.step_once(state, stream) && !reached(&state.engine) {
                self.progress.wait(state);
            }
        }
    }

    /// Counts the call, and fails it if it is to fail.
    fn enter(&self, call: &'static str) -> DriverResult<MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        state.faults.enter(call)?;
        Ok(state)
    }
}

/// The answer to a handle or range that is not there.
fn invalid<T>(call: &'static str, code: Code) -> DriverResult<T> {
    Err(DriverError::new(call, code))
}
