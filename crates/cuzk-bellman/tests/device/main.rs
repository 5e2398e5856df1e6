//! Circuits of both libraries on the emulated device, and on a card where there is one: proofs byte for byte as the
//! libraries make them, and what is refused.

#[path = "../common/mod.rs"]
mod common;

mod bellman;
mod bellpepper;
mod partitions;

use std::sync::OnceLock;

use cuzk_gpu_mem::{GIB, list};
use cuzk_groth16::device::Gpu;
use cuzk_testkit::device;

use common::{Form, InB};

/// A device to prove on, the same for all tests of a process.
struct Rig {
    gpu: &'static Gpu,
    is_card: bool,
}

impl Rig {
    fn emulated() -> Self {
        static GPU: OnceLock<Gpu> = OnceLock::new();
        Self {
            gpu: GPU.get_or_init(|| emulated_gpu(0)),
            is_card: false,
        }
    }

    fn card() -> Option<Self> {
        static GPU: OnceLock<Gpu> = OnceLock::new();
        if let Err(reason) = list() {
            cuzk_testkit::no_gpu(&reason);
            return None;
        }
        let open = || Gpu::new(&device::card().unwrap()).unwrap();
        Some(Self {
            gpu: GPU.get_or_init(open),
            is_card: true,
        })
    }

    /// The small circuits; an emulated proof takes half a second.
    fn forms(&self) -> Vec<Form> {
        match self.is_card {
            true => common::forms().collect(),
            false => vec![Form {
                aux: 3,
                inputs: 2,
                in_b: InB::One,
                cancelling: true,
            }],
        }
    }
}

fn emulated_gpu(ordinal: u32) -> Gpu {
    Gpu::new(&device::emulated_at(ordinal, 2 * GIB).0).unwrap()
}

const FORM: Form = Form {
    aux: 9,
    inputs: 3,
    in_b: InB::Public,
    cancelling: true,
};
