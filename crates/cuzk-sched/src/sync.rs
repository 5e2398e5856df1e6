//! What the shared state is built on: std's primitives here, a model checker's in `tests/model.rs`,
//! which compiles `ledger.rs` and `turnstile.rs` over them.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
