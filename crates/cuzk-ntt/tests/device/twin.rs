//! The plan on the CPU against the one on a device: call by call, on the same values.

use ark_poly::EvaluationDomain as _;
use cuzk_field::{Field as _, Fr, Scalar};
use cuzk_ntt::device::{Elements, Powers, QuotientArrays};
use cuzk_ntt::{
    BitReversed, Direction, HostElements, HostPlan, NaturalOrder, Order, QuotientForm, Scale,
    bit_reverse_permute,
};

use crate::rig::{DIRECTIONS, FAMILIES, Random, Rig};
use crate::transforms::ark;

cuzk_testkit::on_both!(
    transforms_agree,
    extensions_agree,
    what_stands_around_agrees,
    quotients_agree
);

const SCALES: [Scale; 3] = [Scale::One, Scale::OverN, Scale::OverNR];
const LOG_SIZES: [u32; 6] = [0, 1, 2, 3, 5, 8];

/// Elements in an order, on either side.
trait InOrder: Order + Sized {
    fn host(values: &mut [Fr]) -> HostElements<'_, Self>;
    fn device(view: cuzk_gpu_mem::DeviceViewMut<'_, Fr>) -> Elements<'_, Self>;
}

impl InOrder for NaturalOrder {
    fn host(values: &mut [Fr]) -> HostElements<'_, Self> {
        HostElements::natural(values)
    }

    fn device(view: cuzk_gpu_mem::DeviceViewMut<'_, Fr>) -> Elements<'_, Self> {
        Elements::natural(view)
    }
}

impl InOrder for BitReversed {
    fn host(values: &mut [Fr]) -> HostElements<'_, Self> {
        HostElements::bit_reversed(values)
    }

    fn device(view: cuzk_gpu_mem::DeviceViewMut<'_, Fr>) -> Elements<'_, Self> {
        Elements::bit_reversed(view)
    }
}

fn transforms_agree(rig: &Rig) {
    fn both<O: InOrder>(rig: &Rig, random: &mut Random) {
        for family in FAMILIES {
            let plan = rig.everything(family, 8);
            let host = HostPlan::new(family, 8).unwrap();
            for log_n in LOG_SIZES {
                for (direction, scale) in DIRECTIONS.iter().flat_map(|d| SCALES.map(|s| (*d, s))) {
                    let mut values = random.values(3 << log_n);
                    let mut buffer = rig.upload(&values);
                    let elements = O::device(buffer.view_mut());
                    let (launcher, stream) = (&*rig.launcher, &rig.stream);
                    plan.transform(launcher, stream, log_n, direction, scale, elements)
                        .unwrap();
                    host.transform(log_n, direction, scale, O::host(&mut values))
                        .unwrap();
                    let found = rig.download(&buffer);
                    assert!(found == values, "2^{log_n} {direction:?} {scale:?}");
                }
            }
        }
    }
    let mut random = Random::new(21);
    both::<NaturalOrder>(rig, &mut random);
    both::<BitReversed>(rig, &mut random);
}

fn extensions_agree(rig: &Rig) {
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let mut random = Random::new(22);
    for family in FAMILIES {
        let plan = rig.everything(family, 8);
        let host = HostPlan::new(family, 8).unwrap();
        for log_n in LOG_SIZES {
            let n = 1_usize << log_n;
            for rows in [0, n / 2, n] {
                let mut values = random.values(2 * n);
                let mut buffer = rig.upload(&values);
                let elements = Elements::natural(buffer.view_mut());
                plan.extend(launcher, stream, log_n, rows, elements)
                    .unwrap();
                host.extend(log_n, rows, HostElements::natural(&mut values))
                    .unwrap();
                assert!(rig.download(&buffer) == values, "2^{log_n}, {rows} rows");
            }
            for scale in SCALES {
                let mut values = random.values(2 * n);
                let mut buffer = rig.upload(&values);
                let elements = Elements::bit_reversed(buffer.view_mut());
                let elements = plan
                    .odd_values(launcher, stream, log_n, scale, elements)
                    .unwrap();
                plan.odd_coefficients(launcher, stream, log_n, Scale::OverN, elements)
                    .unwrap();
                let elements = HostElements::bit_reversed(&mut values);
                let elements = host.odd_values(log_n, scale, elements).unwrap();
                host.odd_coefficients(log_n, Scale::OverN, elements)
                    .unwrap();
                assert!(rig.download(&buffer) == values, "2^{log_n} {scale:?}");
            }
        }
    }
}

fn what_stands_around_agrees(rig: &Rig) {
    fn both<O: InOrder>(rig: &Rig, random: &mut Random) {
        let (launcher, stream) = (&*rig.launcher, &rig.stream);
        let plan = rig.everything(FAMILIES[1], 8);
        let host = HostPlan::new(FAMILIES[1], 8).unwrap();
        for log_n in LOG_SIZES {
            let (mut values, mut others) = (random.values(3 << log_n), random.values(3 << log_n));
            let (mut buffer, mut other) = (rig.upload(&values), rig.upload(&others));
            let root = FAMILIES[1].root_of_unity(log_n).unwrap();
            let first = random.fr();
            for base in [random.fr(), root, Fr::ONE] {
                let powers = Powers::new(stream, base).unwrap();
                let mut elements = O::device(buffer.view_mut());
                plan.multiply_by_powers(launcher, stream, log_n, &powers, first, &mut elements)
                    .unwrap();
                let others_on_device = O::device(other.view_mut());
                plan.multiply(launcher, stream, &mut elements, &others_on_device)
                    .unwrap();
                plan.reverse(launcher, stream, log_n, elements).unwrap();
                let mut elements = O::host(&mut values);
                host.multiply_by_powers(log_n, base, first, &mut elements)
                    .unwrap();
                host.multiply(&mut elements, &O::host(&mut others)).unwrap();
                host.reverse(log_n, elements).unwrap();
                assert!(rig.download(&buffer) == values, "2^{log_n} {base:?}");
            }
            // Of an element's powers, the first is one, whatever it is.
            let zero = Powers::new(stream, Fr::ZERO).unwrap();
            let mut elements = O::device(buffer.view_mut());
            plan.multiply_by_powers(launcher, stream, log_n, &zero, first, &mut elements)
                .unwrap();
            host.multiply_by_powers(log_n, Fr::ZERO, first, &mut O::host(&mut values))
                .unwrap();
            assert!(rig.download(&buffer) == values, "2^{log_n}, zero");
            assert!(values[1 << log_n] != Fr::ZERO);
        }
    }
    let mut random = Random::new(25);
    both::<NaturalOrder>(rig, &mut random);
    both::<BitReversed>(rig, &mut random);
}

fn quotients_agree(rig: &Rig) {
    let mut random = Random::new(23);
    for family in FAMILIES {
        let plan = rig.everything(family, 8);
        let host = HostPlan::new(family, 8).unwrap();
        for log_n in LOG_SIZES {
            let n = 1_usize << log_n;
            let rows = n - n / 3;
            for form in [
                QuotientForm::Coefficients,
                QuotientForm::OddValues,
                QuotientForm::OddProducts,
            ] {
                let (a, b) = (random.values(n), random.values(n));
                let (mut on_a, mut on_b) = (rig.upload(&a), rig.upload(&b));
                let mut on_c = rig.upload(&vec![Fr::ONE; n]);
                let arrays = QuotientArrays {
                    a: on_a.view_mut(),
                    b: on_b.view_mut(),
                    c: (form.arrays() == 3).then(|| on_c.view_mut()),
                    rows,
                };
                let result = plan
                    .quotient(&*rig.launcher, &rig.stream, log_n, form, arrays)
                    .unwrap();
                let mut found = vec![Scalar::ZERO; n];
                rig.stream
                    .download_slice(result.into_view(), &mut found)
                    .unwrap();
                let expected = host.quotient(log_n, form, a, b, rows).unwrap();
                assert!(found == expected, "2^{log_n} {form:?}");
            }
        }
    }
}

/// Every size to 2^18 on the CPU, from either order, against arkworks.
#[test]
fn the_host_agrees_with_ark() {
    let mut random = Random::new(24);
    for family in FAMILIES {
        let host = HostPlan::new(family, 18).unwrap();
        for log_n in 0..=18 {
            let ark = ark(family, log_n);
            let values = random.values(1 << log_n);
            for direction in DIRECTIONS {
                let mut expected: Vec<_> = values.iter().map(|value| value.to_ark()).collect();
                let scale = match direction {
                    Direction::Forward => {
                        ark.fft_in_place(&mut expected);
                        Scale::One
                    }
                    Direction::Inverse => {
                        ark.ifft_in_place(&mut expected);
                        Scale::OverN
                    }
                };
                let expected: Vec<Fr> = expected.into_iter().map(Fr::from_ark).collect();
                let mut down = values.clone();
                host.transform(log_n, direction, scale, HostElements::natural(&mut down))
                    .unwrap();
                bit_reverse_permute(&mut down);
                assert!(down == expected, "{family:?} 2^{log_n} {direction:?}");
                let mut up = values.clone();
                bit_reverse_permute(&mut up);
                host.transform(log_n, direction, scale, HostElements::bit_reversed(&mut up))
                    .unwrap();
                assert!(up == expected, "{family:?} 2^{log_n} {direction:?}");
            }
        }
    }
}
