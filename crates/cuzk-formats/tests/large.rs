//! Files beyond 4 GiB, made of holes.

mod common;

use std::fs::OpenOptions;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use common::File;
use cuzk_formats::{Error, ErrorKind, FileSource, LoadOptions, NoteKind, ReadAt, r1cs, wtns, zkey};

/// A section's body: bytes, or a hole.
enum Body {
    Bytes(Vec<u8>),
    Hole(u64),
}

const GIB: u64 = 1 << 30;
/// Just beyond what 32 bits address.
const LARGE: u64 = 4 * GIB + 12 * 1000;

fn write_sparse(dir: &Path, magic: [u8; 4], version: u32, sections: &[(u32, Body)]) -> PathBuf {
    let path = dir.join(String::from_utf8_lossy(&magic).as_ref());
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&magic).unwrap();
    file.write_all(&version.to_le_bytes()).unwrap();
    file.write_all(&(sections.len() as u32).to_le_bytes())
        .unwrap();
    for (number, body) in sections {
        file.write_all(&number.to_le_bytes()).unwrap();
        match body {
            Body::Bytes(bytes) => {
                file.write_all(&(bytes.len() as u64).to_le_bytes()).unwrap();
                file.write_all(bytes).unwrap();
            }
            Body::Hole(len) => {
                file.write_all(&len.to_le_bytes()).unwrap();
                file.seek(SeekFrom::Current(*len as i64)).unwrap();
                let end = file.stream_position().unwrap();
                file.set_len(end).unwrap();
            }
        }
    }
    path
}

/// The file with an unknown section, a hole, before its own.
fn behind_a_hole(dir: &Path, bytes: &[u8]) -> PathBuf {
    let file = File::parse(bytes);
    let mut sections = vec![(77, Body::Hole(LARGE))];
    sections.extend(file.sections.into_iter().map(|(n, b)| (n, Body::Bytes(b))));
    write_sparse(dir, file.magic, file.version, &sections)
}

#[test]
fn fi_01_fi_04_sections_beyond_4_gib_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let options = LoadOptions::default();
    let small = common::small_zkey();
    let source = FileSource::open(behind_a_hole(dir.path(), &small)).unwrap();
    assert!(source.len() > LARGE);
    let got = zkey::read(&source, &options).unwrap();
    assert!(got.key == zkey::read(&small, &options).unwrap().key);
    assert_eq!(got.notes[0].kind, NoteKind::UnknownSection);

    let small = common::small_r1cs();
    let source = FileSource::open(behind_a_hole(dir.path(), &small)).unwrap();
    let got = r1cs::read(&source, &options).unwrap();
    assert!(common::same_system(
        &got.r1cs,
        &r1cs::read(&small, &options).unwrap().r1cs
    ));

    let small = common::small_wtns(&[1, 2, 3]);
    let source = FileSource::open(behind_a_hole(dir.path(), &small)).unwrap();
    let got = wtns::read(&source, &options).unwrap();
    assert!(got.witness == wtns::read(&small, &options).unwrap().witness);
}

#[test]
fn fi_01_the_header_of_a_key_of_2_to_the_25_is_read_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let small = File::parse(&common::small_zkey());
    let (variables, domain) = (33_000_000u32, 1u32 << 25);
    let mut small = small;
    small
        .patch(2, 88, &variables.to_le_bytes())
        .patch(2, 96, &domain.to_le_bytes());
    let holes = |number: u32| match number {
        5 | 6 => Some(u64::from(variables) * 96),
        7 => Some(u64::from(variables) * 192),
        8 => Some((u64::from(variables) - 2) * 96),
        9 => Some(u64::from(domain) * 96),
        _ => None,
    };
    // No section 10, as in the report.
    let sections: Vec<_> = small
        .sections
        .into_iter()
        .filter(|(number, _)| *number != 10)
        .map(|(number, body)| match holes(number) {
            Some(len) => (number, Body::Hole(len)),
            None => (number, Body::Bytes(body)),
        })
        .collect();
    let path = write_sparse(dir.path(), *b"zkey", 1, &sections);
    let source = FileSource::open(&path).unwrap();
    assert!(source.len() > 17 * GIB);
    let (header, _) = zkey::read_header(&source, &LoadOptions::default()).unwrap();
    assert_eq!(header.domain_size, domain);
    assert!(!header.has_transcript);
    // One byte less, and it is refused before anything is read.
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(source.len() - 1).unwrap();
    let source = FileSource::open(&path).unwrap();
    let error = zkey::read(&source, &LoadOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert_eq!(error.place().section, Some(9));
}

/// A constraint of three empty linear combinations is twelve zero bytes.
fn hole_of_constraints(dir: &Path, bytes: u64) -> PathBuf {
    let mut small = File::parse(&common::small_r1cs());
    small.patch(1, 60, &((bytes / 12) as u32).to_le_bytes());
    let sections: Vec<_> = small
        .sections
        .into_iter()
        .map(|(number, body)| match number {
            2 => (number, Body::Hole(bytes)),
            _ => (number, Body::Bytes(body)),
        })
        .collect();
    write_sparse(dir, *b"r1cs", 1, &sections)
}

#[test]
fn fi_05_the_header_of_a_large_constraint_system_is_read_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let source = FileSource::open(hole_of_constraints(dir.path(), 13 * GIB / 12 * 12)).unwrap();
    let (header, _) = r1cs::read_header(&source, &LoadOptions::default()).unwrap();
    assert_eq!(u64::from(header.num_constraints), 13 * GIB / 12);
    assert_eq!(header.constraint_bytes, 13 * GIB / 12 * 12);
}

/// Bytes, then zeros: a file with a hole that costs the system nothing to read.
struct Holed {
    head: Vec<u8>,
    hole: u64,
}

impl ReadAt for Holed {
    fn name(&self) -> &str {
        "holed"
    }

    fn len(&self) -> u64 {
        self.head.len() as u64 + self.hole
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        let head = self.head.get(offset as usize..).unwrap_or_default();
        let from_head = head.len().min(buf.len());
        buf[..from_head].copy_from_slice(&head[..from_head]);
        buf[from_head..].fill(0);
        Ok(())
    }
}

#[test]
fn fi_05_a_scan_walks_more_than_4_gib() {
    let bytes = LARGE / 12 * 12;
    let mut small = File::parse(&common::small_r1cs());
    small.patch(1, 60, &((bytes / 12) as u32).to_le_bytes());
    let mut head = b"r1cs\x01\0\0\0\x02\0\0\0\x01\0\0\0".to_vec();
    head.extend((small.body(1).len() as u64).to_le_bytes());
    head.extend(small.body(1).clone());
    head.extend(2u32.to_le_bytes());
    head.extend(bytes.to_le_bytes());
    let source = Holed { head, hole: bytes };
    let (_, statistics, _) = r1cs::scan(&source, &LoadOptions::default()).unwrap();
    assert_eq!(statistics.num_empty_rows, [bytes / 12; 3]);
}

#[test]
fn fi_04_large_files_are_refused_on_their_content_only() {
    let dir = tempfile::tempdir().unwrap();
    let options = LoadOptions::default();
    for len in [2 * GIB + GIB / 10, 4 * GIB + GIB / 10] {
        let path = dir.path().join("zeros");
        std::fs::File::create(&path).unwrap().set_len(len).unwrap();
        let source = FileSource::open(&path).unwrap();
        for error in [
            r1cs::read(&source, &options).unwrap_err(),
            wtns::read(&source, &options).unwrap_err(),
            zkey::read(&source, &options).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::WrongFormat);
        }
    }
    // A witness of more than 4 GiB: its header, then a cancelled read.
    let count = (LARGE / 32) as u32;
    let mut small = File::parse(&common::small_wtns(&[1]));
    small.patch(1, 36, &count.to_le_bytes());
    let header = Body::Bytes(small.body(1).clone());
    let values = Body::Hole(u64::from(count) * 32);
    let path = write_sparse(dir.path(), *b"wtns", 2, &[(1, header), (2, values)]);
    let source = FileSource::open(path).unwrap();
    assert_eq!(wtns::read_header(&source, &options).unwrap().0, count);
    let cancel = std::sync::atomic::AtomicBool::new(true);
    let options = LoadOptions {
        cancel: Some(&cancel),
        ..options
    };
    let error = wtns::read(&source, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}
