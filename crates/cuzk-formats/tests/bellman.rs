//! bellman parameter files and verifying keys: round trips, and what must be refused.

mod keys;

use cuzk_field::encoding::PointEncoding as _;
use cuzk_field::{G1Affine, G2Affine};
use cuzk_formats::bellman::{
    Header, Params, Vk, read_header, read_params, read_vk, write_params, write_vk,
};
use cuzk_formats::{
    BytesSource, Error, ErrorKind, FileKind, KeyFlavour, LoadOptions, NoteKind, ProvingKey,
    QueryLayout, sniff,
};
use keys::{compact_key, full_key, g1, in_subgroup, outside, patched, strict};

const INPUTS: usize = 3;
const AUX: usize = 7;
const DOMAIN: usize = 16;

fn lax() -> LoadOptions<'static> {
    LoadOptions::default()
}

fn write(key: &ProvingKey) -> Vec<u8> {
    let mut out = Vec::new();
    write_params(key, &mut out).unwrap();
    out
}

fn small() -> Vec<u8> {
    write(&compact_key(INPUTS, AUX, DOMAIN))
}

fn read(bytes: &[u8]) -> Result<Params, Error> {
    read_params(&BytesSource::new("p.params", bytes), &lax())
}

/// Offsets of the parts: the six points, then each count and each array's points.
struct Map {
    /// Of the count of ic, h, l, a, b_g1, b_g2.
    counts: [usize; 6],
    len: usize,
}

const PARTS: [&str; 6] = ["ic", "h", "l", "a", "b_g1", "b_g2"];

fn map(key: &ProvingKey) -> Map {
    let lengths = [
        96 * key.vk.gamma_abc_g1.len(),
        96 * key.h_query.len(),
        96 * key.l_query.len(),
        96 * key.a_query.len(),
        96 * key.b_g1_query.len(),
        192 * key.b_g2_query.len(),
    ];
    let mut at = 864;
    let counts = lengths.map(|bytes| {
        let count = at;
        at += 4 + bytes;
        count
    });
    Map { counts, len: at }
}

#[test]
fn keys_come_back_at_their_exact_length() {
    for (inputs, aux, domain) in [(1, 0, 1), (1, 1, 2), (2, 0, 2), (3, 7, 16), (5, 4000, 8)] {
        let key = compact_key(inputs, aux, domain);
        let bytes = write(&key);
        assert_eq!(bytes.len(), map(&key).len);
        let points = inputs + aux + (domain - 1) + key.a_query.len() + key.b_g1_query.len();
        assert_eq!(bytes.len(), 888 + 96 * points + 192 * key.b_g2_query.len());
        let file = read_params(&bytes, &strict()).unwrap();
        assert!(file.key == key && file.notes.is_empty());
        assert_eq!(file.key.flavour, KeyFlavour::LIBSNARK);
        assert_eq!(file.key.query_layout, QueryLayout::Compact);
        let header = Header {
            num_inputs: inputs as u64,
            num_aux: aux as u64,
            domain_size: domain as u64,
            num_a: key.a_query.len() as u64,
            num_b: key.b_g1_query.len() as u64,
            tail_bytes: 0,
        };
        assert_eq!(file.header, header);
        assert_eq!(read_header(&bytes, &strict()).unwrap().0, header);
        assert_eq!(sniff(&bytes), Some(FileKind::BellmanParams));
    }
    assert!(read_params(&small(), &in_subgroup()).is_ok());
}

#[test]
fn verifying_keys_come_back() {
    let key = compact_key(INPUTS, AUX, DOMAIN);
    let mut bytes = Vec::new();
    write_vk(&key.vk, key.beta_g1, key.delta_g1, &mut bytes).unwrap();
    assert_eq!(bytes.len(), 868 + 96 * INPUTS);
    assert_eq!(sniff(&bytes), Some(FileKind::BellmanVk));
    let want = Vk {
        key: key.vk.clone(),
        beta_g1: key.beta_g1,
        delta_g1: key.delta_g1,
        notes: Vec::new(),
    };
    assert_eq!(read_vk(&bytes, &strict()), Ok(want));
    // The first parts of a parameter file are one, too.
    let params = small();
    assert_eq!(params[..bytes.len()], bytes);
    let vk = read_vk(&params, &lax()).unwrap();
    assert_eq!(
        (vk.key, vk.notes[0].kind),
        (key.vk, NoteKind::TrailingBytes)
    );
    assert_eq!(
        read_vk(&params, &strict()).unwrap_err().kind(),
        ErrorKind::Strict
    );
    for end in (0..bytes.len()).step_by(5) {
        assert!(read_vk(&bytes[..end], &lax()).is_err(), "{end}");
    }
    let empty = patched(&bytes[..868], 864, &[0; 4]);
    let error = read_vk(&empty, &lax()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Inconsistent);
}

/// The bytes as formats.md has them: where each point stands.
#[test]
fn points_stand_where_they_should() {
    let key = compact_key(INPUTS, AUX, DOMAIN);
    let (bytes, map) = (write(&key), map(&key));
    let g1_at = |at: usize| G1Affine::from_zcash_uncompressed(&bytes[at..at + 96]).unwrap();
    let g2_at = |at: usize| G2Affine::from_zcash_uncompressed(&bytes[at..at + 192]).unwrap();
    assert_eq!(g1_at(0), key.vk.alpha_g1);
    assert_eq!(g1_at(96), key.beta_g1);
    assert_eq!(g2_at(192), key.vk.beta_g2);
    assert_eq!(g2_at(384), key.vk.gamma_g2);
    assert_eq!(g1_at(576), key.delta_g1);
    assert_eq!(g2_at(672), key.vk.delta_g2);
    assert_eq!(bytes[864..868], (INPUTS as u32).to_be_bytes());
    assert_eq!(g1_at(map.counts[1] + 4), key.h_query[0]);
    assert_eq!(g1_at(map.counts[2] + 4), key.l_query[0]);
    assert_eq!(g1_at(map.counts[3] + 4), key.a_query[0]);
    assert_eq!(g1_at(map.counts[4] + 4), key.b_g1_query[0]);
    assert_eq!(g2_at(map.counts[5] + 4), key.b_g2_query[0]);
}

/// FI-37: a transcript, or anything else, behind the last point.
#[test]
fn fi_37_bytes_behind_the_last_point() {
    let key = compact_key(INPUTS, AUX, DOMAIN);
    let tail = |hash: u8, count: u32, bytes: usize| {
        let mut tail = vec![hash; 64];
        tail.extend(count.to_be_bytes());
        tail.resize(bytes, 0);
        [small(), tail].concat()
    };
    for (bytes, tail_bytes, kind) in [
        (tail(7, 1, 612), 612, NoteKind::CeremonyTail),
        (tail(7, 0, 68), 68, NoteKind::CeremonyTail),
        (tail(7, 2, 612), 612, NoteKind::TrailingBytes),
        (tail(7, u32::MAX, 613), 613, NoteKind::TrailingBytes),
        ([small(), vec![0]].concat(), 1, NoteKind::TrailingBytes),
    ] {
        let file = read(&bytes).unwrap();
        assert!(file.key == key);
        assert_eq!(file.header.tail_bytes, tail_bytes);
        assert_eq!(file.notes.len(), 1);
        assert_eq!(file.notes[0].kind, kind);
        assert_eq!(sniff(&bytes), Some(FileKind::BellmanParams));
        let error = read_params(&bytes, &strict()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Strict);
    }
}

/// FI-38: delta, and each other point at the front, as the identity.
#[test]
fn fi_38_identities_at_the_front_are_refused() {
    let identity = G2Affine::INFINITY.to_zcash_uncompressed();
    for (at, name) in [
        (0, "alpha_g1"),
        (96, "beta_g1"),
        (192, "beta_g2"),
        (384, "gamma_g2"),
        (576, "delta_g1"),
        (672, "delta_g2"),
    ] {
        let width = if name.ends_with("g2") { 192 } else { 96 };
        let bytes = patched(&small(), at, &identity[..width]);
        let error = read(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadPoint);
        assert_eq!(error.place().name.as_deref(), Some(name));
        assert_eq!(error.place().offset, Some(at as u64));
        assert!(error.found().contains("identity"), "{error}");
    }
}

#[test]
fn identities_in_arrays_are_refused_as_bellman_does() {
    let key = compact_key(INPUTS, AUX, DOMAIN);
    let map = map(&key);
    let identity = G2Affine::INFINITY.to_zcash_uncompressed();
    for (part, count) in PARTS.iter().zip(map.counts) {
        let width = if *part == "b_g2" { 192 } else { 96 };
        let at = count + 4 + width;
        let error = read(&patched(&small(), at, &identity[..width])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadPoint);
        assert_eq!(error.place().name.as_deref(), Some(*part));
        assert_eq!(error.place().entry, Some(("point", 1)));
        assert_eq!(error.place().offset, Some(at as u64));
        // As "zkey export bellman" of snarkjs writes them.
        let error = read(&patched(&small(), at, &vec![0; width])).unwrap_err();
        assert!(error.advice().unwrap().contains("zkey"), "{error}");
    }
    let mut bad = key;
    bad.l_query[2] = G1Affine::INFINITY;
    let error = write_params(&bad, &mut Vec::new()).unwrap_err();
    assert_eq!(error.place().entry, Some(("point", 2)));
}

/// WP-14: one byte flipped in each region; the file, the region and the index are named.
#[test]
fn wp_14_a_flipped_byte_is_found_and_named() {
    let key = compact_key(INPUTS, AUX, DOMAIN);
    let (bytes, map) = (small(), map(&key));
    for at in (0..bytes.len()).step_by(29) {
        for flip in [0x01, 0x40, 0x80] {
            let error = read(&patched(&bytes, at, &[bytes[at] ^ flip])).unwrap_err();
            assert_eq!(error.file(), Some("p.params"), "{at}");
        }
    }
    for (part, count) in PARTS.iter().zip(map.counts) {
        let width = if *part == "b_g2" { 192 } else { 96 };
        let at = count + 4 + 2 * width + 50;
        for options in [lax(), in_subgroup()] {
            let damaged = patched(&bytes, at, &[bytes[at] ^ 4]);
            let error = read_params(&BytesSource::new("p.params", &damaged), &options).unwrap_err();
            assert_eq!(error.place().name.as_deref(), Some(*part));
            assert_eq!(error.place().entry, Some(("point", 2)));
        }
    }
}

/// A damaged point that is one all the same: the checked load finds it.
#[test]
fn wp_14_points_outside_the_subgroup_are_found_on_request() {
    let mut key = compact_key(INPUTS, AUX, DOMAIN);
    key.h_query[5] = outside();
    let bytes = write(&key);
    assert!(read(&bytes).unwrap().key == key);
    let error = read_params(&bytes, &in_subgroup()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadPoint);
    assert_eq!(error.place().name.as_deref(), Some("h"));
    assert_eq!(error.place().entry, Some(("point", 5)));
    // At the front it is found always.
    let bytes = patched(&small(), 0, &outside().to_zcash_uncompressed());
    let error = read(&bytes).unwrap_err();
    assert_eq!(error.expected(), "a point of the subgroup of order r");
}

#[test]
fn beta_and_delta_must_be_the_same_in_both_groups() {
    let other = g1(999).to_zcash_uncompressed();
    for at in [96, 576] {
        let error = read(&patched(&small(), at, &other)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Inconsistent);
        assert!(error.advice().unwrap().contains("damaged"));
    }
}

#[test]
fn fi_32_cut_files_are_refused() {
    let key = compact_key(INPUTS, AUX, DOMAIN);
    let (bytes, map) = (small(), map(&key));
    let borders = map.counts.iter().flat_map(|at| [*at, at + 4]);
    let mut ends: Vec<usize> = borders.chain([0, 96, 192, 384, 576, 672]).collect();
    ends.extend([1, 40, 1000].map(|cut| bytes.len() - cut));
    ends.extend((0..bytes.len()).step_by(61));
    for end in ends {
        let error = read(&bytes[..end]).unwrap_err();
        let expected = match end {
            // Exactly a verifying key: said so.
            end if end == map.counts[1] => ErrorKind::WrongFormat,
            // alpha_g1, beta_g1, beta_g2 alone are what an uncompressed proof is made of.
            384 => ErrorKind::WrongFormat,
            _ => ErrorKind::Truncated,
        };
        assert_eq!(error.kind(), expected, "{end}: {error}");
        assert_eq!(error.file(), Some("p.params"));
        assert!(read_header(&bytes[..end], &lax()).is_err());
    }
}

/// FI-16: counts are compared with the bytes left before anything is allocated.
#[test]
fn fi_16_hostile_counts_are_refused() {
    let key = compact_key(INPUTS, AUX, DOMAIN);
    let (bytes, map) = (small(), map(&key));
    for (part, count) in PARTS.iter().zip(map.counts) {
        for hostile in [u32::MAX, 1 << 31, 44_739_243, 44_739_242] {
            let damaged = patched(&bytes, count, &hostile.to_be_bytes());
            let error = read(&damaged).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Truncated, "{part}");
            assert_eq!(error.place().name.as_deref(), Some(*part));
            assert_eq!(error.place().offset, Some(count as u64));
            // n_h = 2^32 - 1 and no data at all.
            let error = read(&damaged[..count + 4]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Truncated, "{part}");
        }
        // One more or one less than there are.
        let found = u32::from_be_bytes(bytes[count..count + 4].try_into().unwrap());
        for wrong in [found + 1, found - 1, 0] {
            let damaged = patched(&bytes, count, &wrong.to_be_bytes());
            assert!(read(&damaged).is_err(), "{part} {wrong}");
        }
    }
}

#[test]
fn counts_must_agree_with_each_other() {
    let good = compact_key(INPUTS, AUX, DOMAIN);
    let refused = |change: &dyn Fn(&mut ProvingKey)| {
        let mut key = good.clone();
        change(&mut key);
        // The writer refuses some of these itself, so the bytes are put together here.
        let error = read(&raw(&key)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Inconsistent, "{error}");
        error.place().name.as_deref().unwrap().to_owned()
    };
    let point = g1(5);
    assert_eq!(
        refused(&|key| {
            key.h_query.pop();
        }),
        "h"
    );
    assert_eq!(refused(&|key| key.h_query.clear()), "h");
    assert_eq!(refused(&|key| key.h_query.truncate(1)), "h");
    assert_eq!(
        refused(&|key| {
            key.b_g2_query.pop();
        }),
        "b_g2"
    );
    assert_eq!(
        refused(&|key| {
            key.b_g1_query.pop();
        }),
        "b_g2"
    );
    assert_eq!(refused(&|key| key.a_query.truncate(INPUTS - 1)), "a");
    assert_eq!(
        refused(&|key| key.a_query.resize(INPUTS + AUX + 1, point)),
        "a"
    );
    assert_eq!(
        refused(&|key| {
            key.b_g1_query.resize(INPUTS + AUX + 1, point);
            key.b_g2_query.resize(INPUTS + AUX + 1, keys::g2(5));
        }),
        "b_g1"
    );
    assert_eq!(refused(&|key| key.vk.gamma_abc_g1.clear()), "ic");
    // No variable occurs in B: legal.
    let mut key = good.clone();
    key.b_g1_query.clear();
    key.b_g2_query.clear();
    assert!(read(&write(&key)).unwrap().key == key);
}

/// WP-04 in this format: as many H points as a zkey has.
#[test]
fn wp_04_the_circom_h_basis_is_named() {
    let mut key = compact_key(INPUTS, AUX, DOMAIN);
    key.h_query.push(g1(6));
    let error = read(&raw(&key)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Inconsistent);
    assert!(error.advice().unwrap().contains("circom"), "{error}");
}

fn raw(key: &ProvingKey) -> Vec<u8> {
    let mut out = Vec::new();
    write_vk(&key.vk, key.beta_g1, key.delta_g1, &mut out).unwrap();
    for points in [&key.h_query, &key.l_query, &key.a_query, &key.b_g1_query] {
        out.extend((points.len() as u32).to_be_bytes());
        out.extend(points.iter().flat_map(|p| p.to_zcash_uncompressed()));
    }
    out.extend((key.b_g2_query.len() as u32).to_be_bytes());
    out.extend(
        key.b_g2_query
            .iter()
            .flat_map(|p| p.to_zcash_uncompressed()),
    );
    out
}

#[test]
fn keys_of_other_families_are_not_written() {
    let mut circom = full_key(INPUTS, AUX, DOMAIN);
    assert_eq!(
        write_params(&circom, &mut Vec::new()).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    circom.query_layout = QueryLayout::Compact;
    circom.flavour = KeyFlavour::CIRCOM;
    assert_eq!(
        write_params(&circom, &mut Vec::new()).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    let mut short = compact_key(INPUTS, AUX, DOMAIN);
    short.h_query.pop();
    assert!(write_params(&short, &mut Vec::new()).is_err());
}

#[test]
fn swapped_files_are_named() {
    let mut zkey = b"zkey\x01\0\0\0".to_vec();
    zkey.resize(2000, 0);
    for (bytes, word) in [
        (zkey, "zkey"),
        (b"[\"1\"]".to_vec(), "JSON"),
        (
            cuzk_formats::proof::to_bytes(&keys::proof()).to_vec(),
            "proof",
        ),
        (vec![0x1f, 0x8b, 8, 0], "decompress"),
    ] {
        let error = read(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongFormat);
        assert!(error.found().contains(word), "{error}");
    }
    // Of no known kind: the fault itself.
    assert_eq!(read(&[7; 2000]).unwrap_err().kind(), ErrorKind::Truncated);
    assert_eq!(read(&[]).unwrap_err().kind(), ErrorKind::Truncated);
}

/// FI-14: a checked load reports progress and can be stopped.
#[test]
fn fi_14_a_checked_load_reports_and_stops() {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    let bytes = write(&compact_key(2, 6000, 4096));
    let (done, cancel) = (AtomicU64::new(0), AtomicBool::new(false));
    let progress = |p: cuzk_formats::Progress| {
        assert!(PARTS.contains(&p.label));
        let seen = done.fetch_max(p.done_bytes, Ordering::Relaxed);
        if seen.max(p.done_bytes) > p.total_bytes / 2 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let options = LoadOptions {
        subgroup_check: true,
        progress: Some(&progress),
        cancel: Some(&cancel),
        ..LoadOptions::default()
    };
    let error = read_params(&bytes, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    let done = done.into_inner();
    assert!(
        done > bytes.len() as u64 / 2 && done < bytes.len() as u64,
        "{done}"
    );
}
