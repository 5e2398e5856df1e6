//! What wrappers ask of the lengths of arrays and of counts.

use crate::error::{Error, Result};

fn wrong(entry: &'static str, what: &'static str, expected: usize, found: usize) -> Result<()> {
    Err(Error::Length {
        entry,
        what,
        expected,
        found,
    })
}

/// [`Error::Length`] unless both are the same.
pub(crate) fn exactly(
    entry: &'static str,
    what: &'static str,
    expected: usize,
    found: usize,
) -> Result<()> {
    if found == expected {
        Ok(())
    } else {
        wrong(entry, what, expected, found)
    }
}

/// [`Error::Length`] below `least`.
pub(crate) fn at_least(
    entry: &'static str,
    what: &'static str,
    least: usize,
    found: usize,
) -> Result<()> {
    if found >= least {
        Ok(())
    } else {
        wrong(entry, what, least, found)
    }
}

/// [`Error::Length`] above `most`.
pub(crate) fn at_most(
    entry: &'static str,
    what: &'static str,
    most: usize,
    found: usize,
) -> Result<()> {
    if found <= most {
        Ok(())
    } else {
        wrong(entry, what, most, found)
    }
}
