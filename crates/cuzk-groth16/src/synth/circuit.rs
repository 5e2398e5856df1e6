//! Satisfiable circuits of the shapes that provers meet.

use cuzk_field::{Field as _, Fr, Scalar};
use cuzk_formats::{CoefficientTable, Matrix, R1cs, Witness};

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
        let num_inputs = match shape {
            Shape::Porep => (n / 64).clamp(1, 328),
            Shape::Dense => (n / 2).min(2),
        };
        let rows = match shape {
            // round(0.971 n): as full as a 32 GiB PoRep's 2^27 rows.
            Shape::Porep => ((971 * n + 500) / 1000).max(2),
            Shape::Dense => n,
        };
        let num_constraints = rows - num_inputs;
        let mut builder = Builder::new(num_inputs, num_constraints, Random::new(seed, 0));
        match shape {
            Shape::Porep => porep(&mut builder, n),
            Shape::Dense => dense(&mut builder),
        }
        builder.finish()
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

/// Per mille of the variables that occur in B, and of those that are full-size there and elsewhere.
const IN_B: usize = 254;

/// The class of a value in a PoRep witness.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    Zero,
    One,
    Full,
}

/// Values are chosen first; each row then is made to hold.
///
/// B is one variable b. Where b = 0, A is anything and C a sum of zeros; where b = 1, C repeats A
/// with its variables replaced by ones of equal value; where b is full-size, A sums to 0 or 1 and C
/// to 0 or b. So no coefficient is solved for, and the few thousand distinct ones stay few.
fn porep(builder: &mut Builder, n: usize) {
    let num_inputs = builder.num_inputs;
    builder.values.push(Fr::ONE);
    while builder.values.len() < num_inputs {
        let value = builder.random.full_size();
        builder.values.push(value);
    }
    let mut pools = Pools::default();
    for variable in num_inputs..num_inputs + builder.num_constraints {
        let in_b = builder.random.chance(IN_B);
        // 0.8 % full-size in all: 2.3 % of those in B, 0.29 % of the others.
        let full = builder.random.below(10_000) < if in_b { 230 } else { 29 };
        let class = if full {
            Value::Full
        } else if builder.random.below(992) < 515 {
            Value::Zero
        } else {
            Value::One
        };
        let value = match class {
            Value::Zero => Fr::ZERO,
            Value::One => Fr::ONE,
            Value::Full => builder.random.full_size(),
        };
        builder.values.push(value);
        // 0.3 % of the variables occur in no A row: zeros, so that C can hold them at no cost.
        let in_a = class != Value::Zero || !builder.random.chance(6);
        pools.add(variable, class, in_a, in_b);
    }
    pools.fill(num_inputs, builder.num_constraints);
    let table: Vec<Fr> = (0..4096.min(n))
        .map(|_| builder.random.full_size())
        .collect();
    let longest = (n / 8).clamp(1, 929);
    for row in 0..builder.num_constraints {
        porep_row(
            builder,
            &pools,
            &table,
            row,
            if row == 0 { longest } else { 0 },
        );
    }
}

/// Variables by class, and those that occur in B.
#[derive(Default)]
struct Pools {
    zeros: Vec<usize>,
    ones: Vec<usize>,
    in_b: Vec<usize>,
    class: Vec<Value>,
    in_a: Vec<bool>,
}

impl Pools {
    /// What does not occur in A is not drawn at all: its column would be too like another's.
    fn add(&mut self, variable: usize, class: Value, in_a: bool, in_b: bool) {
        self.in_a.push(in_a);
        match class {
            Value::Zero if !in_a => {}
            Value::Zero => self.zeros.push(variable),
            Value::One => self.ones.push(variable),
            Value::Full => {}
        }
        if in_b {
            self.in_b.push(variable);
        }
        self.class.push(class);
    }

    /// Tiny circuits can miss a class: ONE stands in.
    fn fill(&mut self, first_private: usize, num_constraints: usize) {
        debug_assert_eq!(self.class.len(), num_constraints);
        if self.in_b.is_empty() {
            self.in_b.push(first_private);
        }
        self.ones.push(0);
    }

    fn one(&self, random: &mut Random) -> usize {
        self.ones[random.below(self.ones.len())]
    }

    fn zero(&self, random: &mut Random) -> Option<usize> {
        (!self.zeros.is_empty()).then(|| self.zeros[random.below(self.zeros.len())])
    }
}

fn porep_row(builder: &mut Builder, pools: &Pools, table: &[Fr], row: usize, at_least: usize) {
    let own = builder.num_inputs + row;
    let own_class = pools.class[row];
    let Builder { random, values, .. } = builder;
    let mut b = pools.in_b[row % pools.in_b.len()];
    let mut b_class = pools.class[b - builder.num_inputs];
    if b_class == Value::Full && own_class == Value::Full {
        // The product of two full-size values would need a coefficient of its own.
        (b, b_class) = (0, Value::One);
    }
    // 1 to 4 entries, 2.4 on average.
    let len = match random.below(100) {
        0..20 => 1,
        20..55 => 2,
        55..85 => 3,
        _ => 4,
    }
    .max(at_least);
    let sign = |random: &mut Random| {
        if random.chance(500) {
            Fr::ONE
        } else {
            -Fr::ONE
        }
    };
    let from_table = |random: &mut Random| table[random.below(table.len())];
    let coefficient = |random: &mut Random| match b_class {
        Value::Zero => from_table(random),
        Value::One if random.chance(200) => from_table(random),
        _ => sign(random),
    };

    let mut a: Vec<(usize, Fr)> = Vec::with_capacity(len);
    if pools.in_a[row] {
        a.push((
            own,
            if b_class == Value::Full {
                Fr::ONE
            } else {
                coefficient(random)
            },
        ));
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
    let mut c: Vec<(usize, Fr)> = Vec::with_capacity(len);
    if !pools.in_a[row] {
        c.push((own, Fr::ONE));
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
        Value::One => c.extend(a.iter().map(|(variable, coefficient)| {
            let twin = if values[*variable].is_zero() {
                pools.zero(random)
            } else if values[*variable] == Fr::ONE {
                Some(pools.one(random))
            } else {
                None
            };
            (twin.unwrap_or(*variable), *coefficient)
        })),
        Value::Full => {
            // A sums to the own value, 0 or 1, or to 0 without it.
            let sum = a.iter().fold(Fr::ZERO, |sum, (v, k)| sum + values[*v] * *k);
            if sum == Fr::ONE {
                c.push((b, Fr::ONE));
            }
            if let Some(variable) = pools.zero(random) {
                c.push((variable, sign(random)));
            }
        }
    }
    builder.constrain([&a, &[(b, Fr::ONE)], &c]);
}
