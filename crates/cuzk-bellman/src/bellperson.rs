//! Keys and proofs of bellperson 0.26, for circuits of [`crate::bellpepper`].

use bellperson::groth16::{Parameters, Proof, VerifyingKey};
use blstrs::Bls12;
use cuzk_formats::{KeyFlavour, ProvingKey, QueryLayout};

use crate::error::Error;
use crate::keys::{self, key_functions};

key_functions!(Bls12, blstrs);
