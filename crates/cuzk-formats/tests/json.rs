//! snarkjs JSON: known files, round trips, and what must be refused.

use cuzk_field::{Field as _, Fp, Fp2, G1Affine, G1Xyzz, G2Affine, G2Xyzz, Scalar};
use cuzk_formats::json::{
    PUBLIC_VALUES_MAX, kind_of, proof_to_string, public_to_string, read_proof, read_public,
    read_verification_key, verification_key_to_string,
};
use cuzk_formats::{
    BytesSource, Error, ErrorKind, FileKind, LoadOptions, Note, NoteKind, Proof, VerifyingKey,
};

const KEY: &str = include_str!("data/verification_key.json");
const PROOF: &str = include_str!("data/proof.json");
const PUBLIC: &str = include_str!("data/public.json");
const P: &str = "4002409555221667393417789825735904156556882819939007885332058136124031650490837864442687629129015664037894272559787";
const R: &str = "52435875175126190479447740508185965837690552500527637822603658699938581184513";

fn strict() -> LoadOptions<'static> {
    LoadOptions {
        strict: true,
        ..LoadOptions::default()
    }
}

fn key(text: &str) -> Result<(VerifyingKey, Vec<Note>), Error> {
    let bytes = BytesSource::new("vk.json", text.as_bytes());
    read_verification_key(&bytes, &LoadOptions::default())
}

fn proof(text: &str) -> Result<(Proof, Vec<Note>), Error> {
    let bytes = BytesSource::new("proof.json", text.as_bytes());
    read_proof(&bytes, &LoadOptions::default())
}

fn public(text: &str) -> Result<(Vec<Scalar>, Vec<Note>), Error> {
    let bytes = BytesSource::new("public.json", text.as_bytes());
    read_public(&bytes, &LoadOptions::default())
}

fn g1(k: u64) -> G1Affine {
    G1Xyzz::from(G1Affine::generator())
        .mul_scalar(&Scalar::from(k))
        .to_affine()
}

fn g2(k: u64) -> G2Affine {
    G2Xyzz::from(G2Affine::generator())
        .mul_scalar(&Scalar::from(k))
        .to_affine()
}

fn made_key(ic: &[u64]) -> VerifyingKey {
    VerifyingKey {
        alpha_g1: g1(2),
        beta_g2: g2(3),
        gamma_g2: g2(1),
        delta_g2: g2(5),
        gamma_abc_g1: ic.iter().map(|k| g1(*k)).collect(),
    }
}

fn made_proof() -> Proof {
    Proof {
        a: g1(7),
        b: g2(8),
        c: g1(9),
    }
}

/// The first coordinate of `name`'s point, quotes included.
fn first_number(text: &str, name: &str) -> String {
    let member = text.find(&format!("\"{name}\"")).unwrap();
    let value = member + text[member..].find(':').unwrap();
    let start = value + text[value..].find('"').unwrap();
    let end = start + 1 + text[start + 1..].find('"').unwrap();
    text[start..=end].to_owned()
}

#[test]
fn files_of_snarkjs_come_back_byte_for_byte() {
    let (read_key, notes) = key(KEY).unwrap();
    assert_eq!((read_key.num_public(), notes.len()), (1, 0));
    // This holds e(alpha, beta) too, which the reader did not take from the file.
    assert_eq!(verification_key_to_string(&read_key).unwrap(), KEY);
    let (read_proof, notes) = proof(PROOF).unwrap();
    assert!(notes.is_empty());
    assert_eq!(proof_to_string(&read_proof), PROOF);
    let (values, notes) = public(PUBLIC).unwrap();
    assert_eq!((values.len(), notes.len()), (1, 0));
    assert_eq!(public_to_string(&values).unwrap(), PUBLIC);
}

#[test]
fn made_values_come_back() {
    for ic in [&[1][..], &[1, 2, 3], &[0; 4]] {
        let made = made_key(ic);
        let text = verification_key_to_string(&made).unwrap();
        assert_eq!(key(&text).unwrap().0, made);
    }
    assert_eq!(
        proof(&proof_to_string(&made_proof())).unwrap().0,
        made_proof()
    );
    for values in [
        vec![],
        vec![Scalar::ZERO],
        vec![Scalar::MINUS_ONE, Scalar::ONE, Scalar::from(u64::MAX)],
    ] {
        assert_eq!(
            public(&public_to_string(&values).unwrap()).unwrap().0,
            values
        );
    }
}

/// FI-11: nothing behind the text, and another parser reads it.
#[test]
fn fi_11_the_output_is_pure_json() {
    for text in [
        verification_key_to_string(&made_key(&[1, 0])).unwrap(),
        proof_to_string(&made_proof()),
        public_to_string(&[]).unwrap(),
        public_to_string(&[Scalar::ONE]).unwrap(),
    ] {
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        assert!(text.ends_with(['}', ']']), "{text}");
    }
    let ten = public_to_string(&[Scalar::from(10)]).unwrap();
    assert_eq!(ten, "[\n \"10\"\n]");
}

/// FI-11, the other way round: files of tools that had the fault say what is wrong.
#[test]
fn fi_11_zero_bytes_behind_the_text_are_named() {
    let error = proof(&format!("{PROOF}\0\0")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadText);
    assert_eq!(error.place().offset, Some(PROOF.len() as u64));
    assert!(error.advice().unwrap().contains("zero bytes"));
}

#[test]
fn fi_07_curve_names() {
    for name in ["bls12381", "bls12-381", "BLS12_381", "Bls12 381"] {
        let text = KEY.replace("\"bls12381\"", &format!("\"{name}\""));
        assert!(key(&text).is_ok(), "{name}");
        let text = PROOF.replace("\"bls12381\"", &format!("\"{name}\""));
        assert!(proof(&text).is_ok(), "{name}");
    }
    for name in ["bn128", "BN254", "alt-bn128", "", "bls12377", "bls123811"] {
        let text = KEY.replace("\"bls12381\"", &format!("\"{name}\""));
        let error = key(&text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongCurve, "{name}");
        let text = PROOF.replace("\"bls12381\"", &format!("\"{name}\""));
        let error = proof(&text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongCurve, "{name}");
        assert!(error.found().contains(name));
    }
    // Not named, as rapidsnark leaves it: the points decide.
    let text = KEY.replace(" \"curve\": \"bls12381\",\n", "");
    assert_eq!(key(&text).unwrap(), key(KEY).unwrap());
    let text = PROOF.replace(",\n \"curve\": \"bls12381\"", "");
    assert_eq!(proof(&text).unwrap(), proof(PROOF).unwrap());
    let text = text.replace(&first_number(&text, "pi_a"), "\"1\"");
    assert_eq!(proof(&text).unwrap_err().kind(), ErrorKind::BadPoint);
}

/// The curve is named at the end of a proof: it is the fault reported all the same.
#[test]
fn fi_07_another_curve_is_told_before_its_points_are() {
    let text = PROOF
        .replace("bls12381", "bn128")
        .replace(&first_number(PROOF, "pi_a"), "\"1\"");
    assert_eq!(proof(&text).unwrap_err().kind(), ErrorKind::WrongCurve);
}

#[test]
fn other_protocols_are_refused() {
    for name in ["plonk", "fflonk", "Groth16", ""] {
        let text = KEY.replace("groth16", name);
        assert_eq!(key(&text).unwrap_err().kind(), ErrorKind::Unsupported);
    }
    let text = KEY.replace(" \"protocol\": \"groth16\",\n", "");
    let (read, notes) = key(&text).unwrap();
    assert_eq!(read, key(KEY).unwrap().0);
    assert_eq!(notes[0].kind, NoteKind::MissingOptional);
    let error = read_verification_key(&text.into_bytes(), &strict()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Strict);
}

#[test]
fn swapped_files_are_named() {
    type Read = fn(&str) -> ErrorKind;
    let readers: [(Read, &str); 3] = [
        (|text| key(text).unwrap_err().kind(), KEY),
        (|text| proof(text).unwrap_err().kind(), PROOF),
        (|text| public(text).unwrap_err().kind(), PUBLIC),
    ];
    for (read, own) in readers {
        for text in [
            KEY,
            PROOF,
            PUBLIC,
            "{}",
            "{\"a\": [1, 2]}",
            "zkey\u{1}",
            "PK\u{3}\u{4}",
        ] {
            if text != own {
                assert_eq!(read(text), ErrorKind::WrongFormat, "{text:.40}");
            }
        }
    }
    let error = proof(KEY).unwrap_err();
    assert_eq!(error.found(), "a verification key in JSON");
    assert_eq!(error.file(), Some("proof.json"));
    assert_eq!(
        kind_of(KEY.as_bytes()),
        Ok(Some(FileKind::VerificationKeyJson))
    );
    assert_eq!(kind_of(PROOF.as_bytes()), Ok(Some(FileKind::ProofJson)));
    assert_eq!(kind_of(PUBLIC.as_bytes()), Ok(Some(FileKind::PublicJson)));
    assert_eq!(kind_of(b"{\"log\": true}"), Ok(None));
    assert!(kind_of(b"zkey").is_err());
}

/// FI-22: no public values.
#[test]
fn fi_22_no_public_values() {
    for text in ["[]", "[ ]", "[\n]", " \n[\t\r\n] "] {
        let (values, notes) = public(text).unwrap();
        assert!(values.is_empty() && notes.is_empty());
    }
    let (values, notes) = public("null").unwrap();
    assert!(values.is_empty());
    assert_eq!(notes[0].kind, NoteKind::Convention);
    let error = read_public(&b"null".to_vec(), &strict()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Strict);
    assert_eq!(public_to_string(&[]).unwrap(), "[\n]");
    let made = made_key(&[4]);
    let (read, _) = key(&verification_key_to_string(&made).unwrap()).unwrap();
    assert_eq!(read.num_public(), 0);
}

/// FI-28 for texts: the same residue written another way is another text.
#[test]
fn numbers_not_below_the_modulus_are_refused() {
    let error = public(&format!("[\"1\", \"{R}\"]")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotCanonical);
    assert_eq!(error.place().entry, Some(("public value", 1)));
    assert_eq!(error.place().offset, Some(6));
    let huge = "9".repeat(5000);
    for number in [
        P,
        &"9".repeat(115),
        &"9".repeat(116),
        &"9".repeat(117),
        &huge,
    ] {
        let text = PROOF.replace(&first_number(PROOF, "pi_a"), &format!("\"{number}\""));
        let error = proof(&text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotCanonical);
        assert_eq!(error.place().name.as_deref(), Some("pi_a"));
        let text = format!("[\"{number}\"]");
        assert_eq!(public(&text).unwrap_err().kind(), ErrorKind::NotCanonical);
    }
}

#[test]
fn only_plain_decimals_are_numbers() {
    for number in [
        "\"\"",
        "\"+1\"",
        "\"-1\"",
        "\"1e3\"",
        "\"1.0\"",
        "\"0x10\"",
        "\"01\"",
        "\"00\"",
        "\" 1\"",
        "\"1 \"",
        "\"1n\"",
        "\"1_000\"",
        "\"\\u0031\"",
        "\"\u{661}\"",
        "\"NaN\"",
        "1",
        "1.5",
        "-1",
        "true",
        "null",
        "[]",
        "[\"1\"]",
        "{}",
        "\"1",
        "'1'",
    ] {
        let text = format!("[{number}]");
        let error = public(&text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadText, "{number}");
        let text = PROOF.replace(&first_number(PROOF, "pi_b"), number);
        assert_eq!(proof(&text).unwrap_err().kind(), ErrorKind::BadText);
    }
    let error = public("[\"0x10\"]").unwrap_err();
    assert!(error.advice().unwrap().contains("hexadecimal"));
}

#[test]
fn wrong_nesting_is_refused() {
    let x = first_number(PROOF, "pi_a");
    for (from, to) in [
        (x.clone(), format!("[{x}]")),
        (x.clone(), format!("{x}, {x}")),
        (format!("{x},"), String::new()),
    ] {
        let error = proof(&PROOF.replace(&from, &to)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadText, "{to}");
        assert_eq!(error.place().name.as_deref(), Some("pi_a"));
    }
    // A G1 point where a G2 point should stand, and the other way round.
    for (name, other) in [("pi_a", "pi_b"), ("pi_b", "pi_a")] {
        let text = PROOF
            .replace(&format!("\"{name}\""), "\"other\"")
            .replace(&format!("\"{other}\""), &format!("\"{name}\""))
            .replace("\"other\"", &format!("\"{other}\""));
        assert_eq!(proof(&text).unwrap_err().kind(), ErrorKind::BadText);
    }
    assert_eq!(public("[[\"1\"]]").unwrap_err().kind(), ErrorKind::BadText);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(public(&deep).unwrap_err().kind(), ErrorKind::BadText);
    let text = PROOF.replacen('{', &format!("{{\"x\": {deep},"), 1);
    assert_eq!(proof(&text).unwrap_err().kind(), ErrorKind::BadText);
}

#[test]
fn members_come_once_and_others_are_skipped() {
    let more = "{\"note\": {\"a\": [1, -2.5e+3, \"\\u00e9\\n\", true, false, null, {}]},";
    let text = PROOF.replacen('{', more, 1);
    assert_eq!(proof(&text).unwrap(), proof(PROOF).unwrap());
    for name in ["pi_a", "curve", "protocol"] {
        let text = PROOF.replacen('{', &format!("{{\"{name}\": \"bls12381\","), 1);
        let error = proof(&text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadText, "{name}");
        assert_eq!(error.place().name.as_deref(), Some(name));
    }
    // "pi_a" with an escape in it: other parsers would take it for the same name.
    let text = PROOF.replacen('{', "{\"\\u0070i_a\": [],", 1);
    assert_eq!(proof(&text).unwrap_err().kind(), ErrorKind::BadText);
    for name in [
        "nPublic",
        "vk_alpha_1",
        "vk_beta_2",
        "vk_gamma_2",
        "vk_delta_2",
        "IC",
    ] {
        let text = KEY.replace(&format!("\"{name}\""), "\"gone\"");
        let error = key(&text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadText);
        assert_eq!(error.expected(), format!("a member \"{name}\""));
    }
}

/// e(alpha, beta) is computed, so a file cannot choose it.
#[test]
fn alphabeta_is_never_trusted() {
    let number = first_number(KEY, "vk_alphabeta_12");
    let text = KEY.replace(&number, "\"1\"");
    assert_ne!(text, KEY);
    let (read, _) = key(&text).unwrap();
    assert_eq!(verification_key_to_string(&read).unwrap(), KEY);
    let text = KEY.replace("vk_alphabeta_12", "unknown");
    assert_eq!(key(&text).unwrap(), key(KEY).unwrap());
}

#[test]
fn jacobian_coordinates_are_accepted() {
    fn rows(values: [String; 3]) -> String {
        format!("[{}]", values.join(","))
    }
    let decimal = |x: Fp| {
        let value = num_bigint::BigUint::from_bytes_be(&x.to_be_bytes());
        format!("\"{value}\"")
    };
    let pair = |x: Fp2| format!("[{},{}]", decimal(x.c0), decimal(x.c1));
    let made = made_proof();
    let z = Fp::from(12345);
    let z2 = Fp2::new(Fp::from(3), -Fp::from(4));
    let a = rows([
        decimal(made.a.x * z.square()),
        decimal(made.a.y * z.square() * z),
        decimal(z),
    ]);
    let b = rows([
        pair(made.b.x * z2.square()),
        pair(made.b.y * z2.square() * z2),
        pair(z2),
    ]);
    let c = rows([decimal(made.c.x), decimal(made.c.y), decimal(Fp::ONE)]);
    let text = format!("{{\"pi_a\":{a},\"pi_b\":{b},\"pi_c\":{c},\"protocol\":\"groth16\"}}");
    assert_eq!(proof(&text).unwrap().0, made);
    // The same x and y under another z is another point, on no curve.
    let text = text.replace(&decimal(z), "\"12346\"");
    assert_eq!(proof(&text).unwrap_err().kind(), ErrorKind::BadPoint);
}

/// FI-38 for JSON: identities among the vital points and in proofs.
#[test]
fn fi_38_identities_are_refused() {
    let made = made_proof();
    for bad in [
        Proof { a: g1(0), ..made },
        Proof { b: g2(0), ..made },
        Proof { c: g1(0), ..made },
    ] {
        let error = proof(&proof_to_string(&bad)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadPoint);
        assert!(error.found().contains("identity"));
    }
    let good = made_key(&[1, 2]);
    for (bad, name) in [
        (
            VerifyingKey {
                alpha_g1: g1(0),
                ..good.clone()
            },
            "vk_alpha_1",
        ),
        (
            VerifyingKey {
                beta_g2: g2(0),
                ..good.clone()
            },
            "vk_beta_2",
        ),
        (
            VerifyingKey {
                gamma_g2: g2(0),
                ..good.clone()
            },
            "vk_gamma_2",
        ),
        (
            VerifyingKey {
                delta_g2: g2(0),
                ..good
            },
            "vk_delta_2",
        ),
    ] {
        let error = key(&verification_key_to_string(&bad).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadPoint);
        assert_eq!(error.place().name.as_deref(), Some(name));
    }
    // 0, 0, 1 is no way to write it.
    let x = first_number(PROOF, "pi_a");
    let y_at = PROOF.find(&x).unwrap() + x.len();
    let y = &PROOF[y_at + PROOF[y_at..].find('"').unwrap()..];
    let y = &y[..=y[1..].find('"').unwrap() + 1];
    let text = PROOF.replace(&x, "\"0\"").replace(y, "\"0\"");
    let error = proof(&text).unwrap_err();
    assert_eq!(error.found(), "the coordinates 0, 0");
}

/// WP-19, WP-20: an identity in IC leaves a public value unbound.
#[test]
fn wp_20_an_identity_in_ic_is_a_note_and_strictly_an_error() {
    let text = verification_key_to_string(&made_key(&[1, 0, 2, 0])).unwrap();
    let (read, notes) = key(&text).unwrap();
    assert!(read.gamma_abc_g1[1].is_infinity());
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0].kind, NoteKind::UnboundPublicInput);
    assert_eq!(notes[0].place.entry, Some(("point", 1)));
    assert!(
        notes[0].text.contains("public value 0 (counted from 0)"),
        "{}",
        notes[0]
    );
    let error = read_verification_key(&text.into_bytes(), &strict()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Strict);
}

/// WP-28 at the reader: nPublic and IC must agree. The count of values is compared by `verify`.
#[test]
fn wp_28_ic_and_npublic_must_agree() {
    for count in ["0", "2", "18446744073709551615"] {
        let text = KEY.replace("\"nPublic\": 1", &format!("\"nPublic\": {count}"));
        let error = key(&text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadLayout, "{count}");
    }
    for count in ["-1", "1.0", "1e0", "18446744073709551616"] {
        let text = KEY.replace("\"nPublic\": 1", &format!("\"nPublic\": {count}"));
        assert_eq!(key(&text).unwrap_err().kind(), ErrorKind::OutOfRange);
    }
    let text = KEY.replace("\"nPublic\": 1", "\"nPublic\": \"1\"");
    assert_eq!(key(&text).unwrap_err().kind(), ErrorKind::BadText);
    let start = KEY.find("\"IC\"").unwrap();
    let text = format!("{}\"IC\": []}}", &KEY[..start]);
    assert_eq!(key(&text).unwrap_err().kind(), ErrorKind::BadLayout);
}

#[test]
fn points_outside_the_subgroup_are_refused_on_request() {
    // (0, 2) has order three.
    let outside = G1Affine {
        x: Fp::ZERO,
        y: Fp::from(2),
    };
    let bad = Proof {
        c: outside,
        ..made_proof()
    };
    let text = proof_to_string(&bad);
    assert_eq!(proof(&text).unwrap().0, bad);
    let options = LoadOptions {
        subgroup_check: true,
        ..LoadOptions::default()
    };
    let error = read_proof(&text.into_bytes(), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadPoint);
    assert!(read_proof(&PROOF.as_bytes().to_vec(), &options).is_ok());
    assert!(read_verification_key(&KEY.as_bytes().to_vec(), &options).is_ok());
}

/// Every prefix of a file is refused, and no byte put anywhere makes a panic.
#[test]
fn fi_32_truncated_and_damaged_texts() {
    for end in 0..PROOF.len() {
        assert!(proof(&PROOF[..end]).is_err(), "{end}");
    }
    for end in (0..KEY.len()).step_by(7) {
        assert!(key(&KEY[..end]).is_err(), "{end}");
    }
    for end in 0..PUBLIC.len() {
        assert!(public(&PUBLIC[..end]).is_err(), "{end}");
    }
    let mut refused = 0;
    for at in 0..PROOF.len() {
        for byte in [
            0, b' ', b'"', b'0', b'7', b'[', b']', b',', b'{', b'\\', 0xff,
        ] {
            let mut bytes = PROOF.as_bytes().to_vec();
            let is_same = std::mem::replace(&mut bytes[at], byte) == byte;
            let read = read_proof(&bytes, &LoadOptions::default());
            match read {
                Ok((read, _)) => {
                    // White space, or a third coordinate scaled away, or an unnamed curve.
                    assert!(is_same || read == proof(PROOF).unwrap().0, "{at} {byte}");
                    serde_json::from_slice::<serde_json::Value>(&bytes).unwrap();
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > PROOF.len() * 8);
}

#[test]
fn texts_too_large_are_refused_unread() {
    struct Huge;
    impl cuzk_formats::ReadAt for Huge {
        fn name(&self) -> &str {
            "huge.json"
        }
        fn len(&self) -> u64 {
            1 << 40
        }
        fn read_exact_at(&self, _: u64, _: &mut [u8]) -> Result<(), Error> {
            panic!("read")
        }
    }
    let error = read_proof(&Huge, &LoadOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongFormat);
    assert_eq!(error.file(), Some("huge.json"));
}

/// A short text must not fill the memory: "0" takes four bytes and becomes 32.
#[test]
fn fi_16_public_values_are_bounded() {
    let text = format!("[{}\"0\"]", "\"0\",".repeat(PUBLIC_VALUES_MAX));
    let error = public(&text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    let text = format!("[{}\"0\"]", "\"0\",".repeat(PUBLIC_VALUES_MAX - 1));
    assert_eq!(public(&text).unwrap().0.len(), PUBLIC_VALUES_MAX);
}

/// What is written can be read: one limit for both.
#[test]
fn pf_07_public_values_are_written_up_to_what_is_read() {
    for count in [100_000, PUBLIC_VALUES_MAX] {
        let values = vec![Scalar::ONE; count];
        let text = public_to_string(&values).unwrap();
        assert_eq!(public(&text).unwrap().0, values);
    }
    let error = public_to_string(&vec![Scalar::ONE; PUBLIC_VALUES_MAX + 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    assert_eq!(error.expected(), "at most 524288 public values");
}
