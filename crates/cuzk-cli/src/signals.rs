//! SIGINT, SIGTERM and SIGHUP at any stage: unfinished outputs are removed, then the process ends with
//! 128 + the signal's number. Of many proofs, the first signal ends after those that have been begun.
//! A limit on file sizes is no signal here but an error of the write.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::exit::Exit;

/// Whether the first signal is only noted.
static DRAINS: AtomicBool = AtomicBool::new(false);
/// The signal that was noted; 0 is none.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// From now on the first signal is noted, and the second ends the process.
pub(crate) fn drain_at_first() {
    DRAINS.store(true, Ordering::Release);
}

/// The exit that a noted signal asks for.
pub(crate) fn received() -> Option<Exit> {
    match RECEIVED.load(Ordering::Acquire) {
        0 => None,
        1 => Some(Exit::HungUp),
        2 => Some(Exit::Interrupted),
        _ => Some(Exit::Terminated),
    }
}

/// Starts the thread that waits for signals.
#[cfg(unix)]
pub(crate) fn install() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::iterator::Signals;

    // With a handler, whatever it does, writing beyond the limit fails and does not kill.
    signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default())?;
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    // Started under nohup, the process is to outlive its terminal.
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                if DRAINS.load(Ordering::Acquire) && RECEIVED.swap(signal, Ordering::AcqRel) == 0 {
                    tracing::warn!("no more proofs are begun; another signal ends at once");
                    continue;
                }
                // Held until the end, so that no output is renamed into place any more.
                let _pending = crate::output::discard_pending();
                #[expect(
                    clippy::exit,
                    reason = "the signal asks for it, whatever runs elsewhere"
                )]
                std::process::exit(128 + signal);
            }
        })
        .map(drop)
}

/// Whether the process was started with the signal ignored; where the system does not say, so it is taken.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return true;
    };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on unix")]
pub(crate) fn install() -> io::Result<()> {
    Ok(())
}
