//! Pinned buffers and registrations of foreign memory.

mod common;

use std::sync::Arc;

use common::{assert_empty, card16, open};
use cuzk_gpu_mem::driver::sim::Completion;
use cuzk_gpu_mem::driver::{Code, Driver};
use cuzk_gpu_mem::{Device, Error, HostMemory, MIB, Recorder, TrimPolicy};

const PAGE: usize = 4096;

/// A page-aligned part of a vector, of whole pages.
fn pages(memory: &mut [u64], count: usize) -> &mut [u64] {
    let skip = memory.as_ptr().align_offset(PAGE);
    &mut memory[skip..skip + count * PAGE / 8]
}

fn up_and_down(device: &Device, source: &[u64], target: &mut [u64]) {
    let stream = device.stream("main").unwrap();
    let mut buffer = device
        .alloc::<u64>("buffer", source.len(), &stream)
        .unwrap();
    stream.upload_slice(source, &mut buffer).unwrap();
    stream.download_slice(&buffer, target).unwrap();
}

/// (d) Two workers register overlapping parts of one buffer: they share, and the pages are
/// unregistered once, when the second goes. (GP-30)
#[test]
fn overlapping_registrations_share_and_unregister_once() {
    let driver = card16();
    let device = open(&driver);
    let host = device.host();
    let mut memory = vec![0_u64; 40 * PAGE / 8];
    let rows = &*pages(&mut memory, 32);
    let page = |count: usize| count * PAGE / 8;

    host.scope(|scope| {
        let first = scope.register(&rows[..page(20)]);
        let second = scope.register(&rows[page(10)..page(32)]);
        let third = scope.register(&rows[page(12)..page(14)]);
        assert_eq!(driver.registrations(), 2); // 0..20, then the gap 20..32
        assert_eq!(host.registered_ranges(), 2);
        drop(first);
        assert_eq!(host.registered_ranges(), 2); // still in use by the second
        drop(second);
        assert_eq!(host.registered_ranges(), 1); // 0..20, used by the third
        drop(third);
        assert_eq!(driver.counts().registrations, 0);
    });

    // The same from two threads at once, many times.
    std::thread::scope(|scope| {
        for worker in 0..2_usize {
            scope.spawn(move || {
                for round in 0..200 {
                    let from = page((worker + round) % 7);
                    host.scope(|scope| {
                        let registered = scope.register(&rows[from..from + page(20)]);
                        assert!(registered.is_pinned());
                    });
                }
            });
        }
    });
    assert_eq!(driver.counts().registrations, 0);
    assert_eq!(host.degraded(), 0);
}

/// A copy is cut where registrations begin and end; one that is not would be refused by the driver.
#[test]
fn copies_are_cut_at_registration_borders() {
    let driver = card16();
    let device = open(&driver);
    let host = device.host();
    let mut memory: Vec<u64> = (0..(40 * PAGE / 8) as u64).collect();
    let rows = &*pages(&mut memory, 32);
    let page = |count: usize| count * PAGE / 8;
    // Pages 4..8 and 8..12 registered as two, 20..24 as a third; ragged ends on purpose.
    host.scope(|scope| {
        let _first = scope.register(&rows[page(4) - 3..page(8)]);
        let _second = scope.register(&rows[page(8)..page(12) + 5]);
        let _third = scope.register(&rows[page(20) + 1..page(25) - 1]);
        assert_eq!(driver.registrations(), 3);
        let mut target = vec![0; rows.len()];
        for (from, to) in [
            (0, page(32)),
            (page(5), page(6)),
            (page(7) + 9, page(9)),
            (page(11), page(22) + 1),
            (7, 7),
        ] {
            target.fill(0);
            up_and_down(&device, &rows[from..to], &mut target[from..to]);
            assert_eq!(target[from..to], rows[from..to]);
        }
    });
}

/// The same by random ranges, downloads into registered memory included.
#[test]
fn random_registrations_and_copies_agree() {
    use proptest::prelude::*;
    let count = 24 * PAGE / 8;
    let range = (0..count, 0..count).prop_map(|(a, b)| (a.min(b), a.max(b)));
    proptest!(|(held in prop::collection::vec(range.clone(), 0..5), copy in range)| {
        let driver = card16();
        let device = open(&driver);
        let mut memory: Vec<u64> = (0..(25 * PAGE / 8) as u64).map(|i| i * i).collect();
        let rows = &*pages(&mut memory, 24);
        let mut other = vec![0_u64; 25 * PAGE / 8];
        let other = pages(&mut other, 24);
        device.host().scope(|scope| {
            let registered: Vec<_> =
                held.iter().map(|&(from, to)| scope.register(&rows[from..to])).collect();
            let mut target = scope.register_mut(other);
            up_and_down(&device, &rows[copy.0..copy.1], &mut target[copy.0..copy.1]);
            prop_assert_eq!(&target[copy.0..copy.1], &rows[copy.0..copy.1]);
            drop((registered, target));
            Ok(())
        })?;
        prop_assert_eq!(driver.counts().registrations, 0);
        prop_assert_eq!(device.host().degraded(), 0);
    });
}

/// Zero bytes, or no whole page: no driver call. (GP-33)
#[test]
fn empty_and_tiny_ranges_make_no_call() {
    let driver = card16();
    let device = open(&driver);
    let calls = driver.calls();
    let empty: [u64; 0] = [];
    device.host().scope(|scope| {
        assert!(!scope.register(&empty).is_pinned());
        assert!(!scope.register(&[1_u8, 2, 3]).is_pinned());
    });
    let nothing = device.host().pinned::<u64>("nothing", 0).unwrap();
    assert!(nothing.is_pinned() && nothing.is_empty());
    assert_eq!(driver.calls(), calls);
    assert_eq!(device.host().degraded(), 0);

    let stream = device.stream("main").unwrap();
    let mut buffer = device.alloc::<u64>("empty", 0, &stream).unwrap();
    let calls = driver.calls();
    stream.fill(&mut buffer, 7).unwrap();
    stream.upload_slice(&empty, &mut buffer).unwrap();
    let waits = 1; // of the scope
    assert_eq!(driver.calls(), calls + waits);
    stream.upload(nothing, &mut buffer).unwrap().wait().unwrap();
    assert_eq!(device.budget().state().held(), 0);
}

/// Long ranges are split, and a failure in the middle is rolled back. (GP-31)
#[test]
fn long_ranges_are_split_and_rolled_back() {
    let driver = card16();
    let host = HostMemory::with_chunk(Arc::clone(&driver) as _, 1 << 30, 8 * PAGE);
    driver.set_registered_range_limit(8 * PAGE);
    let mut memory = vec![0_u64; 40 * PAGE / 8];
    let rows = &*pages(&mut memory, 30);
    host.scope(|scope| {
        let registered = scope.register(rows);
        assert!(registered.is_pinned());
        assert_eq!(
            (driver.registrations(), driver.counts().registrations),
            (4, 4)
        ); // 8 + 8 + 8 + 6
        drop(registered);
        assert_eq!(driver.counts().registrations, 0);

        driver.fail_call("cuMemHostRegister", 3, Code::OUT_OF_MEMORY);
        let refused = scope.register(rows);
        assert!(!refused.is_pinned());
        assert_eq!(refused[0], 0);
        assert_eq!(
            (host.registered_ranges(), driver.counts().registrations),
            (0, 0)
        );
        assert_eq!(host.degraded(), 1);
        assert!(scope.register(rows).is_pinned());
    });
}

/// By default ranges are split at 64 GiB: here 600 GiB, which drivers refuse at once. (GP-31)
#[cfg(target_os = "linux")]
#[test]
fn ranges_are_split_at_64_gib() {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    const BYTES: usize = 600 << 30;
    let driver = card16();
    driver.set_registered_range_limit(64 << 30);
    let device = open(&driver);
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a fresh mapping, read by nobody: it costs address space only.
    let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), BYTES, ProtFlags::READ, flags) };
    let Ok(start) = mapped else { return }; // address space is limited here
    // SAFETY: mapped readable, zero, for as long as the slice is used.
    let memory = unsafe { std::slice::from_raw_parts(start.cast::<u64>(), BYTES / 8) };
    device.host().scope(|scope| {
        assert!(scope.register(memory).is_pinned());
        assert_eq!(driver.registrations(), 10); // 9 x 64 + 24
    });
    assert_eq!(driver.counts().registrations, 0);
    // SAFETY: nothing refers to the mapping any more.
    unsafe { munmap(start, BYTES).unwrap() };
}

/// Pages that other code registered count as registered, are copied page by page, and are never
/// unregistered by us. (GP-30)
#[test]
fn pages_registered_by_others_are_used_and_left_alone() {
    let driver = card16();
    let device = open(&driver);
    let mut memory: Vec<u64> = (0..(20 * PAGE / 8) as u64).collect();
    let rows = &*pages(&mut memory, 16);
    let start = rows.as_ptr().expose_provenance();
    // SAFETY: `rows` is mapped until the end of the test.
    unsafe { driver.host_register(start + 4 * PAGE, 4 * PAGE).unwrap() };
    device.host().scope(|scope| {
        let registered = scope.register(rows);
        assert!(registered.is_pinned());
        assert_eq!(device.host().degraded(), 0);
        let mut target = vec![0; rows.len()];
        up_and_down(&device, rows, &mut target);
        assert_eq!(target, rows);
    });
    assert_eq!(driver.counts().registrations, 1);
    // SAFETY: nothing copies from it any more.
    unsafe { driver.host_unregister(start + 4 * PAGE).unwrap() };
}

/// A registration that goes while a copy from it is under way waits for the copy.
#[test]
fn unregistering_waits_for_the_copies() {
    let driver = card16();
    let device = open(&driver);
    driver.set_completion(Completion::Lazy);
    let stream = device.stream("main").unwrap();
    let mut memory: Vec<u64> = (0..(4 * PAGE / 8) as u64).collect();
    let rows = &*pages(&mut memory, 2);
    let mut buffer = device.alloc::<u64>("buffer", rows.len(), &stream).unwrap();
    stream
        .scope(|copies| {
            device.host().scope(|scope| {
                let registered = scope.register(rows);
                copies.upload(rows, &mut buffer).unwrap();
                assert!(!stream.is_idle().unwrap());
                drop(registered);
                assert!(stream.is_idle().unwrap());
            });
        })
        .unwrap();
}

/// A registration that is forgotten ends with its scope: what is mapped there next is not taken for
/// page-locked memory.
#[test]
fn a_forgotten_registration_ends_with_its_scope() {
    let driver = card16();
    let device = open(&driver);
    let mut memory = vec![1_u64; 4 * PAGE / 8];
    let rows = &*pages(&mut memory, 2);
    let host = device.host();
    host.scope(|scope| {
        std::mem::forget(scope.register(rows));
        assert_eq!(host.registered_ranges(), 1);
    });
    assert_eq!(
        (host.registered_ranges(), driver.counts().registrations),
        (0, 0)
    );
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        host.scope(|scope| {
            std::mem::forget(scope.register(rows));
            panic!("a bug of ours");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(driver.counts().registrations, 0);
}

/// Two devices number their streams alike; a registration waits for the copies of both.
#[test]
fn streams_of_two_devices_are_both_waited_for() {
    let (one, other) = (card16(), card16());
    let host = HostMemory::new(Arc::clone(&one) as _, MIB);
    let [one, other] = [one, other].map(|driver| {
        let shared = Some(host.clone());
        let device = common::open_with(&driver, |settings| settings.host = shared);
        driver.set_completion(Completion::Lazy);
        device
    });
    let streams = [&one, &other].map(|device| device.stream("main").unwrap());
    assert_eq!(streams[0].id(), streams[1].id());
    let mut memory = vec![1_u64; 4 * PAGE / 8];
    let rows = &*pages(&mut memory, 2);
    let mut on_one = one.alloc::<u64>("x", rows.len(), &streams[0]).unwrap();
    let mut on_other = other.alloc::<u64>("x", rows.len(), &streams[1]).unwrap();
    let outcome = streams[0].scope(|first| {
        streams[1].scope(|second| {
            host.scope(|scope| {
                let registered = scope.register(rows);
                first.upload(rows, &mut on_one).unwrap();
                second.upload(rows, &mut on_other).unwrap();
                assert!(streams.iter().all(|stream| !stream.is_idle().unwrap()));
                drop(registered);
                assert!(streams.iter().all(|stream| stream.is_idle().unwrap()));
            });
        })
    });
    outcome.unwrap().unwrap();
}

/// A long-lived registration does not keep the streams that have used it and are gone.
#[test]
fn a_registration_lets_go_of_streams_that_are_gone() {
    let driver = card16();
    let device = open(&driver);
    let mut memory = vec![1_u64; 4 * PAGE / 8];
    let rows = &*pages(&mut memory, 2);
    let pinned = device.host().pinned_from("rows", rows).unwrap();
    let before = driver.counts().streams;
    device.host().scope(|scope| {
        let registered = scope.register(rows);
        for _ in 0..100 {
            up_and_down(&device, &registered, &mut vec![0; rows.len()]);
            device.trim(TrimPolicy::Streams).unwrap(); // retired blocks keep theirs so long
        }
        assert!(driver.counts().streams <= before + 1);
    });
    // Pinned buffers have fences and keep none.
    for _ in 0..100 {
        up_and_down(&device, &pinned, &mut vec![0; rows.len()]);
        device.trim(TrimPolicy::Streams).unwrap();
    }
    assert_eq!(driver.counts().streams, before);
}

/// Runs `work` on a thread of its own; whether it ended without waiting for anything that only the
/// caller can bring about.
fn ends_by_itself<'scope, 'env>(
    threads: &'scope std::thread::Scope<'scope, 'env>,
    work: impl FnOnce() + Send + 'scope,
) -> bool {
    let (done, ended) = std::sync::mpsc::channel();
    threads.spawn(move || {
        work();
        let _ = done.send(());
    });
    ended
        .recv_timeout(std::time::Duration::from_secs(10))
        .is_ok()
}

/// While a registration waits for a busy stream, others register, copy and take pinned memory.
#[test]
fn a_wait_for_one_registration_holds_nobody_else_up() {
    let driver = card16();
    let device = open(&driver);
    let host = device.host();
    let busy = device.stream("busy").unwrap();
    let mut memory: Vec<u64> = (0..(10 * PAGE / 8) as u64).collect();
    let rows = &*pages(&mut memory, 8);
    let (left, right) = rows.split_at(rows.len() / 2);
    let mut buffer = device.alloc::<u64>("x", left.len(), &busy).unwrap();
    driver.hold(busy.id());
    std::thread::scope(|threads| {
        let waiter = threads.spawn(|| {
            busy.scope(|copies| {
                host.scope(|scope| {
                    let registered = scope.register(left);
                    copies.upload(left, &mut buffer).unwrap();
                    drop(registered);
                })
            })
        });
        while host.registered_ranges() == 0 {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        let by_itself = ends_by_itself(threads, || {
            host.scope(|scope| {
                let registered = scope.register(right);
                assert!(registered.is_pinned());
                up_and_down(&device, &registered, &mut vec![0; right.len()]);
            });
            drop(host.pinned::<u64>("rows", 512).unwrap());
        });
        assert!(!waiter.is_finished());
        driver.release(busy.id());
        assert!(by_itself);
        waiter.join().unwrap().unwrap();
    });
    assert_eq!(host.registered_ranges(), 1); // of the pool
}

/// While one waits for a transfer to return its buffer, others use the pool.
#[test]
fn a_wait_for_a_pinned_buffer_holds_nobody_else_up() {
    let driver = card16();
    let host = HostMemory::new(Arc::clone(&driver) as _, 8192);
    let shared = Some(host.clone());
    let device = common::open_with(&driver, |settings| settings.host = shared);
    let busy = device.stream("busy").unwrap();
    let mut buffer = device.alloc::<u64>("x", 512, &busy).unwrap();
    let other = host.pinned::<u64>("other", 512).unwrap();
    driver.hold(busy.id());
    let mut used = host.pinned_from("rows", &[3_u64; 512]).unwrap();
    used.mark_secret();
    let address = used.as_ptr().addr();
    drop(busy.upload(used, &mut buffer).unwrap());
    std::thread::scope(|threads| {
        let waiter = threads.spawn(|| host.pinned::<u64>("late", 1024).map(drop));
        std::thread::sleep(std::time::Duration::from_millis(20));
        let by_itself = ends_by_itself(threads, || {
            drop(other);
            let again = host.pinned::<u64>("again", 512).unwrap();
            assert_ne!(again.as_ptr().addr(), address);
            assert_eq!(host.pinned_use().in_use, 8192);
        });
        assert!(!waiter.is_finished());
        driver.release(busy.id());
        assert!(by_itself);
        waiter.join().unwrap().unwrap();
    });
}

/// A fence that cannot be asked has not been passed: the buffer is neither wiped nor handed out.
#[test]
fn a_fence_that_does_not_answer_keeps_its_buffer() {
    let driver = card16();
    let host = HostMemory::new(Arc::clone(&driver) as _, 8192);
    let shared = Some(host.clone());
    let device = common::open_with(&driver, |settings| settings.host = shared);
    let stream = device.stream("main").unwrap();
    let mut buffer = device.alloc::<u64>("rows", 512, &stream).unwrap();
    driver.hold(stream.id());
    let mut pinned = host.pinned_from("rows", &[0xdead_u64; 512]).unwrap();
    pinned.mark_secret();
    let address = pinned.as_ptr();
    drop(stream.upload(pinned, &mut buffer).unwrap());
    driver.fail_call("cuEventQuery", 1, Code::OPERATING_SYSTEM);
    let other = host.pinned::<u64>("rows", 512).unwrap();
    assert_ne!(other.as_ptr(), address);
    // The budget is spent; the wait for the buffer fails, and says so.
    driver.fail_call("cuEventQuery", 1, Code::OPERATING_SYSTEM);
    driver.fail_call("cuEventSynchronize", 1, Code::OPERATING_SYSTEM);
    let refused = host.pinned::<u64>("rows", 512);
    assert!(
        matches!(&refused, Err(Error::Driver { error, .. }) if error.call == "cuEventSynchronize")
    );
    driver.release(stream.id());
    let mut back = [0; 512];
    stream.download_slice(&buffer, &mut back).unwrap();
    assert_eq!(back, [0xdead; 512]);
    let wiped = host.pinned::<u64>("rows", 512).unwrap();
    assert_eq!(wiped.as_ptr(), address);
    assert_eq!(*wiped, [0; 512]);
}

/// Buffers are recycled, on whole chunks, within the budget.
#[test]
fn pinned_buffers_are_recycled_within_the_budget() {
    let driver = card16();
    let host = HostMemory::new(Arc::clone(&driver) as _, 8 * MIB);
    let first = host.pinned::<u8>("rows", 4 << 20).unwrap();
    let second = host.pinned::<u8>("rows", 3 << 20).unwrap();
    assert_eq!(driver.registrations(), 2);
    let error = host.pinned::<u8>("more", 1 << 20).unwrap_err();
    assert!(matches!(
        error,
        Error::PinnedBudget { label: "more", requested, in_use, limit }
            if (requested, in_use, limit) == (MIB, 8 * MIB, 8 * MIB)
    ));
    let address = first.as_ptr();
    drop((first, second));
    let again = host.pinned::<u8>("rows", 4 << 20).unwrap();
    assert_eq!(driver.registrations(), 2);
    assert_eq!(again.len(), 4 << 20);
    let _ = address;
    // A size that fits no idle chunk evicts one.
    let small = host.pinned::<u8>("small", 100).unwrap();
    assert_eq!(driver.registrations(), 3);
    drop((again, small));
    assert!(host.trim_pinned() > 0);
    assert_eq!(host.pinned_use().mapped, 0);
    drop(host);
    assert_empty(&driver);
}

/// A buffer let go of in flight comes back behind its copy; a secret one comes back wiped.
#[test]
fn a_buffer_in_flight_is_not_handed_out_and_secrets_are_wiped() {
    let driver = card16();
    let device = open(&driver);
    driver.set_completion(Completion::Lazy);
    let stream = device.stream("main").unwrap();
    let host = device.host();
    let mut buffer = device.alloc::<u64>("rows", 512, &stream).unwrap();
    let mut pinned = host.pinned_from("rows", &[0xdead_u64; 512]).unwrap();
    pinned.mark_secret();
    let address = pinned.as_ptr();
    drop(stream.upload(pinned, &mut buffer).unwrap());
    assert_eq!(host.pinned_use().in_use, 4096);
    let other = host.pinned::<u64>("rows", 512).unwrap();
    assert_ne!(other.as_ptr(), address);
    stream.synchronize().unwrap();
    assert_eq!(host.pinned_use().in_use, 4096); // the other's
    let wiped = host.pinned::<u64>("rows", 512).unwrap();
    assert_eq!(wiped.as_ptr(), address);
    assert!(wiped.iter().all(|&word| word == 0));
    // What arrived on the device was the data, not the wipe.
    let mut back = [0; 512];
    stream.download_slice(&buffer, &mut back).unwrap();
    assert_eq!(back, [0xdead; 512]);
}

/// A secret block of device memory is zero before its bytes can be reused.
#[test]
fn secret_device_blocks_are_wiped_before_they_are_freed() {
    let driver = card16();
    let device = open(&driver);
    let stream = device.stream("main").unwrap();
    for kind in [
        cuzk_gpu_mem::AllocKind::StreamOrdered,
        cuzk_gpu_mem::AllocKind::Synchronous,
    ] {
        driver.set_completion(Completion::Lazy);
        let mut secret = device
            .alloc_with::<u64>("witness", 64, kind, &stream)
            .unwrap();
        stream
            .upload(
                device.host().pinned_from("w", &[5; 64]).unwrap(),
                &mut secret,
            )
            .unwrap()
            .wait()
            .unwrap();
        secret.mark_secret();
        let first = secret.view().ptr().0 as usize as *const u64;
        drop(secret);
        // Upload done; now the wipe runs, and the free has not.
        assert!(driver.step(stream.id()));
        // SAFETY: the block is not freed yet: an emulated device's addresses are the host's.
        let word = unsafe { std::ptr::with_exposed_provenance::<u64>(first.addr()).read() };
        assert_eq!(word, 0);
        driver.set_completion(Completion::Eager);
    }
}

/// The ledger of transfers: label, bytes, direction, pinned or not.
#[test]
fn transfers_are_counted() {
    let driver = card16();
    let device = open(&driver);
    let stream = device.stream("upload").unwrap();
    let recorder = Recorder::new(&stream).unwrap();
    stream.set_recorder(Some(recorder.clone()));
    let span = recorder.span("stage", 1, &stream).unwrap();
    let mut buffer = device.alloc::<u64>("d_a", 4096, &stream).unwrap();
    let pinned = device
        .host()
        .pinned_from("d_a", &vec![1_u64; 4096])
        .unwrap();
    let pinned = stream.upload(pinned, &mut buffer).unwrap().wait().unwrap();
    stream
        .upload_slice(&vec![2_u64; 4096], &mut buffer)
        .unwrap();
    drop(stream.download(&buffer, pinned).unwrap());
    span.end(&stream);
    let timeline = recorder.timeline().unwrap();
    use cuzk_gpu_mem::Direction::{Down, Up};
    let seen: Vec<_> = timeline
        .transfers
        .iter()
        .map(|t| (t.label, t.direction, t.bytes, t.pinned))
        .collect();
    let bytes = 4096 * 8;
    assert_eq!(
        seen,
        [
            ("d_a", Up, bytes, true),
            ("d_a", Up, bytes, false),
            ("d_a", Down, bytes, true)
        ]
    );
    assert_eq!(
        (timeline.spans[0].label, timeline.spans[0].worker),
        ("stage", 1)
    );
    assert!(timeline.spans[0].begin_ms <= timeline.transfers[0].begin_ms);
    assert!(timeline.spans[0].end_ms >= timeline.transfers[2].end_ms);
    assert!(timeline.inventory().contains("up    total"));
}
