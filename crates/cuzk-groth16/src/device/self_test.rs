//! Known answers of all that a proof on a device needs: arithmetic, then transforms and sums.

use cuzk_field::{Affine, Field as _, Fp, Fp2, Fr, RootGenerator, Scalar, Xyzz};
use cuzk_gpu_mem::{Pod, Stream};
use cuzk_kernels::{DeviceCurve, Launcher, SelfTest};
use cuzk_msm::FixedBase;
use cuzk_msm::device::{MsmPlan, Scalars};
use cuzk_ntt::device::{DevicePlan, Elements, PlanRequest, Scale};
use cuzk_ntt::{Direction, Domain, bit_reverse_permute};

use super::error::Result;

/// A transform of two passes.
const LOG_N: u32 = 11;
/// Bases of a sum.
const BASES: usize = 96;

/// Runs what has known answers: the kernels' own [`self_test`](cuzk_kernels::self_test), a transform of each
/// root family against the CPU's, and a sum in each group whose bases are known multiples of the generator.
///
/// # Errors
/// [`cuzk_kernels::Error::SelfTest`] names what came out wrong.
pub fn self_test(launcher: &dyn Launcher) -> Result<SelfTest> {
    let mut done = cuzk_kernels::self_test(launcher)?;
    let stream = launcher.device().stream("self-test")?;
    for family in [RootGenerator::Five, RootGenerator::Seven] {
        done.passed.push(transform(launcher, &stream, family)?);
    }
    done.passed.push(sum::<Fp>(launcher, &stream, "G1 sum")?);
    done.passed.push(sum::<Fp2>(launcher, &stream, "G2 sum")?);
    Ok(done)
}

fn compare<T: PartialEq>(
    launcher: &dyn Launcher,
    test: &'static str,
    expected: &[T],
    found: &[T],
) -> Result<(&'static str, usize)> {
    match expected.iter().zip(found).position(|(a, b)| a != b) {
        Some(index) => {
            let device = launcher.device().info().name.clone();
            Err(cuzk_kernels::Error::SelfTest {
                test,
                device,
                index,
            }
            .into())
        }
        None => Ok((test, expected.len())),
    }
}

/// Different values, -1, 0 and 1 among them.
fn values(count: usize) -> Vec<Fr> {
    let square = |x: &Fr| Some(x.square() + Fr::from(3));
    let mut values = vec![-Fr::ONE, Fr::ZERO, Fr::ONE];
    values.extend(std::iter::successors(Some(Fr::from(2)), square).take(count - values.len()));
    values
}

fn uploaded<T: Pod>(
    launcher: &dyn Launcher,
    stream: &Stream,
    values: &[T],
) -> Result<cuzk_gpu_mem::DeviceBuf<T>> {
    let mut buffer = launcher.device().alloc("self-test", values.len(), stream)?;
    stream.upload_slice(values, &mut buffer)?;
    Ok(buffer)
}

fn transform(
    launcher: &dyn Launcher,
    stream: &Stream,
    family: RootGenerator,
) -> Result<(&'static str, usize)> {
    let mut expected = values(1 << LOG_N);
    let mut array = uploaded(launcher, stream, &expected)?;
    let plan = DevicePlan::new(launcher, stream, &PlanRequest::domain(family, LOG_N))?;
    let elements = Elements::natural(array.view_mut());
    let direction = Direction::Forward;
    plan.transform(launcher, stream, LOG_N, direction, Scale::One, elements)?;
    let mut found = vec![Fr::ZERO; expected.len()];
    stream.download_slice(&array, &mut found)?;
    bit_reverse_permute(&mut found);

    let domain = Domain::new(expected.len(), family).map_err(crate::Error::from)?;
    domain.natural_to_bit_reversed(&mut expected, direction);
    bit_reverse_permute(&mut expected);
    let test = match family {
        RootGenerator::Five => "transform, family of 5",
        RootGenerator::Seven => "transform, family of 7",
    };
    compare(launcher, test, &expected, &found)
}

fn sum<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    test: &'static str,
) -> Result<(&'static str, usize)> {
    let device = launcher.device();
    let exponents = values(BASES);
    let factors: Vec<Fr> = exponents.iter().map(|x| x.square() - Fr::from(7)).collect();
    let products = exponents.iter().zip(&factors).map(|(x, y)| *x * *y);
    let total = products.fold(Fr::ZERO, |sum, x| sum + x);
    let canonical = |values: Vec<Fr>| values.into_iter().map(Scalar::from).collect::<Vec<_>>();
    let generator = FixedBase::new(&Affine::<F>::generator());
    let bases = generator.multiply_all(&canonical(exponents));
    let bases = uploaded(launcher, stream, &bases)?;
    let scalars = uploaded(launcher, stream, &canonical(factors))?;

    let plan = MsmPlan::<F>::resident(device.info(), BASES, 1, u64::MAX)?;
    let scratch_bytes = usize::try_from(plan.footprint().device).unwrap_or(usize::MAX);
    let mut scratch = device.alloc::<u8>("self-test", scratch_bytes, stream)?;
    let result = device
        .host()
        .pinned::<Xyzz<F>>("self-test", plan.result_len())?;
    let pending = plan.run(
        launcher,
        stream,
        bases.view(),
        &[Scalars::Canonical(scalars.view())],
        scratch.view_mut(),
        result,
    )?;
    let found = pending.wait()?;
    let expected = generator.multiply_all(&[Scalar::from(total)]);
    compare(launcher, test, &expected, &found)
}
