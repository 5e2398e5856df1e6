//! `cuzk prepare`, and proofs from what it writes.

use std::fs;
use std::path::{Path, PathBuf};

use cuzk_formats::arkworks::Compression;
use cuzk_groth16::synth::{KeyFamily, Shape};

use crate::files::{Files, Synthetic, params_bytes, pk_bytes};
use crate::run::{Run, Scratch, cuzk, run};

fn prepare(out: &Path, inputs: &[(&str, &Path)], more: &[&str]) -> Run {
    let mut command = cuzk(["prepare"]);
    for (flag, path) in inputs {
        command.arg(flag).arg(path);
    }
    command.arg("--out").arg(out).args(more);
    Run::of(command)
}

fn prepared(scratch: &Scratch, name: &str, inputs: &[(&str, &Path)], more: &[&str]) -> PathBuf {
    let out = scratch.path(name);
    prepare(&out, inputs, more).expect(0, &[]);
    out
}

#[test]
fn zkeys_with_and_without_the_four_transforms() {
    for name in ["mul1", "nopublic", "noprivate", "domain_8", "linear"] {
        let files = Files::of(name);
        let scratch = Scratch::new();
        let zkey = ("--zkey", files.zkey.as_path());
        let both = [zkey, ("--r1cs", files.r1cs.as_path())];
        for (inputs, more) in [
            (&both[..1], &[][..]),
            (&both, &[]),
            (&both, &["--four-transforms"]),
        ] {
            let key = prepared(&scratch, "key.cuzk", inputs, more);
            let scratch = Scratch::new();
            let inputs = [("--prepared", key.as_path()), ("--wtns", &files.wtns)];
            let run = scratch.prove(&inputs, &["--json"]).succeeds();
            assert_eq!(run.json()["key"]["kind"], "prepared", "{name}");
            // As the zkey's own tools write it.
            assert_eq!(run.json()["proof_format"], "snarkjs", "{name}");
            for key in [("--zkey", files.zkey.as_path()), ("--vk", &key)] {
                scratch.verify(key).succeeds();
            }
        }
    }
}

#[test]
fn the_result_and_inspect_say_what_was_made() {
    let files = Files::of("linear");
    let scratch = Scratch::new();
    let out = scratch.path("key.cuzk");
    let inputs = [
        ("--zkey", files.zkey.as_path()),
        ("--r1cs", files.r1cs.as_path()),
    ];
    let run = prepare(&out, &inputs, &["--four-transforms", "--json"]).expect(
        0,
        &["four transforms:", "scalar multiplications", "host memory"],
    );
    let json = run.json();
    assert_eq!(json["transforms"], 4);
    assert_eq!(json["bytes"], fs::metadata(&out).unwrap().len());
    assert_eq!(json["source"], "a snarkjs key (.zkey)");
    let domain_size = json["circuit"]["domain_size"].clone();

    let inspect = |more: &[&str]| {
        let mut command = cuzk(["inspect", "--json"]);
        command.arg(&out).args(more);
        Run::of(command).succeeds().json()
    };
    let hash = |path: &Path| blake3::hash(&fs::read(path).unwrap()).to_string();
    for json in [inspect(&[]), inspect(&["--scan"])] {
        assert_eq!(json["kind"], "a prepared key");
        assert_eq!(json["transforms"], 4);
        assert_eq!(json["root_generator"], 5);
        assert_eq!(json["domain_size"], domain_size);
        assert_eq!(json["key_blake3"], hash(&files.zkey));
        assert_eq!(json["r1cs_blake3"], hash(&files.r1cs));
        assert_eq!(json["sections"].as_array().unwrap().len(), 17);
    }
    assert!(inspect(&["--scan"])["checked"].is_string());
}

#[test]
fn keys_of_bellman_and_arkworks() {
    let scratch = Scratch::new();
    for (family, flag, seed) in [
        (KeyFamily::Bellman, "--params", 1),
        (KeyFamily::Arkworks, "--pk", 2),
    ] {
        let made = Synthetic::new(&scratch, family, Shape::Porep, seed);
        let bytes = match family {
            KeyFamily::Bellman => params_bytes(&made.key),
            _ => pk_bytes(&made.key, Compression::Compressed),
        };
        let key = scratch.file("key", bytes);
        let inputs = [(flag, key.as_path()), ("--r1cs", &made.r1cs_path)];
        for more in [&[][..], &["--four-transforms"]] {
            let out = prepared(&scratch, "key.cuzk", &inputs, more);
            let scratch = Scratch::new();
            let inputs = [
                ("--prepared", out.as_path()),
                ("--wtns", &made.wtns_path),
                ("--r1cs", &made.r1cs_path),
            ];
            scratch.prove(&inputs[..2], &[]).succeeds();
            scratch.verify((flag, &key)).succeeds();
            // With the R1CS the witness is checked as well.
            let scratch = Scratch::new();
            scratch.prove(&inputs, &[]).succeeds();
        }
    }
}

#[test]
fn synthetic_keys_are_prepared_in_memory() {
    let scratch = Scratch::new();
    for family in ["circom", "arkworks", "bellman"] {
        let more = ["--synthetic", "6", "--family", family, "--four-transforms"];
        let out = prepared(&scratch, "key.cuzk", &[], &more);
        let mut command = cuzk(["inspect", "--scan", "--json"]);
        command.arg(out);
        let json = Run::of(command).succeeds().json();
        assert_eq!(json["source"], "a synthetic key");
        assert_eq!(json["domain_size"], 64);
        let args = ["prove", "--synthetic", "6", "--four-transforms", "--family"];
        run([&args[..], &[family]].concat()).succeeds();
    }
}

/// Each writes a file of its own; the last one stays.
#[test]
fn two_at_once_leave_one_whole_file() {
    let scratch = Scratch::new();
    let out = scratch.out("key.cuzk");
    std::thread::scope(|scope| {
        for shape in ["porep", "dense", "porep", "dense"] {
            let args = ["--synthetic", "7", "--threads", "1", "--shape", shape];
            let out = &out;
            scope.spawn(move || prepare(out, &[], &args).expect(0, &[]));
        }
    });
    assert_eq!(scratch.left(), ["key.cuzk"]);
    let mut command = cuzk(["inspect", "--scan"]);
    command.arg(&out);
    Run::of(command).succeeds();
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let files = Files::of("mul1");
    let other = Files::of("linear");
    let scratch = Scratch::new();
    let zkey = ("--zkey", files.zkey.as_path());
    let key = prepared(&scratch, "k", &[zkey, ("--r1cs", &files.r1cs)], &[]);
    let inputs = [("--prepared", key.as_path()), ("--wtns", &other.wtns)];
    Scratch::new()
        .prove(&inputs, &[])
        .expect(4, &["the witness is of another circuit"]);
    // The same circuit in another file: the labels at its end differ.
    let mut bytes = fs::read(&files.r1cs).unwrap();
    let last = bytes.len() - 8;
    bytes[last] ^= 1;
    let relabelled = scratch.file("relabelled.r1cs", bytes);
    let inputs = [
        ("--prepared", key.as_path()),
        ("--wtns", &files.wtns),
        ("--r1cs", &relabelled),
    ];
    Scratch::new().prove(&inputs, &[]).expect(
        4,
        &["not the one that this key was prepared with", "BLAKE3"],
    );
    let out = scratch.path("none");
    prepare(
        &out,
        &[zkey, ("--r1cs", &other.r1cs)],
        &["--four-transforms"],
    )
    .expect(4, &["the R1CS is not the circuit of this key"]);
    assert!(!out.exists());
}

#[test]
fn damaged_files_and_bad_arguments_are_refused() {
    let files = Files::of("mul1");
    let scratch = Scratch::new();
    let zkey = ("--zkey", files.zkey.as_path());
    let key = prepared(&scratch, "key.cuzk", &[zkey], &[]);
    let good = fs::read(&key).unwrap();
    let refused = |bytes: &[u8], words: &[&str]| {
        let path = scratch.file("damaged.cuzk", bytes);
        let inputs = [("--prepared", path.as_path()), ("--wtns", &files.wtns)];
        Scratch::new().prove(&inputs, &[]).expect(3, words);
    };
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    refused(&flipped(good.len() - 1), &["damaged.cuzk", "checksum"]);
    refused(&flipped(8), &["version 0", "an older cuzk"]);
    refused(&good[..good.len() - 1], &["cut short"]);
    refused(&fs::read(&files.zkey).unwrap(), &["a prepared key", "zkey"]);
    // The other way round.
    let inputs = [("--zkey", key.as_path()), ("--wtns", &files.wtns)];
    Scratch::new()
        .prove(&inputs, &[])
        .expect(3, &["a prepared key"]);

    let out = scratch.out("none.cuzk");
    let refused = |inputs: &[(&str, &Path)], more: &[&str], code: i32, words: &[&str]| {
        prepare(&out, inputs, more).expect(code, words);
        scratch.expect_nothing_left();
    };
    refused(&[], &[], 2, &["no key"]);
    refused(&[zkey], &["--four-transforms"], 2, &["--r1cs"]);
    refused(&[("--params", &files.zkey)], &[], 2, &["--r1cs"]);
    refused(&[zkey, ("--pk", &files.zkey)], &[], 2, &["both keys"]);
    refused(&[zkey], &["--synthetic", "3"], 2, &["--synthetic"]);
    refused(&[zkey], &["--shape", "dense"], 2, &["--synthetic only"]);
    refused(&[zkey], &["--host-limit", "1MiB"], 6, &["out of memory"]);
}
