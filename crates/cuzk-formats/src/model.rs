//! The neutral model that every format is read into.

use std::hash::{BuildHasher as _, RandomState};

use cuzk_field::{Field as _, Fr, G1Affine, G2Affine, RootGenerator, Scalar};
use zeroize::{Zeroize, ZeroizeOnDrop};

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

/// The distinct coefficients of a constraint system; matrices hold indices into it.
///
/// Index 0 is always 1 and index 1 is always -1, so that evaluators can skip the multiplication.
///
/// Tables are equal when they hold the same values under the same indices.
#[derive(Clone, Debug)]
pub struct CoefficientTable {
    values: Vec<Fr>,
    /// An open-addressed hash set of indices plus one, 0 for an empty slot: some 13 bytes a value,
    /// where a map would hold every value twice. A power of two, at most three quarters full.
    slots: Vec<u32>,
    /// Keyed at random, so that no file can choose values that collide.
    hasher: RandomState,
}

impl CoefficientTable {
    /// The index of 1.
    pub const ONE: u32 = 0;
    /// The index of -1.
    pub const MINUS_ONE: u32 = 1;

    /// The table that holds 1 and -1.
    pub fn new() -> Self {
        let mut table = Self {
            values: Vec::new(),
            slots: vec![0; 16],
            hasher: RandomState::new(),
        };
        table.intern(Fr::ONE);
        table.intern(-Fr::ONE);
        table
    }

    /// The index of `value`, entered if it is new.
    ///
    /// # Panics
    /// When 2^32 - 1 distinct values are held, 128 GiB of them.
    pub fn intern(&mut self, value: Fr) -> u32 {
        let slot = match self.slot(&value) {
            Ok(index) => return index,
            Err(slot) => slot,
        };
        let index = self.values.len();
        let mark = u32::try_from(index + 1).expect("fewer than 2^32 - 1 coefficients");
        if self.values.capacity() == index {
            // By half, not double: the values are most of the memory.
            self.values.reserve_exact(index / 2 + 16);
        }
        self.values.push(value);
        self.slots[slot] = mark;
        if self.values.len() * 4 > self.slots.len() * 3 {
            self.grow();
        }
        mark - 1
    }

    /// The distinct values by index.
    pub fn values(&self) -> &[Fr] {
        &self.values
    }

    /// The index of `value`, or the slot where it belongs.
    fn slot(&self, value: &Fr) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = self.hasher.hash_one(value) as usize & mask;
        while self.slots[slot] != 0 {
            let index = self.slots[slot] - 1;
            if self.values[index as usize] == *value {
                return Ok(index);
            }
            slot = (slot + 1) & mask;
        }
        Err(slot)
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 2];
        for (value, mark) in self.values.iter().zip(1..) {
            if let Err(slot) = self.slot(value) {
                self.slots[slot] = mark;
            }
        }
    }
}

impl PartialEq for CoefficientTable {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Eq for CoefficientTable {}

impl Default for CoefficientTable {
    fn default() -> Self {
        Self::new()
    }
}

/// A sparse matrix by rows. Repeated columns within a row are sums; zero coefficients do not occur.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matrix {
    /// `num_rows + 1` positions into the two arrays below, the first 0.
    row_offsets: Vec<u32>,
    /// Variable of each entry.
    columns: Vec<u32>,
    /// Index of each entry's coefficient in the system's [`CoefficientTable`].
    coefficients: Vec<u32>,
}

impl Default for Matrix {
    fn default() -> Self {
        Self::new()
    }
}

/// More entries than a [`Matrix`] can index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyEntries;

impl std::fmt::Display for TooManyEntries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a matrix has 2^32 entries or more")
    }
}

impl std::error::Error for TooManyEntries {}

/// Arrays that are not those of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartsMismatch;

impl Matrix {
    /// A matrix without rows.
    pub fn new() -> Self {
        Self {
            row_offsets: vec![0],
            columns: Vec::new(),
            coefficients: Vec::new(),
        }
    }

    /// A matrix from its arrays: `row_offsets` one more than rows, from 0 up to the number of entries.
    ///
    /// # Errors
    /// When the arrays contradict each other.
    pub fn from_parts(
        row_offsets: Vec<u32>,
        columns: Vec<u32>,
        coefficients: Vec<u32>,
    ) -> Result<Self, PartsMismatch> {
        let ends = (row_offsets.first().copied(), row_offsets.last().copied());
        let fits = ends == (Some(0), u32::try_from(columns.len()).ok())
            && row_offsets.is_sorted()
            && columns.len() == coefficients.len();
        if !fits {
            return Err(PartsMismatch);
        }
        Ok(Self {
            row_offsets,
            columns,
            coefficients,
        })
    }

    /// A matrix without rows and with memory for `rows` of them.
    ///
    /// # Errors
    /// When the memory cannot be had.
    pub(crate) fn with_row_capacity(
        rows: usize,
    ) -> Result<Self, std::collections::TryReserveError> {
        let mut matrix = Self::default();
        matrix.row_offsets.try_reserve_exact(rows + 1)?;
        Ok(matrix)
    }

    /// Columns and coefficients of the row under construction.
    pub(crate) fn open_row(&self) -> (&[u32], &[u32]) {
        let start = self.row_offsets.last().map_or(0, |start| *start as usize);
        (&self.columns[start..], &self.coefficients[start..])
    }

    /// Removes the entries of the row under construction.
    pub(crate) fn clear_open_row(&mut self) {
        let start = self.row_offsets.last().map_or(0, |start| *start as usize);
        self.columns.truncate(start);
        self.coefficients.truncate(start);
    }

    /// Appends an entry to the row under construction.
    #[inline]
    pub fn push_entry(&mut self, column: u32, coefficient: u32) {
        self.columns.push(column);
        self.coefficients.push(coefficient);
    }

    /// Ends the row under construction.
    ///
    /// # Errors
    /// [`TooManyEntries`] when 2^32 or more entries are held.
    #[inline]
    pub fn end_row(&mut self) -> Result<(), TooManyEntries> {
        self.row_offsets
            .push(u32::try_from(self.columns.len()).map_err(|_| TooManyEntries)?);
        Ok(())
    }

    /// Rows ended so far.
    pub fn num_rows(&self) -> usize {
        self.row_offsets.len().saturating_sub(1)
    }

    /// Entries held.
    pub fn num_entries(&self) -> usize {
        self.columns.len()
    }

    /// The entries of a row as (column, coefficient index).
    #[inline]
    pub fn row(&self, row: usize) -> impl ExactSizeIterator<Item = (u32, u32)> {
        let range = self.row_offsets[row] as usize..self.row_offsets[row + 1] as usize;
        self.columns[range.clone()]
            .iter()
            .copied()
            .zip(self.coefficients[range].iter().copied())
    }

    /// Positions of the rows' first entries, and the end: `num_rows + 1` values.
    pub fn row_offsets(&self) -> &[u32] {
        &self.row_offsets
    }

    /// The variable of each entry.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The coefficient index of each entry.
    pub fn coefficients(&self) -> &[u32] {
        &self.coefficients
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
