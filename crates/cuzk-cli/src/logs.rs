//! Logs on stderr.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::args::LogArgs;
use crate::exit::Failure;

/// Starts logging. `-v` raises the level of what the filter says nothing else of.
pub(crate) fn start(args: &LogArgs) -> Result<(), Failure> {
    let more = match args.verbose {
        0 => None,
        1 => Some("info"),
        2 => Some("debug"),
        _ => Some("trace"),
    };
    let text = &args.log;
    let refuse = |error| Failure::Usage(format!("--log {text}: {error}"));
    let filter = parse(text)
        .and_then(|filter| match more {
            Some(level) if is_quieter(text, level) => parse(&format!("{text},{level}")),
            _ => Ok(filter),
        })
        .map_err(refuse)?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time();
    // Without the last line a log that cannot be written would panic where stderr is closed.
    let _ = tracing::subscriber::set_global_default(subscriber.log_internal_errors(false).finish());
    Ok(())
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

fn level(word: &str) -> Option<usize> {
    LEVELS
        .iter()
        .position(|level| level.eq_ignore_ascii_case(word.trim()))
}

/// Whether a filter's own level, that of everything which it does not name, is below `other`.
fn is_quieter(text: &str, other: &str) -> bool {
    let own = text.split(',').filter_map(level).next_back();
    own < level(other)
}

/// A filter. A word without `=` must be a level: as the name of a module it would turn all logs off.
fn parse(text: &str) -> Result<EnvFilter, String> {
    let is_known = |word: &str| word.contains('=') || level(word).is_some();
    if let Some(word) = text.split(',').find(|word| !is_known(word)) {
        let levels = LEVELS.join(", ");
        return Err(format!("\"{word}\" is no level; there are {levels}"));
    }
    EnvFilter::try_new(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::{is_quieter, parse};

    #[test]
    fn more_is_never_less() {
        assert!(is_quieter("warn", "info"));
        assert!(is_quieter("cuzk_groth16=debug", "info"));
        assert!(is_quieter("warn,cuzk_groth16=trace", "debug"));
        assert!(!is_quieter("trace", "info"));
        assert!(!is_quieter("INFO", "info"));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["warn", "INFO", "warn,cuzk_groth16=debug"] {
            assert!(parse(text).is_ok(), "{text}");
        }
        for text in ["", "loud", "warn,x", "cuzk=loud"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
