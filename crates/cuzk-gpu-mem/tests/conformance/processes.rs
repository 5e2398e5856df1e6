//! More than one process: side by side on one card, and after a fork.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cuzk_gpu_mem::driver::{CudaDriver, Driver};
use cuzk_gpu_mem::{Device, Error, PoolSettings, Settings, StagingRequest};

use crate::rig::{Rig, UNITS, say};

/// Set for the processes that `two_processes_on_one_card_both_finish` starts: the unit in bytes.
const CHILD: &str = "CUZK_TEST_CHILD_UNIT";

/// Starts one of the ignored tests in a process of its own; `key` is what makes it run.
pub(crate) fn start(test: &str, key: &str, value: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env(key, value.to_string())
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

/// Ten jobs of 4 + 8 units. A job that is refused memory after its admission, because another
/// process took it meanwhile, lets go of what it has staged and comes again: two that wait with
/// memory in hand would wait for each other.
fn jobs(device: &Device, unit: u64) {
    for job in 0..10 {
        let tries = (0..2000).position(|_| match one_job(device, unit) {
            Ok(()) => true,
            Err(Error::OutOfMemory(_)) => {
                let jitter = u64::from(std::process::id()) % 7;
                std::thread::sleep(Duration::from_millis(3 + jitter));
                false
            }
            Err(other) => panic!("{other}"),
        });
        assert!(tries.is_some(), "job {job} never got its memory");
    }
}

fn one_job(device: &Device, unit: u64) -> Result<(), Error> {
    let rows = [StagingRequest {
        label: "d_a",
        bytes: 4 * unit,
    }];
    let stream = device.stream("upload")?;
    let mut admission = device.admit("rows", &rows, 8 * unit, Duration::from_secs(100))?;
    let staged = admission.stage::<u8>("d_a", 4 * unit as usize, &stream)?;
    device.compute_admitted(admission, None, |cx| -> Result<(), Error> {
        let mut rows = match staged {
            Some(staged) => cx.enter(staged)?,
            None => cx.alloc("d_a", 4 * unit as usize)?,
        };
        let mut scratch = cx.alloc_zeroed::<u8>("scratch", 8 * unit as usize)?;
        cx.stream().fill(&mut rows, 1)?;
        cx.stream()
            .copy(&rows, scratch.view_mut().slice(..4 * unit as usize))
    })?
}

/// Each of two processes plans for twelve of sixteen units; both finish. (GP-21)
pub(crate) fn two_processes_on_one_card_both_finish(rig: &Rig) {
    if let Some(sim) = &rig.sim {
        // The other process, as seen from here: it takes twelve and gives them back, in turns.
        let device = rig.device_with(|settings| rig.shared(settings));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for turn in (0_u64..).take_while(|_| !done.load(Ordering::Acquire)) {
                    sim.set_tenants(if turn % 2 == 0 { 12 * rig.unit } else { 0 });
                    std::thread::sleep(Duration::from_millis(3));
                }
            });
            jobs(&device, rig.unit);
            done.store(true, Ordering::Release);
        });
        assert_eq!(
            rig.info().pool_reserved,
            0,
            "nothing is kept from the other"
        );
        return;
    }
    // Two contexts take memory of their own: half a unit of reserve covers it.
    let children = [(); 2].map(|()| start("processes::child_process", CHILD, rig.unit));
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    say("  two processes, each 12 of 16, ten jobs: both finished");
}

/// Not a test of its own: what the two processes run.
#[test]
#[ignore = "run by two_processes_on_one_card_both_finish"]
fn child_process() {
    let Ok(unit) = std::env::var(CHILD) else {
        return;
    };
    let unit: u64 = unit.parse().unwrap();
    let driver = CudaDriver::open(0, PoolSettings::default()).unwrap();
    driver.set_release_threshold(u64::MAX).unwrap();
    let settings = Settings {
        limit: Some(UNITS * unit),
        reserve: unit / 4,
        sharing: cuzk_gpu_mem::Sharing::Shared,
        wait_for_memory: Duration::from_millis(50),
        ..Settings::default()
    };
    jobs(&Device::with_driver(driver, settings).unwrap(), unit);
}

/// A child of a process that has opened the device is told so by every call. (GP-06)
pub(crate) fn a_forked_child_is_refused(rig: &Rig) {
    #[cfg(unix)]
    {
        let device = rig.device();
        let stream = device.stream("main").unwrap();
        let buffer = device.alloc::<u64>("key", 8, &stream).unwrap();
        let real = rig.sim.is_none();
        // SAFETY: the child checks, drops, and leaves with _exit; it waits for no lock.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let refused = matches!(device.check(), Err(Error::Forked { .. }))
                && matches!(stream.synchronize(), Err(Error::Forked { .. }))
                && (!real
                    || matches!(
                        cuzk_gpu_mem::list(),
                        Err(cuzk_gpu_mem::Unavailable::Forked { .. })
                    ));
            drop((buffer, stream, device));
            // SAFETY: leaves the child without running the parent's handlers.
            unsafe { libc::_exit(if refused { 17 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), 17);
        stream.synchronize().unwrap();
    }
}
