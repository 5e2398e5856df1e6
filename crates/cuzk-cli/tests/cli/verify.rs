//! `cuzk verify`.

use std::path::{Path, PathBuf};

use cuzk_field::{Field as _, Fr, G1Xyzz, G2Xyzz};
use cuzk_formats::{FileSource, LoadOptions, Proof, arkworks, json, proof};
use serde_json::{Value, json};

use crate::files::{Files, Iden3};
use crate::run::{Run, Scratch, cuzk};

fn verify(vk: &Path, proof: &Path, public: &Path, more: &[&str]) -> Run {
    let mut command = cuzk(["verify", "--vk"]);
    command
        .arg(vk)
        .arg("--proof")
        .arg(proof)
        .arg("--public")
        .arg(public)
        .args(more);
    Run::of(command)
}

/// A case's verifying key, proof by snarkjs and public values.
struct Judged {
    files: Files,
    scratch: Scratch,
    vk: PathBuf,
    proof: PathBuf,
    public: PathBuf,
}

impl Judged {
    fn of(name: &str) -> Self {
        let files = Files::of(name);
        Self {
            vk: files.path("verification_key.json"),
            proof: files.path("proof.json"),
            public: files.path("public.json"),
            scratch: Scratch::new(),
            files,
        }
    }

    fn vk_json(&self) -> Value {
        serde_json::from_slice(&self.files.case.verification_key_json().unwrap()).unwrap()
    }

    fn proof_json(&self) -> Value {
        serde_json::from_slice(&self.files.case.proof_json().unwrap()).unwrap()
    }

    fn with_vk(&self, vk: &Value, more: &[&str]) -> Run {
        let vk = self.scratch.file("vk.json", vk.to_string());
        verify(&vk, &self.proof, &self.public, more)
    }

    fn with_proof(&self, proof: &Value) -> Run {
        let proof = self.scratch.file("proof.json", proof.to_string());
        verify(&self.vk, &proof, &self.public, &[])
    }

    fn with_public(&self, public: &str) -> Run {
        let public = self.scratch.file("public.json", public);
        verify(&self.vk, &self.proof, &public, &[])
    }
}

#[test]
fn proofs_by_snarkjs_are_valid() {
    for case in cuzk_testkit::cases() {
        let path = |name| case.path(name);
        let (Some(vk), Some(proof), Some(public)) = (
            path("verification_key.json"),
            path("proof.json"),
            path("public.json"),
        ) else {
            continue;
        };
        let run = verify(&vk, &proof, &public, &["--json"]).expect(0, &[]);
        assert_eq!(run.json()["valid"], true);
    }
}

#[test]
fn every_form_of_key_and_proof_is_read() {
    let judged = Judged::of("merkle");
    let source = FileSource::open(&judged.proof).unwrap();
    let (proof, _) = json::read_proof(&source, &LoadOptions::default()).unwrap();
    let source = FileSource::open(&judged.vk).unwrap();
    let (vk, _) = json::read_verification_key(&source, &LoadOptions::default()).unwrap();

    let mut keys = vec![judged.vk.clone(), judged.files.zkey.clone()];
    for (name, compression) in [
        ("compressed.vk", arkworks::Compression::Compressed),
        ("uncompressed.vk", arkworks::Compression::Uncompressed),
    ] {
        let mut bytes = Vec::new();
        arkworks::write_verifying_key(&vk, compression, &mut bytes).unwrap();
        keys.push(judged.scratch.file(name, bytes));
    }
    let proofs = [
        judged.proof.clone(),
        judged.scratch.file("192.bin", proof::to_bytes(&proof)),
        judged
            .scratch
            .file("384.bin", proof::to_uncompressed_bytes(&proof)),
    ];
    for key in &keys {
        for proof in &proofs {
            verify(key, proof, &judged.public, &[]).succeeds();
        }
    }
}

/// WP-19: a public value that no constraint uses is bound all the same.
#[test]
fn an_unused_public_value_is_bound() {
    let judged = Judged::of("unused_public");
    let mut public: Vec<String> =
        serde_json::from_slice(&judged.files.case.public_json().unwrap()).unwrap();
    let text = |values: &[String]| json!(values).to_string();
    judged.with_public(&text(&public)).succeeds();
    for index in 0..public.len() {
        let right = std::mem::replace(&mut public[index], "6".into());
        let run = judged.with_public(&text(&public)).expect(1, &["not valid"]);
        assert!(run.stdout.contains("valid:"), "{run:#?}");
        public[index] = right;
    }
    let public = judged.scratch.file("public.json", "[\"1\",\"2\"]");
    let run = verify(&judged.vk, &judged.proof, &public, &["--json"]);
    if run.code == Some(1) {
        assert_eq!(run.json()["valid"], false);
    }
}

/// WP-20: an identity in IC leaves its public value unbound: a warning, refused under --strict.
#[test]
fn an_identity_in_ic_is_a_warning() {
    // The public value is 0, so that its point does not matter.
    let judged = Judged::of("allzero");
    let mut vk = judged.vk_json();
    vk["IC"][1] = json!(["0", "1", "0"]);
    judged
        .with_vk(&vk, &[])
        .expect(0, &["public value 0 (counted from 0) is the identity"]);
    judged
        .with_vk(&vk, &["--strict"])
        .expect(3, &["identity", "strict"]);
    let mut command = cuzk(["inspect", "--json"]);
    command.arg(judged.scratch.path("vk.json"));
    let json = Run::of(command).expect(0, &["identity"]).json();
    assert_eq!(json["notes"].as_array().unwrap().len(), 1);
}

/// WP-28: as many public values as the key takes, no more and no less.
#[test]
fn the_number_of_public_values_is_checked() {
    let judged = Judged::of("merkle");
    for public in ["[]", "[\"1\"]", "[\"1\",\"0\",\"0\"]"] {
        judged
            .with_public(public)
            .expect(3, &["public.json", "takes 2 public values"]);
    }
}

/// FI-22: no public values.
#[test]
fn no_public_values_may_be_written_in_three_ways() {
    let judged = Judged::of("nopublic");
    judged.with_public("[]").succeeds();
    judged.with_public("[ ]\n").succeeds();
    judged
        .with_public("null")
        .expect(0, &["null, read as no public values"]);
    let scratch = Scratch::new();
    let inputs = [
        ("--zkey", judged.files.zkey.as_path()),
        ("--wtns", &judged.files.wtns),
    ];
    scratch.prove(&inputs, &[]).succeeds();
    let public = std::fs::read(scratch.out("public.json")).unwrap();
    assert_eq!(
        serde_json::from_slice::<Vec<String>>(&public).unwrap(),
        Vec::<String>::new()
    );
    scratch.verify(("--vk", &judged.vk)).succeeds();
}

/// FI-25: anybody can turn a proof into another one of the same statement.
#[test]
fn a_rerandomised_proof_is_valid() {
    let judged = Judged::of("mul1");
    let source = FileSource::open(&judged.proof).unwrap();
    let (proof, _) = json::read_proof(&source, &LoadOptions::default()).unwrap();
    let t = Fr::from(7).pow(1234);
    let inverse = t.inverse().unwrap();
    let other = Proof {
        a: G1Xyzz::from(proof.a).mul_scalar(&t.into()).to_affine(),
        b: G2Xyzz::from(proof.b)
            .mul_scalar(&inverse.into())
            .to_affine(),
        c: proof.c,
    };
    assert_ne!(proof, other);
    let path = judged.scratch.file("other.bin", proof::to_bytes(&other));
    verify(&judged.vk, &path, &judged.public, &[]).succeeds();
}

/// FI-38: identities in proofs and in the vital points of keys.
#[test]
fn identities_are_refused() {
    let judged = Judged::of("mul1");
    let infinity_g1 = json!(["0", "1", "0"]);
    let infinity_g2 = json!([["0", "0"], ["1", "0"], ["0", "0"]]);
    for point in ["pi_a", "pi_b", "pi_c"] {
        let mut proof = judged.proof_json();
        proof[point] = if point == "pi_b" {
            &infinity_g2
        } else {
            &infinity_g1
        }
        .clone();
        judged.with_proof(&proof).expect(3, &[point, "identity"]);
    }
    for point in ["vk_alpha_1", "vk_beta_2", "vk_gamma_2", "vk_delta_2"] {
        let mut vk = judged.vk_json();
        vk[point] = if point == "vk_alpha_1" {
            &infinity_g1
        } else {
            &infinity_g2
        }
        .clone();
        judged.with_vk(&vk, &[]).expect(3, &[point, "identity"]);
    }
    let mut bytes = [0; 192];
    bytes[0] = 0xc0;
    let path = judged.scratch.file("identity.bin", bytes);
    verify(&judged.vk, &path, &judged.public, &[]).expect(3, &["A", "identity"]);
}

/// FI-07, FI-28: names of the curve, and numbers that are none.
#[test]
fn malformed_json_is_refused() {
    let judged = Judged::of("mul1");
    for curve in ["bls12381", "bls12-381", "BLS12_381"] {
        let mut vk = judged.vk_json();
        vk["curve"] = curve.into();
        judged.with_vk(&vk, &[]).succeeds();
    }
    for curve in ["bn128", ""] {
        let mut vk = judged.vk_json();
        vk["curve"] = curve.into();
        judged.with_vk(&vk, &[]).expect(3, &["curve"]);
    }
    let modulus = "52435875175126190479447740508185965837690552500527637822603658699938581184513";
    for public in [
        format!("[\"{modulus}\"]"),
        "[\"-1\"]".into(),
        "[\"0x1\"]".into(),
        "[\"1e3\"]".into(),
        "[\"01\"]".into(),
        "[".into(),
        "{}".into(),
        "[\"1\"] x".into(),
    ] {
        judged.with_public(&public).expect(3, &["public.json"]);
    }
    // Another proof's C: on the curve, and wrong.
    let mut proof = judged.proof_json();
    proof["pi_c"] = proof["pi_a"].clone();
    judged.with_proof(&proof).expect(1, &["not valid"]);
    proof["pi_c"][0] = "1".into();
    judged.with_proof(&proof).expect(3, &["pi_c", "curve"]);
    // Cut short.
    let path = judged.scratch.file("cut.bin", [0x80; 191]);
    verify(&judged.vk, &path, &judged.public, &[]).expect(3, &["191 bytes"]);
    // Swapped.
    verify(&judged.proof, &judged.vk, &judged.public, &[]).expect(3, &["swapped"]);
    verify(&judged.vk, &judged.public, &judged.proof, &[]).expect(3, &["swapped"]);
}

#[test]
fn a_key_is_needed_and_one_only() {
    let judged = Judged::of("mul1");
    let both = ["--zkey", judged.files.zkey.to_str().unwrap()];
    verify(&judged.vk, &judged.proof, &judged.public, &both).expect(2, &["--vk and --zkey"]);
    let mut command = cuzk(["verify", "--proof"]);
    command
        .arg(&judged.proof)
        .arg("--public")
        .arg(&judged.public);
    Run::of(command).expect(2, &["no verifying key"]);
}

/// A damaged key is no reason to call a proof invalid.
#[test]
fn a_damaged_zkey_is_no_verdict() {
    let judged = Judged::of("mul1");
    let mut zkey = Iden3::parse(&judged.files.case.zkey().unwrap());
    zkey.section(3)[0] ^= 1;
    let zkey = judged.scratch.file("damaged.zkey", zkey.to_bytes());
    verify(&zkey, &judged.proof, &judged.public, &[]).expect(3, &["section 3 (IC)"]);
}
