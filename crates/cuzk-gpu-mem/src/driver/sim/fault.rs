//! Failures that an emulated device is told to have.

use crate::driver::{Code, DriverError, DriverResult};

/// Which calls fail, and how.
#[derive(Debug, Default)]
pub(super) struct Faults {
    calls: u64,
    nth: Vec<(u64, Code)>,
    every: Option<(u64, Code)>,
    named: Vec<(&'static str, u64, Code)>,
    lost: Option<Code>,
}

impl Faults {
    /// Counts a call; decides whether it fails.
    pub(super) fn enter(&mut self, call: &'static str) -> DriverResult<()> {
        if let Some(code) = self.lost {
            return Err(DriverError::new(call, code));
        }
        self.calls += 1;
        let by_number = self
            .nth
            .iter()
            .find(|(nth, _)| *nth == self.calls)
            .map(|&(_, code)| code);
        let by_rate = self
            .every
            .filter(|(every, _)| self.calls.is_multiple_of(*every))
            .map(|(_, code)| code);
        match by_number.or(by_rate).or_else(|| self.by_name(call)) {
            None => Ok(()),
            Some(code) => {
                if code.is_fatal() {
                    self.lost = Some(code);
                }
                Err(DriverError::new(call, code))
            }
        }
    }

    /// Named faults count down the calls of that name and strike at zero, once.
    fn by_name(&mut self, call: &'static str) -> Option<Code> {
        let index = self.named.iter().position(|(name, ..)| *name == call)?;
        self.named[index].1 -= 1;
        (self.named[index].1 == 0).then(|| self.named.remove(index).2)
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    pub(super) fn fail_nth(&mut self, nth: u64, code: Code) {
        self.nth.push((self.calls + nth.max(1), code));
    }

    pub(super) fn fail_every(&mut self, every: u64, code: Code) {
        self.every = Some((every.max(1), code));
    }

    pub(super) fn fail_call(&mut self, call: &'static str, nth: u64, code: Code) {
        self.named.push((call, nth.max(1), code));
    }

    pub(super) fn lose(&mut self, code: Code) {
        self.lost = Some(code);
    }

    pub(super) fn clear(&mut self) {
        *self = Self {
            calls: self.calls,
            ..Self::default()
        };
    }
}
