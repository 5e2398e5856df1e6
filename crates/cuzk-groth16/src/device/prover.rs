//! A proof on a device, from the witness to the five sums.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_field::{Fr, Scalar};
use cuzk_formats::prepared::{PreparedFile, Reader};
use cuzk_formats::{HBasis, Witness};
use cuzk_gpu_mem::{
    Admission, Compute, DeviceInfo, Error as Memory, Recorder, Scoped, StagingRequest, Stream, Tier,
};
use cuzk_ntt::device::{DevicePlan, QuotientForm};
use rayon::prelude::*;

use super::error::Result;
use super::gpu::{Gpu, SectionRoom};
use super::incoming::{HostRows, IncomingRows, IncomingWitness};
use super::key::{DeviceKey, density_bytes};
use super::matrices::{DeviceMatrices, HostMatrices};
use super::plan::{KeyPlan, KeySizes, Part};
use super::section::SectionInput;
use super::sums::{Beside, PendingSums, SumsPlan};
use super::witness::HostWitness;
use super::witness_sums::WitnessTerms;
use crate::circuit::Circuit;
use crate::error::Error;
use crate::key::{KeyHeader, KeyRef};
use crate::prover::{ProveOptions, Proved};
use crate::rows::Rows;
use crate::setup::Setup;
use crate::stages::{Clock, StopCheck};
use crate::synth::KeyExponents;
use crate::verifier::InputSum;

/// How long a proof waits for device memory that others hold: proofs of this process, or whoever else.
const PATIENCE: Duration = Duration::from_secs(600);
const PATIENCE_WITH_STRANGERS: Duration = Duration::from_secs(5);
/// How often it asks whether to go on waiting.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// A key and a circuit on a device, ready to prove with. Any number of threads may, at once.
#[derive(Debug)]
pub struct DeviceProver<'g, 'c> {
    pub(super) gpu: &'g Gpu,
    pub(super) setup: Setup,
    pub(super) key: Arc<DeviceKey>,
    pub(super) form: QuotientForm,
    tables: Arc<DevicePlan>,
    pub(super) matrices: Option<DeviceMatrices>,
    /// For naming the first violated constraint.
    circuit: Option<Circuit<'c>>,
    _room: SectionRoom,
}

/// A proof whose witness is in pinned memory, and what it needs of the device: [`DeviceProver::pack`]. Wiped when
/// dropped.
#[derive(Debug)]
pub struct DevicePacked {
    witness: HostWitness,
    rows: Option<HostRows>,
    sums: SumsPlan,
    staging: Vec<StagingRequest>,
    compute_bytes: u64,
    public_values: Vec<Scalar>,
    clock: Clock,
}

impl DevicePacked {
    /// What is staged before the compute section where there is room, in order of preference.
    pub fn staging(&self) -> &[StagingRequest] {
        &self.staging
    }

    /// Device bytes of the section besides.
    pub fn compute_bytes(&self) -> u64 {
        self.compute_bytes
    }
}

/// A proof after its first phase, [`DeviceProver::stage`]: what it brings is on its way to the device. Wiped when
/// dropped.
#[derive(Debug)]
pub struct DeviceStaged {
    sums: SumsPlan,
    witness: IncomingWitness,
    rows: Option<IncomingRows>,
    tier: Tier,
    public_values: Vec<Scalar>,
    clock: Clock,
}

impl DeviceStaged {
    /// How much of it is staged before the compute section.
    pub fn tier(&self) -> Tier {
        self.tier
    }
}

/// A proof after its second phase, [`DeviceProver::compute`]: the windows of the five sums, wiped when dropped.
pub struct DeviceComputed {
    sums: PendingSums,
    inputs: Option<InputSum>,
    clock: Clock,
}

impl std::fmt::Debug for DeviceComputed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeviceComputed(..)")
    }
}

/// A circuit that has neither matrices nor rows.
pub(super) fn no_rows() -> super::Error {
    Error::Circuit {
        what: "it has neither matrices nor rows".into(),
    }
    .into()
}

impl<'g, 'c> DeviceProver<'g, 'c> {
    /// Checks a key and a circuit and puts both on the device: of the key as much as there is room for beside its
    /// proofs, the rest into pinned memory ([`KeyPlan`]). Of [`Circuit::Rows`] the variables matter, not the rows: those
    /// come with [`DeviceProver::prove_rows`].
    ///
    /// # Errors
    /// As [`crate::Prover::new`] and [`crate::Prover::prove`]; [`super::Error::TooSmall`].
    pub fn new<'k>(gpu: &'g Gpu, key: impl Into<KeyRef<'k>>, circuit: Circuit<'c>) -> Result<Self> {
        Self::upload(gpu, &key.into(), circuit, KeyPlan::choose)
    }

    /// The same with these parts of the key on the device, and no others: for measurements and tests.
    ///
    /// # Errors
    /// As [`DeviceProver::new`]; when the device has no room for them.
    pub fn with_parts<'k>(
        gpu: &'g Gpu,
        key: impl Into<KeyRef<'k>>,
        circuit: Circuit<'c>,
        parts: &[Part],
    ) -> Result<Self> {
        Self::upload(gpu, &key.into(), circuit, placing(parts))
    }

    fn upload(
        gpu: &'g Gpu,
        key: &KeyRef<'_>,
        circuit: Circuit<'c>,
        choose: impl FnOnce(&DeviceInfo, &KeySizes, u64, u64) -> Result<KeyPlan>,
    ) -> Result<Self> {
        key.check()?;
        let setup = Setup::new(key.header())?;
        circuit.check(&setup.header)?;
        let variables = circuit.query_variables(&setup.header, key.variables)?;
        Self::place(gpu, setup, circuit, choose, |plan| {
            DeviceKey::upload(gpu, plan, key, variables.as_ref()).map(Arc::new)
        })
    }

    /// A prover for a prepared key whose points go from its file to where they are used. `file` is what
    /// [`Reader::read_without_queries`] gave; the circuit is its matrices, or the R1CS that they were made from.
    ///
    /// # Errors
    /// As [`DeviceProver::new`]; what is wrong with the file.
    pub fn load(
        gpu: &'g Gpu,
        reader: &Reader<'_>,
        file: &PreparedFile,
        circuit: Circuit<'c>,
    ) -> Result<Self> {
        let setup = Setup::new(KeyHeader::of_prepared(file))?;
        circuit.check(&setup.header)?;
        let header = setup.header.clone();
        Self::place(gpu, setup, circuit, KeyPlan::choose, |plan| {
            DeviceKey::load(gpu, plan, header, &file.key.variables, reader).map(Arc::new)
        })
    }

    /// A prover for a synthetic key, whose points are made on the device.
    ///
    /// # Errors
    /// As [`DeviceProver::new`].
    pub fn synthetic(gpu: &'g Gpu, exponents: &KeyExponents, circuit: Circuit<'c>) -> Result<Self> {
        Self::generate(gpu, exponents, circuit, KeyPlan::choose)
    }

    /// The same with these parts of the key on the device, and no others: for measurements.
    ///
    /// # Errors
    /// As [`DeviceProver::with_parts`].
    pub fn synthetic_with_parts(
        gpu: &'g Gpu,
        exponents: &KeyExponents,
        circuit: Circuit<'c>,
        parts: &[Part],
    ) -> Result<Self> {
        Self::generate(gpu, exponents, circuit, placing(parts))
    }

    fn generate(
        gpu: &'g Gpu,
        exponents: &KeyExponents,
        circuit: Circuit<'c>,
        choose: impl FnOnce(&DeviceInfo, &KeySizes, u64, u64) -> Result<KeyPlan>,
    ) -> Result<Self> {
        let setup = Setup::new(exponents.header())?;
        circuit.check(&setup.header)?;
        let variables = circuit.query_variables(&setup.header, None)?;
        Self::place(gpu, setup, circuit, choose, |plan| {
            DeviceKey::generate(gpu, plan, exponents, variables.as_ref()).map(Arc::new)
        })
    }

    /// Puts matrices on the device, then the key where there is room.
    pub(super) fn place(
        gpu: &'g Gpu,
        setup: Setup,
        circuit: Circuit<'c>,
        choose: impl FnOnce(&DeviceInfo, &KeySizes, u64, u64) -> Result<KeyPlan>,
        key: impl FnOnce(KeyPlan) -> Result<Arc<DeviceKey>>,
    ) -> Result<Self> {
        let header = &setup.header;
        let (root_generator, log_n) = (
            header.flavour.root_generator,
            header.domain_size.trailing_zeros(),
        );
        let form = form_of(header)?;
        let _placing = gpu.placing();
        let matrices = match HostMatrices::of_circuit(&circuit) {
            None => None,
            Some(host) => {
                let matrices = DeviceMatrices::upload(gpu.keys(), host, header.num_variables)?;
                Some(matrices)
            }
        };
        let mut sizes = KeySizes::of(header, form);
        sizes.fixed_bytes =
            density_bytes(header) + gpu.least_table_bytes(root_generator, log_n, form);
        sizes.rows_scratch_bytes = rows_scratch_bytes(matrices.as_ref());
        let device = gpu.device();
        let (room, others) = (device.room()?, gpu.section_bytes());
        let plan = choose(device.info(), &sizes, room, others)?;
        let mib = |bytes: u64| bytes >> 20;
        tracing::info!(
            key = %plan.residency(),
            key_mib = mib(plan.key_bytes()),
            section_mib = mib(plan.section_bytes()),
            room_mib = mib(room),
            "residency"
        );
        let room = gpu.keep_room(plan.section_bytes());
        let table_bytes = sizes.fixed_bytes + plan.spare_bytes() / 2;
        let key = key(plan)?;
        let tables = gpu.plan(root_generator, log_n, form, table_bytes)?;
        Ok(Self {
            gpu,
            setup,
            key,
            form,
            tables,
            matrices,
            circuit: match circuit {
                Circuit::Rows { .. } => None,
                circuit => Some(circuit),
            },
            _room: room,
        })
    }

    /// The key, on the device or beside it.
    pub fn key(&self) -> &DeviceKey {
        &self.key
    }

    pub(super) fn shared_key(&self) -> Arc<DeviceKey> {
        Arc::clone(&self.key)
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
        let packed = self.pack(witness, options)?;
        self.prove_packed(packed, witness, options, recorder)
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
        let packed = self.pack_rows(rows, witness, options)?;
        self.prove_packed(packed, witness, options, None)
    }

    fn prove_packed(
        &self,
        packed: DevicePacked,
        witness: &Witness,
        options: &ProveOptions,
        recorder: Option<&Recorder>,
    ) -> Result<Proved> {
        let (admission, staged) = self.stage(packed, options)?;
        let computed = self.compute(admission, staged, options, recorder)?;
        self.finish(computed, witness, options)
    }

    /// What comes before the first of a proof's three phases, and asks nothing of the device: packs the witness, and says
    /// what the proof needs.
    ///
    /// # Errors
    /// As [`DeviceProver::prove`].
    pub fn pack(&self, witness: &Witness, options: &ProveOptions) -> Result<DevicePacked> {
        self.pack_leaving(0, witness, options)
    }

    /// The same for a proof that leaves so many bytes of the device to others, if it can.
    ///
    /// # Errors
    /// As [`DeviceProver::prove`].
    pub fn pack_leaving(
        &self,
        bytes: u64,
        witness: &Witness,
        options: &ProveOptions,
    ) -> Result<DevicePacked> {
        if self.matrices.is_none() {
            return Err(no_rows());
        }
        self.pack_from(None, witness.values(), bytes, Clock::new(options))
    }

    /// Pinned memory that a packed witness takes, were all its values full.
    pub fn pinned_bytes_at_most(&self) -> u64 {
        let variables = self.setup.header.num_variables;
        (12 * variables.div_ceil(32) + 32 * variables) as u64
    }

    /// The same, with rows that the caller has evaluated.
    ///
    /// # Errors
    /// As [`DeviceProver::prove`].
    pub fn pack_rows(
        &self,
        rows: &Rows,
        witness: &Witness,
        options: &ProveOptions,
    ) -> Result<DevicePacked> {
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
        self.pack_from(Some(rows), witness.values(), 0, clock)
    }

    /// The first phase: waits for the device to have room, and begins the uploads for which there is room already.
    /// Another proof may be computing meanwhile.
    ///
    /// # Errors
    /// As [`DeviceProver::prove`].
    pub fn stage(
        &self,
        mut packed: DevicePacked,
        options: &ProveOptions,
    ) -> Result<(Admission, DeviceStaged)> {
        packed.clock.resume(options);
        let (staging, compute_bytes) = (&packed.staging, packed.compute_bytes);
        let stop = options.stop.as_ref();
        let admit = || self.admit(staging, compute_bytes, stop);
        let mut admission = packed.clock.run("admit", admit)??;
        let staged = self.stage_admitted(packed, &mut admission, self.gpu.upload(), options)?;
        Ok((admission, staged))
    }

    fn admit(
        &self,
        staging: &[StagingRequest],
        compute_bytes: u64,
        stop: Option<&StopCheck>,
    ) -> Result<Admission> {
        let device = self.gpu.device();
        let begun = Instant::now();
        let mut among_us = begun;
        loop {
            if stop.is_some_and(StopCheck::is_stopped) {
                return Err(Error::Stopped.into());
            }
            let state = device.budget().state();
            if state.largest_claim > 0 || state.promised > 0 {
                among_us = Instant::now();
            }
            let is_patient =
                begun.elapsed() < PATIENCE && among_us.elapsed() < PATIENCE_WITH_STRANGERS;
            match device.admit("proof", staging, compute_bytes, ASK_AGAIN) {
                Err(Memory::OutOfMemory(_)) if is_patient => {}
                admitted => return Ok(admitted?),
            }
        }
    }

    /// The first phase under an admission of what [`DevicePacked`] asks for: begins the uploads, on `upload`.
    ///
    /// # Errors
    /// As [`DeviceProver::prove`].
    pub fn stage_admitted(
        &self,
        packed: DevicePacked,
        admission: &mut Admission,
        upload: &Stream,
        options: &ProveOptions,
    ) -> Result<DeviceStaged> {
        let DevicePacked {
            witness,
            rows,
            sums,
            public_values,
            mut clock,
            ..
        } = packed;
        clock.resume(options);
        let witness = IncomingWitness::stage(admission, upload, witness)?;
        let rows = match rows {
            None => None,
            Some(rows) => Some(IncomingRows::stage(admission, upload, rows)?),
        };
        Ok(DeviceStaged {
            sums,
            witness,
            rows,
            tier: admission.plan().tier(),
            public_values,
            clock,
        })
    }

    /// The second: rows, quotient and sums, in a compute section.
    ///
    /// # Errors
    /// As [`DeviceProver::prove`].
    pub fn compute(
        &self,
        admission: Admission,
        mut staged: DeviceStaged,
        options: &ProveOptions,
        recorder: Option<&Recorder>,
    ) -> Result<DeviceComputed> {
        staged.clock.resume(options);
        let device = self.gpu.device();
        device.compute_admitted(admission, recorder.cloned(), |cx| {
            self.compute_in(cx, staged, options, recorder)
        })?
    }

    /// The second phase in a section that is open already.
    ///
    /// # Errors
    /// As [`DeviceProver::prove`].
    pub fn compute_in(
        &self,
        cx: &Compute<'_>,
        staged: DeviceStaged,
        options: &ProveOptions,
        recorder: Option<&Recorder>,
    ) -> Result<DeviceComputed> {
        let DeviceStaged {
            sums,
            witness,
            rows,
            public_values,
            mut clock,
            ..
        } = staged;
        clock.resume(options);
        let [h, others] = self.gpu.key_uploads();
        let input = SectionInput {
            plan: &self.tables,
            sums: &sums,
            witness,
            beside: self.beside_sums(rows.is_some()),
            rows,
            stop: options.stop.as_ref(),
            recorder,
        };
        for uploads in [h, others] {
            uploads.set_recorder(recorder.cloned());
        }
        let (sums, inputs) = clock.run("compute", || {
            // The ends of these scopes wait for parts of the key that come over the bus, if any do.
            h.scope(|h| {
                others.scope(|others| {
                    let sums = self.section(cx, h, others, input)?;
                    // While the device computes.
                    let inputs = self.setup.verifier.input_sum(&public_values).ok();
                    Ok::<_, super::Error>((sums, inputs))
                })
            })
        })????;
        Ok(DeviceComputed {
            sums,
            inputs,
            clock,
        })
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
        let DeviceComputed {
            sums,
            inputs,
            mut clock,
        } = computed;
        clock.resume(options);
        let witness = witness.values();
        self.setup.check_witness(witness)?;
        let sums = clock.run("windows", || sums.finish())??;
        let public_values = witness[1..self.setup.header.num_inputs()].to_vec();
        let finished = self
            .setup
            .finish(&sums, &public_values, inputs, options, &mut clock);
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

    fn pack_from(
        &self,
        rows: Option<HostRows>,
        witness: &[Scalar],
        leave: u64,
        mut clock: Clock,
    ) -> Result<DevicePacked> {
        self.setup.check_witness(witness)?;
        let device = self.gpu.device();
        let packed = clock.run("pack", || HostWitness::pack(device.host(), witness))??;
        let mut staging = IncomingWitness::requests(&packed).to_vec();
        if let Some(rows) = &rows {
            staging.extend(IncomingRows::requests(rows));
        }
        let staged: u64 = staging.iter().map(|request| request.bytes).sum();
        let terms = WitnessTerms {
            variables: packed.bits.len() * 32,
            ones: packed.num_ones(),
            full: packed.num_full(),
        };
        let beside = self.beside_sums(rows.is_some());
        let room = device.room()?.saturating_sub(staged + leave);
        let sums = SumsPlan::new(self.gpu, &self.key, terms, beside, room)?;
        Ok(DevicePacked {
            compute_bytes: sums.section_bytes(beside),
            witness: packed,
            rows,
            sums,
            staging,
            public_values: witness[1..self.setup.header.num_inputs()].to_vec(),
            clock,
        })
    }

    /// What a section needs beside the sums and what is staged.
    fn beside_sums(&self, rows_are_given: bool) -> Beside {
        let array = 32 * self.setup.header.domain_size as u64;
        let given = if rows_are_given { 2 } else { 0 };
        let arrays = self.form.arrays() as u64 - given;
        Beside {
            array,
            quotient: arrays * array + rows_scratch_bytes(self.matrices.as_ref()),
        }
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
}

/// A choice that is made already.
fn placing(
    parts: &[Part],
) -> impl FnOnce(&DeviceInfo, &KeySizes, u64, u64) -> Result<KeyPlan> + '_ {
    |info, sizes, _, _| KeyPlan::of_parts(info, sizes, parts)
}

fn rows_scratch_bytes(matrices: Option<&DeviceMatrices>) -> u64 {
    matrices.map_or(0, |matrices| 32 * matrices.scratch_len() as u64)
}

/// What the H sum of a key takes.
pub(super) fn form_of(header: &KeyHeader) -> Result<QuotientForm, Error> {
    match header.flavour.h_basis {
        HBasis::OddLagrange => Ok(QuotientForm::OddValues),
        HBasis::TauPowers => Ok(QuotientForm::Coefficients),
        HBasis::CosetLagrange { shift } if is_odd_root(header, shift) => {
            Ok(QuotientForm::OddProducts)
        }
        other => Err(Error::Key {
            what: format!("its H basis {other:?} is not supported"),
        }),
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
