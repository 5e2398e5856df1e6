//! Proof bytes: arkworks as the oracle, and what must be refused.

mod keys;

use ark_bls12_381::Bls12_381;
use ark_serialize::{CanonicalDeserialize as _, CanonicalSerialize as _};
use cuzk_field::{Fr, G1Xyzz, G2Xyzz, Scalar, pairing_product_is_one};
use cuzk_formats::proof::{read, read_all, to_bytes, to_uncompressed_bytes};
use cuzk_formats::{BytesSource, ErrorKind, LoadOptions, Proof};
use keys::{g1, g2, in_subgroup, outside, patched, proof};

fn lax() -> LoadOptions<'static> {
    LoadOptions::default()
}

#[test]
fn bytes_are_those_of_arkworks() {
    let ours = proof();
    let theirs = ark_groth16::Proof::<Bls12_381> {
        a: ours.a.into(),
        b: ours.b.into(),
        c: ours.c.into(),
    };
    let (mut compressed, mut uncompressed) = (Vec::new(), Vec::new());
    theirs.serialize_compressed(&mut compressed).unwrap();
    theirs.serialize_uncompressed(&mut uncompressed).unwrap();
    assert_eq!(to_bytes(&ours)[..], compressed);
    assert_eq!(to_uncompressed_bytes(&ours)[..], uncompressed);
    assert_eq!(read(&compressed, &in_subgroup()), Ok(ours));
    assert_eq!(read(&uncompressed, &in_subgroup()), Ok(ours));
    let back = ark_groth16::Proof::<Bls12_381>::deserialize_compressed(&to_bytes(&ours)[..]);
    assert_eq!(back.unwrap(), theirs);
}

#[test]
fn proofs_back_to_back() {
    let other = Proof {
        a: -proof().a,
        ..proof()
    };
    let mut bytes = to_bytes(&proof()).to_vec();
    assert_eq!(read_all(&bytes, &lax()), Ok(vec![proof()]));
    bytes.extend(to_bytes(&other));
    assert_eq!(read_all(&bytes, &lax()), Ok(vec![proof(), other]));
    // Two of them are as long as one uncompressed, but not that.
    assert_eq!(
        read(&bytes, &lax()).unwrap_err().kind(),
        ErrorKind::BadPoint
    );
    for len in [0, 1, 191, 193, 383] {
        let error = read_all(&bytes[..len], &lax()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadLayout, "{len}");
    }
    bytes[192] ^= 1 << 7;
    let error = read_all(&bytes, &lax()).unwrap_err();
    assert_eq!(error.place().entry, Some(("proof", 1)));
    assert_eq!(error.place().offset, Some(192));
}

#[test]
fn other_lengths_are_refused() {
    let bytes = to_uncompressed_bytes(&proof()).to_vec();
    for len in (0..384).filter(|len| *len != 192) {
        let error = read(&BytesSource::new("p.bin", &bytes[..len]), &lax()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadLayout, "{len}");
        assert_eq!(error.file(), Some("p.bin"));
    }
    let long = [&bytes[..], &[0]].concat();
    assert_eq!(
        read(&long, &lax()).unwrap_err().kind(),
        ErrorKind::BadLayout
    );
}

/// FI-38: no identities, in either form.
#[test]
fn fi_38_identities_are_refused() {
    let good = proof();
    for (bad, name, offset) in [
        (Proof { a: g1(0), ..good }, "A", 0),
        (Proof { b: g2(0), ..good }, "B", 48),
        (Proof { c: g1(0), ..good }, "C", 144),
    ] {
        let error = read(&to_bytes(&bad).to_vec(), &lax()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadPoint);
        assert_eq!(error.place().name.as_deref(), Some(name));
        assert_eq!(error.place().offset, Some(offset));
        let error = read(&to_uncompressed_bytes(&bad).to_vec(), &lax()).unwrap_err();
        assert_eq!(error.place().offset, Some(2 * offset));
        assert!(error.found().contains("identity"));
    }
    assert!(read(&vec![0; 192], &lax()).is_err());
    assert!(read(&vec![0xff; 384], &lax()).is_err());
}

#[test]
fn every_damaged_byte_is_refused_or_another_proof() {
    let bytes = to_uncompressed_bytes(&proof());
    for at in 0..bytes.len() {
        for flip in [1, 0x10, 0x80] {
            let damaged = patched(&bytes, at, &[bytes[at] ^ flip]);
            assert!(read(&damaged, &lax()).is_err(), "{at} {flip}");
        }
    }
    // Compressed, half of all x are a point's, hardly ever one of the subgroup.
    let bytes = to_bytes(&proof());
    for at in 0..bytes.len() {
        for flip in [1, 0x10, 0x20] {
            let damaged = patched(&bytes, at, &[bytes[at] ^ flip]);
            match read(&damaged, &in_subgroup()) {
                Err(_) => {}
                // The sign of y.
                Ok(other) => {
                    assert!(flip == 0x20 && [0, 48, 144].contains(&at), "{at} {flip}");
                    assert_ne!(other, proof());
                }
            }
        }
    }
}

#[test]
fn points_outside_the_subgroup_are_refused_on_request() {
    let bad = Proof {
        a: outside(),
        ..proof()
    };
    for bytes in [
        to_bytes(&bad).to_vec(),
        to_uncompressed_bytes(&bad).to_vec(),
    ] {
        assert_eq!(read(&bytes, &lax()), Ok(bad));
        let error = read(&bytes, &in_subgroup()).unwrap_err();
        assert_eq!(error.expected(), "a point of the subgroup of order r");
    }
}

/// FI-25: other bytes, the same statement. e(t A, B / t) = e(A, B), and the bytes read well: the
/// module's documentation says that they identify nothing.
#[test]
fn fi_25_a_proof_can_be_made_another() {
    use cuzk_field::Field as _;
    let t = Fr::from(0x1234_5678_9abc);
    let by = |k: Fr| Scalar::from(k);
    let old = proof();
    let new = Proof {
        a: G1Xyzz::from(old.a).mul_scalar(&by(t)).to_affine(),
        b: G2Xyzz::from(old.b)
            .mul_scalar(&by(t.inverse().unwrap()))
            .to_affine(),
        c: old.c,
    };
    assert_ne!(to_bytes(&new), to_bytes(&old));
    assert_eq!(read(&to_bytes(&new).to_vec(), &in_subgroup()), Ok(new));
    assert!(pairing_product_is_one(&[(old.a, old.b), (-new.a, new.b)]));
}
