//! `kernels/include/cuzk/windows.cuh`: signed digits of scalars, windows of one or two widths.

use crate::device_type::DeviceType;

/// Bits of all windows together: a scalar as the integer of least magnitude is below 2^254 either way.
const BITS: u32 = 255;

/// A way to cut scalars into signed digits: the first [`wide`](Self::wide) windows have
/// [`width`](Self::width) bits, the others one less, 255 in all.
///
/// Digit i of a window of w bits lies in [-2^(w-1), 2^(w-1) - 1], and a scalar is
/// `sum_i digit_i 2^first_bit(i)` modulo r. Bucket k of a window stands for the magnitude k + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Windows {
    bias: [u32; 8],
    width: u32,
    wide: u32,
}

// SAFETY: ten words, as `cuzk::Windows`.
unsafe impl DeviceType for Windows {
    fn c_type() -> String {
        "cuzk::Windows".to_owned()
    }
}
const _: () = assert!(size_of::<Windows>() == 40 && align_of::<Windows>() == 4);

impl Windows {
    /// The fewest windows: of at most 22 bits.
    pub const MIN_COUNT: u32 = 12;
    /// The most windows: narrower ones than 4 bits would not hold every scalar.
    pub const MAX_COUNT: u32 = 51;

    /// `count` windows, brought to [`Self::MIN_COUNT`] or [`Self::MAX_COUNT`] where it is beyond them.
    pub fn new(count: u32) -> Self {
        let count = count.clamp(Self::MIN_COUNT, Self::MAX_COUNT);
        let width = BITS.div_ceil(count);
        let wide = BITS - count * (width - 1);
        let mut windows = Self {
            bias: [0; 8],
            width,
            wide,
        };
        for window in 0..count {
            let bit = windows.first_bit(window) + windows.width_of(window) - 1;
            windows.bias[(bit / 32) as usize] |= 1 << (bit % 32);
        }
        windows
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.wide + (BITS - self.wide * self.width) / (self.width - 1)
    }

    /// Bits of a wide window.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// How many are wide: at least one.
    pub fn wide(&self) -> u32 {
        self.wide
    }

    /// Bits of window `window`.
    pub fn width_of(&self, window: u32) -> u32 {
        self.width - u32::from(window >= self.wide)
    }

    /// The weight of window `window` is 2 to this.
    pub fn first_bit(&self, window: u32) -> u32 {
        window * self.width - window.saturating_sub(self.wide)
    }

    /// Buckets of window `window`.
    pub fn buckets_of(&self, window: u32) -> usize {
        1 << (self.width_of(window) - 1)
    }

    /// The number of the first bucket of window `window`, counted over all windows; of the window
    /// behind the last, the number of all buckets.
    pub fn first_bucket(&self, window: u32) -> usize {
        let wide = window.min(self.wide) as usize;
        (wide << (self.width - 1)) + ((window as usize - wide) << (self.width - 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_255_bits_together() {
        for count in Windows::MIN_COUNT..=Windows::MAX_COUNT {
            let windows = Windows::new(count);
            assert_eq!(windows.count(), count);
            assert!(windows.wide() >= 1);
            let bits: u32 = (0..count).map(|w| windows.width_of(w)).sum();
            assert_eq!(bits, BITS);
            assert_eq!(windows.first_bit(count), BITS);
            let buckets: usize = (0..count).map(|w| windows.buckets_of(w)).sum();
            assert_eq!(windows.first_bucket(count), buckets);
        }
        assert_eq!(Windows::new(12).width(), 22);
        assert_eq!(Windows::new(16).width(), 16);
        assert_eq!(Windows::new(1), Windows::new(12));
        assert_eq!(Windows::new(200), Windows::new(51));
    }
}
