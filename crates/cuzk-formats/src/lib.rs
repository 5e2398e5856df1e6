//! Groth16 files over BLS12-381, read into one neutral model and written back.
//!
//! Every reader takes a [`ReadAt`] (an opened [`FileSource`], or [`BytesSource`] in memory) and
//! [`LoadOptions`]. Every file is hostile until checked: counts are compared with the bytes left
//! before anything is allocated, field elements must be below their modulus, points must be on the
//! curve. What is wrong comes back as an [`Error`] with its place, what is merely odd as a [`Note`].
//!
//! ```
//! use cuzk_formats::{BytesSource, ErrorKind, LoadOptions, wtns};
//!
//! // A service has its files in memory; others use `FileSource::open(path)?`.
//! let witness = cuzk_formats::Witness::new(vec![1u64.into(), 42u64.into()]);
//! let mut bytes = Vec::new();
//! wtns::write(&witness, &mut bytes)?;
//! let file = wtns::read(&BytesSource::new("w.wtns", &bytes), &LoadOptions::default())?;
//! assert_eq!(file.witness.values().len(), 2);
//!
//! let short = BytesSource::new("w.wtns", &bytes[..bytes.len() - 1]);
//! let error = wtns::read(&short, &LoadOptions::default()).unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::Truncated);
//! # Ok::<(), cuzk_formats::Error>(())
//! ```
#![forbid(unsafe_code)]

mod ab_matrices;
pub mod arkworks;
mod array;
pub mod bellman;
mod checks;
mod coefficients;
mod container;
mod cursor;
mod detect;
pub mod error;
pub mod json;
mod keyfile;
pub mod model;
pub mod options;
mod output;
mod points;
pub mod prepared;
mod prime;
pub mod proof;
pub mod r1cs;
pub mod source;
mod stream;
pub mod wtns;
pub mod zkey;

pub use ab_matrices::AbMatrices;
pub use container::{SectionInfo, sections};
pub use detect::{FileKind, guess_format, sniff};
pub use error::{Error, ErrorClass, ErrorKind, Note, NoteKind, Place};
pub use model::{
    CoefficientTable, HBasis, KeyFlavour, Matrix, PartsMismatch, Proof, ProvingKey, QueryLayout,
    QueryVariables, R1cs, TooManyEntries, VerifyingKey, Witness,
};
pub use options::{LoadOptions, Progress, ProgressFn};
pub use source::{BytesSource, FileSource, ReadAt};
