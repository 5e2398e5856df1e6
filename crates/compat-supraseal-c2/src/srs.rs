//! Parameters in memory.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use cuzk_formats::{FileSource, LoadOptions, ProvingKey, bellman};
use cuzk_groth16::KeyRef;
use cuzk_groth16::device::KeyId;

use crate::devices;
use crate::engine::apart;
use crate::error::Error;

/// A key, shared by all clones of the handle. GPUs that have proved with it keep it until the last handle is dropped, or
/// another key needs the room.
#[derive(Clone, Default)]
pub struct SRS {
    key: Option<Arc<Key>>,
}

/// A key in host memory.
struct Key {
    key: ProvingKey,
    /// What it is called on GPUs; found out when one is first used.
    points: OnceLock<KeyId>,
}

impl Drop for Key {
    fn drop(&mut self) {
        let Some(points) = self.points.get() else {
            return;
        };
        let opened = devices::opened();
        if opened.is_empty() {
            return;
        }
        let let_go = apart(|| {
            for on in opened {
                if let Err(error) = on.keys.let_go_of(*points) {
                    tracing::warn!(%error, "a key was not let go");
                }
            }
        });
        if let Err(error) = let_go {
            tracing::warn!(%error, "a key was not let go");
        }
    }
}

/// A key kept for the next `try_new` of the same file.
struct Cached {
    path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
    key: Arc<Key>,
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
        let old = list.iter().position(|cached| cached.path == path);
        let old = old.map(|old| list.swap_remove(old));
        list.push(Cached {
            path,
            bytes,
            modified,
            key: key.clone(),
        });
        drop(list);
        // Not under the lock: GPUs may have to let go of it.
        drop(old);
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
        let key = self.key.as_deref().ok_or(Error::NoParameters)?;
        Ok(&key.key)
    }

    /// What the key is called on GPUs.
    pub(crate) fn points(&self) -> Result<KeyId, Error> {
        let key = self.key.as_deref().ok_or(Error::NoParameters)?;
        let points = || KeyId::of_points(&KeyRef::from(&key.key));
        Ok(*key.points.get_or_init(points))
    }

    fn of(key: Arc<Key>) -> Self {
        Self { key: Some(key) }
    }

    fn read(path: &std::path::Path) -> Result<Arc<Key>, Error> {
        let source = FileSource::open(path)?;
        let params = bellman::read_params(&source, &LoadOptions::default())?;
        Ok(Arc::new(Key {
            key: params.key,
            points: OnceLock::new(),
        }))
    }
}

fn cached() -> std::sync::MutexGuard<'static, Vec<Cached>> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for SRS {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.as_ref();
        f.debug_struct("SRS")
            .field("domain_size", &key.map(|key| key.key.domain_size))
            .finish_non_exhaustive()
    }
}
