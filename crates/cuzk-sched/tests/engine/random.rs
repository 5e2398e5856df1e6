//! Random jobs with random timings, faults and cancels over emulated devices: whatever happens,
//! every job ends once, with its own results or a reason, and nothing is left behind.
//!
//! `CUZK_SCHED_SEEDS=N` runs more seeds than the few seconds of CI; `CUZK_SCHED_SEED=S` begins at
//! another one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_gpu_mem::Footprint;
use cuzk_sched::{
    DeviceOptions, JobError, JobOptions, Lane, OnDeviceError, Options, Phase, Place, Priority,
    Scheduler, SubmitError, Watchdog,
};
use cuzk_testkit::Words;

use crate::work::{Mishap, Part, SumError, Sums, check, devices, primary};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
#[expect(clippy::print_stdout, reason = "which seeds were run")]
fn every_job_ends_once_whatever_happens() {
    crate::quiet();
    let first = number("CUZK_SCHED_SEED").unwrap_or(1);
    let seeds = number("CUZK_SCHED_SEEDS");
    let begun = Instant::now();
    let mut run = 0;
    // Without a wish: as many as a few seconds allow, a hundred at least.
    for seed in first.. {
        let is_enough = match seeds {
            Some(seeds) => run >= seeds,
            None => run >= 100 && (begun.elapsed() > Duration::from_secs(4) || run >= 2000),
        };
        if is_enough {
            break;
        }
        one_seed(seed);
        run += 1;
    }
    println!("{run} seeds from {first} on in {:.1?}", begun.elapsed());
}

const PHASES: [Phase; 3] = [Phase::Stage, Phase::Compute, Phase::Finish];

/// What may be the end of a job, by what was planned for it.
#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    tag: u64,
    partitions: usize,
    is_cancelled: bool,
    is_dropped: bool,
    has_deadline: bool,
    has_input_fault: bool,
    has_panic: bool,
    has_device_fault: bool,
}

fn one_seed(seed: u64) {
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let guard = Arc::clone(&done);
    // A deadlock is a failure, not a hang.
    std::thread::spawn(move || {
        for _ in 0..600 {
            std::thread::sleep(Duration::from_millis(100));
            if guard.load(std::sync::atomic::Ordering::Acquire) {
                return;
            }
        }
        #[expect(clippy::print_stderr, reason = "the process ends here")]
        {
            eprintln!("seed {seed} does not end");
        }
        std::process::abort();
    });
    run(seed);
    done.store(true, std::sync::atomic::Ordering::Release);
}

fn run(seed: u64) {
    let mut words = Words::new(seed);
    let sizes: Vec<u64> = (0..1 + words.below(3))
        .map(|_| 1 << (15 + words.below(4)))
        .collect();
    let (drivers, gpus) = devices(&sizes);
    let may_lose = words.below(4) == 0;
    let has_cpu = words.below(2) == 0;
    let mut options = Options::new(gpus.iter().map(primary));
    if has_cpu {
        options.devices.push(DeviceOptions::fallback(Place::Cpu));
    }
    options.workers_per_device = 1 + words.below(3);
    options.concurrency = 1 + words.below(4);
    options.jobs_max = 4 + words.below(8);
    options.on_device_error = *words.pick(&[
        OnDeviceError::Fail,
        OnDeviceError::Retry,
        OnDeviceError::Cpu,
    ]);
    options.ageing = Duration::from_millis(words.below(20) as u64);
    options.memory_patience = Duration::from_secs(20);
    options.host_limit.host = 1 << (12 + words.below(4));
    options.timeline = words.below(4) == 0;
    if words.below(3) == 0 {
        options.lane = Some(Lane {
            most: Footprint {
                device: 2 << 10,
                pinned: 1 << 10,
                host: 1 << 10,
            },
        });
    }
    let has_watchdog = words.below(8) == 0;
    if has_watchdog {
        let limit = Some(Duration::from_millis(30));
        options.watchdog = Watchdog {
            stage: limit,
            compute: limit,
            finish: limit,
        };
    }
    let mut sums = Sums::over(&drivers);
    sums.jitter_us = *words.pick(&[0, 0, 30, 200]);
    let sums = Arc::new(sums);
    let scheduler = Scheduler::<Sums>::start(options.clone()).unwrap();

    let mut jobs = Vec::new();
    let mut busy = 0;
    for tag in 0..3 + words.below(12) as u64 {
        let mut plan = Plan {
            tag,
            partitions: 1 + words.below(5),
            ..Plan::default()
        };
        let parts: Vec<Part> = (0..plan.partitions)
            .map(|index| part(&mut words, &mut plan, index, may_lose))
            .collect();
        let how = JobOptions {
            priority: *words.pick(&[
                Priority::Low,
                Priority::Normal,
                Priority::High,
                Priority::Urgent,
            ]),
            deadline: (words.below(12) == 0).then(|| {
                plan.has_deadline = true;
                Instant::now() + Duration::from_micros(words.below(3000) as u64)
            }),
            observer: None,
        };
        match scheduler.submit(&sums, parts, how) {
            Ok(job) => {
                plan.is_cancelled = words.below(8) == 0;
                plan.is_dropped = words.below(10) == 0;
                jobs.push((plan, job));
            }
            Err(SubmitError::Busy { jobs: most }) => {
                assert_eq!(most, options.jobs_max);
                busy += 1;
                // Its own pace from here on.
                std::thread::sleep(Duration::from_micros(300));
            }
            Err(SubmitError::TooLarge { .. }) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
        assert!(scheduler.status().jobs <= options.jobs_max);
    }
    let is_drained = words.below(4) > 0;
    std::thread::scope(|scope| {
        for (plan, job) in jobs {
            let (sums, options) = (&sums, &options);
            let delay = Duration::from_micros(words.below(800) as u64);
            scope.spawn(move || {
                if plan.is_cancelled || plan.is_dropped {
                    std::thread::sleep(delay);
                }
                if plan.is_dropped {
                    return;
                }
                if plan.is_cancelled {
                    job.cancel();
                }
                let result = job.wait();
                if !has_watchdog {
                    // An attempt that a watchdog gave up may still be on its way.
                    sums.ended.lock().unwrap().insert(plan.tag);
                }
                judge(
                    seed,
                    plan,
                    options,
                    may_lose || has_watchdog,
                    is_drained,
                    result,
                );
            });
        }
        if is_drained {
            scheduler.drain();
        } else {
            std::thread::sleep(Duration::from_micros(words.below(2000) as u64));
            scheduler.shutdown();
        }
    });
    let status = scheduler.status();
    assert_eq!(
        status.jobs, 0,
        "seed {seed}: jobs are left, {busy} were refused"
    );
    if !has_watchdog {
        assert_eq!(
            status.held,
            Footprint::default(),
            "seed {seed}: host memory is held"
        );
    }
    assert!(status.peak.host <= options.host_limit.host, "seed {seed}");
    let run = scheduler.timeline();
    assert_eq!(run.is_some(), options.timeline);
    drop(scheduler);
    if has_watchdog {
        return; // what is stuck comes back later
    }
    for device in &gpus {
        let state = device.budget().state();
        assert!(
            state.peak_committed <= state.limit,
            "seed {seed}: {state:?}"
        );
        if device.check().is_ok() {
            // The permit can be had, and what is pending is seen done.
            device.compute(|_| ()).unwrap();
            assert_eq!(device.budget().state().committed(), 0, "seed {seed}");
        }
    }
}

fn part(words: &mut Words, plan: &mut Plan, index: usize, may_lose: bool) -> Part {
    let mut part = Part::new(plan.tag, index);
    part.words = 1 + words.below(512);
    part.scratch_bytes = 1 + words.below(12 << 10) as u64;
    part.host_bytes = words.below(4 << 10) as u64;
    part.is_gpu_only = words.below(2) == 0;
    part.is_late = words.below(4) == 0;
    for _ in 0..2 {
        let phase = *words.pick(&PHASES);
        let mishap = match words.below(40) {
            0 | 1 => Some(Mishap::Device(phase)),
            2 | 3 => Some(Mishap::Wrong),
            4 => Some(Mishap::Input(phase)),
            5 => Some(Mishap::Panic(phase)),
            6 => Some(Mishap::Memory(phase)),
            7 if may_lose => Some(Mishap::Lose(phase)),
            8 => Some(Mishap::Slow(
                phase,
                Duration::from_micros(words.below(3000) as u64),
            )),
            9 if words.below(4) == 0 => Some(Mishap::Slow(
                phase,
                Duration::from_millis(words.below(60) as u64),
            )),
            _ => None,
        };
        match mishap {
            Some(Mishap::Input(_)) => plan.has_input_fault = true,
            Some(Mishap::Panic(_)) => plan.has_panic = true,
            Some(Mishap::Device(_) | Mishap::Wrong | Mishap::Lose(_) | Mishap::Memory(_)) => {
                plan.has_device_fault = true;
            }
            _ => {}
        }
        part.mishaps.push(mishap);
    }
    part
}

type Ended = Result<cuzk_sched::Finished<crate::work::Sum>, JobError<SumError>>;

fn judge(
    seed: u64,
    plan: Plan,
    options: &Options,
    devices_may_go: bool,
    is_drained: bool,
    result: Ended,
) {
    let explain = || format!("seed {seed}, {plan:?}, {result:?}");
    match &result {
        Ok(finished) => {
            check(plan.tag, plan.partitions, &finished.outputs);
            assert_eq!(finished.partitions.len(), plan.partitions);
        }
        Err(JobError::Cancelled) => assert!(plan.is_cancelled, "{}", explain()),
        Err(JobError::Deadline) => assert!(plan.has_deadline, "{}", explain()),
        Err(JobError::ShutDown) => assert!(!is_drained, "{}", explain()),
        Err(JobError::Panicked { .. }) => assert!(plan.has_panic, "{}", explain()),
        Err(JobError::Failed { error, .. }) => match error {
            SumError::Input => assert!(plan.has_input_fault, "{}", explain()),
            // Devices that failed others may be out of service.
            _ => assert!(plan.has_device_fault || devices_may_go, "{}", explain()),
        },
        Err(JobError::TimedOut { .. }) => {
            assert!(options.watchdog != Watchdog::default(), "{}", explain());
        }
        // All devices that could do it were struck or lost by the faults of others.
        Err(JobError::NoDevice { .. }) => {}
        Err(error) => panic!("{error}: {}", explain()),
    }
}
