//! Where the parts of a key lie, and what a compute section takes: decided from sizes and bytes alone.

use std::fmt;

use cuzk_field::{Fp, Fp2, G1Affine, G2Affine};
use cuzk_gpu_mem::{Carve, DeviceInfo};
use cuzk_kernels::DeviceCurve;
use cuzk_msm::device::{
    Batches, Error as Msm, MsmPlan, Multiples, SparsePlan, StreamedSparsePlan, TermCounts,
};
use cuzk_ntt::device::QuotientForm;

use super::error::{Error, Result};
use crate::key::KeyHeader;

/// A part of a key that is summed over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// Over the quotient.
    H,
    /// Over the witness, as those below.
    L,
    /// A.
    A,
    /// B in G1.
    B1,
    /// B in G2.
    B2,
}

impl Part {
    /// All of them, those first that cost most to bring in beside what computing with them takes: a sum over
    /// the quotient takes twice as long as its points need on the bus, sums over a witness a fifth.
    pub const ALL: [Self; 5] = [Self::B2, Self::A, Self::L, Self::B1, Self::H];

    fn point_bytes(self) -> u64 {
        match self {
            Self::B2 => size_of::<G2Affine>() as u64,
            Self::H | Self::L | Self::A | Self::B1 => size_of::<G1Affine>() as u64,
        }
    }
}

/// Where a part of a key lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// On the device, across proofs.
    Device,
    /// In pinned memory; it comes over the bus in each proof, beside the computation.
    Host,
}

/// How much of a key is on the device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Residency {
    /// All of it.
    Whole,
    /// These parts.
    Hot(Vec<Part>),
    /// Nothing.
    Streamed,
}

impl fmt::Display for Residency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("whole"),
            Self::Streamed => f.write_str("streamed"),
            Self::Hot(parts) => {
                f.write_str("hot")?;
                for (i, part) in parts.iter().enumerate() {
                    write!(f, "{}{part:?}", if i == 0 { " " } else { "+" })?;
                }
                Ok(())
            }
        }
    }
}

/// What a plan is made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeySizes {
    /// n.
    pub domain_size: usize,
    /// All variables.
    pub num_variables: usize,
    /// Points of H, L, A and of each B.
    pub points: [usize; 4],
    /// Bytes that lie on the device whatever the plan is: matrices, densities, the least tables of transforms.
    pub fixed_bytes: u64,
    /// Bytes of scratch while rows are evaluated.
    pub rows_scratch_bytes: u64,
    /// What the H sum takes.
    pub form: QuotientForm,
}

impl KeySizes {
    /// Those of a key, without what lies on the device in any case.
    pub fn of(header: &KeyHeader, form: QuotientForm) -> Self {
        let n = header.domain_size;
        let private = header.num_variables - header.first_in_l();
        Self {
            domain_size: n,
            num_variables: header.num_variables,
            points: [
                header.flavour.h_len(n),
                private,
                header.points_in_a,
                header.points_in_b,
            ],
            fixed_bytes: 0,
            rows_scratch_bytes: 0,
            form,
        }
    }

    /// Points of a part at most.
    pub fn points_of(&self, part: Part) -> usize {
        let [h, l, a, b] = self.points;
        match part {
            Part::H => h,
            Part::L => l,
            Part::A => a,
            Part::B1 | Part::B2 => b,
        }
    }

    fn bytes_of(&self, part: Part) -> u64 {
        self.points_of(part) as u64 * part.point_bytes()
    }

    /// Bytes of one array of the quotient.
    fn array_bytes(&self) -> u64 {
        32 * self.domain_size as u64
    }

    /// Bytes of a packed witness of which all values are full.
    fn full_witness_bytes(&self) -> u64 {
        12 * self.num_variables.div_ceil(32) as u64 + 32 * self.num_variables as u64
    }
}

/// Where the parts of a key lie, and what its proofs take beside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyPlan {
    on_device: Vec<Part>,
    arrays: usize,
    h_multiples: Option<Multiples<Fp>>,
    key_bytes: u64,
    fixed_bytes: u64,
    section_bytes: u64,
    spare_bytes: u64,
}

impl KeyPlan {
    /// The plan that leaves as much of the key on the device as `room` bytes allow beside a compute section of
    /// its proofs, or of `others_section_bytes`, which proofs with other keys need.
    ///
    /// Of witnesses nothing is known yet: parts of a key lie on the device only where a witness of which every
    /// value is full fits beside. What is needed at least is counted for one of zeros and ones.
    ///
    /// # Errors
    /// [`Error::TooSmall`] when not even a key that is streamed leaves room enough.
    pub fn choose(
        info: &DeviceInfo,
        sizes: &KeySizes,
        room: u64,
        others_section_bytes: u64,
    ) -> Result<Self> {
        let mut least = u64::MAX;
        let mut fits = |plan: &mut Self| {
            let section = plan.section_bytes.max(others_section_bytes);
            let needed = plan.device_bytes() + section;
            plan.spare_bytes = room.saturating_sub(needed);
            least = least.min(needed);
            needed <= room
        };
        let plan = |parts: &[Part], full, thrift| Self::new(info, sizes, parts, full, thrift);
        // The whole key, with what scratch does for speed, then without.
        for thrift in [Thrift::Roomy, Thrift::Least] {
            let mut whole = plan(&Part::ALL, Full::All, thrift)?;
            if fits(&mut whole) {
                return Ok(whole);
            }
        }
        // Parts of it, as many as there is room for.
        let mut hot = plan(&[], Full::All, Thrift::Roomy)?;
        if fits(&mut hot) {
            for part in Part::ALL {
                let parts = [hot.on_device.as_slice(), &[part]].concat();
                let mut more = plan(&parts, Full::All, Thrift::Roomy)?;
                if fits(&mut more) {
                    hot = more;
                }
            }
            return Ok(hot);
        }
        for full in [Full::All, Full::None] {
            let mut streamed = plan(&[], full, Thrift::Least)?;
            if fits(&mut streamed) {
                return Ok(streamed);
            }
        }
        Err(Error::TooSmall {
            needed: least,
            free: room,
        })
    }

    /// The plan with these parts on the device, however much room there is: for measurements and tests.
    ///
    /// # Errors
    /// When there are more points than sums can have.
    pub fn of_parts(info: &DeviceInfo, sizes: &KeySizes, on_device: &[Part]) -> Result<Self> {
        Self::new(info, sizes, on_device, Full::None, Thrift::Least)
    }

    fn new(
        info: &DeviceInfo,
        sizes: &KeySizes,
        on_device: &[Part],
        full: Full,
        thrift: Thrift,
    ) -> Result<Self> {
        Ok(Self {
            on_device: on_device.to_vec(),
            arrays: sizes.form.arrays(),
            h_multiples: None,
            key_bytes: on_device.iter().map(|part| sizes.bytes_of(*part)).sum(),
            fixed_bytes: sizes.fixed_bytes,
            section_bytes: section_bytes(info, sizes, on_device, full, thrift)?,
            spare_bytes: 0,
        })
    }

    /// Keeps multiples of H's points beside them where those lie on the device and sums save by it: in a quarter of the
    /// bytes that the plan has no use for, and in twice those of the points at most.
    pub fn add_multiples(&mut self, info: &DeviceInfo, sizes: &KeySizes) {
        if self.placement(Part::H) == Placement::Host || self.h_multiples.is_some() {
            return;
        }
        let idle = (self.spare_bytes / 4).min(2 * sizes.bytes_of(Part::H));
        if let Some(choice) = Multiples::choose(info, sizes.points_of(Part::H), idle) {
            self.key_bytes += choice.extra_bytes();
            self.spare_bytes -= choice.extra_bytes();
            self.h_multiples = Some(choice);
        }
    }

    /// The same plan with these multiples.
    #[cfg(test)]
    pub(super) fn keeping(mut self, choice: Multiples<Fp>) -> Self {
        self.key_bytes += choice.extra_bytes();
        self.h_multiples = Some(choice);
        self
    }

    /// The multiples of H's points that are kept, and what they gain.
    pub fn h_multiples(&self) -> Option<&Multiples<Fp>> {
        self.h_multiples.as_ref()
    }

    /// Where a part lies.
    pub fn placement(&self, part: Part) -> Placement {
        match self.on_device.contains(&part) {
            true => Placement::Device,
            false => Placement::Host,
        }
    }

    /// How much of the key is on the device.
    pub fn residency(&self) -> Residency {
        match self.on_device.len() {
            0 => Residency::Streamed,
            len if len == Part::ALL.len() => Residency::Whole,
            _ => Residency::Hot(self.on_device.clone()),
        }
    }

    /// Arrays of n elements that the quotient works in.
    pub fn arrays(&self) -> usize {
        self.arrays
    }

    /// Bytes of the key's points on the device, kept multiples included.
    pub fn key_bytes(&self) -> u64 {
        self.key_bytes
    }

    /// Bytes that lie there across proofs: points, matrices, densities, the least tables.
    pub fn device_bytes(&self) -> u64 {
        self.key_bytes + self.fixed_bytes
    }

    /// Bytes that a compute section is to have at least.
    pub fn section_bytes(&self) -> u64 {
        self.section_bytes
    }

    /// Bytes that the plan has no use for: tables may be larger, and scratch.
    pub fn spare_bytes(&self) -> u64 {
        self.spare_bytes
    }
}

/// How many values of a witness are counted as full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Full {
    All,
    None,
}

/// What scratch of sums is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Thrift {
    /// What it takes that no list of buckets has to be cut.
    Roomy,
    /// What it takes at all.
    Least,
}

/// Bytes of a section: rows and quotient, then the H sum beside its scalars, then the other sums.
fn section_bytes(
    info: &DeviceInfo,
    sizes: &KeySizes,
    on_device: &[Part],
    full: Full,
    thrift: Thrift,
) -> Result<u64> {
    let array = sizes.array_bytes();
    let quotient = sizes.form.arrays() as u64 * array + sizes.rows_scratch_bytes;
    let h = h_scratch_bytes(info, sizes, on_device.contains(&Part::H), thrift)?;
    let sums = match full {
        Full::All => witness_scratch_bytes(info, sizes, on_device)?,
        Full::None => 0,
    };
    let (witness, staged) = match (full, thrift) {
        // Another proof's witness may be staged meanwhile.
        (Full::All, Thrift::Roomy) => (sizes.full_witness_bytes(), sizes.full_witness_bytes()),
        (Full::All, Thrift::Least) => (sizes.full_witness_bytes(), 0),
        (Full::None, _) => (12 * sizes.num_variables.div_ceil(32) as u64, 0),
    };
    Ok(quotient.max(array + h).max(sums) + witness + staged)
}

fn h_scratch_bytes(
    info: &DeviceInfo,
    sizes: &KeySizes,
    is_on_device: bool,
    thrift: Thrift,
) -> Result<u64> {
    let points = sizes.points_of(Part::H);
    let plan = |limit| {
        let plan = match is_on_device {
            true => MsmPlan::<Fp>::resident(info, points, 1, limit),
            false => MsmPlan::<Fp>::streamed(info, points, 1, limit),
        };
        plan.map(|plan| plan.footprint().device)
    };
    let least = least_bytes(plan)?;
    match thrift {
        Thrift::Least => Ok(least),
        // What the quotient leaves is there without more.
        Thrift::Roomy => {
            let left = (sizes.form.arrays() as u64 - 1) * sizes.array_bytes();
            Ok(plan(least.max(left)).unwrap_or(least))
        }
    }
}

/// What the largest sum over a witness takes of which all values are full, one set of bases at a time.
fn witness_scratch_bytes(info: &DeviceInfo, sizes: &KeySizes, on_device: &[Part]) -> Result<u64> {
    fn of<F: DeviceCurve>(
        info: &DeviceInfo,
        variables: usize,
        points: usize,
        is_on_device: bool,
    ) -> Result<u64> {
        let full = |points| TermCounts {
            ones: 0,
            rest: points,
        };
        least_bytes(|limit| match is_on_device {
            true => SparsePlan::<F>::new(info, variables, &[full(points)], limit)
                .map(|plan| plan.footprint().device),
            false => {
                let cut = Batches::sparse::<F>(points, limit);
                let counts: Vec<_> = cut.ranges().iter().map(|batch| full(batch.len())).collect();
                StreamedSparsePlan::<F>::new(info, variables, &cut, 1, &counts, limit)
                    .map(|plan| plan.footprint().device)
            }
        })
    }
    let mut most = 0;
    for part in [Part::A, Part::B1, Part::L] {
        let (points, here) = (sizes.points_of(part), on_device.contains(&part));
        most = most.max(of::<Fp>(info, sizes.num_variables, points, here)?);
    }
    let (points, here) = (sizes.points_of(Part::B2), on_device.contains(&Part::B2));
    Ok(most.max(of::<Fp2>(info, sizes.num_variables, points, here)?))
}

/// What `plan` makes of `limit` bytes, or of nearly the least with which it works: its own word for what it needs, or a
/// quarter more.
pub(super) fn within_or_least<T>(limit: u64, plan: impl Fn(u64) -> Result<T>) -> Result<T> {
    let mut limit = limit.max(Carve::ALIGN as u64);
    loop {
        match plan(limit) {
            Err(Error::Msm(Msm::TooLittleScratch { needed, .. })) => {
                limit = (needed as u64).max(limit + limit / 4);
            }
            planned => return planned,
        }
    }
}

fn least_bytes(plan: impl Fn(u64) -> Result<u64, Msm>) -> Result<u64> {
    within_or_least(0, |limit| Ok(plan(limit)?))
}
