//! Circuits written once for both libraries.

/// What the small circuits are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// Variables that are no inputs, at least one.
    pub(crate) aux: usize,
    /// Inputs, the constant ONE included.
    pub(crate) inputs: usize,
    /// What occurs in B besides.
    pub(crate) in_b: InB,
    /// Terms that cancel within a combination, of variables that occur elsewhere in the same matrix.
    pub(crate) cancelling: bool,
}

/// Which inputs occur in B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InB {
    /// None.
    NoInput,
    /// The constant alone.
    One,
    /// The constant and the public ones.
    Public,
    /// The last public one, without the constant.
    LastPublic,
}

/// Every number of variables with every number and place of inputs; terms cancel in every other form.
pub(crate) fn forms() -> impl Iterator<Item = Form> {
    let in_b = [InB::NoInput, InB::One, InB::Public, InB::LastPublic];
    (0..6 * 4 * 3).map(move |form| {
        let (aux, place, inputs) = (form / 12, form / 3 % 4, form % 3);
        Form {
            aux: [1, 2, 3, 63, 64, 65][aux],
            inputs: 1 + inputs,
            in_b: in_b[place],
            cancelling: (aux + place + inputs) % 2 == 0,
        }
    })
}

/// How a circuit misbehaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code, reason = "not every test has all of them")]
pub(crate) enum Fault {
    None,
    /// One constraint more with a witness.
    Constraint,
    /// One variable more with a witness.
    Variable,
    /// Another coefficient with a witness.
    Coefficient,
    /// A value that violates constraint 1.
    Value,
    /// Gives up.
    GivesUp,
    /// A variable that cancels in the one combination of B in which it occurs.
    CancelsEverywhere,
}

/// The circuits, over a library and its field.
#[macro_export]
macro_rules! circuits {
    ($library:ident, $Scalar:ty) => {
        use $library::{Circuit, ConstraintSystem, LinearCombination, SynthesisError};

        /// A chain of products of `form.aux` variables; public value j is j times the first.
        #[derive(Clone)]
        struct Chain {
            form: common::Form,
            /// The first variable's value.
            first: Option<$Scalar>,
            fault: common::Fault,
        }

        #[allow(dead_code)]
        impl Chain {
            fn blank(form: common::Form) -> Self {
                Self {
                    form,
                    first: None,
                    fault: common::Fault::None,
                }
            }

            fn with(form: common::Form, first: u64) -> Self {
                Self {
                    first: Some(<$Scalar>::from(first)),
                    ..Self::blank(form)
                }
            }

            fn public_values(&self) -> Vec<$Scalar> {
                let first = self.first.unwrap();
                (1..self.form.inputs)
                    .map(|j| <$Scalar>::from(j as u64) * first)
                    .collect()
            }
        }

        impl Circuit<$Scalar> for Chain {
            fn synthesize<CS: ConstraintSystem<$Scalar>>(
                self,
                cs: &mut CS,
            ) -> Result<(), SynthesisError> {
                use common::{Fault, InB};
                let Self { form, first, fault } = self;
                let missing = || SynthesisError::AssignmentMissing;
                let scalar = <$Scalar>::from;
                let has_witness = first.is_some();
                if fault == Fault::GivesUp {
                    return Err(SynthesisError::Unsatisfiable);
                }
                let mut values = vec![first];
                let mut vars = vec![cs.alloc(|| "x", || first.ok_or_else(missing))?];
                let public = (1..form.inputs)
                    .map(|j| {
                        let value = first.map(|x| x * scalar(j as u64));
                        cs.alloc_input(|| format!("p {j}"), || value.ok_or_else(missing))
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                let extra = |lc: LinearCombination<$Scalar>, variable| {
                    if form.cancelling {
                        lc + (scalar(7), variable) - (scalar(7), variable)
                    } else {
                        lc
                    }
                };
                for i in 0..form.aux - 1 {
                    let factor = 3 + i as u64;
                    let (x, early) = (values[i], values[i / 2]);
                    let mut value = x
                        .zip(early)
                        .map(|(x, early)| x * (x + early * scalar(factor)));
                    if fault == Fault::Value && i == 1 {
                        value = value.map(|value| value + scalar(1));
                    }
                    let next = cs.alloc(|| format!("x {i}"), || value.ok_or_else(missing))?;
                    let last = *vars.last().unwrap();
                    let factor = match fault {
                        Fault::Coefficient if i == 1 && has_witness => factor + 1,
                        _ => factor,
                    };
                    cs.enforce(
                        || format!("product {i}"),
                        |lc| {
                            let lc = lc + vars[i];
                            if form.cancelling {
                                lc + last - last + (scalar(0), vars[0])
                            } else {
                                lc
                            }
                        },
                        |lc| extra(lc + vars[i] + (scalar(factor), vars[i / 2]), vars[0]),
                        |lc| lc + next,
                    );
                    values.push(value);
                    vars.push(next);
                }
                for (j, p) in public.iter().enumerate() {
                    let is_last = j + 1 == public.len();
                    let j = scalar(1 + j as u64);
                    cs.enforce(
                        || format!("public {j:?}"),
                        |lc| lc + *p - (j, vars[0]),
                        |lc| match form.in_b {
                            InB::NoInput => lc + vars[0],
                            InB::One => lc + CS::one(),
                            InB::Public => lc + *p + vars[0],
                            InB::LastPublic if is_last => lc + *p + vars[0],
                            InB::LastPublic => lc + vars[0],
                        },
                        |lc| lc,
                    );
                }
                let last = *vars.last().unwrap();
                let cancelled = |lc: LinearCombination<$Scalar>| {
                    lc + last + (scalar(2), last) - (scalar(3), last)
                };
                // 0 = 0, so that the last variable occurs in A, and something in B.
                cs.enforce(
                    || "last in A",
                    |lc| extra(lc + last, last),
                    |lc| lc,
                    |lc| lc,
                );
                cs.enforce(
                    || "first in B",
                    |lc| lc,
                    |lc| match (fault, form.in_b) {
                        (Fault::CancelsEverywhere, _) => cancelled(lc) + vars[0],
                        (_, InB::NoInput | InB::LastPublic) => extra(lc + vars[0], vars[0]),
                        (_, _) => extra(lc + vars[0] + (scalar(5), CS::one()), vars[0]),
                    },
                    |lc| lc,
                );
                if has_witness && fault == Fault::Constraint {
                    cs.enforce(|| "more", |lc| lc + last, |lc| lc, |lc| lc);
                }
                if has_witness && fault == Fault::Variable {
                    cs.alloc(|| "more", || Ok(scalar(1)))?;
                }
                Ok(())
            }
        }
    };
}
