//! Turns for large copies.

use std::collections::VecDeque;

use parking_lot::FairMutex;

use crate::stream::Event;

/// Copies under way at a time: one that runs, and one for when it is done.
const UNDER_WAY: usize = 2;

/// Turns for the copies of several streams over one bus.
///
/// A copy engine stays with a stream for as long as copies wait there, whatever others have been given meanwhile: a stream that is
/// always ahead with its next copy keeps the bus for itself (H200, driver 580: half a second and more). Whoever submits copies
/// in turns waits for two of them, and for those who asked before.
#[derive(Debug, Default)]
pub struct Bus {
    under_way: FairMutex<VecDeque<Event>>,
}

impl Bus {
    /// Nothing is under way.
    pub fn new() -> Self {
        Self::default()
    }

    /// Submits a copy in its turn: `submit` gives the place in the stream behind it, `wait` waits for such a place of an earlier
    /// copy. Those who wait get their turns in the order in which they came.
    ///
    /// # Errors
    /// What `wait` and `submit` fail with; the turn is over then.
    pub fn turn<E>(
        &self,
        mut wait: impl FnMut(&Event) -> Result<(), E>,
        submit: impl FnOnce() -> Result<Event, E>,
    ) -> Result<(), E> {
        let mut under_way = self.under_way.lock();
        while under_way.len() >= UNDER_WAY
            && let Some(first) = under_way.front()
        {
            wait(first)?;
            under_way.pop_front();
        }
        under_way.push_back(submit()?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::driver::SimDriver;
    use crate::error::Error;
    use crate::{Device, GIB, Settings};

    #[test]
    fn whoever_asks_waits_until_one_of_two_is_done() {
        let driver = Arc::new(SimDriver::new(GIB));
        let device = Device::with_driver(driver.clone(), Settings::default()).unwrap();
        let [busy, other] = [(); 2].map(|()| device.stream("uploads").unwrap());
        let bus = Bus::new();
        driver.hold(busy.id());
        let never = |_: &Event| -> Result<(), Error> { panic!("none is before this one") };
        bus.turn(never, || busy.record()).unwrap();
        bus.turn(never, || busy.record()).unwrap();
        let asked = AtomicUsize::new(0);
        std::thread::scope(|threads| {
            let third = threads.spawn(|| {
                let wait = |event: &Event| {
                    asked.fetch_add(1, Ordering::SeqCst);
                    event.wait()
                };
                bus.turn(wait, || other.record())
            });
            while asked.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            assert!(!third.is_finished());
            driver.release(busy.id());
            third.join().unwrap().unwrap();
        });
        assert_eq!(asked.into_inner(), 1);
        // A turn that fails leaves the others theirs.
        let stopped = |_: &Event| Err(Error::WrongDevice { device: 0 });
        assert!(bus.turn(stopped, || other.record()).is_err());
        bus.turn(Event::wait, || other.record()).unwrap();
        assert_eq!(bus.under_way.lock().len(), UNDER_WAY);
    }
}
