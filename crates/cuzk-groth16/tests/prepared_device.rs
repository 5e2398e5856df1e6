//! Bases of four transforms made on the emulated device, and on a card where there is one, against those made on the
//! CPU; and proofs with them.

use std::sync::atomic::{AtomicU64, Ordering};

use cuzk_field::{Field as _, Fp, Fr, G1Affine, RootGenerator, Scalar};
use cuzk_formats::prepared::{self as file, PreparedKey, Reader, Section};
use cuzk_formats::{
    BytesSource, LoadOptions, ProvingKey, R1cs, Witness, bellman, r1cs, wtns, zkey,
};
use cuzk_gpu_mem::GIB;
use cuzk_groth16::device::{DeviceProver, Error as DeviceError, Gpu, load_points};
use cuzk_groth16::prepared::device::{self as on_device, DeviceCost, measure_multiplication};
use cuzk_groth16::prepared::{self, Cost, Origin, Rows};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};
use cuzk_groth16::{Blinding, Circuit, Error, ProveOptions, Prover};
use cuzk_msm::FixedBase;
use cuzk_testkit::{cases, device};

const FAMILIES: [KeyFamily; 3] = [KeyFamily::Circom, KeyFamily::Arkworks, KeyFamily::Bellman];

struct Rig {
    gpu: Gpu,
    is_card: bool,
}

impl Rig {
    fn emulated() -> Self {
        Self {
            gpu: Gpu::new(&device::emulated(2 * GIB)).unwrap(),
            is_card: false,
        }
    }

    fn card() -> Option<Self> {
        Some(Self {
            gpu: Gpu::new(&device::card()?).unwrap(),
            is_card: true,
        })
    }
}

cuzk_testkit::on_both!(
    transforms,
    synthetic_keys,
    every_file,
    points_outside_the_subgroup_are_refused,
    damaged_files_are_refused,
);

fn fixed() -> ProveOptions {
    let (r, s) = (Fr::from(3).pow(12345), Fr::from(5).pow(54321));
    ProveOptions::default().with_blinding(Blinding::from_caller(r.into(), s.into()))
}

fn transforms(rig: &Rig) {
    let most = if rig.is_card { 14 } else { 6 };
    let generator = FixedBase::new(&G1Affine::generator());
    for family in [RootGenerator::Five, RootGenerator::Seven] {
        for log_n in (0..=most).filter(|log_n| *log_n < 7 || log_n % 7 == 0) {
            let n = 1_u64 << log_n;
            // Multiples that grow, some at infinity, some equal.
            let scalars: Vec<Scalar> = (0..n)
                .map(|i| Fr::from(i % 7).pow(i * i + 3).into())
                .collect();
            let points = generator.multiply_all(&scalars);
            let root = family.root_of_unity(log_n).unwrap();
            for root in [root, root.inverse().unwrap()] {
                let (mut expected, mut found) = (points.clone(), points.clone());
                prepared::transform(&mut expected, root, &|_| {}).unwrap();
                on_device::transform(&rig.gpu, &mut found, root, &|_| {}).unwrap();
                assert!(found == expected, "{family:?}, 2^{log_n}");
            }
        }
    }
    let refused = on_device::transform(&rig.gpu, &mut [G1Affine::INFINITY; 3], Fr::ONE, &|_| {});
    assert!(
        matches!(refused, Err(DeviceError::Proof(Error::Domain(_)))),
        "{refused:?}"
    );
}

/// The same bases, as many multiplications as the cost says, and the proof of the ordinary key from the prepared one,
/// which takes seconds on the emulator.
fn check(
    rig: &Rig,
    name: &str,
    key: &ProvingKey,
    r1cs: &R1cs,
    witness: &Witness,
    proves_emulated: bool,
) {
    let proves = rig.is_card || proves_emulated;
    let gpu = &rig.gpu;
    let (mut expected, mut found) = (key.clone(), key.clone());
    prepared::four_transform_bases(&mut expected, r1cs, &|_| {}).unwrap();
    let done = AtomicU64::new(0);
    on_device::four_transform_bases(gpu, &mut found, r1cs, &|count| {
        done.fetch_add(count, Ordering::Relaxed);
    })
    .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(found == expected, "{name}");
    let cost = DeviceCost::of(gpu, key.flavour, key.domain_size, r1cs).unwrap();
    let on_cpu = Cost::of(key.flavour, key.domain_size, r1cs);
    assert_eq!(done.into_inner(), cost.multiplications, "{name}");
    assert_eq!(cost.multiplications, on_cpu.multiplications, "{name}");

    if !proves {
        return;
    }
    let key = prepared::prepare(found, Rows::Of(r1cs), Origin::SYNTHETIC).unwrap();
    let expected = Prover::new(&expected)
        .and_then(|prover| prover.prove(Circuit::R1cs(r1cs), witness, &fixed()))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let bytes = written(&key);
    let source = BytesSource::new("key", &bytes);
    let reader = Reader::open(&source).unwrap();
    let parts = reader
        .read_without_queries(&LoadOptions::default())
        .unwrap();
    let loaded = DeviceProver::load(gpu, &reader, &parts, Circuit::Matrices(&parts.key.matrices));
    let mut provers = vec![loaded];
    if rig.is_card {
        provers.push(DeviceProver::new(
            gpu,
            &key,
            Circuit::Matrices(&key.matrices),
        ));
    }
    for prover in provers {
        let found = prover
            .and_then(|prover| prover.prove(witness, &fixed()))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found.proof, expected.proof, "{name}");
        assert!(found.verified, "{name}");
    }
}

fn written(key: &PreparedKey) -> Vec<u8> {
    let mut bytes = Vec::new();
    file::write(key, &mut bytes, None).unwrap();
    bytes
}

/// What loading the points of a section of a file says.
fn load(rig: &Rig, bytes: &[u8], section: Section) -> Result<(), DeviceError> {
    let source = BytesSource::new("key", bytes);
    let reader = Reader::open(&source)?;
    let (gpu, stream) = (&rig.gpu, rig.gpu.upload());
    let len = reader.section_bytes(section) as usize / size_of::<G1Affine>();
    let mut points = gpu.device().alloc::<G1Affine>("points", len, stream)?;
    load_points(gpu, stream, &reader, section, points.view_mut())?;
    let mut found = vec![G1Affine::INFINITY; len];
    stream.download_slice(&points, &mut found)?;
    let mut expected = found.clone();
    expected.fill(G1Affine::INFINITY);
    reader.read_points(section, &mut expected)?;
    assert!(found == expected);
    Ok(())
}

/// More points than a chunk of the file has; a byte flipped in one, points off the curve under good checksums, a room of
/// another length.
fn damaged_files_are_refused(rig: &Rig) {
    let instance = Instance::new(Shape::Porep, 13, 1).unwrap();
    let key = proving_key(&instance.r1cs, KeyFamily::Bellman, 8).unwrap();
    let mut key = prepared::prepare(key, Rows::Of(&instance.r1cs), Origin::SYNTHETIC).unwrap();
    let bytes = written(&key);
    load(rig, &bytes, Section::H).unwrap();
    load(rig, &bytes, Section::L).unwrap();
    let h_begin = bytes.len() - size_of_val(&key.key.b_g2_query[..]).next_multiple_of(4096);
    for offset in [h_begin - 5000, h_begin - 400_000] {
        let mut bytes = bytes.clone();
        bytes[offset] ^= 0x40;
        let refused = load(rig, &bytes, Section::H).unwrap_err();
        assert!(matches!(refused, DeviceError::File(_)), "{refused}");
        assert!(refused.to_string().contains("damaged"), "{refused}");
    }
    let at = key.key.h_query.len() - 3;
    key.key.h_query[at].y = key.key.h_query[at - 1].y;
    let bytes = written(&key);
    let refused = load(rig, &bytes, Section::H).unwrap_err().to_string();
    assert!(refused.contains(&format!("H[{at}]")), "{refused}");
    let source = BytesSource::new("key", &bytes);
    let reader = Reader::open(&source).unwrap();
    let refused = reader.read_points(Section::H, &mut key.key.h_query.clone());
    assert!(refused.unwrap_err().to_string().contains("curve"));
    let refused = reader.read_points(Section::H, &mut key.key.h_query[1..]);
    assert!(refused.unwrap_err().to_string().contains("room"));
}

fn synthetic_keys(rig: &Rig) {
    let mut sizes = vec![
        (Shape::Dense, 1),
        (Shape::Dense, 4),
        (Shape::Porep, 1),
        (Shape::Porep, 5),
    ];
    if rig.is_card {
        sizes.extend([(Shape::Porep, 12), (Shape::Dense, 10)]);
    }
    for (shape, log_n) in sizes {
        let instance = Instance::new(shape, log_n, 7).unwrap();
        for family in FAMILIES {
            let key = proving_key(&instance.r1cs, family, 8).unwrap();
            let name = format!("{shape:?}, 2^{log_n}, {family:?}");
            let proves_emulated =
                log_n == 1 && shape == Shape::Porep && family != KeyFamily::Arkworks;
            check(
                rig,
                &name,
                &key,
                &instance.r1cs,
                &instance.witness,
                proves_emulated,
            );
        }
    }
    assert!(!measure_multiplication(&rig.gpu).unwrap().is_zero());
}

fn every_file(rig: &Rig) {
    let options = LoadOptions::default();
    let mut checked = 0;
    for case in cases() {
        let (Some(r1cs), Some(wtns)) = (case.r1cs(), case.wtns()) else {
            continue;
        };
        let r1cs = r1cs::read(&BytesSource::new("r1cs", &r1cs), &options)
            .unwrap()
            .r1cs;
        // On the emulator the large ones take long.
        if !rig.is_card && r1cs.domain_size() > 64 {
            continue;
        }
        let witness = wtns::read(&BytesSource::new("wtns", &wtns), &options).unwrap();
        let witness = witness.witness;
        let mut keys = Vec::new();
        if let Some(bytes) = case.zkey() {
            let source = BytesSource::new("zkey", &bytes);
            keys.push(zkey::read(&source, &options).unwrap().key);
        }
        if let Some(bytes) = case.params() {
            let source = BytesSource::new("params", &bytes);
            keys.push(bellman::read_params(&source, &options).unwrap().key);
        }
        for key in keys {
            check(rig, &case.name, &key, &r1cs, &witness, false);
            checked += 1;
        }
    }
    assert!(checked > 0);
}

/// (0, 2) is on the curve, and of order three.
fn points_outside_the_subgroup_are_refused(rig: &Rig) {
    let instance = Instance::new(Shape::Dense, 3, 1).unwrap();
    for family in FAMILIES {
        let mut key = proving_key(&instance.r1cs, family, 8).unwrap();
        key.h_query[5] = G1Affine {
            x: Fp::from(0),
            y: Fp::from(2),
        };
        let before = key.clone();
        let refused = on_device::four_transform_bases(&rig.gpu, &mut key, &instance.r1cs, &|_| {});
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("H[5]") && text.contains("subgroup"), "{text}");
        assert!(key == before);
    }
    // And what is prepared already.
    let mut key = proving_key(&instance.r1cs, KeyFamily::Circom, 8).unwrap();
    on_device::four_transform_bases(&rig.gpu, &mut key, &instance.r1cs, &|_| {}).unwrap();
    let refused = on_device::four_transform_bases(&rig.gpu, &mut key, &instance.r1cs, &|_| {});
    assert!(refused.unwrap_err().to_string().contains("already"));
}
