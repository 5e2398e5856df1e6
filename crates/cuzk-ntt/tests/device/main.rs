//! Transforms on a device against the CPU's, arkworks and polynomials evaluated by hand: on the
//! emulator at small sizes, and on the card where there is one.
//!
//! `CUZK_REQUIRE_GPU=1` makes a missing card a failure; with `CUZK_SANITIZER` set, sizes on the card are such that
//! compute-sanitizer gets through them.

mod cosets;
mod hostile;
mod large;
mod memory;
mod properties;
mod quotient;
mod refusals;
mod rig;
mod transforms;
mod twin;
