//! Satisfiable circuits of the shapes that provers meet.

use cuzk_field::{Field as _, Fr, Scalar};
use cuzk_formats::{CoefficientTable, Matrix, R1cs, Witness};

use super::porep;
use super::random::Random;
use crate::error::Error;

/// What a circuit looks like.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// As in a Filecoin PoRep partition: values nearly all bits, sparse rows, a quarter of the
    /// variables in B.
    Porep,
    /// As in Filecoin's PoSt circuits: every value full-size and in both A and B.
    Dense,
}

/// A circuit with a witness that satisfies it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    /// The constraints.
    pub r1cs: R1cs,
    /// The values.
    pub witness: Witness,
}

impl Instance {
    /// An instance whose domain has 2^`log_n` elements. Equal arguments give equal instances.
    ///
    /// # Errors
    /// [`Error::Circuit`] unless `log_n` is from 1 to 28.
    pub fn new(shape: Shape, log_n: u32, seed: u64) -> Result<Self, Error> {
        if !(1..=28).contains(&log_n) {
            return Err(Error::Circuit {
                what: format!("a synthetic circuit has 2^1 to 2^28 rows, not 2^{log_n}"),
            });
        }
        let n = 1usize << log_n;
        let rows = match shape {
            // round(0.971 n): as full as a 32 GiB PoRep's 2^27 rows.
            Shape::Porep => ((971 * n + 500) / 1000).max(2),
            Shape::Dense => n,
        };
        Self::with_rows(shape, rows, seed)
    }

    /// An instance with so many rows: constraints and inputs.
    ///
    /// # Errors
    /// [`Error::Circuit`] unless `rows` is from 2 to 2^28.
    pub fn with_rows(shape: Shape, rows: usize, seed: u64) -> Result<Self, Error> {
        if !(2..=1 << 28).contains(&rows) {
            return Err(Error::Circuit {
                what: format!("a synthetic circuit has 2 to 2^28 rows, not {rows}"),
            });
        }
        let n = rows.next_power_of_two();
        let num_inputs = match shape {
            Shape::Porep => (n / 64).clamp(1, 328),
            Shape::Dense => (n / 2).min(2),
        };
        let num_constraints = rows - num_inputs;
        match shape {
            Shape::Porep => porep::instance(n, num_inputs, num_constraints, seed),
            Shape::Dense => {
                let random = Random::new(seed, 0);
                let mut builder = Builder::new(num_inputs, num_constraints, random);
                dense(&mut builder);
                builder.finish()
            }
        }
    }
}

/// A circuit under construction.
struct Builder {
    random: Random,
    num_inputs: usize,
    num_constraints: usize,
    values: Vec<Fr>,
    coefficients: CoefficientTable,
    matrices: [Matrix; 3],
    overflow: bool,
}

impl Builder {
    fn new(num_inputs: usize, num_constraints: usize, random: Random) -> Self {
        Self {
            random,
            num_inputs,
            num_constraints,
            values: Vec::with_capacity(num_inputs + num_constraints),
            coefficients: CoefficientTable::new(),
            matrices: std::array::from_fn(|_| Matrix::new()),
            overflow: false,
        }
    }

    /// Appends a constraint. Entries are (variable, coefficient); equal variables are summed.
    fn constrain(&mut self, rows: [&[(usize, Fr)]; 3]) {
        for (matrix, row) in self.matrices.iter_mut().zip(rows) {
            let mut entries = row.to_vec();
            entries.sort_by_key(|(variable, _)| *variable);
            entries.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1 += next.1;
                }
                same
            });
            for (variable, coefficient) in entries {
                if !coefficient.is_zero() {
                    matrix.push_entry(variable as u32, self.coefficients.intern(coefficient));
                }
            }
            self.overflow |= matrix.end_row().is_err();
        }
    }

    fn finish(self) -> Result<Instance, Error> {
        if self.overflow {
            return Err(Error::Circuit {
                what: "it has 2^32 entries or more".into(),
            });
        }
        let [a, b, c] = self.matrices;
        let r1cs = R1cs {
            num_inputs: self.num_inputs,
            num_variables: self.values.len(),
            a,
            b,
            c,
            coefficients: self.coefficients,
        };
        let witness = Witness::new(self.values.into_iter().map(Scalar::from).collect());
        Ok(Instance { r1cs, witness })
    }
}

/// Row i is (w_x + k w_y)(w_y + l w_z) = w_new, over the latest variables.
fn dense(builder: &mut Builder) {
    builder.values.push(Fr::ONE);
    while builder.values.len() < builder.num_inputs {
        let value = builder.random.full_size();
        builder.values.push(value);
    }
    let factors: [Fr; 64] = std::array::from_fn(|_| builder.random.full_size());
    for row in 0..builder.num_constraints {
        let new = builder.values.len();
        let [x, y, z] = [1, 2, 3].map(|back| new.saturating_sub(back));
        let (k, l) = (
            factors[builder.random.below(64)],
            factors[builder.random.below(64)],
        );
        let w = &builder.values;
        let left = [(x, Fr::ONE), (y, k)];
        if row + 1 == builder.num_constraints {
            // No new variable: else the latest two were missing from B, and the latest from A.
            let product = (w[x] + k * w[y]) * (w[x] + l * w[y]);
            builder.constrain([&left, &[(x, Fr::ONE), (y, l)], &[(0, product)]]);
        } else {
            let product = (w[x] + k * w[y]) * (w[y] + l * w[z]);
            builder.values.push(product);
            builder.constrain([&left, &[(y, Fr::ONE), (z, l)], &[(new, Fr::ONE)]]);
        }
    }
}
