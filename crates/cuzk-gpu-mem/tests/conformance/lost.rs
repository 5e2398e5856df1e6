//! A kernel that fails on a card: the device is lost for the process, and says so.

use std::ffi::CString;

use cudarc::driver::result;
use cuzk_gpu_mem::driver::Code;
use cuzk_gpu_mem::{Device, Error, Selector, Settings, Stream, Unavailable};

use crate::processes::start;
use crate::rig::{Rig, say};

/// Set for the process that lets a kernel fail.
const CHILD: &str = "CUZK_TEST_CHILD_TRAPS";

/// The smallest kernel that fails.
const TRAP: &str =
    ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry boom() { trap; }\n";

fn open() -> cuzk_gpu_mem::Result<Device> {
    Device::open(&Selector::Ordinal(0), Settings::default())
}

fn assert_works(device: &Device) {
    let stream = device.stream("main").unwrap();
    let mut buffer = device.alloc::<u64>("words", 1000, &stream).unwrap();
    let source: Vec<u64> = (0..1000).collect();
    stream.upload_slice(&source, &mut buffer).unwrap();
    let target = device.host().pinned("words", 1000).unwrap();
    let back = stream.download(&buffer, target).unwrap().wait().unwrap();
    assert_eq!(*back, source[..]);
}

fn launch_trap(device: &Device, stream: &Stream) {
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

/// The failure is the failing process's own: this one, and a new one, go on.
#[test]
fn gpu_a_failed_kernel_loses_the_device_for_its_process() {
    let Some(rig) = Rig::card("a_failed_kernel_loses_the_device_for_its_process") else {
        return;
    };
    let _alone = rig.into_guard();
    let device = open().unwrap();
    assert_works(&device);
    assert!(
        start("lost::child_process", CHILD, 1)
            .wait()
            .unwrap()
            .success()
    );
    assert_works(&device);
    drop(device);
    assert_works(&open().unwrap());
}

/// Not a test of its own: the process whose kernel fails.
#[test]
#[ignore = "run by gpu_a_failed_kernel_loses_the_device_for_its_process"]
fn child_process() {
    if std::env::var(CHILD).is_err() {
        return;
    }
    let device = open().unwrap();
    assert_works(&device);
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
    let lost = |outcome: cuzk_gpu_mem::Result<()>| {
        assert!(
            matches!(outcome, Err(Error::DeviceLost { .. })),
            "{outcome:?}"
        );
    };
    lost(device.alloc::<u64>("more", 1, &stream).map(drop));
    lost(device.compute(|_| ()));
    lost(device.usable().map(drop));
    lost(device.check());
    drop((kept, pinned, stream));
    assert_eq!(device.budget().state().held(), 0);
    drop(device);
    // Neither a reset nor another context helps (tried): the driver is done with this process.
    let again = open().unwrap_err();
    say(&format!("  {again}"));
    assert!(matches!(
        again,
        Error::Unavailable(Unavailable::Lost { .. })
    ));
}
