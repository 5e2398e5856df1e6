//! Synthetic instances: satisfiable circuits of a given size and shape, their witnesses, and keys
//! with a known trapdoor. For benchmarks and tests: such a key protects nothing.

mod circuit;
mod exponents;
mod four_transforms;
mod key;
mod pieces;
mod porep;
mod random;

pub use circuit::{Instance, Shape};
pub use exponents::KeyExponents;
pub use key::{KeyFamily, proving_key};
