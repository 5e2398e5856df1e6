//! The emulator itself: it computes what a card does, and notices what a card would not.

use std::sync::Arc;

use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::{Device, MIB, Settings, Stream};
use cuzk_kernels::emulator::{EmulatorLauncher, faulty, run};
use cuzk_kernels::{
    Argument, Declaration, Error, Kernel, Launcher, PtrMut, Result, Shape, declarations, self_test,
};

fn device() -> Device {
    let settings = Settings {
        reserve: 0,
        ..Settings::default()
    };
    Device::with_driver(Arc::new(SimDriver::new(64 * MIB)), settings).unwrap()
}

#[test]
fn blocks_warps_and_atomics_work_in_any_order() {
    let seeds = if option_env!("CUZK_SANITIZER").is_some() {
        2
    } else {
        10
    };
    for seed in 0..seeds {
        let passed = self_test(&EmulatorLauncher::with_seed(&device(), seed << 32)).unwrap();
        assert!(passed.passed.len() >= 4, "{passed:?}");
    }
}

/// A device that subtracts where it should add.
#[derive(Debug)]
struct Crooked(EmulatorLauncher);

impl Launcher for Crooked {
    fn device(&self) -> &Device {
        self.0.device()
    }

    unsafe fn submit(
        &self,
        declaration: &'static Declaration,
        shape: Shape,
        arguments: &[Argument<'_>],
        stream: &Stream,
    ) -> Result<()> {
        let mut declaration = declaration;
        if declaration.entry == "cuzk_field_ops_fr_add" {
            let all = declarations();
            let other = all
                .iter()
                .find(|other| other.entry == "cuzk_field_ops_fr_sub");
            declaration = other.expect("Fr has a subtraction");
        }
        // SAFETY: both take the same arguments under the same contract.
        unsafe { self.0.submit(declaration, shape, arguments, stream) }
    }
}

#[test]
fn a_device_that_computes_wrongly_does_not_pass() {
    let crooked = Crooked(EmulatorLauncher::new(&device()));
    match self_test(&crooked).unwrap_err() {
        // 0 + 0 is 0 - 0, 0 + 1 is not 0 - 1.
        Error::SelfTest { test, index, .. } => assert_eq!((test, index), ("Fr addition", 1)),
        other => panic!("{other}"),
    }
}

/// Runs a kernel that is wrong; what the emulator says.
fn complaint(kernel: &'static Kernel<(PtrMut<u32>,)>, threads: u32) -> String {
    let mut complaints = Vec::new();
    for seed in 1..=5 {
        let mut out = vec![0_u32; threads as usize];
        let argument = (PtrMut::of_host(&mut out),);
        // SAFETY: these kernels write one word a thread.
        match unsafe { run(kernel, Shape::blocks(3, threads), argument, seed) } {
            Err(Error::Fault { message, .. }) => complaints.push(message),
            other => panic!("{}: {other:?}", kernel.declaration().entry),
        }
    }
    complaints.join("\n")
}

fn assert_complains(kernel: &'static Kernel<(PtrMut<u32>,)>, threads: u32, parts: &[&str]) {
    let text = complaint(kernel, threads);
    for line in text.lines() {
        assert!(parts.iter().any(|part| line.contains(part)), "{line}");
        assert!(
            line.contains("faulty.cu:") && line.contains("thread ("),
            "{line}"
        );
    }
}

#[test]
fn divergent_barriers_are_noticed() {
    assert_complains(&faulty::TWO_BARRIERS, 64, &["divergent barrier"]);
    assert_complains(&faulty::EARLY_RETURN, 96, &["divergent barrier"]);
}

#[test]
fn lanes_that_do_not_come_are_noticed() {
    let parts = ["a lane of the mask will not come"];
    assert_complains(&faulty::MISSING_LANES, 64, &parts);
}

#[test]
fn two_operations_in_one_mask_are_noticed() {
    let parts = ["lanes of a mask in different operations"];
    assert_complains(&faulty::TWO_OPERATIONS, 32, &parts);
}

#[test]
fn a_lane_outside_the_mask_is_noticed() {
    let parts = ["takes the value of lane 20, which is not in the mask"];
    assert_complains(&faulty::FOREIGN_LANE, 32, &parts);
}

#[test]
fn a_deadlock_is_noticed() {
    assert_complains(
        &faulty::DEADLOCK,
        64,
        &["deadlock, nobody in the block can go on"],
    );
}

#[test]
fn a_trap_is_reported() {
    assert_complains(&faulty::TRAP, 32, &["__trap at"]);
}

#[test]
fn unwritten_shared_memory_is_poison() {
    let mut out = vec![0_u32; 32];
    let argument = (PtrMut::of_host(&mut out),);
    // SAFETY: the kernel writes 32 words.
    unsafe { run(&faulty::UNWRITTEN, Shape::blocks(1, 32), argument, 1) }.unwrap();
    assert_eq!(out, [0xa5a5_a5a5; 32]);
}

#[test]
fn a_fault_loses_the_device_and_is_told() {
    let device = device();
    let launcher = EmulatorLauncher::with_seed(&device, 3);
    let stream = device.stream("main").unwrap();
    let mut out = device.alloc::<u32>("out", 64, &stream).unwrap();
    let view = out.view_mut();
    let argument = (PtrMut::from(&view),);
    let shape = Shape::blocks(1, 64);
    // SAFETY: the kernel writes one word a thread.
    let error = unsafe { faulty::EARLY_RETURN.launch(&launcher, &stream, shape, argument) };
    assert!(matches!(error, Err(Error::Fault { .. })), "{error:?}");
    assert!(
        launcher
            .fault()
            .unwrap()
            .to_string()
            .contains("cuzk_faulty_early_return")
    );
    let error = stream.synchronize().unwrap_err();
    assert!(
        matches!(error, cuzk_gpu_mem::Error::DeviceLost { .. }),
        "{error}"
    );
}

#[test]
fn shapes_are_checked() {
    let launcher = EmulatorLauncher::new(&device());
    let stream = launcher.device().stream("main").unwrap();
    let mut out = launcher.device().alloc::<u32>("out", 64, &stream).unwrap();
    let view = out.view_mut();
    let launch = |shape: Shape| {
        // SAFETY: no shape here starts a thread.
        unsafe { faulty::RACE.launch(&launcher, &stream, shape, ((&view).into(),)) }
    };
    assert!(launch(Shape::blocks(0, 64)).is_ok());
    for shape in [
        Shape::blocks(1, 65),
        Shape::blocks(1, 0),
        Shape::blocks(u32::MAX, 1),
        Shape {
            grid: [1, 65_536, 1],
            ..Shape::blocks(1, 1)
        },
    ] {
        assert!(
            matches!(launch(shape), Err(Error::Shape { .. })),
            "{shape:?}"
        );
    }
    let other = device();
    let foreign = other.stream("other").unwrap();
    // SAFETY: the stream is refused.
    let refused = unsafe {
        faulty::RACE.launch(&launcher, &foreign, Shape::blocks(1, 64), ((&view).into(),))
    };
    assert!(matches!(refused, Err(Error::WrongDevice { .. })));
}

/// Under a sanitizer: the kernels that are wrong in its way, each in a process of its own.
#[test]
fn sanitizers_see_what_they_should() {
    let expected: &[(&str, &str)] = match option_env!("CUZK_SANITIZER") {
        Some("address") => &[("past_the_end", "heap-buffer-overflow")],
        Some("undefined") => &[("shift", "shift exponent")],
        Some("thread") => &[("race", "data race"), ("block_race", "data race")],
        _ => return,
    };
    for (kernel, complaint) in expected {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "one_faulty_kernel", "--ignored", "--nocapture"])
            .env("CUZK_FAULTY_KERNEL", kernel)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && text.contains(complaint),
            "{kernel}: {text}"
        );
    }
}

#[test]
#[ignore = "the sanitizers' test starts it"]
fn one_faulty_kernel() {
    let (kernel, threads) = match std::env::var("CUZK_FAULTY_KERNEL").as_deref() {
        Ok("past_the_end") => (&faulty::PAST_THE_END, 32),
        Ok("shift") => (&faulty::SHIFT, 32),
        Ok("race") => (&faulty::RACE, 64),
        Ok("block_race") => (&faulty::BLOCK_RACE, 64),
        _ => return,
    };
    let mut out = vec![0_u32; threads as usize];
    let argument = (PtrMut::of_host(&mut out),);
    // SAFETY: these kernels write one word a thread; what else they do is for the sanitizer to stop.
    unsafe { run(kernel, Shape::blocks(2, threads), argument, 1) }.unwrap();
}
