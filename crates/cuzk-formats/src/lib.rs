//! Groth16 files over BLS12-381, read into one neutral model and written back.
//!
//! Every reader takes a [`ReadAt`] (an opened [`FileSource`], or [`Bytes`] in memory) and
//! [`LoadOptions`]. Every file is hostile until checked: counts are compared with the bytes left
//! before anything is allocated, field elements must be below their modulus, points must be on the
//! curve. What is wrong comes back as an [`Error`] with its place, what is merely odd as a [`Note`].
#![forbid(unsafe_code)]

mod array;
mod checks;
mod coefficients;
mod container;
#[allow(dead_code)] // until every reader has landed
mod cursor;
mod detect;
pub mod error;
pub mod json;
pub mod model;
pub mod options;
mod output;
#[allow(dead_code)] // until every reader has landed
mod points;
mod prime;
pub mod r1cs;
pub mod source;
mod stream;
pub mod wtns;
pub mod zkey;

pub use detect::guess_format;
pub use error::{Error, ErrorClass, ErrorKind, Note, NoteKind, Place};
pub use model::{
    AbMatrices, CoefficientTable, HBasis, KeyFlavour, Matrix, Proof, ProvingKey, QueryLayout, R1cs,
    VerifyingKey, Witness,
};
pub use options::{LoadOptions, Progress, ProgressFn};
pub use source::{Bytes, FileSource, ReadAt};
