//! Circuits and their keys, made in memory: `prove --synthetic`, `prepare --synthetic`, `synth`.

use cuzk_groth16::synth::{self, KeyExponents};

use crate::args::{Family, Shape};
use crate::exit::Failure;
use crate::keys::KeyKind;
use crate::progress::Bar;
use crate::report::StageTime;

/// Seed of synthetic circuits, so that every run proves the same one.
pub(crate) const SEED: u64 = 1;

/// What a synthetic circuit and its key are to be, and the kind that the key is of.
pub(crate) fn kinds_of(
    shape: Option<Shape>,
    family: Option<Family>,
) -> (synth::Shape, KeyKind, synth::KeyFamily) {
    let shape = match shape.unwrap_or(Shape::Porep) {
        Shape::Porep => synth::Shape::Porep,
        Shape::Dense => synth::Shape::Dense,
    };
    let (kind, family) = match family.unwrap_or(Family::Circom) {
        Family::Circom => (KeyKind::Zkey, synth::KeyFamily::Circom),
        Family::Arkworks => (KeyKind::Pk, synth::KeyFamily::Arkworks),
        Family::Bellman => (KeyKind::Params, synth::KeyFamily::Bellman),
    };
    (shape, kind, family)
}

/// Host memory that a circuit of 2^`log_n` rows and its key take while they are made: per row, points of
/// 96 (H, L, A, B1) and 192 bytes (B2), a dozen entries of 8, and ten values of 32.
pub(crate) const fn key_bytes(log_n: u32) -> u64 {
    (4 * 96 + 192 + 12 * 8 + 10 * 32) << log_n
}

/// A circuit of 2^`log_n` rows with a witness, and the exponents of its key.
pub(crate) fn make(
    shape: synth::Shape,
    log_n: u32,
    seed: u64,
    family: synth::KeyFamily,
    four_transforms: bool,
    stages: &mut Vec<StageTime>,
) -> Result<(synth::Instance, KeyExponents), Failure> {
    let _bar = Bar::working("making a circuit");
    let instance = StageTime::of(stages, "make circuit", || {
        synth::Instance::new(shape, log_n, seed)
    })?;
    let exponents = StageTime::of(stages, "key exponents", || {
        if four_transforms {
            KeyExponents::for_four_transforms(&instance.r1cs, family, seed)
        } else {
            KeyExponents::new(&instance.r1cs, family, seed)
        }
    })?;
    Ok((instance, exponents))
}
