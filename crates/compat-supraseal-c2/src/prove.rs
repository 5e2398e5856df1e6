//! Proofs from what the caller has evaluated.

use std::sync::atomic::{AtomicU64, Ordering};

use cuzk_field::{Fr, Scalar};
use cuzk_formats::{Proof, Witness};
use cuzk_groth16::{
    Blinding, Circuit, Error as ProverError, ProveOptions, Prover, QueryVariables, Rows,
};
use rayon::prelude::*;

use crate::error::Error;
use crate::srs::SRS;

/// A circuit as the caller evaluated it: checked, and copied once.
pub(crate) struct Evaluated {
    /// A w and B w with the input rows; C w was compared with their product.
    pub(crate) rows: Rows,
    /// Inputs, then the others.
    pub(crate) witness: Witness,
    /// Which variables have points in A and B.
    pub(crate) variables: QueryVariables,
    /// r and s.
    pub(crate) blinding: Blinding,
}

static PROOFS: AtomicU64 = AtomicU64::new(0);

/// How many proofs this process has made and verified through this crate.
pub fn proofs_made() -> u64 {
    PROOFS.load(Ordering::Relaxed)
}

/// Proves circuits in their order. `circuit` makes them when their turn comes, so that one at a time is in
/// memory twice.
pub(crate) fn prove_all(
    srs: &SRS,
    circuits: usize,
    circuit: impl Fn(usize) -> Result<Evaluated, Error>,
) -> Result<Vec<Proof>, Error> {
    let at = |circuit| move |error| Error::Prover { circuit, error };
    let prover = Prover::new(srs.key()?).map_err(at(0))?;
    let proofs = (0..circuits).map(|index| {
        let Evaluated {
            rows,
            witness,
            variables,
            blinding,
        } = circuit(index)?;
        let (key, found) = (prover.key().domain_size, rows.len().next_power_of_two());
        if key != found {
            let error = ProverError::CircuitMismatch {
                what: "rows in its domain",
                key,
                circuit: found,
            };
            return Err(at(index)(error));
        }
        let variables = Some(&variables);
        let options = ProveOptions::default().with_blinding(blinding);
        let proved = prover
            .prove(Circuit::Rows { rows, variables }, &witness, &options)
            .map_err(at(index))?;
        tracing::debug!(
            circuit = index,
            elapsed_ms = proved.stages.total().as_millis(),
            "proved"
        );
        Ok(proved.proof)
    });
    let proofs: Vec<Proof> = proofs.collect::<Result<_, _>>()?;
    PROOFS.fetch_add(proofs.len() as u64, Ordering::Relaxed);
    Ok(proofs)
}

/// Rows of A, B and C that satisfy a b = c.
pub(crate) fn rows(circuit: usize, a: Vec<Fr>, b: Vec<Fr>, c: &[Fr]) -> Result<Rows, Error> {
    let violated = (0..c.len())
        .into_par_iter()
        .find_first(|row| a[*row] * b[*row] != c[*row]);
    // Wiped from here on.
    let rows = Rows::new(a, b).map_err(|error| Error::Prover { circuit, error })?;
    match violated {
        None => Ok(rows),
        Some(constraint) => Err(Error::Prover {
            circuit,
            error: ProverError::Unsatisfied { constraint },
        }),
    }
}

/// The witness of Montgomery values.
pub(crate) fn witness(inputs: &[Fr], aux: &[Fr]) -> Witness {
    let mut values = Vec::with_capacity(inputs.len() + aux.len());
    values.par_extend(
        inputs
            .par_iter()
            .chain(aux)
            .map(|value| Scalar::from(*value)),
    );
    Witness::new(values)
}
