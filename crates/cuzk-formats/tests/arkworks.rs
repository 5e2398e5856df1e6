//! arkworks keys: ark-serialize as the oracle, and what must be refused.

mod keys;

use ark_bls12_381::{Bls12_381, Fr as ArkFr};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, SynthesisError, Variable,
};
use ark_serialize::{CanonicalDeserialize as _, CanonicalSerialize};
use ark_std::rand::{SeedableRng as _, rngs::StdRng};
use cuzk_field::encoding::PointEncoding as _;
use cuzk_field::{G1Affine, G2Affine};
use cuzk_formats::arkworks::{
    Compression, read_header, read_proving_key, read_verifying_key, write_proving_key,
    write_verifying_key,
};
use cuzk_formats::{
    BytesSource, Error, ErrorKind, FileKind, KeyFlavour, LoadOptions, NoteKind, ProvingKey,
    QueryLayout, VerifyingKey, sniff,
};
use keys::{compact_key, full_key, g1, in_subgroup, outside, patched, strict};

type ArkKey = ark_groth16::ProvingKey<Bls12_381>;
type ArkVk = ark_groth16::VerifyingKey<Bls12_381>;

const FORMS: [Compression; 2] = [Compression::Compressed, Compression::Uncompressed];
const INPUTS: usize = 3;
const AUX: usize = 7;
const DOMAIN: usize = 16;

fn lax() -> LoadOptions<'static> {
    LoadOptions::default()
}

fn g1s(points: &[G1Affine]) -> Vec<ark_bls12_381::G1Affine> {
    points.iter().map(|p| (*p).into()).collect()
}

fn ark_vk(key: &VerifyingKey) -> ArkVk {
    ArkVk {
        alpha_g1: key.alpha_g1.into(),
        beta_g2: key.beta_g2.into(),
        gamma_g2: key.gamma_g2.into(),
        delta_g2: key.delta_g2.into(),
        gamma_abc_g1: g1s(&key.gamma_abc_g1),
    }
}

fn ark_key(key: &ProvingKey) -> ArkKey {
    ArkKey {
        vk: ark_vk(&key.vk),
        beta_g1: key.beta_g1.into(),
        delta_g1: key.delta_g1.into(),
        a_query: g1s(&key.a_query),
        b_g1_query: g1s(&key.b_g1_query),
        b_g2_query: key.b_g2_query.iter().map(|p| (*p).into()).collect(),
        h_query: g1s(&key.h_query),
        l_query: g1s(&key.l_query),
    }
}

/// As ark-serialize writes it.
fn theirs(value: &impl CanonicalSerialize, form: Compression) -> Vec<u8> {
    let mut out = Vec::new();
    match form {
        Compression::Compressed => value.serialize_compressed(&mut out).unwrap(),
        Compression::Uncompressed => value.serialize_uncompressed(&mut out).unwrap(),
    }
    out
}

fn write(key: &ProvingKey, form: Compression) -> Vec<u8> {
    let mut out = Vec::new();
    write_proving_key(key, form, &mut out).unwrap();
    out
}

fn read(bytes: &[u8]) -> Result<ProvingKey, Error> {
    read_proving_key(&BytesSource::new("pk.ark", bytes), &lax()).map(|file| file.key)
}

/// x^3 + x + 5 = out, with a wire more that nothing uses.
#[derive(Clone)]
struct Cubic;

impl ConstraintSynthesizer<ArkFr> for Cubic {
    fn generate_constraints(self, cs: ConstraintSystemRef<ArkFr>) -> Result<(), SynthesisError> {
        let value = |v: u64| move || Ok(ArkFr::from(v));
        let out = cs.new_input_variable(value(35))?;
        let x = cs.new_witness_variable(value(3))?;
        let _unused = cs.new_witness_variable(value(99))?;
        let square = cs.new_witness_variable(value(9))?;
        let cube = cs.new_witness_variable(value(27))?;
        let lc = |v: Variable| LinearCombination::from(v);
        cs.enforce_r1cs_constraint(|| lc(x), || lc(x), || lc(square))?;
        cs.enforce_r1cs_constraint(|| lc(square), || lc(x), || lc(cube))?;
        let sum = lc(cube) + x + (ArkFr::from(5u64), Variable::One);
        cs.enforce_r1cs_constraint(|| sum.clone(), || lc(Variable::One), || lc(out))
    }
}

fn cubic_key() -> ArkKey {
    let mut rng = StdRng::seed_from_u64(7);
    ark_groth16::Groth16::<Bls12_381>::generate_random_parameters_with_reduction(Cubic, &mut rng)
        .unwrap()
}

#[test]
fn bytes_are_those_of_arkworks() {
    for (inputs, aux, domain) in [(1, 0, 1), (1, 1, 2), (2, 0, 2), (3, 7, 16), (5, 4000, 8)] {
        let key = full_key(inputs, aux, domain);
        for form in FORMS {
            let bytes = write(&key, form);
            assert!(bytes == theirs(&ark_key(&key), form), "{form:?}");
            assert_eq!(sniff(&bytes), Some(FileKind::ArkworksProvingKey));
            let file = read_proving_key(&bytes, &strict()).unwrap();
            assert!(file.key == key && file.notes.is_empty());
            assert_eq!(file.key.flavour, KeyFlavour::LIBSNARK);
            assert_eq!(file.key.query_layout, QueryLayout::Full);
            let header = file.header;
            assert_eq!(read_header(&bytes, &strict()).unwrap().0, header);
            assert_eq!(header.compression, form);
            assert_eq!(header.num_variables, (inputs + aux) as u64);
            assert_eq!(header.domain_size, domain as u64);
        }
    }
}

#[test]
fn keys_of_ark_groth16_come_back() {
    let key = cubic_key();
    for form in FORMS {
        let bytes = theirs(&key, form);
        let file = read_proving_key(&bytes, &in_subgroup()).unwrap();
        assert!(file.notes.is_empty(), "{:?}", file.notes);
        assert_eq!((file.header.num_inputs, file.header.num_variables), (2, 6));
        assert_eq!(file.key.domain_size, 8);
        assert!(file.key.a_query.iter().any(G1Affine::is_infinity));
        assert!(write(&file.key, form) == bytes);
        assert!(ark_key(&file.key) == key);
        let bytes = theirs(&key.vk, form);
        let file = read_verifying_key(&bytes, &in_subgroup()).unwrap();
        assert!(ark_vk(&file.key) == key.vk);
    }
    // And ark-serialize reads what we write.
    let ours = read(&theirs(&key, Compression::Compressed)).unwrap();
    let bytes = write(&ours, Compression::Compressed);
    assert!(ArkKey::deserialize_compressed(&bytes[..]).unwrap() == key);
    let bytes = write(&ours, Compression::Uncompressed);
    assert!(ArkKey::deserialize_uncompressed(&bytes[..]).unwrap() == key);
}

#[test]
fn verifying_keys_come_back() {
    let key = full_key(INPUTS, AUX, DOMAIN).vk;
    for form in FORMS {
        let mut bytes = Vec::new();
        write_verifying_key(&key, form, &mut bytes).unwrap();
        assert_eq!(bytes, theirs(&ark_vk(&key), form));
        assert_eq!(sniff(&bytes), Some(FileKind::ArkworksVerifyingKey));
        let file = read_verifying_key(&bytes, &strict()).unwrap();
        assert_eq!((file.key, file.compression), (key.clone(), form));
        for end in (0..bytes.len()).step_by(11) {
            assert!(read_verifying_key(&bytes[..end], &lax()).is_err(), "{end}");
        }
        // A proving key begins with a verifying key.
        let bytes = write(&full_key(INPUTS, AUX, DOMAIN), form);
        let file = read_verifying_key(&bytes, &lax()).unwrap();
        assert_eq!(file.key, key);
        assert_eq!(file.notes[0].kind, NoteKind::TrailingBytes);
        let error = read_verifying_key(&bytes, &strict()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Strict);
    }
}

/// WP-29: one element less in each array; ark-groth16 would prove, wrongly.
#[test]
fn wp_29_short_arrays_are_refused() {
    type Change = fn(&mut ArkKey);
    let changes: [(Change, &str); 6] = [
        (
            |key| {
                key.l_query.pop();
            },
            "a_query",
        ),
        (
            |key| {
                key.a_query.pop();
            },
            "a_query",
        ),
        (
            |key| {
                key.b_g1_query.pop();
            },
            "b_g2_query",
        ),
        (
            |key| {
                key.b_g2_query.pop();
            },
            "b_g2_query",
        ),
        (
            |key| {
                key.h_query.pop();
            },
            "h_query",
        ),
        (
            |key| {
                key.vk.gamma_abc_g1.pop();
            },
            "a_query",
        ),
    ];
    for key in [cubic_key(), ark_key(&full_key(INPUTS, AUX, DOMAIN))] {
        for (change, part) in changes {
            for form in FORMS {
                let mut short = key.clone();
                change(&mut short);
                let bytes = theirs(&short, form);
                let error = read(&bytes).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Inconsistent, "{error}");
                assert_eq!(error.place().name.as_deref(), Some(part), "{error}");
                assert!(read_header(&bytes, &lax()).is_err());
            }
        }
    }
    // Both B queries short alike.
    let mut key = cubic_key();
    key.b_g1_query.pop();
    key.b_g2_query.pop();
    let error = read(&theirs(&key, Compression::Compressed)).unwrap_err();
    assert_eq!(error.place().name.as_deref(), Some("b_g1_query"));
    // Fewer H points than inputs need.
    let mut key = ark_key(&full_key(5, 3, 8));
    key.h_query.truncate(3);
    let error = read(&theirs(&key, Compression::Compressed)).unwrap_err();
    assert_eq!(error.place().name.as_deref(), Some("h_query"));
}

/// WP-04: the points of a zkey in arkworks' format.
#[test]
fn wp_04_keys_converted_from_a_zkey_are_refused() {
    for domain in [2, 16, 256] {
        let mut key = full_key(2, AUX, domain);
        key.h_query.push(g1(8));
        let error = read(&theirs(&ark_key(&key), Compression::Compressed)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Inconsistent);
        assert_eq!(error.place().name.as_deref(), Some("h_query"));
        assert_eq!(error.found(), format!("{domain} points"));
        let advice = error.advice().unwrap();
        assert!(advice.contains("circom zkey") && advice.contains("H basis"));
        // Nor is such a key written.
        key.flavour = KeyFlavour::CIRCOM;
        let error = write_proving_key(&key, FORMS[0], &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

/// FI-16: a length prefix is compared with the bytes left before anything is allocated.
#[test]
fn fi_16_hostile_lengths_are_refused() {
    let key = full_key(INPUTS, AUX, DOMAIN);
    for form in FORMS {
        let bytes = write(&key, form);
        let (g1, g2) = match form {
            Compression::Compressed => (48, 96),
            Compression::Uncompressed => (96, 192),
        };
        let variables = INPUTS + AUX;
        let mut at = g1 + 3 * g2;
        let mut prefixes = vec![(at, "vk.gamma_abc_g1")];
        at += 8 + INPUTS * g1 + 2 * g1;
        for (len, part) in [
            (variables * g1, "a_query"),
            (variables * g1, "b_g1_query"),
            (variables * g2, "b_g2_query"),
            ((DOMAIN - 1) * g1, "h_query"),
            (AUX * g1, "l_query"),
        ] {
            prefixes.push((at, part));
            at += 8 + len;
        }
        assert_eq!(at, bytes.len());
        for (at, part) in prefixes {
            for hostile in [u64::MAX, 1 << 60, 1 << 58, 1 << 32, u64::MAX / 96 + 1] {
                let damaged = patched(&bytes, at, &hostile.to_le_bytes());
                let error = read(&damaged).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Truncated, "{part}");
                assert_eq!(error.place().name.as_deref(), Some(part));
                assert_eq!(error.place().offset, Some(at as u64));
            }
            let found = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            for wrong in [0, found - 1, found + 1] {
                let damaged = patched(&bytes, at, &wrong.to_le_bytes());
                assert!(read(&damaged).is_err(), "{part} {wrong}");
            }
        }
    }
}

#[test]
fn fi_32_cut_files_are_refused() {
    let key = full_key(INPUTS, AUX, DOMAIN);
    for form in FORMS {
        let bytes = write(&key, form);
        let (g1, g2) = match form {
            Compression::Compressed => (48, 96),
            Compression::Uncompressed => (96, 192),
        };
        let vk = g1 + 3 * g2 + 8 + INPUTS * g1;
        let mut ends: Vec<usize> = (0..bytes.len()).step_by(37).collect();
        ends.extend([
            g1,
            g1 + g2,
            vk - INPUTS * g1,
            vk,
            vk + 2 * g1,
            bytes.len() - 1,
        ]);
        for end in ends {
            let error = read(&bytes[..end]).unwrap_err();
            assert_eq!(error.file(), Some("pk.ark"));
            match error.kind() {
                ErrorKind::Truncated => {}
                // What is left is a whole file of another kind.
                ErrorKind::WrongFormat => assert!(end == vk || end % (g1 + g2) == 0, "{end}"),
                other => panic!("{end}: {other:?} {error}"),
            }
        }
    }
}

#[test]
fn damaged_bytes_are_found() {
    let key = full_key(INPUTS, AUX, DOMAIN);
    let bytes = write(&key, Compression::Uncompressed);
    for at in (0..bytes.len()).step_by(31) {
        for flip in [0x01, 0x40, 0x80] {
            let error = read(&patched(&bytes, at, &[bytes[at] ^ flip])).unwrap_err();
            assert_eq!(error.file(), Some("pk.ark"), "{at}");
        }
    }
    // Compressed, a damaged x may be another point's: the checked load finds it.
    let bytes = write(&key, Compression::Compressed);
    for at in (0..bytes.len()).step_by(31) {
        let damaged = patched(&bytes, at, &[bytes[at] ^ 0x01]);
        assert!(read_proving_key(&damaged, &in_subgroup()).is_err(), "{at}");
    }
}

/// FI-38: vital points, not those of queries.
#[test]
fn fi_38_identities() {
    let good = ark_key(&full_key(INPUTS, AUX, DOMAIN));
    type Change = fn(&mut ArkKey);
    let vital: [(Change, &str); 6] = [
        (
            |key| key.vk.alpha_g1 = G1Affine::INFINITY.into(),
            "vk.alpha_g1",
        ),
        (
            |key| key.vk.beta_g2 = G2Affine::INFINITY.into(),
            "vk.beta_g2",
        ),
        (
            |key| key.vk.gamma_g2 = G2Affine::INFINITY.into(),
            "vk.gamma_g2",
        ),
        (
            |key| key.vk.delta_g2 = G2Affine::INFINITY.into(),
            "vk.delta_g2",
        ),
        (|key| key.beta_g1 = G1Affine::INFINITY.into(), "beta_g1"),
        (|key| key.delta_g1 = G1Affine::INFINITY.into(), "delta_g1"),
    ];
    for (change, part) in vital {
        for form in FORMS {
            let mut bad = good.clone();
            change(&mut bad);
            let error = read(&theirs(&bad, form)).unwrap_err();
            assert_eq!(error.place().name.as_deref(), Some(part), "{error}");
            if part == "vk.alpha_g1" {
                continue;
            }
            assert_eq!(error.kind(), ErrorKind::BadPoint);
            assert!(error.found().contains("identity"));
        }
    }
    // An identity for an input is odd, in queries it is the rule.
    let mut odd = full_key(INPUTS, AUX, DOMAIN);
    odd.vk.gamma_abc_g1[2] = G1Affine::INFINITY;
    odd.a_query.fill(G1Affine::INFINITY);
    odd.l_query.fill(G1Affine::INFINITY);
    let bytes = write(&odd, Compression::Compressed);
    let file = read_proving_key(&bytes, &lax()).unwrap();
    assert!(file.key == odd);
    assert_eq!(file.notes[0].kind, NoteKind::UnboundPublicInput);
    assert_eq!(
        read_proving_key(&bytes, &strict()).unwrap_err().kind(),
        ErrorKind::Strict
    );
}

#[test]
fn bytes_behind_the_key_are_a_note() {
    for form in FORMS {
        let mut bytes = write(&full_key(INPUTS, AUX, DOMAIN), form);
        bytes.push(0);
        let file = read_proving_key(&bytes, &lax()).unwrap();
        assert_eq!(
            (file.notes[0].kind, file.header.tail_bytes),
            (NoteKind::TrailingBytes, 1)
        );
        assert_eq!(
            read_proving_key(&bytes, &strict()).unwrap_err().kind(),
            ErrorKind::Strict
        );
    }
}

#[test]
fn points_outside_the_subgroup_are_found_on_request() {
    let mut key = full_key(INPUTS, AUX, DOMAIN);
    key.b_g1_query[5] = outside();
    for form in FORMS {
        let bytes = write(&key, form);
        assert!(read(&bytes).unwrap() == key);
        let error = read_proving_key(&bytes, &in_subgroup()).unwrap_err();
        assert_eq!(error.place().name.as_deref(), Some("b_g1_query"));
        assert_eq!(error.place().entry, Some(("point", 5)));
    }
}

#[test]
fn beta_and_delta_must_be_the_same_in_both_groups() {
    let mut key = ark_key(&full_key(INPUTS, AUX, DOMAIN));
    key.delta_g1 = g1(1).into();
    let error = read(&theirs(&key, Compression::Compressed)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Inconsistent);
    assert!(error.advice().unwrap().contains("damaged"));
}

#[test]
fn swapped_files_are_named() {
    let mut params = Vec::new();
    cuzk_formats::bellman::write_params(&compact_key(INPUTS, AUX, DOMAIN), &mut params).unwrap();
    let proof = cuzk_formats::proof::to_bytes(&keys::proof()).to_vec();
    let vk = theirs(&cubic_key().vk, Compression::Compressed);
    for (bytes, kind) in [
        (params.clone(), FileKind::BellmanParams),
        (proof, FileKind::ProofBytes),
        (vk, FileKind::ArkworksVerifyingKey),
        (b"wtns\x02\0\0\0".to_vec(), FileKind::Wtns),
        (b"{\"pi_a\": []}".to_vec(), FileKind::ProofJson),
    ] {
        let error = read(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongFormat, "{error}");
        assert_eq!(error.found(), kind.name());
    }
    // The other way round.
    for form in FORMS {
        let bytes = write(&full_key(INPUTS, AUX, DOMAIN), form);
        let error = cuzk_formats::bellman::read_params(&bytes, &lax()).unwrap_err();
        assert_eq!(error.found(), FileKind::ArkworksProvingKey.name());
        let error = cuzk_formats::zkey::read(&bytes, &lax()).unwrap_err();
        assert!(
            error.to_string().contains("arkworks proving key"),
            "{error}"
        );
    }
    assert_eq!(
        G1Affine::from_zcash_uncompressed(&params[..96]),
        Ok(compact_key(INPUTS, AUX, DOMAIN).vk.alpha_g1)
    );
    assert!(read(&[]).is_err());
}
