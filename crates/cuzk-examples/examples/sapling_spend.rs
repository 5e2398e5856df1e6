//! A Sapling Spend of Zcash with the parameters of its ceremony, by cuzk and by bellman's groth16 in turn,
//! verified with the ceremony's verifying key.
//!
//! `cargo run --release -p cuzk-examples --features sapling --example sapling_spend -- [ROUNDS]`
#![allow(clippy::print_stdout, reason = "what it prints is its result")]

use std::error::Error;

use bls12_381::{Bls12, Scalar};
use cuzk_bellman::{Histogram, bellman as ours, to_bytes};
use cuzk_examples::{Bytes, median, shares, timed};
use cuzk_formats::{BytesSource, LoadOptions, bellman as params};
use cuzk_groth16::{Blinding, ProveOptions, Prover};
use sapling_crypto::circuit::{Spend, ValueCommitmentOpening};
use sapling_crypto::keys::ExpandedSpendingKey;
use sapling_crypto::value::NoteValue;
use sapling_crypto::{Diversifier, MerklePath, Node, Note, Rseed};

const TREE_DEPTH: usize = 32;

/// A circuit without a witness.
fn blank() -> Spend {
    Spend {
        value_commitment_opening: None,
        proof_generation_key: None,
        payment_address: None,
        commitment_randomness: None,
        ar: None,
        auth_path: vec![None; TREE_DEPTH],
        anchor: None,
    }
}

/// A note of some value at some place of a tree, spent.
fn spend(seed: u64) -> Result<Spend, Box<dyn Error>> {
    let mut bytes = Bytes::new(seed);
    let mut scalar = || jubjub::Fr::from_bytes_wide(&bytes.take());
    let (randomness, commitment_randomness, ar) = (scalar(), scalar(), scalar());
    let key = ExpandedSpendingKey::from_spending_key(&bytes.take::<32>()).ok_or("no key")?;
    let proof_generation_key = key.proof_generation_key();
    let viewing_key = proof_generation_key.to_viewing_key();
    let payment_address = (0..64)
        .find_map(|_| viewing_key.to_payment_address(Diversifier(bytes.take())))
        .ok_or("no address")?;
    let value = NoteValue::from_raw(u64::from_le_bytes(bytes.take()) >> 16);
    let rseed = Rseed::BeforeZip212(commitment_randomness);
    let note = Note::from_parts(payment_address, value, rseed);
    let nodes: Vec<Node> = (0..TREE_DEPTH)
        .map(|_| Node::from_scalar(Scalar::from_bytes_wide(&bytes.take())))
        .collect();
    let position = u64::from(u32::from_le_bytes(bytes.take()));
    let path = MerklePath::from_parts(nodes.clone(), position.into()).map_err(|()| "no path")?;
    let anchor = path.root(Node::from_cmu(&note.cmu()));
    let auth_path = nodes.into_iter().enumerate();
    Ok(Spend {
        value_commitment_opening: Some(ValueCommitmentOpening { value, randomness }),
        proof_generation_key: Some(proof_generation_key),
        payment_address: Some(payment_address),
        commitment_randomness: Some(commitment_randomness),
        ar: Some(ar),
        auth_path: auth_path
            .map(|(level, node)| Some((node.into(), position >> level & 1 == 1)))
            .collect(),
        anchor: Some(anchor.into()),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let rounds: u64 = std::env::args().nth(1).map_or(Ok(3), |text| text.parse())?;
    let (file, _) = wagyu_zcash_parameters::load_sapling_parameters();

    let source = BytesSource::new("sapling-spend.params", &file);
    let (loaded, time) = timed(|| params::read_params(&source, &LoadOptions::default()));
    let loaded = loaded?;
    println!(
        "key of {} bytes read and checked by cuzk: {time:.2?}",
        file.len()
    );
    for note in &loaded.notes {
        println!("  {note}");
    }
    let (theirs, time) = timed(|| groth16::Parameters::<Bls12>::read(&file[..], false));
    let theirs = theirs?;
    println!("the same by groth16, unchecked: {time:.2?}");
    let verifying_key = groth16::prepare_verifying_key(&theirs.vk);

    let (shape, time) = timed(|| ours::record(blank()));
    let shape = shape?;
    let r1cs = shape.r1cs();
    println!(
        "circuit recorded: {time:.2?}; {} constraints, {} variables, {} inputs, domain {}",
        r1cs.num_constraints(),
        r1cs.num_variables,
        r1cs.num_inputs,
        r1cs.domain_size()
    );
    let witness = ours::witness(&shape, spend(1)?)?;
    println!("witness: {}", shares(&Histogram::of(&witness)));

    let prover = Prover::new(&loaded.key)?;
    let (mut times, mut proving, mut their_times) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let circuit = spend(2 + round)?;
        let mut bytes = Bytes::new(1000 + round);
        let (r, s) = (
            Scalar::from_bytes_wide(&bytes.take()),
            Scalar::from_bytes_wide(&bytes.take()),
        );
        let given = |value: Scalar| {
            cuzk_field::Scalar::from_le_bytes(&value.to_bytes()).ok_or("an element below r")
        };
        let blinding = Blinding::from_caller(given(r)?, given(s)?);
        let options = ProveOptions::default().with_blinding(blinding);

        let (proved, time) = timed(|| ours::prove(&prover, &shape, circuit.clone(), &options));
        let proved = proved?;
        times.push(time);
        proving.push(proved.stages.total());
        let (proof, time) = timed(|| groth16::create_proof(circuit, &theirs, r, s));
        let proof = proof.map_err(|error| error.to_string())?;
        their_times.push(time);

        let mut expected = Vec::new();
        proof.write(&mut expected)?;
        if to_bytes([&proved]) != expected {
            return Err("the proofs differ".into());
        }
        let public: Option<Vec<Scalar>> = proved
            .public_values
            .iter()
            .map(|value| Scalar::from_bytes(&value.to_le_bytes()).into())
            .collect();
        let proof = ours::to_proof(&proved.proof)?;
        groth16::verify_proof(&verifying_key, &proof, &public.ok_or("a value below r")?)
            .map_err(|error| error.to_string())?;
    }
    println!(
        "{rounds} proofs byte for byte equal for equal r and s, and valid under the ceremony's key"
    );
    println!("threads: {}", std::thread::available_parallelism()?);
    println!(
        "cuzk, synthesis to verified proof, median: {:.2?} (of it proving and verifying {:.2?})",
        median(times),
        median(proving)
    );
    println!(
        "groth16 {}, synthesis to proof, median: {:.2?}",
        "0.2",
        median(their_times)
    );
    Ok(())
}
