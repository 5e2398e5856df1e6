//! Keys and proofs in the other library's types, written once for both.

use cuzk_field::encoding::PointEncoding;
use rayon::prelude::*;

use crate::error::Error;

/// A list of points as ours. `encode` gives the library's uncompressed encoding, which is ours, too.
pub(crate) fn points<T: Sync, P: PointEncoding + Send, const BYTES: usize>(
    part: &'static str,
    points: &[T],
    encode: impl Fn(&T) -> [u8; BYTES] + Sync,
) -> Result<Vec<P>, Error> {
    points
        .par_iter()
        .enumerate()
        .map(|(index, point)| {
            P::from_zcash_uncompressed(&encode(point)).map_err(|error| Error::Point {
                part,
                index,
                what: error.to_string(),
            })
        })
        .collect()
}

/// One point as ours.
pub(crate) fn point<T: Sync, P: PointEncoding + Send, const BYTES: usize>(
    part: &'static str,
    value: &T,
    encode: impl Fn(&T) -> [u8; BYTES],
) -> Result<P, Error> {
    P::from_zcash_uncompressed(&encode(value)).map_err(|error| Error::Point {
        part,
        index: 0,
        what: error.to_string(),
    })
}

/// One point as the library's.
pub(crate) fn library_point<T, P: PointEncoding, const BYTES: usize>(
    part: &'static str,
    value: &P,
    decode: impl Fn(&[u8; BYTES]) -> Option<T>,
) -> Result<T, Error> {
    let mut bytes = [0; BYTES];
    value.write_zcash_uncompressed(&mut bytes);
    decode(&bytes).ok_or_else(|| Error::Point {
        part,
        index: 0,
        what: "is not a point of the group".into(),
    })
}

/// The functions over a library's keys and proofs; `Parameters`, `VerifyingKey` and `Proof` are in scope. Its engine is
/// `$Bls12`, its points are those of
/// `$curve`.
macro_rules! key_functions {
    ($Bls12:ty, $curve:ident) => {
        /// The library's key as ours, a copy made on all cores. A `.params` file is read at once as ours
        /// by [`cuzk_formats::bellman::read_params`], faster and with half the memory.
        ///
        /// # Errors
        /// [`Error::Point`] for a point that is not on its curve.
        pub fn proving_key(parameters: &Parameters<$Bls12>) -> Result<ProvingKey, Error> {
            let g1 = |part, list: &[$curve::G1Affine]| {
                keys::points(part, list, |point| point.to_uncompressed())
            };
            let vk = &parameters.vk;
            Ok(ProvingKey {
                flavour: KeyFlavour::LIBSNARK,
                domain_size: parameters.h.len() + 1,
                vk: verifying_key(vk)?,
                beta_g1: keys::point("beta_g1", &vk.beta_g1, |point| point.to_uncompressed())?,
                delta_g1: keys::point("delta_g1", &vk.delta_g1, |point| point.to_uncompressed())?,
                query_layout: QueryLayout::Compact,
                a_query: g1("a", &parameters.a)?,
                b_g1_query: g1("b_g1", &parameters.b_g1)?,
                b_g2_query: keys::points("b_g2", &parameters.b_g2, |point| {
                    point.to_uncompressed()
                })?,
                h_query: g1("h", &parameters.h)?,
                l_query: g1("l", &parameters.l)?,
            })
        }

        /// The library's verifying key as ours.
        ///
        /// # Errors
        /// As [`proving_key`].
        pub fn verifying_key(
            vk: &VerifyingKey<$Bls12>,
        ) -> Result<cuzk_formats::VerifyingKey, Error> {
            let g2 = |part, point: &$curve::G2Affine| {
                keys::point(part, point, |point| point.to_uncompressed())
            };
            Ok(cuzk_formats::VerifyingKey {
                alpha_g1: keys::point("alpha_g1", &vk.alpha_g1, |point| point.to_uncompressed())?,
                beta_g2: g2("beta_g2", &vk.beta_g2)?,
                gamma_g2: g2("gamma_g2", &vk.gamma_g2)?,
                delta_g2: g2("delta_g2", &vk.delta_g2)?,
                gamma_abc_g1: keys::points("ic", &vk.ic, |point| point.to_uncompressed())?,
            })
        }

        /// A proof as the library's.
        ///
        /// # Errors
        /// [`Error::Point`] for a point outside its group, which no prover makes.
        pub fn to_proof(proof: &cuzk_formats::Proof) -> Result<Proof<$Bls12>, Error> {
            let g1 = |part, point| {
                keys::library_point(part, point, |bytes| {
                    $curve::G1Affine::from_uncompressed(bytes).into()
                })
            };
            Ok(Proof {
                a: g1("a", &proof.a)?,
                b: keys::library_point("b", &proof.b, |bytes| {
                    $curve::G2Affine::from_uncompressed(bytes).into()
                })?,
                c: g1("c", &proof.c)?,
            })
        }
    };
}

pub(crate) use key_functions;
