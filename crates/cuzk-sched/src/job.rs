//! A job as its submitter holds it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};

use crate::error::JobError;
use crate::message::JobId;
use crate::work::Flag;

/// What a job's handle and the engine share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: JobId,
    pub(crate) cancel: Arc<Flag>,
    /// That some job is to be cancelled, for the engine.
    pub(crate) any_cancelled: Arc<Flag>,
    /// A full queue means that the engine is about to wake anyhow.
    pub(crate) wake: Sender<()>,
}

impl Shared {
    fn cancel(&self) {
        self.cancel.set();
        self.any_cancelled.set();
        let _ = self.wake.try_send(());
    }
}

/// The results of a job, in the order of its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished<T> {
    /// The job.
    pub job: JobId,
    /// One for each partition, in order.
    pub outputs: Vec<T>,
    /// How each came to be.
    pub partitions: Vec<PartitionReport>,
    /// From being handed in until the first partition was begun.
    pub queued: Duration,
    /// From then until the end.
    pub elapsed: Duration,
}

/// How one partition came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionReport {
    /// The device's number in [`Options::devices`](crate::Options::devices).
    pub device: usize,
    /// How often it was tried, the last time included.
    pub attempts: u32,
    /// Of the last attempt.
    pub elapsed: Duration,
}

/// A job under way. Dropped, it is cancelled.
#[must_use = "a job whose handle is dropped is cancelled"]
pub struct Job<T, E> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) reply: Receiver<Result<Finished<T>, JobError<E>>>,
}

/// Cancels a job from elsewhere than its handle.
#[derive(Clone, Debug)]
pub struct Canceller(Arc<Shared>);

impl Canceller {
    /// See [`Job::cancel`].
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// How long a thread of a pool does the pool's work before it looks for the reply again.
const LOOK_AGAIN: Duration = Duration::from_micros(200);

impl<T, E> Job<T, E> {
    /// Its number.
    pub fn id(&self) -> JobId {
        self.shared.id
    }

    /// Cancels it: what waits is dropped, what runs stops at its next question, and all memory is
    /// given back before the job ends as [`JobError::Cancelled`]. A job that is done stays so.
    pub fn cancel(&self) {
        self.shared.cancel();
    }

    /// Cancels it from elsewhere.
    pub fn canceller(&self) -> Canceller {
        Canceller(Arc::clone(&self.shared))
    }

    /// Waits for its end. On a thread of a rayon pool this does the pool's work meanwhile, so that a
    /// pool whose threads all wait for jobs is not stuck.
    ///
    /// # Errors
    /// [`JobError`].
    pub fn wait(self) -> Result<Finished<T>, JobError<E>> {
        if rayon::current_thread_index().is_none() {
            return self.reply.recv().unwrap_or(Err(JobError::ShutDown));
        }
        loop {
            if let Some(result) = self.poll() {
                return result;
            }
            if rayon::yield_now() != Some(rayon::Yield::Executed)
                && let Some(result) = self.wait_for(LOOK_AGAIN)
            {
                return result;
            }
        }
    }

    /// Waits at most so long. It gives the result once: afterwards [`JobError::ShutDown`].
    pub fn wait_for(&self, at_most: Duration) -> Option<Result<Finished<T>, JobError<E>>> {
        match self.reply.recv_timeout(at_most) {
            Ok(result) => Some(result),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(JobError::ShutDown)),
        }
    }

    /// Its result, if it has ended. It gives it once: afterwards [`JobError::ShutDown`].
    pub fn poll(&self) -> Option<Result<Finished<T>, JobError<E>>> {
        match self.reply.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(JobError::ShutDown)),
        }
    }
}

impl<T, E> Drop for Job<T, E> {
    fn drop(&mut self) {
        self.shared.cancel();
    }
}

impl<T, E> fmt::Debug for Job<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({})", self.shared.id.number())
    }
}
