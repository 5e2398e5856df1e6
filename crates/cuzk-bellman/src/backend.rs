//! Who makes the proofs.

use cuzk_formats::{R1cs, Witness, proof};
use cuzk_groth16::device::DeviceProver;
use cuzk_groth16::{Circuit, ProveOptions, Proved, Prover};

use crate::error::Error;

/// A proof to be made.
#[derive(Debug)]
pub struct Job {
    /// The witness.
    pub witness: Witness,
    /// How to prove.
    pub options: ProveOptions,
}

/// Makes proofs of one circuit with one key: a [`Prover`] on the CPU, a [`DeviceProver`] on a GPU, or what
/// distributes partitions over devices: `Partitions`, of feature `sched`.
pub trait Backend: Sync {
    /// Proves each of `jobs` and gives the proofs in their order; the first failure ends it.
    ///
    /// A job is drawn when there is room for its witness and not before: a list of partitions is not
    /// synthesised all at once.
    ///
    /// # Errors
    /// What drawing a job says, or the proving of one.
    fn prove_all(
        &self,
        r1cs: &R1cs,
        jobs: &mut dyn Iterator<Item = Result<Job, Error>>,
    ) -> Result<Vec<Proved>, Error>;
}

/// One after the other, each on all cores.
impl Backend for Prover<'_> {
    fn prove_all(
        &self,
        r1cs: &R1cs,
        jobs: &mut dyn Iterator<Item = Result<Job, Error>>,
    ) -> Result<Vec<Proved>, Error> {
        jobs.map(|job| {
            let Job { witness, options } = job?;
            Ok(self.prove(Circuit::R1cs(r1cs), &witness, &options)?)
        })
        .collect()
    }
}

/// One after the other, on its GPU. The prover was made with the shape's constraint system.
impl Backend for DeviceProver<'_, '_> {
    fn prove_all(
        &self,
        r1cs: &R1cs,
        jobs: &mut dyn Iterator<Item = Result<Job, Error>>,
    ) -> Result<Vec<Proved>, Error> {
        check_circuit(self.circuit(), r1cs)?;
        jobs.map(|job| {
            let Job { witness, options } = job?;
            self.prove(&witness, &options)
                .map_err(|error| Error::of_device(&error))
        })
        .collect()
    }
}

/// That a prover was made for this constraint system: no proof of another one would verify, and nothing would say why.
pub(crate) fn check_circuit(circuit: Option<&Circuit<'_>>, r1cs: &R1cs) -> Result<(), Error> {
    match circuit {
        Some(circuit) if !circuit.is_of(r1cs) => Err(Error::OtherCircuit),
        _ => Ok(()),
    }
}

/// The proofs back to back, 192 bytes each: what Filecoin calls a proof of several partitions.
pub fn to_bytes<'a>(proofs: impl IntoIterator<Item = &'a Proved>) -> Vec<u8> {
    proofs
        .into_iter()
        .flat_map(|proved| proof::to_bytes(&proved.proof))
        .collect()
}

/// The one proof of a batch of one.
pub(crate) fn single(proofs: Vec<Proved>) -> Proved {
    let mut proofs = proofs.into_iter();
    match (proofs.next(), proofs.next()) {
        (Some(proved), None) => proved,
        _ => unreachable!("one job is one proof"),
    }
}
