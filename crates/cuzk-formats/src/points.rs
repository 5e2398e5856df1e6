//! Arrays of curve points, decoded by all cores.

use cuzk_field::encoding::{PointEncoding, PointError};
use cuzk_field::{Affine, CurveField};

use crate::array::ItemArray;
use crate::error::{Error, ErrorKind, Place};
use crate::options::Meter;
use crate::source::ReadAt;

/// How points stand in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PointForm {
    /// Little-endian Montgomery coordinates, all zero for infinity.
    Iden3,
    /// Zcash, both coordinates.
    ZcashUncompressed,
    /// Zcash, x and flags.
    ZcashCompressed,
}

/// Whether the point at infinity may stand in an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Identity {
    Allowed,
    Refused,
}

/// A point that can be read in all forms.
pub(crate) trait Point: PointEncoding + Copy + Send + Sync {
    const INFINITY: Self;
    fn is_infinity(&self) -> bool;
    fn is_in_subgroup(&self) -> bool;
}

impl<F: CurveField> Point for Affine<F>
where
    Self: PointEncoding,
{
    const INFINITY: Self = Self::INFINITY;
    fn is_infinity(&self) -> bool {
        Affine::is_infinity(self)
    }
    fn is_in_subgroup(&self) -> bool {
        Affine::is_in_subgroup(self)
    }
}

impl PointForm {
    /// Bytes of one point.
    pub(crate) const fn bytes<P: PointEncoding>(self) -> usize {
        match self {
            Self::Iden3 | Self::ZcashUncompressed => P::UNCOMPRESSED_BYTES,
            Self::ZcashCompressed => P::COMPRESSED_BYTES,
        }
    }

    /// Writes one point; `out` has the width of [`Self::bytes`].
    pub(crate) fn encode<P: PointEncoding>(self, point: &P, out: &mut [u8]) {
        match self {
            Self::Iden3 => point.write_iden3(out),
            Self::ZcashUncompressed => point.write_zcash_uncompressed(out),
            Self::ZcashCompressed => point.write_zcash_compressed(out),
        }
    }

    pub(crate) fn decode<P: PointEncoding>(self, bytes: &[u8]) -> Result<P, PointError> {
        match self {
            Self::Iden3 => P::from_iden3(bytes),
            Self::ZcashUncompressed => P::from_zcash_uncompressed(bytes),
            Self::ZcashCompressed => P::from_zcash_compressed(bytes),
        }
    }
}

/// An array of points within a source.
pub(crate) struct PointArray<'a> {
    pub(crate) source: &'a dyn ReadAt,
    /// Of the first point.
    pub(crate) offset: u64,
    pub(crate) count: u64,
    pub(crate) form: PointForm,
    pub(crate) identity: Identity,
    /// Where errors say the array is.
    pub(crate) place: Place,
    /// The label of its progress.
    pub(crate) label: &'static str,
}

impl PointArray<'_> {
    /// Reads, decodes and checks every point. Memory is the result and one block per thread.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] when the source cannot hold the array (nothing is allocated then),
    /// [`ErrorKind::BadPoint`] or [`ErrorKind::NotCanonical`] for the first point at fault.
    pub(crate) fn read<P: Point>(&self, meter: &Meter<'_>) -> Result<Vec<P>, Error> {
        ItemArray {
            source: self.source,
            offset: self.offset,
            count: self.count,
            item_bytes: self.form.bytes::<P>(),
            nouns: "points",
            place: &self.place,
            label: self.label,
        }
        .read(P::INFINITY, meter, |bytes, index| {
            self.decode(bytes, index, meter)
        })
    }

    fn decode<P: Point>(&self, bytes: &[u8], index: u64, meter: &Meter<'_>) -> Result<P, Error> {
        let fault = match self.form.decode::<P>(bytes) {
            Ok(point) if self.identity == Identity::Refused && point.is_infinity() => (
                ErrorKind::BadPoint,
                "a point other than the identity",
                "the identity (point at infinity)".to_owned(),
            ),
            Ok(point) if meter.options().subgroup_check && !point.is_in_subgroup() => (
                ErrorKind::BadPoint,
                "a point of the subgroup of order r",
                "a point of the curve outside of it".to_owned(),
            ),
            Ok(point) => return Ok(point),
            Err(error @ PointError::CoordinateNotCanonical) => (
                ErrorKind::NotCanonical,
                "coordinates below the modulus p",
                error.to_string(),
            ),
            Err(error) => (
                ErrorKind::BadPoint,
                "a point of the curve BLS12-381",
                error.to_string(),
            ),
        };
        let offset = self.offset + index * bytes.len() as u64;
        let place = self.place.clone().entry("point", index).offset(offset);
        Err(Error::new(fault.0, fault.1, fault.2).at(place))
    }
}

/// One point at `offset`, under the same checks as an array's.
pub(crate) fn read_point<P: Point>(
    source: &dyn ReadAt,
    offset: u64,
    form: PointForm,
    identity: Identity,
    place: Place,
    meter: &Meter<'_>,
) -> Result<P, Error> {
    let array = PointArray {
        source,
        offset,
        count: 1,
        form,
        identity,
        place: place.clone(),
        label: "header",
    };
    let mut bytes = vec![0; form.bytes::<P>()];
    source.read_exact_at(offset, &mut bytes)?;
    array.decode(&bytes, 0, meter).map_err(|error| {
        // Without the index: there is one point only.
        Error::new(
            error.kind(),
            error.expected().to_owned(),
            error.found().to_owned(),
        )
        .at(place.offset(offset))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::LoadOptions;
    use cuzk_field::{G1Affine, G1Xyzz, G2Affine};
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    fn points(count: usize) -> Vec<G1Affine> {
        let g = G1Affine::generator();
        let mut sum = G1Xyzz::INFINITY;
        (0..count)
            .map(|_| {
                let point = sum.to_affine();
                sum.add_affine(&g);
                point
            })
            .collect()
    }

    fn array(source: &dyn ReadAt, count: u64, form: PointForm) -> PointArray<'_> {
        PointArray {
            source,
            offset: 0,
            count,
            form,
            identity: Identity::Allowed,
            place: Place::section(5, "A"),
            label: "A",
        }
    }

    #[test]
    fn all_forms_come_back_and_the_first_fault_is_named() {
        let options = LoadOptions::default();
        let want = points(9000);
        type Encode = fn(&G1Affine) -> Vec<u8>;
        let encoders: [(PointForm, Encode); 3] = [
            (PointForm::Iden3, PointEncoding::to_iden3),
            (
                PointForm::ZcashUncompressed,
                PointEncoding::to_zcash_uncompressed,
            ),
            (
                PointForm::ZcashCompressed,
                PointEncoding::to_zcash_compressed,
            ),
        ];
        for (form, encode) in encoders {
            let mut bytes: Vec<u8> = want.iter().flat_map(encode).collect();
            let meter = Meter::new(&options, bytes.len() as u64);
            assert_eq!(
                array(&bytes, 9000, form).read::<G1Affine>(&meter).unwrap(),
                want
            );
            let width = form.bytes::<G1Affine>();
            // The lowest of three, wherever the threads begin.
            for bad in [8999, 4096, 4097] {
                bytes[bad * width..(bad + 1) * width].fill(0xff);
            }
            let error = array(&bytes, 9000, form)
                .read::<G1Affine>(&meter)
                .unwrap_err();
            assert_eq!(error.place().entry, Some(("point", 4096)), "{error}");
            assert_eq!(error.place().offset, Some(4096 * width as u64));
        }
    }

    #[test]
    fn progress_adds_up_and_reading_can_be_cancelled() {
        let cancel = AtomicBool::new(false);
        let most = AtomicU64::new(0);
        let progress = |p: crate::options::Progress| {
            most.fetch_max(p.done_bytes, Ordering::Relaxed);
            assert_eq!(p.label, "A");
        };
        let options = LoadOptions {
            progress: Some(&progress),
            cancel: Some(&cancel),
            ..LoadOptions::default()
        };
        let bytes: Vec<u8> = points(9000)
            .iter()
            .flat_map(PointEncoding::to_iden3)
            .collect();
        let meter = Meter::new(&options, bytes.len() as u64);
        let array = array(&bytes, 9000, PointForm::Iden3);
        array.read::<G1Affine>(&meter).unwrap();
        assert_eq!(most.load(Ordering::Relaxed), bytes.len() as u64);
        cancel.store(true, Ordering::Relaxed);
        let error = array.read::<G1Affine>(&meter).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }

    #[test]
    fn hostile_counts_are_refused_before_any_allocation() {
        let options = LoadOptions::default();
        let meter = Meter::new(&options, 0);
        let bytes = vec![0u8; 192];
        for count in [2, 1 << 32, 1 << 60, u64::MAX] {
            let error = array(&bytes, count, PointForm::Iden3)
                .read::<G2Affine>(&meter)
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Truncated);
        }
    }

    #[test]
    fn identities_and_subgroup_on_request() {
        // x = 4 is on the curve and not in the subgroup of order r.
        let mut x = [0; 48];
        x[47] = 4;
        x[0] |= 0x80;
        let strict = LoadOptions {
            subgroup_check: true,
            ..LoadOptions::default()
        };
        let lax = LoadOptions::default();
        let bytes = x.to_vec();
        let array = array(&bytes, 1, PointForm::ZcashCompressed);
        assert!(array.read::<G1Affine>(&Meter::new(&lax, 48)).is_ok());
        let error = array
            .read::<G1Affine>(&Meter::new(&strict, 48))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadPoint);
        assert_eq!(error.expected(), "a point of the subgroup of order r");
        let zero = vec![0; 96];
        let refused = PointArray {
            identity: Identity::Refused,
            ..self::array(&zero, 1, PointForm::Iden3)
        };
        let error = refused.read::<G1Affine>(&Meter::new(&lax, 96)).unwrap_err();
        assert_eq!(error.found(), "the identity (point at infinity)");
    }
}
