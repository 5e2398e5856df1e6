//! What runs when, on an emulated device.

use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::driver::sim::Completion;
use cuzk_gpu_mem::{Event, Stream};
use cuzk_msm::device::{Pace, Result};

use crate::rig::Rig;

/// Until it is dropped the emulated device runs nothing before somebody waits for it.
pub(crate) fn lazily(rig: &Rig) -> Option<Lazily<'_>> {
    let sim = rig.sim.as_deref()?;
    sim.set_completion(Completion::Lazy);
    Some(Lazily(sim))
}

pub(crate) struct Lazily<'a>(&'a SimDriver);

impl Drop for Lazily<'_> {
    fn drop(&mut self) {
        self.0.set_completion(Completion::Eager);
    }
}

/// Whenever it is asked, all copies run that have been submitted, before the step and behind it.
pub(crate) struct UploadsFirst<'a>(pub(crate) &'a Stream);

impl Pace for UploadsFirst<'_> {
    fn reach(&self, step: &Event) -> Result<()> {
        self.0.synchronize()?;
        step.wait()?;
        Ok(self.0.synchronize()?)
    }
}
