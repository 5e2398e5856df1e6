//! Where the tests run, random values, and what is expected.

use std::ops::Deref;

use cuzk_field::{Fr, RootGenerator};
use cuzk_ntt::device::{DevicePlan, Elements, PlanRequest, Points, Scale};
use cuzk_ntt::{Direction, Domain, bit_reverse_permute};
use cuzk_testkit::{Words, device};

pub(crate) const FAMILIES: [RootGenerator; 2] = [RootGenerator::Five, RootGenerator::Seven];
pub(crate) const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Inverse];

/// Where the kernels run, and how large the transforms may be.
pub(crate) struct Rig {
    rig: device::Rig,
    /// For everything.
    pub(crate) max_log_n: u32,
    /// For one transform at a time.
    pub(crate) large_log_n: u32,
    /// What only a few values are looked at of.
    pub(crate) huge_log_n: &'static [u32],
}

impl Deref for Rig {
    type Target = device::Rig;

    fn deref(&self) -> &device::Rig {
        &self.rig
    }
}

impl Rig {
    pub(crate) fn emulated() -> Self {
        let sanitized = option_env!("CUZK_SANITIZER").is_some();
        Self {
            rig: device::Rig::emulated(),
            max_log_n: if sanitized { 5 } else { 10 },
            large_log_n: if sanitized { 12 } else { 13 },
            huge_log_n: &[12],
        }
    }

    pub(crate) fn card() -> Option<Self> {
        let rig = device::Rig::card()?;
        let sanitized = std::env::var_os("CUZK_SANITIZER").is_some();
        Some(Self {
            rig,
            max_log_n: if sanitized { 6 } else { 14 },
            large_log_n: if sanitized { 13 } else { 18 },
            huge_log_n: if sanitized {
                &[12]
            } else {
                &[24, 25, 26, 27, 28]
            },
        })
    }

    pub(crate) fn plan(&self, request: &PlanRequest) -> DevicePlan {
        DevicePlan::new(&*self.launcher, &self.stream, request).unwrap()
    }

    pub(crate) fn everything(&self, root_generator: RootGenerator, log_n: u32) -> DevicePlan {
        self.plan(&everything(root_generator, log_n))
    }
}

pub(crate) fn everything(root_generator: RootGenerator, max_log_n: u32) -> PlanRequest {
    let both = |points| DIRECTIONS.map(|direction| (direction, points));
    PlanRequest {
        root_generator,
        max_log_n,
        transforms: [both(Points::Domain), both(Points::OddCoset)].concat(),
        max_table_bytes: u64::MAX,
    }
}

pub(crate) struct Random(pub(crate) Words);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Words::new(seed))
    }

    pub(crate) fn fr(&mut self) -> Fr {
        loop {
            let [a, b, c, d] = self.0.limbs();
            if let Some(value) = Fr::from_montgomery_limbs([a, b, c, d >> 1]) {
                return value;
            }
        }
    }

    pub(crate) fn values(&mut self, n: usize) -> Vec<Fr> {
        (0..n).map(|_| self.fr()).collect()
    }
}

/// What the CPU makes of values in natural order, in natural order and unscaled.
pub(crate) fn on_cpu(domain: &Domain, direction: Direction, values: &[Fr]) -> Vec<Fr> {
    let mut data = values.to_vec();
    domain.natural_to_bit_reversed(&mut data, direction);
    bit_reverse_permute(&mut data);
    data
}

pub(crate) fn reversed(values: &[Fr]) -> Vec<Fr> {
    let mut data = values.to_vec();
    bit_reverse_permute(&mut data);
    data
}

/// Both orders of one transform, in natural order.
pub(crate) fn on_device(
    rig: &Rig,
    plan: &DevicePlan,
    log_n: u32,
    direction: Direction,
    scale: Scale,
    values: &[Fr],
) -> [Vec<Fr>; 2] {
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let mut down = rig.upload(values);
    let elements = Elements::natural(down.view_mut());
    plan.transform(launcher, stream, log_n, direction, scale, elements)
        .unwrap();
    let mut up = rig.upload(&reversed(values));
    let elements = Elements::bit_reversed(up.view_mut());
    plan.transform(launcher, stream, log_n, direction, scale, elements)
        .unwrap();
    [reversed(&rig.download(&down)), rig.download(&up)]
}

pub(crate) fn same(found: &[Fr], expected: &[Fr], what: std::fmt::Arguments<'_>) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let wrong = found.iter().zip(expected).position(|(x, y)| x != y);
    assert_eq!(wrong, None, "{what}: the first wrong element");
}
