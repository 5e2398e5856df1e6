//! In which order partitions go.

use std::time::Duration;

use crate::options::Priority;

/// The place of a partition in the queue; the least goes first. It is fixed when the job is handed
/// in: the time of that, put later by [`Options::ageing`](crate::Options::ageing) for each class
/// below the highest. So a job is overtaken only by jobs that come at most that much later, however
/// many there are: nothing starves. Of equal jobs the older goes first, of one job's partitions the
/// lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Order {
    /// Since the engine's start.
    due: Duration,
    job: u64,
    index: usize,
}

impl Order {
    /// `submitted` is since the engine's start.
    pub(crate) fn new(submitted: Duration, priority: Priority, ageing: Duration, job: u64) -> Self {
        Self {
            due: submitted.saturating_add(ageing.saturating_mul(priority.steps_below_urgent())),
            job,
            index: 0,
        }
    }

    /// Of another partition of the job.
    pub(crate) fn part(self, index: usize) -> Self {
        Self { index, ..self }
    }

    pub(crate) fn job(self) -> u64 {
        self.job
    }

    pub(crate) fn index(self) -> usize {
        self.index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seconds: u64, priority: Priority, job: u64) -> Order {
        let ageing = Duration::from_secs(30);
        Order::new(Duration::from_secs(seconds), priority, ageing, job)
    }

    #[test]
    fn classes_go_first_for_as_long_as_ageing_says() {
        let low = order(100, Priority::Low, 1);
        assert!(order(129, Priority::Normal, 2) < low);
        assert!(order(131, Priority::Normal, 3) > low);
        assert!(order(189, Priority::Urgent, 4) < low);
        assert!(order(191, Priority::Urgent, 5) > low);
    }

    #[test]
    fn older_jobs_and_lower_partitions_go_first() {
        let (first, second) = (order(5, Priority::High, 1), order(5, Priority::High, 2));
        assert!(first.part(9) < second);
        assert!(first.part(0) < first.part(1));
        assert!(order(4, Priority::High, 3) < first);
    }
}
