//! Copies, registrations, streams, threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cuzk_gpu_mem::driver::{AllocKind, Code, Copy};
use cuzk_gpu_mem::{Direction, Priority, Recorder};

use crate::rig::{Rig, say};

const PAGE: usize = 4096;

/// Pinned, registered, pageable, half registered; up, down, within the device; uneven lengths.
pub(crate) fn every_way_of_copying_copies(rig: &Rig) {
    let device = rig.device();
    let host = device.host();
    let stream = device.stream("main").unwrap();
    let recorder = Recorder::new(&stream).unwrap();
    stream.set_recorder(Some(recorder.clone()));
    for len in [1_usize, 511, 512, 100_003, 3 << 20] {
        let source: Vec<u64> = (0..len as u64)
            .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        let mut first = device.alloc::<u64>("first", len, &stream).unwrap();
        let mut second = device
            .alloc_with::<u64>("second", len, AllocKind::Synchronous, &stream)
            .unwrap();

        let pinned = host.pinned_from("source", &source).unwrap();
        assert!(pinned.is_pinned());
        let pinned = stream.upload(pinned, &mut first).unwrap().wait().unwrap();
        stream.copy(&first, &mut second).unwrap();
        let back = stream.download(&second, pinned).unwrap().wait().unwrap();
        assert_eq!(*back, source[..]);

        stream.fill(&mut first, 0xff).unwrap();
        let mut target = vec![0; len];
        stream.download_slice(&first, &mut target).unwrap();
        assert!(target.iter().all(|&word| word == u64::MAX));

        // The middle third registered: the copy is cut twice, on uneven borders.
        host.scope(|scope| {
            let _middle = scope.register(&source[len / 3..len - len / 3]);
            stream.upload_slice(&source, &mut first).unwrap();
            let mut target = scope.register_mut(&mut target);
            stream.download_slice(&first, &mut target).unwrap();
            assert_eq!(*target, source[..]);
        });
    }
    assert_eq!(host.degraded(), 0);
    let timeline = recorder.timeline().unwrap();
    let up = timeline
        .transfers
        .iter()
        .filter(|t| t.direction == Direction::Up);
    assert_eq!(up.count(), 10);
    say(&timeline.inventory());
}

/// What a driver does with overlapping registrations and with copies across their borders.
pub(crate) fn registrations_behave_as_modelled(rig: &Rig) {
    let driver = &*rig.driver;
    let memory = vec![1_u8; 16 * PAGE];
    let skip = memory.as_ptr().align_offset(PAGE);
    let start = memory[skip..].as_ptr();
    let address = start.expose_provenance();
    let stream = driver.create_stream(Priority::Normal).unwrap();
    // SAFETY: `memory` outlives every registration and copy below; each handle and block is live
    // until it is given back at the end, after the stream is done.
    unsafe {
        let block = driver
            .alloc(AllocKind::Synchronous, 16 * PAGE as u64, stream)
            .unwrap();
        let copy = |page: usize, pages: usize| {
            let from = start.add(page * PAGE);
            driver.copy(
                Copy::Upload {
                    from,
                    to: block,
                    bytes: pages * PAGE,
                },
                stream,
            )
        };
        driver.host_register(address, 4 * PAGE).unwrap();
        driver.host_register(address + 4 * PAGE, 4 * PAGE).unwrap();
        for (page, pages) in [(0, 4), (7, 1), (0, 12), (3, 2)] {
            let overlapping = driver.host_register(address + page * PAGE, pages * PAGE);
            assert_eq!(
                overlapping.unwrap_err().code,
                Code::HOST_MEMORY_ALREADY_REGISTERED
            );
        }
        copy(0, 4).unwrap();
        copy(5, 3).unwrap();
        copy(8, 4).unwrap();
        // Two registrations; registered and not.
        assert_eq!(copy(2, 4).unwrap_err().code, Code::INVALID_VALUE);
        assert_eq!(copy(6, 4).unwrap_err().code, Code::INVALID_VALUE);
        driver
            .wait(cuzk_gpu_mem::driver::Point::Stream(stream))
            .unwrap();
        driver.host_unregister(address).unwrap();
        driver.host_unregister(address + 4 * PAGE).unwrap();
        let gone = driver.host_unregister(address);
        assert_eq!(gone.unwrap_err().code, Code::HOST_MEMORY_NOT_REGISTERED);
        driver.free(AllocKind::Synchronous, block, stream).unwrap();
        driver.destroy_stream(stream).unwrap();
    }
}

/// Work in a stream keeps its order; an event orders two streams; host work runs where it stands.
pub(crate) fn streams_and_events_order_work(rig: &Rig) {
    let device = rig.device();
    let (first, second) = (
        device.stream("first").unwrap(),
        device.stream("second").unwrap(),
    );
    let counter = Arc::new(AtomicU64::new(0));
    for round in 0..50_u64 {
        let expect = |value: u64| {
            let counter = Arc::clone(&counter);
            move || {
                let seen = counter.fetch_add(1, Ordering::SeqCst);
                // A panic here would be lost in the driver's thread; a wrong count is not.
                counter.fetch_add(if seen == value { 0 } else { 1 << 40 }, Ordering::SeqCst);
            }
        };
        first.enqueue(expect(round * 4)).unwrap();
        first.enqueue(expect(round * 4 + 1)).unwrap();
        let event = first.record().unwrap();
        second.wait_for(&event).unwrap();
        drop(event);
        second.enqueue(expect(round * 4 + 2)).unwrap();
        second.enqueue(expect(round * 4 + 3)).unwrap();
        first.follow(&second).unwrap();
    }
    first.synchronize().unwrap();
    assert_eq!(counter.load(Ordering::SeqCst), 200);
    assert!(first.is_idle().unwrap());
    let begin = first.record_timed().unwrap();
    first
        .enqueue(|| std::thread::sleep(std::time::Duration::from_millis(5)))
        .unwrap();
    let end = first.record_timed().unwrap();
    end.wait().unwrap();
    assert!(end.since(&begin).unwrap().as_millis() >= 5);
}

pub(crate) fn drops_in_any_order(rig: &Rig) {
    type Part = Box<dyn Send>;
    for order in 0..24_usize {
        let device = rig.device();
        let stream = device.stream("main").unwrap();
        let mut buffer = device.alloc::<u64>("key", 1 << 16, &stream).unwrap();
        buffer.mark_secret();
        let pinned = device
            .host()
            .pinned_from("key", &vec![7_u64; 1 << 16])
            .unwrap();
        let transfer = stream.upload(pinned, &mut buffer).unwrap();
        let mut parts: Vec<Part> = vec![
            Box::new(device),
            Box::new(stream),
            Box::new(buffer),
            Box::new(transfer),
        ];
        let mut code = order;
        while !parts.is_empty() {
            let part = parts.swap_remove(code % parts.len());
            code /= parts.len() + 1;
            std::thread::spawn(move || drop(part)).join().unwrap();
        }
    }
    rig.driver.trim(0).unwrap();
    assert_eq!(rig.units(rig.info().free), rig.units(rig.empty));
}

/// A fresh thread has no context; every call brings its own. (GP-28)
pub(crate) fn threads_need_no_context_of_their_own(rig: &Rig) {
    let device = rig.device();
    let sums: Vec<u64> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8_u64)
            .map(|worker| {
                let device = &device;
                scope.spawn(move || {
                    let stream = device.stream("worker").unwrap();
                    let mut buffer = device.alloc::<u64>("part", 10_000, &stream).unwrap();
                    stream
                        .upload_slice(&vec![worker; 10_000], &mut buffer)
                        .unwrap();
                    device
                        .compute(|cx| {
                            let mut copy = cx.alloc::<u64>("copy", 10_000).unwrap();
                            cx.stream().copy(&buffer, &mut copy).unwrap();
                            let mut host = vec![0; 10_000];
                            cx.stream().download_slice(&copy, &mut host).unwrap();
                            host.iter().sum()
                        })
                        .unwrap()
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    });
    let expected: Vec<u64> = (0..8).map(|worker| worker * 10_000).collect();
    assert_eq!(sums, expected);
}
