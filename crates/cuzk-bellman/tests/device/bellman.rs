//! Circuits of zkcrypto's bellman with keys of its groth16.

use bls12_381::{Bls12, Scalar};
use cuzk_bellman::{bellman as ours, to_bytes};
use cuzk_groth16::device::DeviceProver;
use cuzk_groth16::{Blinding, Circuit as CuzkCircuit, ProveOptions};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

use crate::common;
use crate::{Rig, circuits};

circuits!(bellman, Scalar);

cuzk_testkit::on_both!(proofs_are_those_of_bellman);

fn proofs_are_those_of_bellman(rig: &Rig) {
    let r = Scalar::from(0x1234_5678_9abc_def1).square().square();
    let (r, s) = (r + Scalar::from(5), r.square() * r);
    let scalar = |value: Scalar| cuzk_field::Scalar::from_le_bytes(&value.to_bytes()).unwrap();
    let blinding = Blinding::from_caller(scalar(r), scalar(s));
    let options = ProveOptions::default().with_blinding(blinding);
    for form in rig.forms() {
        let blank = Chain::blank(form);
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let parameters: groth16::Parameters<Bls12> =
            groth16::generate_random_parameters(blank.clone(), &mut rng).unwrap();
        let key = ours::proving_key(&parameters).unwrap();
        let shape = ours::record(blank).unwrap();
        let prover = DeviceProver::new(rig.gpu, &key, CuzkCircuit::R1cs(shape.r1cs())).unwrap();
        let firsts: &[u64] = if rig.is_card { &[0, 11] } else { &[11] };
        for first in firsts {
            let circuit = Chain::with(form, *first);
            let proved = ours::prove(&prover, &shape, circuit.clone(), &options)
                .unwrap_or_else(|error| panic!("{form:?}, {first}: {error}"));
            let proof = groth16::create_proof(circuit, &parameters, r, s).unwrap();
            let mut expected = Vec::new();
            proof.write(&mut expected).unwrap();
            assert_eq!(to_bytes([&proved]), expected, "{form:?}, {first}");
        }
    }
}
