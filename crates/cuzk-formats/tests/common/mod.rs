//! Small valid files, and the means to spoil them.
#![allow(dead_code, unreachable_pub)] // each test file uses a part

use cuzk_field::{Fr, G1Affine, G1Xyzz, G2Affine, G2Xyzz, Scalar};
use cuzk_formats::{
    AbMatrices, CoefficientTable, KeyFlavour, Matrix, ProvingKey, QueryLayout, R1cs, VerifyingKey,
    Witness, r1cs, wtns, zkey,
};

/// A container file taken apart.
#[derive(Clone)]
pub struct File {
    pub magic: [u8; 4],
    pub version: u32,
    pub sections: Vec<(u32, Vec<u8>)>,
}

impl File {
    pub fn parse(bytes: &[u8]) -> Self {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let mut sections = Vec::new();
        let mut at = 12;
        for _ in 0..u32_at(8) {
            let len = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().unwrap()) as usize;
            sections.push((u32_at(at), bytes[at + 12..at + 12 + len].to_vec()));
            at += 12 + len;
        }
        assert_eq!(at, bytes.len());
        Self {
            magic: bytes[..4].try_into().unwrap(),
            version: u32_at(4),
            sections,
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = self.magic.to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend((self.sections.len() as u32).to_le_bytes());
        for (number, body) in &self.sections {
            out.extend(number.to_le_bytes());
            out.extend((body.len() as u64).to_le_bytes());
            out.extend(body);
        }
        out
    }

    /// The body of the first section `number`.
    pub fn body(&mut self, number: u32) -> &mut Vec<u8> {
        let found = self.sections.iter_mut().find(|s| s.0 == number);
        &mut found.expect("the section").1
    }

    /// Overwrites a part of section `number`.
    pub fn patch(&mut self, number: u32, at: usize, bytes: &[u8]) -> &mut Self {
        self.body(number)[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// The file with a part of section `number` overwritten.
    pub fn patched(&self, number: u32, at: usize, bytes: &[u8]) -> Vec<u8> {
        self.clone().patch(number, at, bytes).bytes()
    }

    /// Offsets of all borders: of preamble, section heads and bodies.
    pub fn borders(&self) -> Vec<usize> {
        let mut borders = vec![0, 4, 8, 12];
        let mut at = 12;
        for (_, body) in &self.sections {
            borders.extend([at + 4, at + 12, at + 12 + body.len()]);
            at += 12 + body.len();
        }
        borders.sort_unstable();
        borders.dedup();
        borders
    }
}

/// r, little-endian.
pub fn modulus() -> [u8; 32] {
    let mut bytes = Scalar::MINUS_ONE.to_le_bytes();
    bytes[0] += 1;
    bytes
}

/// p, little-endian.
pub fn base_modulus() -> Vec<u8> {
    cuzk_field::constants::FP_MODULUS
        .iter()
        .flat_map(|limb| limb.to_le_bytes())
        .collect()
}

pub fn scalar(value: u64) -> [u8; 32] {
    Scalar::from(value).to_le_bytes()
}

/// `.r1cs` bytes from linear combinations of (wire, coefficient), three a constraint.
pub fn r1cs_bytes(wires: u32, public: u32, combinations: &[&[(u32, [u8; 32])]]) -> Vec<u8> {
    let mut header = 32u32.to_le_bytes().to_vec();
    header.extend(modulus());
    for value in [wires, 0, public, 0] {
        header.extend(value.to_le_bytes());
    }
    header.extend(u64::from(wires).to_le_bytes());
    header.extend((combinations.len() as u32 / 3).to_le_bytes());
    let mut constraints = Vec::new();
    for combination in combinations {
        constraints.extend((combination.len() as u32).to_le_bytes());
        for (wire, coefficient) in *combination {
            constraints.extend(wire.to_le_bytes());
            constraints.extend(coefficient);
        }
    }
    let labels = (0..u64::from(wires)).flat_map(u64::to_le_bytes).collect();
    File {
        magic: *b"r1cs",
        version: 1,
        // As circom orders them.
        sections: vec![(2, constraints), (1, header), (3, labels)],
    }
    .bytes()
}

/// Five wires, one public, three constraints; 2 + 36 + ... bytes apart.
pub fn small_r1cs() -> Vec<u8> {
    let (one, two, minus_one) = (scalar(1), scalar(2), Scalar::MINUS_ONE.to_le_bytes());
    r1cs_bytes(
        5,
        1,
        &[
            &[(2, one)],
            &[(3, one)],
            &[(4, one)],
            &[(4, two), (0, one)],
            &[(0, one)],
            &[(1, one)],
            &[(3, minus_one), (2, two), (4, scalar(1 << 40))],
            &[],
            &[],
        ],
    )
}

pub fn small_wtns(values: &[u64]) -> Vec<u8> {
    let values = values.iter().map(|v| Scalar::from(*v)).collect();
    let mut out = Vec::new();
    wtns::write(&Witness::new(values), &mut out).unwrap();
    out
}

pub fn g1(k: u64) -> G1Affine {
    let g = G1Xyzz::from(G1Affine::generator());
    g.mul_scalar(&Scalar::from(k)).to_affine()
}

pub fn g2(k: u64) -> G2Affine {
    let g = G2Xyzz::from(G2Affine::generator());
    g.mul_scalar(&Scalar::from(k)).to_affine()
}

/// A well-formed key, not of any circuit: consistent lengths, distinct points, identities in A, B1
/// and B2.
pub fn synthetic_key(variables: usize, public: usize, domain_size: usize) -> ProvingKey {
    let points = |from: u64, count: usize| (from..).take(count).map(g1).collect::<Vec<_>>();
    let mut a_query = points(1000, variables);
    let mut b_g1_query = points(2000, variables);
    let mut b_g2_query: Vec<_> = (2000..).take(variables).map(g2).collect();
    a_query[variables - 1] = G1Affine::INFINITY;
    b_g1_query[0] = G1Affine::INFINITY;
    b_g2_query[0] = G2Affine::INFINITY;
    ProvingKey {
        flavour: KeyFlavour::CIRCOM,
        domain_size,
        vk: VerifyingKey {
            alpha_g1: g1(11),
            beta_g2: g2(12),
            gamma_g2: g2(1),
            delta_g2: g2(14),
            gamma_abc_g1: points(3000, public + 1),
        },
        beta_g1: g1(12),
        delta_g1: g1(14),
        query_layout: QueryLayout::Full,
        a_query,
        b_g1_query,
        b_g2_query,
        h_query: points(4000, domain_size),
        l_query: points(5000, variables - public - 1),
    }
}

/// Rows with the given (column, coefficient) entries.
pub fn matrix(rows: &[Vec<(u32, Fr)>], table: &mut CoefficientTable) -> Matrix {
    let mut matrix = Matrix::new();
    for row in rows {
        for (column, value) in row {
            matrix.push_entry(*column, table.intern(*value));
        }
        matrix.end_row().unwrap();
    }
    matrix
}

/// The rows of a matrix with their values, whatever the order of the table.
pub fn rows(matrix: &Matrix, table: &CoefficientTable) -> Vec<Vec<(u32, Fr)>> {
    let value = |(column, index): (u32, u32)| (column, table.values()[index as usize]);
    (0..matrix.num_rows())
        .map(|row| matrix.row(row).map(value).collect())
        .collect()
}

/// Whether two systems say the same.
pub fn same_system(a: &R1cs, b: &R1cs) -> bool {
    a.num_inputs == b.num_inputs
        && a.num_variables == b.num_variables
        && [(&a.a, &b.a), (&a.b, &b.b), (&a.c, &b.c)]
            .iter()
            .all(|(x, y)| rows(x, &a.coefficients) == rows(y, &b.coefficients))
}

/// Whether two keys' matrices say the same.
pub fn same_matrices(a: &AbMatrices, b: &AbMatrices) -> bool {
    rows(&a.a, &a.coefficients) == rows(&b.a, &b.coefficients)
        && rows(&a.b, &a.coefficients) == rows(&b.b, &b.coefficients)
}

/// Two circuit rows and the rows of two inputs, over six variables.
pub fn small_matrices() -> AbMatrices {
    let mut coefficients = CoefficientTable::new();
    let fr = |v: u64| Fr::from(v);
    let a = [
        vec![(2, fr(1)), (5, -fr(1))],
        vec![(0, fr(7)), (3, fr(1 << 50))],
        vec![(0, fr(1))],
        vec![(1, fr(1))],
    ];
    let b = [vec![(0, fr(1))], vec![(4, fr(7))], vec![], vec![]];
    AbMatrices {
        a: matrix(&a, &mut coefficients),
        b: matrix(&b, &mut coefficients),
        coefficients,
    }
}

/// Six variables, one public, domain 4: 12 + 4 + ... bytes.
pub fn small_zkey() -> Vec<u8> {
    let mut out = Vec::new();
    zkey::write(&synthetic_key(6, 1, 4), &small_matrices(), &mut out).unwrap();
    out
}

pub fn write_r1cs(system: &R1cs) -> Vec<u8> {
    let mut out = Vec::new();
    r1cs::write(system, &mut out).unwrap();
    out
}

/// Whether every constraint holds.
pub fn satisfies(system: &R1cs, witness: &Witness) -> bool {
    let table = &system.coefficients;
    let product = |matrix: &Matrix, row: usize| {
        matrix.row(row).fold(Fr::from(0), |sum, (column, index)| {
            sum + table.values()[index as usize] * Fr::from(witness.values()[column as usize])
        })
    };
    witness.values().len() == system.num_variables
        && (0..system.num_constraints())
            .all(|row| product(&system.a, row) * product(&system.b, row) == product(&system.c, row))
}
