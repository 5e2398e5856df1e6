//! A key and its circuit, joined.

use cuzk_field::{Affine, CurveField};
use cuzk_formats::prepared::{Origin, PreparedKey};
use cuzk_formats::{AbMatrices, ProvingKey, QueryLayout, QueryVariables, R1cs};

use crate::circuit::Circuit;
use crate::error::Error;
use crate::key::KeyRef;

/// Where the rows of a prepared key come from.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// A constraint system.
    Of(&'a R1cs),
    /// The matrices of the key's own zkey, input rows included.
    Zkey(&'a AbMatrices),
}

/// Joins a key, ordinary or with the bases of four transforms, with its circuit.
///
/// # Errors
/// When they are not of one setup by their counts.
pub fn prepare(key: ProvingKey, rows: Rows<'_>, origin: Origin) -> Result<PreparedKey, Error> {
    let key_ref = KeyRef::from(&key);
    key_ref.check()?;
    let circuit = match rows {
        Rows::Of(r1cs) => Circuit::R1cs(r1cs),
        Rows::Zkey(matrices) => Circuit::Matrices(matrices),
    };
    circuit.check(&key_ref.header())?;
    let variables = circuit.query_variables(&key_ref.header(), key_ref.variables)?;
    let matrices = match rows {
        Rows::Of(r1cs) => AbMatrices::of(r1cs).map_err(|_| Error::Circuit {
            what: "it has 2^32 entries or more".into(),
        })?,
        Rows::Zkey(matrices) => matrices.clone(),
    };
    let (key, variables) = match variables {
        Some(variables) => (key, variables),
        None => without_infinity(key),
    };
    Ok(PreparedKey {
        key,
        variables,
        matrices,
        origin,
    })
}

/// A key of the compact layout: what is at infinity in A, or in both groups of B, is left out.
fn without_infinity(mut key: ProvingKey) -> (ProvingKey, QueryVariables) {
    fn finite<F: CurveField>(points: &[Affine<F>]) -> impl Iterator<Item = bool> {
        points.iter().map(|point| !point.is_infinity())
    }
    let indices = |keep: &[bool]| -> Vec<u32> {
        let kept = (0..).zip(keep).filter(|(_, keep)| **keep);
        kept.map(|(index, _)| index).collect()
    };
    let in_a: Vec<bool> = finite(&key.a_query).collect();
    let in_b: Vec<bool> = finite(&key.b_g1_query)
        .zip(finite(&key.b_g2_query))
        .map(|(g1, g2)| g1 || g2)
        .collect();
    retain(&mut key.a_query, &in_a);
    retain(&mut key.b_g1_query, &in_b);
    retain(&mut key.b_g2_query, &in_b);
    key.query_layout = QueryLayout::Compact;
    let variables = QueryVariables {
        a: indices(&in_a),
        b: indices(&in_b),
    };
    (key, variables)
}

fn retain<T>(points: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    points.retain(|_| keep.next().is_some_and(|keep| *keep));
    points.shrink_to_fit();
}
