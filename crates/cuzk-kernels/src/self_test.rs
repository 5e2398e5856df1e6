//! Known answers, on the device that will compute.

use cuzk_gpu_mem::{DeviceBuf, DeviceViewMut, Pod, Stream};

use crate::block_check::{self, THREADS};
use crate::error::{Error, Result};
use crate::launcher::Launcher;

/// What a self-test did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfTest {
    /// The tests that passed, each with the number of results compared.
    pub passed: Vec<(&'static str, usize)>,
}

/// Runs small kernels whose results are known: blocks, warps and atomics; then field and curve.
/// Milliseconds on a card.
pub fn self_test(launcher: &dyn Launcher) -> Result<SelfTest> {
    let stream = launcher.device().stream("self-test")?;
    let mut bench = Bench {
        launcher,
        stream,
        passed: Vec::new(),
    };
    block(&mut bench)?;
    Ok(SelfTest {
        passed: bench.passed,
    })
}

struct Bench<'a> {
    launcher: &'a dyn Launcher,
    stream: Stream,
    passed: Vec<(&'static str, usize)>,
}

impl Bench<'_> {
    fn upload<T: Pod>(&self, values: &[T]) -> Result<DeviceBuf<T>> {
        let mut buffer = self
            .launcher
            .device()
            .alloc("self-test", values.len(), &self.stream)?;
        self.stream.upload_slice(values, &mut buffer)?;
        Ok(buffer)
    }

    /// Runs `kernel` into a zeroed buffer and compares.
    fn expect<T: Pod + PartialEq>(
        &mut self,
        test: &'static str,
        expected: &[T],
        kernel: impl FnOnce(&dyn Launcher, &Stream, DeviceViewMut<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let device = self.launcher.device();
        let mut out = device.alloc::<T>("self-test", expected.len(), &self.stream)?;
        self.stream.fill(&mut out, 0)?;
        kernel(self.launcher, &self.stream, out.view_mut())?;
        let mut found = vec![T::zeroed(); expected.len()];
        self.stream.download_slice(&out, &mut found)?;
        let wrong = found.iter().zip(expected).position(|(found, expected)| found != expected);
        if let Some(index) = wrong {
            return Err(Error::SelfTest {
                test,
                device: device.info().name.clone(),
                index,
            });
        }
        self.passed.push((test, expected.len()));
        Ok(())
    }
}

fn block(bench: &mut Bench<'_>) -> Result<()> {
    const BLOCKS: usize = 5;
    // A linear congruence: no two neighbours alike, all bits moving.
    let values: Vec<u32> = (0..(BLOCKS * THREADS) as u32)
        .map(|i| i.wrapping_mul(0x9e37_79b1).rotate_left(7))
        .collect();
    let wide: Vec<u64> = values.iter().map(|&v| u64::from(v) << 20 | 1).collect();
    let input = bench.upload(&values)?;
    let wide_input = bench.upload(&wide)?;

    let sums: Vec<u32> = values
        .chunks(THREADS)
        .map(|block| block.iter().fold(0, |sum, v| sum.wrapping_add(*v)))
        .collect();
    bench.expect("block sum", &sums, |launcher, stream, out| {
        block_check::sum(launcher, stream, input.view(), out)
    })?;

    let prefix: Vec<u64> = wide
        .chunks(THREADS)
        .flat_map(|block| {
            block.iter().scan(0_u64, |sum, v| {
                *sum = sum.wrapping_add(*v);
                Some(*sum)
            })
        })
        .collect();
    bench.expect("block scan", &prefix, |launcher, stream, out| {
        block_check::scan(launcher, stream, wide_input.view(), out)
    })?;

    let votes: Vec<u32> = values
        .chunks(THREADS)
        .flat_map(|block| {
            let odd_in_block = block.iter().filter(|v| *v % 2 == 1).count() as u32;
            block.chunks(32).flat_map(move |warp| {
                let odd = (0..32).fold(0, |bits, lane| bits | (warp[lane] & 1) << lane);
                let folded = warp.iter().fold(0, |all, v| all ^ v);
                [odd, odd_in_block, folded, warp[5]]
            })
        })
        .collect();
    bench.expect("warp votes", &votes, |launcher, stream, out| {
        block_check::votes(launcher, stream, input.view(), out)
    })?;

    let mut counts = [0_u32; 16];
    values.iter().for_each(|v| counts[*v as usize % 16] += 1);
    bench.expect("block histogram", &counts, |launcher, stream, out| {
        block_check::histogram(launcher, stream, input.view(), out)
    })
}
