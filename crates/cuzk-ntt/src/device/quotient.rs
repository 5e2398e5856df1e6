//! The quotient on a device, in the three forms that keys ask for.
//!
//! a and b hold A w and B w in natural order; c = a b entry by entry, as for a satisfying witness. The
//! shift g is the primitive 2n-th root with g^2 = w, so that Z = g^n - 1 = -2 on the coset.

use cuzk_field::{Field as _, Fr, Scalar};
use cuzk_gpu_mem::{DeviceViewMut, Stream};
use cuzk_kernels::{Launcher, ntt_vector};

use super::error::{Error, Result};
use super::passes::{Chain, Source, Target};
use super::plan::DevicePlan;
use super::{Points, Scale};
use crate::form::QuotientForm;
use crate::transform::Direction;

/// The arrays of a quotient, each of n elements: A w and B w, of which entries from `rows` on are zero
/// and are not read, and room for c where the form has three arrays.
#[derive(Debug)]
pub struct QuotientArrays<'a, 'b, 'c> {
    /// A w; the result will lie here.
    pub a: DeviceViewMut<'a, Fr>,
    /// B w; overwritten.
    pub b: DeviceViewMut<'b, Fr>,
    /// Room; not read. None for [`QuotientForm::OddProducts`].
    pub c: Option<DeviceViewMut<'c, Fr>>,
    /// Entries of a and b that count, at most n.
    pub rows: usize,
}

/// The transforms that a form takes.
pub(super) fn transforms(form: QuotientForm) -> &'static [(Direction, Points)] {
    const INVERSE: (Direction, Points) = (Direction::Inverse, Points::Domain);
    const ODD: (Direction, Points) = (Direction::Forward, Points::OddCoset);
    const ODD_INVERSE: (Direction, Points) = (Direction::Inverse, Points::OddCoset);
    match form {
        QuotientForm::Coefficients => &[INVERSE, ODD, ODD_INVERSE],
        QuotientForm::OddValues | QuotientForm::OddProducts => &[INVERSE, ODD],
    }
}

impl DevicePlan {
    /// The quotient in the form asked for, as canonical integers in natural order, in the memory of a.
    /// [`QuotientForm::Coefficients`] gives n of them, of which the last is zero.
    ///
    /// # Errors
    /// [`Error::Length`] unless all arrays have 2^`log_n` elements and no more rows; [`Error::Size`] and
    /// [`Error::NotPlanned`] if the plan is for smaller ones or another form.
    pub fn quotient<'a>(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        log_n: u32,
        form: QuotientForm,
        arrays: QuotientArrays<'a, '_, '_>,
    ) -> Result<DeviceViewMut<'a, Scalar>> {
        let n = self.size(log_n)?;
        let QuotientArrays { a, b, c, rows } = arrays;
        let same = |what, found| {
            if found == n {
                return Ok(());
            }
            Err(Error::Length {
                what,
                expected: n,
                found,
            })
        };
        same("a", a.len())?;
        same("b", b.len())?;
        let c = match (form.arrays(), c) {
            (2, _) => None,
            (_, c) => {
                same("c", c.as_ref().map_or(0, |c| c.len()))?;
                c
            }
        };
        if rows > n {
            return Err(Error::Length {
                what: "rows",
                expected: n,
                found: rows,
            });
        }
        let (mut a, b, mut c) = (a, b, c);
        let extension = self.extension(log_n)?;
        let odd_inverse = match form {
            QuotientForm::Coefficients => {
                Some(self.twiddles(log_n, Direction::Inverse, Points::OddCoset)?)
            }
            QuotientForm::OddValues | QuotientForm::OddProducts => None,
        };
        // Values as integers, but where a transform follows.
        let scale = match odd_inverse {
            Some(_) => Scale::OverN,
            None => Scale::OverNR,
        };
        let chain = Chain::new(launcher, stream, log_n);
        if let Some(c) = &mut c {
            let products = Source::Products(rows, a.as_view(), b.as_view());
            let c = c.reborrow();
            match odd_inverse {
                Some(_) => chain.down(extension[0], Scale::One, products, c)?,
                None => chain.extend(extension, scale, products, c, Target::InPlace)?,
            }
        }
        let values = Source::Rows(rows);
        let in_place = Target::InPlace;
        chain.extend(extension, Scale::OverN, values, a.reborrow(), in_place)?;
        let c = c.map(DeviceViewMut::into_view);
        let product = Target::Product {
            factors: a.reborrow(),
            minus: c.filter(|_| odd_inverse.is_none()),
            canonical: odd_inverse.is_none(),
        };
        chain.extend(extension, scale, values, b, product)?;
        let (Some(odd_inverse), Some(c)) = (odd_inverse, c) else {
            return Ok(a.cast());
        };
        chain.down(odd_inverse, Scale::One, Source::Rows(n), a.reborrow())?;
        let factor = Scalar::from(factor(log_n));
        Ok(ntt_vector::finish(launcher, stream, log_n, a, c, factor)?)
    }
}

/// 1 / (n z), z = -2.
fn factor(log_n: u32) -> Fr {
    let power = Fr::from(1_u64 << (log_n + 1));
    -power.inverse().unwrap_or(Fr::ZERO)
}
