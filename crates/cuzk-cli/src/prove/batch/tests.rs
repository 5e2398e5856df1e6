//! An emulated GPU: what becomes of a proof when it has no room, or fails; keys that it is to load.

use std::fs::File;
use std::sync::Arc;

use cuzk_field::{Fp, G1Affine};
use cuzk_formats::{prepared as file, wtns};
use cuzk_gpu_mem::driver::{Code, SimDriver};
use cuzk_gpu_mem::{GIB, MIB};
use cuzk_groth16::device::Gpu;
use cuzk_groth16::prepared::{Origin, Rows, prepare};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};
use cuzk_testkit::device::emulated_at;

use super::{Engine, one};
use crate::args::{ProveArgs, prove_args};
use crate::device::{DeviceUsed, Taken};
use crate::exit::{Exit, Failure};
use crate::keys::KeyKind;
use crate::load::Loader;
use crate::prove::material::Material;

/// An emulated GPU of this number and its driver.
fn gpu(ordinal: u32) -> (Arc<SimDriver>, Gpu) {
    let (device, driver) = emulated_at(ordinal, 2 * GIB);
    (driver, Gpu::new(&device).unwrap())
}

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
        let (driver, gpu) = gpu(0);
        let args = arguments(more);
        let mut loader = Loader::new(&args.load, false);
        Self {
            driver,
            gpus: vec![gpu],
            material: Material::synthetic(&args, 2, 1, &mut loader).unwrap(),
            args,
            loader,
            device: DeviceUsed {
                requested: "auto".to_owned(),
                used: "cuda:0".to_owned(),
                reason: "it works".to_owned(),
                threads: 1,
                opened_ms: None,
            },
        }
    }

    /// What would prove.
    fn settle(&mut self) -> Result<&DeviceUsed, Failure> {
        let (material, gpus) = (&self.material, &self.gpus);
        let (device, loader) = (&mut self.device, &mut self.loader);
        Engine::of(&self.args, material, gpus, true, device, loader)?;
        Ok(&self.device)
    }

    /// A proof, with something done to the driver when the key is there.
    fn prove(&mut self, is_named: bool, then: impl FnOnce(&SimDriver)) -> Result<(), Failure> {
        let (args, material, loader) = (&self.args, &self.material, &mut self.loader);
        let (gpus, device) = (&self.gpus, &mut self.device);
        let engine = Engine::of(args, material, gpus, is_named, device, loader)?;
        then(&self.driver);
        let proved = one(engine, material, &mut self.device, loader);
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

/// Of several, one that is too small is left out.
#[test]
fn the_larger_of_two_gpus_is_taken_alone() {
    let mut rig = Rig::new(&["--workers-per-device", "1"]);
    rig.gpus.push(gpu(1).1);
    rig.device.used = "cuda:0, cuda:1".to_owned();
    rig.gpus[0].device().budget().set_limit(MIB / 16);
    assert_eq!(rig.settle().unwrap().used, "cuda:1");
    assert_eq!(rig.device.reason, "it works");
    rig.gpus[1].device().budget().set_limit(MIB / 16);
    let failure = rig.settle().unwrap_err();
    assert_eq!(failure.exit(), Exit::OutOfMemory, "{failure}");
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

/// WP-14: points that go from their file to a GPU are held against their curve there; where the subgroup is asked for,
/// as everywhere, it is checked.
#[test]
fn the_subgroup_of_a_prepared_key_is_checked_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let Instance { r1cs, witness } = Instance::new(Shape::Porep, 2, 1).unwrap();
    let mut key = proving_key(&r1cs, KeyFamily::Circom, 1).unwrap();
    // On the curve, of order 3.
    key.h_query[1] = G1Affine {
        x: Fp::from(0),
        y: Fp::from(2),
    };
    let key = prepare(key, Rows::Of(&r1cs), Origin::SYNTHETIC).unwrap();
    let create = |name: &str| File::create(path(name)).unwrap();
    file::write(&key, &mut create("key"), None).unwrap();
    wtns::write(&witness, &mut create("w.wtns")).unwrap();

    let (_, gpu) = gpu(0);
    let taken = Taken::of_gpus(vec![gpu]);
    let load = |more: &[&str]| {
        let (key, witness) = (path("key"), path("w.wtns"));
        let inputs = ["--prepared", &key, "--wtns", &witness];
        let args = prove_args(&[&inputs, more].concat());
        let mut loader = Loader::new(&args.load, false);
        let material =
            Material::of_files(&args, KeyKind::Prepared, key.as_ref(), &taken, &mut loader);
        material.map(drop)
    };
    load(&[]).unwrap();
    let failure = load(&["--check-subgroup"]).unwrap_err();
    assert_eq!(failure.exit(), Exit::BadInput);
    let text = failure.to_string();
    assert!(
        text.contains("(H), point 1") && text.contains("subgroup"),
        "{text}"
    );
}
