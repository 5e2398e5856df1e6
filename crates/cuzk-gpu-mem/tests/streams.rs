//! Order: within a stream, between streams, from any thread.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{card16, open};
use cuzk_gpu_mem::driver::sim::Completion;
use cuzk_gpu_mem::{Carve, Device, DeviceView, DeviceViewMut, Error, SharedBuf, Stream};

fn lazy() -> (Arc<cuzk_gpu_mem::driver::SimDriver>, Device, [Stream; 3]) {
    let driver = card16();
    let device = open(&driver);
    driver.set_completion(Completion::Lazy);
    let streams = ["a", "b", "c"].map(|label| device.stream(label).unwrap());
    (driver, device, streams)
}

/// A buffer written on one stream, read on a second, written on a third: each sees the one before,
/// and dropping it overtakes none of them.
#[test]
fn uses_on_other_streams_are_ordered_through_the_home_stream() {
    let (_driver, device, [home, second, third]) = lazy();
    for _ in 0..10 {
        let mut buffer = device.alloc::<u64>("buffer", 100, &home).unwrap();
        let one = device.host().pinned_from("one", &[1_u64; 100]).unwrap();
        let two = device.host().pinned_from("two", &[2_u64; 100]).unwrap();
        drop(second.upload(one, &mut buffer).unwrap());
        let seen = third
            .download(&buffer, device.host().pinned("seen", 100).unwrap())
            .unwrap();
        drop(second.upload(two, &mut buffer).unwrap());
        let after = third
            .download(&buffer, device.host().pinned("after", 100).unwrap())
            .unwrap();
        drop(buffer);
        assert_eq!(*after.wait().unwrap(), [2; 100]);
        assert_eq!(*seen.wait().unwrap(), [1; 100]);
    }
}

/// Waiting for an event holds the stream back, not the host.
#[test]
fn a_stream_waits_without_blocking_the_host() {
    let (driver, _device, [a, b, _]) = lazy();
    driver.set_completion(Completion::Eager);
    let counter = Arc::new(AtomicU64::new(0));
    let step = |stream: &Stream, from, to| {
        let counter = Arc::clone(&counter);
        let swap = move || {
            counter
                .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
                .unwrap();
        };
        stream.enqueue(swap).unwrap();
    };
    driver.hold(a.id());
    step(&a, 0, 1);
    let event = a.record().unwrap();
    b.wait_for(&event).unwrap();
    step(&b, 1, 2);
    // The host is here, and neither has run.
    assert_eq!(counter.load(Ordering::SeqCst), 0);
    assert!(!event.is_reached().unwrap() && !b.is_idle().unwrap());
    driver.release(a.id());
    b.synchronize().unwrap();
    assert_eq!(counter.load(Ordering::SeqCst), 2);
    // An event recorded anew elsewhere does not disturb who waits for the old one.
    a.follow(&b).unwrap();
    b.follow(&a).unwrap();
    b.synchronize().unwrap();
}

/// A timed pair gives the time between them.
#[test]
fn events_measure_time() {
    let (driver, device, [a, ..]) = lazy();
    driver.set_completion(Completion::Eager);
    let begin = a.record_timed().unwrap();
    a.enqueue(|| std::thread::sleep(Duration::from_millis(20)))
        .unwrap();
    let end = a.record_timed().unwrap();
    end.wait().unwrap();
    let elapsed = end.since(&begin).unwrap();
    assert!(elapsed >= Duration::from_millis(20), "{elapsed:?}");
    assert!(device.check().is_ok());
}

/// Handles work from any thread; views split a buffer for several. (GP-28)
#[test]
fn any_thread_may_use_a_device() {
    let (driver, device, _) = lazy();
    driver.set_completion(Completion::Eager);
    let stream = device.stream("main").unwrap();
    let mut buffer = device.alloc::<u64>("halves", 1000, &stream).unwrap();
    let (left, right) = buffer.view_mut().split_at(300);
    std::thread::scope(|scope| {
        for (value, half) in [(1_u64, left), (2, right)] {
            let device = &device;
            scope.spawn(move || {
                let stream = device.stream("worker").unwrap();
                let source = device
                    .host()
                    .pinned_from("half", &vec![value; half.len()])
                    .unwrap();
                stream.upload(source, half).unwrap().wait().unwrap();
            });
        }
    });
    let mut back = vec![0; 1000];
    stream.download_slice(&buffer, &mut back).unwrap();
    assert_eq!(back[..300], [1; 300]);
    assert_eq!(back[300..], [2; 700]);
    std::thread::spawn(move || drop((buffer, stream, device)))
        .join()
        .unwrap();
}

/// Fresh device memory is not zero, and an emulated device shows it.
#[test]
fn fresh_memory_is_poisoned() {
    let device = open(&card16());
    let stream = device.stream("main").unwrap();
    let buffer = device.alloc::<u8>("fresh", 16, &stream).unwrap();
    let mut back = [0; 16];
    stream.download_slice(&buffer, &mut back).unwrap();
    assert_eq!(back, [0xa5; 16]);
}

/// Ranges out of bounds are bugs of the caller, as with slices.
#[test]
#[should_panic(expected = "range 3..9 of a device view of 8 elements")]
fn a_view_out_of_bounds_panics() {
    let device = open(&card16());
    let stream = device.stream("main").unwrap();
    let buffer = device.alloc::<u8>("buffer", 8, &stream).unwrap();
    let _ = buffer.view().slice(3..9);
}

/// A loan that is forgotten does not let the buffer's free overtake what the borrower does.
#[test]
fn a_forgotten_loan_still_orders_the_free() {
    let (driver, device, [home, borrower, _]) = lazy();
    driver.set_completion(Completion::Eager);
    let mut buffer = device.alloc::<u64>("buffer", 8, &home).unwrap();
    let mut lent = buffer.view_mut().lend(&[&borrower]).unwrap();
    driver.hold(borrower.id());
    let source = device.host().pinned_from("value", &[1; 8]).unwrap();
    let copy = borrower.upload(source, lent.view_mut()).unwrap();
    std::mem::forget(lent);
    drop(buffer);
    // The home stream, on which the block is freed, waits for the borrower.
    assert!(!home.is_idle().unwrap());
    driver.release(borrower.id());
    home.synchronize().unwrap();
    copy.wait().unwrap();
}

/// Two streams that were lent one buffer work in it at a time; both come after what was there before,
/// and before what follows.
#[test]
fn streams_that_were_lent_a_buffer_do_not_wait_for_each_other() {
    let (driver, device, [home, a, b]) = lazy();
    driver.set_completion(Completion::Eager);
    let mut buffer = device.alloc::<u64>("buffer", 8, &home).unwrap();
    let write = |stream: &Stream, part: DeviceViewMut<'_, u64>, value| {
        let source = device.host().pinned_from("value", &[value; 4]).unwrap();
        stream.upload(source, part).unwrap()
    };
    driver.hold(home.id());
    let before = write(&home, buffer.view_mut().slice(..4), 9);
    let mut lent = buffer.view_mut().lend(&[&a, &b]).unwrap();
    let (low, high) = lent.view_mut().split_at(4);
    assert!(!a.is_idle().unwrap() && !b.is_idle().unwrap());
    driver.release(home.id());
    // Held back, `a` does not hold `b` back.
    driver.hold(a.id());
    let late = write(&a, low, 1);
    let early = write(&b, high, 2);
    early.wait().unwrap();
    assert!(!late.is_done().unwrap());
    drop(lent);
    // What follows waits for both.
    let seen = home
        .download(&buffer, device.host().pinned("seen", 8).unwrap())
        .unwrap();
    assert!(!seen.is_done().unwrap());
    driver.release(a.id());
    assert_eq!(*seen.wait().unwrap(), [1, 1, 1, 1, 2, 2, 2, 2]);
    drop((before, late));
}

/// Streams that read a shared buffer wait for what filled it, not for each other; the free waits for all.
#[test]
fn readers_of_a_shared_buffer_do_not_wait_for_each_other() {
    let (driver, device, [home, a, b]) = lazy();
    driver.set_completion(Completion::Eager);
    let mut buffer = device.alloc::<u64>("buffer", 4, &home).unwrap();
    driver.hold(home.id());
    let source = device.host().pinned_from("value", &[7; 4]).unwrap();
    let filled = home.upload(source, &mut buffer).unwrap();
    let shared = SharedBuf::new(buffer);
    assert_eq!(shared.bytes(), 32);
    let read = |stream: &Stream, view: DeviceView<'_, u64>| {
        stream
            .download(view, device.host().pinned("seen", 4).unwrap())
            .unwrap()
    };
    let first = read(&a, shared.view(&a).unwrap());
    assert!(!first.is_done().unwrap());
    driver.release(home.id());
    assert_eq!(*first.wait().unwrap(), [7; 4]);
    // Held back, `a` holds neither `b` back nor the home stream.
    driver.hold(a.id());
    let late = read(&a, shared.view(&a).unwrap());
    assert_eq!(*read(&b, shared.view(&b).unwrap()).wait().unwrap(), [7; 4]);
    let own = read(&home, shared.view(&home).unwrap());
    assert_eq!(*own.wait().unwrap(), [7; 4]);
    assert!(!late.is_done().unwrap());
    drop(shared);
    assert!(!home.is_idle().unwrap());
    driver.release(a.id());
    assert_eq!(*late.wait().unwrap(), [7; 4]);
    home.synchronize().unwrap();

    let other = open(&card16());
    let elsewhere = other.stream("elsewhere").unwrap();
    let shared = SharedBuf::new(device.alloc::<u64>("buffer", 4, &home).unwrap());
    assert!(shared.view(&elsewhere).is_err());
    drop(filled);
}

/// Parts of one block: aligned, disjoint, and no more than there is.
#[test]
fn a_block_is_carved_into_typed_parts() {
    let (driver, device, [home, ..]) = lazy();
    driver.set_completion(Completion::Eager);
    type Odd = [u32; 3];
    let sizes = [(5, 60), (0, 0), (64, 768)];
    let bytes: usize = sizes
        .iter()
        .map(|&(len, _)| Carve::bytes_of::<Odd>(len))
        .sum();
    assert_eq!(bytes, 256 + 768);
    let mut block = device.alloc::<u8>("block", bytes, &home).unwrap();
    let base = block.view().ptr();
    let mut carve = Carve::new(block.view_mut());
    let parts = sizes.map(|(len, bytes)| {
        let part = carve.take::<Odd>("part", len).unwrap();
        assert_eq!((part.len(), part.bytes()), (len, bytes));
        part.ptr()
    });
    assert_eq!(parts, [base, base.offset(256), base.offset(256)]);
    assert!(matches!(
        carve.take::<u8>("more", 1),
        Err(Error::Length {
            what: "more",
            expected: 1,
            found: 0
        })
    ));
    assert!(matches!(
        carve.take::<u64>("huge", usize::MAX / 4),
        Err(Error::TooLarge { .. })
    ));
    assert!(carve.rest().is_empty());
    assert_eq!(Carve::bytes_of::<u64>(usize::MAX), usize::MAX);
    // A view that starts elsewhere is aligned first.
    let mut carve = Carve::new(block.view_mut().slice(100..));
    assert_eq!(
        carve.take::<u64>("part", 96).unwrap().ptr(),
        base.offset(256)
    );
    assert!(matches!(
        carve.take::<u8>("more", 1),
        Err(Error::Length { .. })
    ));
}
