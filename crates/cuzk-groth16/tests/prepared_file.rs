//! The file of a prepared key: what is damaged, or lies with valid checksums, is refused.

use cuzk_formats::prepared::{
    CHUNK_BYTES, Header, KeySource, Origin, PreparedKey, Reader, Section, read, read_header, write,
};
use cuzk_formats::{BytesSource, Error, ErrorKind, LoadOptions, QueryLayout};
use cuzk_groth16::prepared::{Rows, prepare};
use cuzk_groth16::synth::{Instance, KeyExponents, KeyFamily, Shape};

const PAGE: usize = 4096;

fn key(family: KeyFamily, log_n: u32) -> PreparedKey {
    let instance = Instance::new(Shape::Porep, log_n, 5).unwrap();
    let key = KeyExponents::for_four_transforms(&instance.r1cs, family, 6).unwrap();
    let origin = Origin {
        source: KeySource::Zkey,
        key_hash: Some([7; 32]),
        r1cs_hash: None,
    };
    prepare(key.points(), Rows::Of(&instance.r1cs), origin).unwrap()
}

fn bytes_of(key: &PreparedKey) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(key, &mut bytes, None).unwrap();
    bytes
}

fn parse(bytes: &[u8]) -> Result<PreparedKey, Error> {
    let source = BytesSource::new("key.cuzk", bytes);
    let file = read(&source, &LoadOptions::default())?;
    Ok(file.key)
}

fn kind_of(bytes: &[u8]) -> ErrorKind {
    let error = parse(bytes).unwrap_err();
    assert_eq!(error.file(), Some("key.cuzk"), "{error}");
    error.kind()
}

/// The checksums made again, as somebody would who means harm.
fn resealed(mut bytes: Vec<u8>, header: &Header) -> Vec<u8> {
    let sections = header.sections();
    let mut hashes = Vec::new();
    for section in &sections[1..] {
        let body = &bytes[section.offset as usize..][..section.bytes as usize];
        for chunk in body.chunks(CHUNK_BYTES) {
            hashes.extend_from_slice(blake3::hash(chunk).as_bytes());
        }
    }
    bytes[PAGE..PAGE + hashes.len()].copy_from_slice(&hashes);
    bytes[208..240].copy_from_slice(blake3::hash(&hashes).as_bytes());
    resealed_page(bytes)
}

fn resealed_page(mut bytes: Vec<u8>) -> Vec<u8> {
    let hash = blake3::hash(&bytes[..PAGE - 32]);
    bytes[PAGE - 32..PAGE].copy_from_slice(hash.as_bytes());
    bytes
}

#[test]
fn the_header_says_what_is_there() {
    let key = key(KeyFamily::Bellman, 6);
    let bytes = bytes_of(&key);
    let source = BytesSource::new("key", &bytes);
    let header = read_header(&source).unwrap();
    assert_eq!(header.flavour, key.key.flavour);
    assert_eq!(header.origin, key.origin);
    assert_eq!(header.domain_size, 64);
    assert_eq!(header.num_variables as usize, key.key.num_variables());
    assert_eq!(header.num_points[1] as usize, key.key.b_g2_query.len());
    assert_eq!(header.id_bytes(), 2);
    assert_eq!(header.file_bytes(), bytes.len() as u64);
    for section in header.sections() {
        assert_eq!(section.offset % PAGE as u64, 0, "{}", section.name);
    }
    // Points in the file are points in memory.
    let reader = Reader::open(&source).unwrap();
    let mut chunk = vec![0; reader.section_bytes(Section::B2) as usize];
    reader.read_chunk(Section::B2, 0, &mut chunk).unwrap();
    assert!(chunk == bytemuck::cast_slice::<_, u8>(&key.key.b_g2_query));
    for (index, bytes) in [(1, 96), (0, chunk.len() - 1), (u64::MAX, 0)] {
        let error = reader.read_chunk(Section::B2, index, &mut chunk[..bytes]);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::OutOfRange);
    }
    let (vk, notes) = reader.verifying_key(&LoadOptions::default()).unwrap();
    assert_eq!(vk, key.key.vk);
    assert!(notes.is_empty());
}

/// A section of several chunks.
#[test]
fn chunks_are_verified_one_by_one() {
    let key = key(KeyFamily::Circom, 13);
    let mut bytes = bytes_of(&key);
    assert_eq!(parse(&bytes).unwrap(), key);
    let header = read_header(&BytesSource::new("key", &bytes)).unwrap();
    let h = header.sections()[Section::H as usize - 1].clone();
    assert!(h.bytes > CHUNK_BYTES as u64);
    bytes[h.offset as usize + CHUNK_BYTES + 5] ^= 1;
    let source = BytesSource::new("key", &bytes);
    let reader = Reader::open(&source).unwrap();
    let mut chunk = vec![0; CHUNK_BYTES];
    reader.read_chunk(Section::H, 0, &mut chunk).unwrap();
    let error = reader.read_chunk(Section::H, 1, &mut chunk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Checksum);
    assert_eq!(error.place().entry, Some(("chunk", 1)));
    assert_eq!(kind_of(&bytes), ErrorKind::Checksum);
    // Two chunks exchanged.
    bytes[h.offset as usize + CHUNK_BYTES + 5] ^= 1;
    let (first, second) = bytes[h.offset as usize..].split_at_mut(CHUNK_BYTES);
    first.swap_with_slice(&mut second[..CHUNK_BYTES]);
    assert_eq!(kind_of(&bytes), ErrorKind::Checksum);
}

/// Every byte of the first page and of the checksums, the borders of every section, and the bytes between
/// them.
#[test]
fn a_flipped_byte_anywhere_is_refused() {
    let mut bytes = bytes_of(&key(KeyFamily::Circom, 3));
    let header = read_header(&BytesSource::new("key", &bytes)).unwrap();
    let sections = header.sections();
    let hashes_end = sections[0].offset + sections[0].bytes;
    let mut places: Vec<u64> = (0..hashes_end).collect();
    for section in &sections[1..] {
        let end = section.offset + section.bytes;
        places.extend([section.offset - 1, section.offset, section.offset + 17]);
        places.extend([end - 1, end]);
        places.extend((section.offset..end).step_by(211));
    }
    for place in places {
        let Some(byte) = bytes.get_mut(place as usize) else {
            continue;
        };
        *byte ^= 0x10;
        let kind = kind_of(&bytes);
        let expected = match place {
            0..8 => ErrorKind::WrongFormat,
            8..12 => ErrorKind::Unsupported,
            _ => ErrorKind::Checksum,
        };
        assert_eq!(kind, expected, "byte {place}");
        bytes[place as usize] ^= 0x10;
    }
    parse(&bytes).unwrap();
}

#[test]
fn other_lengths_and_versions_say_so() {
    let bytes = bytes_of(&key(KeyFamily::Arkworks, 3));
    for len in [bytes.len() - 1, bytes.len() - PAGE, PAGE, PAGE - 1, 9] {
        assert_eq!(kind_of(&bytes[..len]), ErrorKind::Truncated, "{len} bytes");
    }
    assert_eq!(kind_of(&bytes[..7]), ErrorKind::WrongFormat);
    // The section in which it ends, and where.
    let header = read_header(&BytesSource::new("key", &bytes)).unwrap();
    for section in header.sections() {
        let end = section.offset + section.bytes;
        for len in [section.offset, section.offset + section.bytes / 2, end - 1] {
            let error = parse(&bytes[..len as usize]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Truncated, "{error}");
            assert_eq!(error.place().section, Some(section.number), "{error}");
            assert_eq!(error.place().offset, Some(len), "{error}");
        }
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(kind_of(&longer), ErrorKind::BadLayout);
    for (version, age) in [(0u32, "an older cuzk"), (2, "a newer cuzk")] {
        let mut other = bytes.clone();
        other[8..12].copy_from_slice(&version.to_le_bytes());
        let error = parse(&resealed_page(other)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(age), "{error}");
    }
    // Another format under this name.
    let error = parse(b"zkey\x01\0\0\0").unwrap_err();
    assert!(error.found().contains("zkey"), "{error}");
}

/// Checksums that fit what is wrong.
#[test]
fn a_checksum_is_no_proof() {
    let bytes = bytes_of(&key(KeyFamily::Circom, 6));
    let header = read_header(&BytesSource::new("key", &bytes)).unwrap();
    let sections = header.sections();
    let damaged = |section: Section, at: u64, with: &[u8]| {
        let mut bytes = bytes.clone();
        let at = (sections[section as usize - 1].offset + at) as usize;
        bytes[at..at + with.len()].copy_from_slice(with);
        kind_of(&resealed(bytes, &header))
    };
    let last = |section: Section, bytes: u64| sections[section as usize - 1].bytes - bytes;
    use ErrorKind::{BadPoint, Inconsistent, NotCanonical, OutOfRange};
    let cases: [(Section, u64, &[u8], ErrorKind); 17] = [
        (Section::Vital, 0, &[0; 96], BadPoint),
        (Section::Vital, 96, &[0xff; 48], NotCanonical),
        (Section::Ic, 0, &[1], BadPoint),
        (Section::AVariables, 0, &[0; 8], Inconsistent),
        (
            Section::BVariables,
            last(Section::BVariables, 1),
            &[0x80],
            Inconsistent,
        ),
        (Section::Coefficients, 0, &[2], Inconsistent),
        (Section::Coefficients, 64, &[0; 32], Inconsistent),
        (Section::Coefficients, 32, &[0xff; 32], NotCanonical),
        (Section::AOffsets, 0, &[1], Inconsistent),
        (Section::BOffsets, 4, &[0xff; 4], Inconsistent),
        (Section::AColumns, 0, &[0xff; 4], OutOfRange),
        (Section::BIds, 0, &[0xff; 2], OutOfRange),
        (Section::A, 0, &[0xff; 96], NotCanonical),
        (Section::B1, last(Section::B1, 1), &[0x01], BadPoint),
        (Section::L, 48, &[3], BadPoint),
        (Section::H, last(Section::H, 96), &[0xff; 48], NotCanonical),
        (Section::B2, 144, &[0xff; 48], NotCanonical),
    ];
    for (section, at, with, expected) in cases {
        assert_eq!(damaged(section, at, with), expected, "{section:?} at {at}");
    }
    // beta of another key in G2 alone: what a pairing tells.
    let gamma = &bytes[sections[1].offset as usize + 3 * 96 + 192..][..192].to_vec();
    assert_eq!(damaged(Section::Vital, 3 * 96, gamma), Inconsistent);
    // Counts that another page would have.
    for (at, value) in [
        (24, 6),
        (28, 0),
        (28, 1),
        (28, 4),
        (64, 9),
        (68, 4),
        (136, 63),
        (136, 1 << 40),
        (144, 0),
        (144, 1 << 20),
        (152, 0),
        (152, u64::MAX),
        (160, 1 << 20),
        (168, 1),
        (176, u64::MAX),
        (184, 1 << 33),
        (192, 1 << 30),
        (200, u64::MAX),
        (240, 16),
        (244, 1),
        (256, 0),
        (2000, 1),
    ] {
        let mut other = bytes.clone();
        other[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
        if (136..208).contains(&at) {
            other[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let error = parse(&resealed_page(other)).unwrap_err();
        assert_ne!(
            error.kind(),
            ErrorKind::Checksum,
            "{value} at {at}: {error}"
        );
    }
}

#[test]
fn keys_that_contradict_themselves_are_not_written() {
    let good = key(KeyFamily::Bellman, 5);
    let mut wrong = vec![good.clone(); 7];
    wrong[0].key.a_query.pop();
    wrong[1].key.b_g2_query.pop();
    wrong[2].key.h_query.pop();
    wrong[3].variables.b.swap(0, 1);
    wrong[4].variables.a[0] = u32::MAX;
    wrong[5].key.query_layout = QueryLayout::Full;
    wrong[6].key.l_query.truncate(0);
    for (case, key) in wrong.iter().enumerate() {
        let mut bytes = Vec::new();
        assert!(write(key, &mut bytes, None).is_err(), "case {case}");
        assert!(bytes.is_empty(), "case {case}");
    }
}
