//! Proofs in partitions, over workers and devices.
//!
//! A [`Scheduler`] has a set of worker threads for each device. A job is a proof: some partitions,
//! each done in three phases. *Staging* brings a partition to its device while another one computes
//! there; *computing* needs the device's permit, which goes to the partition whose turn it is;
//! *finishing* is done on the host. Results come in the order of the partitions, each of them
//! verified. What is done in a phase is a [`Work`]'s business: [`Proofs`] makes Groth16 proofs.
//!
//! ```
//! use std::sync::Arc;
//! use cuzk_groth16::{Circuit, Prover, synth};
//! use cuzk_sched::{DeviceOptions, JobOptions, Options, Place, Proofs, Scheduler, Statement};
//!
//! let instance = synth::Instance::new(synth::Shape::Dense, 4, 1)?;
//! let key = synth::proving_key(&instance.r1cs, synth::KeyFamily::Circom, 2)?;
//! let proofs = Arc::new(Proofs::new(Prover::new(&key)?, Circuit::R1cs(&instance.r1cs)));
//! let witness = Arc::new(instance.witness.clone());
//! std::thread::scope(|scope| {
//!     let options = Options::new([DeviceOptions::new(Place::Cpu)]);
//!     let scheduler = Scheduler::start_in(scope, options)?;
//!     // Two partitions with one witness; `Statement::Load` reads each when its turn comes.
//!     let partitions = vec![Statement::Witness(witness.clone()), Statement::Witness(witness)];
//!     let finished = scheduler.submit(&proofs, partitions, JobOptions::default())?.wait()?;
//!     assert!(finished.outputs.iter().all(|proved| proved.verified));
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `scheduler` | [`Scheduler`]: started, given jobs, drained |
//! | `options` | [`Options`], [`JobOptions`], [`Priority`], [`OnDeviceError`] |
//! | `job` | [`Job`]: waited for, cancelled |
//! | `work` | [`Work`], its phases, [`Demand`], [`Fault`] |
//! | `message` | all that threads say to each other, and [`Event`] |
//! | `core` | the engine's state: dispatch, recovery, watchdogs |
//! | `worker` | one thread, one partition at a time |
//! | `turnstile`, `ledger`, `queue` | whose turn it is, who holds host memory, who goes first |
//! | [`timeline`] | what happened when: one axis, its analysis, pictures |
//! | `proofs` | Groth16 |
//!
//! Rules and guarantees are in `docs/scheduling.md`.
#![forbid(unsafe_code)]

mod core;
mod error;
mod job;
mod ledger;
mod message;
mod options;
mod proofs;
mod queue;
mod scheduler;
mod sync;
pub mod timeline;
mod turnstile;
mod work;
mod worker;

pub use error::{JobError, SubmitError};
pub use job::{Canceller, Finished, Job, PartitionReport};
pub use message::{Event, JobId, PartId, Phase};
pub use options::{
    DeviceOptions, JobOptions, Lane, Observer, OnDeviceError, Options, Priority, Role, Watchdog,
};
pub use proofs::{Evaluated, ProofError, Proofs, Statement};
pub use scheduler::{Scheduler, StartError, Status};
pub use work::{Context, Demand, Fault, Place, Preparation, Section, Staging, Stopped, Work};
