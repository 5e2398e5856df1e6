//! Several keys under one budget.

use std::fmt;
use std::sync::Arc;

use cuzk_field::Affine;
use cuzk_formats::QueryVariables;
use cuzk_gpu_mem::Error as Memory;
use cuzk_kernels::DeviceCurve;
use cuzk_msm::Bases;
use parking_lot::Mutex;
use rayon::prelude::*;

use super::error::{Error, Result};
use super::gpu::Gpu;
use super::key::DeviceKey;
use super::plan::{KeyPlan, KeySizes, Residency};
use super::prover::{DeviceProver, form_of};
use crate::circuit::Circuit;
use crate::key::{KeyHeader, KeyRef};
use crate::setup::Setup;

/// Points hashed by one task.
const TASK: usize = 1 << 14;

/// What a key is, whatever file or memory it came from: a BLAKE3 hash of all its points, their places and its
/// conventions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId([u8; 32]);

impl KeyId {
    /// Of a key; `variables` says which ones a compact key's queries cover.
    pub fn of(key: &KeyRef<'_>, variables: Option<&QueryVariables>) -> Self {
        Self::of_points(key).with_variables(variables)
    }

    /// Of a key without that: what can be kept of a key whose circuits come later.
    pub fn of_points(key: &KeyRef<'_>) -> Self {
        let KeyHeader {
            flavour,
            domain_size,
            vk,
            beta_g1,
            delta_g1,
            query_layout,
            num_variables,
            points_in_a,
            points_in_b,
        } = key.header();
        let mut hasher = blake3::Hasher::new();
        let counts = [domain_size, num_variables, points_in_a, points_in_b];
        hasher.update(format!("{flavour:?} {query_layout:?} {counts:?}").as_bytes());
        hasher.update(bytemuck::bytes_of(&[vk.alpha_g1, beta_g1, delta_g1]));
        hasher.update(bytemuck::bytes_of(&[vk.beta_g2, vk.gamma_g2, vk.delta_g2]));
        hasher.update(bytemuck::cast_slice(&vk.gamma_abc_g1));
        for bases in [key.a_query, key.b_g1_query, key.l_query, key.h_query] {
            update(&mut hasher, bases);
        }
        update(&mut hasher, key.b_g2_query);
        Self(hasher.finalize().into())
    }

    fn with_variables(self, variables: Option<&QueryVariables>) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0);
        for list in variables.into_iter().flat_map(|v| [&v.a, &v.b]) {
            hasher.update(&(list.len() as u64).to_le_bytes());
            hasher.update_rayon(bytemuck::cast_slice(list));
        }
        Self(hasher.finalize().into())
    }
}

/// Hashes the hashes of pieces.
fn update<F: DeviceCurve>(hasher: &mut blake3::Hasher, bases: &dyn Bases<F>) {
    let count = bases.len();
    let hashes: Vec<blake3::Hash> = (0..count.div_ceil(TASK))
        .into_par_iter()
        .map(|task| {
            let range = task * TASK..count.min((task + 1) * TASK);
            match bases.as_points() {
                Some(points) => blake3::hash(bytemuck::cast_slice(&points[range])),
                None => {
                    let points: Vec<Affine<F>> = range.map(|i| bases.get(i)).collect();
                    blake3::hash(bytemuck::cast_slice(&points))
                }
            }
        })
        .collect();
    hasher.update(&(count as u64).to_le_bytes());
    for hash in hashes {
        hasher.update(hash.as_bytes());
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({})", blake3::Hash::from(self.0))
    }
}

/// A key that is kept.
#[derive(Debug)]
struct Entry {
    /// With its variables.
    id: KeyId,
    /// Without.
    points: KeyId,
    key: Arc<DeviceKey>,
}

/// Keys on a device, or beside it, that are kept for the provers to come. One that no prover uses gives way to a new one
/// that has no room, the least recently used first; one in use never does.
#[derive(Debug)]
pub struct KeyCache<'g> {
    gpu: &'g Gpu,
    /// The least recently used first.
    keys: Mutex<Vec<Entry>>,
}

impl<'g> KeyCache<'g> {
    /// A cache without keys.
    pub fn new(gpu: &'g Gpu) -> Self {
        Self {
            gpu,
            keys: Mutex::default(),
        }
    }

    /// [`DeviceProver::new`] with the key that is there, if it is.
    ///
    /// # Errors
    /// As [`DeviceProver::new`].
    pub fn prover<'c, 'k>(
        &self,
        key: impl Into<KeyRef<'k>>,
        circuit: Circuit<'c>,
    ) -> Result<DeviceProver<'g, 'c>> {
        let key = key.into();
        let points = KeyId::of_points(&key);
        self.prover_of(points, key, circuit)
    }

    /// The same where `points` is known to be [`KeyId::of_points`] of the key: a large one takes seconds to hash.
    ///
    /// # Errors
    /// As [`DeviceProver::new`].
    pub fn prover_of<'c, 'k>(
        &self,
        points: KeyId,
        key: impl Into<KeyRef<'k>>,
        circuit: Circuit<'c>,
    ) -> Result<DeviceProver<'g, 'c>> {
        let key = key.into();
        key.check()?;
        let setup = Setup::new(key.header())?;
        circuit.check(&setup.header)?;
        let variables = circuit.query_variables(&setup.header, key.variables)?;
        let id = points.with_variables(variables.as_ref());
        let mut keys = self.keys.lock();
        if let Some(found) = keys.iter().position(|entry| entry.id == id) {
            let entry = keys.remove(found);
            let there = Arc::clone(&entry.key);
            keys.push(entry);
            let plan = there.plan().clone();
            let placed = |_: &_, _: &_, _, _| Ok(plan);
            return DeviceProver::place(self.gpu, setup, circuit, placed, |_| Ok(there));
        }
        let sizes = KeySizes::of(&setup.header, form_of(&setup.header)?);
        let whole = KeyPlan::choose(self.gpu.device().info(), &sizes, u64::MAX, 0)?;
        debug_assert_eq!(whole.residency(), Residency::Whole);
        while self.gpu.device().room()? < whole.device_bytes() + whole.section_bytes() {
            if !self.let_go_of_one(&mut keys)? {
                break;
            }
        }
        loop {
            let upload =
                |plan| DeviceKey::upload(self.gpu, plan, &key, variables.as_ref()).map(Arc::new);
            let (setup, circuit) = (setup.clone(), circuit.clone());
            match DeviceProver::place(self.gpu, setup, circuit, KeyPlan::choose, upload) {
                Err(Error::TooSmall { .. } | Error::Memory(Memory::OutOfMemory(_)))
                    if self.let_go_of_one(&mut keys)? => {}
                placed => {
                    let prover = placed?;
                    let key = prover.shared_key();
                    keys.push(Entry { id, points, key });
                    return Ok(prover);
                }
            }
        }
    }

    /// Lets the least recently used key go that no prover has; says whether there was one.
    fn let_go_of_one(&self, keys: &mut Vec<Entry>) -> Result<bool> {
        self.let_go_where(keys, |_| true)
    }

    /// The same among some.
    fn let_go_where(&self, keys: &mut Vec<Entry>, which: impl Fn(&Entry) -> bool) -> Result<bool> {
        let is_idle = |entry: &Entry| Arc::strong_count(&entry.key) == 1;
        let Some(idle) = keys.iter().position(|entry| is_idle(entry) && which(entry)) else {
            return Ok(false);
        };
        let Entry { id, key, .. } = keys.remove(idle);
        tracing::info!(key = ?id, mib = key.bytes() >> 20, "key let go");
        drop(key);
        // Freed in the order of its stream; whoever looks next sees it.
        self.gpu.keys().synchronize()?;
        Ok(true)
    }

    /// Keys that are there.
    pub fn len(&self) -> usize {
        self.keys.lock().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a key of these points is there: [`KeyId::of_points`].
    pub fn has(&self, points: KeyId) -> bool {
        self.keys.lock().iter().any(|entry| entry.points == points)
    }

    /// Lets the keys of these points go that no prover has.
    ///
    /// # Errors
    /// When the device fails.
    pub fn let_go_of(&self, points: KeyId) -> Result<()> {
        let mut keys = self.keys.lock();
        while self.let_go_where(&mut keys, |entry| entry.points == points)? {}
        Ok(())
    }

    /// Lets all keys go that no prover has.
    ///
    /// # Errors
    /// When the device fails.
    pub fn let_go(&self) -> Result<()> {
        let mut keys = self.keys.lock();
        while self.let_go_of_one(&mut keys)? {}
        Ok(())
    }
}
