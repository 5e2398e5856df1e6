//! Damaged, cut, swapped and hostile files: exit 3, the place named, nothing written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::files::{Files, Iden3};
use crate::run::{Run, Scratch, cuzk};

/// Proves with one file of a case replaced.
fn prove_with(files: &Files, scratch: &Scratch, flag: &str, path: &Path) -> Run {
    let pick = |own: &str, file: &Path| {
        if own == flag {
            path.to_owned()
        } else {
            file.to_owned()
        }
    };
    let zkey = pick("--zkey", &files.zkey);
    let wtns = pick("--wtns", &files.wtns);
    let r1cs = pick("--r1cs", &files.r1cs);
    let inputs = [
        ("--zkey", zkey.as_path()),
        ("--wtns", &wtns),
        ("--r1cs", &r1cs),
    ];
    scratch.prove(&inputs, &[])
}

fn prove_bytes(files: &Files, flag: &str, bytes: &[u8]) -> Run {
    let scratch = Scratch::new();
    let path = scratch.file("hostile", bytes);
    prove_with(files, &scratch, flag, &path)
}

/// FI-08: what is no file with content says what it is, as each input.
#[test]
fn what_is_no_proper_file_is_refused_as_each_input() {
    let files = Files::of("mul1");
    let scratch = Scratch::new();
    let empty = scratch.file("empty", []);
    let three = scratch.file("three", b"zke");
    let eleven = scratch.file("eleven", b"zkey\x01\0\0\0\x0a\0\0");
    let folder = scratch.path("out");
    for flag in ["--zkey", "--wtns", "--r1cs"] {
        for (path, words) in [
            (empty.as_path(), "0 bytes"),
            (&three, "3 bytes"),
            (&eleven, "11 bytes"),
            (&folder, "a directory"),
            (Path::new("/dev/null"), "a device"),
            (&scratch.path("missing"), "none at this path"),
        ] {
            let name = path.display().to_string();
            prove_with(&files, &scratch, flag, path).expect(3, &[words, &name]);
        }
    }
    for flag in ["--params", "--pk"] {
        for (path, words) in [
            (empty.as_path(), "0 bytes"),
            (&three, "three"),
            (&folder, "a directory"),
            (Path::new("/dev/null"), "a device"),
        ] {
            let inputs = [
                (flag, path),
                ("--wtns", &files.wtns),
                ("--r1cs", &files.r1cs),
            ];
            scratch.prove(&inputs, &[]).expect(3, &[words]);
        }
    }
}

/// FI-13: missing, unreadable and of another digest are three different errors.
#[test]
fn missing_unreadable_and_wrong_keys_are_told_apart() {
    let files = Files::of("mul1");
    let scratch = Scratch::new();
    let missing = scratch.path("missing.zkey");
    prove_with(&files, &scratch, "--zkey", &missing)
        .expect(3, &["missing.zkey", "none at this path"]);

    let locked = scratch.file("locked.zkey", files.case.zkey().unwrap());
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    // Root reads everything.
    if fs::File::open(&locked).is_err() {
        prove_with(&files, &scratch, "--zkey", &locked)
            .expect(3, &["locked.zkey", "permission to read it is denied"]);
    }

    let inputs = [("--zkey", files.zkey.as_path()), ("--wtns", &files.wtns)];
    let digest = "0".repeat(64);
    scratch
        .prove(&inputs, &["--key-blake3", &digest])
        .expect(3, &["expected the BLAKE3 hash 0000", "circuit.zkey"]);
    let mut command = cuzk(["inspect", "--hash", "--json"]);
    command.arg(&files.zkey);
    let digest = Run::of(command).succeeds().json()["blake3"]
        .as_str()
        .unwrap()
        .to_owned();
    scratch
        .prove(&inputs, &["--key-blake3", &digest])
        .succeeds();
}

/// FI-32: a file that is cut anywhere is refused before proving.
#[test]
fn files_cut_short_are_refused() {
    let files = Files::of("chain_510");
    for (flag, bytes) in [
        ("--zkey", files.case.zkey().unwrap()),
        ("--wtns", files.case.wtns().unwrap()),
        ("--r1cs", files.case.r1cs().unwrap()),
    ] {
        let mut cuts = Iden3::parse(&bytes).borders();
        cuts.extend([1, 40, 1000].map(|tail| bytes.len() - tail));
        cuts.retain(|cut| *cut < bytes.len());
        for cut in cuts {
            prove_bytes(&files, flag, &bytes[..cut]).expect(3, &["hostile"]);
        }
    }
}

/// FI-31: sections in any order, and ones that are not known; double and missing ones are named.
#[test]
fn sections_may_come_in_any_order_once() {
    let files = Files::of("mul1");
    let zkey = Iden3::parse(&files.case.zkey().unwrap());
    let mut ordered = zkey.clone();
    ordered.sections.sort_by_key(|(number, _)| *number);
    prove_bytes(&files, "--zkey", &ordered.to_bytes()).succeeds();
    ordered.sections.reverse();
    prove_bytes(&files, "--zkey", &ordered.to_bytes()).succeeds();

    let mut unknown = zkey.clone();
    unknown.sections.push((77, vec![1, 2, 3]));
    prove_bytes(&files, "--zkey", &unknown.to_bytes()).expect(0, &["section 77"]);

    let mut double = zkey.clone();
    double.sections.push((5, zkey.clone().section(5).clone()));
    prove_bytes(&files, "--zkey", &double.to_bytes()).expect(3, &["section 5 (A)", "twice"]);

    let mut missing = zkey.clone();
    missing.sections.retain(|(number, _)| *number != 6);
    prove_bytes(&files, "--zkey", &missing.to_bytes()).expect(3, &["section 6 (B1)"]);
}

/// FI-01: the ceremony transcript is not needed to prove.
#[test]
fn a_key_without_transcript_proves() {
    let files = Files::of("mul1");
    let mut zkey = Iden3::parse(&files.case.zkey().unwrap());
    zkey.sections.retain(|(number, _)| *number != 10);
    prove_bytes(&files, "--zkey", &zkey.to_bytes()).expect(0, &["transcript"]);
}

/// FI-02, FI-17: counts of the header are compared with the sections before any allocation.
#[test]
fn hostile_counts_are_refused() {
    let files = Files::of("mul1");
    let zkey = Iden3::parse(&files.case.zkey().unwrap());
    let header_end = zkey.clone().section(2).len() - (3 * 96 + 3 * 192);
    // nVars, nPublic, domainSize stand before the points.
    for (field, values) in [
        (12, vec![0, (1u32 << 31) + 1, u32::MAX]),
        (8, vec![1 << 31, u32::MAX]),
        (4, vec![0, 1, 3, 1 << 31, u32::MAX]),
    ] {
        for value in values {
            let mut hostile = zkey.clone();
            let at = header_end - field;
            hostile.section(2)[at..at + 4].copy_from_slice(&value.to_le_bytes());
            prove_bytes(&files, "--zkey", &hostile.to_bytes()).expect(3, &["hostile"]);
        }
    }
    let mut hostile = zkey.clone();
    hostile.section(4)[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    prove_bytes(&files, "--zkey", &hostile.to_bytes()).expect(3, &["section 4 (coefficients)"]);

    for section in [1, 2] {
        let mut hostile = Iden3::parse(&files.case.r1cs().unwrap());
        let body = hostile.section(section);
        let at = if section == 1 { body.len() - 4 } else { 0 };
        body[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        prove_bytes(&files, "--r1cs", &hostile.to_bytes()).expect(3, &["hostile"]);
    }
}

/// FI-34: entries of the coefficient section are checked before they index anything.
#[test]
fn coefficient_entries_out_of_range_are_named() {
    let files = Files::of("mul1");
    let zkey = Iden3::parse(&files.case.zkey().unwrap());
    for (field, words) in [
        (0, "matrix 0 or 1"),
        (4, "a row below"),
        (8, "a signal below"),
    ] {
        let mut hostile = zkey.clone();
        // Of the second entry.
        let at = 4 + 44 + field;
        hostile.section(4)[at..at + 4].copy_from_slice(&100u32.to_le_bytes());
        prove_bytes(&files, "--zkey", &hostile.to_bytes()).expect(3, &["entry 1", words]);
    }
}

/// FI-28: values that are not below their modulus are refused with their place.
#[test]
fn values_above_the_modulus_are_named() {
    let files = Files::of("mul1");
    let mut wtns = Iden3::parse(&files.case.wtns().unwrap());
    wtns.section(2)[32..64].fill(0xff);
    prove_bytes(&files, "--wtns", &wtns.to_bytes()).expect(3, &["value 1", "below the modulus r"]);

    let mut r1cs = Iden3::parse(&files.case.r1cs().unwrap());
    r1cs.section(2)[8..40].fill(0xff);
    prove_bytes(&files, "--r1cs", &r1cs.to_bytes()).expect(3, &["constraint 0", "in A"]);

    let zkey = Iden3::parse(&files.case.zkey().unwrap());
    let mut coefficient = zkey.clone();
    coefficient.section(4)[16..48].fill(0xff);
    prove_bytes(&files, "--zkey", &coefficient.to_bytes()).expect(3, &["entry 0"]);
    for (section, name) in [
        (3, "IC"),
        (5, "A"),
        (6, "B1"),
        (7, "B2"),
        (8, "C"),
        (9, "H"),
    ] {
        let mut point = zkey.clone();
        point.section(section)[..48].fill(0xff);
        let place = format!("section {section} ({name}), point 0");
        prove_bytes(&files, "--zkey", &point.to_bytes()).expect(3, &[&place]);
        // Below the modulus, and not on the curve.
        let mut point = zkey.clone();
        point.section(section)[0] ^= 1;
        prove_bytes(&files, "--zkey", &point.to_bytes()).expect(3, &[&place]);
    }
}

/// FI-29: a wrong section length while all values are there is a known defect of a generator.
#[test]
fn the_length_defect_of_witnesses_is_named() {
    let files = Files::of("mul1");
    let bytes = files.case.wtns().unwrap();
    let at = bytes.len() - 32 * 4 - 8;
    let right = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    for wrong in [right - 32, right + 32, right << 32] {
        let mut defect = bytes.clone();
        defect[at..at + 8].copy_from_slice(&wrong.to_le_bytes());
        prove_bytes(&files, "--wtns", &defect).expect(3, &["JavaScript witness generator"]);
        let scratch = Scratch::new();
        let wtns = scratch.file("defect.wtns", &defect);
        let inputs = [("--zkey", files.zkey.as_path()), ("--wtns", &wtns)];
        scratch
            .prove(&inputs, &["--accept-wtns-length-defect"])
            .expect(0, &["accepted as asked"]);
    }
    // FI-10: fewer values than the header says are no such defect.
    let mut short = Iden3::parse(&bytes);
    short.section(2).truncate(64);
    prove_bytes(&files, "--wtns", &short.to_bytes()).expect(3, &["section 2"]);
    short.section(2).resize(32 * 9, 0);
    prove_bytes(&files, "--wtns", &short.to_bytes()).expect(3, &["section 2"]);
}

/// FI-35: Groth16 would not enforce custom gates.
#[test]
fn custom_gates_are_refused() {
    let files = Files::of("mul1");
    for section in [4, 5] {
        let mut r1cs = Iden3::parse(&files.case.r1cs().unwrap());
        r1cs.sections
            .push((section, vec![1, 0, 0, 0, b'x', 0, 0, 0, 0, 0]));
        prove_bytes(&files, "--r1cs", &r1cs.to_bytes()).expect(3, &["custom gates", "PLONK"]);
    }
}

/// Files given for each other are explained.
#[test]
fn swapped_files_are_explained() {
    let files = Files::of("mul1");
    let scratch = Scratch::new();
    let vk = files.path("verification_key.json");
    for (flag, path, expected, found) in [
        (
            "--zkey",
            &files.wtns,
            "a snarkjs key (.zkey)",
            "a witness (.wtns)",
        ),
        (
            "--wtns",
            &files.r1cs,
            "a witness (.wtns)",
            "a constraint system (.r1cs)",
        ),
        (
            "--r1cs",
            &files.zkey,
            "a constraint system (.r1cs)",
            "a snarkjs key (.zkey)",
        ),
        (
            "--zkey",
            &vk,
            "a snarkjs key (.zkey)",
            "a verification key in JSON",
        ),
    ] {
        prove_with(&files, &scratch, flag, path).expect(3, &[expected, found, "swapped"]);
    }
    let packed = files.case.dir.join("circuit.zkey.gz");
    if packed.is_file() {
        prove_with(&files, &scratch, "--zkey", &packed).expect(3, &["decompress"]);
    }
}

/// The key of another curve is named as such.
#[test]
fn another_curve_is_refused() {
    let files = Files::of("mul1");
    for (flag, bytes, section) in [
        ("--wtns", files.case.wtns().unwrap(), 1),
        ("--r1cs", files.case.r1cs().unwrap(), 1),
        ("--zkey", files.case.zkey().unwrap(), 2),
    ] {
        let mut other = Iden3::parse(&bytes);
        // A bit of the modulus.
        other.section(section)[9] ^= 1;
        prove_bytes(&files, flag, &other.to_bytes()).expect(3, &["hostile"]);
    }
}

/// FI-37 for iden3 files: trailing bytes are a note, refused under --strict.
#[test]
fn trailing_bytes_are_noted() {
    let files = Files::of("mul1");
    let scratch = Scratch::new();
    let mut bytes = files.case.zkey().unwrap();
    bytes.extend([0; 5]);
    let zkey = scratch.file("tail.zkey", bytes);
    let inputs = [("--zkey", zkey.as_path()), ("--wtns", &files.wtns)];
    let run = scratch.prove(&inputs, &["--json"]).expect(0, &["WARN"]);
    assert_eq!(run.json()["notes"].as_array().unwrap().len(), 1, "{run:#?}");
    let scratch = Scratch::new();
    scratch.prove(&inputs, &["--strict"]).expect(3, &["strict"]);
}
