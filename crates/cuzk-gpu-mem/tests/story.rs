//! The story that kills provers, told on an emulated 16 GiB card.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{RESERVE, assert_empty, card16, gib, open, open_with, out_of_memory};
use cuzk_gpu_mem::driver::sim::Completion;
use cuzk_gpu_mem::driver::{AllocKind, Code, Driver, SimDriver};
use cuzk_gpu_mem::{Device, Error, GIB, MIB, StagingRequest, Tier, TrimPolicy};

/// (a) A free of 6 GiB that the host has not seen complete makes a plain 12 GiB fail on 16 GiB.
#[test]
fn a_pending_free_starves_the_raw_allocator_and_not_ours() {
    let driver = card16();
    let device = open(&driver);
    let stream = device.stream("main").unwrap();
    let first = device.alloc::<u64>("first", gib(6), &stream).unwrap();
    drop(first);

    let info = device.mem_info().unwrap();
    assert_eq!(
        (info.free, info.pool_reserved, info.pool_used),
        (10 * GIB, 6 * GIB, 0)
    );
    // SAFETY: the stream is live; the call fails.
    let raw = unsafe { driver.alloc(AllocKind::Synchronous, 12 * GIB, stream.id()) };
    assert_eq!(raw.unwrap_err().code, Code::OUT_OF_MEMORY);

    let ours = device
        .alloc_with::<u64>("second", gib(12), AllocKind::Synchronous, &stream)
        .unwrap();
    let info = device.mem_info().unwrap();
    assert_eq!(info.obtainable(), 4 * GIB);
    assert_eq!(device.budget().state().held(), 12 * GIB);
    drop((ours, stream, device));
    assert_empty(&driver);
}

/// (a) An older driver keeps completed frees too; the plan counts `reserved - used` as usable.
#[test]
fn a_hoarding_pool_starves_the_raw_allocator_and_not_ours() {
    let driver = Arc::new(SimDriver::hoarding(16 * GIB));
    let device = open(&driver);
    let stream = device.stream("main").unwrap();
    drop(device.alloc::<u64>("first", gib(10), &stream).unwrap());
    stream.synchronize().unwrap();

    let info = device.mem_info().unwrap();
    assert_eq!((info.free, info.cached()), (6 * GIB, 10 * GIB));
    assert_eq!(device.usable().unwrap(), 16 * GIB);
    // SAFETY: the stream is live; the call fails.
    let raw = unsafe { driver.alloc(AllocKind::Synchronous, 12 * GIB, stream.id()) };
    assert_eq!(raw.unwrap_err().code, Code::OUT_OF_MEMORY);

    device
        .alloc_with::<u64>("second", gib(12), AllocKind::Synchronous, &stream)
        .unwrap();
}

/// (a) The free is behind a kernel that still runs: we wait for it, and only for it.
#[test]
fn a_free_behind_running_work_is_waited_for() {
    let driver = card16();
    let device = open(&driver);
    let stream = device.stream("busy").unwrap();
    let first = device.alloc::<u64>("first", gib(6), &stream).unwrap();
    driver.hold(stream.id());
    stream.enqueue(|| {}).unwrap();
    drop(first);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            device
                .alloc_with::<u64>("second", gib(12), AllocKind::Synchronous, &stream)
                .unwrap()
        });
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waiter.is_finished());
        assert_eq!(device.budget().state().pending, 6 * GIB);
        driver.release(stream.id());
        assert_eq!(waiter.join().unwrap().bytes(), 12 * GIB);
    });
}

#[test]
fn out_of_memory_says_what_there_is_and_who_has_the_rest() {
    let driver = card16();
    let device = open_with(&driver, |_| ());
    let stream = device.stream("main").unwrap();
    let _key = device.alloc::<u64>("key", gib(9), &stream).unwrap();
    let _rows = device.alloc::<u64>("rows", gib(2), &stream).unwrap();
    let report = out_of_memory(device.alloc::<u64>("scratch", gib(5), &stream));
    assert_eq!(report.requested, 5 * GIB);
    assert_eq!(report.free, 5 * GIB);
    assert_eq!(report.cached, 0);
    assert_eq!(report.limit, 16 * GIB - RESERVE);
    assert_eq!(report.reserved_by, [("key", 9 * GIB), ("rows", 2 * GIB)]);
    assert_eq!(
        Error::OutOfMemory(Box::new(report)).to_string(),
        "out of device memory on device 0: 5 GiB wanted for scratch; 5 GiB free, 0 B cached in the \
         pool, 0 B pending, limit 15.50 GiB; reserved by key 9 GiB, rows 2 GiB"
    );
}

#[test]
fn the_vram_limit_holds_although_the_card_has_more() {
    let driver = Arc::new(SimDriver::new(80 * GIB));
    let device = open_with(&driver, |settings| settings.limit = Some(16 * GIB));
    let stream = device.stream("main").unwrap();
    let _first = device.alloc::<u64>("first", gib(10), &stream).unwrap();
    assert_eq!(device.usable().unwrap(), 6 * GIB);
    assert_eq!(
        out_of_memory(device.alloc::<u64>("second", gib(7), &stream)).limit,
        16 * GIB
    );
}

#[test]
fn trimming_goes_as_far_as_its_policy_and_says_so() {
    let driver = Arc::new(SimDriver::hoarding(16 * GIB));
    let device = open(&driver);
    driver.set_completion(Completion::Lazy);
    let stream = device.stream("main").unwrap();
    drop(device.alloc::<u64>("first", gib(4), &stream).unwrap());

    let report = device.trim(TrimPolicy::Never).unwrap();
    assert_eq!((report.released, report.still_pending), (0, 1));
    let report = device.trim(TrimPolicy::Completed).unwrap();
    assert_eq!(
        (report.released, report.still_pending, report.after.cached()),
        (0, 1, 4 * GIB)
    );
    let report = device.trim(TrimPolicy::Streams).unwrap();
    assert_eq!((report.released, report.still_pending), (4 * GIB, 0));
    assert_eq!(report.applied, TrimPolicy::Streams);
    assert_eq!(report.after.free, 16 * GIB);

    // Somebody else computes: no more than Completed, whatever is asked.
    let (inside, go) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            device.compute(|_| {
                inside.wait();
                go.wait();
            })
        });
        inside.wait();
        drop(device.alloc::<u64>("second", gib(4), &stream).unwrap());
        let report = device.trim(TrimPolicy::Device).unwrap();
        assert_eq!(
            (report.applied, report.still_pending),
            (TrimPolicy::Completed, 1)
        );
        go.wait();
    });
}

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

/// A section inside a section would wait for itself; it is told instead. (GP-18)
#[test]
fn nested_sections_are_refused_not_deadlocked() {
    let device = open(&card16());
    let stream = device.stream("main").unwrap();
    let staged = device.stage::<u64>("d_a", 8, &stream).unwrap();
    device
        .compute(|cx| {
            assert!(matches!(
                device.compute(|_| ()),
                Err(Error::InsideCompute { .. })
            ));
            assert!(matches!(
                device.alloc::<u64>("scratch", 8, &stream),
                Err(Error::InsideCompute { .. })
            ));
            assert!(matches!(
                device.stage::<u64>("late", 8, &stream),
                Err(Error::InsideCompute { .. })
            ));
            cx.enter(staged).unwrap();
            cx.alloc_resident::<u64>("table", 8).unwrap()
        })
        .unwrap();
    device.compute(|_| ()).unwrap();
}

/// What a section panics out of is freed, and the permit with it.
#[test]
fn a_panicking_section_frees_and_lets_go() {
    let driver = card16();
    let device = open(&driver);
    driver.set_completion(Completion::Lazy);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        device.compute(|cx| {
            let _scratch = cx.alloc::<u64>("scratch", gib(8)).unwrap();
            panic!("a bug of ours");
        })
    }));
    assert!(result.is_err());
    assert_eq!(device.budget().state().held(), 0);
    device
        .compute(|cx| drop(cx.alloc::<u64>("scratch", gib(16)).unwrap()))
        .unwrap();
}

/// (c) at run time: when a section returns, its memory is back, also under delayed completion.
#[test]
fn a_section_leaves_nothing_behind() {
    let driver = card16();
    let device = open(&driver);
    driver.set_completion(Completion::Lazy);
    let upload = device.stream("upload").unwrap();
    for round in 0..3_u64 {
        let mut staged = device.stage::<u64>("d_a", 1000, &upload).unwrap();
        staged.mark_secret();
        let rows: Vec<u64> = (0..1000).map(|i| i * round).collect();
        let pinned = device.host().pinned_from("d_a", &rows).unwrap();
        drop(staged.upload(0, pinned).unwrap());
        let sum: u64 = device
            .compute(|cx| {
                let d_a = cx.enter(staged).unwrap();
                let mut twice = cx.alloc_zeroed::<u64>("twice", 1000).unwrap();
                cx.stream().copy(&d_a, &mut twice).unwrap();
                let mut host = vec![0; 1000];
                cx.stream().download_slice(&twice, &mut host).unwrap();
                host.iter().sum()
            })
            .unwrap();
        assert_eq!(sum, round * 999 * 1000 / 2);
        let state = device.budget().state();
        assert_eq!((state.held(), state.pending, state.committed()), (0, 0, 0));
    }
}

/// (g) Handles of one device are dropped in every order, on several threads. (GP-25)
#[test]
fn drops_in_any_order_on_any_thread() {
    type Part = Box<dyn Send>;
    for order in permutations(5) {
        let driver = card16();
        let device = open(&driver);
        driver.set_completion(Completion::Lazy);
        let stream = device.stream("main").unwrap();
        let mut buffer = device.alloc::<u64>("key", 64, &stream).unwrap();
        buffer.mark_secret();
        let pinned = device.host().pinned_from("key", &[7_u64; 64]).unwrap();
        let transfer = stream.upload(pinned, &mut buffer).unwrap();
        let event = stream.record_timed().unwrap();
        let mut parts: Vec<Option<Part>> = vec![
            Some(Box::new(device) as Part),
            Some(Box::new(stream)),
            Some(Box::new(buffer)),
            Some(Box::new(transfer)),
            Some(Box::new(event)),
        ];
        for index in order {
            let part = parts[index].take();
            std::thread::spawn(move || drop(part)).join().unwrap();
        }
        assert_empty(&driver);
    }
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![vec![]];
    }
    let shorter = permutations(count - 1);
    let insert = |order: &Vec<usize>, at: usize| {
        let mut order = order.clone();
        order.insert(at, count - 1);
        order
    };
    shorter
        .iter()
        .flat_map(|order| (0..count).map(move |at| insert(order, at)))
        .collect()
}

/// Memory stays flat over many cycles of both allocators. (GP-07, GP-36)
#[test]
fn a_thousand_cycles_leave_memory_flat() {
    let driver = Arc::new(SimDriver::hoarding(16 * GIB));
    let device = open(&driver);
    let stream = device.stream("main").unwrap();
    let mut counts = None;
    for cycle in 0..1000 {
        let planned = (device.usable().unwrap() / 8 * 9 / 10) as usize;
        let kind = [AllocKind::StreamOrdered, AllocKind::Synchronous][cycle % 2];
        drop(
            device
                .alloc_with::<u64>("ninety percent", planned, kind, &stream)
                .unwrap(),
        );
        assert_eq!(
            device.trim(TrimPolicy::Streams).unwrap().after.free,
            16 * GIB,
            "cycle {cycle}"
        );
        assert_eq!(
            *counts.get_or_insert(driver.counts()),
            driver.counts(),
            "cycle {cycle}"
        );
    }
}

/// An error in one device's worker leaves the other device, and the process, working. (GP-09)
#[test]
fn a_device_that_fails_does_not_take_the_other_along() {
    let (good, bad) = (card16(), card16());
    let devices = [open(&good), open(&bad)];
    bad.lose(Code::LAUNCH_FAILED);
    let outcomes: Vec<bool> = std::thread::scope(|scope| {
        let workers = devices.each_ref().map(|device| {
            scope.spawn(|| {
                device
                    .compute(|cx| cx.alloc::<u64>("scratch", 8).map(|scratch| scratch.len()))
                    .is_ok_and(|inner| inner.is_ok())
            })
        });
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    });
    assert_eq!(outcomes, [true, false]);
    drop(devices);
    assert_empty(&good);
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
