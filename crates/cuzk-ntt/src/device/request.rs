//! What a plan is asked for.

use cuzk_field::RootGenerator;
use cuzk_kernels::ntt::{Points, TwiddlesRequest};

use super::quotient::transforms;
use crate::form::QuotientForm;
use crate::transform::Direction;

/// What a plan is made for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanRequest {
    /// The family of the roots.
    pub root_generator: RootGenerator,
    /// log2 of the largest transform, up to [`super::MAX_LOG_N`]; smaller ones are served as well.
    pub max_log_n: u32,
    /// Which transforms; each takes its own tables.
    pub transforms: Vec<(Direction, Points)>,
    /// Bytes of device memory that all tables together may take. Without a limit nothing is computed twice:
    /// for each kind, and each element of the largest transform, 64 bytes if log2 of its size is a multiple of
    /// three, 128 if it is one short of that, 256 if two. With less, twiddles of the coarsest rounds cost a
    /// multiplication more. The least, 9 MB a kind up to 2^27 and 25 MB beyond, are taken whatever this says.
    pub max_table_bytes: u64,
}

impl PlanRequest {
    /// Both directions on the domain, with whole tables.
    pub fn domain(root_generator: RootGenerator, max_log_n: u32) -> Self {
        let on = |direction| (direction, Points::Domain);
        Self {
            root_generator,
            max_log_n,
            transforms: vec![on(Direction::Forward), on(Direction::Inverse)],
            max_table_bytes: u64::MAX,
        }
    }

    /// What a form of the quotient takes, with whole tables.
    pub fn quotient(root_generator: RootGenerator, log_n: u32, form: QuotientForm) -> Self {
        Self {
            root_generator,
            max_log_n: log_n,
            transforms: transforms(form).to_vec(),
            max_table_bytes: u64::MAX,
        }
    }

    /// The same within a budget.
    #[must_use]
    pub fn within(self, max_table_bytes: u64) -> Self {
        Self {
            max_table_bytes,
            ..self
        }
    }

    pub(super) fn tables(&self) -> Vec<TwiddlesRequest> {
        let share = self.max_table_bytes / self.transforms.len().max(1) as u64;
        let request = |&(direction, points)| TwiddlesRequest {
            root_generator: self.root_generator,
            inverse: direction == Direction::Inverse,
            points,
            max_log_n: self.max_log_n,
            max_bytes: share,
        };
        self.transforms.iter().map(request).collect()
    }

    /// Bytes of device memory that the tables will take, but for some tens of KB.
    pub fn table_bytes(&self) -> u64 {
        self.tables().iter().map(TwiddlesRequest::bytes).sum()
    }
}
