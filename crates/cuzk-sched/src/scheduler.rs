//! The engine as its users hold it: started, given jobs, drained, shut down.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, select};
use cuzk_gpu_mem::{Footprint, Recorder};

use crate::core::{Core, NewWorker};
use crate::error::{JobError, SubmitError};
use crate::job::{Finished, Job, Shared};
use crate::ledger::{Gate, Ledger, Refused};
use crate::message::{JobId, NewJob, NewPart, ToEngine};
use crate::options::{JobOptions, Options, Priority};
use crate::timeline::{DeviceFacts, Log, Run};
use crate::turnstile::Turnstile;
use crate::work::{Demand, Flag, Place, Work};
use crate::worker::{DeviceShared, Seat};

/// Why an engine does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Options that make no sense.
    #[error("{0}")]
    Options(&'static str),
    /// A thread could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(#[from] io::Error),
    /// A device refused what the timeline needs.
    #[error(transparent)]
    Device(#[from] cuzk_gpu_mem::Error),
}

/// An engine at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Jobs taken in and not ended.
    pub jobs: usize,
    /// Host memory that partitions in flight hold: `pinned` and `host`. `device` is what they have
    /// been counted for on all devices together.
    pub held: Footprint,
    /// The most that they ever held at once.
    pub peak: Footprint,
}

/// An engine. Dropped, it is shut down.
pub struct Scheduler<W: Work> {
    options: Options,
    devices: Vec<Arc<DeviceShared>>,
    ledger: Arc<Ledger>,
    gate: Arc<Gate>,
    next_job: AtomicU64,
    any_cancelled: Arc<Flag>,
    wake: Sender<()>,
    engine: Sender<ToEngine<W>>,
    /// Closed when the engine's thread and all workers that are not stuck have ended.
    over: Receiver<()>,
    log: Option<Arc<Log>>,
}

impl<W: Work> Scheduler<W> {
    /// Starts an engine on threads of its own.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(options: Options) -> Result<Self, StartError>
    where
        W: 'static,
    {
        Self::launch(options, |name, body: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name).spawn(body).map(drop)
        })
    }

    /// Starts an engine whose work borrows from outside `scope`, as a key. The scope ends when the
    /// engine has been drained, shut down or dropped; a worker that a watchdog gave up is waited for.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start_in<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        options: Options,
    ) -> Result<Self, StartError>
    where
        W: 'scope,
    {
        Self::launch(options, |name, body: Box<dyn FnOnce() + Send + 'scope>| {
            let builder = thread::Builder::new().name(name);
            builder.spawn_scoped(scope, body).map(drop)
        })
    }

    fn launch<'x>(
        options: Options,
        spawn: impl Fn(String, Box<dyn FnOnce() + Send + 'x>) -> io::Result<()>,
    ) -> Result<Self, StartError>
    where
        W: 'x,
    {
        check(&options)?;
        let epoch = Instant::now();
        let log = options.timeline.then(|| Arc::new(Log::new(epoch)));
        let ledger = Ledger::new(options.host_limit);
        let devices = devices(&options, log.as_deref())?;
        let any_cancelled = Arc::new(Flag::default());
        let workers_in_all: usize = options
            .devices
            .iter()
            .map(|d| workers_of(&options, d))
            .sum();
        // Each worker has at most its five reports under way, each job its submission.
        let (engine, inbox) = bounded(options.jobs_max + 5 * workers_in_all + 16);
        let (wake, woken) = bounded(1);
        let (alive, over) = bounded(0);
        let (mut workers, mut leaving) = (Vec::new(), Vec::new());
        for (device_number, device) in devices.iter().enumerate() {
            let count = workers_of(&options, &options.devices[device_number]);
            for local_number in 0..count {
                let (sender, receiver) = bounded(1);
                let (here, gone) = bounded::<()>(0);
                let number = workers.len();
                let seat = Seat {
                    number,
                    device_number,
                    local_number,
                    device: Arc::clone(device),
                    log: log.clone(),
                    inbox: receiver,
                    engine: engine.clone(),
                };
                let body = move || {
                    seat.run();
                    drop(here);
                };
                spawn(format!("cuzk-worker-{number}"), Box::new(body))?;
                workers.push(NewWorker {
                    device: device_number,
                    is_lane: options.lane.is_some() && local_number + 1 == count,
                    inbox: sender,
                });
                leaving.push(gone);
            }
        }
        let core = Core::new(
            options.clone(),
            epoch,
            Arc::clone(&ledger),
            devices.clone(),
            workers,
            Arc::clone(&any_cancelled),
        );
        let gate = Gate::new(options.jobs_max);
        let inside = Arc::clone(&gate);
        let body = move || {
            drive(core, &inside, &inbox, &woken, &leaving);
            drop(alive);
        };
        spawn("cuzk-engine".to_owned(), Box::new(body))?;
        Ok(Self {
            gate,
            options,
            devices,
            ledger,
            next_job: AtomicU64::new(1),
            any_cancelled,
            wake,
            engine,
            over,
            log,
        })
    }

    /// Hands a job in: `parts` are its partitions, in order.
    ///
    /// # Errors
    /// [`SubmitError`]; the job has not been taken in then. [`SubmitError::Busy`] is back-pressure.
    pub fn submit(
        &self,
        work: &Arc<W>,
        parts: Vec<W::Part>,
        options: JobOptions,
    ) -> Result<Job<W::Output, W::Error>, SubmitError> {
        if parts.is_empty() {
            return Err(SubmitError::Empty);
        }
        let pass = self.gate.enter().map_err(|refused| match refused {
            Refused::Full => SubmitError::Busy {
                jobs: self.options.jobs_max,
            },
            Refused::Closed => SubmitError::ShuttingDown,
        })?;
        let parts = parts
            .into_iter()
            .enumerate()
            .map(|(index, part)| self.prepare(work, index, part, options.priority))
            .collect::<Result<Vec<_>, _>>()?;
        let shared = Arc::new(Shared {
            id: JobId(self.next_job.fetch_add(1, Ordering::Relaxed)),
            cancel: Arc::new(Flag::default()),
            any_cancelled: Arc::clone(&self.any_cancelled),
            wake: self.wake.clone(),
        });
        let (reply, result) = bounded::<Result<Finished<_>, JobError<_>>>(1);
        let job = NewJob {
            shared: Arc::clone(&shared),
            work: Arc::clone(work),
            parts,
            options,
            reply,
            pass,
        };
        self.engine
            .send(ToEngine::Submit(Box::new(job)))
            .map_err(|_| SubmitError::ShuttingDown)?;
        Ok(Job {
            shared,
            reply: result,
        })
    }

    /// What the partition needs on each device, if it could ever be had.
    fn prepare(
        &self,
        work: &Arc<W>,
        index: usize,
        part: W::Part,
        priority: Priority,
    ) -> Result<NewPart<W>, SubmitError> {
        let asked: Vec<Option<Demand>> = self
            .devices
            .iter()
            .map(|device| work.demand(&part, &device.place))
            .collect();
        let needs = || asked.iter().flatten().map(Demand::footprint);
        let Some(needed) = needs().min_by_key(|footprint| footprint.device) else {
            return Err(SubmitError::NoDevice { partition: index });
        };
        // Only what will not go through the lane leaves its memory free.
        let keep = match &self.options.lane {
            Some(lane) if priority == Priority::Urgent && needs().all(|n| n.fits(lane.most)) => {
                Footprint::default()
            }
            Some(lane) => lane.most,
            None => Footprint::default(),
        };
        let largest_device_bytes = self.devices.iter().map(|d| d.place.device_bytes()).max();
        let demands: Vec<Option<Arc<Demand>>> = asked
            .into_iter()
            .zip(&self.devices)
            .map(|(demand, device)| {
                let demand = demand?;
                let needed = demand.footprint();
                let fits_device = match &device.place {
                    Place::Cpu => true,
                    place @ Place::Device(_) => {
                        needed.device.saturating_add(keep.device) <= place.device_bytes()
                    }
                };
                (fits_device && self.ledger.could_hold(needed, keep)).then(|| Arc::new(demand))
            })
            .collect();
        if demands.iter().all(Option::is_none) {
            return Err(SubmitError::TooLarge {
                partition: index,
                needed,
                largest_device_bytes: largest_device_bytes.unwrap_or(0),
                host: self.options.host_limit,
            });
        }
        Ok(NewPart {
            input: Arc::new(part),
            demands,
        })
    }

    /// Takes no more jobs, waits until all have ended, and ends.
    pub fn drain(&self) {
        self.stop(false);
    }

    /// Cancels all jobs, and ends. What runs stops at its next question.
    pub fn shutdown(&self) {
        self.stop(true);
    }

    fn stop(&self, cancel: bool) {
        self.gate.close();
        // It may have ended.
        let _ = self.engine.send(ToEngine::Stop { cancel });
        let _ = self.over.recv();
    }

    /// Gives a device work again that was taken out of service; says whether it answers. A card
    /// whose context is lost does not, in this process.
    pub fn reinstate(&self, device: usize) -> bool {
        let (reply, answer) = bounded(1);
        let asked = self.engine.send(ToEngine::Reinstate { device, reply });
        asked.is_ok() && answer.recv().unwrap_or(false)
    }

    /// The devices that are out of service, by their number in [`Options::devices`].
    pub fn quarantined(&self) -> Vec<usize> {
        (0..self.devices.len())
            .filter(|device| self.devices[*device].out.is_set())
            .collect()
    }

    /// What goes on now.
    pub fn status(&self) -> Status {
        let (held, peak) = self.ledger.held();
        Status {
            jobs: self.gate.count(),
            held,
            peak,
        }
    }

    /// The options it was started with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What has happened so far, where [`Options::timeline`] asked for it.
    pub fn timeline(&self) -> Option<Run> {
        let log = self.log.as_ref()?;
        let devices = self.devices.iter().enumerate();
        let facts = devices.map(|(number, device)| DeviceFacts {
            number,
            name: device.place.name(),
            is_gpu: matches!(device.place, Place::Device(_)),
            workers: workers_of(&self.options, &self.options.devices[number]),
        });
        let recorders = self.devices.iter().map(|device| device.recorder.as_ref());
        Some(log.run(facts.collect(), &recorders.collect::<Vec<_>>()))
    }
}

impl<W: Work> Drop for Scheduler<W> {
    fn drop(&mut self) {
        self.stop(true);
    }
}

impl<W: Work> fmt::Debug for Scheduler<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

fn check(options: &Options) -> Result<(), StartError> {
    let faults = [
        (options.devices.is_empty(), "an engine needs a device"),
        (
            options
                .devices
                .iter()
                .any(|d| d.workers.unwrap_or(options.workers_per_device) == 0),
            "a device needs a worker",
        ),
        (options.concurrency == 0, "concurrency is at least 1"),
        (options.jobs_max == 0, "the queue needs room for a job"),
        (
            options.attempts_max == 0,
            "a partition is tried at least once",
        ),
        (options.strikes_max == 0, "a device may fail at least once"),
    ];
    match faults.iter().find(|(is_fault, _)| *is_fault) {
        Some((_, what)) => Err(StartError::Options(what)),
        None => Ok(()),
    }
}

/// The lane's worker comes beside the others.
fn workers_of(options: &Options, device: &crate::DeviceOptions) -> usize {
    device.workers.unwrap_or(options.workers_per_device) + usize::from(options.lane.is_some())
}

fn devices(options: &Options, log: Option<&Log>) -> Result<Vec<Arc<DeviceShared>>, StartError> {
    let devices = options.devices.iter().map(|device| {
        let (places, recorder) = match (&device.place, log) {
            // The processors have no permit: its workers share them.
            (Place::Cpu, _) => (workers_of(options, device), None),
            (Place::Device(_), None) => (1, None),
            (Place::Device(device), Some(log)) => {
                let stream = device.stream("timeline")?;
                let recorder = Recorder::new(&stream)?;
                stream.synchronize()?;
                log.device_began(Instant::now());
                (1, Some(recorder))
            }
        };
        if recorder.is_none()
            && let Some(log) = log
        {
            log.device_began(Instant::now());
        }
        Ok(Arc::new(DeviceShared {
            place: device.place.clone(),
            turnstile: Turnstile::new(places),
            out: Arc::new(Flag::default()),
            recorder,
        }))
    });
    devices.collect()
}

/// How often the engine looks, at its end, whether a submission on its way has been made.
const LAST_LOOKS: Duration = Duration::from_millis(1);

/// The engine's thread.
fn drive<W: Work>(
    mut core: Core<W>,
    gate: &Gate,
    inbox: &Receiver<ToEngine<W>>,
    woken: &Receiver<()>,
    leaving: &[Receiver<()>],
) {
    while !(core.is_over() && gate.count() == 0) {
        let wake = if core.is_over() {
            crossbeam_channel::after(LAST_LOOKS)
        } else {
            match core.next_wake(Instant::now()) {
                Some(time) => crossbeam_channel::at(time),
                None => crossbeam_channel::never(),
            }
        };
        let message = select! {
            recv(inbox) -> message => match message {
                Ok(message) => Some(message),
                // Nobody is left who could say anything.
                Err(_) => return,
            },
            recv(woken) -> _ => None,
            recv(wake) -> _ => None,
        };
        let now = Instant::now();
        for message in message.into_iter().chain(inbox.try_iter()) {
            core.handle(message, now);
        }
        core.tick(now);
        core.dispatch(now);
    }
    for worker in core.dismiss() {
        // Closed when the worker has ended.
        let _ = leaving[worker].recv();
    }
}
