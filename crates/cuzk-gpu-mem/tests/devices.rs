//! Finding devices, and saying why there is none. All of it runs on a machine without CUDA.

use cuzk_gpu_mem::driver::{Code, DriverError, cuda};
use cuzk_gpu_mem::{
    Device, Error, OutOfMemory, Recorder, Selector, Settings, Timeline, Unavailable, list,
};

/// Listing either works or gives a typed reason; it neither panics nor opens anything. (GP-24)
#[test]
fn listing_works_or_says_why() {
    match list() {
        Ok(devices) => {
            assert!(!devices.is_empty());
            for (index, info) in devices.iter().enumerate() {
                assert!(info.ordinal as usize >= index);
                assert!(info.total_bytes > 0 && info.multiprocessors > 0, "{info}");
                assert_eq!(Selector::Pci(info.pci).pick(&devices).unwrap(), *info);
                let uuid: Selector = format!("GPU-{}", info.uuid).parse().unwrap();
                assert_eq!(uuid.pick(&devices).unwrap(), *info);
            }
        }
        Err(reason) => {
            let opened = Device::open(&Selector::Ordinal(0), Settings::default());
            assert!(matches!(opened, Err(Error::Unavailable(again)) if again == reason));
            assert!(Device::open_first(&Settings::default()).is_err());
        }
    }
}

/// Every error renders without a driver, says what was met and what to do. (GP-15, GP-24)
#[test]
fn every_error_renders_without_cuda() {
    let error = |code| DriverError::new("cuInit", code);
    let unavailable = [
        (Unavailable::NoLibrary, "install the NVIDIA driver"),
        (Unavailable::StubLibrary, "LD_LIBRARY_PATH"),
        (
            Unavailable::DriverTooOld {
                found: 11020,
                needed: cuda::MIN_DRIVER_VERSION,
            },
            "supports CUDA 11.2, needed is 11.4",
        ),
        (
            Unavailable::NoDevice {
                visible_devices: None,
            },
            "sees no device; check nvidia-smi",
        ),
        (
            Unavailable::NoDevice {
                visible_devices: Some("-1".into()),
            },
            "(CUDA_VISIBLE_DEVICES is \"-1\")",
        ),
        (
            Unavailable::Mismatch {
                error: error(Code::SYSTEM_DRIVER_MISMATCH),
            },
            "match the image to the host's driver",
        ),
        (
            Unavailable::Lost {
                error: error(Code::LAUNCH_FAILED),
            },
            "end the process",
        ),
        (
            Unavailable::NotReady {
                error: error(Code::SYSTEM_NOT_READY),
            },
            "fabricmanager",
        ),
        (
            Unavailable::Refused {
                error: error(Code::DEVICE_UNAVAILABLE),
            },
            "exclusive mode",
        ),
        (
            Unavailable::NotFound {
                wanted: "7".into(),
                visible: vec![],
            },
            "visible are: none",
        ),
        (
            Unavailable::Ambiguous {
                wanted: "GPU-1".into(),
                candidates: vec!["0".into(), "1".into()],
            },
            "GPU-1 names several devices: 0, 1; write more",
        ),
        (
            Unavailable::BadName { text: "x".into() },
            "\"x\" names no device",
        ),
        (Unavailable::NoPools { device: 3 }, "device 3"),
        (
            Unavailable::Forked {
                opened_by: 1,
                here: 2,
            },
            "with exec",
        ),
        (
            Unavailable::Other {
                error: error(Code(12345)),
            },
            "CUDA error 12345",
        ),
    ];
    for (reason, expected) in unavailable {
        let text = Error::from(reason.clone()).to_string();
        assert!(text.contains(expected), "{text}");
        assert!(!format!("{reason:?}").is_empty());
    }
    let device = 0;
    let out_of_memory = OutOfMemory {
        device,
        label: "d_a",
        requested: 4 << 30,
        free: 1 << 30,
        cached: 512 << 20,
        pending: 0,
        limit: 15 << 30,
        reserved_by: vec![("key", 10 << 30)],
    };
    let others = [
        (
            Error::OutOfMemory(Box::new(out_of_memory)),
            "4 GiB wanted for d_a; 1 GiB free, 512 MiB cached",
        ),
        (
            Error::PinnedBudget {
                label: "rows",
                requested: 3,
                in_use: 2,
                limit: 4,
            },
            "3 B wanted for rows, 2 B of 4 B in use",
        ),
        (
            Error::HostMemory {
                label: "rows",
                requested: 1 << 40,
            },
            "refused 1024 GiB for rows",
        ),
        (
            Error::DeviceLost {
                device,
                cause: error(Code::ECC_UNCORRECTABLE),
            },
            "start anew",
        ),
        (
            Error::Forked {
                device,
                opened_by: 1,
                here: 2,
            },
            "open devices after forking",
        ),
        (
            Error::Deferred {
                device,
                first: error(Code::UNKNOWN),
                count: 2,
            },
            "(2 in all)",
        ),
        (
            Error::Driver {
                device,
                error: error(Code::INVALID_VALUE),
            },
            "cuInit: CUDA error 1 (INVALID_VALUE)",
        ),
        (
            Error::Length {
                what: "upload",
                expected: 2,
                found: 3,
            },
            "expected 2 elements, found 3",
        ),
        (
            Error::TooLarge {
                label: "x",
                len: usize::MAX,
                size: 8,
            },
            "do not fit the address space",
        ),
        (
            Error::InsideCompute {
                device,
                advice: "do this",
            },
            "do this",
        ),
        (Error::WrongDevice { device }, "another device"),
        (
            Error::NotPromised {
                label: "d_a",
                bytes: 3,
                reason: "it has been staged already",
            },
            "d_a, 3 B, cannot be staged: it has been staged already",
        ),
    ];
    for (error, expected) in others {
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
        assert!(!format!("{error:?}").is_empty());
    }
}

/// Sizes that do not fit the address space are refused before anything is asked of a driver.
#[test]
fn impossible_sizes_are_refused() {
    let driver = std::sync::Arc::new(cuzk_gpu_mem::driver::SimDriver::new(1 << 30));
    let device = Device::with_driver(driver, Settings::default()).unwrap();
    let stream = device.stream("main").unwrap();
    for len in [usize::MAX, usize::MAX / 8 + 1, isize::MAX as usize / 8 + 1] {
        let refused = device.alloc::<u64>("x", len, &stream);
        assert!(matches!(refused, Err(Error::TooLarge { size: 8, .. })));
        let refused = device.host().pinned::<u64>("x", len);
        assert!(matches!(refused, Err(Error::TooLarge { size: 8, .. })));
    }
}

/// A buffer of one device is refused by a stream of another.
#[test]
fn devices_do_not_mix() {
    let open = || {
        let driver = std::sync::Arc::new(cuzk_gpu_mem::driver::SimDriver::new(1 << 30));
        Device::with_driver(driver, Settings::default()).unwrap()
    };
    let (one, other) = (open(), open());
    let (stream, foreign) = (one.stream("one").unwrap(), other.stream("other").unwrap());
    let mut buffer = one.alloc::<u64>("x", 8, &stream).unwrap();
    assert!(matches!(
        one.alloc::<u64>("y", 8, &foreign),
        Err(Error::WrongDevice { .. })
    ));
    assert!(matches!(
        foreign.fill(&mut buffer, 0),
        Err(Error::WrongDevice { .. })
    ));
    assert!(matches!(
        buffer.move_to(&foreign),
        Err(Error::WrongDevice { .. })
    ));
    assert!(matches!(
        foreign.follow(&stream),
        Err(Error::WrongDevice { .. })
    ));
    let admission = other
        .admit("job", &[], 8, std::time::Duration::ZERO)
        .unwrap();
    assert!(matches!(
        one.compute_admitted(admission, None, |_| ()),
        Err(Error::WrongDevice { .. })
    ));
    let event = stream.record().unwrap();
    assert!(matches!(
        foreign.wait_for(&event),
        Err(Error::WrongDevice { .. })
    ));
    let (begin, end) = (
        stream.record_timed().unwrap(),
        foreign.record_timed().unwrap(),
    );
    assert!(matches!(end.since(&begin), Err(Error::WrongDevice { .. })));
    let recorder = Recorder::new(&stream).unwrap();
    assert!(matches!(
        recorder.span("stage", &foreign),
        Err(Error::WrongDevice { .. })
    ));
    // What ends, or is copied, on another device has no time on this one.
    recorder.span("stage", &stream).unwrap().end(&foreign);
    foreign.set_recorder(Some(recorder.clone()));
    let mut abroad = other.alloc::<u64>("x", 8, &foreign).unwrap();
    foreign.upload_slice(&[1; 8], &mut abroad).unwrap();
    assert_eq!(recorder.timeline().unwrap(), Timeline::default());
}
