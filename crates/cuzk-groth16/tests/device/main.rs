//! Proofs on the emulated device, and on a card where there is one.

use std::sync::{Arc, RwLock};

use cuzk_field::Fr;
use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::{Device, GIB, Settings, list};
use cuzk_groth16::device::Gpu;
use cuzk_groth16::{Blinding, ProveOptions};

fn emulated() -> Gpu {
    let settings = Settings {
        reserve: 0,
        ..Settings::default()
    };
    let device = Device::with_driver(Arc::new(SimDriver::new(2 * GIB)), settings).unwrap();
    Gpu::new(&device).unwrap()
}

fn card() -> Option<Gpu> {
    if let Err(reason) = list() {
        cuzk_testkit::no_gpu(&reason);
        return None;
    }
    let device = Device::open(&"0".parse().unwrap(), Settings::default()).unwrap();
    Some(Gpu::new(&device).unwrap())
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

fn fixed() -> ProveOptions {
    let (r, s) = (Fr::from(11).pow(4321), Fr::from(13).pow(1234));
    ProveOptions::default().with_blinding(Blinding::from_caller(r.into(), s.into()))
}
