//! The neutral model that every format is read into.

mod matrix;

use cuzk_field::{Fr, G1Affine, G2Affine, RootGenerator, Scalar};
use zeroize::{Zeroize, ZeroizeOnDrop};

pub use self::matrix::{CoefficientTable, Matrix, PartsMismatch, TooManyEntries};

/// In which basis a key's H points stand, which decides what they are multiplied with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum HBasis {
    /// `H[i] = L_(2i+1)(tau) / delta` in the domain of size 2n (snarkjs): n points, multiplied with
    /// the values of AB - C at the odd powers of the 2n-th root.
    OddLagrange,
    /// `H[i] = tau^i Z(tau) / delta` (bellman, arkworks): n - 1 points, multiplied with the
    /// coefficients of (AB - C) / Z.
    TauPowers,
    /// `H[j] = l_j(tau) Z(tau) / (z delta)`, l_j the j-th Lagrange polynomial of the coset g times the
    /// domain, z = g^n - 1 (prepared keys): n points, multiplied with the values of AB at g w^j. L then
    /// has a point for every variable, inputs included, from which the part of C is taken off
    /// (`docs/groth16.md`).
    CosetLagrange {
        /// g, with g^n not one.
        shift: Fr,
    },
}

/// The conventions a key was made under. Data, never a guess.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KeyFlavour {
    /// The family of the domain's roots of unity.
    pub root_generator: RootGenerator,
    /// The basis of `h_query`.
    pub h_basis: HBasis,
}

impl KeyFlavour {
    /// Keys of circom and snarkjs.
    pub const CIRCOM: Self = Self {
        root_generator: RootGenerator::Five,
        h_basis: HBasis::OddLagrange,
    };
    /// Keys of arkworks and of the bellman family.
    pub const LIBSNARK: Self = Self {
        root_generator: RootGenerator::Seven,
        h_basis: HBasis::TauPowers,
    };

    /// How many H points a key of this flavour has for a domain of `domain_size`.
    pub const fn h_len(self, domain_size: usize) -> usize {
        match self.h_basis {
            HBasis::OddLagrange | HBasis::CosetLagrange { .. } => domain_size,
            HBasis::TauPowers => domain_size - 1,
        }
    }

    /// The first variable that L has a point for: inputs have none but where the part of C is in L.
    pub const fn first_in_l(self, num_inputs: usize) -> usize {
        match self.h_basis {
            HBasis::OddLagrange | HBasis::TauPowers => num_inputs,
            HBasis::CosetLagrange { .. } => 0,
        }
    }
}

/// Which variables `a_query`, `b_g1_query` and `b_g2_query` have an entry for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QueryLayout {
    /// One entry per variable, points at infinity included (snarkjs, arkworks).
    Full,
    /// Only variables that occur: every input and the occurring others in A; the occurring inputs
    /// and others in B (bellman). Which ones is known from the constraint system alone.
    Compact,
}

/// The verifying key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyingKey {
    /// alpha in G1.
    pub alpha_g1: G1Affine,
    /// beta in G2.
    pub beta_g2: G2Affine,
    /// gamma in G2.
    pub gamma_g2: G2Affine,
    /// delta in G2.
    pub delta_g2: G2Affine,
    /// One point per input, the constant ONE first (IC; `gamma_abc_g1` in arkworks).
    pub gamma_abc_g1: Vec<G1Affine>,
}

impl VerifyingKey {
    /// Public values a proof comes with: inputs without the constant ONE.
    pub fn num_public(&self) -> usize {
        self.gamma_abc_g1.len().saturating_sub(1)
    }
}

/// A proving key. Queries are in variable order: the constant ONE, public values, the rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProvingKey {
    /// Roots of unity and H basis.
    pub flavour: KeyFlavour,
    /// n, a power of two.
    pub domain_size: usize,
    /// The verifying key.
    pub vk: VerifyingKey,
    /// beta in G1.
    pub beta_g1: G1Affine,
    /// delta in G1.
    pub delta_g1: G1Affine,
    /// Which variables the three queries below cover.
    pub query_layout: QueryLayout,
    /// A in G1.
    pub a_query: Vec<G1Affine>,
    /// B in G1.
    pub b_g1_query: Vec<G1Affine>,
    /// B in G2.
    pub b_g2_query: Vec<G2Affine>,
    /// H, `flavour.h_len(domain_size)` points.
    pub h_query: Vec<G1Affine>,
    /// L, one point per variable from `flavour.first_in_l(num_inputs)` on.
    pub l_query: Vec<G1Affine>,
}

impl ProvingKey {
    /// Inputs, the constant ONE included.
    pub fn num_inputs(&self) -> usize {
        self.vk.gamma_abc_g1.len()
    }

    /// All variables, the constant ONE included.
    pub fn num_variables(&self) -> usize {
        self.flavour.first_in_l(self.num_inputs()) + self.l_query.len()
    }
}

/// A rank-1 constraint system: row i asks (A_i w)(B_i w) = C_i w.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct R1cs {
    /// Inputs, the constant ONE included.
    pub num_inputs: usize,
    /// All variables, the constant ONE included.
    pub num_variables: usize,
    /// The left factors.
    pub a: Matrix,
    /// The right factors.
    pub b: Matrix,
    /// The products.
    pub c: Matrix,
    /// The coefficients of all three.
    pub coefficients: CoefficientTable,
}

impl R1cs {
    /// Constraints, without the input rows that the provers add.
    pub fn num_constraints(&self) -> usize {
        self.a.num_rows()
    }

    /// The smallest power of two that holds the constraints and one row per input.
    pub fn domain_size(&self) -> usize {
        (self.num_constraints() + self.num_inputs).next_power_of_two()
    }
}

/// Which variables the A and B queries of a compact key have a point for, in variable order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct QueryVariables {
    /// Every input, and the others that occur in some A row.
    pub a: Vec<u32>,
    /// The variables that occur in some B row.
    pub b: Vec<u32>,
}

impl QueryVariables {
    /// By bellman's rule: a variable occurs where its coefficient is not zero.
    pub fn of(r1cs: &R1cs) -> Self {
        let mut occurs_in_a = vec![false; r1cs.num_variables];
        let mut occurs_in_b = vec![false; r1cs.num_variables];
        occurs_in_a[..r1cs.num_inputs].fill(true);
        for column in r1cs.a.columns() {
            occurs_in_a[*column as usize] = true;
        }
        for column in r1cs.b.columns() {
            occurs_in_b[*column as usize] = true;
        }
        let indices = |occurs: &[bool]| {
            (0..)
                .zip(occurs)
                .filter(|(_, occurs)| **occurs)
                .map(|(index, _)| index)
                .collect()
        };
        Self {
            a: indices(&occurs_in_a),
            b: indices(&occurs_in_b),
        }
    }
}

/// A full assignment: the constant ONE, public values, the rest. Wiped when dropped.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Witness {
    values: Vec<Scalar>,
}

impl Witness {
    /// From values in variable order, the first of which must be one: checked where files are read
    /// and again by the prover.
    pub fn new(values: Vec<Scalar>) -> Self {
        Self { values }
    }

    /// The values in variable order.
    pub fn values(&self) -> &[Scalar] {
        &self.values
    }
}

impl std::fmt::Debug for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Witness({} values)", self.values.len())
    }
}

/// A proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proof {
    /// pi_a.
    pub a: G1Affine,
    /// pi_b.
    pub b: G2Affine,
    /// pi_c.
    pub c: G1Affine,
}
