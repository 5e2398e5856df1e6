//! The transforms against their definition, against `ark-poly`, and against each other.

use ark_poly::{EvaluationDomain as _, Radix2EvaluationDomain};
use cuzk_field::{Field as _, Fr, RootGenerator};
use cuzk_ntt::{Direction, Domain, Error, bit_reverse_permute};
use proptest::prelude::*;

const FAMILIES: [RootGenerator; 2] = [RootGenerator::Five, RootGenerator::Seven];

/// Distinct full-size values.
fn values(n: usize, seed: u64) -> Vec<Fr> {
    let step = Fr::from(seed + 3).pow(0x1234_5678_9abc_def1);
    let mut value = Fr::from(seed + 11).pow(0xfedc_ba98_7654_3211);
    (0..n)
        .map(|_| {
            value = value * step + Fr::ONE;
            value
        })
        .collect()
}

/// sum_j values_j root^(ij), by Horner.
fn naive(values: &[Fr], root: Fr) -> Vec<Fr> {
    (0..values.len() as u64)
        .map(|i| {
            let x = root.pow(i);
            values
                .iter()
                .rev()
                .fold(Fr::ZERO, |sum, value| sum * x + *value)
        })
        .collect()
}

#[test]
fn every_order_and_direction_is_the_definition() {
    for family in FAMILIES {
        for log_n in 0..=9 {
            let n = 1 << log_n;
            let domain = Domain::new(n, family).unwrap();
            for (direction, root) in [
                (Direction::Forward, domain.root()),
                (Direction::Inverse, domain.root_inverse()),
            ] {
                let input = values(n, log_n);
                let expected = naive(&input, root);

                let mut data = input.clone();
                domain.natural_to_bit_reversed(&mut data, direction);
                bit_reverse_permute(&mut data);
                assert!(
                    data == expected,
                    "natural to reversed, {family:?}, {direction:?}, {n}"
                );

                let mut data = input;
                bit_reverse_permute(&mut data);
                domain.bit_reversed_to_natural(&mut data, direction);
                assert!(
                    data == expected,
                    "reversed to natural, {family:?}, {direction:?}, {n}"
                );
            }
        }
    }
}

#[test]
fn large_sizes_agree_with_ark() {
    for log_n in [14, 16, 18] {
        let n = 1 << log_n;
        let ark = Radix2EvaluationDomain::<ark_bls12_381::Fr>::new(n).unwrap();
        let domain = Domain::new(n, RootGenerator::Seven).unwrap();
        assert_eq!(domain.root().to_ark(), ark.group_gen);
        let mut data = values(n, 1);
        let mut expected: Vec<_> = data.iter().map(|value| value.to_ark()).collect();
        ark.fft_in_place(&mut expected);
        domain.natural_to_bit_reversed(&mut data, Direction::Forward);
        bit_reverse_permute(&mut data);
        assert!(
            data.iter().zip(&expected).all(|(a, b)| a.to_ark() == *b),
            "2^{log_n}"
        );
    }
}

#[test]
fn coset_extension_evaluates_on_the_coset() {
    for family in FAMILIES {
        for n in [1, 2, 4, 8, 256] {
            let domain = Domain::new(n, family).unwrap();
            let shift = domain.odd_coset_shift().unwrap();
            assert!(shift * shift == domain.root());
            let coefficients = values(n, 5);
            let on_domain = naive(&coefficients, domain.root());
            let mut data = on_domain;
            domain.extend_to_coset(&mut data, shift).unwrap();
            for (i, value) in (0..).zip(&data) {
                let x = shift * domain.root().pow(i);
                let expected = coefficients
                    .iter()
                    .rev()
                    .fold(Fr::ZERO, |sum, c| sum * x + *c);
                assert!(*value == expected, "{family:?}, n {n}, value {i}");
            }
        }
    }
}

#[test]
fn scaling_crosses_chunk_borders() {
    for n in [1usize, 2, 4096, 8192, 1 << 15] {
        let domain = Domain::new(n, RootGenerator::Five).unwrap();
        let (base, first) = (Fr::from(7), Fr::from(3));
        let mut data = vec![Fr::ONE; n];
        domain.scale_bit_reversed(&mut data, base, first);
        bit_reverse_permute(&mut data);
        let mut expected = first;
        for (i, value) in data.iter().enumerate() {
            assert!(*value == expected, "n {n}, exponent {i}");
            expected *= base;
        }
    }
}

#[test]
fn sizes_that_are_not_powers_of_two_are_refused() {
    for size in [0, 3, 6, (1 << 20) + 1, 1 << 33] {
        assert_eq!(
            Domain::new(size, RootGenerator::Five).unwrap_err(),
            Error::Size { size }
        );
    }
    let domain = Domain::new(8, RootGenerator::Seven).unwrap();
    let shift = domain.odd_coset_shift().unwrap();
    let error = domain
        .extend_to_coset(&mut [Fr::ONE; 4], shift)
        .unwrap_err();
    assert_eq!(
        error,
        Error::Length {
            what: "the array",
            expected: 8,
            found: 4
        }
    );
}

proptest! {
    #[test]
    fn transforms_are_linear_and_round_trip(log_n in 0u32..12, seed in any::<u32>(), k in any::<u64>()) {
        let n = 1usize << log_n;
        let domain = Domain::new(n, RootGenerator::Five).unwrap();
        let (x, y) = (values(n, u64::from(seed)), values(n, u64::from(seed) + 1));
        let k = Fr::from(k);
        let transform = |input: &[Fr]| {
            let mut data = input.to_vec();
            domain.natural_to_bit_reversed(&mut data, Direction::Forward);
            data
        };
        let combined: Vec<Fr> = x.iter().zip(&y).map(|(x, y)| *x * k + *y).collect();
        let expected: Vec<Fr> =
            transform(&x).iter().zip(&transform(&y)).map(|(x, y)| *x * k + *y).collect();
        prop_assert!(transform(&combined) == expected);

        let mut back = transform(&x);
        domain.bit_reversed_to_natural(&mut back, Direction::Inverse);
        prop_assert!(back.iter().zip(&x).all(|(got, x)| *got * domain.size_inverse() == *x));
    }
}
