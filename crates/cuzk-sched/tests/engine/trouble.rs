//! What goes wrong, and what comes of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cuzk_gpu_mem::driver::SimDriver;
use cuzk_sched::{
    DeviceOptions, JobError, JobOptions, OnDeviceError, Options, Phase, Place, Priority, Scheduler,
    Watchdog,
};

use crate::work::{Mishap, Part, SumError, Sums, check, devices, primary};

struct Setting {
    drivers: Vec<Arc<SimDriver>>,
    sums: Arc<Sums>,
    options: Options,
}

/// So many devices, and the CPU to fall back on.
fn setting(gpus: usize, policy: OnDeviceError) -> Setting {
    crate::quiet();
    let (drivers, devices) = devices(&vec![1 << 20; gpus]);
    let mut options = Options::new(devices.iter().map(primary));
    options.devices.push(DeviceOptions::fallback(Place::Cpu));
    options.on_device_error = policy;
    Setting {
        sums: Arc::new(Sums::over(&drivers)),
        drivers,
        options,
    }
}

type Ended = Result<cuzk_sched::Finished<crate::work::Sum>, JobError<SumError>>;

fn one(setting: &Setting, scheduler: &Scheduler<Sums>, part: Part) -> Ended {
    scheduler
        .submit(&setting.sums, vec![part], JobOptions::default())
        .unwrap()
        .wait()
}

fn gpu_part(mishaps: &[Mishap]) -> Part {
    let mut part = Part::new(7, 0);
    part.mishaps = mishaps.iter().copied().map(Some).collect();
    part.is_gpu_only = true;
    part
}

const REFUSED: Mishap = Mishap::Device(Phase::Compute);

#[test]
fn policies_decide_where_a_failed_partition_goes() {
    /// GPUs, policy, mishaps by attempt; the device that did it in the end, after so many attempts.
    type Case = (
        usize,
        OnDeviceError,
        &'static [Mishap],
        Option<(usize, u32)>,
    );
    let cases: [Case; 8] = [
        (1, OnDeviceError::Fail, &[Mishap::Wrong], None),
        (1, OnDeviceError::Retry, &[Mishap::Wrong], Some((0, 2))),
        (
            1,
            OnDeviceError::Retry,
            &[Mishap::Wrong, REFUSED],
            Some((0, 3)),
        ),
        (1, OnDeviceError::Retry, &[Mishap::Wrong; 3], None),
        (1, OnDeviceError::Cpu, &[Mishap::Wrong; 3], Some((1, 3))),
        (
            2,
            OnDeviceError::Retry,
            &[REFUSED, Mishap::Wrong],
            Some((1, 3)),
        ),
        (
            1,
            OnDeviceError::Cpu,
            &[Mishap::Lose(Phase::Stage)],
            Some((1, 2)),
        ),
        (
            1,
            OnDeviceError::Retry,
            &[Mishap::Lose(Phase::Compute)],
            None,
        ),
    ];
    for (gpus, policy, mishaps, expected) in cases {
        let setting = setting(gpus, policy);
        let scheduler = Scheduler::start(setting.options.clone()).unwrap();
        let result = one(&setting, &scheduler, gpu_part(mishaps));
        match (&result, expected) {
            (Ok(finished), Some((device, attempts))) => {
                let report = finished.partitions[0];
                let found = (report.device, report.attempts);
                assert_eq!(found, (device, attempts), "{policy:?} {mishaps:?}");
                check(7, 1, &finished.outputs);
            }
            (Err(JobError::Failed { partition: 0, .. }), None) => {}
            _ => panic!("{policy:?} {mishaps:?}: {result:?}"),
        }
    }
}

#[test]
fn a_partition_at_fault_is_not_tried_again() {
    let setting = setting(2, OnDeviceError::Cpu);
    let scheduler = Scheduler::start(setting.options.clone()).unwrap();
    for phase in [Phase::Stage, Phase::Compute, Phase::Finish] {
        let part = Part::new(1, 0).with(Mishap::Input(phase));
        match one(&setting, &scheduler, part) {
            Err(JobError::Failed {
                attempts: 1,
                error: SumError::Input,
                ..
            }) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// GP-22: after ten failures everything is back, and a proof works.
#[test]
fn panics_and_faults_of_one_job_do_not_touch_another() {
    let setting = setting(1, OnDeviceError::Fail);
    let mut options = setting.options.clone();
    options.strikes_max = 100;
    let Place::Device(device) = options.devices[0].place.clone() else {
        unreachable!()
    };
    let scheduler = Scheduler::start(options).unwrap();
    for phase in [Phase::Stage, Phase::Compute, Phase::Finish] {
        for mishap in [
            Mishap::Panic(phase),
            Mishap::Device(phase),
            Mishap::Input(phase),
            Mishap::Wrong,
        ] {
            let submit = |part| {
                scheduler
                    .submit(&setting.sums, vec![part], JobOptions::default())
                    .unwrap()
            };
            let bad = submit(Part::new(1, 0).with(mishap));
            let good = submit(Part::new(2, 0));
            check(2, 1, &good.wait().unwrap().outputs);
            match (mishap, bad.wait()) {
                (
                    Mishap::Panic(_),
                    Err(JobError::Panicked {
                        phase: found, what, ..
                    }),
                ) => {
                    assert_eq!((found, what.as_str()), (phase, "as planned"));
                }
                (Mishap::Panic(_), other) => panic!("{other:?}"),
                (_, result) => assert!(matches!(result, Err(JobError::Failed { .. }))),
            }
        }
    }
    drop(scheduler);
    device.compute(|_| ()).unwrap();
    assert_eq!(device.budget().state().committed(), 0);
}

/// GP-09: one device of two is lost; the other goes on, and so does the process.
#[test]
fn a_lost_device_is_left_and_comes_back_only_when_it_answers() {
    let setting = setting(2, OnDeviceError::Retry);
    let scheduler = Scheduler::start(setting.options.clone()).unwrap();
    let finished = one(
        &setting,
        &scheduler,
        gpu_part(&[Mishap::Lose(Phase::Compute)]),
    )
    .unwrap();
    assert_eq!(finished.partitions[0].device, 1);
    assert_eq!(scheduler.quarantined(), [0]);
    for _ in 0..4 {
        let finished = one(&setting, &scheduler, Part::new(7, 0)).unwrap();
        assert_eq!(finished.partitions[0].device, 1);
    }
    assert!(!scheduler.reinstate(0), "a lost context does not come back");
    assert!(!scheduler.reinstate(9));
    setting.drivers[0].heal();
    assert_eq!(scheduler.quarantined(), [0]);
}

#[test]
fn a_device_that_fails_again_and_again_is_left() {
    let setting = setting(2, OnDeviceError::Retry);
    let mut options = setting.options.clone();
    options.workers_per_device = 1;
    let scheduler = Scheduler::start(options).unwrap();
    // Twice on the first device, then right on the second: proved wrong, once a job.
    for _ in 0..3 {
        one(&setting, &scheduler, gpu_part(&[Mishap::Wrong; 2])).unwrap();
    }
    assert_eq!(scheduler.quarantined(), [0]);
    let finished = one(&setting, &scheduler, Part::new(7, 0)).unwrap();
    assert_eq!(finished.partitions[0].device, 1);
    assert!(scheduler.reinstate(0));
    let finished = one(&setting, &scheduler, Part::new(7, 0)).unwrap();
    assert_eq!(finished.partitions[0].device, 0);
}

/// A damaged key makes wrong proofs on every device: no reason to leave any.
#[test]
fn results_that_are_wrong_everywhere_are_no_fault_of_a_device() {
    let setting = setting(2, OnDeviceError::Cpu);
    let scheduler = Scheduler::start(setting.options.clone()).unwrap();
    for _ in 0..5 {
        let part = Part {
            mishaps: vec![Some(Mishap::Wrong); 3],
            ..Part::new(7, 0)
        };
        let result = one(&setting, &scheduler, part);
        assert!(matches!(
            result,
            Err(JobError::Failed {
                attempts: 3,
                error: SumError::Wrong,
                ..
            })
        ));
    }
    assert_eq!(scheduler.quarantined(), [0_usize; 0]);
}

#[test]
fn memory_that_has_gone_is_waited_for() {
    let setting = setting(1, OnDeviceError::Fail);
    let scheduler = Scheduler::start(setting.options.clone()).unwrap();
    let part = gpu_part(&[Mishap::Memory(Phase::Stage), Mishap::Memory(Phase::Compute)]);
    let finished = one(&setting, &scheduler, part).unwrap();
    assert_eq!(finished.partitions[0].attempts, 1, "not a failure");
}

#[test]
fn memory_that_others_keep_is_given_up_after_the_patience() {
    let setting = setting(1, OnDeviceError::Cpu);
    let mut options = setting.options.clone();
    options.memory_patience = Duration::from_millis(40);
    let scheduler = Scheduler::start(options.clone()).unwrap();
    // Another process has the card.
    setting.drivers[0].set_tenants(1 << 20);
    let finished = one(&setting, &scheduler, Part::new(7, 0)).unwrap();
    assert_eq!(finished.partitions[0].device, 1, "the CPU did it");
    drop(scheduler);
    options.on_device_error = OnDeviceError::Retry;
    let scheduler = Scheduler::start(options).unwrap();
    let result = one(&setting, &scheduler, Part::new(7, 0));
    assert!(
        matches!(result, Err(JobError::OutOfMemory { .. })),
        "{result:?}"
    );
    setting.drivers[0].set_tenants(0);
    one(&setting, &scheduler, Part::new(7, 0)).unwrap();
}

/// What a partition needs is known when it is prepared, which happens once; waiting for it, it holds up nobody who has an
/// earlier place, and can be called off.
#[test]
fn waiting_for_memory_prepares_once_and_can_be_called_off() {
    let mut setting = setting(1, OnDeviceError::Retry);
    setting.options.memory_patience = Duration::from_secs(600);
    setting.options.host_limit.host = 3 << 10;
    let scheduler = Scheduler::start(setting.options.clone()).unwrap();
    let sums = Arc::clone(&setting.sums);
    setting.drivers[0].set_tenants(1 << 20);
    let mut late = gpu_part(&[]);
    late.is_late = true;
    late.host_bytes = 2 << 10;
    let submit = |part: Part, options| scheduler.submit(&sums, vec![part], options).unwrap();
    let job = submit(late.clone(), JobOptions::default());
    assert!(job.wait_for(Duration::from_millis(50)).is_none());
    assert_eq!(sums.prepared.load(Ordering::Relaxed), 1);
    // An urgent one has no host memory while that one waits, and lets it go first all the same.
    let options = JobOptions {
        priority: Priority::Urgent,
        ..JobOptions::default()
    };
    let urgent = submit(late.clone(), options);
    assert!(urgent.wait_for(Duration::from_millis(20)).is_none());
    setting.drivers[0].set_tenants(0);
    job.wait().unwrap();
    urgent.wait().unwrap();
    assert_eq!(sums.prepared.load(Ordering::Relaxed), 2);

    setting.drivers[0].set_tenants(1 << 20);
    let job = submit(late, JobOptions::default());
    assert!(job.wait_for(Duration::from_millis(20)).is_none());
    job.cancel();
    assert!(matches!(job.wait(), Err(JobError::Cancelled)));
    let held = scheduler.status().held;
    assert_eq!((held.host, held.device), (0, 0));
}

/// The slow phase asks whether to stop, so its worker comes back.
#[test]
fn a_watchdog_takes_the_partition_elsewhere() {
    for phase in [Phase::Stage, Phase::Compute, Phase::Finish] {
        let setting = setting(2, OnDeviceError::Retry);
        let mut options = setting.options.clone();
        let limit = Some(Duration::from_millis(50));
        options.watchdog = Watchdog {
            stage: limit,
            compute: limit,
            finish: limit,
        };
        let scheduler = Scheduler::start(options).unwrap();
        let part = gpu_part(&[Mishap::Slow(phase, Duration::from_secs(60))]);
        let finished = one(&setting, &scheduler, part).unwrap();
        let report = finished.partitions[0];
        assert_eq!((report.device, report.attempts), (1, 2), "{phase}");
        assert_eq!(scheduler.quarantined(), [0]);
    }
}

#[test]
fn a_watchdog_with_nowhere_to_go_fails_the_job() {
    let setting = setting(1, OnDeviceError::Retry);
    let mut options = setting.options.clone();
    options.watchdog.compute = Some(Duration::from_millis(20));
    let scheduler = Scheduler::start(options).unwrap();
    let part = gpu_part(&[Mishap::Slow(Phase::Compute, Duration::from_secs(60))]);
    match one(&setting, &scheduler, part) {
        Err(JobError::TimedOut {
            phase: Phase::Compute,
            attempts: 1,
            ..
        }) => {}
        other => panic!("{other:?}"),
    }
}
