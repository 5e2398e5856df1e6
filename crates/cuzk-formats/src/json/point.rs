//! Points as snarkjs writes them: three coordinates, each a string or a pair of strings.

use cuzk_field::{Affine, CurveField, Fp, Fp2};

use super::decimal;
use super::text::Parser;
use super::write::Writer;
use crate::error::{Error, ErrorKind};
use crate::options::LoadOptions;
use crate::points::Identity;

/// A coordinate in JSON.
pub(super) trait Coordinate: CurveField {
    /// What an error calls a point of such coordinates.
    const POINT: &'static str;
    fn read(parser: &mut Parser<'_>) -> Result<Self, Error>;
    fn write(&self, out: &mut Writer);
}

impl Coordinate for Fp {
    const POINT: &'static str = "a G1 point: an array of three decimal strings";

    fn read(parser: &mut Parser<'_>) -> Result<Self, Error> {
        decimal::read_fp(parser)
    }

    fn write(&self, out: &mut Writer) {
        out.decimal(self.canonical_limbs());
    }
}

impl Coordinate for Fp2 {
    const POINT: &'static str = "a G2 point: an array of three pairs of decimal strings";

    fn read(parser: &mut Parser<'_>) -> Result<Self, Error> {
        let [c0, c1] = parser.fixed_array("a pair of decimal strings", decimal::read_fp)?;
        Ok(Self::new(c0, c1))
    }

    fn write(&self, out: &mut Writer) {
        out.array(|out| {
            self.c0.write(out);
            self.c1.write(out);
        });
    }
}

/// Reads a point. A third coordinate of 0 means infinity, whatever the others; one other than 0
/// and 1 means Jacobian coordinates: x = X/Z^2, y = Y/Z^3.
pub(super) fn read<F: Coordinate>(
    parser: &mut Parser<'_>,
    options: &LoadOptions<'_>,
    identity: Identity,
) -> Result<Affine<F>, Error>
where
    Affine<F>: crate::points::Point,
{
    parser.peek();
    let place = parser.place();
    let [x, y, z] = parser.fixed_array(F::POINT, F::read)?;
    let point = if z == F::ONE {
        Affine { x, y }
    } else {
        match z.inverse() {
            None => Affine::INFINITY,
            Some(inverse) => Affine {
                x: x * inverse.square(),
                y: y * inverse.square() * inverse,
            },
        }
    };
    let (expected, found) = if point.is_infinity() {
        // x = y = 0 with z = 1 is on no curve and must not pass for infinity.
        if !z.is_zero() {
            ("a point of the curve BLS12-381", "the coordinates 0, 0")
        } else if identity == Identity::Refused {
            (
                "a point other than the identity",
                "the identity (point at infinity)",
            )
        } else {
            return Ok(point);
        }
    } else if !point.is_on_curve() {
        (
            "a point of the curve BLS12-381",
            "coordinates that are not on it",
        )
    } else if options.subgroup_check && !point.is_in_subgroup() {
        (
            "a point of the subgroup of order r",
            "a point of the curve outside of it",
        )
    } else {
        return Ok(point);
    };
    Err(Error::new(ErrorKind::BadPoint, expected, found).at(place))
}

/// Writes a point with a third coordinate of 1, or 0 for infinity.
pub(super) fn write<F: Coordinate>(point: &Affine<F>, out: &mut Writer) {
    let (x, y, z) = if point.is_infinity() {
        (F::ZERO, F::ONE, F::ZERO)
    } else {
        (point.x, point.y, F::ONE)
    };
    out.array(|out| {
        x.write(out);
        y.write(out);
        z.write(out);
    });
}
