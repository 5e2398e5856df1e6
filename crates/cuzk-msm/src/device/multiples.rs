//! Multiples of resident bases, so that several windows share buckets: memory for time.
//!
//! With B, 2^k B, 2^(2k) B, ... at hand, windows k bits apart have the same weight once each takes its own multiple. So
//! there are fewer sets of buckets to add up and reduce, and they may be wider, which makes digits fewer.

use std::marker::PhantomData;

use cuzk_field::Affine;
use cuzk_gpu_mem::{DeviceInfo, DeviceViewMut, Stream};
use cuzk_kernels::windows::Windows;
use cuzk_kernels::{DeviceCurve, Launcher, multiples};

use super::error::{Error, Result};
use super::plan::MAX_BASES;
use super::run::check;
use super::tuning::{Cost, tuning};

/// Multiples of the bases are worth their memory from this share of a sum's cost on.
const LEAST_GAIN: f64 = 0.05;

/// Which multiples of some bases are kept: data, made from sizes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Multiples<F> {
    bases: usize,
    windows: Windows,
    plain: Windows,
    group: PhantomData<fn(F)>,
}

/// What a sum costs by itself and with multiples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// Digits of all scalars: what is sorted, and nearly as many points added.
    pub digits: [usize; 2],
    /// Buckets: additions to reduce them are twice as many.
    pub buckets: [usize; 2],
    /// The share of the time that is saved, as far as a model of one H200 knows.
    pub saved: f64,
}

impl<F: DeviceCurve> Multiples<F> {
    /// Those that save most for sums of so many bases, in at most `idle_bytes` beside the bases; none where they save
    /// little.
    pub fn choose(device: &DeviceInfo, bases: usize, idle_bytes: u64) -> Option<Self> {
        let plain = tuning(device, bases).windows;
        let most = Windows::MAX_COUNT;
        let cuts =
            (1..=most).flat_map(|multiples| (1..=most / multiples).map(move |s| (s, multiples)));
        let all = cuts.filter(|(_, multiples)| *multiples > 1);
        let all =
            all.filter_map(|(sets, multiples)| Self::new(device, bases, sets, multiples).ok());
        let fitting = all.filter(|choice| choice.extra_bytes() <= idle_bytes);
        let cost = |choice: &Self| Cost::of(bases, &choice.windows);
        let best = fitting.min_by(|a, b| cost(a).total().total_cmp(&cost(b).total()))?;
        let saved = Cost::of(bases, &plain).saved(&cost(&best));
        (saved >= LEAST_GAIN).then_some(best)
    }

    /// Those for `sets` sets of buckets, each for `multiples` windows: 2^(j k) B for j below `multiples`, k
    /// [`Self::step_bits`].
    ///
    /// # Errors
    /// [`Error::TooLarge`] where windows would not have 4 to 24 bits, or with 2^30 points or more.
    pub fn new(device: &DeviceInfo, bases: usize, sets: u32, multiples: u32) -> Result<Self> {
        let windows = Windows::with_multiples(sets, multiples).ok_or(Error::TooLarge {
            what: "bits of a window",
            most: Windows::MAX_WIDTH as usize,
            found: 255_usize.div_ceil((sets * multiples).max(1) as usize),
        })?;
        let points = bases.saturating_mul(multiples as usize);
        if points > MAX_BASES {
            return Err(Error::TooLarge {
                what: "bases and their multiples",
                most: MAX_BASES,
                found: points,
            });
        }
        Ok(Self {
            bases,
            windows,
            plain: tuning(device, bases).windows,
            group: PhantomData,
        })
    }

    /// Bases.
    pub fn bases(&self) -> usize {
        self.bases
    }

    /// How many multiples of each there are, itself included.
    pub fn count(&self) -> u32 {
        self.windows.multiples()
    }

    /// Each multiple is 2 to this times the one before.
    pub fn step_bits(&self) -> u32 {
        self.windows.group_bits()
    }

    pub(super) fn windows(&self) -> Windows {
        self.windows
    }

    /// Points of the table: the bases, then the next multiple of all of them, and so on.
    pub fn table_len(&self) -> usize {
        self.bases * self.count() as usize
    }

    /// Bytes of the table beside the bases themselves.
    pub fn extra_bytes(&self) -> u64 {
        ((self.table_len() - self.bases) * size_of::<Affine<F>>()) as u64
    }

    /// What they gain: by themselves and with multiples.
    pub fn gain(&self) -> Gain {
        let costs = [&self.plain, &self.windows].map(|windows| Cost::of(self.bases, windows));
        Gain {
            digits: costs.map(|cost| cost.digits),
            buckets: costs.map(|cost| cost.buckets),
            saved: costs[0].saved(&costs[1]),
        }
    }

    /// Makes the table, whose first points are the bases: canonical points of the group of order r, infinity among them.
    /// H200: 2^24 bases of G1 take 0.9 s for three multiples, 1.2 s for six.
    pub fn make(
        &self,
        launcher: &dyn Launcher,
        stream: &Stream,
        table: DeviceViewMut<'_, Affine<F>>,
    ) -> Result<()> {
        check("table", self.table_len(), table.len())?;
        let mut table = table.lend(&[stream])?;
        let mut rest = table.view_mut();
        for _ in 1..self.count() {
            let (points, others) = rest.split_at(self.bases);
            let points = points.into_view();
            let mut others = others;
            let out = others.reborrow().slice(..self.bases);
            multiples::multiply(launcher, stream, points, self.step_bits(), out)?;
            rest = others;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cuzk_field::{Fp, Fp2};
    use cuzk_gpu_mem::driver::SimDriver;
    use cuzk_gpu_mem::{Device, GIB, Settings};

    use super::*;

    #[test]
    fn idle_memory_decides() {
        let device = Device::with_driver(Arc::new(SimDriver::new(GIB)), Settings::default());
        let device = device.unwrap();
        let info = device.info();
        for log_n in [20, 22, 24] {
            let bases = 1_usize << log_n;
            assert!(Multiples::<Fp>::choose(info, bases, 0).is_none());
            let mut saved = 0.0_f64;
            for gib in [1, 4, 16, 64] {
                let Some(choice) = Multiples::<Fp>::choose(info, bases, gib << 30) else {
                    continue;
                };
                assert!(choice.extra_bytes() <= gib << 30);
                let gain = choice.gain();
                assert!(
                    gain.saved >= saved.max(LEAST_GAIN),
                    "2^{log_n}, {gib} GiB: {gain:?}"
                );
                saved = gain.saved;
            }
            assert!(saved > 0.03, "2^{log_n}: {saved}");
        }
        // As measured, nothing is gained by then.
        assert!(Multiples::<Fp>::choose(info, 1 << 27, 80 << 30).is_none());
        let choice = Multiples::<Fp2>::choose(info, 1 << 20, 4 << 30).unwrap();
        assert_eq!(
            choice.extra_bytes(),
            (u64::from(choice.count()) - 1) * (192 << 20)
        );
        assert!(Multiples::<Fp>::new(info, 1 << 28, 3, 4).is_err());
        assert!(Multiples::<Fp>::new(info, 5, 1, 2).is_err());
    }
}
