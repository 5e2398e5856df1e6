//! That delta and beta have the same exponent in both groups.

use cuzk_field::{G1Affine, G2Affine, pairing_product_is_one};

use super::header::HeaderPoints;
use super::{HEADER, ZKEY};
use crate::error::{Error, ErrorKind};

/// Checks e(x1, G2) = e(G1, x2) for beta and delta. All points are in the subgroup.
pub(super) fn check(points: &HeaderPoints) -> Result<(), Error> {
    for (name, g1, g2) in [
        ("beta", points.beta_g1, points.beta_g2),
        ("delta", points.delta_g1, points.delta_g2),
    ] {
        if !same_exponent(g1, g2) {
            return Err(Error::new(
                ErrorKind::Inconsistent,
                format!("{name}1 and {name}2 to be the same multiple of the generators"),
                "that a pairing tells them apart",
            )
            .at(ZKEY.place(HEADER))
            .hint("the key is damaged; get it again"));
        }
    }
    Ok(())
}

/// Whether `g1` = x G1 and `g2` = x G2 for one x.
fn same_exponent(g1: G1Affine, g2: G2Affine) -> bool {
    pairing_product_is_one(&[(g1, G2Affine::generator()), (-G1Affine::generator(), g2)])
}
