//! The rules: who goes first, who waits, who is refused.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cuzk_gpu_mem::Footprint;
use cuzk_sched::{
    DeviceOptions, Event, JobError, JobOptions, Lane, Observer, Options, Phase, Place, Priority,
    Scheduler, StartError, SubmitError,
};

use crate::work::{Mishap, Part, Sums, check, devices, primary};

const HELD: Mishap = Mishap::Held(Phase::Compute);

fn parts(tag: u64, count: usize) -> Vec<Part> {
    (0..count).map(|index| Part::new(tag, index)).collect()
}

fn at(priority: Priority) -> JobOptions {
    JobOptions {
        priority,
        ..JobOptions::default()
    }
}

/// An observer that tells when a partition enters the phase.
fn told_of(phase: Phase) -> (Observer, mpsc::Receiver<()>) {
    let (sender, receiver) = mpsc::channel();
    let sender = Mutex::new(sender);
    let observer = Observer::new(move |event| {
        if matches!(event, Event::Phase { phase: now, .. } if *now == phase) {
            let _ = sender.lock().unwrap().send(());
        }
    });
    (observer, receiver)
}

/// One device with one worker, held by a slow job: what is handed in meanwhile goes in order.
fn one_worker() -> (Arc<Sums>, Options) {
    let (drivers, gpus) = devices(&[1 << 20]);
    let mut options = Options::new(gpus.iter().map(primary));
    options.workers_per_device = 1;
    options.concurrency = 1;
    (Arc::new(Sums::over(&drivers)), options)
}

#[test]
fn higher_classes_and_older_jobs_go_first_down_to_the_partition() {
    let (sums, options) = one_worker();
    let scheduler = Scheduler::start(options).unwrap();
    let mut held = parts(0, 3);
    held[0] = held[0].clone().with(HELD);
    let (began, wait) = told_of(Phase::Compute);
    let how = JobOptions {
        observer: Some(began),
        ..JobOptions::default()
    };
    let mut jobs = vec![scheduler.submit(&sums, held, how).unwrap()];
    wait.recv().unwrap();
    for (tag, priority) in [
        (1, Priority::Low),
        (2, Priority::Normal),
        (3, Priority::High),
        (4, Priority::Normal),
        (5, Priority::Urgent),
    ] {
        jobs.push(
            scheduler
                .submit(&sums, parts(tag, 2), at(priority))
                .unwrap(),
        );
    }
    sums.release();
    for job in jobs {
        job.wait().unwrap();
    }
    // Urgent and high overtake the rest of the job that had begun; that goes on before its equals.
    let tags: Vec<u64> = sums
        .computed
        .lock()
        .unwrap()
        .iter()
        .map(|(tag, _)| *tag)
        .collect();
    assert_eq!(tags, [0, 5, 5, 3, 3, 0, 0, 2, 2, 4, 4, 1, 1]);
}

/// GP-13: a stream of urgent jobs over a low one. With an ageing of 10 ms a class the low one is
/// overtaken for 30 ms and no longer, though urgent ones never cease.
#[test]
fn nothing_starves() {
    let (sums, mut options) = one_worker();
    options.ageing = Duration::from_millis(10);
    options.jobs_max = 1000;
    let scheduler = Scheduler::start(options).unwrap();
    let slow = Mishap::Slow(Phase::Compute, Duration::from_millis(1));
    let urgent = |tag| vec![Part::new(tag, 0).with(slow)];
    let first: Vec<_> = (1..100)
        .map(|tag| {
            scheduler
                .submit(&sums, urgent(tag), at(Priority::Urgent))
                .unwrap()
        })
        .collect();
    let low = scheduler
        .submit(&sums, parts(0, 1), at(Priority::Low))
        .unwrap();
    std::thread::sleep(Duration::from_millis(40));
    let late: Vec<_> = (100..200)
        .map(|tag| {
            scheduler
                .submit(&sums, urgent(tag), at(Priority::Urgent))
                .unwrap()
        })
        .collect();
    low.wait().unwrap();
    for job in first.into_iter().chain(late) {
        job.wait().unwrap();
    }
    let computed = sums.computed.lock().unwrap();
    let of = |tag: u64| computed.iter().position(|(t, _)| *t == tag).unwrap();
    assert!(of(0) > of(99), "urgent jobs that came before it go first");
    assert!(
        (100..200).all(|tag| of(tag) > of(0)),
        "those that came late do not"
    );
}

#[test]
fn small_urgent_jobs_have_a_lane_of_their_own() {
    let (drivers, gpus) = devices(&[1 << 20]);
    let mut options = Options::new(gpus.iter().map(primary));
    options.workers_per_device = 1;
    options.lane = Some(Lane {
        most: Footprint {
            device: 8 << 10,
            pinned: 0,
            host: 8 << 10,
        },
    });
    let sums = Arc::new(Sums::over(&drivers));
    let scheduler = Scheduler::start(options).unwrap();
    // The one ordinary worker stages for a long time.
    let staging = Mishap::Slow(Phase::Stage, Duration::from_secs(60));
    let slow = vec![Part::new(1, 0).with(staging)];
    let slow = scheduler.submit(&sums, slow, at(Priority::Normal)).unwrap();
    sums.await_slow_phase();
    let small = scheduler
        .submit(&sums, parts(2, 3), at(Priority::Urgent))
        .unwrap();
    check(2, 3, &small.wait().unwrap().outputs);
    // One that is not small has to wait, urgent or not.
    let mut large = parts(3, 1);
    large[0].scratch_bytes = 64 << 10;
    let large = scheduler
        .submit(&sums, large, at(Priority::Urgent))
        .unwrap();
    assert!(large.wait_for(Duration::from_millis(20)).is_none());
    slow.cancel();
    large.wait().unwrap();
    assert!(matches!(slow.wait(), Err(JobError::Cancelled)));
}

#[test]
fn a_full_engine_says_busy_and_takes_more_when_a_job_has_ended() {
    let (sums, mut options) = one_worker();
    options.jobs_max = 2;
    let scheduler = Scheduler::start(options).unwrap();
    let first = scheduler
        .submit(
            &sums,
            vec![Part::new(1, 0).with(HELD)],
            JobOptions::default(),
        )
        .unwrap();
    let second = scheduler
        .submit(&sums, parts(2, 1), JobOptions::default())
        .unwrap();
    let refused = scheduler.submit(&sums, parts(3, 1), JobOptions::default());
    assert_eq!(refused.unwrap_err(), SubmitError::Busy { jobs: 2 });
    sums.release();
    first.wait().unwrap();
    let third = scheduler
        .submit(&sums, parts(3, 1), JobOptions::default())
        .unwrap();
    check(2, 1, &second.wait().unwrap().outputs);
    check(3, 1, &third.wait().unwrap().outputs);
}

#[test]
fn what_can_never_fit_is_refused_with_both_figures() {
    let (sums, mut options) = one_worker();
    options.host_limit.host = 1 << 20;
    let scheduler = Scheduler::start(options).unwrap();
    let refused = |change: fn(&mut Part)| {
        let mut parts = parts(1, 2);
        change(&mut parts[1]);
        scheduler
            .submit(&sums, parts, JobOptions::default())
            .unwrap_err()
    };
    for error in [
        refused(|part| part.scratch_bytes = 1 << 20),
        refused(|part| part.host_bytes = (1 << 20) + 1),
    ] {
        let SubmitError::TooLarge {
            partition,
            needed,
            largest_device_bytes,
            host,
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!(
            (partition, largest_device_bytes, host.host),
            (1, 1 << 20, 1 << 20)
        );
        assert!(needed.device > 1 << 20 || needed.host > 1 << 20);
    }
    let empty = scheduler.submit(&sums, vec![], JobOptions::default());
    assert_eq!(empty.unwrap_err(), SubmitError::Empty);
    assert_eq!(scheduler.status().jobs, 0);
}

/// CS-03: ten jobs under a host limit of three run in waves.
#[test]
fn host_memory_is_held_to_its_limit() {
    let (drivers, gpus) = devices(&[1 << 20, 1 << 20, 1 << 20]);
    let mut options = Options::new(gpus.iter().map(primary));
    options.concurrency = 10;
    options.host_limit.host = 3000;
    let sums = Arc::new(Sums::over(&drivers));
    let scheduler = Scheduler::start(options).unwrap();
    let jobs: Vec<_> = (0..10)
        .map(|tag| {
            let mut part = Part::new(tag, 0);
            part.host_bytes = 1000;
            scheduler
                .submit(&sums, vec![part], JobOptions::default())
                .unwrap()
        })
        .collect();
    for job in jobs {
        job.wait().unwrap();
    }
    assert!(scheduler.status().peak.host <= 3000);
    assert_eq!(scheduler.status().held, Footprint::default());
}

/// A partition that needs nearly all of the device is not starved by small ones that keep coming.
#[test]
fn a_large_partition_is_not_starved_by_small_ones() {
    let (drivers, gpus) = devices(&[64 << 10]);
    let mut options = Options::new(gpus.iter().map(primary));
    options.concurrency = 100;
    options.jobs_max = 100;
    let sums = Arc::new(Sums::over(&drivers));
    let scheduler = Scheduler::start(options).unwrap();
    let small = |tag| {
        let mut part =
            Part::new(tag, 0).with(Mishap::Slow(Phase::Compute, Duration::from_millis(1)));
        part.words = 2048;
        vec![part]
    };
    let mut jobs: Vec<_> = (1..20)
        .map(|tag| {
            scheduler
                .submit(&sums, small(tag), JobOptions::default())
                .unwrap()
        })
        .collect();
    let mut large = Part::new(0, 0);
    large.scratch_bytes = 63 << 10;
    jobs.push(
        scheduler
            .submit(&sums, vec![large], JobOptions::default())
            .unwrap(),
    );
    jobs.extend((20..60).map(|tag| {
        scheduler
            .submit(&sums, small(tag), JobOptions::default())
            .unwrap()
    }));
    for job in jobs {
        job.wait().unwrap();
    }
    let computed = sums.computed.lock().unwrap();
    let of = |tag: u64| computed.iter().position(|(t, _)| *t == tag).unwrap();
    assert!(of(0) < of(25), "{computed:?}");
}

#[test]
fn small_partitions_leave_the_large_device_free() {
    let (drivers, gpus) = devices(&[1 << 20, 64 << 10]);
    let mut options = Options::new(gpus.iter().map(primary));
    options.workers_per_device = 1;
    let sums = Arc::new(Sums::over(&drivers));
    let scheduler = Scheduler::start(options).unwrap();
    let small = Part::new(1, 0).with(HELD);
    let small = scheduler
        .submit(&sums, vec![small], JobOptions::default())
        .unwrap();
    let mut large = Part::new(2, 0);
    large.scratch_bytes = 512 << 10;
    let large = scheduler
        .submit(&sums, vec![large], JobOptions::default())
        .unwrap();
    assert_eq!(large.wait().unwrap().partitions[0].device, 0);
    sums.release();
    assert_eq!(small.wait().unwrap().partitions[0].device, 1);
}

#[test]
fn a_cancelled_job_gives_everything_back_before_it_ends() {
    for phase in [Phase::Stage, Phase::Compute, Phase::Finish] {
        let (sums, options) = one_worker();
        let Place::Device(device) = options.devices[0].place.clone() else {
            unreachable!()
        };
        let scheduler = Scheduler::start(options).unwrap();
        let (observer, began) = told_of(phase);
        let mut jobs = parts(1, 4);
        jobs[0] = jobs[0]
            .clone()
            .with(Mishap::Slow(phase, Duration::from_secs(60)));
        let how = JobOptions {
            observer: Some(observer),
            ..JobOptions::default()
        };
        let job = scheduler.submit(&sums, jobs, how).unwrap();
        began.recv().unwrap();
        let begun = Instant::now();
        job.cancel();
        assert!(matches!(job.wait(), Err(JobError::Cancelled)));
        assert!(begun.elapsed() < Duration::from_secs(50), "it did not stop");
        assert_eq!(scheduler.status().held, Footprint::default());
        assert_eq!(scheduler.status().jobs, 0);
        device.compute(|_| ()).unwrap();
        assert_eq!(device.budget().state().committed(), 0, "{phase}");
        let next = scheduler
            .submit(&sums, parts(2, 1), JobOptions::default())
            .unwrap();
        check(2, 1, &next.wait().unwrap().outputs);
    }
}

#[test]
fn dropping_the_handle_cancels() {
    let (sums, options) = one_worker();
    let scheduler = Scheduler::start(options).unwrap();
    let slow = Mishap::Slow(Phase::Stage, Duration::from_secs(60));
    drop(
        scheduler
            .submit(
                &sums,
                vec![Part::new(1, 0).with(slow)],
                JobOptions::default(),
            )
            .unwrap(),
    );
    scheduler.drain();
    assert_eq!(scheduler.status().jobs, 0);
}

#[test]
fn a_deadline_ends_a_job_that_waits_and_one_that_runs() {
    let (sums, options) = one_worker();
    let scheduler = Scheduler::start(options).unwrap();
    let in_ms = |ms| JobOptions {
        deadline: Some(Instant::now() + Duration::from_millis(ms)),
        ..JobOptions::default()
    };
    let slow = Mishap::Slow(Phase::Compute, Duration::from_secs(60));
    let running = vec![Part::new(1, 0).with(slow)];
    let running = scheduler.submit(&sums, running, in_ms(30)).unwrap();
    let waiting = scheduler.submit(&sums, parts(2, 1), in_ms(10)).unwrap();
    assert!(matches!(waiting.wait(), Err(JobError::Deadline)));
    assert!(matches!(running.wait(), Err(JobError::Deadline)));
    assert!(sums.computed.lock().unwrap().is_empty());
}

#[test]
fn draining_finishes_what_was_taken_in_and_refuses_more() {
    let (sums, options) = one_worker();
    let scheduler = Scheduler::start(options).unwrap();
    let jobs: Vec<_> = (1..6)
        .map(|tag| {
            scheduler
                .submit(&sums, parts(tag, 3), JobOptions::default())
                .unwrap()
        })
        .collect();
    scheduler.drain();
    for (job, tag) in jobs.into_iter().zip(1..) {
        check(tag, 3, &job.poll().unwrap().unwrap().outputs);
    }
    let refused = scheduler.submit(&sums, parts(9, 1), JobOptions::default());
    assert_eq!(refused.unwrap_err(), SubmitError::ShuttingDown);
    scheduler.drain();
}

#[test]
fn shutting_down_cancels_what_runs_and_what_waits() {
    let (sums, options) = one_worker();
    let scheduler = Scheduler::start(options).unwrap();
    let slow = Mishap::Slow(Phase::Compute, Duration::from_secs(60));
    let running = vec![Part::new(1, 0).with(slow)];
    let running = scheduler
        .submit(&sums, running, JobOptions::default())
        .unwrap();
    let waiting = scheduler
        .submit(&sums, parts(2, 1), JobOptions::default())
        .unwrap();
    scheduler.shutdown();
    assert!(matches!(running.wait(), Err(JobError::ShutDown)));
    assert!(matches!(waiting.wait(), Err(JobError::ShutDown)));
}

/// CS-02, GP-18: waiting for jobs on all threads of the pool that the jobs need.
#[test]
fn waiting_on_a_pool_of_one_thread_does_not_block_it() {
    let (sums, mut options) = one_worker();
    options.devices = vec![DeviceOptions::new(Place::Cpu)];
    let scheduler = Scheduler::start(options).unwrap();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    pool.install(|| {
        rayon::scope(|scope| {
            for tag in 1..9 {
                let (sums, scheduler) = (&sums, &scheduler);
                scope.spawn(move |_| {
                    let job = scheduler
                        .submit(sums, parts(tag, 2), JobOptions::default())
                        .unwrap();
                    check(tag, 2, &job.wait().unwrap().outputs);
                });
            }
        });
    });
}

#[test]
fn an_observer_hears_of_everything_once() {
    let (sums, options) = one_worker();
    let scheduler = Scheduler::start(options).unwrap();
    let events = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&events);
    let how = JobOptions {
        observer: Some(Observer::new(move |event| {
            heard.lock().unwrap().push(event.clone())
        })),
        ..JobOptions::default()
    };
    let job = scheduler.submit(&sums, parts(1, 2), how).unwrap();
    let id = job.id();
    job.wait().unwrap();
    let events = events.lock().unwrap();
    let done: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Done { part, done, of } => Some((part.index, *done, *of)),
            _ => None,
        })
        .collect();
    assert_eq!(done, [(0, 1, 2), (1, 2, 2)]);
    assert_eq!(
        events.last(),
        Some(&Event::Ended {
            job: id,
            how: "done"
        })
    );
    let phases = events
        .iter()
        .filter(|event| matches!(event, Event::Phase { .. }))
        .count();
    assert_eq!(phases, 2 * 4);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let (_, options) = one_worker();
    type Case = (fn(&mut Options), &'static str);
    let cases: [Case; 4] = [
        (
            |options| options.devices.clear(),
            "an engine needs a device",
        ),
        (
            |options| options.workers_per_device = 0,
            "a device needs a worker",
        ),
        (
            |options| options.concurrency = 0,
            "concurrency is at least 1",
        ),
        (
            |options| options.jobs_max = 0,
            "the queue needs room for a job",
        ),
    ];
    for (change, expected) in cases {
        let mut options = options.clone();
        change(&mut options);
        match Scheduler::<Sums>::start(options) {
            Err(StartError::Options(what)) => assert_eq!(what, expected),
            other => panic!("{other:?}"),
        }
    }
}
