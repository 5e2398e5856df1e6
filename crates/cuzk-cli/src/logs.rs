//! Logs on stderr.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::args::LogArgs;
use crate::exit::Failure;

/// Starts logging. `-v` adds to the filter.
pub(crate) fn start(args: &LogArgs) -> Result<(), Failure> {
    let more = match args.verbose {
        0 => None,
        1 => Some("info"),
        2 => Some("debug"),
        _ => Some("trace"),
    };
    let text = more.unwrap_or(&args.log);
    let filter = parse(text).map_err(|error| Failure::Usage(format!("--log {text}: {error}")))?;
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

/// A filter. A word without `=` must be a level: as the name of a module it would turn all logs off.
fn parse(text: &str) -> Result<EnvFilter, String> {
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    let is_known = |word: &str| {
        word.contains('=')
            || levels
                .iter()
                .any(|level| level.eq_ignore_ascii_case(word.trim()))
    };
    if let Some(word) = text.split(',').find(|word| !is_known(word)) {
        let levels = levels.join(", ");
        return Err(format!("\"{word}\" is no level; there are {levels}"));
    }
    EnvFilter::try_new(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::parse;

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
