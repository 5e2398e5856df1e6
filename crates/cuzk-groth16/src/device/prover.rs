//! A proof on a device, from the witness to the five sums.

use std::sync::Arc;
use std::time::Duration;

use cuzk_field::{Fr, Scalar};
use cuzk_formats::{HBasis, Witness};
use cuzk_gpu_mem::{Admission, Compute, OpenSpan, Recorder, Scoped, Tier};
use cuzk_ntt::device::{DevicePlan, QuotientArrays, QuotientForm};
use rayon::prelude::*;

use super::error::Result;
use super::gpu::Gpu;
use super::incoming::{HostRows, IncomingRows, IncomingWitness};
use super::key::DeviceKey;
use super::matrices::{DeviceMatrices, HostMatrices};
use super::sums::SumsPlan;
use super::witness::HostWitness;
use crate::circuit::Circuit;
use crate::error::Error;
use crate::key::{KeyHeader, KeyRef};
use crate::prover::{ProveOptions, Proved};
use crate::rows::Rows;
use crate::setup::{Setup, Sums};
use crate::stages::Clock;
use crate::synth::KeyExponents;

/// How long a proof waits for device memory that others hold.
const PATIENCE: Duration = Duration::from_secs(600);

/// A key and a circuit on a device, ready to prove with. Any number of threads may, at once.
#[derive(Debug)]
pub struct DeviceProver<'g, 'c> {
    gpu: &'g Gpu,
    setup: Setup,
    key: DeviceKey,
    form: QuotientForm,
    matrices: Option<DeviceMatrices>,
    /// For naming the first violated constraint.
    circuit: Option<Circuit<'c>>,
}

/// A proof after its first phase, [`DeviceProver::stage`]: what it brings is on its way to the device, and the
/// memory it will need is promised. Wiped when dropped.
#[derive(Debug)]
pub struct DeviceStaged {
    admission: Admission,
    plan: Arc<DevicePlan>,
    sums: SumsPlan,
    witness: IncomingWitness,
    rows: Option<IncomingRows>,
    clock: Clock,
}

impl DeviceStaged {
    /// How much of it is staged before the compute section.
    pub fn tier(&self) -> Tier {
        self.admission.plan().tier()
    }
}

/// A proof after its second phase, [`DeviceProver::compute`]: the five sums, wiped when dropped.
pub struct DeviceComputed {
    sums: Sums,
    clock: Clock,
}

impl std::fmt::Debug for DeviceComputed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeviceComputed(..)")
    }
}

/// Where A w and B w come from.
enum RowsSource {
    Matrices,
    Given(HostRows),
}

impl<'g, 'c> DeviceProver<'g, 'c> {
    /// Checks a key and a circuit and puts both on the device. Of [`Circuit::Rows`] the variables
    /// matter, not the rows: those come with [`DeviceProver::prove_rows`].
    ///
    /// # Errors
    /// As [`crate::Prover::new`] and [`crate::Prover::prove`]; when the device has no room.
    pub fn new<'k>(gpu: &'g Gpu, key: impl Into<KeyRef<'k>>, circuit: Circuit<'c>) -> Result<Self> {
        let key = key.into();
        key.check()?;
        let setup = Setup::new(key.header())?;
        circuit.check(&setup.header)?;
        let variables = circuit.query_variables(&setup.header, key.variables)?;
        let device_key = DeviceKey::upload(gpu.upload(), &key, variables.as_ref())?;
        Self::with_key(gpu, setup, device_key, circuit)
    }

    /// The same for a synthetic key, whose points are made on the device.
    ///
    /// # Errors
    /// As [`DeviceProver::new`].
    pub fn synthetic(gpu: &'g Gpu, exponents: &KeyExponents, circuit: Circuit<'c>) -> Result<Self> {
        let setup = Setup::new(exponents.header())?;
        circuit.check(&setup.header)?;
        let variables = circuit.query_variables(&setup.header, None)?;
        let key = DeviceKey::generate(gpu, exponents, variables.as_ref())?;
        Self::with_key(gpu, setup, key, circuit)
    }

    fn with_key(gpu: &'g Gpu, setup: Setup, key: DeviceKey, circuit: Circuit<'c>) -> Result<Self> {
        let header = &setup.header;
        let form = match header.flavour.h_basis {
            HBasis::OddLagrange => QuotientForm::OddValues,
            HBasis::TauPowers => QuotientForm::Coefficients,
            HBasis::CosetLagrange { shift } if is_odd_root(header, shift) => {
                QuotientForm::OddProducts
            }
            other => {
                return Err(Error::Key {
                    what: format!("its H basis {other:?} is not supported"),
                }
                .into());
            }
        };
        let matrices = match HostMatrices::of_circuit(&circuit) {
            None => None,
            Some(host) => Some(DeviceMatrices::upload(
                gpu.upload(),
                host,
                header.num_variables,
            )?),
        };
        let circuit = match circuit {
            Circuit::Rows { .. } => None,
            circuit => Some(circuit),
        };
        Ok(Self {
            gpu,
            setup,
            key,
            form,
            matrices,
            circuit,
        })
    }

    /// The key on the device.
    pub fn key(&self) -> &DeviceKey {
        &self.key
    }

    /// Proves. That the witness satisfies the circuit is found out by verifying the proof; a proof that
    /// fails is explained by the first violated constraint, if the circuit is a constraint system.
    ///
    /// # Errors
    /// As [`crate::Prover::prove`]; when the device fails or has no room.
    pub fn prove(&self, witness: &Witness, options: &ProveOptions) -> Result<Proved> {
        self.prove_recorded(witness, options, None)
    }

    /// The same, with what the device did when.
    ///
    /// # Errors
    /// As [`DeviceProver::prove`].
    pub fn prove_recorded(
        &self,
        witness: &Witness,
        options: &ProveOptions,
        recorder: Option<&Recorder>,
    ) -> Result<Proved> {
        let staged = self.stage(witness, options)?;
        let computed = self.compute(staged, options, recorder)?;
        self.finish(computed, witness, options)
    }

    /// Proves from rows that the caller has evaluated, those of the inputs included.
    ///
    /// # Errors
    /// As [`DeviceProver::prove`].
    pub fn prove_rows(
        &self,
        rows: &Rows,
        witness: &Witness,
        options: &ProveOptions,
    ) -> Result<Proved> {
        let staged = self.stage_rows(rows, witness, options)?;
        let computed = self.compute(staged, options, None)?;
        self.finish(computed, witness, options)
    }

    /// The first of a proof's three phases: packs the witness, waits for the device to have room, and
    /// begins the uploads for which there is room already. Another proof may be computing meanwhile.
    ///
    /// # Errors
    /// As [`DeviceProver::prove`].
    pub fn stage(&self, witness: &Witness, options: &ProveOptions) -> Result<DeviceStaged> {
        if self.matrices.is_none() {
            return Err(Error::Circuit {
                what: "it has neither matrices nor rows".into(),
            }
            .into());
        }
        let clock = Clock::new(options);
        self.stage_from(RowsSource::Matrices, witness.values(), clock)
    }

    /// The same, with rows that the caller has evaluated.
    ///
    /// # Errors
    /// As [`DeviceProver::prove`].
    pub fn stage_rows(
        &self,
        rows: &Rows,
        witness: &Witness,
        options: &ProveOptions,
    ) -> Result<DeviceStaged> {
        let (expected, found) = (self.setup.header.domain_size, rows.len());
        if found > expected {
            return Err(Error::CircuitMismatch {
                what: "rows in its domain",
                key: expected,
                circuit: found,
            }
            .into());
        }
        let mut clock = Clock::new(options);
        let rows = clock.run("pin rows", || self.pin(rows))??;
        self.stage_from(RowsSource::Given(rows), witness.values(), clock)
    }

    /// The second: rows, quotient and sums, in a compute section.
    ///
    /// # Errors
    /// As [`DeviceProver::prove`].
    pub fn compute(
        &self,
        staged: DeviceStaged,
        options: &ProveOptions,
        recorder: Option<&Recorder>,
    ) -> Result<DeviceComputed> {
        let DeviceStaged {
            admission,
            plan,
            sums,
            witness,
            rows,
            mut clock,
        } = staged;
        clock.resume(options);
        let device = self.gpu.device();
        let sums = clock.run("compute", || {
            device.compute_admitted(admission, recorder.cloned(), |cx| {
                self.section(cx, &plan, &sums, witness, rows, recorder)
            })
        })???;
        Ok(DeviceComputed { sums, clock })
    }

    /// The third: blinding, and verification where the options ask for it. `witness` is the one that was
    /// staged.
    ///
    /// # Errors
    /// As [`DeviceProver::prove`].
    pub fn finish(
        &self,
        computed: DeviceComputed,
        witness: &Witness,
        options: &ProveOptions,
    ) -> Result<Proved> {
        let DeviceComputed { sums, mut clock } = computed;
        clock.resume(options);
        let witness = witness.values();
        self.setup.check_witness(witness)?;
        let public_values = witness[1..self.setup.header.num_inputs()].to_vec();
        let finished = self
            .setup
            .finish(&sums, &public_values, options, &mut clock);
        let proof = match finished {
            Err(Error::InvalidProof) => return Err(self.explain(witness).into()),
            finished => finished?,
        };
        Ok(Proved {
            proof,
            public_values,
            verified: options.verify,
            stages: clock.finish(),
        })
    }

    fn pin(&self, rows: &Rows) -> Result<HostRows> {
        let host = self.gpu.device().host();
        let n = self.setup.header.domain_size;
        let pinned = |label, source: &[Fr]| -> Result<_> {
            let mut pinned = host.pinned::<Fr>(label, n)?;
            pinned.mark_secret();
            let (given, zero) = pinned.split_at_mut(source.len());
            given
                .par_chunks_mut(1 << 14)
                .zip(source.par_chunks(1 << 14))
                .for_each(|(to, from)| to.copy_from_slice(from));
            zero.fill(Fr::default());
            Ok(pinned)
        };
        Ok(HostRows {
            a: pinned("d_a", rows.a())?,
            b: pinned("d_b", rows.b())?,
        })
    }

    fn stage_from(
        &self,
        rows: RowsSource,
        witness: &[Scalar],
        mut clock: Clock,
    ) -> Result<DeviceStaged> {
        self.setup.check_witness(witness)?;
        let device = self.gpu.device();
        let header = &self.setup.header;
        let n = header.domain_size;
        let root_generator = header.flavour.root_generator;
        let plan = self
            .gpu
            .plan(root_generator, n.trailing_zeros(), self.form)?;
        let packed = clock.run("pack", || HostWitness::pack(device.host(), witness))??;

        let mut requests = IncomingWitness::requests(&packed).to_vec();
        if let RowsSource::Given(rows) = &rows {
            requests.extend(IncomingRows::requests(rows));
        }
        // Beside the scratch of the sums lies one array, the quotient's scalars.
        let staged: u64 = requests.iter().map(|request| request.bytes).sum();
        let room = device.usable()?.saturating_sub(staged + 32 * n as u64);
        let sums = SumsPlan::new(self.gpu, &self.key, room)?;
        let compute_bytes = self.compute_bytes(&rows, sums.scratch_bytes());
        let mut admission = clock.run("admit", || {
            device.admit("proof", &requests, compute_bytes, PATIENCE)
        })??;
        let upload = self.gpu.upload();
        let witness = IncomingWitness::stage(&mut admission, upload, packed)?;
        let rows = match rows {
            RowsSource::Matrices => None,
            RowsSource::Given(rows) => Some(IncomingRows::stage(&mut admission, upload, rows)?),
        };
        Ok(DeviceStaged {
            admission,
            plan,
            sums,
            witness,
            rows,
            clock,
        })
    }

    /// Why a proof does not verify.
    fn explain(&self, witness: &[Scalar]) -> Error {
        let Some(Circuit::R1cs(r1cs)) = &self.circuit else {
            return Error::ProofRejected {
                witness_checked: false,
            };
        };
        let rows = Rows::of_r1cs(r1cs, witness, self.setup.header.domain_size);
        match rows.first_violated(r1cs, witness) {
            Some(constraint) => Error::Unsatisfied { constraint },
            None => Error::ProofRejected {
                witness_checked: true,
            },
        }
    }

    /// Device bytes of the section besides what is staged: the quotient's arrays first, then one of them
    /// beside the scratch of the sums.
    fn compute_bytes(&self, rows: &RowsSource, sums_bytes: u64) -> u64 {
        let array = 32 * self.setup.header.domain_size as u64;
        let given = match rows {
            RowsSource::Matrices => 0,
            RowsSource::Given(_) => 2,
        };
        let scratch = self
            .matrices
            .as_ref()
            .map_or(0, |m| 32 * m.scratch_len() as u64);
        let quotient = (self.form.arrays() as u64 - given) * array + scratch;
        quotient.max(array + sums_bytes)
    }

    /// The section: everything that runs while no other proof computes.
    fn section(
        &self,
        cx: &Compute<'_>,
        plan: &DevicePlan,
        sums: &SumsPlan,
        witness: IncomingWitness,
        rows: Option<IncomingRows>,
        recorder: Option<&Recorder>,
    ) -> Result<Sums> {
        let span = |label| match recorder {
            None => Ok(None),
            Some(recorder) => recorder.span(label, 0, cx.stream()).map(Some),
        };
        let end = |span: Option<OpenSpan>| span.map(|span| span.end(cx.stream()));
        let (launcher, stream) = (self.gpu.launcher(), cx.stream());
        let n = self.setup.header.domain_size;
        let witness = witness.enter(cx)?;
        let rows_span = span("rows")?;
        let counting = SumsPlan::count(cx, self.gpu, &self.key, witness.view())?;
        let (mut a, mut b, rows) = match (rows, &self.matrices) {
            (Some(rows), _) => {
                let [a, b] = rows.enter(cx)?;
                (a, b, n)
            }
            (None, Some(matrices)) => {
                let mut a = secret::<Fr>(cx, "d_a", n)?;
                let mut b = secret::<Fr>(cx, "d_b", n)?;
                let mut scratch = secret(cx, "row segments", matrices.scratch_len())?;
                let rows = matrices.num_rows();
                matrices.evaluate(
                    launcher,
                    stream,
                    witness.view(),
                    scratch.view_mut(),
                    a.view_mut().slice(..rows),
                    b.view_mut().slice(..rows),
                )?;
                (a, b, rows)
            }
            (None, None) => {
                return Err(Error::Circuit {
                    what: "it has neither matrices nor rows".into(),
                }
                .into());
            }
        };
        end(rows_span);
        let quotient_span = span("quotient")?;
        let mut c = match self.form.arrays() {
            2 => None,
            _ => Some(secret::<Fr>(cx, "d_c", n)?),
        };
        let arrays = QuotientArrays {
            a: a.view_mut(),
            b: b.view_mut(),
            c: c.as_mut().map(Scoped::view_mut),
            rows,
        };
        let log_n = n.trailing_zeros();
        let h = plan.quotient(launcher, stream, log_n, self.form, arrays)?;
        drop((b, c));
        end(quotient_span);
        let h_span = span("H sum")?;
        let h = sums.begin_h(cx, self.gpu, &self.key, h.into_view())?;
        drop(a);
        end(h_span);
        let sums_span = span("witness sums")?;
        let begun = sums.begin(cx, self.gpu, &self.key, witness.view(), counting)?;
        end(sums_span);
        begun.finish(h)
    }
}

/// Whether g^2 = w for this shift and the domain's root: the coset that the device's tables are for.
fn is_odd_root(header: &KeyHeader, shift: Fr) -> bool {
    let log_n = header.domain_size.trailing_zeros();
    header.flavour.root_generator.root_of_unity(log_n + 1) == Some(shift)
}

/// Scratch that holds what follows from the witness.
pub(super) fn secret<'cx, T: cuzk_gpu_mem::Pod>(
    cx: &Compute<'cx>,
    label: &'static str,
    len: usize,
) -> cuzk_gpu_mem::Result<Scoped<'cx, T>> {
    let mut buffer = cx.alloc(label, len)?;
    buffer.mark_secret();
    Ok(buffer)
}
