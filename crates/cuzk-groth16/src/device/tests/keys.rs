//! Keys made on the device, and keys uploaded, wherever their plan puts them.

use cuzk_field::{Affine, G1Affine, G2Affine};
use cuzk_formats::QueryVariables;
use cuzk_kernels::DeviceCurve;

use super::Rig;
use crate::device::key::{Members, Points};
use crate::device::{DeviceKey, Gpu, KeyPlan, KeySizes, Part, Residency, synthetic_key};
use crate::key::KeyRef;
use crate::synth::{Instance, KeyExponents, KeyFamily, Shape, proving_key};

cuzk_testkit::on_both!(generated_keys_are_those_of_the_host);

/// Points made on the device, and points uploaded; circuits with and without points at infinity; all of the key on the
/// device, some of it, and nothing.
fn generated_keys_are_those_of_the_host(rig: &Rig) {
    let gpu = Gpu::new(rig.device()).unwrap();
    for (shape, family) in [
        (Shape::Porep, KeyFamily::Circom),
        (Shape::Porep, KeyFamily::Bellman),
        (Shape::Dense, KeyFamily::Arkworks),
    ] {
        let r1cs = Instance::new(shape, 6, 3).unwrap().r1cs;
        let variables = match family {
            KeyFamily::Bellman => Some(QueryVariables::of(&r1cs)),
            KeyFamily::Circom | KeyFamily::Arkworks => None,
        };
        let host_key = proving_key(&r1cs, family, 4).unwrap();
        let key = KeyRef::from(&host_key);
        let exponents = KeyExponents::new(&r1cs, family, 4).unwrap();
        assert!(synthetic_key(&gpu, &exponents).unwrap() == host_key);
        let mut seen = Vec::new();
        for plan in plans(rig, &key) {
            seen.push(plan.residency());
            let upload = DeviceKey::upload(&gpu, plan.clone(), &key, variables.as_ref());
            let made = DeviceKey::generate(&gpu, plan.clone(), &exponents, variables.as_ref());
            let [made, uploaded] = [made, upload].map(Result::unwrap);
            gpu.keys().synchronize().unwrap();
            assert_eq!(made.header(), uploaded.header());
            assert!(made.bytes() <= plan.key_bytes() + 3 * 8 * 2);
            assert_eq!(made.host_bytes() == 0, plan.residency() == Residency::Whole);
            let [made, uploaded] = [&made, &uploaded].map(|key| contents(rig, key));
            assert!(made.0 == uploaded.0);
            assert!(made.1 == uploaded.1);
            assert!(made.1[3] == *key.h_query.as_points().unwrap());
            assert_eq!(made.2, uploaded.2);
        }
        assert_eq!(seen[0], Residency::Whole);
        assert!(matches!(seen[1], Residency::Hot(_)));
        assert_eq!(seen[2], Residency::Streamed);
    }
}

/// One of each kind.
fn plans(rig: &Rig, key: &KeyRef<'_>) -> [KeyPlan; 3] {
    let header = key.header();
    let form = crate::device::prover::form_of(&header).unwrap();
    let sizes = KeySizes::of(&header, form);
    [&Part::ALL[..], &[Part::L, Part::B1], &[]]
        .map(|parts| KeyPlan::of_parts(rig.device().info(), &sizes, parts).unwrap())
}

type Bitmap = (Option<std::ops::Range<usize>>, Vec<u32>, Vec<u32>);

/// The points of B2, those of the parts in G1, and the variables that they are for.
fn contents(rig: &Rig, key: &DeviceKey) -> (Vec<G2Affine>, [Vec<G1Affine>; 4], [Bitmap; 3]) {
    fn read<F: DeviceCurve>(rig: &Rig, points: &Points<F>) -> Vec<Affine<F>> {
        match points {
            Points::Device(points) => rig.read(points),
            Points::Host(points) => points.to_vec(),
            Points::Shared(_) => unreachable!(),
        }
    }
    let shared = rig.read(&key.sparse_g1);
    let sparse = |points: &Points<_>, count: usize| match points {
        Points::Shared(first) => shared[*first..first + count].to_vec(),
        points => read(rig, points),
    };
    let bitmap = |members: &Members| match members {
        Members::Range(range) => (Some(range.clone()), vec![], vec![]),
        Members::Bitmap(bitmap) => (None, rig.read(&bitmap.words), rig.read(&bitmap.ranks)),
    };
    let queries = [&key.a_query, &key.b_query, &key.l_query];
    let [a, b, l] = queries.map(|query| query.points);
    let points = [
        sparse(&key.a, a),
        sparse(&key.b_g1, b),
        sparse(&key.l, l),
        read(rig, &key.h),
    ];
    let members = queries.map(|query| bitmap(&query.members));
    (read(rig, &key.b_g2), points, members)
}
