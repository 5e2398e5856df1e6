//! The Spend circuit of Sapling, with witnesses that follow from a seed.

use std::error::Error;

use bls12_381::Scalar;
use sapling_crypto::circuit::{Spend, ValueCommitmentOpening};
use sapling_crypto::keys::ExpandedSpendingKey;
use sapling_crypto::value::NoteValue;
use sapling_crypto::{Diversifier, MerklePath, Node, Note, Rseed};

use crate::Bytes;

const TREE_DEPTH: usize = 32;

/// The circuit without a witness.
pub fn blank() -> Spend {
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
///
/// # Errors
/// None for the keys that follow from a seed.
pub fn spend(seed: u64) -> Result<Spend, Box<dyn Error>> {
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
