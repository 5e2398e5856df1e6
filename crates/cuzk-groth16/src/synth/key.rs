//! Keys with a known trapdoor.

use cuzk_field::{Field as _, Fr, G1Affine, G2Affine, RootGenerator, Scalar, batch_invert};
use cuzk_formats::{KeyFlavour, Matrix, ProvingKey, QueryLayout, R1cs, VerifyingKey};
use cuzk_msm::FixedBase;

use super::random::Random;
use crate::circuit::QueryVariables;
use crate::error::Error;

/// Whose conventions a synthetic key follows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyFamily {
    /// snarkjs: roots of 5, odd Lagrange H, full queries.
    Circom,
    /// arkworks: roots of 7, tau-power H, full queries.
    Arkworks,
    /// bellman: as arkworks, but without points at infinity.
    Bellman,
}

impl KeyFamily {
    /// Roots of unity and H basis.
    pub const fn flavour(self) -> KeyFlavour {
        match self {
            Self::Circom => KeyFlavour::CIRCOM,
            Self::Arkworks | Self::Bellman => KeyFlavour::LIBSNARK,
        }
    }
}

/// The secrets of a setup.
struct Trapdoor {
    tau: Fr,
    alpha: Fr,
    beta: Fr,
    gamma: Fr,
    delta: Fr,
}

/// Makes a key for a circuit from secrets that follow from `seed`. It protects nothing.
///
/// # Errors
/// [`Error::Domain`] for circuits above 2^32 rows.
pub fn proving_key(r1cs: &R1cs, family: KeyFamily, seed: u64) -> Result<ProvingKey, Error> {
    let flavour = family.flavour();
    let domain_size = match family {
        KeyFamily::Circom => r1cs.domain_size().max(2),
        KeyFamily::Arkworks | KeyFamily::Bellman => r1cs.domain_size(),
    };
    let mut random = Random::new(seed, 1);
    let trapdoor = Trapdoor {
        tau: random.full_size(),
        alpha: random.full_size(),
        beta: random.full_size(),
        gamma: random.full_size(),
        delta: random.full_size(),
    };
    let lagrange = lagrange_at(trapdoor.tau, domain_size, flavour.root_generator)?;
    let columns = Columns::of(r1cs, &lagrange);
    let inverse = |value: Fr| value.inverse().unwrap_or(Fr::ZERO);
    let (gamma_inverse, delta_inverse) = (inverse(trapdoor.gamma), inverse(trapdoor.delta));
    let combined = |v: usize, divisor_inverse: Fr| {
        let sum = trapdoor.beta * columns.a[v] + trapdoor.alpha * columns.b[v] + columns.c[v];
        Scalar::from(sum * divisor_inverse)
    };
    let inputs = r1cs.num_inputs;
    let ic: Vec<Scalar> = (0..inputs).map(|v| combined(v, gamma_inverse)).collect();
    let l: Vec<Scalar> = (inputs..r1cs.num_variables)
        .map(|v| combined(v, delta_inverse))
        .collect();
    let h = h_scalars(flavour, &trapdoor, domain_size, delta_inverse)?;
    let (a, b, query_layout) = match family {
        KeyFamily::Circom | KeyFamily::Arkworks => {
            (scalars(&columns.a), scalars(&columns.b), QueryLayout::Full)
        }
        KeyFamily::Bellman => {
            let variables = QueryVariables::of(r1cs);
            let pick = |values: &[Fr], of: &[u32]| -> Vec<Scalar> {
                of.iter().map(|v| values[*v as usize].into()).collect()
            };
            (
                pick(&columns.a, &variables.a),
                pick(&columns.b, &variables.b),
                QueryLayout::Compact,
            )
        }
    };
    drop(columns);

    let g1 = FixedBase::new(&G1Affine::generator());
    let g2 = FixedBase::new(&G2Affine::generator());
    let single_g1 = |value: Fr| g1.multiply_all(&[value.into()])[0];
    let single_g2 = |value: Fr| g2.multiply_all(&[value.into()])[0];
    Ok(ProvingKey {
        flavour,
        domain_size,
        vk: VerifyingKey {
            alpha_g1: single_g1(trapdoor.alpha),
            beta_g2: single_g2(trapdoor.beta),
            gamma_g2: single_g2(trapdoor.gamma),
            delta_g2: single_g2(trapdoor.delta),
            gamma_abc_g1: g1.multiply_all(&ic),
        },
        beta_g1: single_g1(trapdoor.beta),
        delta_g1: single_g1(trapdoor.delta),
        query_layout,
        a_query: g1.multiply_all(&a),
        b_g1_query: g1.multiply_all(&b),
        b_g2_query: g2.multiply_all(&b),
        h_query: g1.multiply_all(&h),
        l_query: g1.multiply_all(&l),
    })
}

fn scalars(values: &[Fr]) -> Vec<Scalar> {
    values.iter().map(|value| Scalar::from(*value)).collect()
}

/// L_k(x) = (x^n - 1)/n * w^k / (x - w^k) for k below n; x is not in the domain.
fn lagrange_at(x: Fr, n: usize, family: RootGenerator) -> Result<Vec<Fr>, Error> {
    let size_error = cuzk_ntt::Error::Size { size: n };
    let root = family.root_of_unity(n.trailing_zeros()).ok_or(size_error)?;
    let mut points = Vec::with_capacity(n);
    let mut point = Fr::ONE;
    for _ in 0..n {
        points.push(point);
        point *= root;
    }
    let mut values: Vec<Fr> = points.iter().map(|point| x - *point).collect();
    batch_invert(&mut values, &mut Vec::new());
    let scale = (x.pow(n as u64) - Fr::ONE) * Fr::from(n as u64).inverse().unwrap_or(Fr::ZERO);
    for (value, point) in values.iter_mut().zip(&points) {
        *value *= scale * *point;
    }
    Ok(values)
}

/// A_v(tau), B_v(tau), C_v(tau) by variable.
struct Columns {
    a: Vec<Fr>,
    b: Vec<Fr>,
    c: Vec<Fr>,
}

impl Columns {
    fn of(r1cs: &R1cs, lagrange: &[Fr]) -> Self {
        let column_sums = |matrix: &Matrix| {
            let mut sums = vec![Fr::ZERO; r1cs.num_variables];
            for (row, value) in lagrange.iter().enumerate().take(matrix.num_rows()) {
                for (variable, coefficient) in matrix.row(row) {
                    sums[variable as usize] +=
                        r1cs.coefficients.values()[coefficient as usize] * *value;
                }
            }
            sums
        };
        let mut a = column_sums(&r1cs.a);
        // The rows that bind the inputs.
        for (sum, value) in a[..r1cs.num_inputs]
            .iter_mut()
            .zip(&lagrange[r1cs.num_constraints()..])
        {
            *sum += *value;
        }
        Self {
            a,
            b: column_sums(&r1cs.b),
            c: column_sums(&r1cs.c),
        }
    }
}

/// tau^i Z(tau) / delta for i below n - 1, or L_(2i+1)(tau) / delta in the domain of size 2n.
fn h_scalars(
    flavour: KeyFlavour,
    trapdoor: &Trapdoor,
    n: usize,
    delta_inverse: Fr,
) -> Result<Vec<Scalar>, Error> {
    match flavour.h_basis {
        cuzk_formats::HBasis::OddLagrange => {
            let values = lagrange_at(trapdoor.tau, 2 * n, flavour.root_generator)?;
            Ok(values
                .iter()
                .skip(1)
                .step_by(2)
                .map(|value| Scalar::from(*value * delta_inverse))
                .collect())
        }
        _ => {
            let mut value = (trapdoor.tau.pow(n as u64) - Fr::ONE) * delta_inverse;
            Ok((0..flavour.h_len(n))
                .map(|_| {
                    let scalar = Scalar::from(value);
                    value *= trapdoor.tau;
                    scalar
                })
                .collect())
        }
    }
}
