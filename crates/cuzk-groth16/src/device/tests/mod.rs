//! Parts of the device's prover against the CPU's, on the emulator and on a card where there is one.

mod keys;
mod plan;
mod rows;
mod sums;
mod witness;

use std::sync::Arc;

use cuzk_field::{Fr, Scalar};
use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::{Device, DeviceBuf, GIB, Pod, Settings, Stream, list};
use cuzk_kernels::Launcher;

use super::{DeviceMatrices, DeviceWitness, HostMatrices, PinnedWitness};

struct Rig {
    launcher: Box<dyn Launcher>,
    stream: Stream,
}

impl Rig {
    fn on(device: &Device) -> Self {
        Self {
            launcher: cuzk_kernels::open(device).unwrap(),
            stream: device.stream("test").unwrap(),
        }
    }

    fn emulated() -> Self {
        let settings = Settings {
            reserve: 0,
            ..Settings::default()
        };
        Self::on(&Device::with_driver(Arc::new(SimDriver::new(GIB)), settings).unwrap())
    }

    fn card() -> Option<Self> {
        if let Err(reason) = list() {
            cuzk_testkit::no_gpu(&reason);
            return None;
        }
        Some(Self::on(
            &Device::open(&"0".parse().unwrap(), Settings::default()).unwrap(),
        ))
    }

    fn device(&self) -> &Device {
        self.launcher.device()
    }

    fn alloc<T: Pod>(&self, len: usize) -> DeviceBuf<T> {
        let mut buffer = self.device().alloc("test", len, &self.stream).unwrap();
        self.stream.fill(&mut buffer, 0xff).unwrap();
        buffer
    }

    fn read<T: Pod>(&self, buffer: &DeviceBuf<T>) -> Vec<T> {
        let mut found = vec![T::zeroed(); buffer.len()];
        self.stream.download_slice(buffer, &mut found).unwrap();
        found
    }

    fn upload(&self, witness: PinnedWitness) -> DeviceWitness {
        witness.upload(&self.stream).unwrap()
    }

    /// A w and B w.
    fn rows(&self, host: HostMatrices<'_>, n: usize, witness: &[Scalar]) -> [Vec<Fr>; 2] {
        let packed = PinnedWitness::pack(self.device().host(), witness).unwrap();
        let buffers = self.upload(packed);
        let matrices = DeviceMatrices::upload(&self.stream, host, witness.len()).unwrap();
        assert!(matrices.bytes() >= host.device_bytes(witness.len()));
        let mut scratch = self.alloc(matrices.scratch_len());
        let rows = matrices.num_rows();
        let (mut a, mut b) = (self.alloc(n), self.alloc(n));
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
        [self.read(&a), self.read(&b)]
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
