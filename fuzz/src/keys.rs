//! Keys and proofs of the bellman and arkworks families: files made on the spot to start from.

use cuzk_formats::arkworks::{self, Compression};
use cuzk_formats::{BytesSource, LoadOptions, Proof, ProvingKey, bellman, proof};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};

use crate::mutate::{Kind, Seed};
use crate::targets::{Target, fixed_point, options};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "bellman_params",
        kind: Kind::Binary,
        seeds: params_seeds,
        run: run_params,
    },
    Target {
        name: "bellman_vk",
        kind: Kind::Binary,
        seeds: bellman_vk_seeds,
        run: run_bellman_vk,
    },
    Target {
        name: "ark_pk",
        kind: Kind::Binary,
        seeds: ark_pk_seeds,
        run: run_ark_pk,
    },
    Target {
        name: "ark_vk",
        kind: Kind::Binary,
        seeds: ark_vk_seeds,
        run: run_ark_vk,
    },
    Target {
        name: "proof_bytes",
        kind: Kind::Binary,
        seeds: proof_seeds,
        run: run_proof,
    },
];

/// Bytes of a point in G1 and in G2, uncompressed.
const G1: usize = 96;
const G2: usize = 192;

/// Both ways to write a point, with how many times smaller it makes it.
const COMPRESSIONS: [(Compression, usize); 2] =
    [(Compression::Uncompressed, 1), (Compression::Compressed, 2)];

/// Keys for circuits of a few rows, of both shapes.
fn keys(family: KeyFamily) -> Vec<ProvingKey> {
    [(Shape::Dense, 2), (Shape::Dense, 4), (Shape::Porep, 4)]
        .into_iter()
        .map(|(shape, log_n)| {
            let instance = Instance::new(shape, log_n, 1).expect("a circuit of that size");
            proving_key(&instance.r1cs, family, 2).expect("a key for the circuit")
        })
        .collect()
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> Result<(), cuzk_formats::Error>) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out).expect("writing into memory");
    out
}

/// Where the arrays' lengths stand: the first at `at`, each `count_bytes` wide, then points of the
/// sizes given. The borders of fixed points before come first.
fn array_marks(bytes: &[u8], mut at: usize, count_bytes: usize, points: &[usize]) -> Vec<usize> {
    let mut marks: Vec<usize> = (0..at).step_by(G1 / 2).collect();
    for size in points {
        marks.push(at);
        let Some(count) = bytes.get(at..at + count_bytes) else {
            break;
        };
        // Small keys: the last byte of a big-endian count, the first of a little-endian one.
        let small = if count_bytes == 4 { count[3] } else { count[0] };
        at += count_bytes;
        marks.extend([at, at + size]);
        at += usize::from(small) * size;
    }
    marks.push(bytes.len());
    marks
}

fn params_seeds() -> Vec<Seed> {
    let mut seeds: Vec<Seed> = keys(KeyFamily::Bellman)
        .iter()
        .map(|key| {
            let bytes = written(|out| bellman::write_params(key, out));
            let marks = array_marks(&bytes, 4 * G1 + 2 * G2 + G1, 4, &[G1, G1, G1, G1, G1, G2]);
            Seed { bytes, marks }
        })
        .collect();
    // A ceremony's transcript of one contribution behind the key: 64 bytes, a count, 544 bytes.
    let mut with_tail = seeds[0].clone();
    with_tail.marks.push(with_tail.bytes.len() + 64);
    with_tail.bytes.extend([0; 64]);
    with_tail.bytes.extend(1u32.to_be_bytes());
    with_tail.bytes.extend([0; 544]);
    seeds.push(with_tail);
    seeds
}

fn bellman_vk_seeds() -> Vec<Seed> {
    keys(KeyFamily::Bellman)
        .iter()
        .map(|key| {
            let bytes = written(|out| bellman::write_vk(&key.vk, key.beta_g1, key.delta_g1, out));
            let marks = array_marks(&bytes, 4 * G1 + 2 * G2 + G1, 4, &[G1]);
            Seed { bytes, marks }
        })
        .collect()
}

fn ark_pk_seeds() -> Vec<Seed> {
    let of = |key: &ProvingKey| {
        COMPRESSIONS.map(|(compression, smaller)| {
            let bytes = written(|out| arkworks::write_proving_key(key, compression, out));
            let (g1, g2) = (G1 / smaller, G2 / smaller);
            let mut marks = array_marks(&bytes, g1 + 3 * g2, 8, &[g1]);
            let rest = g1 + 3 * g2 + 8 + key.num_inputs() * g1 + 2 * g1;
            marks.extend(array_marks(&bytes, rest, 8, &[g1, g1, g2, g1, g1]));
            Seed { bytes, marks }
        })
    };
    keys(KeyFamily::Arkworks).iter().flat_map(of).collect()
}

fn ark_vk_seeds() -> Vec<Seed> {
    let of = |key: &ProvingKey| {
        COMPRESSIONS.map(|(compression, smaller)| {
            let bytes = written(|out| arkworks::write_verifying_key(&key.vk, compression, out));
            let (g1, g2) = (G1 / smaller, G2 / smaller);
            let marks = array_marks(&bytes, g1 + 3 * g2, 8, &[g1]);
            Seed { bytes, marks }
        })
    };
    keys(KeyFamily::Arkworks).iter().flat_map(of).collect()
}

fn proof_seeds() -> Vec<Seed> {
    // Any points of the groups do.
    keys(KeyFamily::Arkworks)
        .iter()
        .flat_map(|key| {
            let proof = Proof {
                a: key.vk.alpha_g1,
                b: key.vk.beta_g2,
                c: key.beta_g1,
            };
            let one = proof::to_bytes(&proof).to_vec();
            [
                proof::to_uncompressed_bytes(&proof).to_vec(),
                one.repeat(3),
                one,
            ]
        })
        .map(|bytes| Seed {
            marks: (0..=bytes.len()).step_by(G1 / 2).collect(),
            bytes,
        })
        .collect()
}

fn run_params(bytes: &[u8]) -> bool {
    let options = options(bytes);
    let _ = bellman::read_header(&BytesSource::new("fuzz", bytes), &options);
    fixed_point(bytes, |bytes| {
        let file = bellman::read_params(&BytesSource::new("fuzz", bytes), &options).ok()?;
        Some(written(|out| bellman::write_params(&file.key, out)))
    })
}

fn run_bellman_vk(bytes: &[u8]) -> bool {
    let options = options(bytes);
    fixed_point(bytes, |bytes| {
        let vk = bellman::read_vk(&BytesSource::new("fuzz", bytes), &options).ok()?;
        Some(written(|out| {
            bellman::write_vk(&vk.key, vk.beta_g1, vk.delta_g1, out)
        }))
    })
}

fn run_ark_pk(bytes: &[u8]) -> bool {
    let options = options(bytes);
    let _ = arkworks::read_header(&BytesSource::new("fuzz", bytes), &options);
    fixed_point(bytes, |bytes| {
        let file = arkworks::read_proving_key(&BytesSource::new("fuzz", bytes), &options).ok()?;
        let compression = file.header.compression;
        Some(written(|out| {
            arkworks::write_proving_key(&file.key, compression, out)
        }))
    })
}

fn run_ark_vk(bytes: &[u8]) -> bool {
    let options = options(bytes);
    fixed_point(bytes, |bytes| {
        let file = arkworks::read_verifying_key(&BytesSource::new("fuzz", bytes), &options).ok()?;
        Some(written(|out| {
            arkworks::write_verifying_key(&file.key, file.compression, out)
        }))
    })
}

fn run_proof(bytes: &[u8]) -> bool {
    let options = options(bytes);
    let _ = proof::read_all(&BytesSource::new("fuzz", bytes), &options);
    fixed_point(bytes, |bytes| {
        let proof = proof::read(&BytesSource::new("fuzz", bytes), &LoadOptions::default()).ok()?;
        Some(proof::to_bytes(&proof).to_vec())
    })
}
