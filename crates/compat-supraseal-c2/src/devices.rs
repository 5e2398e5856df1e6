//! The GPUs of the process, and which of them a call takes.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cuzk_groth16::device::{Gpu, KeyCache, KeyId};

/// A GPU with the keys that it has proved with. It is there until the process ends.
#[derive(Debug)]
pub(crate) struct OnGpu {
    pub(crate) gpu: &'static Gpu,
    pub(crate) keys: KeyCache<'static>,
}

impl OnGpu {
    pub(crate) fn new(gpu: Gpu) -> Self {
        let gpu: &'static Gpu = Box::leak(Box::new(gpu));
        Self {
            gpu,
            keys: KeyCache::new(gpu),
        }
    }
}

static GPUS: OnceLock<Vec<OnGpu>> = OnceLock::new();
/// Calls on each of them.
static CALLS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// All GPUs that work, opened by the first call.
pub(crate) fn gpus() -> &'static [OnGpu] {
    GPUS.get_or_init(open)
}

/// Those that have been opened.
pub(crate) fn opened() -> &'static [OnGpu] {
    GPUS.get().map_or(&[], Vec::as_slice)
}

#[cfg(not(test))]
fn open() -> Vec<OnGpu> {
    use cuzk_gpu_mem::{Device, Selector, Settings};

    let found = match cuzk_gpu_mem::list() {
        Ok(found) => found,
        Err(reason) => {
            tracing::info!(%reason, "proving on the CPU");
            return Vec::new();
        }
    };
    let open = |ordinal| {
        let device = Device::open(&Selector::Ordinal(ordinal), Settings::default())?;
        Gpu::new(&device)
    };
    let opened = found.iter().filter_map(|info| match open(info.ordinal) {
        Ok(gpu) => Some(OnGpu::new(gpu)),
        Err(error) => {
            tracing::warn!(device = %info, %error, "a GPU is not used");
            None
        }
    });
    opened.collect()
}

#[cfg(test)]
fn open() -> Vec<OnGpu> {
    crate::tests::emulated()
}

/// GPUs that a call has taken: those with the fewest calls, and among them those that have its key.
#[derive(Debug)]
pub(crate) struct Taken {
    numbers: Vec<usize>,
}

impl Taken {
    /// Takes at most as many.
    pub(crate) fn take(most: usize, points: KeyId) -> Self {
        let gpus = gpus();
        // Not under the lock: a key on its way is waited for.
        let has_key: Vec<bool> = match gpus.len() {
            0 | 1 => vec![false; gpus.len()],
            _ => gpus.iter().map(|on| on.keys.has(points)).collect(),
        };
        let mut calls = calls();
        calls.resize(gpus.len(), 0);
        let mut numbers: Vec<usize> = (0..gpus.len()).collect();
        numbers.sort_by_key(|number| (calls[*number], !has_key[*number]));
        numbers.truncate(most);
        for number in &numbers {
            calls[*number] += 1;
        }
        Self { numbers }
    }

    pub(crate) fn gpus(&self) -> impl Iterator<Item = &'static OnGpu> + '_ {
        self.numbers.iter().map(|number| &gpus()[*number])
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut calls = calls();
        for number in &self.numbers {
            calls[*number] -= 1;
        }
    }
}

fn calls() -> MutexGuard<'static, Vec<usize>> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}
