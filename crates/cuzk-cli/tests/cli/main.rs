//! The binary as users and scripts meet it: exit codes, both streams, and which files are left.
//!
//! Comments name the case of other provers' users that a test stands for (WP, FI, GP, CS).
#![allow(
    missing_docs,
    unreachable_pub,
    reason = "one test binary; its modules share helpers"
)]

mod batch;
mod files;
mod gpu;
mod hostile;
mod inspect;
mod keys;
mod memory;
mod outputs;
mod prepare;
mod prove;
mod run;
mod signals;
mod synth;
mod timeline;
mod usage;
mod verify;
