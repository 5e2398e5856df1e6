//! gzip and xz, told by their magic bytes.

use std::io::{self, Cursor, Read as _};

/// `bytes` unpacked when they begin as a gzip or xz file does, else as they are.
///
/// # Errors
/// What the decoder says of damaged data.
pub fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut plain)?;
    } else if bytes.starts_with(b"\xfd7zXZ\0") {
        lzma_rs::xz_decompress(&mut Cursor::new(bytes), &mut plain)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, format!("{e:?}")))?;
    } else {
        plain.extend_from_slice(bytes);
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn gzip_and_plain_give_the_same_bytes() {
        let plain: Vec<u8> = (0..10_000u32).map(|i| (i % 251) as u8).collect();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gz.write_all(&plain).unwrap();
        assert_eq!(unpack(&gz.finish().unwrap()).unwrap(), plain);
        assert_eq!(unpack(&plain).unwrap(), plain);
    }

    #[test]
    fn xz_is_unpacked() {
        let plain = b"xz xz xz xz xz xz xz xz".repeat(40);
        let mut xz = Vec::new();
        lzma_rs::xz_compress(&mut Cursor::new(&plain), &mut xz).unwrap();
        assert_eq!(unpack(&xz).unwrap(), plain);
    }

    #[test]
    fn damaged_gzip_is_an_error() {
        assert!(unpack(&[0x1f, 0x8b, 8, 0, 0]).is_err());
    }
}
