//! Groth16 files over BLS12-381, read into one neutral model and written back.
#![forbid(unsafe_code)]

pub mod model;

pub use model::{
    AbMatrices, CoefficientTable, HBasis, KeyFlavour, Matrix, Proof, ProvingKey, QueryLayout, R1cs,
    VerifyingKey, Witness,
};
