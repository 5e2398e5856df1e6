//! Who computes next on a device: the one whose turn it is in order, not the one who comes first.
//!
//! The device's own permit (`cuzk-gpu-mem`) is a lock without an order. Only who has passed the
//! turnstile asks for it.

use std::collections::BTreeSet;

use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Admits so many at a time, the least key first.
#[derive(Debug)]
pub(crate) struct Turnstile<K> {
    state: Mutex<State<K>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<K> {
    free: usize,
    /// By key; tickets tell equal keys apart, and let the one who came first go first.
    waiting: BTreeSet<(K, u64)>,
    next_ticket: u64,
}

/// A place behind the turnstile, given back when dropped.
#[derive(Debug)]
#[must_use = "the turn ends when this is dropped"]
pub(crate) struct Turn<'a, K: Ord + Clone> {
    turnstile: &'a Turnstile<K>,
}

impl<K: Ord + Clone> Turnstile<K> {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            state: Mutex::new(State {
                free: places,
                waiting: BTreeSet::new(),
                next_ticket: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Nothing between lock and unlock can leave the state half changed.
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place; `None` once `given_up` says so, which is asked at each change and each
    /// [`Turnstile::wake`].
    pub(crate) fn enter(&self, key: &K, given_up: impl Fn() -> bool) -> Option<Turn<'_, K>> {
        let mut state = self.lock();
        let mine = (key.clone(), state.next_ticket);
        state.next_ticket += 1;
        state.waiting.insert(mine.clone());
        loop {
            if given_up() {
                state.waiting.remove(&mine);
                drop(state);
                // The next in line may have been waiting behind this one.
                self.changed.notify_all();
                return None;
            }
            if state.free > 0 && state.waiting.first() == Some(&mine) {
                state.waiting.remove(&mine);
                state.free -= 1;
                let more = state.free > 0;
                drop(state);
                if more {
                    self.changed.notify_all();
                }
                return Some(Turn { turnstile: self });
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Everybody who waits asks again whether to give up. The lock is taken so that nobody is
    /// between asking and waiting.
    pub(crate) fn wake(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }
}

impl<K: Ord + Clone> Drop for Turn<'_, K> {
    fn drop(&mut self) {
        self.turnstile.lock().free += 1;
        self.turnstile.changed.notify_all();
    }
}
