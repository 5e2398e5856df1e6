//! Where the kernels run: the emulated device, or a card.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::sync::Arc;

use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::{Device, DeviceBuf, GIB, Pod, Settings, Stream, list};
use cuzk_kernels::Launcher;

pub(crate) struct Rig {
    pub(crate) launcher: Box<dyn Launcher>,
    pub(crate) stream: Stream,
    pub(crate) on_card: bool,
}

impl Rig {
    fn on(device: &Device, on_card: bool) -> Self {
        Self {
            launcher: cuzk_kernels::open(device).unwrap(),
            stream: device.stream("test").unwrap(),
            on_card,
        }
    }

    pub(crate) fn emulated() -> Self {
        let driver = Arc::new(SimDriver::new(GIB));
        Self::on(
            &Device::with_driver(driver, Settings::default()).unwrap(),
            false,
        )
    }

    pub(crate) fn card() -> Option<Self> {
        if let Err(reason) = list() {
            cuzk_testkit::no_gpu(&reason);
            return None;
        }
        let device = Device::open(&"0".parse().unwrap(), Settings::default()).unwrap();
        Some(Self::on(&device, true))
    }

    /// Room for values, all bytes 0xa5.
    pub(crate) fn alloc<T: Pod>(&self, len: usize) -> DeviceBuf<T> {
        let device = self.launcher.device();
        let mut buffer = device.alloc("test", len, &self.stream).unwrap();
        self.stream.fill(&mut buffer, 0xa5).unwrap();
        buffer
    }

    pub(crate) fn upload<T: Pod>(&self, values: &[T]) -> DeviceBuf<T> {
        let mut buffer = self.alloc(values.len());
        self.stream.upload_slice(values, &mut buffer).unwrap();
        buffer
    }

    pub(crate) fn download<T: Pod>(&self, buffer: &DeviceBuf<T>) -> Vec<T> {
        let mut values = vec![T::zeroed(); buffer.len()];
        self.stream.download_slice(buffer, &mut values).unwrap();
        values
    }
}
