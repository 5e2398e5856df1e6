//! The gate before tests that want a GPU.

use std::fmt::Display;
use std::io::Write as _;
use std::sync::Once;

/// Says, once a process and past the capture of tests' output, that tests of a GPU are skipped.
///
/// # Panics
/// With `CUZK_REQUIRE_GPU=1` in the environment: then a missing GPU is a failure.
pub fn no_gpu(reason: &dyn Display) {
    static SAID: Once = Once::new();
    assert!(
        std::env::var("CUZK_REQUIRE_GPU").as_deref() != Ok("1"),
        "CUZK_REQUIRE_GPU=1 and no GPU: {reason}"
    );
    SAID.call_once(|| {
        let mut stderr = std::io::stderr();
        // Where nobody listens there is nothing to say.
        let _ = writeln!(stderr, "tests on a GPU are skipped: {reason}");
    });
}

/// Writes a test of each function named, on the emulated device and on a card where there is one.
///
/// The functions take `&Rig`; a `Rig` in scope has `emulated() -> Rig` and `card() -> Option<Rig>`, which
/// calls [`no_gpu`] where there is none.
#[macro_export]
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod emulator {
            $(#[test] fn $name() { super::$name(&super::Rig::emulated()); })*
        }
        mod card {
            $(#[test] fn $name() {
                if let Some(rig) = super::Rig::card() {
                    super::$name(&rig);
                }
            })*
        }
    };
}
