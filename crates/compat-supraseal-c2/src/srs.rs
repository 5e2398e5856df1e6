//! Parameters in memory.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use cuzk_formats::{FileSource, LoadOptions, ProvingKey, bellman};

use crate::error::Error;

/// A key, shared by all clones of the handle.
#[derive(Clone, Default)]
pub struct SRS {
    key: Option<Arc<ProvingKey>>,
}

/// A key kept for the next `try_new` of the same file.
struct Cached {
    path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
    key: Arc<ProvingKey>,
}

static CACHE: Mutex<Vec<Cached>> = Mutex::new(Vec::new());

impl SRS {
    /// Reads a parameter file on all cores and checks every point. With `cache` the key is kept until
    /// [`Self::evict`], and found again under the same path while the file's length and time are the same.
    ///
    /// # Errors
    /// [`Error::File`] with what was expected and found.
    pub fn try_new(path: PathBuf, cache: bool) -> Result<Self, Error> {
        if !cache {
            return Self::read(&path).map(Self::of);
        }
        let metadata = path.metadata().ok();
        let bytes = metadata.as_ref().map_or(0, std::fs::Metadata::len);
        let modified = metadata.and_then(|metadata| metadata.modified().ok());
        let is_same = |cached: &&Cached| {
            cached.path == path && cached.bytes == bytes && cached.modified == modified
        };
        let find = || {
            cached()
                .iter()
                .find(is_same)
                .map(|cached| cached.key.clone())
        };
        if let Some(key) = find() {
            return Ok(Self::of(key));
        }
        // Not under the lock: two that come at once read twice, and the later one replaces the earlier.
        let key = Self::read(&path)?;
        let mut list = cached();
        list.retain(|cached| cached.path != path);
        list.push(Cached {
            path,
            bytes,
            modified,
            key: key.clone(),
        });
        Ok(Self::of(key))
    }

    /// Takes the key out of the cache. Its memory is free once the last handle is dropped; handles go on
    /// working.
    pub fn evict(&self) {
        if let Some(key) = &self.key {
            cached().retain(|cached| !Arc::ptr_eq(&cached.key, key));
        }
    }

    pub(crate) fn key(&self) -> Result<&ProvingKey, Error> {
        self.key.as_deref().ok_or(Error::NoParameters)
    }

    fn of(key: Arc<ProvingKey>) -> Self {
        Self { key: Some(key) }
    }

    fn read(path: &std::path::Path) -> Result<Arc<ProvingKey>, Error> {
        let source = FileSource::open(path)?;
        let params = bellman::read_params(&source, &LoadOptions::default())?;
        Ok(Arc::new(params.key))
    }
}

fn cached() -> std::sync::MutexGuard<'static, Vec<Cached>> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for SRS {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.as_ref();
        f.debug_struct("SRS")
            .field("domain_size", &key.map(|key| key.domain_size))
            .finish_non_exhaustive()
    }
}
