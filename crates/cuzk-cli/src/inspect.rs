//! `cuzk inspect`.

use cuzk_field::Scalar;
use cuzk_formats::{
    FileKind, FileSource, HBasis, LoadOptions, Note, ProvingKey, ReadAt as _, SectionInfo,
    arkworks, bellman, guess_format, json, prepared, proof, r1cs, sections, sniff, wtns, zkey,
};
use cuzk_gpu_mem::Bytes;
use serde_json::{Map, Value, json};

use crate::args::InspectArgs;
use crate::exit::Failure;
use crate::load;
use crate::progress::Bar;
use crate::report::{Lines, Notes, Outcome};

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
    let depth = if args.scan {
        Depth::All
    } else {
        Depth::Headers
    };
    describe(kind, &source, &options, depth, &mut facts)?;
    drop(bar);
    if args.hash {
        facts.add("blake3", load::blake3(&source)?.to_string());
    }
    Ok(facts.outcome())
}

fn not_recognised(source: &FileSource) -> Failure {
    let what = match guess_format(source) {
        Some(format) => format!("it seems to be {format}, and is damaged or cut short"),
        None => "it is none of the files that cuzk knows: .r1cs, .wtns, .zkey, snarkjs JSON, \
                 bellman parameters and keys, arkworks keys, prepared keys, proofs"
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

    fn add_sections(&mut self, sections: &[SectionInfo]) {
        let section = |section: &SectionInfo| {
            json!({
                "number": section.number,
                "name": section.name,
                "offset": section.offset,
                "bytes": section.bytes,
            })
        };
        let sections: Vec<Value> = sections.iter().map(section).collect();
        self.add("sections", sections);
    }

    fn add_checked_key(&mut self, key: &ProvingKey) {
        let (a, b) = (&key.a_query, &key.b_g2_query);
        let a = a.iter().filter(|point| point.is_infinity()).count();
        let b = b.iter().filter(|point| point.is_infinity()).count();
        self.add("identities_a", a);
        self.add("identities_b", b);
        self.add("checked", "lengths, and that every point is on the curve");
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
                Value::Array(sections) if name == "sections" => {
                    lines.raw("sections:");
                    for section in sections {
                        lines.line(
                            &format!("  {}", section["number"]),
                            format_args!(
                                "{:>12} bytes at {:>12}  {}",
                                section["bytes"].to_string(),
                                section["offset"].to_string(),
                                section["name"].as_str().unwrap_or_default()
                            ),
                        );
                    }
                }
                Value::Number(number) if name.ends_with("bytes") => {
                    match number.as_u64().unwrap_or(0) {
                        bytes @ 0..1024 => lines.line(&title, bytes),
                        bytes => lines.line(&title, format_args!("{bytes} ({})", Bytes(bytes))),
                    }
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

/// How much of a file is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Headers,
    All,
}

fn describe(
    kind: FileKind,
    source: &FileSource,
    options: &LoadOptions<'_>,
    depth: Depth,
    facts: &mut Facts,
) -> Result<(), Failure> {
    if matches!(kind, FileKind::R1cs | FileKind::Wtns | FileKind::Zkey) {
        facts.add_sections(&sections(source)?);
    }
    let notes = match kind {
        FileKind::R1cs => describe_r1cs(source, options, depth, facts)?,
        FileKind::Wtns => describe_wtns(source, options, depth, facts)?,
        FileKind::Zkey => describe_zkey(source, options, depth, facts)?,
        FileKind::BellmanParams => describe_params(source, options, depth, facts)?,
        FileKind::ArkworksProvingKey => describe_pk(source, options, depth, facts)?,
        FileKind::PreparedKey => describe_prepared(source, options, depth, facts)?,
        FileKind::BellmanVk => {
            let file = bellman::read_vk(source, options)?;
            facts.add("public_values", file.key.num_public());
            file.notes
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
    facts.notes.add(source.name(), &notes);
    Ok(())
}

fn compression(compression: arkworks::Compression) -> &'static str {
    match compression {
        arkworks::Compression::Compressed => "compressed",
        arkworks::Compression::Uncompressed => "uncompressed",
    }
}

fn describe_wtns(
    source: &FileSource,
    options: &LoadOptions<'_>,
    depth: Depth,
    facts: &mut Facts,
) -> Result<Vec<Note>, Failure> {
    let (values, notes) = wtns::read_header(source, options)?;
    facts.add("values", values);
    if depth == Depth::All {
        wtns::read(source, options)?;
        facts.add("checked", "every value is below r, the first is 1");
    }
    Ok(notes)
}

fn describe_zkey(
    source: &FileSource,
    options: &LoadOptions<'_>,
    depth: Depth,
    facts: &mut Facts,
) -> Result<Vec<Note>, Failure> {
    let (header, notes) = zkey::read_header(source, options)?;
    facts.add("flavour", "circom: roots of 5, H of odd Lagrange points");
    facts.add("public_values", header.num_public);
    facts.add("variables", header.num_variables);
    facts.add("domain_size", header.domain_size);
    facts.add("coefficients", header.num_coefficients);
    facts.add("has_transcript", header.has_transcript);
    if depth == Depth::Headers {
        return Ok(notes);
    }
    let file = zkey::read(source, options)?;
    facts.add("constraints", file.num_constraints());
    if let Some(transcript) = &file.transcript {
        facts.add("contributions", transcript.num_contributions);
        facts.add("beacons", transcript.num_beacons);
    }
    facts.add_checked_key(&file.key);
    Ok(file.notes)
}

fn describe_params(
    source: &FileSource,
    options: &LoadOptions<'_>,
    depth: Depth,
    facts: &mut Facts,
) -> Result<Vec<Note>, Failure> {
    let (header, notes) = bellman::read_header(source, options)?;
    facts.add("flavour", "bellman: roots of 7, H of tau powers");
    facts.add("public_values", header.num_inputs.saturating_sub(1));
    facts.add("variables", header.num_inputs + header.num_aux);
    facts.add("domain_size", header.domain_size);
    facts.add("a_points", header.num_a);
    facts.add("b_points", header.num_b);
    facts.add("tail_bytes", header.tail_bytes);
    if depth == Depth::All {
        facts.add_checked_key(&bellman::read_params(source, options)?.key);
    }
    Ok(notes)
}

fn describe_pk(
    source: &FileSource,
    options: &LoadOptions<'_>,
    depth: Depth,
    facts: &mut Facts,
) -> Result<Vec<Note>, Failure> {
    let (header, notes) = arkworks::read_header(source, options)?;
    facts.add("flavour", "arkworks: roots of 7, H of tau powers");
    facts.add("points", compression(header.compression));
    facts.add("public_values", header.num_inputs.saturating_sub(1));
    facts.add("variables", header.num_variables);
    facts.add("domain_size", header.domain_size);
    facts.add("tail_bytes", header.tail_bytes);
    if depth == Depth::Headers {
        return Ok(notes);
    }
    let file = arkworks::read_proving_key(source, options)?;
    facts.add_checked_key(&file.key);
    Ok(file.notes)
}

fn describe_prepared(
    source: &FileSource,
    options: &LoadOptions<'_>,
    depth: Depth,
    facts: &mut Facts,
) -> Result<Vec<Note>, Failure> {
    let header = prepared::read_header(source)?;
    facts.add_sections(&header.sections());
    facts.add("format_version", prepared::VERSION);
    facts.add("source", header.origin.source.name());
    for (name, hash) in [
        ("key_blake3", header.origin.key_hash),
        ("r1cs_blake3", header.origin.r1cs_hash),
    ] {
        if let Some(hash) = hash {
            facts.add(name, blake3::Hash::from(hash).to_string());
        }
    }
    facts.add("root_generator", header.flavour.root_generator.generator());
    let (basis, transforms) = match header.flavour.h_basis {
        HBasis::OddLagrange => ("odd Lagrange points", 6),
        HBasis::TauPowers => ("tau powers", 6),
        HBasis::CosetLagrange { shift } => {
            let bytes = Scalar::from(shift).to_le_bytes();
            let digits: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
            facts.add(
                "coset_shift",
                format!("0x{}", digits.trim_start_matches('0')),
            );
            ("Lagrange points of a coset, the part of C in L", 4)
        }
        _ => ("unknown", 0),
    };
    facts.add("h_basis", basis);
    facts.add("transforms", transforms);
    facts.add("public_values", header.num_inputs.saturating_sub(1));
    facts.add("variables", header.num_variables);
    facts.add("domain_size", header.domain_size);
    facts.add("rows", header.num_rows);
    facts.add("entries_ab", header.num_entries.to_vec());
    facts.add("coefficients", header.num_coefficients);
    let [a, b] = header.num_points;
    facts.add("a_points", a);
    facts.add("b_points", b);
    if depth == Depth::Headers {
        // Checksums of the checksums, and what lies between sections.
        prepared::Reader::open(source)?;
        return Ok(Vec::new());
    }
    let file = prepared::read(source, options)?;
    facts.add(
        "checked",
        "every checksum, count and index, and that every point is on the curve",
    );
    Ok(file.notes)
}

fn describe_r1cs(
    source: &FileSource,
    options: &LoadOptions<'_>,
    depth: Depth,
    facts: &mut Facts,
) -> Result<Vec<Note>, Failure> {
    let (header, statistics, notes) = if depth == Depth::All {
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
