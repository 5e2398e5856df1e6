//! The kinds of proving keys, under one roof.

use std::path::Path;

use cuzk_field::RootGenerator;
use cuzk_formats::prepared::{KeySource, Origin, PreparedKey};
use cuzk_formats::{
    AbMatrices, Error, FileSource, KeyFlavour, LoadOptions, Note, ProvingKey, QueryVariables,
    ReadAt as _, arkworks, bellman, prepared, zkey,
};
use cuzk_groth16::KeyRef;

use crate::args::InputArgs;
use crate::exit::Failure;
use crate::load::Loader;

/// A kind of proving key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeyKind {
    /// circom and snarkjs.
    Zkey,
    /// The bellman family.
    Params,
    /// arkworks.
    Pk,
    /// Any of them, prepared.
    Prepared,
}

impl KeyKind {
    /// Its flag, and its name in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Zkey => "zkey",
            Self::Params => "params",
            Self::Pk => "pk",
            Self::Prepared => "prepared",
        }
    }

    /// For people.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Zkey => "circom zkey",
            Self::Params => "bellman parameters",
            Self::Pk => "arkworks proving key",
            Self::Prepared => "prepared key",
        }
    }

    /// The conventions of ordinary keys of this kind.
    pub(crate) const fn flavour(self) -> KeyFlavour {
        match self {
            Self::Zkey | Self::Prepared => KeyFlavour::CIRCOM,
            Self::Params | Self::Pk => KeyFlavour::LIBSNARK,
        }
    }
}

/// The kind of key whose tools' conventions hold for the proofs of a prepared key.
pub(crate) fn convention_of(source: KeySource, generator: RootGenerator) -> KeyKind {
    match source {
        KeySource::Zkey => KeyKind::Zkey,
        KeySource::Arkworks => KeyKind::Pk,
        KeySource::BellmanParams => KeyKind::Params,
        _ if generator == KeyKind::Zkey.flavour().root_generator => KeyKind::Zkey,
        _ => KeyKind::Params,
    }
}

/// The one key among the arguments.
pub(crate) fn chosen(inputs: &InputArgs) -> Result<Option<(KeyKind, &Path)>, Failure> {
    one_of(&[
        (KeyKind::Zkey, inputs.zkey.as_deref()),
        (KeyKind::Params, inputs.params.as_deref()),
        (KeyKind::Pk, inputs.pk.as_deref()),
        (KeyKind::Prepared, inputs.prepared.as_deref()),
    ])
}

/// The one key that is given.
pub(crate) fn one_of<'a>(
    keys: &[(KeyKind, Option<&'a Path>)],
) -> Result<Option<(KeyKind, &'a Path)>, Failure> {
    let given: Vec<(KeyKind, &Path)> = keys
        .iter()
        .filter_map(|(kind, path)| Some((*kind, (*path)?)))
        .collect();
    if given.len() > 1 {
        let flags: Vec<String> = given
            .iter()
            .map(|(kind, _)| format!("--{}", kind.name()))
            .collect();
        return Err(Failure::Usage(format!(
            "{} are both keys: give one",
            flags.join(" and ")
        )));
    }
    Ok(given.first().copied())
}

/// What a key's counts say, before it is loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyCounts {
    /// The constant ONE included.
    pub(crate) num_inputs: u64,
    /// The constant ONE included.
    pub(crate) num_variables: u64,
    /// n.
    pub(crate) domain_size: u64,
    /// The least domain that keys of this kind have.
    pub(crate) least_domain: u64,
    /// Bytes that the key takes in memory, roughly.
    pub(crate) memory_bytes: u64,
    /// Those of them that a GPU may take from the file: the points of a prepared key.
    pub(crate) point_bytes: u64,
}

/// A key file that has been opened.
pub(crate) struct KeyFile {
    pub(crate) kind: KeyKind,
    pub(crate) source: FileSource,
    pub(crate) counts: KeyCounts,
}

/// A loaded key.
pub(crate) struct LoadedKey {
    pub(crate) key: ProvingKey,
    /// The matrices of a zkey or prepared key, and its number of constraints.
    pub(crate) matrices: Option<(AbMatrices, Option<usize>)>,
    /// What a prepared key knows besides: the variables of its queries, and what it was made from.
    pub(crate) prepared: Option<(QueryVariables, Origin)>,
}

impl LoadedKey {
    /// A key alone.
    pub(crate) fn plain(key: ProvingKey) -> Self {
        Self {
            key,
            matrices: None,
            prepared: None,
        }
    }

    /// The key for a prover.
    pub(crate) fn key_ref(&self) -> KeyRef<'_> {
        KeyRef {
            variables: self.prepared.as_ref().map(|(variables, _)| variables),
            ..KeyRef::from(&self.key)
        }
    }
}

impl KeyFile {
    /// Opens a key and reads its counts.
    pub(crate) fn open(
        kind: KeyKind,
        path: &Path,
        options: &LoadOptions<'_>,
    ) -> Result<Self, Error> {
        Self::of(kind, FileSource::open(path)?, options)
    }

    /// Reads the counts of a key that is open.
    pub(crate) fn of(
        kind: KeyKind,
        source: FileSource,
        options: &LoadOptions<'_>,
    ) -> Result<Self, Error> {
        let counts = match kind {
            KeyKind::Zkey => {
                let (header, _) = zkey::read_header(&source, options)?;
                KeyCounts {
                    num_inputs: u64::from(header.num_public) + 1,
                    num_variables: u64::from(header.num_variables),
                    domain_size: u64::from(header.domain_size),
                    // snarkjs has a domain of 2 where one row would do.
                    least_domain: 2,
                    memory_bytes: source.len(),
                    point_bytes: 0,
                }
            }
            KeyKind::Params => {
                let (header, _) = bellman::read_header(&source, options)?;
                KeyCounts {
                    num_inputs: header.num_inputs,
                    num_variables: header.num_inputs + header.num_aux,
                    domain_size: header.domain_size,
                    least_domain: 1,
                    memory_bytes: source.len() - header.tail_bytes,
                    point_bytes: 0,
                }
            }
            KeyKind::Pk => {
                let (header, _) = arkworks::read_header(&source, options)?;
                let bytes = source.len() - header.tail_bytes;
                KeyCounts {
                    num_inputs: header.num_inputs,
                    num_variables: header.num_variables,
                    domain_size: header.domain_size,
                    least_domain: 1,
                    memory_bytes: match header.compression {
                        arkworks::Compression::Compressed => 2 * bytes,
                        arkworks::Compression::Uncompressed => bytes,
                    },
                    point_bytes: 0,
                }
            }
            KeyKind::Prepared => {
                let header = prepared::read_header(&source)?;
                let is_circom = header.flavour.root_generator == KeyFlavour::CIRCOM.root_generator;
                KeyCounts {
                    num_inputs: header.num_inputs,
                    num_variables: header.num_variables,
                    domain_size: header.domain_size,
                    least_domain: if is_circom { 2 } else { 1 },
                    // Coefficient numbers are twice as wide in memory, variables a list.
                    memory_bytes: source.len()
                        + 2 * header.num_entries.iter().sum::<u64>()
                        + 4 * header.num_points.iter().sum::<u64>(),
                    point_bytes: header
                        .sections()
                        .iter()
                        .filter(|section| section.number >= prepared::Section::A as u32)
                        .map(|section| section.bytes)
                        .sum(),
                }
            }
        };
        Ok(Self {
            kind,
            source,
            counts,
        })
    }

    /// Loads and checks the key.
    pub(crate) fn load(&self, loader: &mut Loader) -> Result<LoadedKey, Error> {
        loader.read("key", &self.source, |source, options| {
            self.read(source, options)
        })
    }

    fn read(
        &self,
        source: &FileSource,
        options: &LoadOptions<'_>,
    ) -> Result<(LoadedKey, Vec<Note>), Error> {
        Ok(match self.kind {
            KeyKind::Zkey => {
                let file = zkey::read(source, options)?;
                let num_constraints = file.num_constraints();
                let key = LoadedKey {
                    key: file.key,
                    matrices: Some((file.matrices, num_constraints)),
                    prepared: None,
                };
                (key, file.notes)
            }
            KeyKind::Params => {
                let file = bellman::read_params(source, options)?;
                (LoadedKey::plain(file.key), file.notes)
            }
            KeyKind::Pk => {
                let file = arkworks::read_proving_key(source, options)?;
                (LoadedKey::plain(file.key), file.notes)
            }
            KeyKind::Prepared => {
                let file = prepared::read(source, options)?;
                let PreparedKey {
                    key,
                    variables,
                    matrices,
                    origin,
                } = file.key;
                let num_constraints = matrices.a.num_rows().checked_sub(key.num_inputs());
                let key = LoadedKey {
                    key,
                    matrices: Some((matrices, num_constraints)),
                    prepared: Some((variables, origin)),
                };
                (key, file.notes)
            }
        })
    }
}
