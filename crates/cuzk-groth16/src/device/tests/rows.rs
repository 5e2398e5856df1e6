//! A w and B w against the CPU prover's.

use cuzk_field::{Field as _, Fr};
use cuzk_formats::{AbMatrices, CoefficientTable, Matrix, R1cs};
use cuzk_kernels::rows;
use cuzk_testkit::Words;

use super::Rig;
use super::witness::{Kind, full_value, witness};
use crate::device::HostMatrices;
use crate::rows::Rows;
use crate::synth::{Instance, Shape};

cuzk_testkit::on_both!(
    rows_of_hostile_matrices,
    rows_of_many_coefficients,
    rows_of_synthetic_circuits,
    matrices_with_bad_indices_are_refused,
);

/// Rows of lengths that a warp, a segment or a byte ends at, and one of 10,000 entries.
fn hostile_matrix(
    table: &mut CoefficientTable,
    variables: usize,
    rows: usize,
    seed: u64,
) -> Matrix {
    let mut words = Words::new(seed);
    let lengths = [
        0, 1, 2, 3, 4, 0, 0, 31, 32, 33, 47, 48, 49, 254, 255, 256, 511, 512, 513, 10_000,
    ];
    let mut matrix = Matrix::new();
    for row in 0..rows {
        let len = match row {
            // A stretch without long rows, then one with a long row now and then.
            0..70 => row % 4,
            _ if row % 73 == 3 => lengths[(row / 73 + seed as usize * 10) % lengths.len()],
            _ => (words.next_word() % 5) as usize,
        };
        for _ in 0..len {
            let column = words.next_word() as usize % variables;
            let coefficient = match words.next_word() % 5 {
                0 | 1 => CoefficientTable::ONE,
                2 => CoefficientTable::MINUS_ONE,
                3 => table.intern(Fr::from(words.next_word() % 7)),
                _ => table.intern(Fr::from(full_value(&mut words, row))),
            };
            matrix.push_entry(column as u32, coefficient);
        }
        matrix.end_row().unwrap();
    }
    matrix
}

fn compare(found: [Vec<Fr>; 2], expected: Rows, what: &str) {
    let n = found[0].len();
    let (a, b) = expected.into_padded(n);
    for (name, found, expected) in [("A", &found[0], &a), ("B", &found[1], &b)] {
        let wrong = (0..n).find(|i| found[*i] != expected[*i]);
        assert_eq!(wrong, None, "{what}: first wrong row of {name}");
    }
}

fn rows_of_hostile_matrices(rig: &Rig) {
    let mut table = CoefficientTable::new();
    table.intern(Fr::ZERO);
    let (variables, constraints) = (701, 800);
    let a = hostile_matrix(&mut table, variables, constraints, 1);
    let b = hostile_matrix(&mut table, variables, constraints, 2);
    let r1cs = R1cs {
        num_inputs: 45,
        num_variables: variables,
        a,
        b,
        c: Matrix::new(),
        coefficients: table,
    };
    let n = 1024;
    for kind in [Kind::Ones, Kind::Full, Kind::Borders] {
        let witness = witness(kind, variables, 3);
        let found = rig.rows(HostMatrices::of_r1cs(&r1cs), n, &witness);
        compare(
            found,
            Rows::of_r1cs(&r1cs, &witness, n),
            &format!("{kind:?}"),
        );
    }
    // A zkey's matrices end where they end; n is not a multiple of a warp.
    let matrices = AbMatrices {
        a: r1cs.a,
        b: r1cs.b,
        coefficients: r1cs.coefficients,
    };
    let witness = witness(Kind::Mixed, variables, 4);
    let n = 801;
    let found = rig.rows(HostMatrices::of_zkey(&matrices), n, &witness);
    compare(found, Rows::of_matrices(&matrices, &witness, n), "zkey");
    // Nothing at all.
    let empty = AbMatrices {
        a: Matrix::new(),
        b: Matrix::new(),
        coefficients: CoefficientTable::new(),
    };
    for n in [1, 33] {
        let found = rig.rows(HostMatrices::of_zkey(&empty), n, &witness[..1]);
        assert!(found.iter().flatten().all(Fr::is_zero));
    }
}

/// More coefficients than 16 bits number.
fn rows_of_many_coefficients(rig: &Rig) {
    let mut table = CoefficientTable::new();
    for value in 2..70_000_u64 {
        table.intern(Fr::from(value));
    }
    let mut words = Words::new(5);
    let mut matrix = || {
        let mut matrix = Matrix::new();
        for row in 0..90 {
            for _ in 0..if row == 60 { 700 } else { row % 4 } {
                matrix.push_entry(
                    (words.next_word() % 50) as u32,
                    (words.next_word() % 69_000) as u32,
                );
            }
            matrix.end_row().unwrap();
        }
        matrix
    };
    let matrices = AbMatrices {
        a: matrix(),
        b: matrix(),
        coefficients: table,
    };
    let witness = witness(Kind::Mixed, 50, 6);
    let found = rig.rows(HostMatrices::of_zkey(&matrices), 128, &witness);
    compare(found, Rows::of_matrices(&matrices, &witness, 128), "wide");
}

fn rows_of_synthetic_circuits(rig: &Rig) {
    for shape in [Shape::Porep, Shape::Dense] {
        for log_n in [1, 2, 5, 10] {
            let Instance { r1cs, witness } = Instance::new(shape, log_n, 7).unwrap();
            let n = r1cs.domain_size();
            let found = rig.rows(HostMatrices::of_r1cs(&r1cs), n, witness.values());
            let expected = Rows::of_r1cs(&r1cs, witness.values(), n);
            compare(found, expected, &format!("{shape:?} 2^{log_n}"));
        }
    }
}

fn matrices_with_bad_indices_are_refused(rig: &Rig) {
    let fine = rows::SparseRows {
        row_offsets: &[0, 1, 3],
        columns: &[0, 1, 2],
        coefficients: &[0, 1, 0],
        input_rows: 1,
        num_rows: 4,
        num_variables: 3,
    };
    let refused = |rows: rows::SparseRows<'_>, coefficients| {
        rows::RowMatrix::new(&rig.stream, &rows, coefficients)
            .unwrap_err()
            .to_string()
    };
    rows::RowMatrix::new(&rig.stream, &fine, 2).unwrap();
    for (rows, coefficients, expected) in [
        (fine, 1, "coefficient 1"),
        (
            rows::SparseRows {
                num_variables: 2,
                ..fine
            },
            2,
            "variable 2",
        ),
        (
            rows::SparseRows {
                row_offsets: &[0, 3, 1, 3],
                ..fine
            },
            2,
            "do not rise",
        ),
        (
            rows::SparseRows {
                row_offsets: &[0, 1, 4],
                ..fine
            },
            2,
            "do not rise",
        ),
        (
            rows::SparseRows {
                row_offsets: &[],
                ..fine
            },
            2,
            "do not rise",
        ),
        (
            rows::SparseRows {
                coefficients: &[0],
                ..fine
            },
            2,
            "3 columns come with 1",
        ),
        (
            rows::SparseRows {
                num_rows: 2,
                ..fine
            },
            2,
            "3 rows are given for 2",
        ),
        (
            rows::SparseRows {
                input_rows: 4,
                num_rows: 9,
                ..fine
            },
            2,
            "4 inputs among 3",
        ),
    ] {
        let text = refused(rows, coefficients);
        assert!(text.contains(expected), "{text}");
    }
}
