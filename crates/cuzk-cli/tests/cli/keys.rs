//! Keys of bellman and arkworks, on the way from files to a proof.

use std::fs;

use cuzk_field::Scalar;
use cuzk_formats::arkworks::Compression;
use cuzk_formats::{CoefficientTable, Matrix, R1cs, Witness};
use cuzk_groth16::synth::{KeyFamily, Shape, proving_key};

use crate::files::{Synthetic, params_bytes, pk_bytes, r1cs_bytes, wtns_bytes};
use crate::run::{Run, Scratch, cuzk};

/// Where the parts of a parameter file begin: after the six points of the front come six arrays,
/// each behind a count of four bytes.
fn array_offsets(made: &Synthetic) -> [(&'static str, usize); 6] {
    let key = &made.key;
    let mut at = 3 * 96 + 3 * 192;
    [
        ("ic", key.vk.gamma_abc_g1.len() * 96),
        ("h", key.h_query.len() * 96),
        ("l", key.l_query.len() * 96),
        ("a", key.a_query.len() * 96),
        ("b_g1", key.b_g1_query.len() * 96),
        ("b_g2", key.b_g2_query.len() * 192),
    ]
    .map(|(name, bytes)| {
        let first = at + 4;
        at = first + bytes;
        (name, first)
    })
}

#[test]
fn bellman_parameters_prove_and_verify() {
    let scratch = Scratch::new();
    let made = Synthetic::new(&scratch, KeyFamily::Bellman, Shape::Porep, 1);
    let params = scratch.file("c.params", params_bytes(&made.key));
    let inputs = [
        ("--params", params.as_path()),
        ("--wtns", &made.wtns_path),
        ("--r1cs", &made.r1cs_path),
    ];
    scratch.prove(&inputs, &[]).succeeds();
    scratch.verify(("--params", &params)).succeeds();

    // 192 bytes into a file of another name.
    for (name, format) in [("x.bin", "auto"), ("x", "bellman"), ("y", "arkworks")] {
        let mut command = cuzk(["prove"]);
        for (flag, path) in inputs {
            command.arg(flag).arg(path);
        }
        let proof = scratch.path(name);
        command
            .arg("--proof")
            .arg(&proof)
            .args(["--proof-format", format]);
        Run::of(command).succeeds();
        assert_eq!(fs::metadata(&proof).unwrap().len(), 192);
        let mut command = cuzk(["verify", "--vk"]);
        command.arg(&params).arg("--proof").arg(&proof);
        command.arg("--public").arg(scratch.out("public.json"));
        Run::of(command).succeeds();
    }
}

#[test]
fn arkworks_keys_prove_and_verify() {
    for compression in [Compression::Compressed, Compression::Uncompressed] {
        let scratch = Scratch::new();
        let made = Synthetic::new(&scratch, KeyFamily::Arkworks, Shape::Porep, 1);
        let pk = scratch.file("key.ark", pk_bytes(&made.key, compression));
        let inputs = [
            ("--pk", pk.as_path()),
            ("--wtns", &made.wtns_path),
            ("--r1cs", &made.r1cs_path),
        ];
        scratch.prove(&inputs, &[]).succeeds();
        scratch.verify(("--pk", &pk)).succeeds();
        scratch.verify(("--vk", &pk)).succeeds();
    }
}

/// Only a zkey holds what is needed of the circuit.
#[test]
fn keys_without_matrices_need_the_r1cs() {
    let scratch = Scratch::new();
    let made = Synthetic::new(&scratch, KeyFamily::Bellman, Shape::Porep, 1);
    let params = scratch.file("c.params", params_bytes(&made.key));
    for flag in ["--params", "--pk"] {
        let inputs = [(flag, params.as_path()), ("--wtns", &made.wtns_path)];
        scratch
            .prove(&inputs, &[])
            .expect(2, &[flag, "give --r1cs"]);
    }
}

/// WP-14: a flipped byte is found with the name of the array and the index of the point.
#[test]
fn a_flipped_byte_is_located() {
    let scratch = Scratch::new();
    let made = Synthetic::new(&scratch, KeyFamily::Bellman, Shape::Porep, 1);
    let bytes = params_bytes(&made.key);
    for (name, first) in array_offsets(&made) {
        let mut damaged = bytes.clone();
        // The low byte of x of point 0.
        damaged[first + 47] ^= 1;
        let params = scratch.file("damaged.params", damaged);
        let inputs = [
            ("--params", params.as_path()),
            ("--wtns", &made.wtns_path),
            ("--r1cs", &made.r1cs_path),
        ];
        let offset = format!("at offset {first}");
        scratch
            .prove(&inputs, &[])
            .expect(3, &["damaged.params", name, "point 0", &offset]);
    }
}

/// FI-14, WP-14: (0, 2) is on the curve and not in the subgroup: found on request.
#[test]
fn the_subgroup_is_checked_on_request() {
    let scratch = Scratch::new();
    let made = Synthetic::new(&scratch, KeyFamily::Bellman, Shape::Porep, 1);
    let mut bytes = params_bytes(&made.key);
    let inputs = |params| {
        [
            ("--params", params),
            ("--wtns", made.wtns_path.as_path()),
            ("--r1cs", made.r1cs_path.as_path()),
        ]
    };
    let fine = scratch.file("fine.params", &bytes);
    scratch
        .prove(&inputs(&fine), &["--check-subgroup"])
        .succeeds();

    let scratch = Scratch::new();
    let (_, first) = array_offsets(&made)[2];
    bytes[first..first + 96].fill(0);
    bytes[first + 95] = 2;
    let params = scratch.file("torsion.params", bytes);
    scratch
        .prove(&inputs(&params), &["--check-subgroup"])
        .expect(3, &["l, point 0", "subgroup"]);
    // Without the check the proof's verification stands guard.
    scratch
        .prove(&inputs(&params), &[])
        .expect(1, &["withheld"]);
}

/// WP-23: a key of an older circuit. Other counts are refused with both numbers; with the same
/// counts the proof fails its verification, which says so.
#[test]
fn keys_of_another_circuit_are_refused() {
    let scratch = Scratch::new();
    let one = Synthetic::new(&scratch, KeyFamily::Bellman, Shape::Dense, 1);
    let other = Synthetic::new(&scratch, KeyFamily::Bellman, Shape::Dense, 2);
    let porep = Synthetic::new(&scratch, KeyFamily::Bellman, Shape::Porep, 3);
    let params = scratch.file("c.params", params_bytes(&one.key));
    let with = |made: &Synthetic| {
        let inputs = [
            ("--params", params.as_path()),
            ("--wtns", &made.wtns_path),
            ("--r1cs", &made.r1cs_path),
        ];
        scratch.prove(&inputs, &[])
    };
    assert_eq!(one.r1cs.num_variables, other.r1cs.num_variables);
    with(&other).expect(1, &["withheld", "of another circuit"]);
    with(&porep).expect(4, &["not the circuit of this key", "public values"]);
}

/// FI-16: counts are compared with the bytes left before anything is reserved.
#[test]
fn hostile_lengths_are_refused() {
    let scratch = Scratch::new();
    let made = Synthetic::new(&scratch, KeyFamily::Arkworks, Shape::Porep, 1);
    let bytes = pk_bytes(&made.key, Compression::Uncompressed);
    // Behind the verifying key, beta and delta.
    let at = 96 + 3 * 192 + 8 + made.key.vk.gamma_abc_g1.len() * 96 + 2 * 96;
    for length in [1u64 << 60, u64::MAX, 1 << 32] {
        let mut hostile = bytes.clone();
        hostile[at..at + 8].copy_from_slice(&length.to_le_bytes());
        let pk = scratch.file("hostile.ark", hostile);
        let inputs = [
            ("--pk", pk.as_path()),
            ("--wtns", &made.wtns_path),
            ("--r1cs", &made.r1cs_path),
        ];
        let count = length.to_string();
        scratch.prove(&inputs, &[]).expect(3, &["a_query", &count]);
    }
    let made = Synthetic::new(&scratch, KeyFamily::Bellman, Shape::Porep, 1);
    for (name, first) in array_offsets(&made) {
        let mut hostile = params_bytes(&made.key);
        hostile[first - 4..first].copy_from_slice(&u32::MAX.to_be_bytes());
        hostile.truncate(first);
        let params = scratch.file("hostile.params", hostile);
        let inputs = [
            ("--params", params.as_path()),
            ("--wtns", &made.wtns_path),
            ("--r1cs", &made.r1cs_path),
        ];
        scratch.prove(&inputs, &[]).expect(3, &[name, "4294967295"]);
    }
}

/// WP-29, WP-04: arrays of an arkworks key that disagree, or whose H is a zkey's.
#[test]
fn lengths_that_disagree_are_refused() {
    let scratch = Scratch::new();
    let mut made = Synthetic::new(&scratch, KeyFamily::Arkworks, Shape::Porep, 1);
    let bytes = pk_bytes(&made.key, Compression::Uncompressed);
    // The last array is l_query: one point less.
    let at = bytes.len() - made.key.l_query.len() * 96 - 8;
    made.key.l_query.pop();
    let mut short = bytes[..bytes.len() - 96].to_vec();
    short[at..at + 8].copy_from_slice(&(made.key.l_query.len() as u64).to_le_bytes());
    let pk = scratch.file("short.ark", short);
    let inputs = [
        ("--pk", pk.as_path()),
        ("--wtns", &made.wtns_path),
        ("--r1cs", &made.r1cs_path),
    ];
    scratch
        .prove(&inputs, &[])
        .expect(3, &["short.ark", "a_query"]);
}

/// FI-37: what follows the last array is noted, as a transcript where it is one.
#[test]
fn tails_of_parameters_are_noted() {
    let scratch = Scratch::new();
    let made = Synthetic::new(&scratch, KeyFamily::Bellman, Shape::Porep, 1);
    let bytes = params_bytes(&made.key);
    let mut transcript = vec![7; 612];
    transcript[64..68].copy_from_slice(&1u32.to_be_bytes());
    for (tail, words) in [
        (transcript, "ceremony transcript of 1 contributions"),
        (vec![9], "1 bytes follow"),
    ] {
        let scratch = Scratch::new();
        let params = scratch.file("tail.params", [&bytes[..], &tail[..]].concat());
        let inputs = [
            ("--params", params.as_path()),
            ("--wtns", &made.wtns_path),
            ("--r1cs", &made.r1cs_path),
        ];
        scratch
            .prove(&inputs, &["--strict"])
            .expect(3, &[words, "strict"]);
        let run = scratch.prove(&inputs, &[]).expect(0, &[words]);
        assert_eq!(run.stderr.matches(words).count(), 1, "once: {run:#?}");
    }
}

/// FI-38: identities where none may be.
#[test]
fn vital_identities_in_a_key_are_refused() {
    let scratch = Scratch::new();
    let made = Synthetic::new(&scratch, KeyFamily::Bellman, Shape::Porep, 1);
    let bytes = params_bytes(&made.key);
    for (name, offset, width) in [
        ("alpha_g1", 0, 96),
        ("beta_g1", 96, 96),
        ("beta_g2", 192, 192),
        ("gamma_g2", 384, 192),
        ("delta_g1", 576, 96),
        ("delta_g2", 672, 192),
    ] {
        let mut hostile = bytes.clone();
        hostile[offset..offset + width].fill(0);
        hostile[offset] = 0x40;
        let params = scratch.file("hostile.params", hostile);
        let inputs = [
            ("--params", params.as_path()),
            ("--wtns", &made.wtns_path),
            ("--r1cs", &made.r1cs_path),
        ];
        scratch.prove(&inputs, &[]).expect(3, &[name, "identity"]);
    }
}

/// PF-07: a hundred thousand public values and one constraint.
#[test]
fn pf_07_many_public_values_are_proved_and_verified() {
    const PUBLIC: usize = 100_000;
    let product = || {
        let mut matrix = Matrix::new();
        matrix.push_entry(1, CoefficientTable::ONE);
        matrix.end_row().unwrap();
        matrix
    };
    let mut c = Matrix::new();
    c.push_entry(PUBLIC as u32 + 1, CoefficientTable::ONE);
    c.end_row().unwrap();
    let system = R1cs {
        num_inputs: PUBLIC + 1,
        num_variables: PUBLIC + 2,
        a: product(),
        b: product(),
        c,
        coefficients: CoefficientTable::new(),
    };
    let mut values: Vec<Scalar> = (0..PUBLIC as u64 + 2).map(Scalar::from).collect();
    values[0] = Scalar::ONE;
    values[1] = Scalar::from(7);
    values[PUBLIC + 1] = Scalar::from(49);
    let key = proving_key(&system, KeyFamily::Arkworks, 1).unwrap();

    let scratch = Scratch::new();
    let pk = scratch.file("key.ark", pk_bytes(&key, Compression::Uncompressed));
    let r1cs = scratch.file("circuit.r1cs", r1cs_bytes(&system));
    let wtns = scratch.file("witness.wtns", wtns_bytes(&Witness::new(values)));
    let inputs = [("--pk", pk.as_path()), ("--r1cs", &r1cs), ("--wtns", &wtns)];
    scratch.prove(&inputs, &[]).succeeds();
    scratch.verify(("--pk", &pk)).succeeds();
}
