//! `cuzk inspect` and `cuzk devices`.

use std::path::Path;

use cuzk_formats::arkworks::Compression;
use cuzk_groth16::synth::{KeyFamily, Shape};
use serde_json::Value;

use crate::files::{Files, Iden3, Synthetic, params_bytes, pk_bytes};
use crate::run::{Run, Scratch, cuzk, run};

fn inspect(path: &Path, more: &[&str]) -> Run {
    let mut command = cuzk(["inspect"]);
    command.arg(path).args(more);
    Run::of(command)
}

fn inspected(path: &Path, more: &[&str]) -> Value {
    inspect(path, &[more, &["--json"]].concat())
        .succeeds()
        .json()
}

#[test]
fn every_kind_of_file_is_known() {
    let files = Files::of("merkle");
    let json = inspected(&files.zkey, &["--scan"]);
    assert_eq!(json["kind"], "a snarkjs key (.zkey)");
    assert_eq!(json["variables"], 3352);
    assert_eq!(json["constraints"], 3342);
    assert_eq!(json["contributions"], 1);
    assert_eq!(json["sections"].as_array().unwrap().len(), 10);
    let json = inspected(&files.r1cs, &["--scan"]);
    assert_eq!(json["constraints"], 3342);
    assert!(json["entries_abc"][0].as_u64().unwrap() > 3342);
    assert_eq!(inspected(&files.wtns, &["--scan"])["values"], 3352);
    for (name, kind) in [
        ("verification_key.json", "a verification key in JSON"),
        ("proof.json", "a proof in JSON"),
        ("public.json", "a JSON array, as of public values"),
    ] {
        assert_eq!(inspected(&files.path(name), &[])["kind"], kind);
    }
    let text = inspect(&files.zkey, &[]).succeeds().stdout;
    for words in ["circom", "domain size:", "section", "coefficients"] {
        assert!(text.contains(words), "{words}: {text}");
    }

    let scratch = Scratch::new();
    let made = Synthetic::new(&scratch, KeyFamily::Bellman, Shape::Porep, 1);
    let params = scratch.file("c.params", params_bytes(&made.key));
    let json = inspected(&params, &["--scan"]);
    assert_eq!(json["kind"], "bellman parameters");
    assert_eq!(json["domain_size"], 64);
    let made = Synthetic::new(&scratch, KeyFamily::Arkworks, Shape::Porep, 1);
    let pk = scratch.file("key.ark", pk_bytes(&made.key, Compression::Compressed));
    let json = inspected(&pk, &["--scan"]);
    assert_eq!(json["kind"], "an arkworks proving key");
    assert_eq!(json["points"], "compressed");
}

/// FI-05: the header of a constraint system of more than 4 GiB is there at once.
#[test]
fn a_huge_r1cs_is_inspected_at_once() {
    let files = Files::of("mul1");
    let scratch = Scratch::new();
    let mut r1cs = Iden3::parse(&files.case.r1cs().unwrap());
    // The constraints last, and longer than what is there; the rest of the file is a hole.
    r1cs.sections
        .sort_by_key(|(number, _)| *number != 1 && *number != 3);
    r1cs.sections.sort_by_key(|(number, _)| *number == 2);
    let header = r1cs.section(1);
    let at = header.len() - 4;
    header[at..].copy_from_slice(&(1u32 << 28).to_le_bytes());
    let body_bytes = r1cs.section(2).len() as u64;
    let mut bytes = r1cs.to_bytes();
    let huge = 5u64 << 30;
    let at = bytes.len() - body_bytes as usize - 8;
    bytes[at..at + 8].copy_from_slice(&huge.to_le_bytes());
    let len = (at + 8) as u64 + huge;
    let path = scratch.file("huge.r1cs", &bytes);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    if file.set_len(len).is_err() {
        return; // A file system without holes.
    }
    let json = inspected(&path, &[]);
    assert_eq!(json["constraints"], 1u32 << 28);
    assert_eq!(json["constraint_bytes"], huge);
}

#[test]
fn nothing_makes_inspect_panic() {
    let files = Files::of("domain_8");
    let scratch = Scratch::new();
    for name in [
        "circuit.zkey",
        "circuit.r1cs",
        "witness.wtns",
        "proof.json",
        "public.json",
        "verification_key.json",
    ] {
        let bytes = files.case.file(name).unwrap();
        let step = bytes.len() / 12 + 1;
        for at in (0..bytes.len()).step_by(step) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x55;
            for bytes in [&flipped[..], &bytes[..at]] {
                let path = scratch.file("damaged", bytes);
                let run = inspect(&path, &["--scan", "--json"]);
                assert!(
                    matches!(run.code, Some(0 | 3 | 4)),
                    "{name} at {at}: {run:#?}"
                );
                run.json();
            }
        }
    }
    for (bytes, words) in [
        (&b"hello"[..], "none of the files that cuzk knows"),
        (b"{}", "JSON object"),
        (b"zke", "none of the files"),
    ] {
        let path = scratch.file("other", bytes);
        inspect(&path, &[]).expect(3, &[words, "other"]);
    }
    inspect(Path::new("/dev/null"), &[]).expect(3, &["a device"]);
    let archive = scratch.file("c.zkey.gz", [0x1f, 0x8b, 8, 0]);
    assert!(
        inspect(&archive, &[])
            .succeeds()
            .stdout
            .contains("decompress")
    );
}

/// GP-16, GP-39: what there is to prove with, and why there is no GPU.
#[test]
fn devices_lists_the_cpu() {
    let json = run(["devices", "--json"]).succeeds().json();
    assert_eq!(json["devices"][0]["device"], "cpu");
    assert!(json["devices"][0]["threads"].as_u64().unwrap() > 0);
    assert!(json["devices"][0]["total_bytes"].as_u64().unwrap() > 1 << 24);
    assert_eq!(json["gpu"]["found"], false);
    let text = run(["devices"]).succeeds().stdout;
    assert!(text.starts_with("cpu:") && text.contains("gpu:"), "{text}");
}
