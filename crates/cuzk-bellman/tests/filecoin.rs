//! Names, lists and digests of Filecoin's parameter files.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cuzk_bellman::Error;
use cuzk_bellman::filecoin::{Digest, FileName, FileType, List};
use cuzk_formats::{BytesSource, LoadOptions};

/// A name of the public list of 2 KiB sectors' parameters.
const NAME: &str = "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-8-0-0-sha256_hasher-032d3138d22506ec0082ed72b2dcba18df18477904e35bafee82b3793b06832f.params";

/// BLAKE2b-512 of "abc", RFC 7693 appendix A, its first 16 bytes.
const ABC: &str = "ba80a53f981c4d0d6a2797b69f12f6e9";

#[test]
fn digests_are_those_of_the_rfc() {
    let options = LoadOptions::default();
    let digest = Digest::of(&BytesSource::new("abc", b"abc"), &options).unwrap();
    assert_eq!(digest.to_string(), ABC);
    assert_eq!(Digest::from_hex(ABC), Some(digest));
    for wrong in ["", "ba80", &ABC.replace('b', "g"), &format!("{ABC}00")] {
        assert_eq!(Digest::from_hex(wrong), None, "{wrong}");
    }
}

#[test]
fn a_long_file_reports_and_stops() {
    let bytes = vec![7; (3 << 20) + 5];
    let source = BytesSource::new("long", &bytes);
    let done = AtomicU64::new(0);
    let progress = |progress: cuzk_formats::Progress| {
        assert_eq!(progress.total_bytes, (3 << 20) + 5);
        done.store(progress.done_bytes, Ordering::Relaxed);
    };
    let mut options = LoadOptions {
        progress: Some(&progress),
        ..LoadOptions::default()
    };
    let digest = Digest::of(&source, &options).unwrap();
    assert_eq!(done.load(Ordering::Relaxed), bytes.len() as u64);
    // Blocks are no part of the hash.
    let whole = blake2b_simd::blake2b(&bytes);
    assert_eq!(digest.0, whole.as_bytes()[..16]);
    let cancel = AtomicBool::new(true);
    options.cancel = Some(&cancel);
    assert!(matches!(Digest::of(&source, &options), Err(Error::File(_))));
}

#[test]
fn names() {
    let name = FileName::parse(NAME).unwrap();
    assert_eq!(name.version, 28);
    assert_eq!(
        name.circuit,
        "stacked-proof-of-replication-merkletree-poseidon_hasher-8-0-0-sha256_hasher"
    );
    assert!(name.identifier.starts_with("032d3138"));
    assert_eq!(name.file_type, FileType::Params);
    let vk = NAME.replace(".params", ".vk");
    assert_eq!(
        FileName::parse(&vk).unwrap().file_type,
        FileType::VerifyingKey
    );
    for (wrong, reason) in [
        ("params", "has no extension"),
        ("v28-x.txt", "ends in none of"),
        ("28-x.params", "does not begin with a version"),
        ("v28-x.params", "has no identifier"),
        ("v28-x-00.params", "64 hexadecimal digits"),
        (
            &NAME.replace("v28", "v+28"),
            "does not begin with a version",
        ),
        (&NAME.replace("v28-", "v28-../"), "has folders in it"),
        (
            &format!("v28-{}", &NAME[NAME.len() - 72..]),
            "has no circuit",
        ),
    ] {
        let error = FileName::parse(wrong).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_file_is_held_against_the_list() {
    let json = format!(r#"{{"{NAME}": {{"cid": "Qm", "digest": "{ABC}", "sector_size": 2048}}}}"#);
    let list = List::from_json(&json).unwrap();
    assert_eq!(list.get(NAME).unwrap().sector_size, 2048);
    assert_eq!(list.iter().count(), 1);
    let options = LoadOptions::default();
    let path = format!("cache/{NAME}");
    list.check(&BytesSource::new(&path, b"abc"), &options)
        .unwrap();
    let error = list
        .check(&BytesSource::new(&path, b"abd"), &options)
        .unwrap_err();
    assert!(
        matches!(&error, Error::Digest { expected, .. } if expected == ABC),
        "{error}"
    );
    let error = list
        .check(&BytesSource::new("other.params", b"abc"), &options)
        .unwrap_err();
    assert!(error.to_string().contains("is not in the list"), "{error}");
    for wrong in [
        "",
        "[]",
        r#"{"x": {"cid": "", "digest": "00", "sector_size": 1}}"#,
        // Signs are no digits.
        &json.replace(ABC, &"+a".repeat(16)),
    ] {
        assert!(
            matches!(List::from_json(wrong), Err(Error::List { .. })),
            "{wrong}"
        );
    }
}
