//! `cuzk inspect`.

use cuzk_formats::{
    FileKind, FileSource, LoadOptions, ReadAt as _, arkworks, bellman, guess_format, json, proof,
    r1cs, sniff, wtns, zkey,
};
use serde_json::{Map, Value};

use crate::args::InspectArgs;
use crate::exit::Failure;
use crate::load;
use crate::progress::Bar;
use crate::report::{Lines, Notes, Outcome};
use crate::sizes::Bytes;

/// Runs the command.
pub(crate) fn run(args: &InspectArgs) -> Result<Outcome, Failure> {
    let source = FileSource::open(&args.file)?;
    let Some(kind) = sniff(&source) else {
        return Err(not_recognised(&source));
    };
    let mut facts = Facts::default();
    facts.add("file", source.name());
    facts.add("kind", kind.name());
    facts.add("bytes", source.len());
    let bar = Bar::reading("file");
    let progress = |progress| bar.update(progress);
    let options = LoadOptions {
        strict: args.strict,
        progress: Some(&progress),
        ..LoadOptions::default()
    };
    describe(kind, &source, &options, args.scan, &mut facts)?;
    drop(bar);
    if args.hash {
        facts.add("blake3", load::blake3(&args.file)?.to_string());
    }
    Ok(facts.outcome())
}

fn not_recognised(source: &FileSource) -> Failure {
    let what = match guess_format(source) {
        Some(format) => format!("it seems to be {format}, and is damaged or cut short"),
        None => "it is none of the files that cuzk knows: .r1cs, .wtns, .zkey, snarkjs JSON, \
                 bellman parameters and keys, arkworks keys, proofs"
            .into(),
    };
    Failure::BadInput {
        file: source.name().to_owned(),
        what,
    }
}

/// What is known of a file, in order.
#[derive(Default)]
struct Facts {
    facts: Vec<(&'static str, Value)>,
    notes: Notes,
}

impl Facts {
    fn add(&mut self, name: &'static str, value: impl Into<Value>) {
        self.facts.push((name, value.into()));
    }

    fn outcome(self) -> Outcome {
        let mut lines = Lines::default();
        let mut object = Map::new();
        object.insert("command".into(), "inspect".into());
        object.insert("version".into(), env!("CARGO_PKG_VERSION").into());
        for (name, value) in self.facts {
            let title = name.replace('_', " ");
            match &value {
                Value::String(text) => lines.line(&title, text),
                Value::Number(number) if name.ends_with("bytes") => {
                    let bytes = number.as_u64().unwrap_or(0);
                    lines.line(&title, format_args!("{bytes} ({})", Bytes(bytes)));
                }
                value => lines.line(&title, value),
            }
            object.insert(name.into(), value);
        }
        for note in self.notes.texts() {
            lines.line("note", note);
        }
        object.insert("notes".into(), self.notes.texts().into());
        Outcome::success(Value::Object(object), lines.finish())
    }
}

fn describe(
    kind: FileKind,
    source: &FileSource,
    options: &LoadOptions<'_>,
    scan: bool,
    facts: &mut Facts,
) -> Result<(), Failure> {
    let name = source.name();
    let notes = match kind {
        FileKind::R1cs => describe_r1cs(source, options, scan, facts)?,
        FileKind::Wtns => {
            let (values, notes) = wtns::read_header(source, options)?;
            facts.add("values", values);
            notes
        }
        FileKind::Zkey => describe_zkey(source, options, facts)?,
        FileKind::BellmanParams => {
            let (header, notes) = bellman::read_header(source, options)?;
            facts.add("flavour", "bellman: roots of 7, H of tau powers");
            facts.add("public_values", header.num_inputs.saturating_sub(1));
            facts.add("variables", header.num_inputs + header.num_aux);
            facts.add("domain_size", header.domain_size);
            facts.add("a_points", header.num_a);
            facts.add("b_points", header.num_b);
            facts.add("tail_bytes", header.tail_bytes);
            notes
        }
        FileKind::BellmanVk => {
            let file = bellman::read_vk(source, options)?;
            facts.add("public_values", file.key.num_public());
            file.notes
        }
        FileKind::ArkworksProvingKey => {
            let (header, notes) = arkworks::read_header(source, options)?;
            facts.add("flavour", "arkworks: roots of 7, H of tau powers");
            facts.add("points", compression(header.compression));
            facts.add("public_values", header.num_inputs.saturating_sub(1));
            facts.add("variables", header.num_variables);
            facts.add("domain_size", header.domain_size);
            facts.add("tail_bytes", header.tail_bytes);
            notes
        }
        FileKind::ArkworksVerifyingKey => {
            let file = arkworks::read_verifying_key(source, options)?;
            facts.add("points", compression(file.compression));
            facts.add("public_values", file.key.num_public());
            file.notes
        }
        FileKind::VerificationKeyJson => {
            let (key, notes) = json::read_verification_key(source, options)?;
            facts.add("public_values", key.num_public());
            notes
        }
        FileKind::ProofJson => json::read_proof(source, options)?.1,
        FileKind::PublicJson => {
            let (values, notes) = json::read_public(source, options)?;
            facts.add("public_values", values.len());
            notes
        }
        FileKind::ProofBytes => {
            let proofs = if source.len() == proof::UNCOMPRESSED_BYTES as u64 {
                proof::read(source, options).map(|_| 1)
            } else {
                proof::read_all(source, options).map(|proofs| proofs.len())
            };
            facts.add("proofs", proofs?);
            Vec::new()
        }
        // Known by name only.
        _ => Vec::new(),
    };
    facts.notes.add(name, &notes);
    Ok(())
}

fn compression(compression: arkworks::Compression) -> &'static str {
    match compression {
        arkworks::Compression::Compressed => "compressed",
        arkworks::Compression::Uncompressed => "uncompressed",
    }
}

fn describe_zkey(
    source: &FileSource,
    options: &LoadOptions<'_>,
    facts: &mut Facts,
) -> Result<Vec<cuzk_formats::Note>, Failure> {
    let (header, notes) = zkey::read_header(source, options)?;
    facts.add("flavour", "circom: roots of 5, H of odd Lagrange points");
    facts.add("public_values", header.num_public);
    facts.add("variables", header.num_variables);
    facts.add("domain_size", header.domain_size);
    facts.add("coefficients", header.num_coefficients);
    facts.add("has_transcript", header.has_transcript);
    Ok(notes)
}

fn describe_r1cs(
    source: &FileSource,
    options: &LoadOptions<'_>,
    scan: bool,
    facts: &mut Facts,
) -> Result<Vec<cuzk_formats::Note>, Failure> {
    let (header, statistics, notes) = if scan {
        let (header, statistics, notes) = r1cs::scan(source, options)?;
        (header, Some(statistics), notes)
    } else {
        let (header, notes) = r1cs::read_header(source, options)?;
        (header, None, notes)
    };
    facts.add("constraints", header.num_constraints);
    facts.add("constraint_bytes", header.constraint_bytes);
    facts.add("variables", header.num_wires);
    facts.add("public_outputs", header.num_public_outputs);
    facts.add("public_inputs", header.num_public_inputs);
    facts.add("private_inputs", header.num_private_inputs);
    facts.add("labels", header.num_labels);
    if let Some(statistics) = statistics {
        for (name, counts) in [
            ("entries_abc", statistics.num_entries),
            ("longest_row_abc", statistics.longest_row),
            ("empty_rows_abc", statistics.num_empty_rows),
            ("ones_abc", statistics.num_ones),
            ("minus_ones_abc", statistics.num_minus_ones),
        ] {
            facts.add(name, counts.to_vec());
        }
    }
    Ok(notes)
}
