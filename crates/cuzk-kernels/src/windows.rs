//! `kernels/include/cuzk/windows.cuh`: signed digits of scalars, windows of one or two widths.

use crate::device_type::DeviceType;

/// Bits of all windows together: a scalar as the integer of least magnitude is below 2^254 either way.
const BITS: u32 = 255;

/// Bits of the narrowest window that holds the top of a scalar, or anything below.
const LEAST_WIDTH: u32 = 4;

/// A way to cut scalars into signed digits, 255 bits in all.
///
/// Windows are in [`multiples`](Self::multiples) groups of [`count`](Self::count) each. In a group, the first
/// [`wide`](Self::wide) windows have [`width`](Self::width) bits, the others one less; the very last window may be narrower.
/// Digit i of a window of w bits lies in [-2^(w-1), 2^(w-1) - 1], and a scalar is `sum_i digit_i 2^(first bit of i)`
/// modulo r.
///
/// Windows at the same place of their groups share *buckets*, those of a *set*: bucket k stands for the magnitude k + 1 of
/// digits, of a base in the first group, and of that base times 2^[`group_bits`](Self::group_bits) in the second, and so on.
/// With one group, a set is a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Windows {
    bias: [u32; 8],
    width: u32,
    wide: u32,
    sets: u32,
    group_bits: u32,
}

// SAFETY: twelve words, as `cuzk::Windows`.
unsafe impl DeviceType for Windows {
    fn c_type() -> String {
        "cuzk::Windows".to_owned()
    }
}
const _: () = assert!(size_of::<Windows>() == 48 && align_of::<Windows>() == 4);

impl Windows {
    /// The fewest windows of a group: of at most 24 bits.
    pub const MIN_COUNT: u32 = 11;
    /// The most windows: narrower ones than 4 bits would not hold every scalar.
    pub const MAX_COUNT: u32 = 51;
    /// The widest window.
    pub const MAX_WIDTH: u32 = 24;

    /// `count` windows in one group, brought to [`Self::MIN_COUNT`] or [`Self::MAX_COUNT`] where it is beyond them.
    pub fn new(count: u32) -> Self {
        let sets = count.clamp(Self::MIN_COUNT, Self::MAX_COUNT);
        Self::cut(sets, BITS).biased()
    }

    /// `multiples` groups of `sets` windows, where such exist: of 4 to [`Self::MAX_WIDTH`] bits, all groups of equal size
    /// but the last.
    pub fn with_multiples(sets: u32, multiples: u32) -> Option<Self> {
        if sets == 0 || multiples == 0 || sets.saturating_mul(multiples) > Self::MAX_COUNT {
            return None;
        }
        let group_bits = BITS.div_ceil(multiples);
        let narrow = group_bits / sets;
        let widest = group_bits.div_ceil(sets);
        if narrow < LEAST_WIDTH || widest > Self::MAX_WIDTH {
            return None;
        }
        let windows = Self::cut(sets, group_bits);
        let last = sets * multiples - 1;
        let holds = windows.first_bit(last) + LEAST_WIDTH <= BITS;
        (holds && windows.multiples() == multiples).then(|| windows.biased())
    }

    fn cut(sets: u32, group_bits: u32) -> Self {
        let width = group_bits.div_ceil(sets);
        Self {
            bias: [0; 8],
            width,
            wide: group_bits - sets * (width - 1),
            sets,
            group_bits,
        }
    }

    fn biased(mut self) -> Self {
        for window in 0..self.sets * self.multiples() {
            let bit = self.first_bit(window) + self.digit_width(window) - 1;
            self.bias[(bit / 32) as usize] |= 1 << (bit % 32);
        }
        self
    }

    /// How many windows a group has: sets of buckets.
    pub fn count(&self) -> u32 {
        self.sets
    }

    /// How many groups: of a base, its multiples by 1, 2^[`group_bits`](Self::group_bits), and so on.
    pub fn multiples(&self) -> u32 {
        BITS.div_ceil(self.group_bits)
    }

    /// Bits of a group.
    pub fn group_bits(&self) -> u32 {
        self.group_bits
    }

    /// Bits of a wide window.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// How many of a group are wide: at least one.
    pub fn wide(&self) -> u32 {
        self.wide
    }

    /// Bits of the windows of a set, but for the very last window.
    pub fn width_of(&self, set: u32) -> u32 {
        self.width - u32::from(set >= self.wide)
    }

    /// The weight of window `window`, counted over all groups, is 2 to this. In the first group, so is that of a set.
    pub fn first_bit(&self, window: u32) -> u32 {
        let set = window % self.sets;
        window / self.sets * self.group_bits + set * self.width - set.saturating_sub(self.wide)
    }

    /// Bits of window `window`, counted over all groups.
    pub fn digit_width(&self, window: u32) -> u32 {
        (self.width_of(window % self.sets)).min(BITS - self.first_bit(window))
    }

    /// Buckets of a set.
    pub fn buckets_of(&self, set: u32) -> usize {
        1 << (self.width_of(set) - 1)
    }

    /// The number of the first bucket of a set, counted over all sets; of the one behind the last, the number of all
    /// buckets.
    pub fn first_bucket(&self, set: u32) -> usize {
        let wide = set.min(self.wide) as usize;
        (wide << (self.width - 1)) + ((set as usize - wide) << (self.width - 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(windows: &Windows) {
        let all = windows.count() * windows.multiples();
        assert!(windows.wide() >= 1);
        let bits: u32 = (0..all).map(|w| windows.digit_width(w)).sum();
        assert_eq!(bits, BITS, "{windows:?}");
        for window in 1..all {
            let before = window - 1;
            let end = windows.first_bit(before) + windows.digit_width(before);
            assert_eq!(windows.first_bit(window), end, "{windows:?}");
            assert!(windows.digit_width(window) >= LEAST_WIDTH);
        }
        let buckets: usize = (0..windows.count()).map(|w| windows.buckets_of(w)).sum();
        assert_eq!(windows.first_bucket(windows.count()), buckets);
    }

    #[test]
    fn windows_have_255_bits_together() {
        for count in Windows::MIN_COUNT..=Windows::MAX_COUNT {
            let windows = Windows::new(count);
            assert_eq!((windows.count(), windows.multiples()), (count, 1));
            assert_eq!(windows.first_bit(count), BITS);
            check(&windows);
        }
        assert_eq!(Windows::new(12).width(), 22);
        assert_eq!(Windows::new(11).width(), 24);
        assert_eq!(Windows::new(16).width(), 16);
        assert_eq!(Windows::new(1), Windows::new(11));
        assert_eq!(Windows::new(200), Windows::new(51));
    }

    #[test]
    fn groups_have_them_too() {
        let mut some = 0;
        for sets in 0..20 {
            for multiples in 0..40 {
                if let Some(windows) = Windows::with_multiples(sets, multiples) {
                    assert_eq!((windows.count(), windows.multiples()), (sets, multiples));
                    check(&windows);
                    some += 1;
                }
            }
        }
        assert!(some > 50);
        let windows = Windows::with_multiples(1, 12).unwrap();
        assert_eq!((windows.width(), windows.digit_width(11)), (22, 13));
        assert_eq!(Windows::with_multiples(12, 1), Some(Windows::new(12)));
        for (sets, multiples) in [(0, 4), (4, 0), (1, 1), (40, 2), (3, 3)] {
            assert_eq!(Windows::with_multiples(sets, multiples), None);
        }
    }
}
