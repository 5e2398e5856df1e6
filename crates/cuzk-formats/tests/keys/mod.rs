//! Small keys of the bellman and arkworks families, and the means to spoil their files.
#![allow(dead_code, unreachable_pub)] // each test file uses a part

use cuzk_field::{Affine, CurveField, Fp, G1Affine, G1Xyzz, G2Affine, G2Xyzz, Scalar, Xyzz};
use cuzk_formats::{KeyFlavour, LoadOptions, Proof, ProvingKey, QueryLayout, VerifyingKey};

pub fn strict() -> LoadOptions<'static> {
    LoadOptions {
        strict: true,
        ..LoadOptions::default()
    }
}

pub fn in_subgroup() -> LoadOptions<'static> {
    LoadOptions {
        subgroup_check: true,
        ..LoadOptions::default()
    }
}

pub fn g1(k: u64) -> G1Affine {
    G1Xyzz::from(G1Affine::generator())
        .mul_scalar(&Scalar::from(k))
        .to_affine()
}

pub fn g2(k: u64) -> G2Affine {
    G2Xyzz::from(G2Affine::generator())
        .mul_scalar(&Scalar::from(k))
        .to_affine()
}

/// A point of the curve outside the subgroup: (0, 2).
pub fn outside() -> G1Affine {
    G1Affine {
        x: Fp::from(0),
        y: Fp::from(2),
    }
}

/// `count` distinct points from k G on.
pub fn points<F: CurveField>(k: u64, count: usize) -> Vec<Affine<F>> {
    let g = Affine::<F>::generator();
    let mut sum = Xyzz::from(g).mul_scalar(&Scalar::from(k));
    let sums: Vec<_> = (0..count)
        .map(|_| {
            let point = sum;
            sum.add_affine(&g);
            point
        })
        .collect();
    Xyzz::normalize_all(&sums)
}

/// A well-formed key of no circuit, as arkworks has it: identities in A, B and L. Its generators
/// are not the standard ones.
pub fn full_key(inputs: usize, aux: usize, domain_size: usize) -> ProvingKey {
    let variables = inputs + aux;
    let mut key = ProvingKey {
        flavour: KeyFlavour::LIBSNARK,
        domain_size,
        vk: VerifyingKey {
            alpha_g1: g1(11),
            // beta = 12, delta = 14; generators 3 G1 and 5 G2.
            beta_g2: g2(12 * 5),
            gamma_g2: g2(77),
            delta_g2: g2(14 * 5),
            gamma_abc_g1: points(3000, inputs),
        },
        beta_g1: g1(12 * 3),
        delta_g1: g1(14 * 3),
        query_layout: QueryLayout::Full,
        a_query: points(1000, variables),
        b_g1_query: points(2000, variables),
        b_g2_query: points(2000, variables),
        h_query: points(4000, domain_size - 1),
        l_query: points(5000, aux),
    };
    for (i, a) in key.a_query.iter_mut().enumerate().skip(inputs) {
        if i % 3 == 0 {
            *a = G1Affine::INFINITY;
        }
    }
    for i in (0..variables).filter(|i| i % 2 == 0) {
        key.b_g1_query[i] = G1Affine::INFINITY;
        key.b_g2_query[i] = G2Affine::INFINITY;
    }
    key
}

/// The same as bellman has it: no identities.
pub fn compact_key(inputs: usize, aux: usize, domain_size: usize) -> ProvingKey {
    let mut key = full_key(inputs, aux, domain_size);
    key.query_layout = QueryLayout::Compact;
    key.a_query.retain(|point| !point.is_infinity());
    key.b_g1_query.retain(|point| !point.is_infinity());
    key.b_g2_query.retain(|point| !point.is_infinity());
    key
}

pub fn proof() -> Proof {
    Proof {
        a: g1(7),
        b: g2(8),
        c: g1(9),
    }
}

/// `bytes` with a part overwritten.
pub fn patched(bytes: &[u8], at: usize, patch: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + patch.len()].copy_from_slice(patch);
    bytes
}
