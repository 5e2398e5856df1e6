//! Failures at every place: nothing leaks, the ledger stays exact, the next job works.

mod common;

use std::sync::Arc;

use common::{assert_empty, card16, gib, open, out_of_memory};
use cuzk_gpu_mem::driver::sim::Completion;
use cuzk_gpu_mem::driver::{AllocKind, Code, Driver, SimDriver};
use cuzk_gpu_mem::{Device, Error, GIB, HostMemory, MIB, Result, Settings, TrimPolicy};

/// A job that uses everything: both allocators, pinned and registered transfers in both
/// directions, scopes, events, a compute section, secrets, trimming.
fn job(device: &Device) -> Result<u64> {
    let upload = device.stream("upload")?;
    let mut key = device.alloc_with::<u64>("key", 512, AllocKind::Synchronous, &upload)?;
    let rows: Vec<u64> = (0..4096).collect();
    device.host().scope(|scope| {
        let registered = scope.register(&rows);
        upload.scope(|scope| scope.upload(&registered[..512], &mut key))
    })??;
    let mut staged = device.stage::<u64>("d_a", 4096, &upload)?;
    staged.mark_secret();
    let mut pinned = device.host().pinned_from("d_a", &rows)?;
    pinned.mark_secret();
    let transfer = staged.upload(0, pinned)?;
    let sum = device.compute(|cx| -> Result<u64> {
        let d_a = cx.enter(staged)?;
        let mut scratch = cx.alloc_zeroed::<u64>("scratch", 4096)?;
        cx.stream().copy(&d_a, &mut scratch)?;
        cx.stream().copy(&key, scratch.view_mut().slice(..512))?;
        let target = device.host().pinned("sums", 4096)?;
        let sums = cx.stream().download(&scratch, target)?.wait()?;
        Ok(sums.iter().sum())
    })??;
    transfer.wait()?;
    device.trim(TrimPolicy::Streams)?;
    Ok(sum)
}

const SUM: u64 = 4095 * 4096 / 2;

/// What must be the same before and after a job that failed. Failures of drops are reported once
/// and repaired by whoever reclaims next.
fn assert_clean(driver: &SimDriver, device: &Device, what: &str) {
    driver.heal();
    while let Err(error) = device.check() {
        assert!(matches!(error, Error::Deferred { .. }), "{what}: {error}");
    }
    // A stream that is busy, or a free that failed, is settled by the next trim.
    device.trim(TrimPolicy::Device).unwrap();
    let state = device.budget().state();
    assert_eq!(
        (state.held(), state.pending, state.committed()),
        (0, 0, 0),
        "{what}"
    );
    assert_eq!(device.budget().holders(), [], "{what}");
    assert_eq!(driver.counts().blocks, 0, "{what}");
    let info = driver.mem_info().unwrap();
    assert_eq!((info.free, info.pool_reserved), (16 * GIB, 0), "{what}");
    assert_eq!(device.host().pinned_use().in_use, 0, "{what}");
}

/// (e) Each driver call in turn fails, eagerly and lazily completing. (GP-04, GP-22)
#[test]
fn failure_at_every_call_leaks_nothing() {
    for completion in [Completion::Eager, Completion::Lazy] {
        let driver = card16();
        let device = open(&driver);
        driver.set_completion(completion);
        let before = driver.calls();
        assert_eq!(job(&device).unwrap(), SUM);
        let calls = driver.calls() - before;
        assert!(calls > 30, "{calls}");
        for code in [Code::OUT_OF_MEMORY, Code::OPERATING_SYSTEM] {
            for nth in 1..=calls {
                let what = format!("{completion:?}, call {nth} of {calls} fails with {code}");
                driver.fail_nth(nth, code);
                match job(&device) {
                    // A failure in a drop or in a registration is survived.
                    Ok(sum) => assert_eq!(sum, SUM, "{what}"),
                    Err(Error::Driver { error, .. } | Error::Deferred { first: error, .. }) => {
                        assert_eq!(error.code, code, "{what}")
                    }
                    Err(Error::OutOfMemory(_)) => assert_eq!(code, Code::OUT_OF_MEMORY, "{what}"),
                    Err(other) => panic!("{what}: {other}"),
                }
                assert_clean(&driver, &device, &what);
                assert_eq!(job(&device).unwrap(), SUM, "{what}, and the next job");
                assert_clean(&driver, &device, &what);
            }
        }
        drop(device);
        assert_empty(&driver);
    }
}

/// (e) Every n-th call fails, for as long as the job lasts.
#[test]
fn failure_of_every_nth_call_leaks_nothing() {
    for every in 1..40 {
        let driver = card16();
        let device = open(&driver);
        driver.fail_every(every, Code::OPERATING_SYSTEM);
        for _ in 0..5 {
            let _ = job(&device);
        }
        if let Err(Error::DeviceLost { .. }) = device.check() {
            // A device that answers no question at all is given up.
            assert!(every <= 2, "{every}");
            continue;
        }
        assert_clean(&driver, &device, &format!("every {every}th call fails"));
        assert_eq!(job(&device).unwrap(), SUM);
    }
}

/// A lost context is a state; what it held is off the books; a new device works.
#[test]
fn a_lost_context_is_said_by_every_call_until_reopened() {
    let driver = card16();
    let device = open(&driver);
    let stream = device.stream("main").unwrap();
    let mut buffer = device.alloc::<u64>("key", 1000, &stream).unwrap();
    let transfer = stream
        .upload(device.host().pinned("key", 1000).unwrap(), &mut buffer)
        .unwrap();
    let staged = device.stage::<u64>("d_a", 10, &stream).unwrap();
    drop(device.alloc::<u64>("retired", 10, &stream).unwrap());
    driver.lose(Code::ILLEGAL_ADDRESS);

    let error = stream.synchronize().unwrap_err();
    assert!(matches!(
        &error,
        Error::DeviceLost { device: 0, cause } if cause.code == Code::ILLEGAL_ADDRESS
    ));
    assert_eq!(
        error.to_string(),
        "device 0 is lost since \"cuStreamSynchronize: CUDA error 700 (ILLEGAL_ADDRESS): a kernel \
         touched an illegal address\"; this process cannot use it any \
         more: go on without it or start anew, and check the system log (dmesg, Xid) if this repeats"
    );
    let lost = |outcome: bool| assert!(outcome);
    lost(matches!(device.check(), Err(Error::DeviceLost { .. })));
    lost(matches!(
        device.alloc::<u64>("x", 1, &stream),
        Err(Error::DeviceLost { .. })
    ));
    lost(matches!(device.mem_info(), Err(Error::DeviceLost { .. })));
    lost(matches!(device.usable(), Err(Error::DeviceLost { .. })));
    lost(matches!(
        device.trim(TrimPolicy::Completed),
        Err(Error::DeviceLost { .. })
    ));
    lost(matches!(
        device.compute(|cx| cx.enter(staged).is_ok()),
        Err(Error::DeviceLost { .. })
    ));
    lost(matches!(transfer.wait(), Err(Error::DeviceLost { .. })));
    drop(buffer);
    assert_eq!(device.budget().state().held(), 0);
    drop((stream, device));

    let fresh = card16();
    assert_eq!(job(&open(&fresh)).unwrap(), SUM);
}

/// A failing drop says so on the next call, once, and its memory comes back.
#[test]
fn a_failing_drop_surfaces_on_the_next_call() {
    let driver = card16();
    let device = open(&driver);
    let stream = device.stream("main").unwrap();
    let buffer = device.alloc::<u64>("key", gib(1), &stream).unwrap();
    driver.fail_call("cuMemFreeAsync", 1, Code::OPERATING_SYSTEM);
    drop(buffer);
    assert_eq!(device.budget().state().held(), GIB);
    let error = device.check().unwrap_err();
    assert!(matches!(
        error,
        Error::Deferred { first, count: 1, .. } if first.call == "cuMemFreeAsync"
    ));
    device.check().unwrap();
    device.trim(TrimPolicy::Streams).unwrap();
    assert_eq!(device.budget().state().held(), 0);
    assert_eq!(driver.mem_info().unwrap().free, 16 * GIB);
}

/// Ten jobs fail in the middle, the eleventh works in the same memory. (GP-22)
#[test]
fn after_ten_failures_a_job_works_in_the_same_memory() {
    let driver = card16();
    let device = open(&driver);
    for nth in 0..10 {
        driver.fail_nth(20 + nth, Code::OUT_OF_MEMORY);
        let _ = job(&device);
        assert_clean(&driver, &device, "after a failure");
    }
    assert_eq!(job(&device).unwrap(), SUM);
}

/// A card too full for the plan refuses; the next job after room is made works. (WP-07)
#[test]
fn a_full_card_refuses_and_then_works() {
    let driver = card16();
    let device = open(&driver);
    let stream = device.stream("main").unwrap();
    for _ in 0..20 {
        driver.set_tenants(16 * GIB - (16 << 10));
        let report = out_of_memory(job(&device).map(|_| ()));
        assert!(report.requested > report.free, "{report:?}");
        driver.set_tenants(0);
        assert_eq!(job(&device).unwrap(), SUM);
    }
    drop(stream);
}

/// A stream that is merely busy is waited for, however often waiting fails.
#[test]
fn a_busy_stream_is_not_given_up() {
    let driver = card16();
    let device = open(&driver);
    let stream = device.stream("busy").unwrap();
    let mut buffer = device.alloc::<u64>("key", 8, &stream).unwrap();
    driver.hold(stream.id());
    for _ in 0..1500 {
        driver.fail_call("cuStreamSynchronize", 1, Code::OPERATING_SYSTEM);
    }
    std::thread::scope(|threads| {
        threads.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(300));
            driver.release(stream.id());
        });
        let waited = stream.upload_slice(&[1; 8], &mut buffer);
        assert!(matches!(waited, Err(Error::Driver { .. })), "{waited:?}");
        assert!(stream.is_idle().unwrap());
    });
    device.check().unwrap();
}

/// Host work that panics on the device's behalf is a failed kernel, not an abort.
#[test]
fn a_panicking_emulated_kernel_is_a_lost_context() {
    let driver = card16();
    let device = open(&driver);
    let stream = device.stream("main").unwrap();
    stream.enqueue(|| panic!("a kernel's bug")).unwrap();
    assert!(matches!(
        stream.synchronize(),
        Err(Error::DeviceLost { cause, .. }) if cause.code == Code::LAUNCH_FAILED
    ));
}

/// A child of a process that opened a device is told so, and does not touch it. (GP-06)
#[cfg(unix)]
#[test]
fn a_forked_child_is_refused() {
    let driver = card16();
    let device = open(&driver);
    let stream = device.stream("main").unwrap();
    let mut buffer = device.alloc::<u64>("key", 8, &stream).unwrap();
    let event = stream.record_timed().unwrap();
    let pinned = device.host().pinned::<u64>("key", 8).unwrap();
    let transfer = stream.upload(pinned, &mut buffer).unwrap();
    let calls = driver.calls();
    // SAFETY: the child calls nothing that could wait for a lock of a thread that is not there: it
    // checks, drops, and leaves with _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = matches!(device.check(), Err(Error::Forked { .. }))
            && matches!(stream.synchronize(), Err(Error::Forked { .. }))
            && matches!(event.is_reached(), Err(Error::Forked { .. }))
            && matches!(event.wait(), Err(Error::Forked { .. }))
            && matches!(event.since(&event), Err(Error::Forked { .. }))
            && matches!(transfer.is_done(), Err(Error::Forked { .. }))
            && matches!(transfer.wait(), Err(Error::Forked { .. }))
            && matches!(
                device.host().pinned::<u64>("key", 8),
                Err(Error::Forked { .. })
            )
            && device.host().pinned_use().limit > 0
            && device.host().trim_pinned() < MIB;
        drop((buffer, event, stream, device));
        let refused = refused && driver.calls() == calls;
        // SAFETY: leaves the child without running the parent's handlers.
        unsafe { libc::_exit(if refused { 17 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(libc::WEXITSTATUS(status), 17);
    // The parent is unharmed.
    stream.synchronize().unwrap();
    transfer.wait().unwrap();
    drop((buffer, event, stream, device));
    assert_empty(&driver);
}

/// Page-locking fails at the first, second, n-th use: copies are right all the same. (GP-34)
#[test]
fn pinning_that_fails_falls_back_to_pageable() {
    for nth in 1..=4 {
        let driver = card16();
        let device = open(&driver);
        driver.fail_call("cuMemHostRegister", nth, Code::OUT_OF_MEMORY);
        for _ in 0..4 {
            assert_eq!(job(&device).unwrap(), SUM);
        }
        assert_eq!(device.host().degraded(), 1);
    }
    // A memlock limit of 64 KiB: everything above it is pageable, and everything works.
    let driver = card16();
    driver.set_registered_limit(64 << 10);
    let device = open(&driver);
    let big = device.host().pinned::<u64>("big", 1 << 20).unwrap();
    let small = device.host().pinned::<u64>("small", 1 << 10).unwrap();
    assert!(!big.is_pinned() && small.is_pinned());
    assert_eq!(device.host().degraded(), 1);
    drop((big, small));
    assert_eq!(job(&device).unwrap(), SUM);
}

/// Two devices may share one pinned memory.
#[test]
fn devices_share_pinned_memory() {
    let drivers = [card16(), card16()];
    let host = HostMemory::new(Arc::clone(&drivers[0]) as _, GIB);
    for driver in &drivers {
        let settings = Settings {
            host: Some(host.clone()),
            ..Settings::default()
        };
        let device = Device::with_driver(Arc::clone(driver) as _, settings).unwrap();
        assert_eq!(job(&device).unwrap(), SUM);
    }
    assert_eq!(host.pinned_use().in_use, 0);
    drop(host);
    drivers.iter().for_each(|driver| assert_empty(driver));
}

/// Many frees behind a busy stream cost a bounded number of driver calls each.
#[test]
fn frees_behind_a_busy_stream_are_not_asked_about_over_and_over() {
    let driver = card16();
    let device = open(&driver);
    let stream = device.stream("busy").unwrap();
    driver.set_completion(Completion::Lazy);
    let before = driver.calls();
    const BLOCKS: u64 = 2000;
    for _ in 0..BLOCKS {
        drop(device.alloc::<u8>("small", 64, &stream).unwrap());
    }
    // An allocation and a free each, and now and then a look.
    let calls = driver.calls() - before;
    assert!(calls < 5 * BLOCKS, "{calls}");
    assert_eq!(device.trim(TrimPolicy::Streams).unwrap().still_pending, 0);
    assert_eq!(device.budget().state().held(), 0);
}
