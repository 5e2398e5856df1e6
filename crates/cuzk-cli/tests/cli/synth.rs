//! `cuzk synth`, and proofs from what it writes.

use std::fs;

use crate::run::{Run, Scratch, cuzk, run};

#[test]
fn what_is_written_can_be_proved() {
    let scratch = Scratch::new();
    for (family, extension, shape) in [
        ("circom", "zkey", "porep"),
        ("arkworks", "pk", "dense"),
        ("bellman", "params", "porep"),
    ] {
        let folder = scratch.path(family);
        let mut command = cuzk(["synth", "6", "--json", "--device", "cpu"]);
        command.args(["--family", family, "--shape", shape]);
        command.arg("--out-dir").arg(&folder);
        let json = Run::of(command).succeeds().json();
        assert_eq!(json["circuit"]["domain_size"], 64);
        let path = |extension| folder.join(format!("circuit.{extension}"));
        let names = ["r1cs", "wtns", extension];
        for (file, name) in json["files"].as_array().unwrap().iter().zip(names) {
            assert_eq!(file["path"], path(name).to_str().unwrap());
            assert_eq!(file["bytes"], fs::metadata(path(name)).unwrap().len());
        }
        let key = path(extension);
        let flag = format!("--{extension}");
        let (r1cs, wtns) = (path("r1cs"), path("wtns"));
        let inputs = [
            (flag.as_str(), key.as_path()),
            ("--r1cs", &r1cs),
            ("--wtns", &wtns),
        ];
        let proofs = Scratch::new();
        proofs.prove(&inputs, &[]).succeeds();
        proofs.verify((&flag, &key)).succeeds();
    }
}

#[test]
fn seeds_decide() {
    let scratch = Scratch::new();
    let made = |name: &str, seed: &str| {
        let folder = scratch.path(name);
        let mut command = cuzk(["synth", "3", "--seed", seed, "--out-dir"]);
        command.arg(&folder);
        Run::of(command).succeeds();
        ["r1cs", "wtns", "zkey"].map(|extension| {
            let path = folder.join(format!("circuit.{extension}"));
            fs::read(path).unwrap()
        })
    };
    let first = made("one", "7");
    assert!(first == made("two", "7"));
    let other = made("three", "8");
    assert!(
        first
            .iter()
            .zip(&other)
            .all(|(first, other)| first != other)
    );
}

#[test]
fn what_cannot_be_made_is_refused() {
    let scratch = Scratch::new();
    for (args, words) in [
        (&["synth", "29", "--out-dir", "x"][..], "29"),
        (&["synth", "0", "--out-dir", "x"], "0"),
        (&["synth", "6"], "--out-dir"),
    ] {
        run(args).expect(2, &[words]);
    }
    let mut command = cuzk(["synth", "20", "--host-limit", "1MiB", "--out-dir"]);
    command.arg(scratch.path("small"));
    Run::of(command).expect(6, &["memory"]);
    assert!(!scratch.path("small").join("circuit.r1cs").exists());
    // A folder that is a file.
    let file = scratch.path("file");
    fs::write(&file, "").unwrap();
    let mut command = cuzk(["synth", "6", "--out-dir"]);
    command.arg(&file);
    Run::of(command).expect(2, &["--out-dir", "file: the folder cannot be made"]);
    assert!(fs::read(&file).unwrap().is_empty());
}
