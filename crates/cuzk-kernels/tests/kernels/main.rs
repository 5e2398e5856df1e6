//! Field and curve kernels against arkworks: once on the emulator, and on the card where there is one.
//!
//! `CUZK_REQUIRE_GPU=1` makes a missing card a failure. On a card each operation sees a million
//! elements, on the emulator thousands.

mod chains;
mod curve;
mod field;
mod rig;
mod values;

use cuzk_kernels::self_test;

use chains::{chains, gathered_sums};
use curve::{g1_operations, g2_operations};
use field::{
    every_length, fp_lazy_operations, fp_operations, fp2_operations, fr_lazy_operations,
    fr_operations,
};
use rig::Rig;

cuzk_testkit::on_both!(
    known_answers,
    fr_operations,
    fr_lazy_operations,
    fp_operations,
    fp_lazy_operations,
    fp2_operations,
    g1_operations,
    g2_operations,
    every_length,
    chains,
    gathered_sums,
);

fn known_answers(rig: &Rig) {
    let passed = self_test(&*rig.launcher).unwrap();
    assert!(passed.passed.len() >= 8, "{passed:?}");
}
