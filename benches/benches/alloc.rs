//! Allocation latency of both allocators, with and without a release threshold; what our layer adds
//! to the raw calls.
#![allow(clippy::print_stdout)]

mod device;

use std::hint::black_box;
use std::time::Duration;

use cudarc::driver::result;
use cuzk_gpu_mem::driver::{AllocKind, Point, StreamId};
use cuzk_gpu_mem::{MIB, Stream, TrimPolicy};
use device::{Bench, median, time};

fn main() {
    let mut bench = Bench::open("alloc");
    let device = bench.device.clone();
    let stream = device.stream("bench").unwrap();
    for (name, threshold) in [("threshold 0", 0), ("threshold max", u64::MAX)] {
        device.driver().set_release_threshold(threshold).unwrap();
        for mib in [1, 256, 4096] {
            let kind = AllocKind::StreamOrdered;
            cycle(
                &mut bench,
                &format!("stream-ordered, {name}"),
                kind,
                mib,
                stream.id(),
            );
        }
        device.trim(TrimPolicy::Device).unwrap();
    }
    for mib in [1, 256, 4096] {
        cycle(
            &mut bench,
            "synchronous",
            AllocKind::Synchronous,
            mib,
            stream.id(),
        );
    }
    first_of_six(&mut bench, stream.id());
    overhead(&mut bench, &stream, 1);
    overhead(&mut bench, &stream, 64);
    bench.finish();
}

/// Allocate, free, and see it complete: what a loop that cannot keep its buffer pays each time.
fn cycle(bench: &mut Bench, name: &str, kind: AllocKind, mib: u64, stream: StreamId) {
    let driver = bench.device.driver().clone();
    let bytes = bench.size(mib * MIB);
    let times = (0..bench.rounds(if mib > 1000 { 15 } else { 101 }))
        .map(|_| {
            // SAFETY: the stream is live, the block is freed once, nothing uses it.
            time(|| unsafe {
                let block = driver.alloc(kind, bytes, stream).unwrap();
                driver.free(kind, block, stream).unwrap();
                driver.wait(Point::Stream(stream)).unwrap();
            })
        })
        .collect();
    let us = median(times).as_secs_f64() * 1e6;
    bench.row(format!("{name}: allocate, free, wait, {mib} MiB"), us, "us");
}

/// The first large block maps memory; giving it back unmaps.
fn first_of_six(bench: &mut Bench, stream: StreamId) {
    let driver = bench.device.driver().clone();
    let bytes = bench.size(6144 * MIB);
    let (mut map, mut unmap) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds(5) {
        // SAFETY: the stream is live, the block is freed once, nothing uses it.
        unsafe {
            let kind = AllocKind::StreamOrdered;
            let mut block = None;
            map.push(time(|| {
                block = Some(driver.alloc(kind, bytes, stream).unwrap())
            }));
            driver.free(kind, block.unwrap(), stream).unwrap();
            driver.wait(Point::Stream(stream)).unwrap();
        }
        unmap.push(time(|| driver.trim(0).unwrap()));
    }
    bench.row(
        "first stream-ordered 6 GiB: map",
        median(map).as_secs_f64() * 1e3,
        "ms",
    );
    bench.row(
        "trim of 6 GiB: unmap",
        median(unmap).as_secs_f64() * 1e3,
        "ms",
    );
}

/// Pairs of allocate and free, ours against cudarc's raw calls, in alternating rounds.
fn overhead(bench: &mut Bench, stream: &Stream, mib: u64) {
    let device = bench.device.clone();
    let pairs = bench.rounds(2000) as u32;
    let bytes = bench.size(mib * MIB);
    device.driver().set_release_threshold(u64::MAX).unwrap();
    let ours = || {
        for _ in 0..pairs {
            black_box(device.alloc::<u8>("pair", bytes as usize, stream).unwrap());
        }
        stream.synchronize().unwrap();
    };
    let raw = || match device.driver().as_cuda() {
        Some(cuda) => {
            cuda.bind().unwrap();
            let (pool, stream) = (cuda.raw_pool(), cuda.raw_stream(stream.id()));
            for _ in 0..pairs {
                // SAFETY: pool and stream are live, the block is freed once, nothing uses it.
                unsafe {
                    let block =
                        result::mem_pool::alloc_async(pool, bytes as usize, stream).unwrap();
                    result::free_async(black_box(block), stream).unwrap();
                }
            }
            // SAFETY: the stream is live.
            unsafe { result::stream::synchronize(stream) }.unwrap();
        }
        None => {
            let (driver, kind) = (device.driver(), AllocKind::StreamOrdered);
            for _ in 0..pairs {
                // SAFETY: as above.
                unsafe {
                    let block = driver.alloc(kind, bytes, stream.id()).unwrap();
                    driver.free(kind, black_box(block), stream.id()).unwrap();
                }
            }
        }
    };
    let (mut our_times, mut raw_times) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds(11) {
        raw_times.push(time(raw) / pairs);
        our_times.push(time(ours) / pairs);
    }
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let (ours, raw) = (us(median(our_times)), us(median(raw_times)));
    bench.row(format!("raw cudarc: allocate + free {mib} MiB"), raw, "us");
    bench.row(format!("ours: allocate + drop {mib} MiB"), ours, "us");
    bench.row(
        format!("overhead of our layer per allocation and drop, {mib} MiB"),
        ours - raw,
        "us",
    );
}
