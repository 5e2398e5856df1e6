//! A key and a circuit where proofs with them find them.

use std::sync::Arc;

use cuzk_field::Fr;
use cuzk_formats::HBasis;
use cuzk_formats::prepared::{PreparedFile, Reader};
use cuzk_gpu_mem::DeviceInfo;
use cuzk_ntt::device::{DevicePlan, QuotientForm};

use super::error::Result;
use super::gpu::{Gpu, SectionRoom};
use super::key::{DeviceKey, density_bytes};
use super::matrices::{DeviceMatrices, HostMatrices};
use super::plan::{KeyPlan, KeySizes, Part};
use crate::circuit::Circuit;
use crate::error::Error;
use crate::key::{KeyHeader, KeyRef};
use crate::setup::Setup;
use crate::synth::KeyExponents;
use crate::verifier::Verifier;

/// A key and a circuit on a device, ready to prove with. Any number of threads may, at once.
#[derive(Debug)]
pub struct DeviceProver<'g, 'c> {
    pub(super) gpu: &'g Gpu,
    pub(super) setup: Setup,
    pub(super) key: Arc<DeviceKey>,
    pub(super) sizes: KeySizes,
    pub(super) form: QuotientForm,
    pub(super) tables: Arc<DevicePlan>,
    pub(super) matrices: Option<DeviceMatrices>,
    /// For naming the first violated constraint.
    pub(super) circuit: Option<Circuit<'c>>,
    _room: SectionRoom,
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
        let mut plan = choose(device.info(), &sizes, room, others)?;
        if gpu.keeps_multiples() {
            plan.add_multiples(device.info(), &sizes);
        }
        let mib = |bytes: u64| bytes >> 20;
        tracing::info!(
            key = %plan.residency(),
            key_mib = mib(plan.key_bytes()),
            h_multiples = plan.h_multiples().map_or(1, |kept| kept.count()),
            section_mib = mib(plan.section_bytes()),
            room_mib = mib(room),
            "residency"
        );
        let room = gpu.keep_room(plan.section_bytes());
        let table_bytes = sizes.fixed_bytes + plan.spare_bytes() / 2;
        let key = key(plan)?;
        sizes.points = key.points();
        let tables = gpu.plan(root_generator, log_n, form, table_bytes)?;
        Ok(Self {
            gpu,
            setup,
            sizes,
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

    /// The verifier of this key's proofs.
    pub fn verifier(&self) -> &Verifier {
        &self.setup.verifier
    }

    /// Its circuit; none where rows are evaluated by the caller.
    pub fn circuit(&self) -> Option<&Circuit<'c>> {
        self.circuit.as_ref()
    }

    pub(super) fn shared_key(&self) -> Arc<DeviceKey> {
        Arc::clone(&self.key)
    }
}

/// A choice that is made already.
fn placing(
    parts: &[Part],
) -> impl FnOnce(&DeviceInfo, &KeySizes, u64, u64) -> Result<KeyPlan> + '_ {
    |info, sizes, _, _| KeyPlan::of_parts(info, sizes, parts)
}

pub(super) fn rows_scratch_bytes(matrices: Option<&DeviceMatrices>) -> u64 {
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
