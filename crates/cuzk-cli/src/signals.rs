//! SIGINT and SIGTERM at any stage: unfinished outputs are removed, then the process ends with
//! 128 + the signal's number. Of many proofs, the first signal ends after those that have been begun.

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
        2 => Some(Exit::Interrupted),
        _ => Some(Exit::Terminated),
    }
}

/// Starts the thread that waits for signals.
#[cfg(unix)]
pub(crate) fn install() -> io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let mut signals = Signals::new([SIGINT, SIGTERM])?;
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

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on unix")]
pub(crate) fn install() -> io::Result<()> {
    Ok(())
}
