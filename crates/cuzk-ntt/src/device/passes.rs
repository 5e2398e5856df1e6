//! How the stages of a transform are put into passes, and passes into chains.

use cuzk_field::Fr;
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};
use cuzk_kernels::ntt::{self, LOG_TILE, Pass, Scale, Twiddles};
use cuzk_kernels::{Launcher, ntt_vector};

use super::error::Result;

/// What a chain begins with.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// The array; of each transform, values from here on are zero and not read.
    Rows(usize),
    /// The products of these canonical arrays, with as many rows.
    Products(usize, DeviceView<'a, Fr>, DeviceView<'a, Fr>),
}

/// Where the values of a chain go.
pub(super) enum Target<'a> {
    /// Where they are.
    InPlace,
    /// Into the canonical array `factors`, which is multiplied by them; then `minus` is taken from it.
    Product {
        factors: DeviceViewMut<'a, Fr>,
        minus: Option<DeviceView<'a, Fr>>,
        /// Whether what comes out is canonical, or below 2r.
        canonical: bool,
    },
}

/// Transforms of one size on one stream. All arrays are of as many whole transforms.
#[derive(Clone, Copy)]
pub(super) struct Chain<'a> {
    launcher: &'a dyn Launcher,
    stream: &'a Stream,
    log_n: u32,
}

impl<'a> Chain<'a> {
    pub(super) fn new(launcher: &'a dyn Launcher, stream: &'a Stream, log_n: u32) -> Self {
        Self {
            launcher,
            stream,
            log_n,
        }
    }

    /// Finest first.
    fn passes(self, scale: Scale) -> Vec<Pass> {
        let mut log_block = 0;
        let pass = |log_rows| {
            log_block += log_rows;
            Pass {
                log_n: self.log_n,
                log_block,
                log_rows,
                scale,
                last: false,
            }
        };
        stages(self.log_n).into_iter().map(pass).collect()
    }

    /// From natural to bit-reversed order, canonical.
    pub(super) fn down(
        self,
        twiddles: &Twiddles,
        scale: Scale,
        source: Source<'_>,
        mut data: DeviceViewMut<'_, Fr>,
    ) -> Result<()> {
        if self.log_n < 3 {
            return self.small(twiddles, scale, Some(source), &mut data);
        }
        let mut passes = self.passes(scale);
        if let Some(finest) = passes.first_mut() {
            finest.last = true;
        }
        self.down_passes(twiddles, &passes, source, &mut data)
    }

    /// From bit-reversed to natural order, canonical.
    pub(super) fn up(
        self,
        twiddles: &Twiddles,
        scale: Scale,
        mut data: DeviceViewMut<'_, Fr>,
    ) -> Result<()> {
        if self.log_n < 3 {
            return self.small(twiddles, scale, None, &mut data);
        }
        self.up_passes(twiddles, &self.passes(scale), data, Target::InPlace)
    }

    /// From natural order to natural order: down with the first tables, up with the second, which `scale` goes with.
    pub(super) fn extend(
        self,
        [down, up]: [&Twiddles; 2],
        scale: Scale,
        source: Source<'_>,
        mut data: DeviceViewMut<'_, Fr>,
        target: Target<'_>,
    ) -> Result<()> {
        let (launcher, stream) = (self.launcher, self.stream);
        if self.log_n < 3 {
            self.small(down, Scale::One, Some(source), &mut data)?;
            self.small(up, scale, None, &mut data)?;
            if let Target::Product { factors, minus, .. } = target {
                ntt_vector::product_in_place(launcher, stream, factors, data.as_view(), minus)?;
            }
            return Ok(());
        }
        let passes = self.passes(scale);
        match passes.as_slice() {
            [only] => {
                let unscaled = Pass {
                    scale: Scale::One,
                    ..*only
                };
                self.down_passes(down, &[unscaled], source, &mut data)?;
                self.up_passes(up, &passes, data, target)
            }
            [finest, coarser @ ..] => {
                self.down_passes(down, coarser, source, &mut data)?;
                ntt::middle(launcher, stream, down, up, *finest, data.reborrow())?;
                self.up_passes(up, coarser, data, target)
            }
            [] => Ok(()),
        }
    }

    fn down_passes(
        self,
        twiddles: &Twiddles,
        passes: &[Pass],
        source: Source<'_>,
        data: &mut DeviceViewMut<'_, Fr>,
    ) -> Result<()> {
        let (launcher, stream) = (self.launcher, self.stream);
        let all = 1_u64 << self.log_n;
        let mut first = Some(source);
        for &pass in passes.iter().rev() {
            // The first pass leaves nothing undefined.
            match first.take() {
                Some(Source::Products(rows, a, b)) => {
                    let rows = all.min(rows as u64);
                    ntt::dif_product(
                        launcher,
                        stream,
                        twiddles,
                        pass,
                        rows,
                        a,
                        b,
                        data.reborrow(),
                    )?;
                }
                Some(Source::Rows(rows)) => {
                    let rows = all.min(rows as u64);
                    ntt::dif(launcher, stream, twiddles, pass, rows, data.reborrow())?;
                }
                None => ntt::dif(launcher, stream, twiddles, pass, all, data.reborrow())?,
            }
        }
        Ok(())
    }

    fn up_passes(
        self,
        twiddles: &Twiddles,
        passes: &[Pass],
        mut data: DeviceViewMut<'_, Fr>,
        target: Target<'_>,
    ) -> Result<()> {
        let (launcher, stream) = (self.launcher, self.stream);
        let all = 1_u64 << self.log_n;
        let Some((&coarsest, finer)) = passes.split_last() else {
            return Ok(());
        };
        for &pass in finer {
            ntt::dit(launcher, stream, twiddles, pass, all, data.reborrow())?;
        }
        let last = |last| Pass { last, ..coarsest };
        match target {
            Target::InPlace => ntt::dit(launcher, stream, twiddles, last(true), all, data)?,
            Target::Product {
                factors,
                minus,
                canonical,
            } => {
                let from = data.as_view();
                let pass = last(canonical);
                ntt::dit_product(launcher, stream, twiddles, pass, from, minus, factors)?;
            }
        }
        Ok(())
    }

    /// Whole transforms of 1, 2 or 4 elements, from natural order if there is a source.
    fn small(
        self,
        twiddles: &Twiddles,
        scale: Scale,
        source: Option<Source<'_>>,
        data: &mut DeviceViewMut<'_, Fr>,
    ) -> Result<()> {
        let (launcher, stream, log_n) = (self.launcher, self.stream, self.log_n);
        let reversed = source.is_none();
        let rows = match source {
            None => usize::MAX,
            Some(Source::Rows(rows)) => rows,
            Some(Source::Products(rows, a, b)) => {
                let n = 1 << log_n;
                let rows = rows.min(n);
                for first in (0..data.len()).step_by(n).filter(|_| rows > 0) {
                    let part = first..first + rows;
                    let (a, b) = (a.slice(part.clone()), b.slice(part.clone()));
                    let out = data.reborrow().slice(part);
                    ntt_vector::product(launcher, stream, a, b, out)?;
                }
                rows
            }
        };
        let (rows, data) = (rows as u64, data.reborrow());
        Ok(ntt::small(
            launcher, stream, twiddles, log_n, scale, reversed, rows, data,
        )?)
    }
}

/// Stages of a fine or middle pass: three rounds of radix 8.
const FULL: u32 = 9;

/// The stages of each pass, finest first; their sum is `log_n`, which is at least 3.
///
/// The coarsest takes what is left; in the others, and in their sum, the stages are a multiple of 3. A pass whose rows
/// are not adjacent has at most 10 stages, so that two columns lie side by side: with one, 2^20 takes 13% longer in two
/// passes than in three.
fn stages(log_n: u32) -> Vec<u32> {
    let mut left = log_n;
    let mut stages = Vec::new();
    while left > LOG_TILE - u32::from(!stages.is_empty()) {
        stages.push(FULL);
        left -= FULL;
    }
    // Two stages left over would make a pass that moves all and computes nothing.
    if let Some(last) = stages.last_mut()
        && left < 3
    {
        *last -= 3;
        left += 3;
    }
    stages.push(left);
    stages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_passes_that_there_are() {
        for log_n in 3..=30 {
            let stages = stages(log_n);
            assert_eq!(stages.iter().sum::<u32>(), log_n);
            let (coarsest, finer) = stages.split_last().unwrap();
            assert!(finer.iter().all(|&stages| stages == 9 || stages == 6));
            assert!((3..=LOG_TILE).contains(coarsest));
            let mut stride = 0;
            for &rows in &stages {
                assert!(
                    stride == 0 || rows < LOG_TILE && stride >= LOG_TILE - rows,
                    "{log_n}"
                );
                stride += rows;
            }
        }
        assert_eq!(stages(27), [9, 9, 9]);
        assert_eq!(stages(24), [9, 9, 6]);
        assert_eq!(stages(20), [9, 6, 5]);
        assert_eq!(stages(11), [11]);
    }
}
