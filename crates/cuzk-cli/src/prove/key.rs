//! The key of a proof, from a file or made in memory.

use std::sync::OnceLock;

use cuzk_formats::prepared::{Origin, PreparedFile, Reader};
use cuzk_formats::{AbMatrices, ProvingKey, VerifyingKey};
use cuzk_groth16::device::{self, DeviceProver, Gpu};
use cuzk_groth16::synth::KeyExponents;
use cuzk_groth16::{Circuit, KeyHeader, KeyRef};

use crate::exit::Failure;
use crate::keys::{KeyFile, LoadedKey};
use crate::load::Loader;
use crate::progress::Bar;
use crate::report::StageTime;

/// A key.
pub(super) enum Key {
    /// Of a file.
    Loaded(Box<LoadedKey>),
    /// Prepared, its points still in the file.
    InFile(Box<KeyInFile>),
    /// Synthetic.
    Made(Box<MadeKey>),
}

/// A prepared key whose points go from its file to the GPU, or come here when the CPU proves.
pub(super) struct KeyInFile {
    file: KeyFile,
    parts: PreparedFile,
    whole: OnceLock<LoadedKey>,
}

/// A synthetic key. Its points are made where they are used, on the GPU or, when asked for, here.
pub(super) struct MadeKey {
    exponents: KeyExponents,
    header: KeyHeader,
    points: OnceLock<ProvingKey>,
}

impl Key {
    pub(super) fn made(exponents: KeyExponents) -> Self {
        Self::Made(Box::new(MadeKey {
            header: exponents.header(),
            exponents,
            points: OnceLock::new(),
        }))
    }

    /// A prepared key of which everything is read but the points of its queries.
    pub(super) fn in_file(file: KeyFile, loader: &mut Loader) -> Result<Self, Failure> {
        let parts = loader.read("key without points", &file.source, |source, options| {
            let parts = Reader::open(source)?.read_without_queries(options)?;
            let notes = parts.notes.clone();
            Ok((parts, notes))
        })?;
        Ok(Self::InFile(Box::new(KeyInFile {
            file,
            parts,
            whole: OnceLock::new(),
        })))
    }

    /// The key for a prover on the CPU: what is not here yet is made or read.
    pub(super) fn key_ref(&self, loader: &mut Loader) -> Result<KeyRef<'_>, Failure> {
        Ok(match self {
            Self::Loaded(key) => key.key_ref(),
            Self::InFile(key) => {
                let whole = match key.whole.get() {
                    Some(whole) => whole,
                    None => {
                        let loaded = key.file.load(loader)?;
                        key.whole.get_or_init(|| loaded)
                    }
                };
                whole.key_ref()
            }
            Self::Made(key) => {
                if key.points.get().is_none() {
                    let _bar = Bar::working("making the points of the key");
                    StageTime::of(&mut loader.stages, "make key", || {
                        key.points.get_or_init(|| key.exponents.points());
                    });
                }
                key.points.get_or_init(|| key.exponents.points()).into()
            }
        })
    }

    /// A prover on a GPU.
    pub(super) fn prover_on<'a>(
        &'a self,
        gpu: &'a Gpu,
        circuit: Circuit<'a>,
    ) -> device::Result<DeviceProver<'a, 'a>> {
        match self {
            Self::Loaded(key) => DeviceProver::new(gpu, key.key_ref(), circuit),
            Self::InFile(key) => {
                let reader = Reader::open(&key.file.source)?;
                DeviceProver::load(gpu, &reader, &key.parts, circuit)
            }
            Self::Made(key) => DeviceProver::synthetic(gpu, &key.exponents, circuit),
        }
    }

    /// All but the queries.
    pub(super) fn header(&self) -> KeyHeader {
        match self {
            Self::Loaded(key) => key.key_ref().header(),
            Self::InFile(key) => KeyHeader::of_prepared(&key.parts),
            Self::Made(key) => key.header.clone(),
        }
    }

    pub(super) fn vk(&self) -> &VerifyingKey {
        match self {
            Self::Loaded(key) => &key.key.vk,
            Self::InFile(key) => &key.parts.key.key.vk,
            Self::Made(key) => &key.header.vk,
        }
    }

    /// The matrices of a zkey or prepared key, and its number of constraints.
    pub(super) fn matrices(&self) -> Option<(&AbMatrices, Option<usize>)> {
        match self {
            Self::Loaded(key) => {
                let matrices = key.matrices.as_ref();
                matrices.map(|(matrices, constraints)| (matrices, *constraints))
            }
            Self::InFile(key) => {
                let (matrices, inputs) = (&key.parts.key.matrices, key.parts.key.key.num_inputs());
                Some((matrices, matrices.a.num_rows().checked_sub(inputs)))
            }
            Self::Made(_) => None,
        }
    }

    /// What a prepared key was made from.
    pub(super) fn origin(&self) -> Option<&Origin> {
        match self {
            Self::Loaded(key) => key.prepared.as_ref().map(|(_, origin)| origin),
            Self::InFile(key) => Some(&key.parts.key.origin),
            Self::Made(_) => None,
        }
    }
}
