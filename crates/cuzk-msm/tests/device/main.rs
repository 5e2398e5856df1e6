//! Sums on the device against sums one by one, on the emulator and on the card where there is one.
//!
//! `CUZK_REQUIRE_GPU=1` makes a missing card a failure.

mod accumulate;
mod dense;
mod fixed_base;
mod multiples;
mod order;
mod reduce;
mod sparse;
mod values;

use cuzk_testkit::device as rig;
