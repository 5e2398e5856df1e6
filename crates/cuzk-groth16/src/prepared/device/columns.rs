//! The sparse sums by which the part of C moves into L, on a device.

use cuzk_field::{Fp, G1Affine, Scalar};
use cuzk_formats::{CoefficientTable, R1cs};
use cuzk_gpu_mem::{DeviceBuf, DeviceInfo, DeviceViewMut};
use cuzk_msm::device::accumulate::{AccumulatePlan, Existing};
use rayon::prelude::*;

use super::transform::GroupTransform;
use crate::device::Result;

/// Entries, multiples and variables of one round of sums at most.
const ENTRIES: usize = 1 << 22;
const MULTIPLES: usize = 1 << 18;
const VARIABLES: usize = 1 << 21;

/// Entries of subtracted points have this bit.
const NEGATIVE: u32 = 1 << 31;

/// C by columns.
pub(super) struct Columns {
    /// Where each variable's entries begin, and the end.
    offsets: Vec<u32>,
    /// Row and coefficient.
    entries: Vec<(u32, u32)>,
    /// Entries that are neither 1 nor -1.
    multiples: usize,
}

/// One round of sums: some variables' entries. A variable with many may be in several.
#[derive(Default)]
struct Round {
    first_variable: usize,
    /// Where each variable's entries begin, and the end.
    offsets: Vec<u32>,
    entries: Vec<u32>,
    /// The places and coefficients of multiples, which stand behind Q in the order of their entries.
    places: Vec<u32>,
    ids: Vec<u32>,
}

impl Columns {
    pub(super) fn of(r1cs: &R1cs) -> Self {
        let c = &r1cs.c;
        let mut offsets = vec![0_u32; r1cs.num_variables + 1];
        for column in c.columns() {
            offsets[*column as usize + 1] += 1;
        }
        let mut total = 0;
        for offset in &mut offsets {
            total += *offset;
            *offset = total;
        }
        let mut next = offsets.clone();
        let mut entries = vec![(0, 0); c.num_entries()];
        for row in 0..c.num_rows() {
            for (column, coefficient) in c.row(row) {
                let at = &mut next[column as usize];
                entries[*at as usize] = (row as u32, coefficient);
                *at += 1;
            }
        }
        Self {
            offsets,
            multiples: super::super::columns::num_multiples(r1cs),
            entries,
        }
    }

    /// Multiples of a round at most: as many points are wanted behind Q.
    pub(super) fn multiples_at_once(&self) -> usize {
        self.multiples.min(MULTIPLES)
    }

    /// L_v - sum_k C_kv Q_k for every variable v, L_v being infinity for inputs. `q` has Q in bit-reversed
    /// order and room for multiples.
    pub(super) fn l_without_c(
        &self,
        transform: &GroupTransform<'_>,
        l: &[G1Affine],
        mut q: DeviceBuf<G1Affine>,
        r1cs: &R1cs,
    ) -> Result<Vec<G1Affine>> {
        let (gpu, stream) = (transform.gpu(), transform.stream());
        let device = gpu.device();
        let variables = r1cs.num_variables;
        let mut sums = vec![G1Affine::INFINITY; variables - l.len()];
        sums.extend_from_slice(l);

        let coefficients: Vec<Scalar> = (r1cs.coefficients.values().par_iter())
            .map(|coefficient| Scalar::from(*coefficient))
            .collect();
        let mut scalars = device.alloc("coefficients", coefficients.len(), stream)?;
        stream.upload_slice(&coefficients, &mut scalars)?;
        let room = Room::of(self.entries.len(), variables);
        let mut places = transform.indices(self.multiples_at_once())?;
        let mut ids = transform.indices(self.multiples_at_once())?;
        let mut entries = transform.indices(room.entries)?;
        let mut offsets = transform.indices(room.variables + 1)?;
        let mut target = transform.points("L without C", room.variables)?;
        let scratch_bytes = room.scratch_bytes(device.info())?;
        let mut scratch = device.alloc("sums of columns", scratch_bytes, stream)?;

        let mut at = (0, 0);
        while let Some(round) = self.round(transform, &mut at) {
            let count = round.offsets.len() - 1;
            let targets = &mut sums[round.first_variable..round.first_variable + count];
            if !round.places.is_empty() {
                let len = round.places.len();
                let (base, multiples) = q.view_mut().split_at(transform.n());
                stream.upload_slice(&round.places, places.view_mut().slice(..len))?;
                stream.upload_slice(&round.ids, ids.view_mut().slice(..len))?;
                transform.multiply(
                    base.as_view(),
                    places.view().slice(..len),
                    scalars.view(),
                    ids.view().slice(..len),
                    multiples.slice(..len),
                )?;
            }
            let upload = |from: &[u32], to: DeviceViewMut<'_, u32>| {
                stream.upload_slice(from, to.slice(..from.len()))
            };
            upload(&round.entries, entries.view_mut())?;
            upload(&round.offsets, offsets.view_mut())?;
            stream.upload_slice(targets, target.view_mut().slice(..count))?;
            let plan = plan(device.info(), round.entries.len(), count, scratch.len())?;
            plan.run(
                gpu.launcher(),
                stream,
                q.view(),
                entries.view().slice(..round.entries.len()),
                offsets.view().slice(..=count),
                target.view_mut().slice(..count),
                Existing::AddTo,
                scratch.view_mut(),
            )?;
            stream.download_slice(target.view().slice(..count), targets)?;
        }
        Ok(sums)
    }

    /// The next round from a variable and an entry of it on; those without entries are left out at its
    /// ends.
    fn round(&self, transform: &GroupTransform<'_>, at: &mut (usize, usize)) -> Option<Round> {
        let (mut variable, mut entry) = *at;
        let end_of = |variable: usize| self.offsets[variable + 1] as usize;
        while variable + 1 < self.offsets.len() && end_of(variable) == entry {
            variable += 1;
        }
        if variable + 1 == self.offsets.len() {
            return None;
        }
        let mut round = Round {
            first_variable: variable,
            offsets: vec![0],
            ..Round::default()
        };
        while variable + 1 < self.offsets.len() && round.offsets.len() <= VARIABLES {
            while entry < end_of(variable)
                && round.entries.len() < ENTRIES
                && round.places.len() < MULTIPLES
            {
                let (row, coefficient) = self.entries[entry];
                let place = transform.place(row as usize);
                round.entries.push(match coefficient {
                    CoefficientTable::ONE => place | NEGATIVE,
                    CoefficientTable::MINUS_ONE => place,
                    _ => {
                        round.places.push(place);
                        round.ids.push(coefficient);
                        (transform.n() + round.places.len() - 1) as u32 | NEGATIVE
                    }
                });
                entry += 1;
            }
            round.offsets.push(round.entries.len() as u32);
            if entry < end_of(variable) {
                break;
            }
            variable += 1;
        }
        *at = (variable, entry);
        Some(round)
    }
}

/// What a round may hold.
pub(super) struct Room {
    entries: usize,
    variables: usize,
}

impl Room {
    pub(super) fn of(entries: usize, variables: usize) -> Self {
        Self {
            entries: entries.min(ENTRIES),
            variables: variables.min(VARIABLES),
        }
    }

    fn scratch_bytes(&self, info: &DeviceInfo) -> Result<usize> {
        Ok(plan(info, self.entries, self.variables, usize::MAX)?.scratch_bytes())
    }

    /// Bytes on a device for rounds of up to so many multiples.
    pub(super) fn device_bytes(&self, info: &DeviceInfo, multiples: usize) -> Result<u64> {
        let multiples = multiples.min(MULTIPLES);
        let points = size_of::<G1Affine>() * (self.variables + multiples);
        let words = 4 * (2 * multiples + self.entries + self.variables + 1);
        Ok((points + words + self.scratch_bytes(info)?) as u64)
    }
}

fn plan(
    info: &DeviceInfo,
    entries: usize,
    variables: usize,
    limit: usize,
) -> Result<AccumulatePlan<Fp>> {
    Ok(AccumulatePlan::new(info, entries, variables, limit)?)
}
