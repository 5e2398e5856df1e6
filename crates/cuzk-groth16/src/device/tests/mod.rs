//! Parts of the device's prover against the CPU's, on the emulator and on a card where there is one.

mod keys;
mod plan;
mod rows;
mod sums;
mod witness;

use std::ops::Deref;

use cuzk_field::{Fr, Scalar};
use cuzk_testkit::device;

use super::{DeviceMatrices, HostMatrices, PinnedWitness};

struct Rig(device::Rig);

impl Deref for Rig {
    type Target = device::Rig;

    fn deref(&self) -> &device::Rig {
        &self.0
    }
}

impl Rig {
    fn emulated() -> Self {
        Self(device::Rig::emulated())
    }

    fn card() -> Option<Self> {
        device::Rig::card().map(Self)
    }

    /// A w and B w.
    fn rows(&self, host: HostMatrices<'_>, n: usize, witness: &[Scalar]) -> [Vec<Fr>; 2] {
        let packed = PinnedWitness::pack(self.device().host(), witness).unwrap();
        let buffers = packed.upload(&self.stream).unwrap();
        let matrices = DeviceMatrices::upload(&self.stream, host, witness.len()).unwrap();
        assert!(matrices.bytes() >= host.device_bytes(witness.len()));
        let mut scratch = self.room(matrices.scratch_len());
        let rows = matrices.num_rows();
        let (mut a, mut b) = (self.room(n), self.room(n));
        for out in [&mut a, &mut b] {
            self.stream.fill(out.view_mut().slice(rows..), 0).unwrap();
        }
        matrices
            .evaluate(
                &*self.launcher,
                &self.stream,
                buffers.view(),
                scratch.view_mut(),
                a.view_mut().slice(..rows),
                b.view_mut().slice(..rows),
            )
            .unwrap();
        [self.download(&a), self.download(&b)]
    }
}

cuzk_testkit::on_both!(the_self_test_has_transforms_and_sums);

fn the_self_test_has_transforms_and_sums(rig: &Rig) {
    let done = super::self_test(&*rig.launcher).unwrap();
    for (part, results) in [
        ("Fp multiplication", 256),
        ("transform, family of 5", 2048),
        ("transform, family of 7", 2048),
        ("G1 sum", 1),
        ("G2 sum", 1),
    ] {
        assert!(done.passed.contains(&(part, results)), "{part}: {done:?}");
    }
}
