//! Arrays in host memory, with their order.

use std::fmt;
use std::marker::PhantomData;

use cuzk_field::Fr;

use crate::order::{BitReversed, NaturalOrder, Order};

/// An array in host memory that holds transforms side by side, each in the order `O`.
pub struct HostElements<'a, O: Order> {
    pub(super) values: &'a mut [Fr],
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
    pub(super) fn assume(values: &'a mut [Fr]) -> Self {
        Self {
            values,
            order: PhantomData,
        }
    }

    /// Elements of the array.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The same for a shorter time.
    pub fn reborrow(&mut self) -> HostElements<'_, O> {
        HostElements::assume(self.values)
    }

    /// The array.
    pub fn into_slice(self) -> &'a mut [Fr] {
        self.values
    }
}

/// The values may be a witness's: their number alone.
impl<O: Order> fmt::Debug for HostElements<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostElements")
            .field("is_reversed", &O::IS_REVERSED)
            .field("len", &self.len())
            .finish()
    }
}
