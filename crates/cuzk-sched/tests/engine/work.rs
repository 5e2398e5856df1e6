//! A workload of checked sums. Its numbers say whose they are, so that a mix-up shows.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cuzk_gpu_mem::driver::{Code, SimDriver};
use cuzk_gpu_mem::{Compute, Device, Error, Settings, Staged, StagingRequest};
use cuzk_sched::{
    Context, Demand, DeviceOptions, Fault, Phase, Place, Preparation, Section, Staging, Work,
};

/// What goes wrong with an attempt, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// The phase takes so long.
    Slow(Phase, Duration),
    /// The phase takes until [`Sums::release`].
    Held(Phase),
    /// The device refuses.
    Device(Phase),
    /// The device's context is lost.
    Lose(Phase),
    /// The result is wrong.
    Wrong,
    /// The partition is at fault.
    Input(Phase),
    /// Memory that was admitted is not there.
    Memory(Phase),
    /// A bug.
    Panic(Phase),
}

impl Mishap {
    fn phase(self) -> Phase {
        match self {
            Self::Slow(phase, _)
            | Self::Held(phase)
            | Self::Device(phase)
            | Self::Lose(phase)
            | Self::Input(phase)
            | Self::Memory(phase)
            | Self::Panic(phase) => phase,
            Self::Wrong => Phase::Finish,
        }
    }
}

/// One partition.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Whose it is.
    pub(crate) tag: u64,
    /// Its number in the job.
    pub(crate) index: usize,
    /// Words that are staged.
    pub(crate) words: usize,
    /// Device scratch.
    pub(crate) scratch_bytes: u64,
    /// Host memory.
    pub(crate) host_bytes: u64,
    /// By attempt.
    pub(crate) mishaps: Vec<Option<Mishap>>,
    /// By place: whether the mishaps are for GPUs only.
    pub(crate) is_gpu_only: bool,
    /// Whether what it needs of a device is known only when it has been prepared.
    pub(crate) is_late: bool,
}

impl Part {
    pub(crate) fn new(tag: u64, index: usize) -> Self {
        Self {
            tag,
            index,
            words: 16,
            scratch_bytes: 1 << 10,
            host_bytes: 1 << 10,
            mishaps: Vec::new(),
            is_gpu_only: false,
            is_late: false,
        }
    }

    pub(crate) fn with(mut self, mishap: Mishap) -> Self {
        self.mishaps.push(Some(mishap));
        self
    }

    /// What it needs of a device.
    fn on_device(&self) -> Demand {
        Demand {
            staging: vec![StagingRequest {
                label: "input",
                bytes: 8 * self.words as u64,
            }],
            compute_bytes: self.scratch_bytes,
            ..Demand::default()
        }
    }

    fn data(&self) -> Vec<u64> {
        (0..self.words as u64)
            .map(|i| self.tag * 1_000_003 + self.index as u64 * 1009 + i)
            .collect()
    }

    fn sum(&self) -> u64 {
        self.data().iter().sum()
    }
}

/// The result of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) tag: u64,
    pub(crate) index: usize,
    pub(crate) sum: u64,
}

#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum SumError {
    #[error("a wrong sum")]
    Wrong,
    #[error("a bad partition")]
    Input,
    #[error("no memory")]
    Memory,
    #[error("the device refuses")]
    Refused,
    #[error(transparent)]
    Device(Arc<Error>),
}

impl From<Error> for SumError {
    fn from(error: Error) -> Self {
        Self::Device(Arc::new(error))
    }
}

/// What the workload has seen of the engine.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// By device ordinal (CPUs last), partitions that compute now.
    computing: [AtomicUsize; 4],
    /// In the order in which they computed.
    pub(crate) computed: Mutex<Vec<(u64, usize)>>,
    /// In the order in which they were staged.
    pub(crate) staged: Mutex<Vec<(u64, usize)>>,
    /// Tags of jobs whose end has been told.
    pub(crate) ended: Mutex<BTreeSet<u64>>,
    /// How often a partition has been prepared.
    pub(crate) prepared: AtomicUsize,
    pub(crate) drivers: Vec<Arc<SimDriver>>,
    /// In microseconds, the most that a phase takes beyond its work; 0 for none.
    pub(crate) jitter_us: u64,
    noise: AtomicUsize,
    is_released: AtomicBool,
    /// Phases that were slow, or are held.
    slow_phases: AtomicUsize,
}

pub(crate) enum Here {
    Cpu(Vec<u64>),
    Staged(Staged<u64>),
    NotStaged,
}

/// A partition before its first phase: whose it is, and where it was prepared.
pub(crate) struct Ready {
    tag: u64,
    index: usize,
    ordinal: Option<u32>,
}

fn ordinal(place: &Place) -> Option<u32> {
    match place {
        Place::Cpu => None,
        Place::Device(device) => Some(device.info().ordinal),
    }
}

impl Sums {
    pub(crate) fn over(drivers: &[Arc<SimDriver>]) -> Self {
        Self {
            drivers: drivers.to_vec(),
            ..Self::default()
        }
    }

    /// Waits until a phase is slow, or held.
    pub(crate) fn await_slow_phase(&self) {
        while self.slow_phases.load(Ordering::Acquire) == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Those that are held go on.
    pub(crate) fn release(&self) {
        self.is_released.store(true, Ordering::Release);
    }

    fn mishap(
        &self,
        part: &Part,
        context: &Context<'_>,
        phase: Phase,
    ) -> Result<(), Fault<SumError>> {
        if self.jitter_us > 0 {
            let noise = self.noise.fetch_add(0x9e37_79b9, Ordering::Relaxed) as u64;
            let us = (noise ^ (noise >> 13)) % (self.jitter_us + 1);
            match us % 3 {
                0 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(us)),
            }
        }
        context.check()?;
        if part.is_gpu_only && matches!(context.place(), Place::Cpu) {
            return Ok(());
        }
        let attempt = context.attempt() as usize;
        let mishap = part.mishaps.get(attempt).copied().flatten();
        let Some(mishap) = mishap.filter(|mishap| mishap.phase() == phase) else {
            return Ok(());
        };
        match mishap {
            Mishap::Slow(_, time) => {
                self.slow_phases.fetch_add(1, Ordering::AcqRel);
                let end = Instant::now() + time;
                while Instant::now() < end {
                    context.check()?;
                    std::thread::sleep(Duration::from_micros(100));
                }
                Ok(())
            }
            Mishap::Held(_) => {
                self.slow_phases.fetch_add(1, Ordering::AcqRel);
                while !self.is_released.load(Ordering::Acquire) {
                    context.check()?;
                    std::thread::sleep(Duration::from_micros(100));
                }
                Ok(())
            }
            Mishap::Device(_) => Err(Fault::Device(SumError::Refused)),
            Mishap::Lose(_) => {
                if let Place::Device(device) = context.place() {
                    self.drivers[device.info().ordinal as usize].lose(Code::ILLEGAL_ADDRESS);
                    device.mem_info().map(drop).map_err(Fault::from)?;
                }
                Ok(())
            }
            Mishap::Wrong => Ok(()), // see `verify`
            Mishap::Input(_) => Err(Fault::Input(SumError::Input)),
            Mishap::Memory(_) => Err(Fault::Memory(SumError::Memory)),
            Mishap::Panic(_) => panic!("as planned"),
        }
    }
}

/// Counts a partition as computing for as long as it lives.
struct Computing<'a>(&'a AtomicUsize);

impl Drop for Computing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Work for Sums {
    type Part = Part;
    type Prepared = Ready;
    type Staged = Here;
    type Computed = u64;
    type Output = Sum;
    type Error = SumError;

    fn demand(&self, part: &Part, place: &Place) -> Option<Demand> {
        let host_bytes = part.host_bytes;
        Some(match place {
            Place::Cpu => Demand {
                host_bytes,
                ..Demand::default()
            },
            Place::Device(_) => Demand {
                host_bytes,
                ..match part.is_late {
                    true => Demand {
                        compute_bytes: part.on_device().footprint().device,
                        ..Demand::default()
                    },
                    false => part.on_device(),
                }
            },
        })
    }

    fn prepare(
        &self,
        part: &Part,
        context: &Context<'_>,
    ) -> Result<Preparation<Ready>, Fault<SumError>> {
        self.prepared.fetch_add(1, Ordering::Relaxed);
        let prepared = Ready {
            tag: part.tag,
            index: part.index,
            ordinal: ordinal(context.place()),
        };
        let is_late = part.is_late && prepared.ordinal.is_some();
        Ok(Preparation {
            prepared,
            demand: is_late.then(|| part.on_device()),
        })
    }

    fn stage(
        &self,
        part: &Part,
        ready: Ready,
        context: &Context<'_>,
        staging: Staging<'_>,
    ) -> Result<Here, Fault<SumError>> {
        assert_eq!((ready.tag, ready.index), (part.tag, part.index));
        assert_eq!(ready.ordinal, ordinal(context.place()));
        self.staged.lock().unwrap().push((part.tag, part.index));
        self.mishap(part, context, Phase::Stage)?;
        match staging {
            Staging::Cpu => Ok(Here::Cpu(part.data())),
            Staging::Device { admission, upload } => {
                match admission.stage::<u64>("input", part.words, upload)? {
                    None => Ok(Here::NotStaged),
                    Some(mut buffer) => {
                        buffer.upload_slice(&part.data())?;
                        Ok(Here::Staged(buffer))
                    }
                }
            }
        }
    }

    fn compute(
        &self,
        part: &Part,
        staged: Here,
        context: &Context<'_>,
        section: Section<'_, '_>,
    ) -> Result<u64, Fault<SumError>> {
        assert!(
            !self.ended.lock().unwrap().contains(&part.tag),
            "the permit is held by a job that has ended"
        );
        let _computing = match context.place() {
            Place::Cpu => None,
            Place::Device(device) => {
                let computing = &self.computing[device.info().ordinal as usize];
                assert_eq!(computing.fetch_add(1, Ordering::SeqCst), 0, "two compute");
                Some(Computing(computing))
            }
        };
        self.mishap(part, context, Phase::Compute)?;
        let words = match (staged, section) {
            (Here::Cpu(words), Section::Cpu) => words,
            (Here::Staged(buffer), Section::Device(cx)) => {
                on_device(part, Some(buffer), context, cx)?
            }
            (Here::NotStaged, Section::Device(cx)) => on_device(part, None, context, cx)?,
            _ => unreachable!("a partition changed its place"),
        };
        self.computed.lock().unwrap().push((part.tag, part.index));
        Ok(words.iter().sum())
    }

    fn finish(
        &self,
        part: &Part,
        computed: u64,
        context: &Context<'_>,
    ) -> Result<Sum, Fault<SumError>> {
        self.mishap(part, context, Phase::Finish)?;
        Ok(Sum {
            tag: part.tag,
            index: part.index,
            sum: computed,
        })
    }

    fn verify(
        &self,
        part: &Part,
        output: &mut Sum,
        context: &Context<'_>,
    ) -> Result<(), Fault<SumError>> {
        let planned = part.mishaps.get(context.attempt() as usize);
        let is_here = !(part.is_gpu_only && matches!(context.place(), Place::Cpu));
        let is_wrong = is_here && planned == Some(&Some(Mishap::Wrong));
        if is_wrong || output.sum != part.sum() {
            return Err(Fault::Wrong(SumError::Wrong));
        }
        Ok(())
    }
}

/// The words of a partition, over the device and back.
fn on_device(
    part: &Part,
    staged: Option<Staged<u64>>,
    context: &Context<'_>,
    cx: &Compute<'_>,
) -> Result<Vec<u64>, Fault<SumError>> {
    let state = cx.device().budget().state();
    assert!(state.committed() <= state.limit, "{state:?}");
    let _scratch = cx.alloc::<u8>("scratch", part.scratch_bytes as usize)?;
    let buffer = match staged {
        Some(staged) => cx.enter(staged)?,
        None => {
            let mut buffer = cx.alloc::<u64>("input", part.words)?;
            cx.stream().upload_slice(&part.data(), &mut buffer)?;
            buffer
        }
    };
    let span = context.device_span("sum", cx.stream());
    let mut words = vec![0; part.words];
    cx.stream().download_slice(&buffer, &mut words)?;
    if let Some(span) = span {
        span.end(cx.stream());
    }
    Ok(words)
}

/// Emulated devices of these sizes, numbered.
pub(crate) fn devices(bytes: &[u64]) -> (Vec<Arc<SimDriver>>, Vec<Device>) {
    let drivers: Vec<_> = bytes
        .iter()
        .zip(0..)
        .map(|(bytes, ordinal)| {
            let mut info = cuzk_gpu_mem::DeviceInfo::simulated(*bytes);
            info.ordinal = ordinal;
            Arc::new(SimDriver::with_info(info, true))
        })
        .collect();
    let devices = drivers.iter().map(|driver| {
        let driver: Arc<SimDriver> = Arc::clone(driver);
        let settings = Settings {
            reserve: 0,
            ..Settings::default()
        };
        Device::with_driver(driver, settings).unwrap()
    });
    let devices = devices.collect();
    (drivers, devices)
}

pub(crate) fn primary(device: &Device) -> DeviceOptions {
    DeviceOptions::new(Place::Device(device.clone()))
}

/// That a job's results are its own, whole and in order.
pub(crate) fn check(tag: u64, partitions: usize, outputs: &[Sum]) {
    let expected: Vec<Sum> = (0..partitions)
        .map(|index| Sum { tag, index, sum: 0 })
        .collect();
    let found: Vec<Sum> = outputs
        .iter()
        .map(|o| Sum {
            sum: 0,
            ..o.clone()
        })
        .collect();
    assert_eq!(found, expected);
}
