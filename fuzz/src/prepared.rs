//! Prepared keys: as they come, and with checksums made again, so that damage reaches what lies behind.

use cuzk_formats::prepared::{CHUNK_BYTES, read, write};
use cuzk_formats::{BytesSource, prepared};
use cuzk_groth16::prepared::{Origin, Rows, four_transform_bases, prepare};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};

use crate::mutate::{Kind, Seed};
use crate::targets::{Target, fixed_point, options};

pub(crate) const TARGETS: &[Target] = &[Target {
    name: "prepared",
    kind: Kind::Binary,
    seeds,
    run,
}];

const PAGE: usize = 4096;
const TABLE: usize = 248;

fn seeds() -> Vec<Seed> {
    [
        (KeyFamily::Circom, false),
        (KeyFamily::Bellman, true),
        (KeyFamily::Arkworks, false),
    ]
    .into_iter()
    .map(|(family, four)| {
        let instance = Instance::new(Shape::Porep, 3, 1).expect("a circuit of that size");
        let mut key = proving_key(&instance.r1cs, family, 2).expect("a key for the circuit");
        if four {
            four_transform_bases(&mut key, &instance.r1cs, &|_| {}).expect("bases for the key");
        }
        let rows = Rows::Of(&instance.r1cs);
        let key = prepare(key, rows, Origin::SYNTHETIC).expect("a key and its circuit");
        let mut bytes = Vec::new();
        write(&key, &mut bytes, None).expect("memory takes any file");
        let header = prepared::read_header(&BytesSource::new("seed", &bytes));
        let sections = header.expect("what was written is read").sections();
        // Every field of the first page; the first words of each section and its end.
        let mut marks: Vec<usize> = (0..TABLE + 24 * sections.len()).step_by(8).collect();
        marks.extend([PAGE - 32, PAGE]);
        for section in &sections[1..] {
            let (offset, bytes) = (section.offset as usize, section.bytes as usize);
            marks.extend((0..bytes.min(48)).step_by(8).map(|at| offset + at));
            marks.push(offset + bytes);
        }
        Seed { bytes, marks }
    })
    .collect()
}

fn run(bytes: &[u8]) -> bool {
    let options = options(bytes);
    let transcode = |bytes: &[u8]| {
        let file = read(&BytesSource::new("fuzz", bytes), &options).ok()?;
        let mut out = Vec::new();
        write(&file.key, &mut out, None).expect("an accepted key can be written");
        Some(out)
    };
    fixed_point(bytes, transcode) | fixed_point(&resealed(bytes), transcode)
}

/// The file with checksums of what its table of sections names, as far as it lies within the file.
fn resealed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() < PAGE {
        return bytes;
    }
    let word = |at: usize| {
        let word = bytes[at..].first_chunk().expect("within the page");
        usize::try_from(u64::from_le_bytes(*word)).unwrap_or(usize::MAX)
    };
    let mut hashes = Vec::new();
    for entry in 1..17 {
        let at = TABLE + 24 * entry;
        let (offset, len) = (word(at + 8), word(at + 16));
        let end = offset.saturating_add(len).min(bytes.len());
        let body = bytes.get(offset..end).unwrap_or_default();
        for chunk in body.chunks(CHUNK_BYTES) {
            hashes.extend_from_slice(blake3::hash(chunk).as_bytes());
        }
    }
    let room = hashes.len().min(bytes.len() - PAGE);
    bytes[PAGE..PAGE + room].copy_from_slice(&hashes[..room]);
    bytes[208..240].copy_from_slice(blake3::hash(&hashes).as_bytes());
    let hash = blake3::hash(&bytes[..PAGE - 32]);
    bytes[PAGE - 32..PAGE].copy_from_slice(hash.as_bytes());
    bytes
}
