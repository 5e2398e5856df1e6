//! What comes out: files, a JSON object, or lines for people.

use std::path::Path;
use std::time::Instant;

use cuzk_formats::{json, proof};
use cuzk_gpu_mem::Bytes;
use cuzk_groth16::Proved;
use serde_json::{Value, json};

use super::gpu_use::GpuUse;
use super::material::{CircuitSizes, Material};
use crate::args::{ProofFormat, ProveArgs};
use crate::device::DeviceUsed;
use crate::exit::{Exit, Failure};
use crate::keys::KeyKind;
use crate::load::Loader;
use crate::memory;
use crate::output::{self, Output};
use crate::report::{Lines, Outcome, millis};

/// JSON or bytes.
pub(super) fn resolved_format(args: &ProveArgs, kind: KeyKind) -> ProofFormat {
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
        KeyKind::Zkey | KeyKind::Params | KeyKind::Prepared => ProofFormat::Bellman,
    };
    match (extension.as_ref().and_then(|e| e.to_str()), kind) {
        (Some("json"), _) => ProofFormat::Snarkjs,
        (Some("bin"), _) => of_bytes,
        (_, KeyKind::Zkey | KeyKind::Prepared) => ProofFormat::Snarkjs,
        (_, KeyKind::Params | KeyKind::Pk) => of_bytes,
    }
}

/// All that the result is made of.
pub(super) struct ProofResult<'a> {
    pub(super) args: &'a ProveArgs,
    pub(super) format: ProofFormat,
    pub(super) device: DeviceUsed,
    /// The GPUs that had the key; none where the CPU proved.
    pub(super) gpus: Vec<GpuUse>,
    pub(super) circuit: CircuitSizes,
    pub(super) material: Material,
    pub(super) proved: Proved,
    /// The public values as JSON.
    pub(super) public_text: String,
    pub(super) loader: Loader,
}

impl ProofResult<'_> {
    fn is_json_proof(&self) -> bool {
        self.format == ProofFormat::Snarkjs
    }

    /// Writes the outputs that have a place.
    pub(super) fn write(&self) -> Result<(), Failure> {
        let proof_bytes = if self.is_json_proof() {
            json::proof_to_string(&self.proved.proof).into_bytes()
        } else {
            proof::to_bytes(&self.proved.proof).to_vec()
        };
        let targets = super::targets(self.args);
        let outputs = targets
            .into_iter()
            .filter(|target| target.flag != "--timeline") // written by itself
            .map(|target| {
                let bytes = match target.flag {
                    "--proof" => proof_bytes.as_slice(),
                    _ => self.public_text.as_bytes(),
                };
                Output::of(target, bytes)
            })
            .collect();
        output::write_all(outputs)
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
        let is_here = self.args.public.is_none();
        is_here.then(|| parsed(&self.public_text))
    }

    pub(super) fn outcome(&self, begun: Instant) -> Outcome {
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
            "gpus": self.gpus.iter().map(GpuUse::to_json).collect::<Vec<_>>(),
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
        lines.line("device", &self.device);
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
        for gpu in &self.gpus {
            gpu.to_text(&mut lines);
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
            lines.raw(&self.public_text);
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
pub(super) fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
