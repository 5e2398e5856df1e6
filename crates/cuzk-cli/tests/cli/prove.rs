//! Proofs from zkeys.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use cuzk_testkit::cases;
use serde_json::Value;

use crate::files::{Files, Iden3};
use crate::run::{Run, Scratch, cuzk, run};

/// WP-01, WP-02, WP-05, WP-22, FI-20, FI-40, GP-33: domains from 2 up, keys from fitting and larger
/// ptau files, all optimisation levels of circom, no private and no public values. Also any folder
/// of fixtures with its bellman keys.
#[test]
fn every_case_proves_with_its_own_key() {
    let mut proved = 0;
    for case in cases() {
        let (flag, key) = match (case.path("circuit.zkey"), case.params()) {
            (Some(zkey), _) if case.zkey().is_some() => ("--zkey", zkey),
            (_, Some(_)) => ("--params", case.path("circuit.params").unwrap()),
            _ => continue,
        };
        let (Some(wtns), Some(r1cs)) = (case.path("witness.wtns"), case.path("circuit.r1cs"))
        else {
            continue;
        };
        let scratch = Scratch::new();
        let inputs = [(flag, key.as_path()), ("--wtns", &wtns), ("--r1cs", &r1cs)];
        scratch.prove(&inputs, &[]).expect(0, &[]);
        scratch.verify((flag, &key)).expect(0, &[]);
        if let Some(vk) = case
            .path("verification_key.json")
            .filter(|_| flag == "--zkey")
        {
            scratch.verify(("--vk", &vk)).expect(0, &[]);
        }
        if let Some(expected) = case.public_json() {
            let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
            let found = fs::read(scratch.out("public.json")).unwrap();
            assert_eq!(parse(&found), parse(&expected), "{}", case.name);
        }
        proved += 1;
    }
    assert!(proved > 0, "no case was proved");
}

#[test]
fn the_result_has_all_that_is_promised() {
    let files = Files::of("merkle");
    let scratch = Scratch::new();
    let inputs = [("--zkey", files.zkey.as_path()), ("--wtns", &files.wtns)];
    let run = scratch
        .prove(&inputs, &["--json", "--threads", "2"])
        .succeeds();
    let json = run.json();
    assert_eq!(json["verified"], true);
    assert_eq!(json["device"]["used"], "cpu");
    assert_eq!(json["device"]["requested"], "auto");
    assert_eq!(json["device"]["threads"], 2);
    assert!(json["device"]["reason"].as_str().unwrap().contains("GPU"));
    assert_eq!(json["key"]["kind"], "zkey");
    assert_eq!(json["circuit"]["constraints"], 3342);
    assert_eq!(json["circuit"]["variables"], 3352);
    assert_eq!(json["circuit"]["public_values"], 2);
    assert_eq!(json["circuit"]["domain_size"], 4096);
    assert!(json["peak_host_bytes"].as_u64().unwrap() > 1 << 20);
    assert!(json["elapsed_ms"].as_f64().unwrap() > 0.0);
    let stages = json["stages"].as_array().unwrap();
    let load = stages
        .iter()
        .find(|stage| stage["name"] == "load key")
        .unwrap();
    assert!(load["mb_per_s"].as_f64().unwrap() > 0.0);
    assert!(stages.iter().any(|stage| stage["name"] == "verify"));
    assert_eq!(json["notes"], Value::Array(Vec::new()));
    // The files have them.
    assert!(json.get("proof").is_none() && json.get("public").is_none());
    assert_eq!(json["proof_format"], "snarkjs");
}

/// GP-16, GP-39: what was used and why is said once, in the result.
#[test]
fn people_read_aligned_lines() {
    let files = Files::of("mul1");
    let scratch = Scratch::new();
    let inputs = [("--zkey", files.zkey.as_path()), ("--wtns", &files.wtns)];
    let run = scratch.prove(&inputs, &[]).succeeds();
    for words in [
        "circom zkey",
        "(--device auto: ",
        "peak host memory:",
        "MB/s",
    ] {
        assert!(run.stdout.contains(words), "{words}: {run:#?}");
    }
    let verified = run
        .stdout
        .lines()
        .find(|line| line.starts_with("verified:"));
    assert!(verified.unwrap().ends_with("yes"), "{run:#?}");
}

#[test]
fn without_outputs_the_result_has_proof_and_public_values() {
    let files = Files::of("merkle");
    let mut command = cuzk(["prove", "--json", "--zkey"]);
    command.arg(&files.zkey).arg("--wtns").arg(&files.wtns);
    let json = Run::of(command).succeeds().json();
    assert_eq!(json["proof"]["protocol"], "groth16");
    let expected = files.case.public_json().unwrap();
    assert_eq!(
        json["public"],
        serde_json::from_slice::<Value>(&expected).unwrap()
    );
    let scratch = Scratch::new();
    let proof = scratch.file("proof.json", json["proof"].to_string());
    let public = scratch.file("public.json", json["public"].to_string());
    let mut command = cuzk(["verify", "--zkey"]);
    command
        .arg(&files.zkey)
        .arg("--proof")
        .arg(proof)
        .arg("--public")
        .arg(public);
    Run::of(command).succeeds();
}

/// FI-11: exact length, one-space indent as snarkjs, a newline at most, no NUL.
#[test]
fn output_files_are_pure_json() {
    let files = Files::of("merkle");
    let scratch = Scratch::new();
    let inputs = [("--zkey", files.zkey.as_path()), ("--wtns", &files.wtns)];
    // A longer file that was there before.
    fs::write(scratch.out("proof.json"), vec![b'x'; 1 << 16]).unwrap();
    scratch.prove(&inputs, &[]).succeeds();
    let theirs = [files.case.proof_json(), files.case.public_json()];
    for (name, theirs) in ["proof.json", "public.json"].into_iter().zip(theirs) {
        let ours = fs::read(scratch.out(name)).unwrap();
        serde_json::from_slice::<Value>(&ours).unwrap();
        assert!(!ours.contains(&0));
        assert!(matches!(ours.last(), Some(b'}' | b']' | b'\n')));
        // The same lines but for the numbers.
        let shape = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            text.chars()
                .filter(|c| !c.is_ascii_digit())
                .collect::<String>()
        };
        assert_eq!(shape(&ours).trim_end(), shape(&theirs.unwrap()).trim_end());
        let mode = fs::metadata(scratch.out(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o600, 0o600);
    }
}

/// WP-17: r and s are new for every proof.
#[test]
fn two_proofs_of_one_witness_differ() {
    let files = Files::of("mul1");
    let inputs = [("--zkey", files.zkey.as_path()), ("--wtns", &files.wtns)];
    let proof = || {
        let scratch = Scratch::new();
        scratch.prove(&inputs, &[]).succeeds();
        let text = fs::read(scratch.out("proof.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()
    };
    let (one, other) = (proof(), proof());
    for point in ["pi_a", "pi_b", "pi_c"] {
        assert_ne!(one[point], other[point]);
    }
}

/// `wtns` of a case with the low bit of one value flipped.
fn flipped(files: &Files, index: usize) -> Vec<u8> {
    let mut wtns = Iden3::parse(&files.case.wtns().unwrap());
    wtns.section(2)[32 * index] ^= 1;
    wtns.to_bytes()
}

/// WP-26: a witness that violates a constraint gives no proof, with and without the R1CS.
#[test]
fn a_violated_constraint_is_named() {
    let files = Files::of("chain_510");
    let scratch = Scratch::new();
    let wtns = scratch.file("bad.wtns", flipped(&files, 100));
    let key = ("--zkey", files.zkey.as_path());
    let with_r1cs = [key, ("--wtns", &wtns), ("--r1cs", &files.r1cs)];
    scratch.prove(&with_r1cs, &[]).expect(
        4,
        &[
            "constraint ",
            "(counted from 0) is the first that is violated",
        ],
    );
    scratch
        .prove(&with_r1cs[..2], &[])
        .expect(1, &["failed its own verification", "give the R1CS"]);
}

/// A proof that is handed out unverified says so.
#[test]
fn no_verify_is_said_in_the_result() {
    let files = Files::of("mul1");
    let scratch = Scratch::new();
    let inputs = [("--zkey", files.zkey.as_path()), ("--wtns", &files.wtns)];
    let json = scratch
        .prove(&inputs, &["--no-verify", "--json"])
        .succeeds()
        .json();
    assert_eq!(json["verified"], false);
    let run = scratch.prove(&inputs, &["--no-verify"]).succeeds();
    assert!(run.stdout.contains("no: --no-verify was given"), "{run:#?}");
}

/// The R1CS of the key is told from others by counts, and by its rows.
#[test]
fn an_r1cs_of_another_circuit_is_refused() {
    let files = Files::of("chain_510");
    let other = Files::of("merkle");
    let scratch = Scratch::new();
    let key = ("--zkey", files.zkey.as_path());
    let wtns = ("--wtns", files.wtns.as_path());
    scratch
        .prove(&[key, wtns, ("--r1cs", &other.r1cs)], &[])
        .expect(
            4,
            &["the R1CS is not the circuit of this key", "public values"],
        );
    // One coefficient of constraint 0 replaced: the first entry of its A.
    let mut r1cs = Iden3::parse(&files.case.r1cs().unwrap());
    r1cs.section(2)[8..40].fill(3);
    let changed = scratch.file("changed.r1cs", r1cs.to_bytes());
    scratch
        .prove(&[key, wtns, ("--r1cs", &changed)], &[])
        .expect(
            4,
            &[
                "the R1CS is not the circuit of this key",
                "constraint 0",
                "in A",
            ],
        );
}

/// Both numbers are said.
#[test]
fn a_witness_of_another_circuit_is_refused() {
    let files = Files::of("merkle");
    let other = Files::of("mul1");
    let scratch = Scratch::new();
    let inputs = [("--zkey", files.zkey.as_path()), ("--wtns", &other.wtns)];
    scratch
        .prove(&inputs, &[])
        .expect(4, &["another circuit", "has 4 values", "3352 variables"]);
}

#[test]
fn a_witness_whose_first_value_is_not_one_is_refused() {
    let files = Files::of("mul1");
    let scratch = Scratch::new();
    let mut wtns = Iden3::parse(&files.case.wtns().unwrap());
    wtns.section(2)[0] = 2;
    let wtns = scratch.file("two.wtns", wtns.to_bytes());
    let inputs = [("--zkey", files.zkey.as_path()), ("--wtns", &wtns)];
    scratch
        .prove(&inputs, &[])
        .expect(4, &["the constant one", "value 0"]);
}

/// WP-13, WP-14: points that are exchanged are all on the curve, so only the proof's own
/// verification finds the damage; it says what may be at fault.
#[test]
fn a_damaged_key_is_found_by_verification() {
    let files = Files::of("chain_510");
    let scratch = Scratch::new();
    for section in [5, 6, 7, 8, 9] {
        let width = if section == 7 { 192 } else { 96 };
        let mut zkey = Iden3::parse(&files.case.zkey().unwrap());
        let body = zkey.section(section);
        // Rotated, so that every point stands at another place.
        body.rotate_left(width);
        let zkey = scratch.file("damaged.zkey", zkey.to_bytes());
        let inputs = [("--zkey", zkey.as_path()), ("--wtns", &files.wtns)];
        scratch
            .prove(&inputs, &[])
            .expect(1, &["withheld", "the key is damaged", "hardware"]);
    }
}

/// Bits of the witness appear nowhere: not in the result, not in the most verbose log, not in
/// errors.
#[test]
fn no_private_value_is_printed() {
    let files = Files::of("chain_510");
    let wtns = Iden3::parse(&files.case.wtns().unwrap()).section(2).clone();
    let secrets: Vec<String> = wtns
        .chunks(32)
        .skip(2)
        .step_by(50)
        .flat_map(|value| {
            let hex: String = value
                .iter()
                .rev()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let plain: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            [hex, plain]
        })
        .collect();
    let scratch = Scratch::new();
    let bad = scratch.file("bad.wtns", flipped(&files, 100));
    for (wtns, json) in [(&files.wtns, "--json"), (&bad, "-vv")] {
        let mut command = cuzk(["prove", "-vvv", json, "--zkey"]);
        command
            .arg(&files.zkey)
            .arg("--wtns")
            .arg(wtns)
            .arg("--r1cs")
            .arg(&files.r1cs);
        let run = Run::of(command);
        let printed = format!("{}{}", run.stdout, run.stderr).to_lowercase();
        for secret in &secrets {
            assert!(
                !printed.contains(secret.trim_start_matches('0')),
                "{secret}"
            );
        }
    }
}

#[test]
fn synthetic_circuits_prove_in_every_shape_and_family() {
    for shape in ["porep", "dense"] {
        for (family, kind) in [
            ("circom", "zkey"),
            ("arkworks", "pk"),
            ("bellman", "params"),
        ] {
            let json = run([
                "prove",
                "--synthetic",
                "8",
                "--shape",
                shape,
                "--family",
                family,
                "--json",
            ])
            .succeeds()
            .json();
            assert_eq!(json["verified"], true);
            assert_eq!(json["circuit"]["domain_size"], 256);
            assert_eq!(json["key"]["kind"], kind);
            let stages = json["stages"].as_array().unwrap();
            assert!(stages.iter().any(|stage| stage["name"] == "make key"));
        }
    }
}

/// GP-12: with --device cpu nothing is locked and no temporary folder is needed.
#[test]
fn the_cpu_needs_no_temporary_folder() {
    let files = Files::of("mul1");
    let scratch = Scratch::new();
    let mut command = cuzk(["prove", "--device", "cpu", "--zkey"]);
    command.arg(&files.zkey).arg("--wtns").arg(&files.wtns);
    command.arg("--proof").arg(scratch.out("proof.json"));
    command.env("TMPDIR", scratch.path("not there"));
    let run = Run::of(command).succeeds();
    assert!(run.stdout.contains("(--device cpu: as asked)"), "{run:#?}");
    assert_eq!(scratch.left(), ["proof.json"]);
}

/// Nothing falls back when a GPU is asked for, whatever this machine has.
#[test]
fn cuda_never_falls_back() {
    for device in ["cuda", "cuda:0", "cuda:GPU-5a0f3d2e"] {
        let scratch = Scratch::new();
        let files = Files::of("mul1");
        let inputs = [("--zkey", files.zkey.as_path()), ("--wtns", &files.wtns)];
        scratch
            .prove(&inputs, &["--device", device])
            .expect(5, &["no usable device", device]);
    }
}
