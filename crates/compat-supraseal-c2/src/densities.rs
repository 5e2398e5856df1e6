//! Densities: which variables have points in A and B.

use cuzk_groth16::QueryVariables;

use crate::error::Error;
use crate::memory::{argument, at_least};

/// The densities of a circuit, little-endian bits.
#[derive(Clone, Copy)]
pub(crate) struct Densities<'a> {
    /// Of A over the auxiliary variables, of B over the inputs, of B over the auxiliary variables.
    pub(crate) bits: [&'a [u8]; 3],
    /// Bits of each.
    pub(crate) len: [usize; 3],
    /// How many are set, by the caller's word.
    pub(crate) popcounts: [usize; 3],
}

const NAMES: [&str; 3] = ["A density", "B density of inputs", "B density"];
const SET: [&str; 3] = [
    "set bits of the A density",
    "set bits of the B density of inputs",
    "set bits of the B density",
];

impl PartialEq for Densities<'_> {
    /// What lies behind the last bit is not compared: bit vectors leave anything there.
    fn eq(&self, other: &Self) -> bool {
        let equal = |list: usize| {
            let (bytes, bits) = (self.len[list] / 8, self.len[list] % 8);
            let [a, b] = [self.bits[list], other.bits[list]];
            let last = |list: &[u8]| list.get(bytes).map(|byte| byte & ((1 << bits) - 1));
            a.get(..bytes) == b.get(..bytes) && (bits == 0 || last(a) == last(b))
        };
        self.len == other.len && self.popcounts == other.popcounts && (0..3).all(equal)
    }
}

impl Densities<'_> {
    /// The variables of a bellman key's queries; the popcounts are held against the bits.
    pub(crate) fn variables(&self) -> Result<QueryVariables, Error> {
        let inputs = self.len[1];
        let [a_aux, b_input, b_aux] = [0, 1, 2].map(|list| {
            let bits = bits(NAMES[list], self.bits[list], self.len[list])?;
            popcount(SET[list], self.popcounts[list], &bits)?;
            Ok::<_, Error>(bits)
        });
        let (a_aux, b_input, b_aux) = (a_aux?, b_input?, b_aux?);
        let set = |bits: &[bool], from: usize| -> Vec<u32> {
            (from as u32..)
                .zip(bits)
                .filter_map(|(index, bit)| bit.then_some(index))
                .collect()
        };
        Ok(QueryVariables {
            a: (0..inputs as u32).chain(set(&a_aux, inputs)).collect(),
            b: [set(&b_input, 0), set(&b_aux, inputs)].concat(),
        })
    }
}

/// The first `len` bits of little-endian words, on a little-endian machine.
fn bits(what: &'static str, bytes: &[u8], len: usize) -> Result<Vec<bool>, Error> {
    if cfg!(target_endian = "big") {
        return Err(argument(
            what,
            "a little-endian machine".into(),
            "another".into(),
        ));
    }
    at_least(what, len.div_ceil(8), bytes.len())?;
    Ok((0..len)
        .map(|bit| bytes[bit / 8] >> (bit % 8) & 1 == 1)
        .collect())
}

fn popcount(what: &'static str, said: usize, bits: &[bool]) -> Result<(), Error> {
    let found = bits.iter().filter(|bit| **bit).count();
    if found == said {
        return Ok(());
    }
    Err(argument(
        what,
        format!("{said} as the caller says"),
        format!("{found}"),
    ))
}
