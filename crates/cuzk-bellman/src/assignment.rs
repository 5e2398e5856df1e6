//! Values of variables as a circuit gives them.

use cuzk_field::Scalar;
use cuzk_formats::Witness;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::shape::Shape;
use crate::sink::Sink;
use crate::variable::Variable;

/// The values of a circuit under synthesis. Wiped when dropped.
pub(crate) struct Assignment {
    inputs: Zeroizing<Vec<Scalar>>,
    /// Behind room for `reserved` inputs, so that a whole witness needs no second copy.
    aux: Zeroizing<Vec<Scalar>>,
    reserved: usize,
    constraints: usize,
}

impl Assignment {
    /// For a circuit of this shape, with the constant ONE.
    pub(crate) fn of(shape: &Shape) -> Self {
        let r1cs = shape.r1cs();
        // All at once, so that nothing is copied.
        let mut aux = Vec::with_capacity(r1cs.num_variables);
        aux.resize(r1cs.num_inputs, Scalar::ZERO);
        let mut inputs = Vec::with_capacity(r1cs.num_inputs);
        inputs.push(Scalar::ONE);
        Self {
            inputs: Zeroizing::new(inputs),
            aux: Zeroizing::new(aux),
            reserved: r1cs.num_inputs,
            constraints: 0,
        }
    }

    /// The witness, its counts compared with the shape's.
    pub(crate) fn finish(mut self, shape: &Shape) -> Result<Witness, Error> {
        let r1cs = shape.r1cs();
        let counts = [
            (
                "inputs (public values and ONE)",
                r1cs.num_inputs,
                self.inputs.len(),
            ),
            (
                "auxiliary variables",
                r1cs.num_variables.saturating_sub(r1cs.num_inputs),
                self.aux.len() - self.reserved,
            ),
            ("constraints", r1cs.num_constraints(), self.constraints),
        ];
        for (what, recorded, found) in counts {
            if recorded != found {
                return Err(Error::Count {
                    what,
                    recorded,
                    found,
                });
            }
        }
        self.aux[..self.reserved].copy_from_slice(&self.inputs);
        Ok(Witness::new(std::mem::take(&mut *self.aux)))
    }
}

impl Sink for Assignment {
    const VALUES: bool = true;
    const COMBINATIONS: bool = false;
    const EXTENSIBLE: bool = true;

    fn part() -> Self {
        Self {
            inputs: Zeroizing::default(),
            aux: Zeroizing::default(),
            reserved: 0,
            constraints: 0,
        }
    }

    fn extend(&mut self, part: &Self) {
        let inputs = part.inputs.get(1..).unwrap_or_default();
        append(&mut self.inputs, inputs);
        append(&mut self.aux, &part.aux[part.reserved..]);
        self.constraints += part.constraints;
    }

    fn input(&mut self, value: Option<Scalar>) -> usize {
        append(&mut self.inputs, &[value.unwrap_or_default()]);
        self.inputs.len() - 1
    }

    fn aux(&mut self, value: Option<Scalar>) -> usize {
        append(&mut self.aux, &[value.unwrap_or_default()]);
        self.aux.len() - 1 - self.reserved
    }

    fn entry(&mut self, _: usize, _: Variable, _: Scalar) {}

    fn end_constraint(&mut self) {
        self.constraints += 1;
    }
}

/// Appends; where there is no room, into a larger list, and the one before it is wiped.
fn append(list: &mut Zeroizing<Vec<Scalar>>, values: &[Scalar]) {
    let len = list.len() + values.len();
    if len > list.capacity() {
        let mut larger = Zeroizing::new(Vec::with_capacity(len.max(2 * list.capacity())));
        larger.extend_from_slice(list);
        *list = larger;
    }
    list.extend_from_slice(values);
}

impl std::fmt::Debug for Assignment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Assignment({} inputs, {} others)",
            self.inputs.len(),
            self.aux.len() - self.reserved
        )
    }
}
