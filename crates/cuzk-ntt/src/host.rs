//! The transforms of [`crate::device`] on the CPU: the same names, orders, scales and forms, on arrays in host memory.

use std::marker::PhantomData;
use std::sync::OnceLock;

use cuzk_field::{Field as _, Fr, RootGenerator, Scalar};
use cuzk_kernels::ntt::Scale;
use rayon::prelude::*;

use crate::domain::{Domain, Error};
use crate::form::QuotientForm;
use crate::order::{BitReversed, NaturalOrder, Order};
use crate::transform::Direction;
use crate::{quotient_coefficients, quotient_odd_values, quotient_products};

/// log2 of the largest transform: of twice as many roots there must be, too.
const MAX_LOG_N: u32 = 31;

/// What a thread takes of an array that is multiplied by one factor.
const TASK: usize = 1 << 12;

/// Transforms of one family of roots up to a size. Tables are made for a size when it is first asked for, and shared by
/// all threads.
#[derive(Debug)]
pub struct HostPlan {
    root_generator: RootGenerator,
    /// By log2 of the size.
    domains: Vec<OnceLock<Domain>>,
}

/// An array in host memory that holds transforms side by side, each in the order `O`.
#[derive(Debug)]
pub struct HostElements<'a, O: Order> {
    values: &'a mut [Fr],
    order: PhantomData<O>,
}

impl<'a> HostElements<'a, NaturalOrder> {
    /// An array whose elements are in natural order.
    pub fn natural(values: &'a mut [Fr]) -> Self {
        Self::assume(values)
    }
}

impl<'a> HostElements<'a, BitReversed> {
    /// An array whose elements are in bit-reversed order.
    pub fn bit_reversed(values: &'a mut [Fr]) -> Self {
        Self::assume(values)
    }
}

impl<'a, O: Order> HostElements<'a, O> {
    fn assume(values: &'a mut [Fr]) -> Self {
        Self {
            values,
            order: PhantomData,
        }
    }

    /// The array.
    pub fn into_slice(self) -> &'a mut [Fr] {
        self.values
    }
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
    /// [`Error::TooLarge`]; [`Error::Length`] unless the array is of whole transforms.
    pub fn transform<'a, O: Order>(
        &self,
        log_n: u32,
        direction: Direction,
        scale: Scale,
        elements: HostElements<'a, O>,
    ) -> Result<HostElements<'a, O::Opposite>, Error> {
        let domain = self.domain(log_n)?;
        let values = whole(domain, elements)?;
        for values in values.chunks_exact_mut(domain.size()) {
            if O::IS_REVERSED {
                domain.bit_reversed_to_natural(values, direction);
            } else {
                domain.natural_to_bit_reversed(values, direction);
            }
        }
        if let Some(factor) = factor(domain, scale) {
            values
                .par_chunks_mut(TASK)
                .for_each(|values| values.iter_mut().for_each(|value| *value *= factor));
        }
        Ok(HostElements::assume(values))
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
        let domain = self.domain(log_n)?;
        let (shift, first) = (domain.odd_coset_shift()?, factor(domain, scale));
        let values = whole(domain, coefficients)?;
        for values in values.chunks_exact_mut(domain.size()) {
            domain.scale_bit_reversed(values, shift, first.unwrap_or(Fr::ONE));
            domain.bit_reversed_to_natural(values, Direction::Forward);
        }
        Ok(HostElements::assume(values))
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
        let domain = self.domain(log_n)?;
        let inverse = domain.odd_coset_shift()?.inverse().unwrap_or(Fr::ZERO);
        let first = factor(domain, scale).unwrap_or(Fr::ONE);
        let values = whole(domain, values)?;
        for values in values.chunks_exact_mut(domain.size()) {
            domain.natural_to_bit_reversed(values, Direction::Inverse);
            domain.scale_bit_reversed(values, inverse, first);
        }
        Ok(HostElements::assume(values))
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
        let domain = self.domain(log_n)?;
        let shift = domain.odd_coset_shift()?;
        let values = whole(domain, values)?;
        for values in values.chunks_exact_mut(domain.size()) {
            clear_behind(domain, rows, values)?;
            domain.extend_to_coset(values, shift)?;
        }
        Ok(HostElements::assume(values))
    }

    /// The quotient in the form asked for, as canonical integers in natural order. `a` and `b` hold A w and B w in
    /// natural order, of which entries from `rows` on are zero and not read; c is their product.
    /// [`QuotientForm::Coefficients`] gives n of them, of which the last is zero. The arrays are witness data, and wiped.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Length`] unless both have 2^`log_n` elements and no more rows.
    pub fn quotient(
        &self,
        log_n: u32,
        form: QuotientForm,
        mut a: Vec<Fr>,
        mut b: Vec<Fr>,
        rows: usize,
    ) -> Result<Vec<Scalar>, Error> {
        let domain = self.domain(log_n)?;
        for values in [&mut a, &mut b] {
            domain.check_len(values.len())?;
            clear_behind(domain, rows, values)?;
        }
        match form {
            QuotientForm::Coefficients => {
                let mut coefficients = quotient_coefficients(domain, a, b)?;
                coefficients.resize(domain.size(), Scalar::ZERO);
                Ok(coefficients)
            }
            QuotientForm::OddValues => quotient_odd_values(domain, a, b),
            QuotientForm::OddProducts => {
                let shift = domain.odd_coset_shift()?;
                quotient_products(domain, a, b, shift)
            }
        }
    }

    fn domain(&self, log_n: u32) -> Result<&Domain, Error> {
        let too_large = Error::TooLarge {
            log_n,
            max_log_n: self.max_log_n(),
        };
        let slot = self.domains.get(log_n as usize).ok_or(too_large)?;
        if let Some(domain) = slot.get() {
            return Ok(domain);
        }
        let domain = Domain::new(1 << log_n, self.root_generator)?;
        Ok(slot.get_or_init(|| domain))
    }
}

/// The array, if it is of whole transforms.
fn whole<'a, O: Order>(
    domain: &Domain,
    elements: HostElements<'a, O>,
) -> Result<&'a mut [Fr], Error> {
    let (values, n) = (elements.values, domain.size());
    if values.is_empty() || !values.len().is_multiple_of(n) {
        return Err(Error::Length {
            expected: values.len().next_multiple_of(n).max(n),
            found: values.len(),
        });
    }
    Ok(values)
}

fn clear_behind(domain: &Domain, rows: usize, values: &mut [Fr]) -> Result<(), Error> {
    let behind = values.get_mut(rows..).ok_or(Error::Length {
        expected: domain.size(),
        found: rows,
    })?;
    behind.fill(Fr::ZERO);
    Ok(())
}

/// What a scale multiplies by.
fn factor(domain: &Domain, scale: Scale) -> Option<Fr> {
    match scale {
        Scale::One => None,
        Scale::OverN => Some(domain.size_inverse()),
        Scale::OverNR => Some(domain.size_inverse() * Fr::R.inverse().unwrap_or(Fr::ZERO)),
    }
}
