//! What is made of a witness before the device is asked for anything.

use cuzk_field::{Fr, Scalar};
use cuzk_formats::Witness;
use cuzk_gpu_mem::StagingRequest;
use rayon::prelude::*;

use super::error::Result;
use super::incoming::{HostRows, IncomingRows, IncomingWitness};
use super::prover::{DeviceProver, rows_scratch_bytes};
use super::sums::{Beside, Known, SumsPlan};
use super::witness::PinnedWitness;
use super::witness_sums::WitnessTerms;
use crate::error::Error;
use crate::prover::ProveOptions;
use crate::rows::Rows;
use crate::stages::Clock;

/// A proof whose witness is in pinned memory, and what it needs of the device: [`DeviceProver::pack`]. Wiped when
/// dropped.
#[derive(Debug)]
pub struct DevicePacked {
    pub(super) witness: PinnedWitness,
    pub(super) rows: Option<HostRows>,
    pub(super) sums: SumsPlan,
    pub(super) staging: Vec<StagingRequest>,
    pub(super) compute_bytes: u64,
    pub(super) public_values: Vec<Scalar>,
    pub(super) clock: Clock,
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

/// A circuit that has neither matrices nor rows.
pub(super) fn no_rows() -> super::Error {
    Error::Circuit {
        what: "it has neither matrices nor rows".into(),
    }
    .into()
}

impl DeviceProver<'_, '_> {
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
        self.pack_rows_leaving(0, rows, witness, options)
    }

    /// [`DeviceProver::pack_leaving`] with rows that the caller has evaluated.
    ///
    /// # Errors
    /// As [`DeviceProver::prove`].
    pub fn pack_rows_leaving(
        &self,
        bytes: u64,
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
        self.pack_from(Some(rows), witness.values(), bytes, clock)
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
        let packed = clock.run("pack", || PinnedWitness::pack(device.host(), witness))??;
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
        let known = Known {
            info: device.info(),
            streams: self.gpu.sum_streams(),
            sizes: &self.sizes,
            key: self.key.plan(),
            terms,
            least_wipe_bytes: self.gpu.least_wipe_bytes(),
        };
        let sums = SumsPlan::new(known, beside, room)?;
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
    pub(super) fn beside_sums(&self, rows_are_given: bool) -> Beside {
        let array = 32 * self.setup.header.domain_size as u64;
        let given = if rows_are_given { 2 } else { 0 };
        let arrays = self.form.arrays() as u64 - given;
        Beside {
            array,
            quotient: arrays * array + rows_scratch_bytes(self.matrices.as_ref()),
        }
    }
}
