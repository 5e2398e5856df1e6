//! A device ready to prove on.

use std::fmt;
use std::sync::Arc;

use cuzk_field::RootGenerator;
use cuzk_gpu_mem::{Bus, Device, Priority, Stream};
use cuzk_kernels::Launcher;
use cuzk_msm::device::Streams;
use cuzk_ntt::device::{DevicePlan, PlanRequest, QuotientForm};
use parking_lot::{Mutex, MutexGuard};

use super::error::Result;

/// Which transforms a plan serves.
type PlanKey = (RootGenerator, u32, QuotientForm);

/// A device with its kernels loaded and their known answers checked, and the tables of transforms that
/// proofs have asked for. Any number of threads may prove on it.
pub struct Gpu {
    launcher: Box<dyn Launcher>,
    upload: Stream,
    keys: Stream,
    beside: Stream,
    /// For points of the H sum, and of those over the witness.
    key_uploads: [Stream; 2],
    /// Where those get their turns.
    bus: Bus,
    sums: Arc<Streams>,
    plans: Mutex<Vec<(PlanKey, Arc<DevicePlan>)>>,
    /// Bytes of a section that each prover needs at least, by its number.
    sections: Arc<Mutex<Vec<(u64, u64)>>>,
    /// Held while a key is placed: so that what one finds free is not another's as well.
    placing: Mutex<()>,
    multiples: bool,
    least_wipe_bytes: Option<usize>,
}

/// Share of the device that the tables of one domain may take: they save a multiplication a butterfly.
const TABLE_SHARE: u64 = 12;

impl Gpu {
    /// Loads the kernels and runs the self-test.
    ///
    /// # Errors
    /// When there are no images for the device, or it computes wrongly.
    pub fn new(device: &Device) -> Result<Self> {
        let launcher = cuzk_kernels::open(device)?;
        super::self_test(&*launcher)?;
        Ok(Self {
            launcher,
            upload: device.stream("upload")?,
            keys: device.stream("keys")?,
            // What is short gets between what is long: its kernels do not wait for all blocks of those.
            beside: device.stream_with("beside", Priority::High)?,
            key_uploads: [device.stream("key H")?, device.stream("key L, A, B")?],
            bus: Bus::new(),
            sums: Arc::new(Streams::new(device)?),
            plans: Mutex::default(),
            sections: Arc::default(),
            placing: Mutex::default(),
            multiples: false,
            least_wipe_bytes: None,
        })
    }

    /// Whether keys placed from now on keep multiples of H's points where memory is idle ([`KeyPlan::add_multiples`]). They
    /// take a second to make at 2^24 rows and save 7 ms a proof there: for those who make hundreds of proofs with a key.
    ///
    /// [`KeyPlan::add_multiples`]: super::KeyPlan::add_multiples
    #[must_use]
    pub fn with_multiples(mut self, keep: bool) -> Self {
        self.multiples = keep;
        self
    }

    /// Scratch of sums is wiped beside their ends from so few bytes on: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn wiping_at_least(mut self, bytes: usize) -> Self {
        self.least_wipe_bytes = Some(bytes);
        self
    }

    pub(super) fn least_wipe_bytes(&self) -> Option<usize> {
        self.least_wipe_bytes
    }

    pub(super) fn keeps_multiples(&self) -> bool {
        self.multiples
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.launcher.device()
    }

    /// What launches kernels on it.
    pub fn launcher(&self) -> &dyn Launcher {
        &*self.launcher
    }

    /// The stream on which witnesses are uploaded.
    pub fn upload(&self) -> &Stream {
        &self.upload
    }

    /// The stream at which keys, matrices and tables are at home: that uses of them are ordered behind those
    /// before does not hold up uploads.
    pub fn keys(&self) -> &Stream {
        &self.keys
    }

    /// The stream for what runs beside the section's.
    pub(super) fn beside(&self) -> &Stream {
        &self.beside
    }

    pub(super) fn bus(&self) -> &Bus {
        &self.bus
    }

    pub(super) fn key_uploads(&self) -> &[Stream; 2] {
        &self.key_uploads
    }

    pub(super) fn sum_streams(&self) -> &Arc<Streams> {
        &self.sums
    }

    /// Bytes of the largest section that other provers need.
    pub(super) fn section_bytes(&self) -> u64 {
        let sections = self.sections.lock();
        sections.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0)
    }

    /// Leaves room for sections of so many bytes for as long as the result lives.
    pub(super) fn keep_room(&self, bytes: u64) -> SectionRoom {
        let mut sections = self.sections.lock();
        let number = sections.last().map_or(0, |(number, _)| number + 1);
        sections.push((number, bytes));
        SectionRoom {
            sections: Arc::clone(&self.sections),
            number,
        }
    }

    /// One key is placed at a time.
    pub(super) fn placing(&self) -> MutexGuard<'_, ()> {
        self.placing.lock()
    }

    /// Tables for the quotient of a domain, in about `limit` bytes; made once, they stay.
    pub(super) fn plan(
        &self,
        root_generator: RootGenerator,
        log_n: u32,
        form: QuotientForm,
        limit: u64,
    ) -> Result<Arc<DevicePlan>> {
        let key = (root_generator, log_n, form);
        let mut plans = self.plans.lock();
        if let Some((_, plan)) = plans.iter().find(|(found, _)| *found == key) {
            return Ok(Arc::clone(plan));
        }
        let share = self.device().budget().state().limit / TABLE_SHARE;
        let request = PlanRequest::quotient(root_generator, log_n, form).within(share.min(limit));
        let plan = Arc::new(DevicePlan::new(&*self.launcher, &self.keys, &request)?);
        plans.push((key, Arc::clone(&plan)));
        Ok(plan)
    }

    /// Bytes that the least tables for the quotient of a domain take, if there are none yet.
    pub(super) fn least_table_bytes(
        &self,
        root_generator: RootGenerator,
        log_n: u32,
        form: QuotientForm,
    ) -> u64 {
        let key = (root_generator, log_n, form);
        if self.plans.lock().iter().any(|(found, _)| *found == key) {
            return 0;
        }
        let request = PlanRequest::quotient(root_generator, log_n, form).within(0);
        request.table_bytes()
    }

    /// Lets go of all tables of transforms that no prover uses.
    pub fn forget_tables(&self) {
        let is_used = |plan: &Arc<DevicePlan>| Arc::strong_count(plan) > 1;
        self.plans.lock().retain(|(_, plan)| is_used(plan));
    }
}

/// Room for a prover's sections.
#[derive(Debug)]
pub(super) struct SectionRoom {
    sections: Arc<Mutex<Vec<(u64, u64)>>>,
    number: u64,
}

impl Drop for SectionRoom {
    fn drop(&mut self) {
        let number = self.number;
        self.sections.lock().retain(|(other, _)| *other != number);
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu")
            .field("device", self.device())
            .finish_non_exhaustive()
    }
}
