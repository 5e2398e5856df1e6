//! A kernel that fails on a card: the device is lost, says so, and can be opened anew.

use std::ffi::CString;

use cudarc::driver::result;
use cuzk_gpu_mem::driver::Code;
use cuzk_gpu_mem::{Device, Error, Selector, Settings};

use crate::rig::{Rig, say};

/// The smallest kernel that fails.
const TRAP: &str =
    ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry boom() { trap; }\n";

fn round_trip(device: &Device) -> Vec<u64> {
    let stream = device.stream("main").unwrap();
    let mut buffer = device.alloc::<u64>("words", 1000, &stream).unwrap();
    let source: Vec<u64> = (0..1000).collect();
    stream.upload_slice(&source, &mut buffer).unwrap();
    let target = device.host().pinned("words", 1000).unwrap();
    stream
        .download(&buffer, target)
        .unwrap()
        .wait()
        .unwrap()
        .to_vec()
}

fn launch_trap(device: &Device, stream: &cuzk_gpu_mem::Stream) {
    let cuda = device.driver().as_cuda().unwrap();
    cuda.bind().unwrap();
    let image = CString::new(TRAP).unwrap();
    // SAFETY: the context is bound and the image is PTX that ends in a zero; the kernel takes no
    // arguments and touches no memory. The module goes with the context.
    unsafe {
        let module = result::module::load_data(image.as_ptr().cast()).unwrap();
        let kernel = result::module::get_function(module, CString::new("boom").unwrap()).unwrap();
        let one = (1, 1, 1);
        result::launch_kernel(kernel, one, one, 0, cuda.raw_stream(stream.id()), &mut []).unwrap();
    }
}

#[test]
fn gpu_a_failed_kernel_loses_the_device_and_reopening_helps() {
    let Some(rig) = Rig::card("a_failed_kernel_loses_the_device") else {
        return;
    };
    let alone = rig.into_guard(); // the context must have no other holder
    let first = Selector::Ordinal(0);
    let device = Device::open(&first, Settings::default()).unwrap();
    assert_eq!(round_trip(&device).len(), 1000);
    let stream = device.stream("boom").unwrap();
    let kept = device.alloc::<u64>("kept", 1 << 20, &stream).unwrap();
    let pinned = device.host().pinned::<u64>("pinned", 1 << 20).unwrap();
    launch_trap(&device, &stream);
    let error = stream.synchronize().unwrap_err();
    say(&format!("  {error}"));
    assert!(matches!(
        error,
        Error::DeviceLost { cause, .. }
            if [Code::LAUNCH_FAILED, Code::ILLEGAL_INSTRUCTION].contains(&cause.code)
    ));
    assert!(matches!(
        device.alloc::<u64>("more", 1, &stream),
        Err(Error::DeviceLost { .. })
    ));
    assert!(matches!(
        device.compute(|_| ()),
        Err(Error::DeviceLost { .. })
    ));
    assert!(matches!(device.usable(), Err(Error::DeviceLost { .. })));
    drop((kept, pinned, stream, device));

    let device = Device::open(&first, Settings::default()).unwrap();
    assert_eq!(round_trip(&device), (0..1000).collect::<Vec<u64>>());
    drop((device, alone));
}
