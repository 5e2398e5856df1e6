//! Names and digests of Filecoin's parameter files.

use std::collections::BTreeMap;
use std::fmt;

use cuzk_formats::{Error as FileError, ErrorKind, LoadOptions, Progress, ReadAt};
use serde::Deserialize;

use crate::error::Error;

/// The first 16 bytes of a file's BLAKE2b hash: what Filecoin's lists of parameters call its digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// Hashes a file front to back, on one core. Progress and cancellation are those of the options.
    ///
    /// # Errors
    /// When the file cannot be read, or the options say to stop.
    pub fn of(source: &(impl ReadAt + ?Sized), options: &LoadOptions<'_>) -> Result<Self, Error> {
        const BLOCK_BYTES: u64 = 1 << 20;
        let total_bytes = source.len();
        let mut state = blake2b_simd::State::new();
        let mut block = vec![0; BLOCK_BYTES.min(total_bytes) as usize];
        let mut done_bytes = 0;
        while done_bytes < total_bytes {
            let bytes = (total_bytes - done_bytes).min(BLOCK_BYTES) as usize;
            source.read_exact_at(done_bytes, &mut block[..bytes])?;
            state.update(&block[..bytes]);
            done_bytes += bytes as u64;
            if let Some(progress) = options.progress {
                progress(Progress {
                    label: "digest",
                    done_bytes,
                    total_bytes,
                });
            }
            if let Some(cancel) = options.cancel
                && cancel.load(std::sync::atomic::Ordering::Relaxed)
            {
                let error =
                    FileError::new(ErrorKind::Cancelled, "a whole file", "a request to stop");
                return Err(error.in_file(source.name()).into());
            }
        }
        let mut digest = [0; 16];
        digest.copy_from_slice(&state.finalize().as_bytes()[..16]);
        Ok(Self(digest))
    }

    /// From 32 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut digest = [0; 16];
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, at) in digest.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self(digest))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// What a file of Filecoin's parameter cache holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FileType {
    /// `.params`: a proving key.
    Params,
    /// `.vk`: a verifying key.
    VerifyingKey,
    /// `.srs`: for aggregating proofs.
    Srs,
    /// `.meta`: text about a circuit.
    Meta,
}

/// A name of Filecoin's parameter cache: `v28-CIRCUIT-IDENTIFIER.params`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FileName<'a> {
    /// The number behind `v`.
    pub version: u32,
    /// The circuit with its sector shape and hashers, as
    /// `stacked-proof-of-replication-merkletree-poseidon_hasher-8-0-0-sha256_hasher`.
    pub circuit: &'a str,
    /// 64 hexadecimal digits, the hash of the circuit's parameters.
    pub identifier: &'a str,
    /// What the file holds.
    pub file_type: FileType,
}

impl<'a> FileName<'a> {
    /// Reads a file's name, without its folder.
    ///
    /// # Errors
    /// [`Error::ParameterName`] naming the part that is missing or wrong.
    pub fn parse(name: &'a str) -> Result<Self, Error> {
        let fault = |what: &str| Error::ParameterName {
            name: name.into(),
            what: what.into(),
        };
        let (stem, extension) = name
            .rsplit_once('.')
            .ok_or_else(|| fault("has no extension"))?;
        let file_type = match extension {
            "params" => FileType::Params,
            "vk" => FileType::VerifyingKey,
            "srs" => FileType::Srs,
            "meta" => FileType::Meta,
            _ => return Err(fault("ends in none of .params, .vk, .srs, .meta")),
        };
        let (version, rest) = stem
            .strip_prefix('v')
            .and_then(|rest| rest.split_once('-'))
            .ok_or_else(|| fault("does not begin with a version like \"v28-\""))?;
        // A parser of numbers takes a sign.
        let version = Some(version)
            .filter(|version| version.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|version| version.parse().ok())
            .ok_or_else(|| fault("does not begin with a version like \"v28-\""))?;
        let (circuit, identifier) = rest
            .rsplit_once('-')
            .ok_or_else(|| fault("has no identifier behind its circuit"))?;
        if circuit.is_empty() {
            return Err(fault("has no circuit before its identifier"));
        }
        if circuit.contains(['/', '\\']) {
            return Err(fault("has folders in it"));
        }
        let is_hex = identifier
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if identifier.len() != 64 || !is_hex {
            return Err(fault("has an identifier that is not 64 hexadecimal digits"));
        }
        Ok(Self {
            version,
            circuit,
            identifier,
            file_type,
        })
    }
}

/// A line of Filecoin's list of parameter files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The file's digest.
    pub digest: Digest,
    /// Its content identifier.
    pub cid: String,
    /// The sector size in bytes.
    pub sector_size: u64,
}

/// Filecoin's `parameters.json`: files by name.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct List(BTreeMap<String, Entry>);

#[derive(Deserialize)]
struct RawEntry {
    cid: String,
    digest: String,
    sector_size: u64,
}

impl List {
    /// Reads the list.
    ///
    /// # Errors
    /// [`Error::List`].
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let raw: BTreeMap<String, RawEntry> =
            serde_json::from_str(text).map_err(|error| Error::List {
                what: error.to_string(),
            })?;
        let entries = raw.into_iter().map(|(name, raw)| {
            let digest = Digest::from_hex(&raw.digest).ok_or_else(|| Error::List {
                what: format!("the digest of {name} is not 32 hexadecimal digits"),
            })?;
            let entry = Entry {
                digest,
                cid: raw.cid,
                sector_size: raw.sector_size,
            };
            Ok((name, entry))
        });
        entries.collect::<Result<_, Error>>().map(Self)
    }

    /// The entry of a file.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.0.get(name)
    }

    /// All entries by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// Checks a file's digest. The source's name may have folders before the file's name.
    ///
    /// # Errors
    /// [`Error::Digest`] with both; [`Error::ParameterName`] for a file that is not in the list.
    pub fn check(
        &self,
        source: &(impl ReadAt + ?Sized),
        options: &LoadOptions<'_>,
    ) -> Result<(), Error> {
        let name = source.name();
        let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let entry = self.get(file).ok_or_else(|| Error::ParameterName {
            name: file.into(),
            what: "is not in the list of parameter files".into(),
        })?;
        let found = Digest::of(source, options)?;
        if found == entry.digest {
            return Ok(());
        }
        Err(Error::Digest {
            name: name.into(),
            expected: entry.digest.to_string(),
            found: found.to_string(),
        })
    }
}
