//! Circuits and their keys, made in memory: `prove --synthetic`, `prepare --synthetic`.

use cuzk_formats::ProvingKey;
use cuzk_groth16::synth;

use crate::args::{Family, Shape};
use crate::exit::Failure;
use crate::keys::KeyKind;
use crate::load::Loader;
use crate::progress::Bar;
use crate::report::StageTime;

/// Seed of synthetic circuits, so that every run proves the same one.
const SEED: u64 = 1;

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

/// A circuit of 2^`log_n` rows with a witness, and its key.
pub(crate) fn make(
    shape: synth::Shape,
    log_n: u32,
    family: synth::KeyFamily,
    four_transforms: bool,
    loader: &mut Loader,
) -> Result<(synth::Instance, ProvingKey), Failure> {
    let _bar = Bar::working("making a circuit and its key");
    let instance = StageTime::of(&mut loader.stages, "make circuit", || {
        synth::Instance::new(shape, log_n, SEED)
    })?;
    let key = StageTime::of(&mut loader.stages, "make key", || {
        let exponents = if four_transforms {
            synth::KeyExponents::for_four_transforms(&instance.r1cs, family, SEED)
        } else {
            synth::KeyExponents::new(&instance.r1cs, family, SEED)
        };
        exponents.map(|exponents| exponents.points())
    })?;
    Ok((instance, key))
}
