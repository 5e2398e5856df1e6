//! The key of a proof, from a file or made in memory.

use std::sync::OnceLock;

use cuzk_formats::prepared::Origin;
use cuzk_formats::{AbMatrices, ProvingKey, VerifyingKey};
use cuzk_groth16::device::{self, DeviceProver, Gpu};
use cuzk_groth16::synth::KeyExponents;
use cuzk_groth16::{Circuit, KeyHeader, KeyRef};

use crate::keys::LoadedKey;

/// A key.
pub(super) enum Key {
    /// Of a file.
    Loaded(Box<LoadedKey>),
    /// Synthetic.
    Made(Box<MadeKey>),
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

    /// Whether the points are still to be made for a prover on the CPU.
    pub(super) fn is_to_be_made(&self) -> bool {
        matches!(self, Self::Made(key) if key.points.get().is_none())
    }

    /// The key for a prover on the CPU.
    pub(super) fn key_ref(&self) -> KeyRef<'_> {
        match self {
            Self::Loaded(key) => key.key_ref(),
            Self::Made(key) => key.points.get_or_init(|| key.exponents.points()).into(),
        }
    }

    /// A prover on a GPU.
    pub(super) fn prover_on<'a>(
        &'a self,
        gpu: &'a Gpu,
        circuit: Circuit<'a>,
    ) -> device::Result<DeviceProver<'a, 'a>> {
        match self {
            Self::Loaded(key) => DeviceProver::new(gpu, key.key_ref(), circuit),
            Self::Made(key) => DeviceProver::synthetic(gpu, &key.exponents, circuit),
        }
    }

    /// All but the queries.
    pub(super) fn header(&self) -> KeyHeader {
        match self {
            Self::Loaded(key) => key.key_ref().header(),
            Self::Made(key) => key.header.clone(),
        }
    }

    pub(super) fn vk(&self) -> &VerifyingKey {
        match self {
            Self::Loaded(key) => &key.key.vk,
            Self::Made(key) => &key.header.vk,
        }
    }

    /// The matrices of a zkey or prepared key, and its number of constraints.
    pub(super) fn matrices(&self) -> Option<&(AbMatrices, Option<usize>)> {
        match self {
            Self::Loaded(key) => key.matrices.as_ref(),
            Self::Made(_) => None,
        }
    }

    /// What a prepared key was made from.
    pub(super) fn origin(&self) -> Option<&Origin> {
        match self {
            Self::Loaded(key) => key.prepared.as_ref().map(|(_, origin)| origin),
            Self::Made(_) => None,
        }
    }
}
