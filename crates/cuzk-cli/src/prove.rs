//! `cuzk prove`.

use std::path::Path;
use std::time::Instant;

use cuzk_formats::{FileSource, R1cs, Witness, json, proof, r1cs, wtns};
use cuzk_groth16::{Circuit, ProveOptions, Proved, Prover, first_differing_row, synth};
use serde_json::{Value, json};

use crate::args::{Family, ProofFormat, ProveArgs, Shape, usage};
use crate::device::{self, DeviceUsed};
use crate::exit::{Exit, Failure};
use crate::keys::{self, KeyFile, KeyKind, LoadedKey};
use crate::load::{self, Loader};
use crate::memory;
use crate::output::{self, Target};
use crate::progress::Bar;
use crate::report::{Lines, Outcome, StageTime, millis};
use crate::sizes::Bytes;

/// Seed of synthetic circuits, so that every run proves the same one.
const SYNTHETIC_SEED: u64 = 1;

/// Runs the command.
pub(crate) fn run(args: &ProveArgs) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    let job = Job::of(args)?;
    let (inputs, targets) = (job.inputs(args), targets(args));
    output::check(&targets, &inputs)?;
    let device = device::take(&args.device, args.threads)?;
    let mut loader = Loader::new(&args.load, args.accept_wtns_length_defect);
    let material = match job {
        Job::Files { kind, path } => Material::of_files(args, kind, path, &mut loader)?,
        Job::Synthetic { log_n } => Material::synthetic(args, log_n, &mut loader)?,
    };
    let proved = material.prove(args, &mut loader)?;
    let format = resolved_format(args, material.kind);
    let result = ProofResult {
        args,
        format,
        device,
        circuit: material.circuit(),
        material,
        proved,
        loader,
    };
    result.write()?;
    Ok(result.outcome(begun))
}

/// Where the key comes from.
enum Job<'a> {
    Files { kind: KeyKind, path: &'a Path },
    Synthetic { log_n: u32 },
}

impl<'a> Job<'a> {
    /// What the arguments ask for, if they make sense together.
    fn of(args: &'a ProveArgs) -> Result<Self, Failure> {
        let inputs = &args.inputs;
        let key = keys::chosen(inputs)?;
        if let Some(log_n) = inputs.synthetic {
            let others = [
                ("--zkey", inputs.zkey.is_some()),
                ("--params", inputs.params.is_some()),
                ("--pk", inputs.pk.is_some()),
                ("--wtns", inputs.wtns.is_some()),
                ("--r1cs", inputs.r1cs.is_some()),
                ("--key-blake3", args.key_blake3.is_some()),
            ];
            if let Some((flag, _)) = others.iter().find(|(_, given)| *given) {
                return Err(usage(format!(
                    "{flag} cannot be used with --synthetic, which makes everything in memory"
                )));
            }
            return Ok(Self::Synthetic { log_n });
        }
        for (flag, given) in [
            ("--shape", inputs.shape.is_some()),
            ("--family", inputs.family.is_some()),
        ] {
            if given {
                return Err(usage(format!("{flag} is for --synthetic only")));
            }
        }
        let Some((kind, path)) = key else {
            return Err(usage(
                "no key: give one of --zkey, --params and --pk, or --synthetic LOG_N",
            ));
        };
        if inputs.wtns.is_none() {
            return Err(usage("no witness: give --wtns"));
        }
        if inputs.r1cs.is_none() && kind != KeyKind::Zkey {
            return Err(usage(format!(
                "--{} needs the constraint system: give --r1cs (a zkey holds what is needed of it, \
                 other keys do not)",
                kind.name()
            )));
        }
        Ok(Self::Files { kind, path })
    }

    fn inputs(&self, args: &'a ProveArgs) -> Vec<&'a Path> {
        let Self::Files { path, .. } = self else {
            return Vec::new();
        };
        let others = [&args.inputs.wtns, &args.inputs.r1cs];
        let others = others.into_iter().filter_map(|path| path.as_deref());
        others.chain([*path]).collect()
    }
}

fn targets(args: &ProveArgs) -> Vec<Target<'_>> {
    [("--proof", &args.proof), ("--public", &args.public)]
        .into_iter()
        .filter_map(|(flag, path)| {
            let path = path.as_deref()?;
            Some(Target { flag, path })
        })
        .collect()
}

/// All that a proof is made from.
struct Material {
    kind: KeyKind,
    /// The key file, for the result.
    key_file: Option<String>,
    key: LoadedKey,
    r1cs: Option<R1cs>,
    witness: Witness,
}

/// Sizes for the result.
struct CircuitSizes {
    constraints: Option<usize>,
    variables: usize,
    public_values: usize,
    domain_size: usize,
}

impl Material {
    /// Compares all headers first, so that a mismatch shows before anything large is loaded.
    fn of_files(
        args: &ProveArgs,
        kind: KeyKind,
        path: &Path,
        loader: &mut Loader,
    ) -> Result<Self, Failure> {
        if let Some(expected) = &args.key_blake3 {
            check_hash(path, expected, loader)?;
        }
        let options = loader.options();
        let key_file = KeyFile::open(kind, path, &options)?;
        let r1cs_source = args.inputs.r1cs.as_deref().map(FileSource::open);
        let r1cs_source = r1cs_source.transpose()?;
        let wtns_path = args.inputs.wtns.as_deref().unwrap_or(Path::new(""));
        let wtns_source = FileSource::open(wtns_path)?;

        let mut needed_bytes = key_file.counts.memory_bytes;
        if let Some(source) = &r1cs_source {
            let (header, _) = r1cs::read_header(source, &options)?;
            compare_counts(&key_file, source, &header)?;
            needed_bytes += header.constraint_bytes / 3;
        }
        let (values, _) = wtns::read_header(&wtns_source, &options)?;
        compare_witness(&key_file, &wtns_source, u64::from(values))?;
        // The witness, and three arrays of the domain's size.
        needed_bytes += 32 * u64::from(values) + 3 * 32 * key_file.counts.domain_size;
        check_host_limit(args, needed_bytes)?;

        let file = loader.read("witness", &wtns_source, |source, options| {
            wtns::read(source, options).map(|file| (file.witness, file.notes))
        });
        let witness = file?;
        let r1cs = match &r1cs_source {
            None => None,
            Some(source) => Some(loader.read("r1cs", source, |source, options| {
                r1cs::read(source, options).map(|file| (file.r1cs, file.notes))
            })?),
        };
        let key = key_file.load(loader)?;
        let material = Self {
            kind,
            key_file: Some(path.display().to_string()),
            key,
            r1cs,
            witness,
        };
        material.compare_matrices(path, loader)?;
        Ok(material)
    }

    /// The R1CS against the matrices of a zkey.
    fn compare_matrices(&self, path: &Path, loader: &mut Loader) -> Result<(), Failure> {
        let (Some(r1cs), Some((matrices, _))) = (&self.r1cs, &self.key.matrices) else {
            return Ok(());
        };
        let difference = StageTime::of(&mut loader.stages, "compare", || {
            first_differing_row(r1cs, matrices)
        });
        let Some(difference) = difference else {
            return Ok(());
        };
        let constraints = r1cs.num_constraints();
        let row = match difference.row.checked_sub(constraints) {
            None => format!("constraint {}", difference.row),
            Some(beyond) => format!("row {beyond} behind the last of {constraints} constraints"),
        };
        Err(Failure::Mismatch(format!(
            "the R1CS is not the circuit of this key: {row} (counted from 0) is the first that \
             differs, in {}, from {}; take the .r1cs that the key was made from",
            difference.matrix,
            path.display()
        )))
    }

    fn synthetic(args: &ProveArgs, log_n: u32, loader: &mut Loader) -> Result<Self, Failure> {
        let shape = match args.inputs.shape.unwrap_or(Shape::Porep) {
            Shape::Porep => synth::Shape::Porep,
            Shape::Dense => synth::Shape::Dense,
        };
        let (kind, family) = match args.inputs.family.unwrap_or(Family::Circom) {
            Family::Circom => (KeyKind::Zkey, synth::KeyFamily::Circom),
            Family::Arkworks => (KeyKind::Pk, synth::KeyFamily::Arkworks),
            Family::Bellman => (KeyKind::Params, synth::KeyFamily::Bellman),
        };
        // Per row: points of 96 (H, L, A, B1) and 192 bytes (B2), some entries of 8, values of 32.
        check_host_limit(args, (4 * 96 + 192 + 12 * 8 + 4 * 32) << log_n)?;
        let bar = Bar::working("making a circuit and its key");
        let instance = StageTime::of(&mut loader.stages, "make circuit", || {
            synth::Instance::new(shape, log_n, SYNTHETIC_SEED)
        })?;
        let key = StageTime::of(&mut loader.stages, "make key", || {
            synth::proving_key(&instance.r1cs, family, SYNTHETIC_SEED)
        })?;
        drop(bar);
        Ok(Self {
            kind,
            key_file: None,
            key: LoadedKey {
                key,
                matrices: None,
            },
            r1cs: Some(instance.r1cs),
            witness: instance.witness,
        })
    }

    fn prove(&self, args: &ProveArgs, loader: &mut Loader) -> Result<Proved, Failure> {
        let in_key_file = |error| match (&self.key_file, error) {
            (
                Some(file),
                error @ (cuzk_groth16::Error::Key { .. } | cuzk_groth16::Error::Point { .. }),
            ) => Failure::BadInput {
                file: file.clone(),
                what: error.to_string(),
            },
            (_, error) => error.into(),
        };
        let prover = StageTime::of(&mut loader.stages, "check key", || {
            Prover::new(&self.key.key)
        })
        .map_err(in_key_file)?;
        let circuit = match (&self.r1cs, &self.key.matrices) {
            (Some(r1cs), _) => Circuit::R1cs(r1cs),
            (None, Some((matrices, _))) => Circuit::Matrices(matrices),
            (None, None) => return Err(Failure::Bug("neither R1CS nor matrices".into())),
        };
        let bar = Bar::working("proving");
        let mut options = ProveOptions::default().with_stage_callback(bar.stages());
        if args.no_verify {
            options = options.without_verification();
        }
        let proved = prover.prove(circuit, &self.witness, &options)?;
        drop(bar);
        let stages = proved.stages.as_slice().iter();
        loader
            .stages
            .extend(stages.map(|stage| StageTime::new(stage.name, stage.elapsed)));
        Ok(proved)
    }

    fn circuit(&self) -> CircuitSizes {
        let key = &self.key.key;
        CircuitSizes {
            constraints: match (&self.r1cs, &self.key.matrices) {
                (Some(r1cs), _) => Some(r1cs.num_constraints()),
                (None, Some((_, constraints))) => *constraints,
                (None, None) => None,
            },
            variables: key.num_variables(),
            public_values: key.vk.num_public(),
            domain_size: key.domain_size,
        }
    }
}

fn check_hash(path: &Path, expected: &blake3::Hash, loader: &mut Loader) -> Result<(), Failure> {
    let begun = Instant::now();
    let found = load::blake3(path)?;
    loader
        .stages
        .push(StageTime::new("hash key", begun.elapsed()));
    // The comparison of two hashes takes the same time whatever they are.
    if found == *expected {
        return Ok(());
    }
    Err(Failure::BadInput {
        file: path.display().to_string(),
        what: format!(
            "expected the BLAKE3 hash {expected}, found {found} (the key is damaged or another \
             one; get it again)"
        ),
    })
}

fn compare_counts(
    key: &KeyFile,
    source: &FileSource,
    header: &r1cs::Header,
) -> Result<(), Failure> {
    use cuzk_formats::ReadAt as _;
    let inputs = u64::from(header.num_public()) + 1;
    let rows = u64::from(header.num_constraints) + inputs;
    // snarkjs has a domain of 2 where one row would do.
    let domain = rows.next_power_of_two().max(match key.kind {
        KeyKind::Zkey => 2,
        KeyKind::Params | KeyKind::Pk => 1,
    });
    for (what, ours, theirs) in [
        ("public values", key.counts.num_inputs - 1, inputs - 1),
        (
            "variables",
            key.counts.num_variables,
            u64::from(header.num_wires),
        ),
        ("rows in its domain", key.counts.domain_size, domain),
    ] {
        if ours != theirs {
            return Err(Failure::Mismatch(format!(
                "the R1CS is not the circuit of this key: {} has {ours} {what}, {} has {theirs}",
                key.source.name(),
                source.name()
            )));
        }
    }
    Ok(())
}

fn compare_witness(key: &KeyFile, source: &FileSource, values: u64) -> Result<(), Failure> {
    use cuzk_formats::ReadAt as _;
    let variables = key.counts.num_variables;
    if values == variables {
        return Ok(());
    }
    Err(Failure::Mismatch(format!(
        "the witness is of another circuit: {} has {values} values, {} has {variables} variables",
        source.name(),
        key.source.name()
    )))
}

fn check_host_limit(args: &ProveArgs, needed_bytes: u64) -> Result<(), Failure> {
    match args.host_limit {
        Some(limit) if needed_bytes > limit => Err(Failure::OutOfMemory(format!(
            "out of memory: at least {} are needed ({needed_bytes} bytes), --host-limit allows {}",
            Bytes(needed_bytes),
            Bytes(limit)
        ))),
        _ => Ok(()),
    }
}

/// JSON or bytes.
fn resolved_format(args: &ProveArgs, kind: KeyKind) -> ProofFormat {
    if args.proof_format != ProofFormat::Auto {
        return args.proof_format;
    }
    let extension = args
        .proof
        .as_deref()
        .and_then(Path::extension)
        .map(|extension| extension.to_ascii_lowercase());
    let of_bytes = match kind {
        KeyKind::Pk => ProofFormat::Arkworks,
        KeyKind::Zkey | KeyKind::Params => ProofFormat::Bellman,
    };
    match (extension.as_ref().and_then(|e| e.to_str()), kind) {
        (Some("json"), _) => ProofFormat::Snarkjs,
        (Some("bin"), _) => of_bytes,
        (_, KeyKind::Zkey) => ProofFormat::Snarkjs,
        (_, KeyKind::Params | KeyKind::Pk) => of_bytes,
    }
}

/// All that the result is made of.
struct ProofResult<'a> {
    args: &'a ProveArgs,
    format: ProofFormat,
    device: DeviceUsed,
    circuit: CircuitSizes,
    material: Material,
    proved: Proved,
    loader: Loader,
}

impl ProofResult<'_> {
    fn is_json_proof(&self) -> bool {
        self.format == ProofFormat::Snarkjs
    }

    /// Writes the outputs that have a place.
    fn write(&self) -> Result<(), Failure> {
        let proof_bytes = if self.is_json_proof() {
            json::proof_to_string(&self.proved.proof).into_bytes()
        } else {
            proof::to_bytes(&self.proved.proof).to_vec()
        };
        let public_bytes = json::public_to_string(&self.proved.public_values).into_bytes();
        let targets = targets(self.args);
        let outputs: Vec<_> = targets
            .into_iter()
            .map(|target| {
                let bytes = match target.flag {
                    "--proof" => &proof_bytes,
                    _ => &public_bytes,
                };
                (target, bytes.as_slice())
            })
            .collect();
        output::write_all(&outputs)
    }

    /// The proof, where no file has it.
    fn proof_value(&self) -> Option<Value> {
        if self.args.proof.is_some() {
            return None;
        }
        Some(if self.is_json_proof() {
            parsed(&json::proof_to_string(&self.proved.proof))
        } else {
            hex(&proof::to_bytes(&self.proved.proof)).into()
        })
    }

    /// The public values, where no file has them.
    fn public_value(&self) -> Option<Value> {
        let text = || json::public_to_string(&self.proved.public_values);
        self.args.public.is_none().then(|| parsed(&text()))
    }

    fn outcome(&self, begun: Instant) -> Outcome {
        let elapsed_ms = millis(begun.elapsed());
        let peak_host_bytes = memory::peak_host_bytes();
        Outcome {
            json: self.to_json(elapsed_ms, peak_host_bytes),
            text: self.to_text(elapsed_ms, peak_host_bytes),
            exit: Exit::Success,
        }
    }

    fn to_json(&self, elapsed_ms: f64, peak_host_bytes: Option<u64>) -> Value {
        let path = |path: &Option<std::path::PathBuf>| {
            path.as_ref().map(|path| path.display().to_string())
        };
        let mut object = json!({
            "command": "prove",
            "version": env!("CARGO_PKG_VERSION"),
            "verified": self.proved.verified,
            "device": self.device,
            "key": {
                "kind": self.material.kind.name(),
                "path": self.material.key_file,
                "synthetic": self.args.inputs.synthetic.is_some(),
            },
            "circuit": {
                "constraints": self.circuit.constraints,
                "variables": self.circuit.variables,
                "public_values": self.circuit.public_values,
                "domain_size": self.circuit.domain_size,
            },
            "stages": self.loader.stages,
            "prove_ms": millis(self.proved.stages.total()),
            "elapsed_ms": elapsed_ms,
            "peak_host_bytes": peak_host_bytes,
            "proof_format": format_name(self.format),
            "proof_path": path(&self.args.proof),
            "public_path": path(&self.args.public),
            "notes": self.loader.notes.texts(),
        });
        for (name, value) in [
            ("proof", self.proof_value()),
            ("public", self.public_value()),
        ] {
            if let Some(value) = value {
                object[name] = value;
            }
        }
        object
    }

    fn to_text(&self, elapsed_ms: f64, peak_host_bytes: Option<u64>) -> String {
        let mut lines = Lines::default();
        let circuit = &self.circuit;
        let constraints = match circuit.constraints {
            Some(constraints) => format!("{constraints} constraints, "),
            None => String::new(),
        };
        lines.line(
            "circuit",
            format_args!(
                "{constraints}{} variables, {} public values, domain 2^{}",
                circuit.variables,
                circuit.public_values,
                circuit.domain_size.trailing_zeros()
            ),
        );
        let kind = self.material.kind.title();
        match &self.material.key_file {
            Some(file) => lines.line("key", format_args!("{kind}, {file}")),
            None => lines.line("key", format_args!("{kind}, synthetic, made in memory")),
        }
        let device = &self.device;
        lines.line(
            "device",
            format_args!(
                "{}, {} threads (--device {}: {})",
                device.used, device.threads, device.requested, device.reason
            ),
        );
        lines.raw("stages");
        lines.stages(&self.loader.stages);
        lines.line(
            "proof made in",
            format_args!("{:>10.1} ms", millis(self.proved.stages.total())),
        );
        lines.line("total", format_args!("{elapsed_ms:>10.1} ms"));
        if let Some(bytes) = peak_host_bytes {
            lines.line("peak host memory", Bytes(bytes));
        }
        let verified = if self.proved.verified {
            "yes"
        } else {
            "no: --no-verify was given"
        };
        lines.line("verified", verified);
        self.outputs_to_text(&mut lines);
        lines.finish()
    }

    fn outputs_to_text(&self, lines: &mut Lines) {
        let format = format_name(self.format);
        match (&self.args.proof, self.is_json_proof()) {
            (Some(path), _) => lines.line("proof", format_args!("{} ({format})", path.display())),
            (None, true) => {
                lines.raw("proof");
                lines.raw(&json::proof_to_string(&self.proved.proof));
            }
            (None, false) => lines.line("proof", hex(&proof::to_bytes(&self.proved.proof))),
        }
        if let Some(path) = &self.args.public {
            lines.line("public values", path.display());
        } else {
            lines.raw("public values");
            lines.raw(&json::public_to_string(&self.proved.public_values));
        }
    }
}

fn format_name(format: ProofFormat) -> &'static str {
    match format {
        ProofFormat::Auto => "auto",
        ProofFormat::Snarkjs => "snarkjs",
        ProofFormat::Bellman => "bellman",
        ProofFormat::Arkworks => "arkworks",
    }
}

/// A text of ours as a value.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
