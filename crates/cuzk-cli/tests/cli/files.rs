//! Files taken apart and put together again, wrongly.

use std::path::PathBuf;

use cuzk_formats::{ProvingKey, R1cs, Witness, arkworks, bellman, r1cs, wtns};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};
use cuzk_testkit::Case;

use crate::run::Scratch;

/// A shipped case, its files unpacked.
pub struct Files {
    pub case: Case,
    pub zkey: PathBuf,
    pub wtns: PathBuf,
    pub r1cs: PathBuf,
}

impl Files {
    pub fn of(name: &str) -> Self {
        let case = cuzk_testkit::case(name);
        let path = |file| case.path(file).expect("the case has the file");
        Self {
            zkey: path("circuit.zkey"),
            wtns: path("witness.wtns"),
            r1cs: path("circuit.r1cs"),
            case,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.case.path(name).expect("the case has the file")
    }
}

/// An iden3 file as magic, version and sections.
#[derive(Clone)]
pub struct Iden3 {
    preamble: [u8; 8],
    pub sections: Vec<(u32, Vec<u8>)>,
}

impl Iden3 {
    pub fn parse(bytes: &[u8]) -> Self {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let mut sections = Vec::new();
        let mut at = 12;
        for _ in 0..word(8) {
            let len = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().unwrap()) as usize;
            sections.push((word(at), bytes[at + 12..at + 12 + len].to_vec()));
            at += 12 + len;
        }
        Self {
            preamble: bytes[..8].try_into().unwrap(),
            sections,
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.preamble.to_vec();
        bytes.extend((self.sections.len() as u32).to_le_bytes());
        for (number, body) in &self.sections {
            bytes.extend(number.to_le_bytes());
            bytes.extend((body.len() as u64).to_le_bytes());
            bytes.extend(body);
        }
        bytes
    }

    pub fn section(&mut self, number: u32) -> &mut Vec<u8> {
        let found = self.sections.iter_mut().find(|(n, _)| *n == number);
        &mut found.expect("the section is there").1
    }

    /// Offsets at which sections begin and end.
    pub fn borders(&self) -> Vec<usize> {
        let mut at = 12;
        let mut borders = vec![at];
        for (_, body) in &self.sections {
            borders.extend([at + 12, at + 12 + body.len()]);
            at += 12 + body.len();
        }
        borders.dedup();
        borders
    }
}

/// A bellman or arkworks key with the files that belong to it.
pub struct Synthetic {
    pub key: ProvingKey,
    pub r1cs: R1cs,
    pub r1cs_path: PathBuf,
    pub wtns_path: PathBuf,
}

impl Synthetic {
    pub fn new(scratch: &Scratch, family: KeyFamily, shape: Shape, seed: u64) -> Self {
        let Instance { r1cs, witness } = Instance::new(shape, 6, seed).unwrap();
        Self {
            key: proving_key(&r1cs, family, seed).unwrap(),
            r1cs_path: scratch.file(&format!("{seed}.r1cs"), r1cs_bytes(&r1cs)),
            wtns_path: scratch.file(&format!("{seed}.wtns"), wtns_bytes(&witness)),
            r1cs,
        }
    }
}

pub fn r1cs_bytes(system: &R1cs) -> Vec<u8> {
    let mut bytes = Vec::new();
    r1cs::write(system, &mut bytes).unwrap();
    bytes
}

pub fn wtns_bytes(witness: &Witness) -> Vec<u8> {
    let mut bytes = Vec::new();
    wtns::write(witness, &mut bytes).unwrap();
    bytes
}

pub fn params_bytes(key: &ProvingKey) -> Vec<u8> {
    let mut bytes = Vec::new();
    bellman::write_params(key, &mut bytes).unwrap();
    bytes
}

pub fn pk_bytes(key: &ProvingKey, compression: arkworks::Compression) -> Vec<u8> {
    let mut bytes = Vec::new();
    arkworks::write_proving_key(key, compression, &mut bytes).unwrap();
    bytes
}
