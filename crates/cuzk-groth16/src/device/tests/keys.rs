//! Keys made on the device, and keys uploaded, wherever their plan puts them.

use std::sync::Arc;

use cuzk_field::{Affine, G1Affine, G1Xyzz, G2Affine, Scalar};
use cuzk_formats::QueryVariables;
use cuzk_kernels::DeviceCurve;
use cuzk_msm::device::Multiples;

use super::Rig;
use crate::device::key::{Members, Points};
use crate::device::{
    DeviceKey, DeviceProver, Gpu, KeyPlan, KeySizes, Part, Residency, synthetic_key,
};
use crate::key::KeyRef;
use crate::setup::Setup;
use crate::synth::{Instance, KeyExponents, KeyFamily, Shape, proving_key};
use crate::{Blinding, Circuit, ProveOptions, Prover};

cuzk_testkit::on_both!(
    generated_keys_are_those_of_the_host,
    kept_multiples_change_no_proof,
);

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
            let h = key.h_query.as_points().unwrap();
            assert!(made.1[3][..h.len()] == *h);
            if let Some(kept) = plan.h_multiples() {
                let multiples = h.iter().map(|point| {
                    let doubled = |point: G1Xyzz, _| point.double();
                    (0..kept.step_bits())
                        .fold(G1Xyzz::from(*point), doubled)
                        .to_affine()
                });
                assert!(made.1[3][h.len()..] == multiples.collect::<Vec<_>>());
            }
            assert_eq!(made.2, uploaded.2);
        }
        assert_eq!(seen[0], Residency::Whole);
        assert!(matches!(seen[1], Residency::Hot(_)));
        assert_eq!(seen[2], Residency::Streamed);
        assert_eq!(seen[3], Residency::Whole);
    }
}

fn kept_multiples_change_no_proof(rig: &Rig) {
    let gpu = Gpu::new(rig.device()).unwrap();
    let Instance { r1cs, witness } = Instance::new(Shape::Porep, 4, 3).unwrap();
    let key = proving_key(&r1cs, KeyFamily::Circom, 4).unwrap();
    let blinding = Blinding::from_caller(Scalar::from(7), Scalar::from(8));
    let options = ProveOptions::default().with_blinding(blinding);
    let circuit = || Circuit::R1cs(&r1cs);
    let expected = Prover::new(&key).unwrap();
    let expected = expected.prove(circuit(), &witness, &options).unwrap();
    let key = KeyRef::from(&key);
    let [.., plan] = plans(rig, &key);
    let prover = DeviceProver::place(
        &gpu,
        Setup::new(key.header()).unwrap(),
        circuit(),
        |_, _, _, _| Ok(plan),
        |plan| DeviceKey::upload(&gpu, plan, &key, None).map(Arc::new),
    );
    let found = prover.unwrap().prove(&witness, &options).unwrap();
    assert_eq!(found.proof, expected.proof);
}

/// One of each kind, and one that keeps multiples.
fn plans(rig: &Rig, key: &KeyRef<'_>) -> [KeyPlan; 4] {
    let header = key.header();
    let form = crate::device::prover::form_of(&header).unwrap();
    let sizes = KeySizes::of(&header, form);
    let info = rig.device().info();
    let of = |parts| KeyPlan::of_parts(info, &sizes, parts).unwrap();
    let whole = of(&Part::ALL);
    let multiples = Multiples::new(info, sizes.points_of(Part::H), 25, 2).unwrap();
    [
        whole.clone(),
        of(&[Part::L, Part::B1]),
        of(&[]),
        whole.keeping(multiples),
    ]
}

type Bitmap = (Option<std::ops::Range<usize>>, Vec<u32>, Vec<u32>);

/// The points of B2, those of the parts in G1, and the variables that they are for.
fn contents(rig: &Rig, key: &DeviceKey) -> (Vec<G2Affine>, [Vec<G1Affine>; 4], [Bitmap; 3]) {
    fn read<F: DeviceCurve>(rig: &Rig, points: &Points<F>) -> Vec<Affine<F>> {
        match points {
            Points::Device(points) => rig.download(points),
            Points::Host(points) => points.to_vec(),
            Points::Shared(_) => unreachable!(),
        }
    }
    let shared = rig.download(&key.sparse_g1);
    let sparse = |points: &Points<_>, count: usize| match points {
        Points::Shared(first) => shared[*first..first + count].to_vec(),
        points => read(rig, points),
    };
    let bitmap = |members: &Members| match members {
        Members::Range(range) => (Some(range.clone()), vec![], vec![]),
        Members::Bitmap(bitmap) => (
            None,
            rig.download(&bitmap.words),
            rig.download(&bitmap.ranks),
        ),
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
