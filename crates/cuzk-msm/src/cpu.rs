//! Which code does the additions on this processor.

use cuzk_field::CurveField;

use crate::pair_tree::Sums;
use crate::portable::Portable;

/// The scratch of one worker.
pub(crate) fn sums<F: CurveField>() -> Box<dyn Sums<F>> {
    vector_sums().unwrap_or_else(|| Box::new(Portable::default()))
}

/// `CUZK_CPU=portable` in the environment leaves the vector instructions alone, for tests and for
/// comparison. It is read once.
#[cfg(target_arch = "x86_64")]
fn vector_sums<F: CurveField>() -> Option<Box<dyn Sums<F>>> {
    static IS_PORTABLE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let is_portable = IS_PORTABLE
        .get_or_init(|| std::env::var_os("CUZK_CPU").is_some_and(|value| value == "portable"));
    if *is_portable {
        None
    } else {
        crate::ifma::sums()
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn vector_sums<F: CurveField>() -> Option<Box<dyn Sums<F>>> {
    None
}
