//! A device ready to prove on.

use std::fmt;
use std::sync::Arc;

use cuzk_field::RootGenerator;
use cuzk_gpu_mem::{Device, Stream};
use cuzk_kernels::Launcher;
use cuzk_ntt::device::{DevicePlan, PlanRequest, QuotientForm};
use parking_lot::Mutex;

use super::error::Result;

/// Which transforms a plan serves.
type PlanKey = (RootGenerator, u32, QuotientForm);

/// A device with its kernels loaded and their known answers checked, and the tables of transforms that
/// proofs have asked for. Any number of threads may prove on it.
pub struct Gpu {
    launcher: Box<dyn Launcher>,
    upload: Stream,
    plans: Mutex<Vec<(PlanKey, Arc<DevicePlan>)>>,
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
            plans: Mutex::default(),
        })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.launcher.device()
    }

    /// What launches kernels on it.
    pub fn launcher(&self) -> &dyn Launcher {
        &*self.launcher
    }

    /// The stream on which keys and witnesses are uploaded.
    pub fn upload(&self) -> &Stream {
        &self.upload
    }

    /// Tables for the quotient of a domain; made once, they stay.
    pub(super) fn plan(
        &self,
        root_generator: RootGenerator,
        log_n: u32,
        form: QuotientForm,
    ) -> Result<Arc<DevicePlan>> {
        let key = (root_generator, log_n, form);
        let mut plans = self.plans.lock();
        if let Some((_, plan)) = plans.iter().find(|(found, _)| *found == key) {
            return Ok(Arc::clone(plan));
        }
        let limit = self.device().budget().state().limit;
        let request =
            PlanRequest::quotient(root_generator, log_n, form).within(limit / TABLE_SHARE);
        let plan = Arc::new(DevicePlan::new(&*self.launcher, &self.upload, &request)?);
        plans.push((key, Arc::clone(&plan)));
        Ok(plan)
    }

    /// Lets go of all tables of transforms that no proof uses.
    pub fn forget_tables(&self) {
        self.plans.lock().clear();
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu")
            .field("device", self.device())
            .finish_non_exhaustive()
    }
}
