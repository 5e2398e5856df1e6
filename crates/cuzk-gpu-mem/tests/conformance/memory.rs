//! Pending, cached and given-back bytes, step by step; and what our layer makes of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cuzk_gpu_mem::driver::{AllocKind, Code, DevicePtr, Point, SimDriver, StreamId};
use cuzk_gpu_mem::{Error, MIB, Priority, StagingRequest, TrimPolicy};

use crate::rig::{Rig, UNITS, say};

/// Raw calls, as a program without this crate would make them.
struct Raw<'a> {
    rig: &'a Rig,
    stream: StreamId,
}

impl Raw<'_> {
    fn new(rig: &Rig, threshold: u64) -> Raw<'_> {
        rig.driver.set_release_threshold(threshold).unwrap();
        rig.driver.trim(0).unwrap();
        Raw {
            rig,
            stream: rig.driver.create_stream(Priority::Normal).unwrap(),
        }
    }

    fn alloc(&self, kind: AllocKind, units: u64) -> Result<DevicePtr, Code> {
        // SAFETY: the stream is live.
        unsafe {
            self.rig
                .driver
                .alloc(kind, units * self.rig.unit, self.stream)
        }
        .map_err(|error| error.code)
    }

    fn free(&self, kind: AllocKind, block: DevicePtr) {
        // SAFETY: each test frees its blocks once, and no work uses them.
        unsafe { self.rig.driver.free(kind, block, self.stream) }.unwrap();
    }

    fn synchronize(&self) {
        // SAFETY: the stream is live.
        unsafe { self.rig.driver.wait(Point::Stream(self.stream)) }.unwrap();
    }

    /// Until the stream is idle, of which the memory's books are told nothing.
    fn poll(&self) {
        // SAFETY: the stream is live.
        while !unsafe { self.rig.driver.query(Point::Stream(self.stream)) }.unwrap() {}
    }

    /// Compares free, pool reserved and pool used with the model, in units.
    fn expect(&self, step: &str, expected: [u64; 3]) {
        let info = self.rig.info();
        let units = |bytes| self.rig.units(bytes);
        let seen = [info.free, info.pool_reserved, info.pool_used].map(units);
        say(&format!(
            "  {step:<44} free {:>4} reserved {:>4} used {:>4}",
            seen[0], seen[1], seen[2]
        ));
        assert_eq!(seen, expected.map(|units| units as f64), "{step}");
    }
}

/// Work on a stream that lasts until this is dropped.
struct Busy {
    is_over: Arc<AtomicBool>,
    held: Option<(Arc<SimDriver>, StreamId)>,
}

impl Busy {
    fn on(rig: &Rig, stream: StreamId) -> Self {
        let busy = Self {
            is_over: Arc::default(),
            held: rig.sim.clone().map(|sim| (sim, stream)),
        };
        match &busy.held {
            Some((sim, stream)) => sim.hold(*stream),
            None => {
                let is_over = Arc::clone(&busy.is_over);
                let work = move || {
                    while !is_over.load(Ordering::Acquire) {
                        std::thread::sleep(Duration::from_micros(100));
                    }
                };
                // SAFETY: the stream is live, and what the work touches is its own.
                unsafe { rig.driver.enqueue(stream, Box::new(work)) }.unwrap();
            }
        }
        busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some((sim, stream)) = &self.held {
            sim.release(*stream);
        }
    }
}

impl Drop for Raw<'_> {
    fn drop(&mut self) {
        // SAFETY: the stream is live and dead afterwards.
        unsafe {
            let _ = self.rig.driver.wait(Point::Device);
            let _ = self.rig.driver.destroy_stream(self.stream);
        }
        let _ = self.rig.driver.trim(0);
    }
}

use AllocKind::{StreamOrdered, Synchronous};

pub(crate) fn steps_with_threshold_zero(rig: &Rig) {
    let raw = Raw::new(rig, 0);
    raw.expect("nothing", [16, 0, 0]);
    let block = raw.alloc(StreamOrdered, 6).unwrap();
    raw.expect("6 stream-ordered", [10, 6, 6]);
    raw.free(StreamOrdered, block);
    raw.expect("freed, not synchronised", [10, 6, 0]);
    assert_eq!(raw.alloc(Synchronous, 12), Err(Code::OUT_OF_MEMORY));
    raw.synchronize();
    raw.expect("synchronised: given back", [16, 0, 0]);
    let plain = raw.alloc(Synchronous, 12).unwrap();
    raw.expect("12 plain", [4, 0, 0]);
    raw.free(Synchronous, plain);
    raw.expect("12 plain, freed", [16, 0, 0]);
    holes(&raw, [10, 6, 6]);
}

pub(crate) fn steps_with_threshold_at_the_maximum(rig: &Rig) {
    let raw = Raw::new(rig, u64::MAX);
    raw.expect("nothing", [16, 0, 0]);
    let block = raw.alloc(StreamOrdered, 6).unwrap();
    raw.expect("6 stream-ordered", [10, 6, 6]);
    raw.free(StreamOrdered, block);
    raw.expect("freed, not synchronised", [10, 6, 0]);
    assert_eq!(raw.alloc(Synchronous, 12), Err(Code::OUT_OF_MEMORY));
    raw.synchronize();
    raw.expect("synchronised: cached", [10, 6, 0]);
    rig.driver.trim(0).unwrap();
    raw.expect("trimmed", [16, 0, 0]);
    let block = raw.alloc(StreamOrdered, 6).unwrap();
    raw.free(StreamOrdered, block);
    raw.synchronize();
    let plain = raw.alloc(Synchronous, 12).unwrap();
    raw.expect("12 plain, with 6 cached: all taken back", [4, 0, 0]);
    raw.free(Synchronous, plain);
    raw.expect("12 plain, freed", [16, 0, 0]);
    rig.driver.trim(0).unwrap();
    // A query that finds the free done does not make it available; waiting does.
    let block = raw.alloc(StreamOrdered, 6).unwrap();
    raw.free(StreamOrdered, block);
    raw.poll();
    rig.driver.trim(0).unwrap();
    raw.expect("freed, queried, trimmed: still pending", [10, 6, 0]);
    raw.synchronize();
    rig.driver.trim(0).unwrap();
    raw.expect("freed, synchronised, trimmed", [16, 0, 0]);
    // The same stream reuses what is pending on it.
    let block = raw.alloc(StreamOrdered, 12).unwrap();
    raw.free(StreamOrdered, block);
    let block = raw.alloc(StreamOrdered, 12).unwrap();
    raw.expect("12 freed and 12 allocated on one stream", [4, 12, 12]);
    raw.free(StreamOrdered, block);
    raw.synchronize();
    rig.driver.trim(0).unwrap();
    holes(&raw, [4, 12, 6]);
}

/// A free behind work that runs: the block is none of those in use. Plans made meanwhile count what a section holds as what
/// will be given back, freed or not.
pub(crate) fn a_section_gives_back_what_it_holds_and_has_freed(rig: &Rig) {
    {
        let raw = Raw::new(rig, u64::MAX);
        let block = raw.alloc(StreamOrdered, 6).unwrap();
        let busy = Busy::on(rig, raw.stream);
        raw.free(StreamOrdered, block);
        raw.expect("6 freed behind work", [10, 6, 0]);
        drop(busy);
        raw.synchronize();
    }
    let device = rig.device();
    let stream = device.stream("main").unwrap();
    let room = || rig.units(device.room().unwrap());
    let whole = UNITS as f64 - 0.5;
    assert_eq!(room(), whole);
    let plain = device.alloc_with::<u64>("plain", rig.len(3), Synchronous, &stream);
    assert_eq!(room(), whole - 3.0);
    let section = device.compute(|cx| {
        let mut scratch = cx.alloc::<u64>("scratch", rig.len(6)).unwrap();
        scratch.mark_secret();
        assert_eq!(room(), whole - 3.0, "a section gives all back");
        let busy = Busy::on(rig, cx.stream().id());
        drop(scratch);
        assert_eq!(room(), whole - 3.0, "and what it has freed already, too");
        drop(busy);
    });
    section.unwrap();
    drop(plain);
    device.trim(TrimPolicy::Streams).unwrap();
    assert_eq!(room(), whole);
}

/// Twelve blocks of one unit, every second freed: the holes serve both allocators.
fn holes(raw: &Raw<'_>, freed: [u64; 3]) {
    let blocks: Vec<_> = (0..12)
        .map(|_| raw.alloc(StreamOrdered, 1).unwrap())
        .collect();
    raw.expect("12 x 1 stream-ordered", [4, 12, 12]);
    for block in blocks.iter().step_by(2) {
        raw.free(StreamOrdered, *block);
    }
    raw.synchronize();
    raw.expect("every second freed", freed);
    let plain = raw.alloc(Synchronous, 8).unwrap();
    raw.expect("8 plain", [2, 6, 6]);
    raw.free(Synchronous, plain);
    let large = raw.alloc(StreamOrdered, 8).unwrap();
    raw.expect("8 stream-ordered instead", [2, 14, 14]);
    raw.free(StreamOrdered, large);
    for block in blocks.iter().skip(1).step_by(2) {
        raw.free(StreamOrdered, *block);
    }
    raw.synchronize();
    raw.rig.driver.trim(0).unwrap();
    raw.expect("all freed, trimmed", [16, 0, 0]);
}

/// The fault that kills provers, by raw calls; and the same by ours.
pub(crate) fn the_phantom_out_of_memory_is_real_and_gone(rig: &Rig) {
    {
        let raw = Raw::new(rig, u64::MAX);
        let block = raw.alloc(StreamOrdered, 6).unwrap();
        raw.free(StreamOrdered, block);
        assert_eq!(raw.alloc(Synchronous, 12), Err(Code::OUT_OF_MEMORY));
        say("  raw: 6 freed, nothing else alive, 12 of 16 refused");
    }
    let device = rig.device();
    let stream = device.stream("main").unwrap();
    drop(device.alloc::<u64>("first", rig.len(6), &stream).unwrap());
    let usable = rig.units(device.usable().unwrap());
    assert_eq!(
        usable,
        UNITS as f64 - 0.5,
        "cached and pending bytes count as usable"
    );
    let second = device
        .alloc_with::<u64>("second", rig.len(12), Synchronous, &stream)
        .unwrap();
    assert_eq!(rig.units(second.bytes()), 12.0);
    assert_eq!(rig.units(device.mem_info().unwrap().obtainable()), 4.0);
    // And the other way round: stream-ordered after plain.
    drop(second);
    let third = device.alloc::<u64>("third", rig.len(15), &stream).unwrap();
    assert_eq!(device.budget().state().held(), third.bytes());
}

/// Bytes cached in our pool are had by other pools and plain allocations of the process.
pub(crate) fn a_pool_of_ones_own_gives_way_to_plain_allocations(rig: &Rig) {
    let raw = Raw::new(rig, u64::MAX);
    let block = raw.alloc(StreamOrdered, 10).unwrap();
    raw.free(StreamOrdered, block);
    raw.synchronize();
    raw.expect("10 cached", [6, 10, 0]);
    let plain = raw.alloc(Synchronous, 12).unwrap();
    raw.expect("12 plain: all taken back", [4, 0, 0]);
    raw.free(Synchronous, plain);
}

pub(crate) fn a_thousand_cycles_leave_memory_flat(rig: &Rig) {
    let device = rig.device();
    let stream = device.stream("main").unwrap();
    let mut first = None;
    for cycle in 0..1000_u64 {
        // Small blocks in most cycles; ninety per cent of the card in every hundredth.
        let bytes = if cycle % 100 == 0 {
            device.usable().unwrap() / 10 * 9
        } else {
            (cycle * 37 % 64 + 1) * MIB
        };
        let kind = if cycle % 3 == 0 {
            Synchronous
        } else {
            StreamOrdered
        };
        let staged = device.stage::<u8>("staged", 1 << 16, &stream).unwrap();
        let block = device
            .alloc_with::<u8>("block", bytes as usize, kind, &stream)
            .unwrap();
        drop(block);
        device
            .compute(|cx| {
                let entered = cx.enter(staged).unwrap();
                let scratch = cx.alloc::<u8>("scratch", 1 << 20).unwrap();
                (entered.len(), scratch.len())
            })
            .unwrap();
        if cycle % 100 == 99 {
            let report = device.trim(TrimPolicy::Streams).unwrap();
            let free = *first.get_or_insert(report.after.free);
            assert_eq!(report.after.free, free, "cycle {cycle}");
            assert_eq!(device.budget().state().held(), 0, "cycle {cycle}");
        }
    }
    assert_eq!(rig.units(first.unwrap()), rig.units(rig.empty));
    say(&format!(
        "  1000 cycles: free {} MiB throughout",
        first.unwrap() / MIB
    ));
}

/// Two workers, each 4 + 8 of 16, ten jobs each, with uploads and real work.
pub(crate) fn two_workers_share_the_card(rig: &Rig) {
    let device = rig.device();
    if let Some(sim) = &rig.sim {
        sim.set_info_latency(Duration::from_millis(2)); // a card answers in its own time, too
    }
    let bytes = 2 * rig.unit;
    let rows = [
        StagingRequest {
            label: "d_a",
            bytes,
        },
        StagingRequest {
            label: "d_b",
            bytes,
        },
    ];
    let job = |worker: u64| {
        let upload = device.stream("upload").unwrap();
        let patience = Duration::from_secs(60);
        let mut admission = device.admit("rows", &rows, 8 * rig.unit, patience).unwrap();
        let mut fill = |label| {
            let staged = admission.stage::<u64>(label, rig.len(2), &upload).unwrap();
            staged.map(|mut staged| {
                let source = device.host().pinned_from(label, &[worker; 1024]).unwrap();
                drop(staged.upload(0, source).unwrap());
                staged
            })
        };
        let staged = [fill("d_a"), fill("d_b")];
        device
            .compute_admitted(admission, None, |cx| {
                let rows = staged.map(|staged| match staged {
                    Some(staged) => cx.enter(staged).unwrap(),
                    None => {
                        let mut late = cx.alloc::<u64>("late", rig.len(2)).unwrap();
                        let target = late.view_mut().slice(..1024);
                        cx.stream().upload_slice(&[worker; 1024], target).unwrap();
                        late
                    }
                });
                let scratch = cx.alloc_zeroed::<u64>("scratch", rig.len(8)).unwrap();
                let mut seen = [0; 1024];
                for row in &rows {
                    cx.stream()
                        .download_slice(row.view().slice(..1024), &mut seen)
                        .unwrap();
                    assert_eq!(seen, [worker; 1024]);
                }
                cx.stream()
                    .download_slice(scratch.view().slice(..1024), &mut seen)
                    .unwrap();
                assert_eq!(seen, [0; 1024]);
            })
            .unwrap();
    };
    std::thread::scope(|scope| {
        for worker in 1..=2 {
            scope.spawn(move || (0..10).for_each(|_| job(worker)));
        }
    });
    let state = device.budget().state();
    assert_eq!(state.held(), 0);
    assert!(state.peak_committed <= state.limit, "{state:?}");
    say(&format!(
        "  peak committed {} of {}",
        rig.units(state.peak_committed),
        rig.units(state.limit)
    ));
}

/// Others hold most of the card: refused with figures; works when they have gone.
pub(crate) fn a_full_card_refuses_and_then_works(rig: &Rig) {
    let device = rig.device_with(|settings| settings.limit = None);
    let stream = device.stream("main").unwrap();
    for _ in 0..5 {
        // The raw call below would meet our pending free, as raw calls do.
        device.trim(TrimPolicy::Streams).unwrap();
        let raw = Raw::new(rig, u64::MAX);
        let other = raw.alloc(Synchronous, 13).unwrap();
        let refused = device.alloc::<u64>("plan", rig.len(6), &stream);
        let Err(Error::OutOfMemory(report)) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(rig.units(report.free + report.cached), 3.0);
        raw.free(Synchronous, other);
        drop(raw);
        drop(device.alloc::<u64>("plan", rig.len(6), &stream).unwrap());
    }
}

/// What a secret block held is gone from the bytes that come next.
pub(crate) fn secrets_are_wiped(rig: &Rig) {
    let device = rig.device();
    let stream = device.stream("main").unwrap();
    let len = rig.len(15);
    let mut secret = device.alloc::<u64>("witness", len, &stream).unwrap();
    let pattern = [0x5ec2_e75e_c2e7_5ec2_u64; 4096];
    let spots = [0, len / 3, len - 4096];
    for start in spots {
        stream
            .upload_slice(&pattern, secret.view_mut().slice(start..start + 4096))
            .unwrap();
    }
    secret.mark_secret();
    drop(secret);
    // Fifteen of sixteen again: the same bytes.
    let next = device.alloc::<u64>("next", len, &stream).unwrap();
    let mut seen = [1; 4096];
    for start in spots {
        stream
            .download_slice(next.view().slice(start..start + 4096), &mut seen)
            .unwrap();
        assert_ne!(seen[..8], pattern[..8]);
    }
}
