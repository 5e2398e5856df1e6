//! The engine on an emulated GPU: what becomes of a proof when the GPU has no room, or fails.

use std::sync::Arc;

use cuzk_gpu_mem::driver::{Code, SimDriver};
use cuzk_gpu_mem::{Device, GIB, MIB, Settings};
use cuzk_groth16::device::Gpu;

use super::{Engine, one};
use crate::args::{ProveArgs, prove_args};
use crate::device::DeviceUsed;
use crate::exit::{Exit, Failure};
use crate::load::Loader;
use crate::prove::material::Material;

/// A GPU, what is proved on it, and how.
struct Rig {
    driver: Arc<SimDriver>,
    gpus: Vec<Gpu>,
    args: ProveArgs,
    loader: Loader,
    material: Material,
    device: DeviceUsed,
}

fn arguments(more: &[&str]) -> ProveArgs {
    prove_args(&[&["--synthetic", "2", "--no-verify"], more].concat())
}

impl Rig {
    fn new(more: &[&str]) -> Self {
        let driver = Arc::new(SimDriver::new(2 * GIB));
        let settings = Settings {
            reserve: 0,
            ..Settings::default()
        };
        let device = Device::with_driver(Arc::clone(&driver) as Arc<_>, settings).unwrap();
        let args = arguments(more);
        let mut loader = Loader::new(&args.load, false);
        Self {
            driver,
            gpus: vec![Gpu::new(&device).unwrap()],
            material: Material::synthetic(&args, 2, 1, &mut loader).unwrap(),
            args,
            loader,
            device: DeviceUsed {
                requested: "auto".to_owned(),
                used: "cuda:0".to_owned(),
                reason: "it works".to_owned(),
                threads: 1,
            },
        }
    }

    /// A proof, with something done to the driver when the key is there.
    fn prove(&mut self, is_named: bool, then: impl FnOnce(&SimDriver)) -> Result<(), Failure> {
        let (args, material, loader) = (&self.args, &self.material, &mut self.loader);
        let engine = Engine::of(
            args,
            material,
            &self.gpus,
            is_named,
            &mut self.device,
            loader,
        )?;
        then(&self.driver);
        let proved = one(args, engine, material, &mut self.device, loader);
        self.driver.heal();
        // What could not be given back is told once, to who looks next.
        let _ = self.gpus[0].device().check();
        proved.map(drop)
    }
}

/// GP-15, GP-39: one that nobody named is given up in words, one that was named is not.
#[test]
fn a_gpu_without_room_is_given_up_unless_it_was_named() {
    let mut rig = Rig::new(&["--concurrency", "1"]);
    rig.gpus[0].device().budget().set_limit(MIB / 16);
    let failure = rig.prove(true, |_| ()).unwrap_err();
    assert_eq!(failure.exit(), Exit::OutOfMemory, "{failure}");
    assert_eq!(rig.device.used, "cuda:0");

    rig.prove(false, |_| ()).unwrap();
    assert_eq!(rig.device.used, "cpu");
    assert!(
        rig.device.reason.starts_with("cuda:0 failed: ") && rig.device.reason.contains("bytes"),
        "{}",
        rig.device.reason
    );
}

/// GP-39: where a proof was made in the end is what the result says.
#[test]
fn a_gpu_that_fails_is_not_said_to_have_proved() {
    let fails = |driver: &SimDriver| driver.fail_every(1, Code::INVALID_VALUE);
    let mut rig = Rig::new(&["--on-gpu-error", "fail"]);
    let failure = rig.prove(true, fails).unwrap_err();
    assert_eq!(failure.exit(), Exit::NoDevice, "{failure}");
    rig.prove(true, |_| ()).unwrap();
    assert_eq!(
        (&*rig.device.used, &*rig.device.reason),
        ("cuda:0", "it works")
    );

    rig.args = arguments(&["--on-gpu-error", "cpu"]);
    rig.prove(true, fails).unwrap();
    assert_eq!(rig.device.used, "cpu");
    assert_eq!(rig.device.reason, "cuda:0 failed");
}
