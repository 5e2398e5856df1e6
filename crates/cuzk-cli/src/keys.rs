//! The kinds of proving keys, under one roof.

use std::path::{Path, PathBuf};

use cuzk_formats::{
    AbMatrices, Error, FileSource, LoadOptions, Note, ProvingKey, ReadAt as _, arkworks, bellman,
    zkey,
};

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
}

impl KeyKind {
    /// Its flag, and its name in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Zkey => "zkey",
            Self::Params => "params",
            Self::Pk => "pk",
        }
    }

    /// For people.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Zkey => "circom zkey",
            Self::Params => "bellman parameters",
            Self::Pk => "arkworks proving key",
        }
    }
}

/// The one key among the arguments.
pub(crate) fn chosen(inputs: &InputArgs) -> Result<Option<(KeyKind, &Path)>, Failure> {
    let given = |kind, path: &Option<PathBuf>| path.is_some().then_some(kind);
    let kinds: Vec<KeyKind> = [
        given(KeyKind::Zkey, &inputs.zkey),
        given(KeyKind::Params, &inputs.params),
        given(KeyKind::Pk, &inputs.pk),
    ]
    .into_iter()
    .flatten()
    .collect();
    if kinds.len() > 1 {
        let flags: Vec<String> = kinds.iter().map(|k| format!("--{}", k.name())).collect();
        return Err(Failure::Usage(format!(
            "{} are both keys: give one",
            flags.join(" and ")
        )));
    }
    Ok(kinds.first().and_then(|kind| {
        let path = match kind {
            KeyKind::Zkey => &inputs.zkey,
            KeyKind::Params => &inputs.params,
            KeyKind::Pk => &inputs.pk,
        };
        Some((*kind, path.as_deref()?))
    }))
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
    /// Bytes that the key takes in memory, roughly.
    pub(crate) memory_bytes: u64,
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
    /// A zkey's matrices, and its number of constraints.
    pub(crate) matrices: Option<(AbMatrices, Option<usize>)>,
}

impl KeyFile {
    /// Opens a key and reads its counts.
    pub(crate) fn open(
        kind: KeyKind,
        path: &Path,
        options: &LoadOptions<'_>,
    ) -> Result<Self, Error> {
        let source = FileSource::open(path)?;
        let counts = match kind {
            KeyKind::Zkey => {
                let (header, _) = zkey::read_header(&source, options)?;
                KeyCounts {
                    num_inputs: u64::from(header.num_public) + 1,
                    num_variables: u64::from(header.num_variables),
                    domain_size: u64::from(header.domain_size),
                    memory_bytes: source.len(),
                }
            }
            KeyKind::Params => {
                let (header, _) = bellman::read_header(&source, options)?;
                KeyCounts {
                    num_inputs: header.num_inputs,
                    num_variables: header.num_inputs + header.num_aux,
                    domain_size: header.domain_size,
                    memory_bytes: source.len() - header.tail_bytes,
                }
            }
            KeyKind::Pk => {
                let (header, _) = arkworks::read_header(&source, options)?;
                let bytes = source.len() - header.tail_bytes;
                KeyCounts {
                    num_inputs: header.num_inputs,
                    num_variables: header.num_variables,
                    domain_size: header.domain_size,
                    memory_bytes: match header.compression {
                        arkworks::Compression::Compressed => 2 * bytes,
                        arkworks::Compression::Uncompressed => bytes,
                    },
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
        let plain = |key| LoadedKey {
            key,
            matrices: None,
        };
        Ok(match self.kind {
            KeyKind::Zkey => {
                let file = zkey::read(source, options)?;
                let num_constraints = file.num_constraints();
                let key = LoadedKey {
                    key: file.key,
                    matrices: Some((file.matrices, num_constraints)),
                };
                (key, file.notes)
            }
            KeyKind::Params => {
                let file = bellman::read_params(source, options)?;
                (plain(file.key), file.notes)
            }
            KeyKind::Pk => {
                let file = arkworks::read_proving_key(source, options)?;
                (plain(file.key), file.notes)
            }
        })
    }
}
