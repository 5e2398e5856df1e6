//! What a synthetic key's points are multiples of the generators by.

use cuzk_field::{Field as _, Fr, RootGenerator, Scalar, batch_invert};
use cuzk_formats::{HBasis, KeyFlavour, Matrix, QueryLayout, QueryVariables, R1cs};
use rayon::prelude::*;

use super::key::KeyFamily;
use super::random::Random;
use crate::error::Error;

/// The discrete logarithms of a key: `a[i]` says which multiple of the generator `a_query[i]` is.
#[derive(Debug)]
pub struct KeyExponents {
    /// Roots of unity and H basis.
    pub flavour: KeyFlavour,
    /// n.
    pub domain_size: usize,
    /// Which variables `a` and `b` cover.
    pub query_layout: QueryLayout,
    /// alpha, beta, gamma and delta.
    pub(super) secrets: [Scalar; 4],
    /// Of the points for the inputs.
    pub gamma_abc: Vec<Scalar>,
    /// Of the A query.
    pub a: Vec<Scalar>,
    /// Of the B queries, in G1 and in G2.
    pub b: Vec<Scalar>,
    /// Of the H query.
    pub h: Vec<Scalar>,
    /// Of the L query.
    pub l: Vec<Scalar>,
}

/// Elements of one task.
pub(super) const TASK: usize = 1 << 14;

impl KeyExponents {
    /// Those of a key for a circuit, from secrets that follow from `seed`. It protects nothing.
    ///
    /// # Errors
    /// [`Error::Domain`] for circuits above 2^32 rows.
    pub fn new(r1cs: &R1cs, family: KeyFamily, seed: u64) -> Result<Self, Error> {
        let flavour = family.flavour();
        let domain_size = match family {
            KeyFamily::Circom => r1cs.domain_size().max(2),
            KeyFamily::Arkworks | KeyFamily::Bellman => r1cs.domain_size(),
        };
        let mut random = Random::new(seed, 1);
        let [tau, alpha, beta, gamma, delta] = std::array::from_fn(|_| random.full_size());
        let inverse = |value: Fr| value.inverse().unwrap_or(Fr::ZERO);
        let (gamma_inverse, delta_inverse) = (inverse(gamma), inverse(delta));
        let h = h_exponents(flavour, tau, domain_size, delta_inverse)?;
        let lagrange = lagrange_at(tau, domain_size, flavour.root_generator)?;

        let sums = |matrix: &Matrix| column_sums(matrix, r1cs, &lagrange);
        let mut a = sums(&r1cs.a);
        // The rows that bind the inputs.
        for (sum, value) in a[..r1cs.num_inputs]
            .iter_mut()
            .zip(&lagrange[r1cs.num_constraints()..])
        {
            *sum += *value;
        }
        let b = sums(&r1cs.b);
        let mut combined = sums(&r1cs.c);
        drop(lagrange);
        let inputs = r1cs.num_inputs;
        combined
            .par_iter_mut()
            .with_min_len(TASK)
            .enumerate()
            .for_each(|(v, sum)| {
                let divisor_inverse = if v < inputs {
                    gamma_inverse
                } else {
                    delta_inverse
                };
                *sum = (beta * a[v] + alpha * b[v] + *sum) * divisor_inverse;
            });
        let gamma_abc = scalars(&combined[..inputs]);
        let l = scalars(&combined[inputs..]);
        drop(combined);
        let (a, b, query_layout) = match family {
            KeyFamily::Circom | KeyFamily::Arkworks => {
                (scalars(&a), scalars(&b), QueryLayout::Full)
            }
            KeyFamily::Bellman => {
                let variables = QueryVariables::of(r1cs);
                let pick = |values: &[Fr], of: &[u32]| -> Vec<Scalar> {
                    of.par_iter().map(|v| values[*v as usize].into()).collect()
                };
                let (a, b) = (pick(&a, &variables.a), pick(&b, &variables.b));
                (a, b, QueryLayout::Compact)
            }
        };
        Ok(Self {
            flavour,
            domain_size,
            query_layout,
            secrets: [alpha, beta, gamma, delta].map(Scalar::from),
            gamma_abc,
            a,
            b,
            h,
            l,
        })
    }
}

fn scalars(values: &[Fr]) -> Vec<Scalar> {
    values
        .par_iter()
        .with_min_len(TASK)
        .map(|value| Scalar::from(*value))
        .collect()
}

/// L_k(x) = (x^n - 1)/n * w^k / (x - w^k) for k below n; x is not in the domain.
pub(super) fn lagrange_at(x: Fr, n: usize, family: RootGenerator) -> Result<Vec<Fr>, Error> {
    let size_error = cuzk_ntt::Error::Size { size: n };
    let root = family.root_of_unity(n.trailing_zeros()).ok_or(size_error)?;
    let scale = (x.pow(n as u64) - Fr::ONE) * Fr::from(n as u64).inverse().unwrap_or(Fr::ZERO);
    let mut values = vec![Fr::ZERO; n];
    values
        .par_chunks_mut(TASK)
        .enumerate()
        .for_each_init(Vec::new, |scratch, (task, values)| {
            let first = root.pow((task * TASK) as u64);
            let mut point = first;
            for value in values.iter_mut() {
                *value = x - point;
                point *= root;
            }
            batch_invert(values, scratch);
            let mut factor = scale * first;
            for value in values {
                *value *= factor;
                factor *= root;
            }
        });
    Ok(values)
}

/// sum_k M_kv lagrange_k by variable: M_v(tau) for the Lagrange polynomials at tau. Each task has a
/// range of variables and looks at all entries.
pub(super) fn column_sums(matrix: &Matrix, r1cs: &R1cs, lagrange: &[Fr]) -> Vec<Fr> {
    let variables = r1cs.num_variables;
    let tasks = match matrix.num_entries() {
        0..0x1_0000 => 1,
        _ => rayon::current_num_threads(),
    };
    let coefficients = r1cs.coefficients.values();
    let mut sums = vec![Fr::ZERO; variables];
    let share = variables.div_ceil(tasks).max(1);
    sums.par_chunks_mut(share)
        .enumerate()
        .for_each(|(task, sums)| {
            let first = (task * share) as u32;
            for (row, value) in (0..matrix.num_rows()).zip(lagrange) {
                for (variable, coefficient) in matrix.row(row) {
                    let Some(sum) = sums.get_mut(variable.wrapping_sub(first) as usize) else {
                        continue;
                    };
                    match coefficient {
                        cuzk_formats::CoefficientTable::ONE => *sum += *value,
                        cuzk_formats::CoefficientTable::MINUS_ONE => *sum -= *value,
                        _ => *sum += coefficients[coefficient as usize] * *value,
                    }
                }
            }
        });
    sums
}

/// tau^i Z(tau) / delta for i below n - 1, or L_(2i+1)(tau) / delta in the domain of size 2n.
fn h_exponents(
    flavour: KeyFlavour,
    tau: Fr,
    n: usize,
    delta_inverse: Fr,
) -> Result<Vec<Scalar>, Error> {
    if flavour.h_basis == HBasis::OddLagrange {
        let values = lagrange_at(tau, 2 * n, flavour.root_generator)?;
        return Ok((0..n)
            .into_par_iter()
            .with_min_len(TASK)
            .map(|i| Scalar::from(values[2 * i + 1] * delta_inverse))
            .collect());
    }
    let first = (tau.pow(n as u64) - Fr::ONE) * delta_inverse;
    let mut exponents = vec![Scalar::ZERO; flavour.h_len(n)];
    exponents
        .par_chunks_mut(TASK)
        .enumerate()
        .for_each(|(task, exponents)| {
            let mut value = first * tau.pow((task * TASK) as u64);
            for exponent in exponents {
                *exponent = value.into();
                value *= tau;
            }
        });
    Ok(exponents)
}
