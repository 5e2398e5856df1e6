//! A circuit with values, held against the shape that was recorded without.

use std::sync::LazyLock;

use cuzk_field::{Field as _, Fr, Scalar};
use cuzk_formats::Witness;

use crate::assignment::Assignment;
use crate::error::Error;
use crate::shape::Shape;
use crate::sink::Sink;
use crate::variable::Variable;

const NAMES: [&str; 3] = ["A", "B", "C"];

/// Compares every constraint as it comes, and collects the values.
pub(crate) struct Comparison<'s> {
    shape: &'s Shape,
    values: Assignment,
    /// The combinations of the constraint under construction, and one of the shape's.
    rows: [Vec<(u32, Fr)>; 3],
    recorded: Vec<(u32, Fr)>,
    constraint: usize,
    differs: Option<Error>,
}

impl<'s> Comparison<'s> {
    pub(crate) fn new(shape: &'s Shape) -> Self {
        Self {
            shape,
            values: Assignment::of(shape),
            rows: Default::default(),
            recorded: Vec::new(),
            constraint: 0,
            differs: None,
        }
    }

    /// The witness.
    pub(crate) fn finish(self) -> Result<Witness, Error> {
        // Counts first: a constraint more or less makes those behind it differ, too.
        let witness = self.values.finish(self.shape)?;
        match self.differs {
            Some(error) => Err(error),
            None => Ok(witness),
        }
    }
}

impl Sink for Comparison<'_> {
    const VALUES: bool = true;
    const COMBINATIONS: bool = true;
    /// Constraints are compared in their order.
    const EXTENSIBLE: bool = false;

    fn part() -> Self {
        // There is no shape of a part; what is done with it is a fault in the end.
        static EMPTY: LazyLock<Shape> = LazyLock::new(Shape::empty);
        Self::new(&EMPTY)
    }

    fn extend(&mut self, _: &Self) {
        self.differs.get_or_insert(Error::Parts);
    }

    fn input(&mut self, value: Option<Scalar>) -> usize {
        self.values.input(value)
    }

    fn aux(&mut self, value: Option<Scalar>) -> usize {
        self.values.aux(value)
    }

    fn entry(&mut self, matrix: usize, variable: Variable, coefficient: Scalar) {
        let inputs = self.shape.r1cs().num_inputs;
        let column = match variable {
            Variable::Input(index) => (index < inputs).then_some(index),
            Variable::Aux(index) => index.checked_add(inputs),
        };
        // A variable beyond all of them is in no recorded row.
        let column = column.and_then(|column| u32::try_from(column).ok());
        let column = column.unwrap_or(u32::MAX);
        self.rows[matrix].push((column, Fr::from(coefficient)));
    }

    fn end_constraint(&mut self) {
        self.values.end_constraint();
        let constraint = self.constraint;
        self.constraint += 1;
        let shape = self.shape;
        let r1cs = shape.r1cs();
        let coefficients = r1cs.coefficients.values();
        for (which, matrix) in [&r1cs.a, &r1cs.b, &r1cs.c].into_iter().enumerate() {
            let found = &mut self.rows[which];
            if self.differs.is_none() && constraint < matrix.num_rows() {
                merge(found);
                self.recorded.clear();
                let row = matrix.row(constraint);
                self.recorded
                    .extend(row.map(|(column, index)| (column, coefficients[index as usize])));
                merge(&mut self.recorded);
                if *found != self.recorded {
                    self.differs = Some(Error::Constraint {
                        matrix: NAMES[which],
                        constraint,
                    });
                }
            }
            self.rows[which].clear();
        }
    }
}

/// Equal combinations become equal lists: sorted, equal columns summed, zeros left out. A shape that
/// was read from a file has them so already.
fn merge(row: &mut Vec<(u32, Fr)>) {
    row.sort_by_key(|(column, _)| *column);
    row.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    row.retain(|(_, coefficient)| !coefficient.is_zero());
}
