//! Damage to files: systematic first, then random.

use cuzk_testkit::Words;

/// Values that make counts, lengths and indices go wrong.
const WORDS: &[u64] = &[
    0,
    1,
    2,
    3,
    31,
    33,
    0x7f,
    0xff,
    0xffff,
    1 << 20,
    (1 << 25) + 1,
    (1 << 31) - 1,
    1 << 31,
    (1 << 31) + 1,
    (1 << 32) - 1,
    1 << 32,
    (1 << 32) + 1,
    1 << 59,
    1 << 60,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX - 11,
    u64::MAX - 1,
    u64::MAX,
];

/// A file to start from.
#[derive(Clone)]
pub(crate) struct Seed {
    pub(crate) bytes: Vec<u8>,
    /// Where its counts, lengths and section borders are, as far as its format says.
    pub(crate) marks: Vec<usize>,
}

/// What a file is made of, which decides how it is damaged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Numbers of fixed size.
    Binary,
    /// JSON.
    Text,
}

/// Every truncation at a mark or beside it, and every hostile value in every mark.
pub(crate) fn systematic(seed: &Seed, kind: Kind) -> impl Iterator<Item = Vec<u8>> {
    let len = seed.bytes.len();
    let mut cuts: Vec<usize> = seed
        .marks
        .iter()
        .flat_map(|&mark| [mark.saturating_sub(1), mark, mark + 1])
        .chain([0, 1, 3, 11, len.saturating_sub(1), len.saturating_sub(40)])
        .filter(|&cut| cut < len)
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    let truncated = cuts.into_iter().map(|cut| seed.bytes[..cut].to_vec());
    let marks = if kind == Kind::Binary {
        &seed.marks[..]
    } else {
        &[]
    };
    let written = marks.iter().flat_map(move |&mark| {
        WORDS.iter().flat_map(move |&word| {
            [4usize, 8].into_iter().flat_map(move |size| {
                [false, true].into_iter().filter_map(move |big_endian| {
                    let mut bytes = seed.bytes.clone();
                    put(&mut bytes, mark, word, size, big_endian).then_some(bytes)
                })
            })
        })
    });
    truncated.chain(written)
}

/// One to four random changes to `seed`, which may take pieces of `other`.
pub(crate) fn random(seed: &Seed, other: &Seed, kind: Kind, words: &mut Words) -> Vec<u8> {
    let mut bytes = seed.bytes.clone();
    for _ in 0..=words.below(4) {
        match kind {
            Kind::Binary => change_binary(&mut bytes, &seed.marks, &other.bytes, words),
            Kind::Text => change_text(&mut bytes, &other.bytes, words),
        }
    }
    bytes
}

fn change_binary(bytes: &mut Vec<u8>, marks: &[usize], other: &[u8], words: &mut Words) {
    let len = bytes.len();
    match words.below(10) {
        0 => flip_bit(bytes, words),
        1 => bytes.truncate(words.below(len + 1)),
        2 => bytes.extend_from_slice(&other[..words.below(other.len().min(1 << 12) + 1)]),
        3..=5 => {
            let at = if marks.is_empty() {
                words.below(len) & !3
            } else {
                *words.pick(marks)
            };
            let size = if words.below(2) == 0 { 4 } else { 8 };
            let word = *words.pick(WORDS);
            let big_endian = words.below(2) == 0;
            put(bytes, at, word, size, big_endian);
        }
        6 => {
            // A whole field element or coordinate of equal bytes.
            let at = words.below(len) & !3;
            let end = (at + *words.pick(&[32, 48, 96])).min(len);
            let byte = *words.pick(&[0u8, 1, 0x40, 0x80, 0xc0, 0xff]);
            bytes[at.min(end)..end].fill(byte);
        }
        7 => splice(bytes, other, words),
        8 => exchange(bytes, marks, words),
        _ => {
            let from = words.below(len);
            let to = (from + words.below(256)).min(len);
            bytes.drain(from..to);
        }
    }
}

fn change_text(bytes: &mut Vec<u8>, other: &[u8], words: &mut Words) {
    let len = bytes.len();
    match words.below(9) {
        0 => flip_bit(bytes, words),
        1 => bytes.truncate(words.below(len + 1)),
        2 => splice(bytes, other, words),
        3 => {
            let at = words.below(len + 1);
            let token = *words.pick(&[
                "\"",
                "[",
                "]",
                "{",
                "}",
                ",",
                ":",
                "null",
                "-1",
                "1e400",
                "\"-0\"",
                "\"+1\"",
                "\"0x1\"",
                "\\u0000",
                "\u{feff}",
                " ",
                "\"\"",
                "\"00\"",
                "true",
                "18446744073709551616",
            ]);
            bytes.splice(at..at, token.bytes());
        }
        4 => {
            let at = words.below(len + 1);
            let count = 1usize << words.below(17);
            let byte = *words.pick(b"[{\"0 9,");
            bytes.splice(at..at, std::iter::repeat_n(byte, count));
        }
        5 => {
            // A digit becomes another.
            let digits: Vec<usize> = (0..len).filter(|&i| bytes[i].is_ascii_digit()).collect();
            if !digits.is_empty() {
                let at = *words.pick(&digits);
                bytes[at] = *words.pick(b"0123456789-.eE");
            }
        }
        6 => {
            let from = words.below(len);
            let to = (from + words.below(200)).min(len);
            bytes.drain(from..to);
        }
        7 => {
            let from = words.below(len);
            let to = (from + words.below(200)).min(len);
            let piece = bytes[from..to].to_vec();
            bytes.splice(to..to, piece);
        }
        _ => {
            if !bytes.is_empty() {
                let at = words.below(len);
                bytes[at] = (words.next_word() & 0xff) as u8;
            }
        }
    }
}

fn flip_bit(bytes: &mut [u8], words: &mut Words) {
    if !bytes.is_empty() {
        let at = words.below(bytes.len());
        bytes[at] ^= 1 << words.below(8);
    }
}

/// Puts a piece of `other` over or between the bytes.
fn splice(bytes: &mut Vec<u8>, other: &[u8], words: &mut Words) {
    let from = words.below(other.len());
    let piece = &other[from..(from + words.below(512)).min(other.len())];
    let at = words.below(bytes.len() + 1);
    let end = if words.below(2) == 0 {
        at
    } else {
        (at + piece.len()).min(bytes.len())
    };
    bytes.splice(at..end, piece.iter().copied());
}

/// Exchanges the pieces on both sides of a border: sections change places or meet twice.
fn exchange(bytes: &mut Vec<u8>, marks: &[usize], words: &mut Words) {
    if marks.len() < 3 {
        return;
    }
    let mut borders = [(); 3].map(|()| (*words.pick(marks)).min(bytes.len()));
    borders.sort_unstable();
    let [a, b, c] = borders;
    if words.below(3) == 0 {
        let piece = bytes[a..b].to_vec();
        bytes.splice(c..c, piece);
    } else {
        bytes[a..c].rotate_left(b - a);
    }
}

fn put(bytes: &mut [u8], at: usize, word: u64, size: usize, big_endian: bool) -> bool {
    let Some(field) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..size)) else {
        return false;
    };
    let mut little = word.to_le_bytes();
    if big_endian {
        little[..size].reverse();
    }
    field.copy_from_slice(&little[..size]);
    true
}
