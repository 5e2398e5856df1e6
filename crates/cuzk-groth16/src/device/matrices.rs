//! A and B on a device.

use cuzk_field::Fr;
use cuzk_formats::{AbMatrices, CoefficientTable, Matrix, R1cs};
use cuzk_gpu_mem::{DeviceViewMut, Stream};
use cuzk_kernels::Launcher;
use cuzk_kernels::rows::{self, Coefficients, RowMatrix, SparseRows};
use cuzk_kernels::witness::PackedWitness;

use crate::circuit::Circuit;

/// The matrices of a circuit as the host has them.
#[derive(Clone, Copy, Debug)]
pub struct HostMatrices<'a> {
    a: &'a Matrix,
    b: &'a Matrix,
    table: &'a CoefficientTable,
    /// Rows that bind the inputs and are not in `a` yet.
    input_rows: usize,
}

impl<'a> HostMatrices<'a> {
    /// Those of a constraint system, to which the rows of the inputs are added.
    pub fn of_r1cs(r1cs: &'a R1cs) -> Self {
        Self {
            a: &r1cs.a,
            b: &r1cs.b,
            table: &r1cs.coefficients,
            input_rows: r1cs.num_inputs,
        }
    }

    /// Those of a zkey, which have the rows of the inputs.
    pub fn of_zkey(matrices: &'a AbMatrices) -> Self {
        Self {
            a: &matrices.a,
            b: &matrices.b,
            table: &matrices.coefficients,
            input_rows: 0,
        }
    }

    /// Those of a circuit; `None` where its rows are given.
    pub fn of_circuit(circuit: &Circuit<'a>) -> Option<Self> {
        match circuit {
            Circuit::R1cs(r1cs) => Some(Self::of_r1cs(r1cs)),
            Circuit::Matrices(matrices) => Some(Self::of_zkey(matrices)),
            Circuit::Rows { .. } => None,
        }
    }

    /// Rows up to the last that may be other than zero.
    fn num_rows(&self) -> usize {
        self.a.num_rows().max(self.b.num_rows()) + self.input_rows
    }

    fn sparse(&self, num_variables: usize) -> [SparseRows<'a>; 2] {
        [(self.a, self.input_rows), (self.b, 0)].map(|(matrix, input_rows)| SparseRows {
            row_offsets: matrix.row_offsets(),
            columns: matrix.columns(),
            coefficients: matrix.coefficients(),
            input_rows,
            num_rows: self.num_rows(),
            num_variables,
        })
    }

    /// Bytes that they take on the device, some for long rows apart.
    pub fn device_bytes(&self, num_variables: usize) -> u64 {
        let coefficients = self.table.values().len();
        let matrices = self.sparse(num_variables);
        let rows = |rows| RowMatrix::device_bytes(rows, coefficients);
        Coefficients::device_bytes(coefficients) + matrices.iter().map(rows).sum::<u64>()
    }
}

/// A and B on the device: static, so uploaded once for any number of proofs.
#[derive(Debug)]
pub struct DeviceMatrices {
    a: RowMatrix,
    b: RowMatrix,
    coefficients: Coefficients,
}

impl DeviceMatrices {
    /// Checks and uploads the matrices of a circuit of `num_variables`. Returns when the host's memory has been read.
    ///
    /// # Errors
    /// When an index is out of bounds, or the device has no room.
    pub fn upload(
        stream: &Stream,
        host: HostMatrices<'_>,
        num_variables: usize,
    ) -> cuzk_kernels::Result<Self> {
        let values = host.table.values();
        let [a, b] = host.sparse(num_variables);
        Ok(Self {
            a: RowMatrix::new(stream, &a, values.len())?,
            b: RowMatrix::new(stream, &b, values.len())?,
            coefficients: Coefficients::new(stream, values)?,
        })
    }

    /// Rows up to the last that may be other than zero, in both.
    pub fn num_rows(&self) -> usize {
        self.a.num_rows()
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> u64 {
        self.a.bytes() + self.b.bytes() + Coefficients::device_bytes(self.coefficients.len())
    }

    /// Elements of scratch that [`DeviceMatrices::evaluate`] takes.
    pub fn scratch_len(&self) -> usize {
        self.a.scratch_len().max(self.b.scratch_len())
    }

    /// A w and B w in Montgomery form, [`DeviceMatrices::num_rows`] each. Asynchronous; scratch and
    /// outputs hold what follows from the witness.
    ///
    /// # Errors
    /// When lengths do not fit, or a launch fails.
    pub fn evaluate(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        witness: PackedWitness<'_>,
        mut scratch: DeviceViewMut<'_, Fr>,
        a: DeviceViewMut<'_, Fr>,
        b: DeviceViewMut<'_, Fr>,
    ) -> cuzk_kernels::Result<()> {
        for (matrix, out) in [(&self.a, a), (&self.b, b)] {
            let scratch = scratch.reborrow();
            rows::multiply(
                launcher,
                stream,
                matrix,
                &self.coefficients,
                witness,
                scratch,
                out,
            )?;
        }
        Ok(())
    }
}
