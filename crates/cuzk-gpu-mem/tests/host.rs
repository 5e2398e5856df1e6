//! Registrations of foreign memory.

mod common;

use std::sync::Arc;

use common::{card16, ends_by_itself, open};
use cuzk_gpu_mem::driver::sim::Completion;
use cuzk_gpu_mem::driver::{Code, Driver};
use cuzk_gpu_mem::{Device, HostMemory, MIB, TrimPolicy};

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
