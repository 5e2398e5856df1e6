//! The quotient against polynomial division by hand.

use cuzk_field::{Field as _, Fr, RootGenerator, Scalar};
use cuzk_ntt::{
    Direction, Domain, TAU_POWER_SHIFT, quotient_coefficients, quotient_odd_values,
    quotient_products,
};

fn values(n: usize, seed: u64) -> Vec<Fr> {
    (0..n as u64)
        .map(|i| Fr::from(seed * 1000 + i + 2).pow(0x1_0000_0001_0001))
        .collect()
}

/// Coefficients of the interpolant of values on the domain, natural order.
fn interpolate(domain: &Domain, values: &[Fr]) -> Vec<Fr> {
    let mut data = values.to_vec();
    domain.natural_to_bit_reversed(&mut data, Direction::Inverse);
    cuzk_ntt::bit_reverse_permute(&mut data);
    data.iter().map(|x| *x * domain.size_inverse()).collect()
}

fn evaluate(coefficients: &[Fr], x: Fr) -> Fr {
    coefficients
        .iter()
        .rev()
        .fold(Fr::ZERO, |sum, c| sum * x + *c)
}

/// a b - c by schoolbook multiplication, c the interpolant of the entry-wise product.
fn numerator(domain: &Domain, a: &[Fr], b: &[Fr]) -> Vec<Fr> {
    let n = domain.size();
    let c: Vec<Fr> = a.iter().zip(b).map(|(a, b)| *a * *b).collect();
    let (a, b, c) = (
        interpolate(domain, a),
        interpolate(domain, b),
        interpolate(domain, &c),
    );
    let mut sum = vec![Fr::ZERO; 2 * n];
    for (i, a) in a.iter().enumerate() {
        for (j, b) in b.iter().enumerate() {
            sum[i + j] += *a * *b;
        }
    }
    for (sum, c) in sum.iter_mut().zip(&c) {
        *sum -= *c;
    }
    sum
}

#[test]
fn coefficients_are_those_of_the_division_by_z() {
    for family in [RootGenerator::Seven, RootGenerator::Five] {
        for n in [1, 2, 4, 8, 64, 256] {
            let domain = Domain::new(n, family).unwrap();
            let (a, b) = (values(n, 1), values(n, 2));
            let numerator = numerator(&domain, &a, &b);
            // h (X^n - 1) = numerator: the high half is h, and the low half its negative.
            let h: Vec<Scalar> = numerator[n..2 * n - 1]
                .iter()
                .map(|value| Scalar::from(*value))
                .collect();
            assert!((0..n - 1).all(|i| numerator[i] == -numerator[n + i]));
            assert!(numerator[n - 1].is_zero());
            assert!(
                quotient_coefficients(&domain, a, b).unwrap() == h,
                "{family:?}, {n}"
            );
        }
    }
}

#[test]
fn odd_values_are_those_of_the_numerator() {
    for n in [1, 2, 4, 8, 128] {
        let domain = Domain::new(n, RootGenerator::Five).unwrap();
        let (a, b) = (values(n, 3), values(n, 4));
        let numerator = numerator(&domain, &a, &b);
        let shift = domain.odd_coset_shift().unwrap();
        let got = quotient_odd_values(&domain, a, b).unwrap();
        assert_eq!(got.len(), n);
        for (j, got) in (0..).zip(&got) {
            let expected = evaluate(&numerator, shift * domain.root().pow(j));
            assert!(*got == Scalar::from(expected), "n {n}, value {j}");
        }
    }
}

#[test]
fn products_are_those_of_the_interpolants() {
    for family in [RootGenerator::Seven, RootGenerator::Five] {
        for n in [1, 2, 4, 8, 128] {
            let domain = Domain::new(n, family).unwrap();
            let (a, b) = (values(n, 5), values(n, 6));
            let (a_poly, b_poly) = (interpolate(&domain, &a), interpolate(&domain, &b));
            for shift in [
                domain.odd_coset_shift().unwrap(),
                Fr::from(TAU_POWER_SHIFT),
                Fr::from(12345),
            ] {
                let got = quotient_products(&domain, a.clone(), b.clone(), shift).unwrap();
                assert_eq!(got.len(), n);
                for (j, got) in (0..).zip(&got) {
                    let x = shift * domain.root().pow(j);
                    let expected = evaluate(&a_poly, x) * evaluate(&b_poly, x);
                    assert!(
                        *got == Scalar::from(expected),
                        "{family:?}, n {n}, value {j}"
                    );
                }
            }
        }
    }
}

#[test]
fn lengths_are_checked() {
    let domain = Domain::new(8, RootGenerator::Seven).unwrap();
    for (a, b) in [(8, 7), (7, 8), (0, 8), (16, 8)] {
        assert!(quotient_coefficients(&domain, values(a, 1), values(b, 1)).is_err());
        assert!(quotient_odd_values(&domain, values(a, 1), values(b, 1)).is_err());
        assert!(quotient_products(&domain, values(a, 1), values(b, 1), Fr::from(7)).is_err());
    }
}
