//! Enough of the iden3 container to count what a case holds, for its README.

use anyhow::{Context as _, Result};

/// What stands in the headers, and how many points there are.
pub(crate) struct Counts {
    pub(crate) constraints: u32,
    pub(crate) public: u32,
    pub(crate) wires: u32,
    pub(crate) domain: u32,
    /// IC, A, B1, B2, C, H.
    pub(crate) points: [Points; 6],
}

/// A list of points of a key.
#[derive(Clone, Copy)]
pub(crate) struct Points {
    pub(crate) all: usize,
    pub(crate) infinite: usize,
}

/// Bytes of a scalar, of a coordinate, of a point in G1 and of one in G2.
const FR: usize = 32;
const FP: usize = 48;
const G1: usize = 2 * FP;
const G2: usize = 4 * FP;

impl Counts {
    pub(crate) fn read(r1cs: &[u8], zkey: &[u8]) -> Result<Self> {
        // u32 size, prime, u32 wires, public outputs, public inputs, private inputs, u64 labels,
        // u32 constraints.
        let header = section(r1cs, 1)?;
        let wires = word(header, 4 + FR)?;
        let public = word(header, 8 + FR)? + word(header, 12 + FR)?;
        let constraints = word(header, 28 + FR)?;
        // u32 size, q, u32 size, r, u32 wires, u32 public values, u32 domain.
        let domain = word(section(zkey, 2)?, 16 + FP + FR)?;
        let lists = [(3, G1), (5, G1), (6, G1), (7, G2), (8, G1), (9, G1)];
        let mut points = [Points {
            all: 0,
            infinite: 0,
        }; 6];
        for (points, (kind, size)) in points.iter_mut().zip(lists) {
            let list = section(zkey, kind)?.chunks(size);
            points.all = list.len();
            points.infinite = list
                .filter(|point| point.iter().all(|&byte| byte == 0))
                .count();
        }
        Ok(Self {
            constraints,
            public,
            wires,
            domain,
            points,
        })
    }
}

/// The body of the section of this type.
fn section(file: &[u8], wanted: u32) -> Result<&[u8]> {
    let mut at = 12;
    while at < file.len() {
        let kind = word(file, at)?;
        let low = usize::try_from(word(file, at + 4)?)?;
        at += 12;
        let body = file
            .get(at..at + low)
            .context("a section beyond the end of the file")?;
        if kind == wanted {
            return Ok(body);
        }
        at += low;
    }
    anyhow::bail!("no section {wanted}")
}

fn word(bytes: &[u8], at: usize) -> Result<u32> {
    let bytes = bytes.get(at..at + 4).context("the file is too short")?;
    Ok(u32::from_le_bytes(bytes.try_into()?))
}
