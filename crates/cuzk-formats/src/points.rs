//! Arrays of curve points, decoded by all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use cuzk_field::encoding::{PointEncoding, PointError};
use cuzk_field::{Affine, CurveField};
use rayon::prelude::*;

use crate::cursor::fits;
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

    fn decode<P: PointEncoding>(self, bytes: &[u8]) -> Result<P, PointError> {
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

/// Points per read: 400 KB of G1 points, so that reading and decoding overlap between threads and
/// a thread's buffer stays in its cache.
const BLOCK_POINTS: u64 = 4096;

impl PointArray<'_> {
    /// Reads, decodes and checks every point. Memory is the result and one block per thread.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] when the source cannot hold the array (nothing is allocated then),
    /// [`ErrorKind::BadPoint`] or [`ErrorKind::NotCanonical`] for the first point at fault.
    pub(crate) fn read<P: Point>(&self, meter: &Meter<'_>) -> Result<Vec<P>, Error> {
        let point_bytes = self.form.bytes::<P>();
        let left = self.source.len().saturating_sub(self.offset);
        if !fits(self.count, point_bytes as u64, left) {
            return Err(Error::new(
                ErrorKind::Truncated,
                format!("{} points of {point_bytes} bytes", self.count),
                format!("{left} bytes up to the end of the file"),
            )
            .at(self.place.clone().offset(self.offset)));
        }
        let count = usize::try_from(self.count).map_err(|_| Error::out_of_memory(u64::MAX))?;
        let mut points = Vec::<P>::new();
        points
            .try_reserve_exact(count)
            .map_err(|_| Error::out_of_memory(self.count.saturating_mul(size_of::<P>() as u64)))?;
        let failure = FirstFailure::default();
        (0..count)
            .into_par_iter()
            .with_min_len(BLOCK_POINTS as usize / 4)
            .map_init(Block::default, |block, index| {
                let index = index as u64;
                if failure.is_after(index) {
                    return P::INFINITY;
                }
                let point = block
                    .load(self, index, point_bytes, meter)
                    .and_then(|bytes| self.decode(bytes, index, meter));
                point.unwrap_or_else(|error| {
                    failure.record(index, error);
                    P::INFINITY
                })
            })
            .collect_into_vec(&mut points);
        match failure.into_error() {
            Some(error) => Err(error),
            None => Ok(points),
        }
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

/// The block of encoded points that a thread holds.
#[derive(Default)]
struct Block {
    number: Option<u64>,
    bytes: Vec<u8>,
}

impl Block {
    /// The bytes of point `index`; reads its block when another is held.
    fn load(
        &mut self,
        array: &PointArray<'_>,
        index: u64,
        point_bytes: usize,
        meter: &Meter<'_>,
    ) -> Result<&[u8], Error> {
        let number = index / BLOCK_POINTS;
        let start = number * BLOCK_POINTS;
        if self.number != Some(number) {
            let len = BLOCK_POINTS.min(array.count - start) as usize * point_bytes;
            self.bytes.resize(len, 0);
            self.number = None;
            let offset = array.offset + start * point_bytes as u64;
            array.source.read_exact_at(offset, &mut self.bytes)?;
            self.number = Some(number);
            // Threads may share a block where their ranges meet; only its first point counts it.
            let counted = if index == start { len as u64 } else { 0 };
            meter.advance(array.label, counted)?;
        }
        let at = (index - start) as usize * point_bytes;
        Ok(&self.bytes[at..at + point_bytes])
    }
}

/// The failure with the smallest index of several threads' work.
#[derive(Default)]
struct FirstFailure {
    /// 1 + the smallest index that failed; 0 for none.
    bound: AtomicU64,
    error: Mutex<Option<(u64, Error)>>,
}

impl FirstFailure {
    fn is_after(&self, index: u64) -> bool {
        let bound = self.bound.load(Ordering::Relaxed);
        bound != 0 && index >= bound
    }

    fn record(&self, index: u64, error: Error) {
        let mut held = self
            .error
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // Nothing is worth reading after a cancellation.
        let index = if error.kind() == ErrorKind::Cancelled {
            0
        } else {
            index
        };
        if held.as_ref().is_none_or(|(first, _)| index < *first) {
            *held = Some((index, error));
            self.bound.store(index + 1, Ordering::Relaxed);
        }
    }

    fn into_error(self) -> Option<Error> {
        self.error
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .map(|(_, error)| error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::LoadOptions;
    use cuzk_field::{G1Affine, G1Xyzz, G2Affine};
    use std::sync::atomic::AtomicBool;

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
        let encoders: [(PointForm, fn(&G1Affine) -> Vec<u8>); 3] = [
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
