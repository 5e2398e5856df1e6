//! Which sections there are.

use crate::error::Place;

/// A section of a prepared file; the number is its place in the file, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u32)]
#[allow(missing_docs, reason = "the table of the module names them")]
pub enum Section {
    Hashes = 1,
    Vital,
    Ic,
    AVariables,
    BVariables,
    Coefficients,
    AOffsets,
    AColumns,
    AIds,
    BOffsets,
    BColumns,
    BIds,
    A,
    B1,
    L,
    H,
    B2,
}

impl Section {
    /// All of them, in the order of the file.
    pub const ALL: [Self; 17] = [
        Self::Hashes,
        Self::Vital,
        Self::Ic,
        Self::AVariables,
        Self::BVariables,
        Self::Coefficients,
        Self::AOffsets,
        Self::AColumns,
        Self::AIds,
        Self::BOffsets,
        Self::BColumns,
        Self::BIds,
        Self::A,
        Self::B1,
        Self::L,
        Self::H,
        Self::B2,
    ];

    /// A short name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hashes => "checksums",
            Self::Vital => "alpha, beta, gamma, delta",
            Self::Ic => "IC",
            Self::AVariables => "variables in A",
            Self::BVariables => "variables in B",
            Self::Coefficients => "coefficients",
            Self::AOffsets => "rows of A",
            Self::AColumns => "columns of A",
            Self::AIds => "coefficients of A",
            Self::BOffsets => "rows of B",
            Self::BColumns => "columns of B",
            Self::BIds => "coefficients of B",
            Self::A => "A",
            Self::B1 => "B in G1",
            Self::L => "L",
            Self::H => "H",
            Self::B2 => "B in G2",
        }
    }

    /// Where errors say that something of it is.
    pub(super) const fn place(self) -> Place {
        Place::section(self as u32, self.name())
    }
}
