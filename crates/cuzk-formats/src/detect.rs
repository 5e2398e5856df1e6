//! What a file is by its first bytes: for the error when another kind was expected.

use cuzk_field::G1Affine;
use cuzk_field::encoding::PointEncoding as _;

use crate::source::ReadAt;

/// The name of the format that `source` seems to be, if it is a known one.
///
/// bellman parameters and arkworks keys have no magic: they are recognised by a valid first point.
pub fn guess_format(source: &(impl ReadAt + ?Sized)) -> Option<&'static str> {
    let mut head = [0; 96];
    let len = source.len().min(96) as usize;
    source.read_exact_at(0, &mut head[..len]).ok()?;
    let head = &head[..len];
    let magics: [(&[u8], &str); 8] = [
        (b"r1cs", "a constraint system (.r1cs)"),
        (b"wtns", "a witness (.wtns)"),
        (b"zkey", "a snarkjs key (.zkey)"),
        (b"ptau", "a powers-of-tau file (.ptau)"),
        (b"\x1f\x8b", "a gzip file; decompress it first"),
        (b"\xfd7zXZ", "an xz file; decompress it first"),
        (b"\x28\xb5\x2f\xfd", "a zstd file; decompress it first"),
        (b"PK\x03\x04", "a zip file; unpack it first"),
    ];
    if let Some((_, name)) = magics.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(name);
    }
    match head.iter().find(|byte| !byte.is_ascii_whitespace())? {
        b'{' => return Some("a JSON object"),
        b'[' => return Some("a JSON array"),
        _ => {}
    }
    if head.len() >= 96 && G1Affine::from_zcash_uncompressed(head).is_ok() {
        return Some("bellman parameters or an uncompressed arkworks key");
    }
    if head.len() >= 48 && G1Affine::from_zcash_compressed(&head[..48]).is_ok() {
        return Some("a compressed arkworks key, or a proof");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_formats_are_told_apart() {
        let g = G1Affine::generator();
        for (bytes, word) in [
            (b"zkey\x01\0\0\0".to_vec(), "zkey"),
            (b"ptau".to_vec(), "powers-of-tau"),
            (b"\n [ 1".to_vec(), "JSON array"),
            (b"{}".to_vec(), "JSON object"),
            (g.to_zcash_uncompressed(), "bellman"),
            (g.to_zcash_compressed(), "compressed arkworks"),
            (vec![0x1f, 0x8b, 8], "gzip"),
        ] {
            assert!(guess_format(&bytes).unwrap().contains(word), "{word}");
        }
        assert_eq!(guess_format(&b"zke".to_vec()), None);
        assert_eq!(guess_format(&vec![0u8; 200]), None);
    }
}
