//! What the tests of several crates share; a dev-dependency only.
//!
//! - [`cases`]: the circuits of `testdata/` with their keys, witnesses and proofs. With
//!   `CUZK_FIXTURES=DIR` in the environment, those of another folder of the same layout.
//! - [`no_gpu`]: the gate before tests that want a GPU; [`on_both`]: tests on the emulated device and on a card;
//!   with the feature `device`, the module of that name has both.
//! - [`limbs`]: field elements as limbs, the hostile ones first.
//! - [`Words`]: a fixed sequence of words from a seed.
//!
//! ```
//! let case = cuzk_testkit::case("mul1");
//! let zkey = case.zkey().expect("mul1 has a zkey");
//! assert_eq!(&zkey[..4], b"zkey");
//! ```
#![forbid(unsafe_code)]

mod case;
#[cfg(feature = "device")]
pub mod device;
mod gate;
pub mod limbs;
mod unpack;
mod words;

pub use case::{Case, case, cases, target_dir, testdata_dir};
pub use gate::no_gpu;
pub use unpack::unpack;
pub use words::Words;
