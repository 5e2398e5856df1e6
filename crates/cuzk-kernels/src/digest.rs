//! A digest of file contents, to tell whether something has changed. Not against forgery.
//!
//! Also compiled into the build script and into `cargo xtask`.

use std::fmt;
use std::str::FromStr;

/// FNV-1a over 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(pub u128);

impl Digest {
    /// Of nothing: the offset basis.
    pub const EMPTY: Self = Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    /// 2^88 + 2^8 + 0x3b.
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    /// Of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::EMPTY.then(bytes)
    }

    /// Of what came before and of `bytes`; their border counts.
    #[must_use]
    pub fn and(self, bytes: &[u8]) -> Self {
        self.then(&(bytes.len() as u64).to_le_bytes()).then(bytes)
    }

    fn then(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |state, byte| {
            (state ^ u128::from(*byte)).wrapping_mul(Self::PRIME)
        }))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        u128::from_str_radix(text, 16)
            .map(Self)
            .map_err(|_| format!("\"{text}\" is no digest"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the FNV reference: draft-eastlake-fnv, appendix C, 128 bits.
    #[test]
    fn known_answers() {
        assert_eq!(
            Digest::of(b"").to_string(),
            "6c62272e07bb014262b821756295c58d"
        );
        assert_eq!(
            Digest::of(b"a").to_string(),
            "d228cb696f1a8caf78912b704e4a8964"
        );
        assert_eq!(
            Digest::of(b"foobar").to_string(),
            "343e1662793c64bf6f0d3597ba446f18"
        );
        assert_eq!(Digest::of(b"a").to_string().parse(), Ok(Digest::of(b"a")));
    }

    #[test]
    fn borders_count() {
        let one = Digest::EMPTY.and(b"ab").and(b"c");
        assert_ne!(one, Digest::EMPTY.and(b"a").and(b"bc"));
    }
}
