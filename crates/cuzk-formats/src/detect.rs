//! What a file is by its content: for `inspect`, and for the error when another kind was expected.

use std::fmt;

use cuzk_field::{G1Affine, G2Affine};

use crate::error::{Error, ErrorKind};
use crate::keyfile::{Count, Walk};
use crate::points::PointForm;
use crate::proof;
use crate::source::ReadAt;

/// A kind of file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FileKind {
    /// iden3 `.r1cs`.
    R1cs,
    /// iden3 `.wtns`.
    Wtns,
    /// snarkjs `.zkey`, of whatever protocol.
    Zkey,
    /// snarkjs `.ptau`.
    Ptau,
    /// snarkjs `verification_key.json`.
    VerificationKeyJson,
    /// snarkjs `proof.json`.
    ProofJson,
    /// snarkjs `public.json`, or another array.
    PublicJson,
    /// Parameters of bellman, bellperson, Filecoin, Zcash.
    BellmanParams,
    /// A verifying key of bellman.
    BellmanVk,
    /// A `ProvingKey` of arkworks.
    ArkworksProvingKey,
    /// A `VerifyingKey` of arkworks.
    ArkworksVerifyingKey,
    /// A key that `cuzk prepare` wrote.
    PreparedKey,
    /// Proofs of 192 bytes, or one of 384.
    ProofBytes,
    /// gzip, xz, zstd or zip.
    Archive,
}

impl FileKind {
    /// The kind in words, with its article.
    pub const fn name(self) -> &'static str {
        match self {
            Self::R1cs => "a constraint system (.r1cs)",
            Self::Wtns => "a witness (.wtns)",
            Self::Zkey => "a snarkjs key (.zkey)",
            Self::Ptau => "a powers-of-tau file (.ptau)",
            Self::VerificationKeyJson => "a verification key in JSON",
            Self::ProofJson => "a proof in JSON",
            Self::PublicJson => "a JSON array, as of public values",
            Self::BellmanParams => "bellman parameters",
            Self::BellmanVk => "a bellman verifying key",
            Self::ArkworksProvingKey => "an arkworks proving key",
            Self::ArkworksVerifyingKey => "an arkworks verifying key",
            Self::PreparedKey => "a prepared key",
            Self::ProofBytes => "proof bytes",
            Self::Archive => "a compressed archive; decompress it first",
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kind of `source`, from a few reads of it, if it is a known one.
///
/// iden3 files and archives have a magic. JSON is told by its members. Keys in points have nothing
/// of the kind: they are recognised by a valid first point and by lengths that add up.
pub fn sniff(source: &(impl ReadAt + ?Sized)) -> Option<FileKind> {
    let source: &dyn ReadAt = &source;
    let head = read_head(source)?;
    magic(&head)
        .or_else(|| json(&head))
        .or_else(|| points(source, &head))
}

/// The name of the format that `source` seems to be, even if it is cut short.
pub fn guess_format(source: &(impl ReadAt + ?Sized)) -> Option<&'static str> {
    if let Some(kind) = sniff(source) {
        return Some(kind.name());
    }
    let head = read_head(&source)?;
    if first_point(&head, PointForm::ZcashUncompressed) {
        Some("bellman parameters or an uncompressed arkworks key")
    } else if first_point(&head, PointForm::ZcashCompressed) {
        Some("a compressed arkworks key, or a proof")
    } else if head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') {
        Some("a JSON object")
    } else {
        None
    }
}

/// `error`, unless the file is of a kind that is not `wanted`, which explains it better. The first
/// wanted kind is the one named.
pub(crate) fn or_wrong_format(source: &dyn ReadAt, error: Error, wanted: &[FileKind]) -> Error {
    if !matches!(
        error.kind(),
        ErrorKind::Truncated
            | ErrorKind::BadLayout
            | ErrorKind::Inconsistent
            | ErrorKind::OutOfRange
            | ErrorKind::BadPoint
            | ErrorKind::NotCanonical
            | ErrorKind::BadText
    ) {
        return error;
    }
    match sniff(source) {
        Some(kind) if !wanted.contains(&kind) => {
            Error::new(ErrorKind::WrongFormat, wanted[0].name(), kind.name())
                .hint("the files may have been swapped")
        }
        _ => error,
    }
}

/// Enough for every magic, for the first members of a JSON text, and for a point.
const HEAD_BYTES: u64 = 1 << 16;

fn read_head(source: &dyn ReadAt) -> Option<Vec<u8>> {
    let mut head = vec![0; source.len().min(HEAD_BYTES) as usize];
    source.read_exact_at(0, &mut head).ok()?;
    Some(head)
}

fn magic(head: &[u8]) -> Option<FileKind> {
    let magics: [(&[u8], FileKind); 9] = [
        (b"r1cs", FileKind::R1cs),
        (b"wtns", FileKind::Wtns),
        (b"zkey", FileKind::Zkey),
        (b"ptau", FileKind::Ptau),
        (b"cuzkprep", FileKind::PreparedKey),
        (b"\x1f\x8b", FileKind::Archive),
        (b"\xfd7zXZ", FileKind::Archive),
        (b"\x28\xb5\x2f\xfd", FileKind::Archive),
        (b"PK\x03\x04", FileKind::Archive),
    ];
    magics
        .iter()
        .find(|(magic, _)| head.starts_with(magic))
        .map(|(_, kind)| *kind)
}

fn json(head: &[u8]) -> Option<FileKind> {
    let holds = |name: &[u8]| head.windows(name.len()).any(|bytes| bytes == name);
    match head.trim_ascii_start() {
        [b'[', ..] | b"null" => Some(FileKind::PublicJson),
        [b'{', ..] if holds(b"\"vk_alpha_1\"") => Some(FileKind::VerificationKeyJson),
        [b'{', ..] if holds(b"\"pi_a\"") => Some(FileKind::ProofJson),
        _ => None,
    }
}

/// Whether the file begins with a point that may begin a key.
fn first_point(head: &[u8], form: PointForm) -> bool {
    head.get(..form.bytes::<G1Affine>())
        .and_then(|bytes| form.decode::<G1Affine>(bytes).ok())
        .is_some_and(|point| !point.is_infinity())
}

fn points(source: &dyn ReadAt, head: &[u8]) -> Option<FileKind> {
    for form in [PointForm::ZcashUncompressed, PointForm::ZcashCompressed] {
        if !first_point(head, form) {
            continue;
        }
        let (width, is_compressed) = match form {
            PointForm::ZcashCompressed => (proof::COMPRESSED_BYTES as u64, true),
            _ => (proof::UNCOMPRESSED_BYTES as u64, false),
        };
        if source.len() == width {
            return Some(FileKind::ProofBytes);
        }
        if let Some(kind) = arkworks(source, form) {
            return Some(kind);
        }
        if is_compressed {
            // Proofs back to back.
            return source
                .len()
                .is_multiple_of(width)
                .then_some(FileKind::ProofBytes);
        }
        return bellman(source);
    }
    None
}

fn arkworks(source: &dyn ReadAt, form: PointForm) -> Option<FileKind> {
    let mut walk = Walk::new(source, form, Count::LittleEndian64);
    walk.skip::<G1Affine>("").ok()?;
    for _ in 0..3 {
        walk.skip::<G2Affine>("").ok()?;
    }
    if walk.array::<G1Affine>("").ok()?.count == 0 {
        return None;
    }
    if walk.left() == 0 {
        return Some(FileKind::ArkworksVerifyingKey);
    }
    for _ in 0..2 {
        walk.skip::<G1Affine>("").ok()?;
    }
    walk.array::<G1Affine>("").ok()?;
    let b_g1 = walk.array::<G1Affine>("").ok()?;
    let b_g2 = walk.array::<G2Affine>("").ok()?;
    for _ in 0..2 {
        walk.array::<G1Affine>("").ok()?;
    }
    (b_g1.count == b_g2.count || walk.left() == 0).then_some(FileKind::ArkworksProvingKey)
}

fn bellman(source: &dyn ReadAt) -> Option<FileKind> {
    let mut walk = Walk::new(source, PointForm::ZcashUncompressed, Count::BigEndian32);
    for _ in 0..3 {
        walk.skip::<G1Affine>("").ok()?;
        walk.skip::<G2Affine>("").ok()?;
    }
    if walk.array::<G1Affine>("").ok()?.count == 0 {
        return None;
    }
    if walk.left() == 0 {
        return Some(FileKind::BellmanVk);
    }
    for _ in 0..3 {
        walk.array::<G1Affine>("").ok()?;
    }
    let b_g1 = walk.array::<G1Affine>("").ok()?;
    let b_g2 = walk.array::<G2Affine>("").ok()?;
    // A transcript may follow.
    (b_g1.count == b_g2.count || walk.left() == 0).then_some(FileKind::BellmanParams)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_field::encoding::PointEncoding as _;

    #[test]
    fn known_formats_are_told_apart() {
        let g = G1Affine::generator();
        for (bytes, word) in [
            (b"zkey\x01\0\0\0".to_vec(), "zkey"),
            (b"ptau".to_vec(), "powers-of-tau"),
            (b"\n [ 1".to_vec(), "JSON array"),
            (b"{}".to_vec(), "JSON object"),
            (b"{\"a\": 1, \"pi_a\": []}".to_vec(), "proof in JSON"),
            (b"{ \"vk_alpha_1\": []}".to_vec(), "verification key"),
            (g.to_zcash_uncompressed(), "bellman"),
            (g.to_zcash_compressed(), "compressed arkworks"),
            (vec![0x1f, 0x8b, 8], "archive"),
        ] {
            assert!(guess_format(&bytes).unwrap().contains(word), "{word}");
        }
        assert_eq!(guess_format(&b"zke".to_vec()), None);
        assert_eq!(guess_format(&vec![0u8; 200]), None);
        assert_eq!(sniff(&Vec::new()), None);
    }
}
