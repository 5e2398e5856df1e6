//! Arrays on the device, with their order.

use std::marker::PhantomData;

use cuzk_field::Fr;
use cuzk_gpu_mem::{DeviceView, DeviceViewMut};

use crate::order::{BitReversed, NaturalOrder, Order};

/// An array on the device that holds transforms side by side, each in the order `O`; elements are
/// canonical.
#[derive(Debug)]
pub struct Elements<'a, O: Order> {
    view: DeviceViewMut<'a, Fr>,
    order: PhantomData<O>,
}

impl<'a> Elements<'a, NaturalOrder> {
    /// An array whose elements are in natural order.
    pub fn natural(view: DeviceViewMut<'a, Fr>) -> Self {
        Self::assume(view)
    }
}

impl<'a> Elements<'a, BitReversed> {
    /// An array whose elements are in bit-reversed order.
    pub fn bit_reversed(view: DeviceViewMut<'a, Fr>) -> Self {
        Self::assume(view)
    }
}

impl<'a, O: Order> Elements<'a, O> {
    pub(super) fn assume(view: DeviceViewMut<'a, Fr>) -> Self {
        Self {
            view,
            order: PhantomData,
        }
    }

    /// Elements of the array.
    pub fn len(&self) -> usize {
        self.view.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.view.is_empty()
    }

    /// The same for a shorter time.
    pub fn reborrow(&mut self) -> Elements<'_, O> {
        Elements::assume(self.view.reborrow())
    }

    /// The array.
    pub fn into_view(self) -> DeviceViewMut<'a, Fr> {
        self.view
    }

    pub(super) fn as_view(&self) -> DeviceView<'_, Fr> {
        self.view.as_view()
    }

    pub(super) fn view_mut(&mut self) -> DeviceViewMut<'_, Fr> {
        self.view.reborrow()
    }
}
