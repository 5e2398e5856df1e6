//! `CUZK_*` variables: which are ours, and what a user may have meant.

use std::io::Write as _;

use clap::error::{ContextKind, ContextValue};

use crate::args;
use crate::exit::Failure;

/// Variables that the libraries and their tests read, with no flag of the same meaning.
const OF_LIBRARIES: [&str; 5] = [
    CPU,
    "CUZK_KERNELS",
    "CUZK_EMULATOR_SEED",
    "CUZK_REQUIRE_GPU",
    "CUZK_FIXTURES",
];
/// Which code computes on the host.
const CPU: &str = "CUZK_CPU";

/// Refuses values that would be ignored, and warns of variables that are nearly one of ours and hence
/// have no effect.
pub(crate) fn check() -> Result<(), Failure> {
    if let Some(value) = std::env::var_os(CPU).filter(|value| value != "portable") {
        return Err(Failure::Usage(format!(
            "{CPU}={}: the only value is portable, which leaves the processor's vector instructions alone",
            value.display()
        )));
    }
    warn_of_typos();
    Ok(())
}

fn warn_of_typos() {
    let mut known = args::variables();
    known.extend(OF_LIBRARIES.map(str::to_owned));
    for (name, _) in std::env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        if !name.starts_with("CUZK_") || known.iter().any(|known| known == name) {
            continue;
        }
        if let Some(near) = nearest(name, &known) {
            tracing::warn!("the environment variable {name} has no effect; is {near} meant?");
        }
    }
}

/// The known name at most two edits away.
fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    known
        .iter()
        .map(|known| (edits(name, known), known.as_str()))
        .filter(|(edits, _)| *edits <= 2)
        .min()
        .map(|(_, known)| known)
}

/// The Levenshtein distance.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Says where a refused value comes from, when it is not on the command line.
pub(crate) fn explain(error: &clap::Error) {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else {
        return;
    };
    let Some(variable) = args::variable_of(flag) else {
        return;
    };
    if std::env::var(&variable).is_ok_and(|set| set == *value) {
        let _ = writeln!(
            std::io::stderr(),
            "The value comes from the environment variable {variable}."
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_nearby_are_found() {
        let known = ["CUZK_LOG".to_owned(), "CUZK_THREADS".to_owned()];
        assert_eq!(nearest("CUZK_THREAD", &known), Some("CUZK_THREADS"));
        assert_eq!(nearest("CUZK_TRHEADS", &known), Some("CUZK_THREADS"));
        assert_eq!(nearest("CUZK_LGO", &known), Some("CUZK_LOG"));
        assert_eq!(nearest("CUZK_REQUIRE_GPU", &known), None);
    }

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("same", "same"), 0);
    }
}
