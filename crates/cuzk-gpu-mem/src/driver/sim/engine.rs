//! Streams and events of an emulated device: queues of operations that run in order.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use crate::driver::HostWork;

/// One operation in a stream.
pub(super) enum Op {
    Work(HostWork),
    Free {
        ptr: u64,
        seq: u64,
    },
    Record {
        event: u64,
        seq: u64,
    },
    /// Until `stream` has completed its operation number `seq`.
    Wait {
        stream: u64,
        seq: u64,
    },
}

impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Work(_) => f.write_str("Work"),
            Self::Free { ptr, .. } => write!(f, "Free(0x{ptr:x})"),
            Self::Record { event, .. } => write!(f, "Record({event})"),
            Self::Wait { stream, seq } => write!(f, "Wait({stream}:{seq})"),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Stream {
    queue: VecDeque<Op>,
    running: bool,
    pub(super) held: bool,
    destroyed: bool,
    submitted: u64,
    completed: u64,
}

impl Stream {
    pub(super) fn idle(&self) -> bool {
        self.queue.is_empty() && !self.running
    }
}

/// An event is a place in a stream: the number of the operation that records it. One that was
/// never recorded names no stream and counts as reached, as CUDA has it.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) timed: bool,
    pub(super) stream: u64,
    pub(super) seq: u64,
    pub(super) at: Option<Instant>,
}

/// What one attempt to advance a stream came to.
pub(super) enum Step {
    /// This operation is to be run now, by the caller, who then calls [`Engine::finish`].
    Run(u64, Op),
    /// Somebody else must act first.
    Blocked,
    /// Nothing is queued.
    Idle,
}

#[derive(Debug, Default)]
pub(super) struct Engine {
    pub(super) streams: BTreeMap<u64, Stream>,
    pub(super) events: BTreeMap<u64, Event>,
    next_id: u64,
}

impl Engine {
    fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(super) fn create_stream(&mut self) -> u64 {
        let id = self.fresh_id();
        self.streams.insert(id, Stream::default());
        id
    }

    pub(super) fn create_event(&mut self, timed: bool) -> u64 {
        let id = self.fresh_id();
        let event = Event {
            timed,
            stream: 0,
            seq: 0,
            at: None,
        };
        self.events.insert(id, event);
        id
    }

    pub(super) fn has_stream(&self, id: u64) -> bool {
        self.streams
            .get(&id)
            .is_some_and(|stream| !stream.destroyed)
    }

    pub(super) fn live_streams(&self) -> usize {
        self.streams
            .values()
            .filter(|stream| !stream.destroyed)
            .count()
    }

    /// The stream's work still completes; it is forgotten when that is done.
    pub(super) fn destroy_stream(&mut self, id: u64) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.destroyed = true;
            self.forget_if_done(id);
        }
    }

    fn forget_if_done(&mut self, id: u64) {
        if self
            .streams
            .get(&id)
            .is_some_and(|stream| stream.destroyed && stream.idle())
        {
            self.streams.remove(&id);
        }
    }

    /// Queues `op`; returns its sequence number. The op is made from that number.
    pub(super) fn submit(&mut self, id: u64, op: impl FnOnce(u64) -> Op) -> u64 {
        let Some(stream) = self.streams.get_mut(&id) else {
            return 0;
        };
        stream.submitted += 1;
        let seq = stream.submitted;
        stream.queue.push_back(op(seq));
        seq
    }

    /// Operations of a stream that have not begun.
    pub(super) fn queued(&self, id: u64) -> usize {
        self.streams.get(&id).map_or(0, |stream| stream.queue.len())
    }

    pub(super) fn record(&mut self, id: u64, stream: u64) {
        let seq = self.submit(stream, |seq| Op::Record { event: id, seq });
        if let Some(event) = self.events.get_mut(&id) {
            (event.stream, event.seq, event.at) = (stream, seq, None);
        }
    }

    pub(super) fn wait_event(&mut self, stream: u64, event: u64) {
        if let Some(&Event {
            stream: other, seq, ..
        }) = self.events.get(&event)
        {
            self.submit(stream, |_| Op::Wait { stream: other, seq });
        }
    }

    /// Whether the stream has completed its operation number `seq`; one that is gone has.
    pub(super) fn passed(&self, stream: u64, seq: u64) -> bool {
        self.streams
            .get(&stream)
            .is_none_or(|stream| stream.completed >= seq)
    }

    pub(super) fn event_reached(&self, id: u64) -> bool {
        self.events
            .get(&id)
            .is_none_or(|event| self.passed(event.stream, event.seq))
    }

    /// Takes the next operation that must run before `id` can get further.
    pub(super) fn step(&mut self, id: u64) -> Step {
        let Some(stream) = self.streams.get(&id) else {
            return Step::Idle;
        };
        if stream.running || (stream.held && !stream.queue.is_empty()) {
            return Step::Blocked;
        }
        match stream.queue.front() {
            None => return Step::Idle,
            Some(&Op::Wait { stream: other, seq }) if !self.passed(other, seq) => {
                return match self.step(other) {
                    Step::Idle => Step::Blocked,
                    step => step,
                };
            }
            Some(_) => {}
        }
        match self.streams.get_mut(&id).and_then(|stream| {
            stream.running = true;
            stream.queue.pop_front()
        }) {
            Some(op) => Step::Run(id, op),
            None => Step::Idle,
        }
    }

    /// The operation taken by [`Engine::step`] has run.
    pub(super) fn finish(&mut self, id: u64) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.running = false;
            stream.completed += 1;
        }
        self.forget_if_done(id);
    }

    /// The record number `seq` of the event has run; a newer record elsewhere keeps its own time.
    pub(super) fn stamp(&mut self, event: u64, stream: u64, seq: u64) {
        if let Some(event) = self.events.get_mut(&event)
            && (event.stream, event.seq) == (stream, seq)
        {
            event.at = Some(Instant::now());
        }
    }

    pub(super) fn stream_ids(&self) -> Vec<u64> {
        self.streams.keys().copied().collect()
    }
}
