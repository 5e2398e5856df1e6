//! Orders as types: what a transform takes and gives.

/// Element i at index i.
#[derive(Clone, Copy, Debug)]
pub enum NaturalOrder {}

/// Element i at the index whose bits, log2 n of them, are those of i from the other end.
#[derive(Clone, Copy, Debug)]
pub enum BitReversed {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::NaturalOrder {}
    impl Sealed for super::BitReversed {}
}

/// [`NaturalOrder`] or [`BitReversed`].
pub trait Order: sealed::Sealed {
    /// The other one: the order of what a transform gives.
    type Opposite: Order<Opposite = Self>;

    /// Whether it is [`BitReversed`].
    const IS_REVERSED: bool;
}

impl Order for NaturalOrder {
    type Opposite = BitReversed;
    const IS_REVERSED: bool = false;
}

impl Order for BitReversed {
    type Opposite = NaturalOrder;
    const IS_REVERSED: bool = true;
}
