//! Proofs from what the caller has evaluated.

use std::sync::atomic::{AtomicU64, Ordering};

use cuzk_field::{Fr, Scalar};
use cuzk_formats::{Proof, Witness};
use cuzk_groth16::{
    Blinding, Circuit, Error as ProverError, ProveOptions, Prover, QueryVariables, Rows,
};
use cuzk_sched::Evaluated;
use rayon::prelude::*;

use crate::densities::Densities;
use crate::engine;
use crate::error::Error;
use crate::memory::{Bytes, argument, copied};
use crate::srs::SRS;

/// A circuit in the caller's memory.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) a: &'a [Bytes],
    pub(crate) b: &'a [Bytes],
    pub(crate) c: &'a [Bytes],
    pub(crate) inputs: &'a [Bytes],
    pub(crate) aux: &'a [Bytes],
    pub(crate) densities: Densities<'a>,
}

/// What is to be proved: circuits of one shape, with r and s for each.
pub(crate) struct Batch<'a> {
    pub(crate) given: &'a [Given<'a>],
    pub(crate) r: &'a [Bytes],
    pub(crate) s: &'a [Bytes],
}

static PROOFS: AtomicU64 = AtomicU64::new(0);
static ON_GPUS: AtomicU64 = AtomicU64::new(0);

/// How many proofs this process has made and verified through this crate.
pub fn proofs_made() -> u64 {
    PROOFS.load(Ordering::Relaxed)
}

/// How many of them on GPUs.
pub fn proofs_made_on_gpus() -> u64 {
    ON_GPUS.load(Ordering::Relaxed)
}

/// Proves circuits: on GPUs where there are some, what none of them can on the CPU. Each is copied when its turn comes.
pub(crate) fn prove_all(
    srs: &SRS,
    given: &[Given<'_>],
    r: &[Bytes],
    s: &[Bytes],
) -> Result<Vec<Proof>, Error> {
    let key = srs.key()?;
    let Some(first) = given.first() else {
        return Ok(Vec::new());
    };
    // Lengths before contents: what is longer than the key says is not read.
    for (circuit, other) in given.iter().enumerate() {
        let rows = other.a.len().next_power_of_two();
        let counts = [
            ("rows in its domain", key.domain_size, rows),
            ("inputs", key.vk.gamma_abc_g1.len(), other.inputs.len()),
            ("other variables", key.l_query.len(), other.aux.len()),
        ];
        for (what, key, circuit_has) in counts {
            if key != circuit_has {
                let error = ProverError::CircuitMismatch {
                    what,
                    key,
                    circuit: circuit_has,
                };
                return Err(Error::Prover { circuit, error });
            }
        }
    }
    for (circuit, other) in given.iter().enumerate() {
        if other.densities != first.densities {
            return Err(argument(
                "densities",
                "those of circuit 0".into(),
                format!("others in circuit {circuit}"),
            ));
        }
    }
    let variables = first.densities.variables()?;
    let batch = Batch { given, r, s };
    let mut proofs = engine::prove_on_gpus(srs, &batch, &variables)?;
    let on_gpus = proofs.iter().flatten().count();
    if on_gpus < proofs.len() {
        prove_on_cpu(srs, &batch, &variables, &mut proofs)?;
    }
    let proofs: Vec<Proof> = proofs.into_iter().flatten().collect();
    PROOFS.fetch_add(proofs.len() as u64, Ordering::Relaxed);
    ON_GPUS.fetch_add(on_gpus as u64, Ordering::Relaxed);
    Ok(proofs)
}

/// Proves those of which there is no proof yet, in their order.
fn prove_on_cpu(
    srs: &SRS,
    batch: &Batch<'_>,
    variables: &QueryVariables,
    proofs: &mut [Option<Proof>],
) -> Result<(), Error> {
    let at = |circuit| move |error| Error::Prover { circuit, error };
    let prover = Prover::new(srs.key()?).map_err(at(0))?;
    let missing = proofs.iter_mut().enumerate();
    for (circuit, proof) in missing.filter(|(_, proof)| proof.is_none()) {
        let Evaluated {
            rows,
            witness,
            options,
        } = batch.evaluate(circuit)?;
        let variables = Some(variables);
        let proved = prover
            .prove(Circuit::Rows { rows, variables }, &witness, &options)
            .map_err(at(circuit))?;
        let elapsed_ms = proved.stages.total().as_millis();
        tracing::debug!(circuit, elapsed_ms, "proved on the CPU");
        *proof = Some(proved.proof);
    }
    Ok(())
}

impl Batch<'_> {
    /// A circuit checked and copied: A w and B w with the input rows, C w compared with their product.
    pub(crate) fn evaluate(&self, circuit: usize) -> Result<Evaluated, Error> {
        let given = &self.given[circuit];
        let copied = |part, elements| copied(circuit, part, elements);
        let r = copied("r", &self.r[circuit..=circuit])?;
        let s = copied("s", &self.s[circuit..=circuit])?;
        let (a, b, c) = (
            copied("A", given.a)?,
            copied("B", given.b)?,
            copied("C", given.c)?,
        );
        let rows = rows(circuit, a, b, &c)?;
        let inputs = copied("inputs", given.inputs)?;
        let aux = copied("other variables", given.aux)?;
        let blinding = Blinding::from_caller(r[0].into(), s[0].into());
        Ok(Evaluated {
            rows,
            witness: witness(&inputs, &aux),
            options: ProveOptions::default().with_blinding(blinding),
        })
    }
}

/// Rows of A, B and C that satisfy a b = c.
fn rows(
    circuit: usize,
    mut a: zeroize::Zeroizing<Vec<Fr>>,
    mut b: zeroize::Zeroizing<Vec<Fr>>,
    c: &[Fr],
) -> Result<Rows, Error> {
    let violated = (0..c.len())
        .into_par_iter()
        .find_first(|row| a[*row] * b[*row] != c[*row]);
    if let Some(constraint) = violated {
        return Err(Error::Prover {
            circuit,
            error: ProverError::Unsatisfied { constraint },
        });
    }
    // Wiped from here on by themselves.
    let (a, b) = (std::mem::take(&mut *a), std::mem::take(&mut *b));
    Rows::new(a, b).map_err(|error| Error::Prover { circuit, error })
}

/// The witness of Montgomery values.
fn witness(inputs: &[Fr], aux: &[Fr]) -> Witness {
    let mut values = Vec::with_capacity(inputs.len() + aux.len());
    values.par_extend(
        inputs
            .par_iter()
            .chain(aux)
            .map(|value| Scalar::from(*value)),
    );
    Witness::new(values)
}
