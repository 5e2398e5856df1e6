//! A proof on a device by its phases: packed, staged, computed, finished.

use std::time::{Duration, Instant};

use cuzk_field::Scalar;
use cuzk_formats::Witness;
use cuzk_gpu_mem::{
    Admission, Compute, Error as Memory, Recorder, Scoped, StagingRequest, Stream, Tier,
};

use super::error::Result;
use super::incoming::{IncomingRows, IncomingWitness};
use super::packing::DevicePacked;
use super::prover::DeviceProver;
use super::section::SectionInput;
use super::sums::{PendingSums, SumsPlan};
use crate::circuit::Circuit;
use crate::error::Error;
use crate::prover::{ProveOptions, Proved};
use crate::rows::Rows;
use crate::stages::{Clock, StopCheck};
use crate::verifier::InputSum;

/// How long a proof waits for device memory that others hold: proofs of this process, or whoever else.
const PATIENCE: Duration = Duration::from_secs(600);
const PATIENCE_WITH_STRANGERS: Duration = Duration::from_secs(5);
/// How often it asks whether to go on waiting.
const ASK_AGAIN: Duration = Duration::from_millis(20);

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

impl DeviceProver<'_, '_> {
    /// Proves. That the witness satisfies the circuit is found out by verifying the proof; a proof that
    /// fails is explained by the first violated constraint, if the circuit is a constraint system. Without
    /// verification the constraints are checked on the host.
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
        let own = [h, others, self.gpu.beside()];
        for stream in own.into_iter().chain(self.gpu.sum_streams().all()) {
            stream.set_recorder(recorder.cloned());
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
        if !options.verify
            && let Some(constraint) = clock.run("constraints", || self.first_violated(witness))?
        {
            return Err(Error::Unsatisfied { constraint }.into());
        }
        let finished = self
            .setup
            .finish(&sums, &public_values, inputs, options, &mut clock);
        let proof = match finished {
            Err(Error::InvalidProof) => return Err(self.explain(witness).into()),
            finished => finished?,
        };
        // The packed witness, which the device has long had: wiped here and not under somebody's permit.
        self.gpu.device().host().take_back_pinned();
        Ok(Proved {
            proof,
            public_values,
            verified: options.verify,
            stages: clock.finish(),
        })
    }

    /// Why a proof does not verify.
    fn explain(&self, witness: &[Scalar]) -> Error {
        match self.first_violated(witness) {
            Some(constraint) => Error::Unsatisfied { constraint },
            None => Error::ProofRejected {
                witness_checked: matches!(self.circuit, Some(Circuit::R1cs(_))),
            },
        }
    }

    /// The first constraint that a witness violates; none where there are no constraints to check.
    fn first_violated(&self, witness: &[Scalar]) -> Option<usize> {
        let Some(Circuit::R1cs(r1cs)) = &self.circuit else {
            return None;
        };
        let rows = Rows::of_r1cs(r1cs, witness, self.setup.header.domain_size);
        rows.first_violated(r1cs, witness)
    }
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
