//! Order: within a stream, between streams, from any thread.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{card16, open};
use cuzk_gpu_mem::driver::sim::Completion;
use cuzk_gpu_mem::{Device, Stream};

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
