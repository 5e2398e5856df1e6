//! Witness packing and rows against the CPU prover's, on the emulator and on a card where there is one.

use std::sync::Arc;

use cuzk_field::{Field as _, Fr, Scalar};
use cuzk_formats::{AbMatrices, CoefficientTable, Matrix, R1cs};
use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::{Device, DeviceBuf, GIB, Pod, Settings, Stream, list};
use cuzk_kernels::witness;
use cuzk_kernels::{Launcher, rows};
use cuzk_testkit::Words;

use super::key::Members;
use super::{
    DeviceKey, DeviceMatrices, DeviceWitness, Gpu, HostMatrices, HostWitness, synthetic_key,
};
use crate::rows::Rows;
use crate::synth::{Instance, KeyExponents, KeyFamily, Shape, proving_key};
use cuzk_formats::QueryVariables;

struct Rig {
    launcher: Box<dyn Launcher>,
    stream: Stream,
}

impl Rig {
    fn on(device: &Device) -> Self {
        Self {
            launcher: cuzk_kernels::open(device).unwrap(),
            stream: device.stream("test").unwrap(),
        }
    }

    fn emulated() -> Self {
        let settings = Settings {
            reserve: 0,
            ..Settings::default()
        };
        Self::on(&Device::with_driver(Arc::new(SimDriver::new(GIB)), settings).unwrap())
    }

    fn card() -> Option<Self> {
        if let Err(reason) = list() {
            cuzk_testkit::no_gpu(&reason);
            return None;
        }
        Some(Self::on(
            &Device::open(&"0".parse().unwrap(), Settings::default()).unwrap(),
        ))
    }

    fn device(&self) -> &Device {
        self.launcher.device()
    }

    fn alloc<T: Pod>(&self, len: usize) -> DeviceBuf<T> {
        let mut buffer = self.device().alloc("test", len, &self.stream).unwrap();
        self.stream.fill(&mut buffer, 0xff).unwrap();
        buffer
    }

    fn read<T: Pod>(&self, buffer: &DeviceBuf<T>) -> Vec<T> {
        let mut found = vec![T::zeroed(); buffer.len()];
        self.stream.download_slice(buffer, &mut found).unwrap();
        found
    }

    fn upload(&self, witness: HostWitness) -> DeviceWitness {
        witness.upload(&self.stream).unwrap()
    }

    /// A w and B w.
    fn rows(&self, host: HostMatrices<'_>, n: usize, witness: &[Scalar]) -> [Vec<Fr>; 2] {
        let packed = HostWitness::pack(self.device().host(), witness).unwrap();
        let buffers = self.upload(packed);
        let matrices = DeviceMatrices::upload(&self.stream, host, witness.len()).unwrap();
        assert!(matrices.bytes() >= host.device_bytes(witness.len()));
        let mut scratch = self.alloc(matrices.scratch_len());
        let rows = matrices.num_rows();
        let (mut a, mut b) = (self.alloc(n), self.alloc(n));
        for out in [&mut a, &mut b] {
            self.stream.fill(out.view_mut().slice(rows..), 0).unwrap();
        }
        matrices
            .evaluate(
                &*self.launcher,
                &self.stream,
                buffers.view(),
                scratch.view_mut(),
                a.view_mut().slice(..rows),
                b.view_mut().slice(..rows),
            )
            .unwrap();
        [self.read(&a), self.read(&b)]
    }
}

cuzk_testkit::on_both!(
    packed_witnesses_come_out_as_they_went_in,
    rows_of_hostile_matrices,
    rows_of_many_coefficients,
    rows_of_synthetic_circuits,
    matrices_with_bad_indices_are_refused,
    generated_keys_are_those_of_the_host,
    the_self_test_has_transforms_and_sums,
);

/// Points made on the device, and points uploaded; circuits with and without points at infinity.
fn generated_keys_are_those_of_the_host(rig: &Rig) {
    let gpu = Gpu::new(rig.device()).unwrap();
    let bitmap = |members: &Members| match members {
        Members::Range(range) => (Some(range.clone()), vec![], vec![]),
        Members::Bitmap(bitmap) => (None, rig.read(&bitmap.words), rig.read(&bitmap.ranks)),
    };
    for (shape, family) in [
        (Shape::Porep, KeyFamily::Circom),
        (Shape::Porep, KeyFamily::Bellman),
        (Shape::Dense, KeyFamily::Arkworks),
    ] {
        let r1cs = Instance::new(shape, 6, 3).unwrap().r1cs;
        let variables = match family {
            KeyFamily::Bellman => Some(QueryVariables::of(&r1cs)),
            KeyFamily::Circom | KeyFamily::Arkworks => None,
        };
        let key = proving_key(&r1cs, family, 4).unwrap();
        let uploaded = DeviceKey::upload(gpu.upload(), &(&key).into(), variables.as_ref()).unwrap();
        let exponents = KeyExponents::new(&r1cs, family, 4).unwrap();
        let made = DeviceKey::generate(&gpu, &exponents, variables.as_ref()).unwrap();
        gpu.upload().synchronize().unwrap();
        assert_eq!(made.header(), uploaded.header());
        assert!(rig.read(&made.sparse_g1) == rig.read(&uploaded.sparse_g1));
        assert!(rig.read(&made.b_g2) == rig.read(&uploaded.b_g2));
        assert!(rig.read(&made.h) == rig.read(&uploaded.h));
        assert!(rig.read(&made.h) == key.h_query);
        assert!(synthetic_key(&gpu, &exponents).unwrap() == key);
        assert!(made.bytes() <= DeviceKey::device_bytes(made.header()));
        for (made, uploaded) in [
            (&made.a, &uploaded.a),
            (&made.b, &uploaded.b),
            (&made.l, &uploaded.l),
        ] {
            assert_eq!(
                (made.first_point, made.points, bitmap(&made.members)),
                (
                    uploaded.first_point,
                    uploaded.points,
                    bitmap(&uploaded.members)
                )
            );
        }
    }
}

/// What a value of a witness is like.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Zeros,
    Ones,
    Full,
    Mixed,
    /// Full-size values at both ends of each word, bits between.
    Borders,
}

const KINDS: [Kind; 5] = [
    Kind::Zeros,
    Kind::Ones,
    Kind::Full,
    Kind::Mixed,
    Kind::Borders,
];

/// Values that are not bits, the hostile ones first.
fn full_value(words: &mut Words, i: usize) -> Scalar {
    let hostile = [
        Scalar::from(2),
        Scalar::from(1 << 32),
        Scalar::from(u64::MAX),
        Scalar::MINUS_ONE,
        Scalar::from_limbs([0, 1, 0, 0]).unwrap(),
        Scalar::from_limbs([1, 0, 0, 1 << 60]).unwrap(),
        Scalar::from_limbs([0, 0, 1, 0]).unwrap(),
    ];
    hostile.get(i % 11).copied().unwrap_or_else(|| {
        Scalar::from_limbs([
            words.next_word(),
            words.next_word(),
            words.next_word(),
            words.next_word() >> 2,
        ])
        .unwrap()
    })
}

fn witness(kind: Kind, len: usize, seed: u64) -> Vec<Scalar> {
    let mut words = Words::new(seed);
    let mut values: Vec<Scalar> = (0..len)
        .map(|i| {
            let class = match kind {
                Kind::Zeros => 0,
                Kind::Ones => 1,
                Kind::Full => 2,
                Kind::Mixed => words.next_word() % 3,
                Kind::Borders if i % 32 == 0 || i % 32 == 31 => 2,
                Kind::Borders => words.next_word() % 2,
            };
            match class {
                0 => Scalar::ZERO,
                1 => Scalar::ONE,
                _ => full_value(&mut words, i),
            }
        })
        .collect();
    values[0] = Scalar::ONE;
    values
}

fn packed_witnesses_come_out_as_they_went_in(rig: &Rig) {
    for kind in KINDS {
        for len in [1, 2, 31, 32, 33, 64, 1000, 16_383, 16_385, 33_000] {
            if len > 1000 && !matches!(kind, Kind::Mixed | Kind::Full) {
                continue;
            }
            let values = witness(kind, len, len as u64);
            let packed = HostWitness::pack(rig.device().host(), &values).unwrap();
            let full: Vec<Scalar> = values
                .iter()
                .filter(|v| !v.is_zero() && !v.is_one())
                .copied()
                .collect();
            assert!(*packed.full == full[..], "{kind:?} {len}");
            assert_eq!(packed.len(), len);
            assert_eq!(packed.num_full(), full.len());
            let words = len.div_ceil(32);
            assert_eq!(packed.bytes() as usize, 12 * words + 32 * full.len());

            let buffers = rig.upload(packed);
            for first in [0, 1, 31, 32, 33] {
                let Some(count) = len.checked_sub(first) else {
                    continue;
                };
                let mut out = rig.alloc(count);
                let view = buffers.view();
                witness::unpack(&*rig.launcher, &rig.stream, view, first, out.view_mut()).unwrap();
                assert!(rig.read(&out) == values[first..], "{kind:?} {len} {first}");
                if len > 1000 {
                    break;
                }
            }
            let mut variables = rig.alloc::<u32>(full.len());
            let view = buffers.view();
            witness::full_variables(&*rig.launcher, &rig.stream, view, variables.view_mut())
                .unwrap();
            let expected: Vec<u32> = (0..)
                .zip(&values)
                .filter(|(_, v)| !v.is_zero() && !v.is_one())
                .map(|(i, _)| i)
                .collect();
            assert_eq!(rig.read(&variables), expected, "{kind:?} {len}");
        }
    }
}

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

fn the_self_test_has_transforms_and_sums(rig: &Rig) {
    let done = super::self_test(&*rig.launcher).unwrap();
    for (part, results) in [
        ("Fp multiplication", 256),
        ("transform, family of 5", 2048),
        ("transform, family of 7", 2048),
        ("G1 sum", 1),
        ("G2 sum", 1),
    ] {
        assert!(done.passed.contains(&(part, results)), "{part}: {done:?}");
    }
}
