//! Where the tests run: the emulator everywhere, and the card where there is one.

use std::sync::Arc;

use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::{Device, DeviceBuf, GIB, Pod, Settings, Stream, list};
use cuzk_kernels::Launcher;

pub(crate) struct Rig {
    pub(crate) launcher: Box<dyn Launcher>,
    pub(crate) stream: Stream,
    pub(crate) is_card: bool,
}

impl Rig {
    fn on(device: &Device, is_card: bool) -> Self {
        Self {
            launcher: cuzk_kernels::open(device).unwrap(),
            stream: device.stream("test").unwrap(),
            is_card,
        }
    }

    pub(crate) fn emulated() -> Self {
        let settings = Settings {
            reserve: 0,
            ..Settings::default()
        };
        let device = Device::with_driver(Arc::new(SimDriver::new(4 * GIB)), settings).unwrap();
        Self::on(&device, false)
    }

    pub(crate) fn card() -> Option<Self> {
        if let Err(reason) = list() {
            cuzk_testkit::no_gpu(&reason);
            return None;
        }
        let device = Device::open(&"0".parse().unwrap(), Settings::default()).unwrap();
        Some(Self::on(&device, true))
    }

    pub(crate) fn device(&self) -> &Device {
        self.launcher.device()
    }

    pub(crate) fn upload<T: Pod>(&self, values: &[T]) -> DeviceBuf<T> {
        let mut buffer = self.room(values.len());
        self.stream.upload_slice(values, &mut buffer).unwrap();
        buffer
    }

    /// Room for values, all bytes 0xff.
    pub(crate) fn room<T: Pod>(&self, len: usize) -> DeviceBuf<T> {
        let mut buffer = self.device().alloc("room", len, &self.stream).unwrap();
        self.stream.fill(&mut buffer, 0xff).unwrap();
        buffer
    }

    pub(crate) fn download<T: Pod>(&self, buffer: &DeviceBuf<T>) -> Vec<T> {
        let mut values = vec![T::zeroed(); buffer.len()];
        self.stream.download_slice(buffer, &mut values).unwrap();
        values
    }
}
