//! `cuzk verify`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use cuzk_formats::{
    Error, FileKind, FileSource, LoadOptions, Note, Proof, ReadAt as _, VerifyingKey, arkworks,
    bellman, json, prepared, proof, sniff, zkey,
};
use cuzk_groth16::{Error as Groth16, Verifier};
use serde_json::json;

use crate::args::{LoadArgs, VerifyArgs, usage};
use crate::exit::{Exit, Failure};
use crate::load::Loader;
use crate::memory;
use crate::report::{Lines, Outcome, StageTime, millis};

/// Runs the command.
pub(crate) fn run(args: &VerifyArgs) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    let (kind, path) = key_file(args)?;
    let load = LoadArgs {
        check_subgroup: false,
        strict: args.strict,
    };
    let mut loader = Loader::new(&load, false);
    let proof_source = FileSource::open(&args.proof)?;
    let public_source = FileSource::open(&args.public)?;
    let key_source = FileSource::open(path)?;
    let proof = loader.read("proof", &proof_source, read_proof)?;
    let public = loader.read("public values", &public_source, |source, options| {
        json::read_public(source, options)
    })?;
    let key = loader.read("key", &key_source, |source, options| {
        read_key(kind, source, options)
    })?;

    let verifier = StageTime::of(&mut loader.stages, "check key", || Verifier::new(&key))
        .map_err(|error| bad_input(key_source.name(), &error))?;
    let verified = StageTime::of(&mut loader.stages, "verify", || {
        verifier.verify(&public, &proof)
    });
    let valid = match verified {
        Ok(()) => true,
        Err(Groth16::InvalidProof) => false,
        Err(error @ Groth16::PublicCount { .. }) => {
            return Err(bad_input(public_source.name(), &error));
        }
        Err(error @ Groth16::Point { .. }) => return Err(bad_input(proof_source.name(), &error)),
        Err(error) => return Err(error.into()),
    };

    let elapsed_ms = millis(begun.elapsed());
    let peak_host_bytes = memory::peak_host_bytes();
    let json = json!({
        "command": "verify",
        "version": env!("CARGO_PKG_VERSION"),
        "valid": valid,
        "public_values": public.len(),
        "stages": loader.stages,
        "elapsed_ms": elapsed_ms,
        "peak_host_bytes": peak_host_bytes,
        "notes": loader.notes.texts(),
    });
    let mut lines = Lines::default();
    lines.line("valid", if valid { "yes" } else { "no" });
    lines.line("public values", public.len());
    lines.line("total", format_args!("{elapsed_ms:.1} ms"));
    if !valid {
        crate::exit::say(&Groth16::InvalidProof.to_string());
    }
    Ok(Outcome {
        json,
        text: lines.finish(),
        exit: if valid {
            Exit::Success
        } else {
            Exit::NotVerified
        },
    })
}

fn bad_input(file: &str, error: &Groth16) -> Failure {
    Failure::BadInput {
        file: file.to_owned(),
        what: error.to_string(),
    }
}

/// The one key, and its kind where the flag says it.
fn key_file(args: &VerifyArgs) -> Result<(Option<FileKind>, &Path), Failure> {
    let keys: [(&str, Option<FileKind>, &Option<PathBuf>); 4] = [
        ("--vk", None, &args.vk),
        ("--zkey", Some(FileKind::Zkey), &args.zkey),
        ("--params", Some(FileKind::BellmanParams), &args.params),
        ("--pk", Some(FileKind::ArkworksProvingKey), &args.pk),
    ];
    let mut given = keys
        .iter()
        .filter_map(|(flag, kind, path)| Some((*flag, *kind, path.as_deref()?)));
    let Some((flag, kind, path)) = given.next() else {
        return Err(usage(
            "no verifying key: give --vk, or one of --zkey, --params and --pk",
        ));
    };
    if let Some((other, ..)) = given.next() {
        return Err(usage(format!("{flag} and {other} are both keys: give one")));
    }
    Ok((kind, path))
}

/// Reads a verifying key alone, or the one that a proving key begins with.
fn read_key(
    kind: Option<FileKind>,
    source: &FileSource,
    options: &LoadOptions<'_>,
) -> Result<(VerifyingKey, Vec<Note>), Error> {
    match kind.or_else(|| sniff(source)) {
        Some(FileKind::Zkey) => zkey::read(source, options).map(|file| (file.key.vk, file.notes)),
        Some(FileKind::BellmanParams) => {
            bellman::read_params(source, options).map(|file| (file.key.vk, file.notes))
        }
        Some(FileKind::BellmanVk) => {
            bellman::read_vk(source, options).map(|file| (file.key, file.notes))
        }
        Some(FileKind::ArkworksProvingKey) => {
            arkworks::read_proving_key(source, options).map(|file| (file.key.vk, file.notes))
        }
        Some(FileKind::PreparedKey) => prepared::Reader::open(source)?.verifying_key(options),
        Some(FileKind::ArkworksVerifyingKey) => {
            arkworks::read_verifying_key(source, options).map(|file| (file.key, file.notes))
        }
        _ => json::read_verification_key(source, options),
    }
}

/// Reads JSON where the text looks like it, else bytes.
fn read_proof(source: &FileSource, options: &LoadOptions<'_>) -> Result<(Proof, Vec<Note>), Error> {
    let is_json_name = source.name().to_ascii_lowercase().ends_with(".json");
    let is_text = matches!(
        sniff(source),
        Some(FileKind::ProofJson | FileKind::VerificationKeyJson | FileKind::PublicJson)
    );
    if is_json_name || is_text {
        json::read_proof(source, options)
    } else {
        proof::read(source, options).map(|proof| (proof, Vec::new()))
    }
}
