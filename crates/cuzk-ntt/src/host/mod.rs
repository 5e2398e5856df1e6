//! The transforms of [`crate::device`] on the CPU: the same names, orders, scales and forms, on arrays in host memory.

mod elements;

use std::sync::{Mutex, OnceLock, PoisonError};

use cuzk_field::{Field as _, Fr, RootGenerator, Scalar};
use cuzk_kernels::ntt::Scale;
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::domain::{Domain, Error, check_len};
use crate::form::QuotientForm;
use crate::order::{BitReversed, NaturalOrder, Order};
use crate::quotient::all_coefficients;
use crate::transform::{Direction, bit_reverse_permute, scale_bit_reversed};
use crate::{quotient_odd_values, quotient_products};

pub use elements::HostElements;

/// log2 of the largest transform: of twice as many roots there must be, too.
const MAX_LOG_N: u32 = 31;

/// What a thread takes of an array whose elements are multiplied.
const TASK: usize = 1 << 12;

/// Transforms of one family of roots up to a size. Tables are made for a size when it is first asked for, and shared by
/// all threads: 32 bytes for each element of a transform.
///
/// Arrays hold any number of transforms side by side, none included. They are worked on by all threads of the current
/// `rayon` pool.
///
/// ```
/// use cuzk_field::{Fr, RootGenerator};
/// use cuzk_ntt::{Direction, HostElements, HostPlan, Scale};
///
/// let plan = HostPlan::new(RootGenerator::Seven, 4)?;
/// let mut values: Vec<Fr> = (0..16u64).map(Fr::from).collect();
/// let elements = HostElements::natural(&mut values);
/// let coefficients = plan.transform(4, Direction::Inverse, Scale::OverN, elements)?;
/// plan.transform(4, Direction::Forward, Scale::One, coefficients)?;
/// assert!((0..16u64).map(Fr::from).eq(values));
/// # Ok::<(), cuzk_ntt::Error>(())
/// ```
#[derive(Debug)]
pub struct HostPlan {
    root_generator: RootGenerator,
    /// By log2 of the size.
    domains: Vec<OnceLock<Domain>>,
    /// Held by who makes one.
    making: Mutex<()>,
}

impl HostPlan {
    /// A plan for transforms of up to 2^`max_log_n` elements.
    ///
    /// # Errors
    /// [`Error::TooLarge`] above 2^31.
    pub fn new(root_generator: RootGenerator, max_log_n: u32) -> Result<Self, Error> {
        if max_log_n > MAX_LOG_N {
            return Err(Error::TooLarge {
                log_n: max_log_n,
                max_log_n: MAX_LOG_N,
            });
        }
        Ok(Self {
            root_generator,
            domains: (0..=max_log_n).map(|_| OnceLock::new()).collect(),
            making: Mutex::new(()),
        })
    }

    /// The family of the roots.
    pub fn root_generator(&self) -> RootGenerator {
        self.root_generator
    }

    /// log2 of the largest transform.
    pub fn max_log_n(&self) -> u32 {
        self.domains.len() as u32 - 1
    }

    /// Transforms by the roots of unity, without 1/n unless `scale` says so, from either order to the other. Of several
    /// transforms side by side, each.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Length`] unless the array is of whole transforms; [`Error::Memory`] for the tables.
    pub fn transform<'a, O: Order>(
        &self,
        log_n: u32,
        direction: Direction,
        scale: Scale,
        elements: HostElements<'a, O>,
    ) -> Result<HostElements<'a, O::Opposite>, Error> {
        self.each(log_n, elements, |domain, values| {
            if O::IS_REVERSED {
                domain.bit_reversed_to_natural(values, direction);
            } else {
                domain.natural_to_bit_reversed(values, direction);
            }
            if let Some(factor) = factor(domain, scale) {
                values
                    .par_chunks_mut(TASK)
                    .for_each(|values| values.iter_mut().for_each(|value| *value *= factor));
            }
        })
    }

    /// Coefficients to values at g w^j for j = 0 to n - 1, in natural order, g the primitive 2n-th root with g^2 = w.
    ///
    /// # Errors
    /// As [`HostPlan::transform`].
    pub fn odd_values<'a>(
        &self,
        log_n: u32,
        scale: Scale,
        coefficients: HostElements<'a, BitReversed>,
    ) -> Result<HostElements<'a, NaturalOrder>, Error> {
        let shift = self.odd_coset_shift(log_n)?;
        self.each(log_n, coefficients, |domain, values| {
            domain.scale_bit_reversed(values, shift, factor(domain, scale).unwrap_or(Fr::ONE));
            domain.bit_reversed_to_natural(values, Direction::Forward);
        })
    }

    /// The inverse of [`HostPlan::odd_values`], times n unless `scale` divides by it.
    ///
    /// # Errors
    /// As [`HostPlan::transform`].
    pub fn odd_coefficients<'a>(
        &self,
        log_n: u32,
        scale: Scale,
        values: HostElements<'a, NaturalOrder>,
    ) -> Result<HostElements<'a, BitReversed>, Error> {
        let shift = self.odd_coset_shift(log_n)?;
        let inverse = shift.inverse().unwrap_or(Fr::ZERO);
        self.each(log_n, values, |domain, values| {
            domain.natural_to_bit_reversed(values, Direction::Inverse);
            domain.scale_bit_reversed(values, inverse, factor(domain, scale).unwrap_or(Fr::ONE));
        })
    }

    /// Values on the domain to values at g w^j, both in natural order. Of each 2^`log_n` values, those from `rows` on
    /// are zero, and are not read.
    ///
    /// # Errors
    /// As [`HostPlan::transform`]; [`Error::Length`] for more rows than a transform has.
    pub fn extend<'a>(
        &self,
        log_n: u32,
        rows: usize,
        values: HostElements<'a, NaturalOrder>,
    ) -> Result<HostElements<'a, NaturalOrder>, Error> {
        let n = self.size(log_n)?;
        let shift = self.odd_coset_shift(log_n)?;
        check_whole(n, values.len())?;
        check_rows(n, rows)?;
        self.each(log_n, values, |domain, values| {
            values[rows..].fill(Fr::ZERO);
            domain.natural_to_bit_reversed(values, Direction::Inverse);
            domain.scale_bit_reversed(values, shift, domain.size_inverse());
            domain.bit_reversed_to_natural(values, Direction::Forward);
        })
    }

    /// Exchanges the orders, in place.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Length`] unless the array is of whole transforms.
    pub fn reverse<'a, O: Order>(
        &self,
        log_n: u32,
        elements: HostElements<'a, O>,
    ) -> Result<HostElements<'a, O::Opposite>, Error> {
        let n = self.size(log_n)?;
        let values = elements.into_slice();
        check_whole(n, values.len())?;
        values
            .par_chunks_exact_mut(n)
            .for_each(bit_reverse_permute::<Fr>);
        Ok(HostElements::assume(values))
    }

    /// `a = a b`, element by element: of values, the values of the product.
    ///
    /// # Errors
    /// [`Error::Length`] unless both are of one length.
    pub fn multiply<O: Order>(
        &self,
        a: &mut HostElements<'_, O>,
        b: &HostElements<'_, O>,
    ) -> Result<(), Error> {
        check_len("b", a.len(), b.len())?;
        let tasks = a.values.par_chunks_mut(TASK).zip(b.values.par_chunks(TASK));
        tasks.for_each(|(a, b)| a.iter_mut().zip(b).for_each(|(a, b)| *a *= *b));
        Ok(())
    }

    /// Multiplies the element of exponent i by `first` `base`^i: a transform on any coset is this and one on the domain.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Length`] unless the array is of whole transforms.
    pub fn multiply_by_powers<O: Order>(
        &self,
        log_n: u32,
        base: Fr,
        first: Fr,
        elements: &mut HostElements<'_, O>,
    ) -> Result<(), Error> {
        let n = self.size(log_n)?;
        check_whole(n, elements.len())?;
        let in_natural_order = |(at, values): (usize, &mut [Fr])| {
            let mut power = first * base.pow((at * TASK) as u64);
            for value in values {
                *value *= power;
                power *= base;
            }
        };
        elements.values.par_chunks_exact_mut(n).for_each(|values| {
            if O::IS_REVERSED {
                scale_bit_reversed(values, base, first);
            } else {
                let tasks = values.par_chunks_mut(TASK).enumerate();
                tasks.for_each(in_natural_order);
            }
        });
        Ok(())
    }

    /// The quotient in the form asked for, as canonical integers in natural order. `a` and `b` hold A w and B w in
    /// natural order, of which entries from `rows` on are zero and not read; c is their product.
    /// [`QuotientForm::Coefficients`] gives n of them, of which the last is zero. The arrays are witness data, and wiped,
    /// also where an error is returned.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Length`] unless both have 2^`log_n` elements and no more rows; [`Error::Memory`] for
    /// the tables.
    pub fn quotient(
        &self,
        log_n: u32,
        form: QuotientForm,
        a: Vec<Fr>,
        b: Vec<Fr>,
        rows: usize,
    ) -> Result<Vec<Scalar>, Error> {
        let (mut a, mut b) = (Zeroizing::new(a), Zeroizing::new(b));
        let n = self.size(log_n)?;
        check_len("a", n, a.len())?;
        check_len("b", n, b.len())?;
        check_rows(n, rows)?;
        let domain = self.domain(log_n)?;
        a[rows..].fill(Fr::ZERO);
        b[rows..].fill(Fr::ZERO);
        let (a, b) = (std::mem::take(&mut *a), std::mem::take(&mut *b));
        match form {
            QuotientForm::Coefficients => all_coefficients(domain, a, b),
            QuotientForm::OddValues => quotient_odd_values(domain, a, b),
            QuotientForm::OddProducts => {
                quotient_products(domain, a, b, self.odd_coset_shift(log_n)?)
            }
        }
    }

    /// Works on each transform of an array, whatever order that leads to.
    fn each<'a, O: Order, P: Order>(
        &self,
        log_n: u32,
        elements: HostElements<'a, O>,
        work: impl Fn(&Domain, &mut [Fr]) + Sync,
    ) -> Result<HostElements<'a, P>, Error> {
        // First, as a wrong size may be one whose tables nobody has room for.
        let n = self.size(log_n)?;
        let values = elements.into_slice();
        check_whole(n, values.len())?;
        if !values.is_empty() {
            let domain = self.domain(log_n)?;
            let transforms = values.par_chunks_exact_mut(n);
            transforms.for_each(|values| work(domain, values));
        }
        Ok(HostElements::assume(values))
    }

    /// 2^`log_n`, if the plan has transforms of that size.
    fn size(&self, log_n: u32) -> Result<usize, Error> {
        if log_n > self.max_log_n() {
            return Err(Error::TooLarge {
                log_n,
                max_log_n: self.max_log_n(),
            });
        }
        Ok(1 << log_n)
    }

    fn odd_coset_shift(&self, log_n: u32) -> Result<Fr, Error> {
        let size = self.size(log_n)?;
        let shift = self.root_generator.root_of_unity(log_n + 1);
        shift.ok_or(Error::Size { size })
    }

    fn domain(&self, log_n: u32) -> Result<&Domain, Error> {
        let size = self.size(log_n)?;
        let slot = &self.domains[log_n as usize];
        if let Some(domain) = slot.get() {
            return Ok(domain);
        }
        // Whoever comes meanwhile waits: two tables may not fit where one does.
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(domain) = slot.get() {
            return Ok(domain);
        }
        let domain = Domain::new(size, self.root_generator)?;
        Ok(slot.get_or_init(|| domain))
    }
}

fn check_whole(n: usize, found: usize) -> Result<(), Error> {
    if found.is_multiple_of(n) {
        return Ok(());
    }
    check_len("the array", found.next_multiple_of(n), found)
}

fn check_rows(n: usize, rows: usize) -> Result<(), Error> {
    if rows <= n {
        return Ok(());
    }
    check_len("rows", n, rows)
}

/// What a scale multiplies by.
fn factor(domain: &Domain, scale: Scale) -> Option<Fr> {
    match scale {
        Scale::One => None,
        Scale::OverN => Some(domain.size_inverse()),
        Scale::OverNR => Some(domain.size_inverse() * Fr::R.inverse().unwrap_or(Fr::ZERO)),
    }
}
