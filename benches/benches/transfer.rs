//! Copy rates of pinned, registered and pageable memory, both ways; what locking pages costs.
#![allow(clippy::print_stdout)]

mod device;

use std::hint::black_box;

use cuzk_gpu_mem::{DeviceBuf, HostMemory};
use device::{Bench, time};

/// Bytes of one copy.
const BYTES: u64 = 1 << 30;
const PAGE: usize = 4096;

fn main() {
    let mut bench = Bench::open("transfer");
    let bytes = bench.size(BYTES);
    let rounds = bench.rounds(7);
    host_pages(&mut bench, bytes as usize);
    copies(&mut bench, bytes, rounds);
    borders(&mut bench, bytes, rounds);
    bench.finish();
}

/// Touches one byte of each page.
fn touch(memory: &mut [u8]) {
    for page in memory.chunks_mut(PAGE) {
        page[0] = 1;
    }
    black_box(memory);
}

/// First touch and page-locking of fresh host memory.
fn host_pages(bench: &mut Bench, bytes: usize) {
    let device = bench.device.clone();
    let host = device.host();
    let size = bytes as u64;
    // Freshly mapped, as any allocation of this size is: nobody has touched it.
    let mut fresh = vec![0_u8; bytes];
    bench.rate(
        "first touch, one thread",
        size,
        vec![time(|| touch(&mut fresh))],
    );
    host.scope(|scope| {
        let mut held = None;
        bench.rate(
            "registration, touched pages",
            size,
            vec![time(|| held = Some(scope.register(&fresh)))],
        );
        assert!(
            held.as_ref().is_some_and(|held| held.is_pinned()),
            "the range was not locked"
        );
        bench.rate("unregistration", size, vec![time(|| drop(held.take()))]);
    });
    drop(fresh);

    let untouched = vec![0_u8; bytes];
    host.scope(|scope| {
        let mut held = None;
        bench.rate(
            "registration, untouched pages",
            size,
            vec![time(|| held = Some(scope.register(&untouched)))],
        );
    });

    let pool = HostMemory::new(device.driver().clone(), 4 * size.max(1 << 20));
    let mut first = None;
    let fresh_chunk = time(|| first = pool.pinned::<u8>("chunk", bytes).ok());
    assert!(
        first.as_ref().is_some_and(|chunk| chunk.is_pinned()),
        "the chunk was not locked"
    );
    bench.rate(
        "pinned pool: map, touch, lock on huge pages",
        size,
        vec![fresh_chunk],
    );
    let recycled = time(|| {
        drop(first.take());
        first = pool.pinned::<u8>("chunk", bytes).ok();
    });
    bench.row(
        "pinned pool: recycled buffer",
        recycled.as_secs_f64() * 1e6,
        "us",
    );
}

/// Pinned, registered and pageable, up and down; checked in the same run.
fn copies(bench: &mut Bench, bytes: u64, rounds: usize) {
    let device = bench.device.clone();
    let host = device.host();
    let (up, down) = (device.stream("up").unwrap(), device.stream("down").unwrap());
    let len = bytes as usize / 8;
    let mut source = host.pinned::<u64>("source", len).unwrap();
    source
        .iter_mut()
        .enumerate()
        .for_each(|(i, word)| *word = (i as u64).wrapping_mul(0x9e37_79b9));
    let mut target = host.pinned::<u64>("target", len).unwrap();
    let plain = source.to_vec();
    let mut plain_target = vec![1_u64; len];
    let mut buffer: DeviceBuf<u64> = device.alloc("buffer", len, &up).unwrap();
    let mut other: DeviceBuf<u64> = device.alloc("other", len, &down).unwrap();
    down.fill(&mut other, 0).unwrap();
    down.synchronize().unwrap();

    let mut times = [const { Vec::new() }; 7];
    for _ in 0..rounds {
        times[0].push(time(|| {
            let kept = std::mem::replace(&mut source, host.pinned("none", 0).unwrap());
            source = up.upload(kept, &mut buffer).unwrap().wait().unwrap();
        }));
        times[1].push(time(|| {
            let kept = std::mem::replace(&mut target, host.pinned("none", 0).unwrap());
            target = up.download(&buffer, kept).unwrap().wait().unwrap();
        }));
        assert!(target[..] == source[..], "pinned copies differ");
        times[2].push(time(|| up.upload_slice(&plain, &mut buffer).unwrap()));
        times[3].push(time(|| {
            up.download_slice(&buffer, &mut plain_target).unwrap()
        }));
        assert!(plain_target == plain, "pageable copies differ");
        host.scope(|scope| {
            let registered = scope.register(&plain);
            times[4].push(time(|| up.upload_slice(&registered, &mut buffer).unwrap()));
        });
        host.scope(|scope| {
            let mut registered = scope.register_mut(&mut plain_target);
            times[5].push(time(|| {
                up.download_slice(&buffer, &mut registered).unwrap()
            }));
        });
        assert!(plain_target == plain, "registered copies differ");
        times[6].push(time(|| {
            let a = std::mem::replace(&mut source, host.pinned("none", 0).unwrap());
            let b = std::mem::replace(&mut target, host.pinned("none", 0).unwrap());
            let one = up.upload(a, &mut buffer).unwrap();
            let two = down.download(&other, b).unwrap();
            (source, target) = (one.wait().unwrap(), two.wait().unwrap());
        }));
    }
    let names = [
        "pinned up",
        "pinned down",
        "pageable up",
        "pageable down",
        "registered up",
        "registered down",
        "pinned both ways at once, in all",
    ];
    for (index, (name, times)) in names.into_iter().zip(times).enumerate() {
        bench.rate(name, if index == 6 { 2 * bytes } else { bytes }, times);
    }
}

/// What cutting a copy at registration borders costs: one range, registered in 64 parts.
fn borders(bench: &mut Bench, bytes: u64, rounds: usize) {
    let device = bench.device.clone();
    let stream = device.stream("borders").unwrap();
    let plain = vec![3_u8; bytes as usize];
    let mut buffer: DeviceBuf<u8> = device.alloc("buffer", plain.len(), &stream).unwrap();
    let times = device.host().scope(|scope| {
        let _parts: Vec<_> = plain
            .chunks(plain.len().div_ceil(64))
            .map(|part| scope.register(part))
            .collect();
        (0..rounds)
            .map(|_| time(|| stream.upload_slice(&plain, &mut buffer).unwrap()))
            .collect()
    });
    bench.rate("registered up, cut at 64 borders", bytes, times);
}
