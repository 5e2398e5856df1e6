//! The PoRep shape, made in parallel: every block of variables and of rows draws from a stream of its
//! own, so the circuit is the same on any number of cores.

use cuzk_field::Scalar;
use cuzk_formats::{CoefficientTable, Matrix, R1cs, Witness};
use rayon::prelude::*;

use super::circuit::Instance;
use super::pieces::{Piece, join};
use super::random::Random;
use crate::error::Error;

/// Per mille of the variables that occur in B.
const IN_B: usize = 254;
/// Distinct coefficients besides 1 and -1, at most.
const TABLE: usize = 4096;
/// Variables or rows of one block.
const BLOCK: usize = 1 << 13;

/// The class of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    Zero,
    One,
    Full,
}

/// A private variable.
#[derive(Clone, Copy)]
struct Variable {
    value: Value,
    in_a: bool,
    in_b: bool,
}

/// Values are chosen first; each row then is made to hold.
///
/// B is one variable b. Where b = 0, A is anything and C a sum of zeros; where b = 1, C repeats A
/// with its variables replaced by ones of equal value; where b is full-size, A sums to 0 or 1 and C
/// to 0 or b. So no coefficient is solved for, and the few thousand distinct ones stay few.
pub(super) fn instance(
    n: usize,
    num_inputs: usize,
    num_constraints: usize,
    seed: u64,
) -> Result<Instance, Error> {
    let mut random = Random::new(seed, 0);
    let mut values = vec![Scalar::ONE];
    values.extend((1..num_inputs).map(|_| Scalar::from(random.full_size())));
    let mut coefficients = CoefficientTable::new();
    let table: Vec<u32> = (0..TABLE.min(n))
        .map(|_| coefficients.intern(random.full_size()))
        .collect();

    let blocks: Vec<(Vec<Variable>, Vec<Scalar>)> = (0..num_constraints.div_ceil(BLOCK))
        .into_par_iter()
        .map(|block| {
            let mut random = Random::new(seed, 1 << 32 | block as u64);
            let len = BLOCK.min(num_constraints - block * BLOCK);
            (0..len).map(|_| variable(&mut random)).unzip()
        })
        .collect();
    let mut variables = Vec::with_capacity(num_constraints);
    values.reserve_exact(num_constraints);
    for (block, block_values) in blocks {
        variables.extend(block);
        values.extend(block_values);
    }
    let circuit = Porep {
        num_inputs,
        longest: (n / 8).clamp(1, 929),
        pools: Pools::of(&variables, num_inputs),
        variables,
        table,
    };
    let pieces: Vec<[Piece; 3]> = (0..num_constraints.div_ceil(BLOCK))
        .into_par_iter()
        .map(|block| {
            let mut random = Random::new(seed, 2 << 32 | block as u64);
            let mut pieces = std::array::from_fn(|_| Piece::default());
            for row in block * BLOCK..num_constraints.min((block + 1) * BLOCK) {
                circuit.row(row, &mut random, &mut pieces, &coefficients);
            }
            pieces
        })
        .collect();
    drop(circuit);
    let [a, b, c]: [Matrix; 3] = join(pieces, &mut coefficients)?;
    let r1cs = R1cs {
        num_inputs,
        num_variables: values.len(),
        a,
        b,
        c,
        coefficients,
    };
    Ok(Instance {
        r1cs,
        witness: Witness::new(values),
    })
}

/// 0.8 % of the values are full-size: 2.3 % of those in B, 0.29 % of the others. 0.3 % of the
/// variables occur in no A row: zeros, so that C can hold them at no cost.
fn variable(random: &mut Random) -> (Variable, Scalar) {
    let in_b = random.chance(IN_B);
    let full = random.below(10_000) < if in_b { 230 } else { 29 };
    let (value, scalar) = if full {
        (Value::Full, random.full_size().into())
    } else if random.below(992) < 515 {
        (Value::Zero, Scalar::ZERO)
    } else {
        (Value::One, Scalar::ONE)
    };
    let in_a = value != Value::Zero || !random.chance(6);
    let variable = Variable { value, in_a, in_b };
    (variable, scalar)
}

/// Variables by class, and those that occur in B.
struct Pools {
    zeros: Vec<u32>,
    ones: Vec<u32>,
    in_b: Vec<u32>,
}

impl Pools {
    /// What does not occur in A is not drawn at all: its column would be too like another's.
    fn of(variables: &[Variable], num_inputs: usize) -> Self {
        let all = |wanted: fn(&Variable) -> bool| -> Vec<u32> {
            variables
                .par_iter()
                .enumerate()
                .filter(|(_, variable)| wanted(variable))
                .map(|(index, _)| (num_inputs + index) as u32)
                .collect()
        };
        let mut pools = Self {
            zeros: all(|v| v.value == Value::Zero && v.in_a),
            ones: all(|v| v.value == Value::One),
            in_b: all(|v| v.in_b),
        };
        // Tiny circuits can miss a class: ONE stands in.
        pools.ones.push(0);
        if pools.in_b.is_empty() {
            pools.in_b.push(num_inputs as u32);
        }
        pools
    }

    fn one(&self, random: &mut Random) -> u32 {
        self.ones[random.below(self.ones.len())]
    }

    fn zero(&self, random: &mut Random) -> Option<u32> {
        (!self.zeros.is_empty()).then(|| self.zeros[random.below(self.zeros.len())])
    }
}

struct Porep {
    num_inputs: usize,
    longest: usize,
    variables: Vec<Variable>,
    pools: Pools,
    /// Indices of coefficients.
    table: Vec<u32>,
}

impl Porep {
    /// The class of a variable that rows name: ONE, or a private one.
    fn class(&self, variable: u32) -> Value {
        match variable {
            0 => Value::One,
            _ => self.variables[variable as usize - self.num_inputs].value,
        }
    }

    fn row(
        &self,
        row: usize,
        random: &mut Random,
        [a_rows, b_rows, c_rows]: &mut [Piece; 3],
        coefficients: &CoefficientTable,
    ) {
        let pools = &self.pools;
        let own = (self.num_inputs + row) as u32;
        let own_in_a = self.variables[row].in_a;
        let mut b = pools.in_b[row % pools.in_b.len()];
        if self.class(b) == Value::Full && self.variables[row].value == Value::Full {
            // The product of two full-size values would need a coefficient of its own.
            b = 0;
        }
        let b_class = self.class(b);
        // 1 to 4 entries, 2.4 on average.
        let len = match random.below(100) {
            0..20 => 1,
            20..55 => 2,
            55..85 => 3,
            _ => 4,
        }
        .max(if row == 0 { self.longest } else { 0 });
        let sign = |random: &mut Random| match random.chance(500) {
            true => CoefficientTable::ONE,
            false => CoefficientTable::MINUS_ONE,
        };
        let from_table = |random: &mut Random| self.table[random.below(self.table.len())];
        let coefficient = |random: &mut Random| match b_class {
            Value::Zero => from_table(random),
            Value::One if random.chance(230) => from_table(random),
            _ => sign(random),
        };

        let a = &mut a_rows.open;
        if own_in_a {
            let of_own = match b_class {
                Value::Full => CoefficientTable::ONE,
                _ => coefficient(random),
            };
            a.push((own, of_own));
        }
        while a.len() < len {
            let variable = match b_class {
                Value::Full => pools.zero(random),
                _ if random.chance(500) => pools.zero(random),
                _ => None,
            };
            match variable {
                Some(variable) => a.push((variable, coefficient(random))),
                None if b_class == Value::Full => break,
                None => a.push((pools.one(random), coefficient(random))),
            }
        }
        let c = &mut c_rows.open;
        if !own_in_a {
            c.push((own, CoefficientTable::ONE));
        }
        match b_class {
            Value::Zero => {
                while c.len() < 2 {
                    match pools.zero(random) {
                        Some(variable) => c.push((variable, sign(random))),
                        None => break,
                    }
                }
            }
            Value::One => c.extend(a.iter().map(|&(variable, coefficient)| {
                let twin = match self.class(variable) {
                    Value::Zero => pools.zero(random),
                    Value::One => Some(pools.one(random)),
                    Value::Full => None,
                };
                (twin.unwrap_or(variable), coefficient)
            })),
            Value::Full => {
                // A sums to the own value, 0 or 1, or to 0 without it.
                if own_in_a && self.variables[row].value == Value::One {
                    c.push((b, CoefficientTable::ONE));
                }
                if let Some(variable) = pools.zero(random) {
                    c.push((variable, sign(random)));
                }
            }
        }
        b_rows.open.push((b, CoefficientTable::ONE));
        for rows in [a_rows, b_rows, c_rows] {
            rows.end_row(coefficients);
        }
    }
}
