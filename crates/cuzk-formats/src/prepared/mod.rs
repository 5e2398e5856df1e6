//! Prepared keys: cuzk's own file, which holds a key and its circuit as a prover uses them.
//!
//! Nothing in it needs decoding: points stand as they lie in memory, on the host and on a device; A and B
//! are sparse rows whose coefficients are indices into a table. Every byte is covered by a checksum, by
//! pieces of [`CHUNK_BYTES`], so that many threads verify what they read while they read it. A checksum
//! stops accidents, not malice: counts, indices and every point are checked as in any other file.
//!
//! # The file, version 1
//!
//! Little-endian. A page of 4096 bytes, then sections, each at a multiple of 4096 bytes with zeros in
//! between; the file ends with the last one.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | `cuzkprep` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | bytes of a chunk, 393216 |
//! | 16 | 8 | bytes of the file |
//! | 24 | 4 | generator of the roots: 5 or 7 |
//! | 28 | 4 | basis of H: 1 odd Lagrange, 2 tau powers, 3 coset Lagrange |
//! | 32 | 32 | g, in Montgomery form; zero but for basis 3 |
//! | 64 | 4 | what the key was made from: 1 zkey, 2 bellman parameters, 3 arkworks key, 4 synthetic |
//! | 68 | 4 | flags: 1 the hash of that file is known, 2 that of the R1CS |
//! | 72 | 32 + 32 | BLAKE3 of both files, zero where unknown |
//! | 136 | 9 × 8 | n; inputs; variables; rows of A and B; coefficients; entries of A, of B; points of A, of B |
//! | 208 | 32 | BLAKE3 of section 1 |
//! | 240 | 4 + 4 | number of sections, 17; zero |
//! | 248 | 17 × 24 | number u32, bytes of an item u32, offset u64, bytes u64 of each section |
//! | 4064 | 32 | BLAKE3 of the 4064 bytes before; those behind the table are zero |
//!
//! | section | items |
//! |---|---|
//! | 1 | BLAKE3 of each chunk of the sections behind, in their order; a section's last chunk may be short |
//! | 2 | alpha, beta, delta in G1; beta, gamma, delta in G2 |
//! | 3 | IC, a point for each input |
//! | 4, 5 | variables with a point in A, in B: bit v mod 64 of word v / 64, u64 |
//! | 6 | distinct coefficients in Montgomery form; first 1, then -1 |
//! | 7, 8, 9 | A by rows, input rows included: first entry of each row and the end, u32; columns, u32; coefficients, u16, or u32 where there are more than 65536 |
//! | 10, 11, 12 | B likewise |
//! | 13, 14 | A, B in G1: 96 bytes, x and y in Montgomery form, all zero for infinity |
//! | 15, 16 | L, H |
//! | 17 | B in G2, 192 bytes |

mod check;
mod header;
mod read;
mod section;
mod write;

pub use header::{CHUNK_BYTES, Header, VERSION};
pub use read::{PreparedFile, Reader, read, read_header};
pub use section::Section;
pub use write::write;

use crate::ab_matrices::AbMatrices;
use crate::model::{ProvingKey, QueryVariables};

/// A key with all that proving needs of its circuit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PreparedKey {
    /// The key. Its queries are of the compact layout.
    pub key: ProvingKey,
    /// The variables that its A and B queries have a point for.
    pub variables: QueryVariables,
    /// A and B, the rows that bind the inputs included.
    pub matrices: AbMatrices,
    /// What it was made from.
    pub origin: Origin,
}

/// What a prepared key was made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The kind of key.
    pub source: KeySource,
    /// BLAKE3 of the key's file.
    pub key_hash: Option<[u8; 32]>,
    /// BLAKE3 of the R1CS file.
    pub r1cs_hash: Option<[u8; 32]>,
}

impl Origin {
    /// A synthetic key, made from no file.
    pub const SYNTHETIC: Self = Self {
        source: KeySource::Synthetic,
        key_hash: None,
        r1cs_hash: None,
    };
}

/// The kind of key that a prepared key was made from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum KeySource {
    /// A zkey of snarkjs.
    Zkey,
    /// Parameters of the bellman family.
    BellmanParams,
    /// An arkworks proving key.
    Arkworks,
    /// None: made in memory with known secrets.
    Synthetic,
}

impl KeySource {
    /// In words, with the article.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zkey => "a snarkjs key (.zkey)",
            Self::BellmanParams => "bellman parameters",
            Self::Arkworks => "an arkworks proving key",
            Self::Synthetic => "a synthetic key",
        }
    }
}
