//! The state that threads share, under a model checker: it runs `ledger.rs` and `turnstile.rs` over
//! primitives of its own and tries many interleavings. Channels are not modelled.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "the modules are compiled here a second time, and not all of each is used"
)]

mod sync {
    pub(crate) use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub(crate) use std::sync::PoisonError;
}

#[path = "../src/ledger.rs"]
mod ledger;
#[path = "../src/turnstile.rs"]
mod turnstile;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cuzk_gpu_mem::Footprint;
use shuttle::thread;
use sync::{Arc, Mutex};

use ledger::{Gate, Ledger, Refused};
use turnstile::Turnstile;

const INTERLEAVINGS: usize = 3000;

fn host(bytes: u64) -> Footprint {
    Footprint {
        host: bytes,
        ..Footprint::default()
    }
}

/// Turns exclude each other, the least key goes first of those that wait, who gives up is gone, and
/// nobody waits for ever: a deadlock would be reported.
#[test]
fn turns_are_exclusive_and_nobody_is_forgotten() {
    let model = || {
        let turnstile = Arc::new(Turnstile::new(1));
        let (inside, given_up) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let order = Arc::new(Mutex::new(Vec::new()));
        let first = turnstile.enter(&0, || false).unwrap();
        let threads: Vec<_> = (1..4_usize)
            .map(|key| {
                let (turnstile, inside) = (Arc::clone(&turnstile), Arc::clone(&inside));
                let (given_up, order) = (Arc::clone(&given_up), Arc::clone(&order));
                thread::spawn(move || {
                    // The second may be called off while it waits, or while it computes.
                    let is_called_off = || key == 2 && given_up.load(Ordering::SeqCst);
                    let Some(turn) = turnstile.enter(&key, is_called_off) else {
                        assert_eq!(key, 2);
                        return;
                    };
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    order.lock().unwrap().push(key);
                    thread::yield_now();
                    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                    drop(turn);
                })
            })
            .collect();
        given_up.store(true, Ordering::SeqCst);
        turnstile.wake();
        drop(first);
        for thread in threads {
            thread.join().unwrap();
        }
        let order = order.lock().unwrap();
        assert!(order.contains(&1) && order.contains(&3));
        assert!(turnstile.enter(&9, || false).is_some(), "a place was lost");
    };
    shuttle::check_random(model, INTERLEAVINGS);
    shuttle::check_pct(model, INTERLEAVINGS, 3);
}

#[test]
fn those_who_wait_go_in_order() {
    shuttle::check_random(
        || {
            let turnstile = Arc::new(Turnstile::new(1));
            let order = Arc::new(Mutex::new(Vec::new()));
            let waiting = Arc::new(AtomicUsize::new(0));
            let first = turnstile.enter(&0, || false).unwrap();
            let threads: Vec<_> = [3, 1, 2]
                .into_iter()
                .map(|key| {
                    let (turnstile, order) = (Arc::clone(&turnstile), Arc::clone(&order));
                    let waiting = Arc::clone(&waiting);
                    thread::spawn(move || {
                        let asked = AtomicBool::new(false);
                        let turn = turnstile.enter(&key, || {
                            // Asked under the lock, with the key in line already.
                            if !asked.swap(true, Ordering::SeqCst) {
                                waiting.fetch_add(1, Ordering::SeqCst);
                            }
                            false
                        });
                        order.lock().unwrap().push(key);
                        drop(turn);
                    })
                })
                .collect();
            while waiting.load(Ordering::SeqCst) < 3 {
                thread::yield_now();
            }
            drop(first);
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
        },
        INTERLEAVINGS,
    );
}

/// The processors have several places.
#[test]
fn as_many_as_there_are_places_are_inside() {
    shuttle::check_random(
        || {
            let turnstile = Arc::new(Turnstile::new(2));
            let inside = Arc::new(AtomicUsize::new(0));
            let threads: Vec<_> = (0..4)
                .map(|key| {
                    let (turnstile, inside) = (Arc::clone(&turnstile), Arc::clone(&inside));
                    thread::spawn(move || {
                        let turn = turnstile.enter(&key, || false);
                        assert!(inside.fetch_add(1, Ordering::SeqCst) < 2);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(turn);
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
        },
        INTERLEAVINGS,
    );
}

#[test]
fn holds_never_exceed_the_limit_and_all_return() {
    shuttle::check_random(
        || {
            let ledger = Ledger::new(Footprint {
                device: u64::MAX,
                pinned: u64::MAX,
                host: 10,
            });
            let threads: Vec<_> = [4, 5, 6, 11]
                .into_iter()
                .map(|bytes| {
                    let ledger = Arc::clone(&ledger);
                    thread::spawn(move || {
                        let hold = ledger.try_hold(host(bytes), host(0));
                        assert!(bytes <= 10 || hold.is_none());
                        thread::yield_now();
                        assert!(ledger.held().0.host <= 10);
                        drop(hold);
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            let (now, peak) = ledger.held();
            assert_eq!(now, Footprint::default());
            assert!((4..=10).contains(&peak.host));
            assert!(ledger.try_hold(host(7), host(4)).is_none());
            assert!(ledger.try_hold(host(6), host(4)).is_some());
        },
        INTERLEAVINGS,
    );
}

/// An admission as the engine makes it: a place, host memory, a turn; given back in whatever order
/// the threads run.
#[test]
fn a_partition_that_ends_or_is_called_off_leaves_nothing() {
    shuttle::check_random(
        || {
            let gate = Gate::new(2);
            let ledger = Ledger::new(host(10));
            let turnstile = Arc::new(Turnstile::new(1));
            let called_off = Arc::new(AtomicBool::new(false));
            let threads: Vec<_> = (0..3_u32)
                .map(|key| {
                    let (gate, ledger) = (Arc::clone(&gate), Arc::clone(&ledger));
                    let (turnstile, called_off) = (Arc::clone(&turnstile), Arc::clone(&called_off));
                    thread::spawn(move || {
                        let pass = match gate.enter() {
                            Ok(pass) => pass,
                            Err(refused) => {
                                assert_eq!(refused, Refused::Full);
                                return;
                            }
                        };
                        if let Some(_hold) = ledger.try_hold(host(6), host(0)) {
                            let is_off = || called_off.load(Ordering::SeqCst);
                            drop(turnstile.enter(&key, is_off));
                        }
                        assert!(gate.count() <= 2);
                        drop(pass);
                    })
                })
                .collect();
            called_off.store(true, Ordering::SeqCst);
            turnstile.wake();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!((gate.count(), ledger.held().0), (0, Footprint::default()));
            assert!(turnstile.enter(&9, || false).is_some());
            gate.close();
            assert_eq!(gate.enter().unwrap_err(), Refused::Closed);
        },
        INTERLEAVINGS,
    );
}
