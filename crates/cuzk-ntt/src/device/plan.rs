//! Plans: the tables of one family, and transforms with them.

use cuzk_field::{Field as _, Fr, RootGenerator};
use cuzk_gpu_mem::{DeviceBuf, Stream};
use cuzk_kernels::ntt::{self, MAX_LOG_N, Pass, Points, Scale, Twiddles, TwiddlesRequest};
use cuzk_kernels::{Launcher, ntt_vector};

use super::order::{BitReversed, Elements, NaturalOrder, Order};
use super::passes::stages;
use super::quotient::QuotientForm;
use crate::transform::Direction;

/// Why a transform on a device was not begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Memory, launches, the device itself.
    #[error(transparent)]
    Kernels(#[from] cuzk_kernels::Error),

    /// The plan was made without these tables.
    #[error("the plan has no tables for {direction:?} transforms with values on {points:?}")]
    NotPlanned {
        /// The direction asked for.
        direction: Direction,
        /// Where the values are.
        points: Points,
    },

    /// The size is larger than the plan's.
    #[error("the plan is for transforms of up to 2^{max_log_n} elements, not 2^{log_n}")]
    Size {
        /// log2 of the size asked for.
        log_n: u32,
        /// log2 of the largest.
        max_log_n: u32,
    },

    /// An array does not hold whole transforms.
    #[error("{what} has {found} elements, expected {expected}")]
    Length {
        /// Which array.
        what: &'static str,
        /// What it should have been; the next multiple, for a batch.
        expected: usize,
        /// What it was.
        found: usize,
    },
}

impl From<cuzk_gpu_mem::Error> for Error {
    fn from(error: cuzk_gpu_mem::Error) -> Self {
        Self::Kernels(error.into())
    }
}

/// The result of this module's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a plan is made for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanRequest {
    /// The family of the roots.
    pub root_generator: RootGenerator,
    /// log2 of the largest transform, up to [`MAX_LOG_N`]; smaller ones are served as well.
    pub max_log_n: u32,
    /// Which transforms; each takes its own tables.
    pub transforms: Vec<(Direction, Points)>,
    /// Bytes of device memory that all tables together may take. With 73 bytes for each element of the
    /// largest transform, and each kind, nothing is computed twice; with less, down to 6 MB a kind,
    /// twiddles of the coarsest rounds cost a multiplication more.
    pub max_table_bytes: u64,
}

impl PlanRequest {
    /// Both directions on the domain, with whole tables.
    pub fn domain(root_generator: RootGenerator, max_log_n: u32) -> Self {
        let on = |direction| (direction, Points::Domain);
        Self {
            root_generator,
            max_log_n,
            transforms: vec![on(Direction::Forward), on(Direction::Inverse)],
            max_table_bytes: u64::MAX,
        }
    }

    /// What a form of the quotient takes, with whole tables.
    pub fn quotient(root_generator: RootGenerator, log_n: u32, form: QuotientForm) -> Self {
        Self {
            root_generator,
            max_log_n: log_n,
            transforms: form.transforms().to_vec(),
            max_table_bytes: u64::MAX,
        }
    }

    /// The same within a budget.
    #[must_use]
    pub fn within(self, max_table_bytes: u64) -> Self {
        Self {
            max_table_bytes,
            ..self
        }
    }

    fn tables(&self) -> Vec<TwiddlesRequest> {
        let share = self.max_table_bytes / self.transforms.len().max(1) as u64;
        let request = |&(direction, points)| TwiddlesRequest {
            root_generator: self.root_generator,
            inverse: direction == Direction::Inverse,
            points,
            max_log_n: self.max_log_n,
            max_bytes: share,
        };
        self.transforms.iter().map(request).collect()
    }

    /// Bytes of device memory that the tables will take.
    pub fn table_bytes(&self) -> u64 {
        self.tables().iter().map(TwiddlesRequest::bytes).sum()
    }
}

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
    /// [`Error::Size`] beyond 2^[`MAX_LOG_N`]; out of memory with the bytes wanted and free.
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
            .collect::<Result<_>>()?;
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

    fn twiddles(&self, log_n: u32, direction: Direction, points: Points) -> Result<&Twiddles> {
        if log_n > self.max_log_n {
            return Err(Error::Size {
                log_n,
                max_log_n: self.max_log_n,
            });
        }
        let found = self
            .tables
            .iter()
            .find(|(kind, _)| *kind == (direction, points));
        found
            .map(|(_, tables)| tables)
            .ok_or(Error::NotPlanned { direction, points })
    }

    /// Transforms of 2^`log_n` elements side by side, in place: values on the domain to coefficients
    /// ([`Direction::Inverse`]; times n, unless `scale` is [`Scale::OverN`]), or coefficients to values.
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
        self.run(launcher, stream, twiddles, log_n, scale, u64::MAX, elements)
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
        self.run(
            launcher,
            stream,
            twiddles,
            log_n,
            scale,
            u64::MAX,
            coefficients,
        )
    }

    /// The inverse of [`DevicePlan::odd_values`], times n unless `scale` is [`Scale::OverN`].
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
        self.run(launcher, stream, twiddles, log_n, scale, u64::MAX, values)
    }

    /// Values on the domain to values at g w^j, both in natural order. Of each 2^`log_n` values, those
    /// from `rows` on are zero, and are not read.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub fn extend<'a>(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        log_n: u32,
        rows: usize,
        values: Elements<'a, NaturalOrder>,
    ) -> Result<Elements<'a, NaturalOrder>> {
        let inverse = self.twiddles(log_n, Direction::Inverse, Points::Domain)?;
        let forward = self.twiddles(log_n, Direction::Forward, Points::OddCoset)?;
        let rows = rows as u64;
        let values = self.run(launcher, stream, inverse, log_n, Scale::One, rows, values)?;
        self.run(
            launcher,
            stream,
            forward,
            log_n,
            Scale::OverN,
            u64::MAX,
            values,
        )
    }

    /// Values on the domain to coefficients times n, as [`DevicePlan::transform`]; values from `rows` on
    /// are zero and are not read.
    pub(super) fn interpolate<'a>(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        log_n: u32,
        rows: usize,
        values: Elements<'a, NaturalOrder>,
    ) -> Result<Elements<'a, BitReversed>> {
        let inverse = self.twiddles(log_n, Direction::Inverse, Points::Domain)?;
        self.run(
            launcher,
            stream,
            inverse,
            log_n,
            Scale::One,
            rows as u64,
            values,
        )
    }

    /// Exchanges the orders, in place.
    ///
    /// # Errors
    /// [`Error::Length`] unless the array is of whole transforms.
    pub fn reverse<'a, O: Order>(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        log_n: u32,
        mut elements: Elements<'a, O>,
    ) -> Result<Elements<'a, O::Opposite>> {
        check_len(log_n, elements.len())?;
        ntt_vector::reverse(launcher, stream, log_n, elements.view_mut())?;
        Ok(Elements::assume(elements.into_view()))
    }

    /// Multiplies the element of exponent i by `first` times the i-th power of what `powers` are of: a
    /// transform on any coset is this and one on the domain.
    ///
    /// # Errors
    /// [`Error::Length`] unless the array is of whole transforms.
    pub fn multiply_by_powers<O: Order>(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        log_n: u32,
        powers: &Powers,
        first: Fr,
        elements: &mut Elements<'_, O>,
    ) -> Result<()> {
        check_len(log_n, elements.len())?;
        let squares = powers.squares.view();
        let data = elements.view_mut();
        ntt_vector::powers(
            launcher,
            stream,
            log_n,
            squares,
            first,
            O::IS_REVERSED,
            data,
        )?;
        Ok(())
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "those of the public calls, with tables"
    )]
    fn run<'a, O: Order>(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        twiddles: &Twiddles,
        log_n: u32,
        scale: Scale,
        rows: u64,
        mut elements: Elements<'a, O>,
    ) -> Result<Elements<'a, O::Opposite>> {
        check_len(log_n, elements.len())?;
        let rows = rows.min(1 << log_n);
        let from_reversed = O::IS_REVERSED;
        if log_n < 3 {
            let data = elements.view_mut();
            ntt::small(
                launcher,
                stream,
                twiddles,
                log_n,
                scale,
                from_reversed,
                rows,
                data,
            )?;
            return Ok(Elements::assume(elements.into_view()));
        }
        let mut log_block = 0;
        let mut passes: Vec<Pass> = stages(log_n)
            .into_iter()
            .map(|log_rows| {
                log_block += log_rows;
                Pass {
                    log_n,
                    log_block,
                    log_rows,
                    scale,
                    last: false,
                }
            })
            .collect();
        if !from_reversed {
            passes.reverse();
        }
        let count = passes.len();
        for (number, mut pass) in passes.into_iter().enumerate() {
            pass.last = number + 1 == count;
            // The first pass leaves nothing undefined.
            let length = if number == 0 { rows } else { 1 << log_n };
            let data = elements.view_mut();
            let kernel = if from_reversed { ntt::dit } else { ntt::dif };
            kernel(launcher, stream, twiddles, pass, None, length, data)?;
        }
        Ok(Elements::assume(elements.into_view()))
    }
}

/// An array of `found` elements holds transforms of 2^`log_n`.
pub(super) fn check_len(log_n: u32, found: usize) -> Result<()> {
    let unit = 1_usize << log_n.min(usize::BITS - 2);
    if found.is_multiple_of(unit) {
        return Ok(());
    }
    Err(Error::Length {
        what: "the array",
        expected: found.next_multiple_of(unit),
        found,
    })
}

/// The powers of an element, for a device: see [`DevicePlan::multiply_by_powers`].
#[derive(Debug)]
pub struct Powers {
    squares: DeviceBuf<Fr>,
}

impl Powers {
    /// The powers of `base`.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(stream: &Stream, base: Fr) -> Result<Self> {
        let squares: Vec<Fr> = std::iter::successors(Some(base), |x| Some(x.square()))
            .take(33)
            .collect();
        let mut buffer = stream.device().alloc("squares", squares.len(), stream)?;
        stream.upload_slice(&squares, &mut buffer)?;
        Ok(Self { squares: buffer })
    }
}
