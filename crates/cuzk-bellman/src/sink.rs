//! Where a circuit's variables and constraints go.

use cuzk_field::Scalar;

use crate::variable::Variable;

/// A constraint system without the terms of a library: each of the modules `bellman` and `bellpepper` has
/// one type that speaks its library's trait and hands everything on to one of these.
pub(crate) trait Sink: Send {
    /// Whether values are asked for.
    const VALUES: bool;
    /// Whether linear combinations are made.
    const COMBINATIONS: bool;
    /// Whether parts synthesised on other threads can be appended.
    const EXTENSIBLE: bool;

    /// A part, without the constant ONE.
    fn part() -> Self
    where
        Self: Sized;

    /// Appends a part, whose first input was a constant ONE of its own.
    fn extend(&mut self, part: &Self);

    /// Allocates an input and gives its number. There is a value if [`Self::VALUES`].
    fn input(&mut self, value: Option<Scalar>) -> usize;

    /// Allocates another variable and gives its number.
    fn aux(&mut self, value: Option<Scalar>) -> usize;

    /// An entry of the constraint under construction, if [`Self::COMBINATIONS`].
    fn entry(&mut self, matrix: usize, variable: Variable, coefficient: Scalar);

    /// Ends the constraint.
    fn end_constraint(&mut self);
}
