//! The parsers of the iden3 and snarkjs formats, each with files to start from.

use cuzk_formats::{BytesSource, LoadOptions, guess_format, json, r1cs, wtns, zkey};
use cuzk_testkit::Case;

use crate::mutate::{Kind, Seed};

/// A parser under test.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Files to start from.
    pub(crate) seeds: fn() -> Vec<Seed>,
    /// Reads the bytes; a refusal is fine, a panic is not. `true` when they were accepted.
    pub(crate) run: fn(&[u8]) -> bool,
}

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "r1cs",
        kind: Kind::Binary,
        seeds: || seeds(Case::r1cs, container_marks),
        run: run_r1cs,
    },
    Target {
        name: "wtns",
        kind: Kind::Binary,
        seeds: || seeds(Case::wtns, container_marks),
        run: run_wtns,
    },
    Target {
        name: "zkey",
        kind: Kind::Binary,
        seeds: || seeds(Case::zkey, container_marks),
        run: run_zkey,
    },
    Target {
        name: "vk_json",
        kind: Kind::Text,
        seeds: || seeds(Case::verification_key_json, no_marks),
        run: run_vk_json,
    },
    Target {
        name: "proof_json",
        kind: Kind::Text,
        seeds: || seeds(Case::proof_json, no_marks),
        run: run_proof_json,
    },
    Target {
        name: "public_json",
        kind: Kind::Text,
        seeds: || seeds(Case::public_json, no_marks),
        run: run_public_json,
    },
];

/// Seeds stay small, so that many cases fit the time.
const SEED_BYTES_MAX: usize = 48 << 10;

/// A file of each case that has one.
fn seeds(file: fn(&Case) -> Option<Vec<u8>>, marks: fn(&[u8]) -> Vec<usize>) -> Vec<Seed> {
    let mut seeds: Vec<Seed> = cuzk_testkit::cases()
        .iter()
        .filter_map(file)
        .filter(|bytes| bytes.len() <= SEED_BYTES_MAX)
        .map(|bytes| Seed {
            marks: marks(&bytes),
            bytes,
        })
        .collect();
    seeds.sort_by_key(|seed| seed.bytes.len());
    seeds
}

/// Container header, section headers, and the first words of each body.
fn container_marks(bytes: &[u8]) -> Vec<usize> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let mut marks = vec![0, 4, 8];
    let mut at = 12;
    while let Some(low) = word(at + 4) {
        let body = at + 12;
        marks.extend([at, at + 4]);
        let len = usize::try_from(low).expect("32 bits fit");
        // Headers hold a prime or two before the counts; lists begin with a count, an entry of
        // coefficients has three indices.
        marks.extend(
            [0, 4, 8, 12, 36, 40, 44, 48, 52, 56, 60, 88, 92, 96, 100]
                .iter()
                .filter(|&&o| o < len)
                .map(|o| body + o),
        );
        at = body + len;
    }
    marks.push(bytes.len());
    marks
}

fn no_marks(_: &[u8]) -> Vec<usize> {
    Vec::new()
}

/// Every third case is read strictly, so both ways are tried.
pub(crate) fn options(bytes: &[u8]) -> LoadOptions<'static> {
    LoadOptions {
        strict: bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)) % 3 == 0,
        ..LoadOptions::default()
    }
}

/// Reads and writes, twice: what was accepted can be written, and what was written is read to the
/// same file. `transcode` gives `None` for what the reader refuses, nothing for what is not to be
/// written.
pub(crate) fn fixed_point(bytes: &[u8], transcode: impl Fn(&[u8]) -> Option<Vec<u8>>) -> bool {
    let Some(once) = transcode(bytes) else {
        return false;
    };
    if once.is_empty() {
        return true;
    }
    let twice = transcode(&once).expect("the reader refuses what the writer wrote");
    assert!(once == twice, "read again, the written file is another");
    true
}

fn run_r1cs(bytes: &[u8]) -> bool {
    let options = options(bytes);
    let _ = guess_format(&BytesSource::new("fuzz", bytes));
    fixed_point(bytes, |bytes| {
        let file = r1cs::read(&BytesSource::new("fuzz", bytes), &options).ok()?;
        if file.r1cs.num_variables > bytes.len() {
            // Wires that nothing mentions cost a file nothing, but the writer gives each a label.
            return Some(Vec::new());
        }
        let mut out = Vec::new();
        r1cs::write(&file.r1cs, &mut out).expect("an accepted system can be written");
        Some(out)
    })
}

fn run_wtns(bytes: &[u8]) -> bool {
    let options = options(bytes);
    fixed_point(bytes, |bytes| {
        let file = wtns::read(&BytesSource::new("fuzz", bytes), &options).ok()?;
        let mut out = Vec::new();
        wtns::write(&file.witness, &mut out).expect("an accepted witness can be written");
        Some(out)
    })
}

fn run_zkey(bytes: &[u8]) -> bool {
    let options = options(bytes);
    fixed_point(bytes, |bytes| {
        let file = zkey::read(&BytesSource::new("fuzz", bytes), &options).ok()?;
        let mut out = Vec::new();
        zkey::write(&file.key, &file.matrices, &mut out).expect("an accepted key can be written");
        Some(out)
    })
}

fn run_vk_json(bytes: &[u8]) -> bool {
    let _ = json::kind_of(bytes);
    let options = options(bytes);
    fixed_point(bytes, |bytes| {
        let (key, _) =
            json::read_verification_key(&BytesSource::new("fuzz", bytes), &options).ok()?;
        let text = json::verification_key_to_string(&key);
        Some(text.expect("an accepted key can be written").into_bytes())
    })
}

fn run_proof_json(bytes: &[u8]) -> bool {
    let options = options(bytes);
    fixed_point(bytes, |bytes| {
        let (proof, _) = json::read_proof(&BytesSource::new("fuzz", bytes), &options).ok()?;
        Some(json::proof_to_string(&proof).into_bytes())
    })
}

fn run_public_json(bytes: &[u8]) -> bool {
    let options = options(bytes);
    fixed_point(bytes, |bytes| {
        let (values, _) = json::read_public(&BytesSource::new("fuzz", bytes), &options).ok()?;
        let text = json::public_to_string(&values);
        Some(text.expect("accepted values can be written").into_bytes())
    })
}
