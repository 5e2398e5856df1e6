//! Pinned buffers, secrets, and the count of transfers.

mod common;

use std::sync::Arc;

use common::{assert_empty, card16, ends_by_itself, open};
use cuzk_gpu_mem::driver::Code;
use cuzk_gpu_mem::driver::sim::Completion;
use cuzk_gpu_mem::{Error, HostMemory, MIB, Recorder, WIPE};

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
    // The budget is spent; the wait for the buffer fails, and says so.
    driver.fail_call("cuEventQuery", 1, Code::OPERATING_SYSTEM);
    driver.fail_call("cuEventSynchronize", 1, Code::OPERATING_SYSTEM);
    let refused = host.pinned::<u64>("rows", 512);
    driver.release(stream.id());
    assert_ne!(other.as_ptr(), address);
    assert!(
        matches!(&refused, Err(Error::Driver { error, .. }) if error.call == "cuEventSynchronize")
    );
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

/// What its user has overwritten is not overwritten again; all else is.
#[test]
fn what_its_user_has_wiped_is_left_alone() {
    let driver = card16();
    let device = open(&driver);
    let stream = device.stream("main").unwrap();
    for (wiped_from, expected) in [(None, [0; 4]), (Some(4), [0; 4]), (Some(3), [0, 0, 0, 9])] {
        let mut secret = device.alloc::<u64>("secret", 4, &stream).unwrap();
        stream
            .upload_slice(&[7, 7, 7, 9], secret.view_mut())
            .unwrap();
        secret.mark_secret();
        if let Some(element) = wiped_from {
            secret.mark_wiped_from(element);
        }
        let first = secret.view().ptr().0 as usize as *const u64;
        driver.set_completion(Completion::Lazy);
        drop(secret);
        assert!(driver.step(stream.id()), "the wipe, and not the free");
        let words = std::ptr::with_exposed_provenance::<[u64; 4]>(first.addr());
        // SAFETY: the block is not freed yet: an emulated device's addresses are the host's.
        assert_eq!(unsafe { words.read() }, expected);
        driver.set_completion(Completion::Eager);
        stream.synchronize().unwrap();
    }
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
    let span = recorder.of_worker(1).span("stage", &stream).unwrap();
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
    buffer.mark_secret();
    stream.set_recorder(Some(recorder.of_worker(2)));
    drop(buffer);
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
    assert_eq!(
        (timeline.spans[1].label, timeline.spans[1].worker),
        (WIPE, 2)
    );
    assert!(timeline.spans[0].begin_ms <= timeline.transfers[0].begin_ms);
    assert!(timeline.spans[0].end_ms >= timeline.transfers[2].end_ms);
    assert!(timeline.inventory().contains("up    total"));
}
