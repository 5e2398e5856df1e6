//! What stands around transforms: the other order, and any coset.

use cuzk_field::{Field as _, Fr};
use cuzk_gpu_mem::{SharedBuf, Stream};
use cuzk_kernels::{Launcher, ntt_vector};

use super::error::{Result, check_len};
use super::order::Elements;
use super::plan::DevicePlan;
use crate::order::Order;

impl DevicePlan {
    /// Exchanges the orders, in place.
    ///
    /// # Errors
    /// [`super::Error::Length`] unless the array is of whole transforms.
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
    /// [`super::Error::Length`] unless the array is of whole transforms.
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
        let squares = powers.squares.view(stream)?;
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
}

/// The powers of an element, for a device: see [`DevicePlan::multiply_by_powers`].
#[derive(Debug)]
pub struct Powers {
    squares: SharedBuf<Fr>,
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
        Ok(Self {
            squares: SharedBuf::new(buffer),
        })
    }
}
