//! The same circuits through bellperson's feature `cuda-supraseal`, which cuzk's drop-in for supraseal-c2 serves.
//!
//! It is a second bellperson, since with that feature storage-proofs-core compiles only with its own, which builds CUDA
//! code. Both take the circuits of bellpepper-core.

use std::fs::File;
use std::io::{BufWriter, Write as _};

use anyhow::{Result, ensure};
use bellpepper_core::Circuit;
use bellperson::groth16::Parameters;
use bellperson_supraseal::groth16::{SuprasealParameters, create_proof_batch};
use blstrs::{Bls12, Scalar};

use crate::compare::{Case, Round, timed};

/// Proves all partitions once more, with the factors of a round.
pub fn run<C>(case: &Case<C>, parameters: &Parameters<Bls12>, round: Round) -> Result<()>
where
    C: Circuit<Scalar> + Clone + Send,
{
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("circuit.params");
    let mut file = BufWriter::new(File::create(&path)?);
    parameters.write(&mut file)?;
    file.flush()?;
    let (srs, time) = timed(|| SuprasealParameters::<Bls12>::new(path));
    let srs = srs?;
    println!("  drop-in: parameters read and checked: {time}");

    let before = supraseal_c2::proofs_made();
    let circuits = case.partitions.iter().map(|part| part.circuit.clone());
    let circuits = circuits.collect();
    let (r, s) = (round.factors.r, round.factors.s);
    let (proofs, time) = timed(|| create_proof_batch(circuits, &srs, r, s));
    let mut bytes = Vec::new();
    for proof in proofs? {
        proof.write(&mut bytes)?;
    }
    ensure!(bytes == round.proofs, "the drop-in made different proofs");
    println!(
        "  drop-in: bellperson with cuda-supraseal, synthesis to proof: {time}; the same bytes; proofs made and verified \
         by cuzk: {}",
        supraseal_c2::proofs_made() - before
    );
    Ok(())
}
