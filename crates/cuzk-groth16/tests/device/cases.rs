//! What users of other provers met, on a device.

use cuzk_field::{Fr, Scalar};
use cuzk_formats::{ProvingKey, Witness};
use cuzk_groth16::device::{DeviceProver, Error as DeviceError, Gpu};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};
use cuzk_groth16::{Circuit, Error};

use crate::fixed;
use crate::proofs::compare;
use crate::small::{InB, circuit};

on_both!(
    word_borders_and_empty_densities_prove,
    a_damaged_key_is_found_by_verification,
);

/// WP-10: counts about a word's, inputs alone in B or nothing at all; witnesses with nothing but ones, with zeros at a
/// word's borders, and with full values there.
fn word_borders_and_empty_densities_prove(gpu: &Gpu, is_card: bool) {
    let all_counts = [1, 2, 3, 31, 32, 33, 63, 64, 65];
    let all_in_b = [InB::Private, InB::Input, InB::Nothing];
    let all = all_counts.into_iter().flat_map(|aux| {
        (1..=3).flat_map(move |inputs| all_in_b.map(move |in_b| (aux, inputs, in_b)))
    });
    let few = [(1, 1, InB::Nothing), (33, 2, InB::Input)];
    let cases: Vec<_> = if is_card { all.collect() } else { few.to_vec() };
    for (i, (aux, inputs, in_b)) in cases.into_iter().enumerate() {
        let r1cs = circuit(aux, inputs, in_b);
        let mut values = vec![Scalar::ONE; inputs + aux];
        if in_b == InB::Input {
            let private = inputs..inputs + aux;
            for variable in [31, 33, 63].into_iter().filter(|x| private.contains(x)) {
                values[variable] = Scalar::ZERO;
            }
            for variable in [32, 34, 64].into_iter().filter(|x| private.contains(x)) {
                values[variable] = (Fr::from(7).pow(99) + Fr::from(variable as u64)).into();
            }
        }
        let witness = Witness::new(values);
        let family = [KeyFamily::Bellman, KeyFamily::Circom, KeyFamily::Arkworks][i % 3];
        let key = proving_key(&r1cs, family, 3).unwrap();
        let name = format!("{aux} aux, {inputs} inputs, in B {in_b:?}, {family:?}");
        compare(gpu, &key, Circuit::R1cs(&r1cs), &witness, &name);
    }
}

/// WP-13, WP-14: two points exchanged, all of them on their curve, and a proof that does not verify: it is withheld, and the
/// witness is not to blame. On a card the next key is right.
fn a_damaged_key_is_found_by_verification(gpu: &Gpu, is_card: bool) {
    let log_n = if is_card { 4 } else { 2 };
    let Instance { r1cs, witness } = Instance::new(Shape::Dense, log_n, 4).unwrap();
    let key = proving_key(&r1cs, KeyFamily::Bellman, 2).unwrap();
    let parts: [fn(&mut ProvingKey); 5] = [
        |key| key.h_query.swap(0, 1),
        |key| key.b_g2_query.swap(0, 1),
        |key| key.l_query.swap(0, 1),
        |key| key.a_query.swap(0, 1),
        |key| key.b_g1_query.swap(0, 1),
    ];
    for (part, damage) in parts.iter().take(if is_card { 5 } else { 1 }).enumerate() {
        let mut damaged = key.clone();
        damage(&mut damaged);
        let prover = DeviceProver::new(gpu, &damaged, Circuit::R1cs(&r1cs)).unwrap();
        match prover.prove(&witness, &fixed()) {
            Err(DeviceError::Proof(Error::ProofRejected {
                witness_checked: true,
            })) => {}
            other => panic!("{part}: {:?}", other.map(|proved| proved.verified)),
        }
    }
    if is_card {
        compare(gpu, &key, Circuit::R1cs(&r1cs), &witness, "the right key");
    }
}
