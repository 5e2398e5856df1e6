//! Proofs on the emulated device, and on a card where there is one.

use std::sync::RwLock;

use cuzk_field::Fr;
use cuzk_gpu_mem::GIB;
use cuzk_groth16::device::Gpu;
use cuzk_groth16::{Blinding, ProveOptions};
use cuzk_testkit::device;

fn emulated() -> Gpu {
    Gpu::new(&device::emulated(2 * GIB)).unwrap()
}

fn card() -> Option<Gpu> {
    Some(Gpu::new(&device::card()?).unwrap())
}

/// Held by a test that wants the card, and the process's pinned memory, for itself.
static CARD: RwLock<()> = RwLock::new(());

/// Writes a test for each device from a function of one; the second argument says whether it is a card.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod emulator {
            $(#[test] fn $name() { super::$name(&crate::emulated(), false); })*
        }
        mod on_card {
            $(#[test] fn $name() {
                let _running = crate::CARD.read();
                if let Some(gpu) = crate::card() {
                    super::$name(&gpu, true);
                }
            })*
        }
    };
}

mod cases;
mod memory;
mod proofs;
#[path = "../small/mod.rs"]
mod small;

fn fixed() -> ProveOptions {
    let (r, s) = (Fr::from(11).pow(4321), Fr::from(13).pow(1234));
    ProveOptions::default().with_blinding(Blinding::from_caller(r.into(), s.into()))
}
