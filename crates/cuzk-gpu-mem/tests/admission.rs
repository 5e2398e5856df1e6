//! Who may stage how much, beside whom: plans, promises, admission.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{RESERVE, card16, gib, open, open_with, out_of_memory};
use cuzk_gpu_mem::driver::{Code, Driver, SimDriver};
use cuzk_gpu_mem::{Device, Error, GIB, MIB, StagingRequest, Tier, TrimPolicy};

const ROWS: [StagingRequest; 2] = [
    StagingRequest {
        label: "d_a",
        bytes: 2 * GIB,
    },
    StagingRequest {
        label: "d_b",
        bytes: 2 * GIB,
    },
];

/// One partition: admit, stage what the tier allows, compute with the rest.
fn job(device: &Device, computing: &AtomicU64) -> Tier {
    let upload = device.stream("upload").unwrap();
    let mut admission = device
        .admit("rows", &ROWS, 8 * GIB, Duration::from_secs(30))
        .unwrap();
    let tier = admission.plan().tier();
    let d_a = admission.stage::<u64>("d_a", gib(2), &upload).unwrap();
    let d_b = admission.stage::<u64>("d_b", gib(2), &upload).unwrap();
    device
        .compute_admitted(admission, None, |cx| -> cuzk_gpu_mem::Result<()> {
            assert_eq!(
                computing.fetch_add(1, Ordering::SeqCst),
                0,
                "one section at a time"
            );
            let mut rows = Vec::new();
            for (label, staged) in [("d_a", d_a), ("d_b", d_b)] {
                rows.push(match staged {
                    Some(staged) => cx.enter(staged)?,
                    None => cx.alloc(label, gib(2))?,
                });
            }
            let _scratch = cx.alloc::<u64>("scratch", gib(8))?;
            std::thread::sleep(Duration::from_millis(2));
            computing.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        })
        .unwrap()
        .unwrap();
    tier
}

/// A stream takes so much work that has not begun, and whoever gives it more waits in the driver: also who wipes and frees a
/// block there. Others plan meanwhile as if he were done.
#[test]
fn who_waits_to_free_a_block_takes_nothing_from_the_plans_of_others() {
    let driver = Arc::new(SimDriver::new(16 * MIB));
    let device = open(&driver);
    driver.set_queue_limit(2);
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|threads| {
        let section = threads.spawn(|| {
            device.compute(|cx| {
                let mut scratch = cx.alloc::<u64>("scratch", 6 << 17).unwrap();
                scratch.mark_secret();
                driver.hold(cx.stream().id());
                for _ in 0..2 {
                    cx.stream().enqueue(|| ()).unwrap();
                }
                sender.send(cx.stream().id()).unwrap();
                drop(scratch);
            })
        });
        let stream = receiver.recv().unwrap();
        while device.budget().state().pending == 0 {
            assert!(!section.is_finished(), "it waits");
            std::thread::yield_now();
        }
        assert_eq!(device.room().unwrap(), 16 * MIB);
        driver.release(stream);
        section.join().unwrap().unwrap();
    });
    assert_eq!(device.room().unwrap(), 16 * MIB);
}

/// Two devices over one driver, as a program may open them: what one holds is no room of the other.
#[test]
fn devices_that_share_a_driver_see_each_other() {
    let driver = card16();
    let [one, other] = [(); 2].map(|()| open(&driver));
    let stream = one.stream("main").unwrap();
    let block = one.alloc::<u64>("key", gib(6), &stream).unwrap();
    assert_eq!(other.room().unwrap(), 10 * GIB);
    assert_eq!(one.room().unwrap(), 10 * GIB);
    drop(block);
    one.trim(TrimPolicy::Streams).unwrap();
    assert_eq!(other.room().unwrap(), 16 * GIB);
}

/// (b) Two workers, each wanting 4 + 8 GiB on 16: the sum never exceeds, both finish.
#[test]
fn two_workers_that_want_24_gib_share_16() {
    let driver = card16();
    let device = open_with(&driver, |_| ());
    driver.set_release_threshold(u64::MAX).unwrap();
    let computing = AtomicU64::new(0);
    let tiers: Vec<Vec<Tier>> = std::thread::scope(|scope| {
        let workers = [(); 2].map(|()| {
            scope.spawn(|| {
                (0..20)
                    .map(|_| job(&device, &computing))
                    .collect::<Vec<_>>()
            })
        });
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    });
    assert_eq!(tiers.iter().map(Vec::len).collect::<Vec<_>>(), [20, 20]);
    let state = device.budget().state();
    assert_eq!(state.held(), 0);
    assert!(state.peak_committed <= 16 * GIB - RESERVE, "{state:?}");
    assert!(
        driver.peak_bytes() <= 16 * GIB - RESERVE,
        "{}",
        driver.peak_bytes()
    );
    // Whoever was first had the card to itself.
    assert!(tiers.iter().flatten().any(|tier| *tier == Tier::All));
}

/// (b) The tier that a turn allows, step by step.
#[test]
fn beside_a_computing_worker_only_the_first_buffer_is_staged() {
    let driver = card16();
    let device = open_with(&driver, |_| ());
    let upload = device.stream("upload").unwrap();
    let mut first = device
        .admit("first", &ROWS, 8 * GIB, Duration::ZERO)
        .unwrap();
    assert_eq!(first.plan().tier(), Tier::All);
    let d_a = first.stage::<u64>("d_a", gib(2), &upload).unwrap().unwrap();
    let d_b = first.stage::<u64>("d_b", gib(2), &upload).unwrap().unwrap();

    // Staged and not computing: 4 + 12 would exceed 15.5, were the second to compute first.
    let report = out_of_memory(device.admit("second", &ROWS, 8 * GIB, Duration::ZERO));
    assert_eq!((report.requested, report.free), (12 * GIB, 12 * GIB));

    device
        .compute_admitted(first, None, |cx| {
            let _rows = (cx.enter(d_a).unwrap(), cx.enter(d_b).unwrap());
            let _scratch = cx.alloc::<u64>("scratch", gib(8)).unwrap();
            // The first holds 12 and will be gone: 3.5 are left to stage beside it.
            let second = device
                .admit("second", &ROWS, 8 * GIB, Duration::ZERO)
                .unwrap();
            assert_eq!(second.plan().tier(), Tier::Prefix(1));
            assert_eq!(second.plan().usable(), 3 * GIB + 512 * MIB);
            assert_eq!(device.budget().state().committed(), 14 * GIB);
        })
        .unwrap();
    assert_eq!(device.budget().state().committed(), 0);
}

/// A promise stands until it is kept: a failure in between may be tried again, a second use not.
#[test]
fn a_promise_is_kept_once() {
    let driver = card16();
    let device = open(&driver);
    let upload = device.stream("upload").unwrap();
    let twins = [
        ROWS[0],
        StagingRequest {
            label: "twin",
            bytes: GIB,
        },
        StagingRequest {
            label: "twin",
            bytes: 2 * GIB,
        },
        ROWS[0],
    ];
    let mut admission = device.admit("job", &twins, GIB, Duration::MAX).unwrap();
    let promised = |device: &Device| device.budget().state().promised;
    assert_eq!(promised(&device), 7 * GIB);
    driver.fail_call("cuMemAllocFromPoolAsync", 1, Code::OPERATING_SYSTEM);
    let failed = admission.stage::<u64>("twin", gib(2), &upload);
    assert!(matches!(failed, Err(Error::Driver { .. })));
    assert_eq!(promised(&device), 7 * GIB);
    let mut staged = Vec::new();
    for (label, len, left) in [
        ("twin", gib(2), 5),
        ("twin", gib(1), 4),
        ("d_a", gib(2), 2),
        ("d_a", gib(2), 0),
    ] {
        staged.push(
            admission
                .stage::<u64>(label, len, &upload)
                .unwrap()
                .unwrap(),
        );
        assert_eq!(promised(&device), left * GIB);
    }
    for (label, len, expected) in [
        ("d_a", gib(2), "staged already"),
        ("d_a", gib(3), "another size"),
        ("d_c", gib(2), "not among"),
    ] {
        let refused = admission.stage::<u64>(label, len, &upload);
        assert!(
            matches!(refused, Err(Error::NotPromised { reason, .. }) if reason.contains(expected))
        );
    }
    drop((admission, staged));
    device.trim(TrimPolicy::Device).unwrap();
    assert_eq!(device.budget().state().committed(), 0);
}

/// One of two requests of a label is staged, the other not: the first call has it, the second none.
#[test]
fn of_two_requests_with_one_label_one_may_be_staged() {
    let device = open(&card16());
    let upload = device.stream("upload").unwrap();
    let _claim = device
        .admit("other", &[], 13 * GIB, Duration::ZERO)
        .unwrap();
    let twins = [ROWS[0]; 2];
    let mut admission = device.admit("job", &twins, GIB, Duration::MAX).unwrap();
    assert_eq!(admission.plan().tier(), Tier::Prefix(1));
    let mut stage = || admission.stage::<u64>("d_a", gib(2), &upload).unwrap();
    assert!(stage().is_some());
    assert!(stage().is_none());
}

#[test]
fn a_job_that_can_never_fit_is_refused_with_its_size() {
    let device = open_with(&card16(), |_| ());
    let report = out_of_memory(device.admit("huge", &ROWS, 12 * GIB, Duration::ZERO));
    assert_eq!((report.label, report.requested), ("huge", 16 * GIB));
    let endless = [StagingRequest {
        label: "x",
        bytes: u64::MAX,
    }; 2];
    out_of_memory(device.admit("endless", &endless, u64::MAX, Duration::ZERO));
}

/// Other programs take memory between the plan and the allocation.
#[test]
fn other_tenants_are_tolerated() {
    let driver = card16();
    let device = open_with(&driver, |settings| settings.wait_for_memory = Duration::MAX);
    let stream = device.stream("main").unwrap();
    driver.set_tenants(10 * GIB);
    assert_eq!(device.usable().unwrap(), 6 * GIB - RESERVE);
    let tiers = device
        .admit("rows", &ROWS, GIB, Duration::ZERO)
        .unwrap()
        .plan()
        .tier();
    assert_eq!(tiers, Tier::All);
    // They leave while we ask.
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            device
                .alloc::<u64>("late", gib(12), &stream)
                .unwrap()
                .bytes()
        });
        std::thread::sleep(Duration::from_millis(30));
        driver.set_tenants(0);
        assert_eq!(asking.join().unwrap(), 12 * GIB);
    });
}

/// A MIG slice of a big card is a small device; plans follow the figures, not the name. (GP-42)
#[test]
fn a_small_slice_of_a_big_card_plans_as_a_small_device() {
    let mut info = cuzk_gpu_mem::DeviceInfo::simulated(10 * GIB);
    info.name = "NVIDIA H200 MIG 1g.18gb".to_owned();
    info.multiprocessors = 14;
    let device = open_with(&Arc::new(SimDriver::with_info(info, true)), |_| ());
    assert_eq!(device.usable().unwrap(), 10 * GIB - RESERVE);
    assert_eq!(device.info().multiprocessors, 14);
    out_of_memory(device.admit("rows", &ROWS, 8 * GIB, Duration::ZERO));
    assert_eq!(
        device
            .admit("rows", &ROWS, 5 * GIB, Duration::ZERO)
            .unwrap()
            .plan()
            .tier(),
        Tier::All
    );
}

/// The device's figures must not be older than the ledger's: a plan made of both would count bytes
/// twice that another worker has allocated in between. Met on a card with a ballast.
#[test]
fn figures_that_arrive_late_do_not_admit_too_much() {
    let driver = Arc::new(SimDriver::new(64 * GIB));
    driver.set_tenants(48 * GIB);
    let device = open_with(&driver, |settings| settings.limit = Some(16 * GIB));
    let upload = device.stream("upload").unwrap();
    let admitted = std::sync::Mutex::new(Vec::new());
    let work = |label| {
        if let Ok(mut admission) = device.admit(label, &ROWS, 8 * GIB, Duration::ZERO) {
            for request in ROWS {
                let staged = admission
                    .stage::<u64>(request.label, gib(2), &upload)
                    .unwrap();
                admitted.lock().unwrap().push(staged);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    driver.set_info_latency(Duration::from_millis(100));
    std::thread::scope(|scope| {
        scope.spawn(|| work("late"));
        std::thread::sleep(Duration::from_millis(30));
        driver.set_info_latency(Duration::ZERO);
        scope.spawn(|| work("quick"));
    });
    let peak = device.budget().state().peak_committed;
    assert!(peak <= 16 * GIB - RESERVE, "{peak}");
    assert_eq!(
        admitted.into_inner().unwrap().len(),
        2,
        "one of the two is admitted"
    );
}
