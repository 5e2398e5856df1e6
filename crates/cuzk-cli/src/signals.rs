//! SIGINT and SIGTERM at any stage: unfinished outputs are removed, then the process ends with
//! 128 + the signal's number.

use std::io;

/// Starts the thread that waits for signals.
#[cfg(unix)]
pub(crate) fn install() -> io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            if let Some(signal) = signals.forever().next() {
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
