//! Plans: the tables of one family, and transforms with them.

use cuzk_field::RootGenerator;
use cuzk_gpu_mem::Stream;
use cuzk_kernels::ntt::{MAX_LOG_N, Points, Scale, Twiddles};
use cuzk_kernels::{Launcher, ntt_vector};

use super::error::{Error, Result, check_len};
use super::order::Elements;
use super::passes::{Chain, Source, Target};
use super::request::PlanRequest;
use crate::order::{BitReversed, NaturalOrder, Order};
use crate::transform::Direction;

/// Tables on a device, and the transforms that they serve. See the [module](super).
#[derive(Debug)]
pub struct DevicePlan {
    root_generator: RootGenerator,
    max_log_n: u32,
    tables: Vec<((Direction, Points), Twiddles)>,
}

impl DevicePlan {
    /// Allocates the tables and makes them, on `stream`.
    ///
    /// # Errors
    /// [`Error::Size`] beyond 2^[`MAX_LOG_N`]; [`Error::TooLittleMemory`].
    pub fn new(launcher: &dyn Launcher, stream: &Stream, request: &PlanRequest) -> Result<Self> {
        if request.max_log_n > MAX_LOG_N {
            return Err(Error::Size {
                log_n: request.max_log_n,
                max_log_n: MAX_LOG_N,
            });
        }
        let tables = request
            .transforms
            .iter()
            .zip(request.tables())
            .map(|(&kind, request)| Ok((kind, Twiddles::new(launcher, stream, request)?)))
            .collect::<Result<_>>();
        let tables = match tables {
            Err(Error::Kernels(cuzk_kernels::Error::Memory(error))) if error.is_out_of_memory() => {
                return Err(Error::TooLittleMemory {
                    needed: request.table_bytes(),
                    free: launcher.device().usable()?,
                });
            }
            tables => tables?,
        };
        Ok(Self {
            root_generator: request.root_generator,
            max_log_n: request.max_log_n,
            tables,
        })
    }

    /// The family of the roots.
    pub fn root_generator(&self) -> RootGenerator {
        self.root_generator
    }

    /// log2 of the largest transform.
    pub fn max_log_n(&self) -> u32 {
        self.max_log_n
    }

    /// Bytes of device memory that the tables take.
    pub fn table_bytes(&self) -> u64 {
        self.tables.iter().map(|(_, tables)| tables.bytes()).sum()
    }

    /// 2^`log_n`, if the plan has transforms of that size.
    pub(super) fn size(&self, log_n: u32) -> Result<usize> {
        if log_n > self.max_log_n {
            return Err(Error::Size {
                log_n,
                max_log_n: self.max_log_n,
            });
        }
        Ok(1 << log_n)
    }

    pub(super) fn twiddles(
        &self,
        log_n: u32,
        direction: Direction,
        points: Points,
    ) -> Result<&Twiddles> {
        self.size(log_n)?;
        let found = self
            .tables
            .iter()
            .find(|(kind, _)| *kind == (direction, points));
        found
            .map(|(_, tables)| tables)
            .ok_or(Error::NotPlanned { direction, points })
    }

    /// `a = a b`, element by element: of values, the values of the product.
    ///
    /// # Errors
    /// [`Error::Kernels`] unless both are of one length.
    pub fn multiply<O: Order>(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        a: &mut Elements<'_, O>,
        b: &Elements<'_, O>,
    ) -> Result<()> {
        let (a, b) = (a.view_mut(), b.as_view());
        Ok(ntt_vector::product_in_place(launcher, stream, a, b, None)?)
    }

    /// Transforms of 2^`log_n` elements side by side, in place: values on the domain to coefficients
    /// ([`Direction::Inverse`]; times n, unless `scale` divides by it), or coefficients to values.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub fn transform<'a, O: Order>(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        log_n: u32,
        direction: Direction,
        scale: Scale,
        elements: Elements<'a, O>,
    ) -> Result<Elements<'a, O::Opposite>> {
        let twiddles = self.twiddles(log_n, direction, Points::Domain)?;
        run(launcher, stream, log_n, twiddles, scale, elements)
    }

    /// Coefficients to values at g w^j for j = 0 to n - 1, in natural order, g the primitive 2n-th root
    /// with g^2 = w.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub fn odd_values<'a>(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        log_n: u32,
        scale: Scale,
        coefficients: Elements<'a, BitReversed>,
    ) -> Result<Elements<'a, NaturalOrder>> {
        let twiddles = self.twiddles(log_n, Direction::Forward, Points::OddCoset)?;
        run(launcher, stream, log_n, twiddles, scale, coefficients)
    }

    /// The inverse of [`DevicePlan::odd_values`], times n unless `scale` divides by it.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub fn odd_coefficients<'a>(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        log_n: u32,
        scale: Scale,
        values: Elements<'a, NaturalOrder>,
    ) -> Result<Elements<'a, BitReversed>> {
        let twiddles = self.twiddles(log_n, Direction::Inverse, Points::OddCoset)?;
        run(launcher, stream, log_n, twiddles, scale, values)
    }

    /// Values on the domain to values at g w^j, both in natural order. Of each 2^`log_n` values, those
    /// from `rows` on are zero, and are not read. The finest passes of both transforms are one.
    ///
    /// # Errors
    /// As [`Error`] says; [`Error::Length`] for more rows than a transform has.
    pub fn extend<'a>(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        log_n: u32,
        rows: usize,
        mut values: Elements<'a, NaturalOrder>,
    ) -> Result<Elements<'a, NaturalOrder>> {
        let tables = self.extension(log_n)?;
        check_len(log_n, values.len())?;
        let n = 1_usize << log_n;
        if rows > n {
            return Err(Error::Length {
                what: "rows",
                expected: n,
                found: rows,
            });
        }
        let chain = Chain::new(launcher, stream, log_n);
        let source = Source::Rows(rows);
        chain.extend(
            tables,
            Scale::OverN,
            source,
            values.view_mut(),
            Target::InPlace,
        )?;
        Ok(values)
    }

    /// The tables that take values to coefficients, and these to values on the coset.
    pub(super) fn extension(&self, log_n: u32) -> Result<[&Twiddles; 2]> {
        Ok([
            self.twiddles(log_n, Direction::Inverse, Points::Domain)?,
            self.twiddles(log_n, Direction::Forward, Points::OddCoset)?,
        ])
    }
}

fn run<'a, O: Order>(
    launcher: &dyn Launcher,
    stream: &Stream,
    log_n: u32,
    twiddles: &Twiddles,
    scale: Scale,
    mut elements: Elements<'a, O>,
) -> Result<Elements<'a, O::Opposite>> {
    check_len(log_n, elements.len())?;
    let chain = Chain::new(launcher, stream, log_n);
    let data = elements.view_mut();
    if O::IS_REVERSED {
        chain.up(twiddles, scale, data)?;
    } else {
        chain.down(twiddles, scale, Source::Rows(usize::MAX), data)?;
    }
    Ok(Elements::assume(elements.into_view()))
}
