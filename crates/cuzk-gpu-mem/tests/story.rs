//! The story that kills provers, told on an emulated 16 GiB card.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{RESERVE, assert_empty, card16, gib, open, open_with, out_of_memory};
use cuzk_gpu_mem::driver::sim::Completion;
use cuzk_gpu_mem::driver::{AllocKind, Code, Driver, SimDriver};
use cuzk_gpu_mem::{Error, GIB, TrimPolicy};

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
