//! Known answers, on the device that will compute.

use cuzk_field::{Affine, CurveField, Field, Fp, Fp2, Fr, Xyzz};
use cuzk_gpu_mem::{DeviceBuf, DeviceView, DeviceViewMut, Pod, Stream};

use crate::block_check::{self, THREADS};
use crate::device_type::DeviceType;
use crate::error::{Error, Result};
use crate::launcher::Launcher;
use crate::{curve_ops, field_ops};

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
    scalar_field(&mut bench)?;
    base_field(&mut bench)?;
    curve::<Fp>(&mut bench, &G1)?;
    curve::<Fp2>(&mut bench, &G2)?;
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
        let wrong = found
            .iter()
            .zip(expected)
            .position(|(found, expected)| found != expected);
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
        .map(|block| block.iter().fold(0_u32, |sum, v| sum.wrapping_add(*v)))
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

/// 0, 1, -1, 2, -2 and then values that all bits of the ones before have a part in.
fn values<F: Field>(count: usize) -> Vec<F> {
    let two = F::ONE.double();
    let mut values = vec![F::ZERO, F::ONE, -F::ONE, two, -two];
    let mut last = two + F::ONE;
    while values.len() < count {
        last = last.square() + two;
        values.push(last);
    }
    values
}

/// Each value with each: the host's arithmetic is `ark-ff`'s for Fr and `blst`'s for Fp.
fn all_pairs<A: Copy, B: Copy>(a: &[A], b: &[B]) -> (Vec<A>, Vec<B>) {
    a.iter().flat_map(|a| b.iter().map(|b| (*a, *b))).unzip()
}

fn map2<A: Copy, B: Copy, T>(a: &[A], b: &[B], f: impl Fn(A, B) -> T) -> Vec<T> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

fn scalar_field(bench: &mut Bench<'_>) -> Result<()> {
    let some = values::<Fr>(16);
    let (a, b) = all_pairs(&some, &some);
    let (x, y) = (bench.upload(&a)?, bench.upload(&b)?);
    bench.expect("Fr addition", &map2(&a, &b, |a, b| a + b), |l, s, out| {
        field_ops::fr_add(l, s, x.view(), y.view(), out)
    })?;
    bench.expect(
        "Fr subtraction",
        &map2(&a, &b, |a, b| a - b),
        |l, s, out| field_ops::fr_sub(l, s, x.view(), y.view(), out),
    )?;
    bench.expect(
        "Fr multiplication",
        &map2(&a, &b, |a, b| a * b),
        |l, s, out| field_ops::fr_mul(l, s, x.view(), y.view(), out),
    )?;
    let inverses: Vec<Fr> = some
        .iter()
        .map(|v| v.inverse().unwrap_or_default())
        .collect();
    let input = bench.upload(&some)?;
    bench.expect("Fr inversion", &inverses, |l, s, out| {
        field_ops::fr_inv(l, s, input.view(), out)
    })
}

fn base_field(bench: &mut Bench<'_>) -> Result<()> {
    let some = values::<Fp>(16);
    let (a, b) = all_pairs(&some, &some);
    let (x, y) = (bench.upload(&a)?, bench.upload(&b)?);
    bench.expect(
        "Fp subtraction",
        &map2(&a, &b, |a, b| a - b),
        |l, s, out| field_ops::fp_sub(l, s, x.view(), y.view(), out),
    )?;
    bench.expect(
        "Fp multiplication",
        &map2(&a, &b, |a, b| a * b),
        |l, s, out| field_ops::fp_mul(l, s, x.view(), y.view(), out),
    )?;
    let input = bench.upload(&some)?;
    let squares: Vec<Fp> = some.iter().map(Fp::square).collect();
    bench.expect("Fp squaring", &squares, |l, s, out| {
        field_ops::fp_sqr(l, s, input.view(), out)
    })?;
    let inverses: Vec<Fp> = some
        .iter()
        .map(|v| v.inverse().unwrap_or_default())
        .collect();
    bench.expect("Fp inversion", &inverses, |l, s, out| {
        field_ops::fp_inv(l, s, input.view(), out)
    })?;
    let wide: Vec<Fp2> = map2(&a, &b, Fp2::new).into_iter().step_by(17).collect();
    let (a, b) = all_pairs(&wide, &wide);
    let (x, y) = (bench.upload(&a)?, bench.upload(&b)?);
    bench.expect(
        "Fp2 multiplication",
        &map2(&a, &b, |a, b| a * b),
        |l, s, out| field_ops::fp2_mul(l, s, x.view(), y.view(), out),
    )
}

/// A kernel of two inputs.
type Binary<A, B, T> = fn(
    &dyn Launcher,
    &Stream,
    DeviceView<'_, A>,
    DeviceView<'_, B>,
    DeviceViewMut<'_, T>,
) -> Result<()>;

/// A kernel of one input.
type Unary<A, T> =
    fn(&dyn Launcher, &Stream, DeviceView<'_, A>, DeviceViewMut<'_, T>) -> Result<()>;

/// What is tested of a curve.
struct CurveKernels<F: CurveField>
where
    Affine<F>: DeviceType + Pod,
    Xyzz<F>: DeviceType + Pod,
{
    names: [&'static str; 2],
    add_affine: Binary<Xyzz<F>, Affine<F>, Xyzz<F>>,
    add_xyzz: Binary<Xyzz<F>, Xyzz<F>, Xyzz<F>>,
    to_affine: Unary<Xyzz<F>, Affine<F>>,
}

const G1: CurveKernels<Fp> = CurveKernels {
    names: ["G1 mixed addition", "G1 addition"],
    add_affine: curve_ops::g1_add_affine,
    add_xyzz: curve_ops::g1_add_xyzz,
    to_affine: curve_ops::g1_to_affine,
};

const G2: CurveKernels<Fp2> = CurveKernels {
    names: ["G2 mixed addition", "G2 addition"],
    add_affine: curve_ops::g2_add_affine,
    add_xyzz: curve_ops::g2_add_xyzz,
    to_affine: curve_ops::g2_to_affine,
};

/// Infinity, G, -G, 2G, -2G, .. each with each: equal, opposite, infinite and ordinary pairs. Sums are
/// compared as affine points, made on the device.
fn curve<F: CurveField>(bench: &mut Bench<'_>, kernels: &CurveKernels<F>) -> Result<()>
where
    Affine<F>: DeviceType + Pod,
    Xyzz<F>: DeviceType + Pod,
{
    let mut points = vec![Affine::<F>::INFINITY];
    let mut sums = vec![Xyzz::<F>::INFINITY];
    let mut multiple = Xyzz::INFINITY;
    for _ in 0..4 {
        multiple.add_affine(&Affine::generator());
        let point = multiple.to_affine();
        points.extend([point, -point]);
        sums.extend([multiple, Xyzz::from(-point)]);
    }
    let expected = |a: &[Xyzz<F>], b: &[Affine<F>]| {
        map2(a, b, |mut a, b| {
            a.add_affine(&b);
            a.to_affine()
        })
    };

    let (a, b) = all_pairs(&sums, &points);
    let (x, y) = (bench.upload(&a)?, bench.upload(&b)?);
    bench.expect(kernels.names[0], &expected(&a, &b), |l, s, out| {
        let mut sum = l.device().alloc("self-test", a.len(), s)?;
        (kernels.add_affine)(l, s, x.view(), y.view(), sum.view_mut())?;
        (kernels.to_affine)(l, s, sum.view(), out)
    })?;

    let (a, b) = all_pairs(&sums, &sums);
    let (x, y) = (bench.upload(&a)?, bench.upload(&b)?);
    let b: Vec<Affine<F>> = b.iter().map(Xyzz::to_affine).collect();
    bench.expect(kernels.names[1], &expected(&a, &b), |l, s, out| {
        let mut sum = l.device().alloc("self-test", a.len(), s)?;
        (kernels.add_xyzz)(l, s, x.view(), y.view(), sum.view_mut())?;
        (kernels.to_affine)(l, s, sum.view(), out)
    })
}
