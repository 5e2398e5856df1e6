//! Devices that tests run on: the emulated one everywhere, a card where there is one.

use std::sync::Arc;
use std::time::Duration;

use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::{Device, DeviceBuf, DeviceInfo, GIB, Pod, Settings, Stream, list};
use cuzk_kernels::Launcher;

use crate::no_gpu;

/// The emulated device, with room for `bytes`: none of them are kept in reserve.
pub fn emulated(bytes: u64) -> Device {
    emulated_at(0, bytes).0
}

/// One of several emulated devices, with the driver that makes it fail.
pub fn emulated_at(ordinal: u32, bytes: u64) -> (Device, Arc<SimDriver>) {
    let info = DeviceInfo {
        ordinal,
        ..DeviceInfo::simulated(bytes)
    };
    let settings = Settings {
        reserve: 0,
        ..Settings::default()
    };
    let driver = Arc::new(SimDriver::with_info(info, true));
    let device = Device::with_driver(driver.clone(), settings);
    (device.expect("an emulated device opens"), driver)
}

/// How long a test waits for memory of a card that others hold: tests that run beside it have ledgers of their own.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first card. Where there is none, [`no_gpu`] says so.
pub fn card() -> Option<Device> {
    if let Err(reason) = list() {
        no_gpu(&reason);
        return None;
    }
    let selector = "0".parse().expect("a selector");
    let settings = Settings {
        wait_for_memory: PATIENCE,
        ..Settings::default()
    };
    Some(Device::open(&selector, settings).expect("a card that is listed opens"))
}

/// A device with what launches kernels there, and a stream.
pub struct Rig {
    /// What launches kernels.
    pub launcher: Box<dyn Launcher>,
    /// The stream of everything that the rig does.
    pub stream: Stream,
    /// Whether it is a card, which may be given more to do.
    pub is_card: bool,
    /// What emulates it, if it is none: says when what is on a stream runs.
    pub sim: Option<Arc<SimDriver>>,
}

impl Rig {
    fn on(device: &Device, sim: Option<Arc<SimDriver>>) -> Self {
        Self {
            launcher: cuzk_kernels::open(device).expect("a launcher"),
            stream: device.stream("test").expect("a stream"),
            is_card: sim.is_none(),
            sim,
        }
    }

    /// On an emulated device of 4 GiB.
    pub fn emulated() -> Self {
        let (device, sim) = emulated_at(0, 4 * GIB);
        Self::on(&device, Some(sim))
    }

    /// On the first card. Where there is none, [`no_gpu`] says so.
    pub fn card() -> Option<Self> {
        Some(Self::on(&card()?, None))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.launcher.device()
    }

    /// Room for values, all bytes 0xff.
    pub fn room<T: Pod>(&self, len: usize) -> DeviceBuf<T> {
        let buffer = self.device().alloc("test", len, &self.stream);
        let mut buffer = buffer.expect("memory");
        self.stream.fill(&mut buffer, 0xff).expect("a fill");
        buffer
    }

    /// These values on the device.
    pub fn upload<T: Pod>(&self, values: &[T]) -> DeviceBuf<T> {
        upload(&self.stream, values)
    }

    /// The values there.
    pub fn download<T: Pod>(&self, buffer: &DeviceBuf<T>) -> Vec<T> {
        download(&self.stream, buffer)
    }
}

/// These values on the stream's device.
pub fn upload<T: Pod>(stream: &Stream, values: &[T]) -> DeviceBuf<T> {
    let buffer = stream.device().alloc("test", values.len(), stream);
    let mut buffer = buffer.expect("memory");
    let uploaded = stream.upload_slice(values, &mut buffer);
    uploaded.expect("an upload");
    buffer
}

/// The values of a buffer, when the stream has got there.
pub fn download<T: Pod>(stream: &Stream, buffer: &DeviceBuf<T>) -> Vec<T> {
    let mut values = vec![T::zeroed(); buffer.len()];
    let downloaded = stream.download_slice(buffer, &mut values);
    downloaded.expect("a download");
    values
}
