//! The plan on the CPU as a stranger calls it: every call against arkworks, sizes that there are not, and the same
//! refusals as on a device.

use ark_poly::{EvaluationDomain as _, Radix2EvaluationDomain};
use cuzk_field::{Field as _, Fr, RootGenerator};
use cuzk_ntt::device::{Elements, QuotientArrays};
use cuzk_ntt::{
    Direction, Domain, Error, HostElements, HostPlan, QuotientForm, Scale, bit_reverse_permute,
};

use crate::rig::{DIRECTIONS, FAMILIES, Random, Rig, same};
use crate::transforms::ark;

cuzk_testkit::on_both!(both_refuse_alike);

type ArkDomain = Radix2EvaluationDomain<ark_bls12_381::Fr>;

/// The shift of the odd coset.
fn shift(family: RootGenerator, log_n: u32) -> Fr {
    family.root_of_unity(log_n + 1).unwrap()
}

/// What arkworks makes of coefficients or values on a coset.
fn with_ark(domain: &ArkDomain, shift: Fr, direction: Direction, values: &[Fr]) -> Vec<Fr> {
    let coset = domain.get_coset(shift.to_ark()).unwrap();
    let values: Vec<_> = values.iter().map(|value| value.to_ark()).collect();
    let found = match direction {
        Direction::Forward => coset.fft(&values),
        Direction::Inverse => coset.ifft(&values),
    };
    found.into_iter().map(Fr::from_ark).collect()
}

/// Each transform of an array by itself.
fn each(values: &[Fr], n: usize, work: impl Fn(&[Fr]) -> Vec<Fr>) -> Vec<Fr> {
    values.chunks(n).flat_map(work).collect()
}

#[test]
fn every_call_agrees_with_ark() {
    let mut random = Random::new(31);
    for family in FAMILIES {
        let plan = HostPlan::new(family, 13).unwrap();
        for (log_n, batch) in [(0, 5), (1, 3), (2, 3), (3, 1), (5, 7), (9, 2), (13, 2)] {
            let n = 1_usize << log_n;
            let (ark, g) = (ark(family, log_n), shift(family, log_n));
            let what = format_args!("{family:?} {batch} of 2^{log_n}").to_string();
            let values = random.values(batch * n);
            let over_n = Fr::from(n as u64).inverse().unwrap();

            let mut data = values.clone();
            let elements = plan
                .reverse(log_n, HostElements::natural(&mut data))
                .unwrap();
            plan.odd_values(log_n, Scale::OverN, elements).unwrap();
            let expected = each(&values, n, |values| {
                let found = with_ark(&ark, g, Direction::Forward, values);
                found.into_iter().map(|x| x * over_n).collect()
            });
            same(&data, &expected, format_args!("odd values, {what}"));

            let mut data = values.clone();
            let elements = HostElements::natural(&mut data);
            let elements = plan
                .odd_coefficients(log_n, Scale::OverN, elements)
                .unwrap();
            plan.reverse(log_n, elements).unwrap();
            let expected = each(&values, n, |values| {
                with_ark(&ark, g, Direction::Inverse, values)
            });
            same(&data, &expected, format_args!("odd coefficients, {what}"));

            for rows in [0, 1, n / 2 + 1, n].map(|rows| rows.min(n)) {
                let mut data = values.clone();
                plan.extend(log_n, rows, HostElements::natural(&mut data))
                    .unwrap();
                let expected = each(&values, n, |values| {
                    let mut values = values.to_vec();
                    values[rows..].fill(Fr::ZERO);
                    let coefficients = with_ark(&ark, Fr::ONE, Direction::Inverse, &values);
                    with_ark(&ark, g, Direction::Forward, &coefficients)
                });
                same(
                    &data,
                    &expected,
                    format_args!("{rows} rows extended, {what}"),
                );
            }

            let mut data = values.clone();
            let mut others: Vec<Fr> = values.iter().rev().copied().collect();
            let expected: Vec<Fr> = values.iter().zip(&others).map(|(x, y)| *x * *y).collect();
            let mut elements = HostElements::bit_reversed(&mut data);
            plan.multiply(&mut elements, &HostElements::bit_reversed(&mut others))
                .unwrap();
            same(&data, &expected, format_args!("products, {what}"));
        }
    }
}

#[test]
fn any_coset_is_powers_and_a_transform() {
    let mut random = Random::new(32);
    for family in FAMILIES {
        let plan = HostPlan::new(family, 13).unwrap();
        for log_n in [0, 1, 2, 6, 13] {
            let n = 1_usize << log_n;
            let ark = ark(family, log_n);
            let values = random.values(2 * n);
            let root = family.root_of_unity(log_n).unwrap();
            let first = random.fr();
            for base in [Fr::ZERO, Fr::ONE, -Fr::ONE, root, Fr::from(7), random.fr()] {
                let expected = each(&values, n, |values| {
                    let values: Vec<Fr> = values.iter().map(|x| *x * first).collect();
                    match base {
                        // Of which arkworks makes no coset: the value at zero, n times.
                        base if base.is_zero() => vec![values[0]; n],
                        base => with_ark(&ark, base, Direction::Forward, &values),
                    }
                });
                let mut data = values.clone();
                let mut elements = HostElements::natural(&mut data);
                plan.multiply_by_powers(log_n, base, first, &mut elements)
                    .unwrap();
                let elements = plan
                    .transform(log_n, Direction::Forward, Scale::One, elements)
                    .unwrap();
                plan.reverse(log_n, elements).unwrap();
                same(
                    &data,
                    &expected,
                    format_args!("natural, 2^{log_n} by {base:?}"),
                );

                let mut data = values.clone();
                let elements = HostElements::natural(&mut data);
                let mut elements = plan.reverse(log_n, elements).unwrap();
                plan.multiply_by_powers(log_n, base, first, &mut elements)
                    .unwrap();
                plan.transform(log_n, Direction::Forward, Scale::One, elements)
                    .unwrap();
                same(
                    &data,
                    &expected,
                    format_args!("reversed, 2^{log_n} by {base:?}"),
                );
            }
        }
    }
}

/// One plan, whose tables are first asked for by all threads at a time.
#[test]
fn threads_share_a_plan() {
    let plan = HostPlan::new(RootGenerator::Five, 11).unwrap();
    std::thread::scope(|scope| {
        for seed in 40..48 {
            let plan = &plan;
            scope.spawn(move || {
                let mut random = Random::new(seed);
                for log_n in (0..=11).rev() {
                    let mut data = random.values(3 << log_n);
                    let values = data.clone();
                    let elements = HostElements::natural(&mut data);
                    let elements = plan
                        .transform(log_n, Direction::Inverse, Scale::OverN, elements)
                        .unwrap();
                    plan.transform(log_n, Direction::Forward, Scale::One, elements)
                        .unwrap();
                    assert!(data == values, "2^{log_n}");
                }
            });
        }
    });
}

/// Tables of 2^31 are 64 GiB: they are not made for an array that is refused, nor for none.
#[test]
fn sizes_are_compared_before_tables_are_made() {
    let plan = HostPlan::new(RootGenerator::Seven, 31).unwrap();
    let mut values = [Fr::ONE; 4];
    let found = 4;
    let expected = 1 << 31;
    let what = "the array";
    let length = Error::Length {
        what,
        expected,
        found,
    };
    for direction in DIRECTIONS {
        let elements = HostElements::natural(&mut values);
        let error = plan.transform(31, direction, Scale::One, elements);
        assert_eq!(error.unwrap_err(), length);
        let elements = HostElements::natural(&mut []);
        let empty = plan.transform(31, direction, Scale::One, elements).unwrap();
        assert!(empty.is_empty());
    }
    let mut elements = HostElements::bit_reversed(&mut values);
    let error = plan.odd_values(31, Scale::One, elements.reborrow());
    assert_eq!(error.unwrap_err(), length);
    let error = plan.multiply_by_powers(31, Fr::ONE, Fr::ONE, &mut elements);
    assert_eq!(error.unwrap_err(), length);
    let error = plan.reverse(31, elements).unwrap_err();
    assert_eq!(error, length);
    let form = QuotientForm::OddValues;
    let error = plan.quotient(31, form, vec![Fr::ONE; 4], vec![], 4);
    assert_eq!(
        error.unwrap_err().to_string(),
        "a: 4 elements, expected 2147483648"
    );
    for max_log_n in [32, 33, 64, u32::MAX] {
        let error = HostPlan::new(RootGenerator::Seven, max_log_n).unwrap_err();
        assert!(matches!(error, Error::TooLarge { max_log_n: 31, .. }));
    }
}

/// What is printed of arrays and plans is short, and no value.
#[test]
fn values_and_tables_are_not_printed() {
    let plan = HostPlan::new(RootGenerator::Seven, 8).unwrap();
    let mut values = vec![Fr::from(0x1234_5678_u64); 256];
    let elements = HostElements::natural(&mut values);
    assert_eq!(
        format!("{elements:?}"),
        "HostElements { is_reversed: false, len: 256 }"
    );
    plan.transform(8, Direction::Forward, Scale::One, elements)
        .unwrap();
    assert!(format!("{plan:?}").len() < 1000);
    let domain = Domain::new(256, RootGenerator::Seven).unwrap();
    assert_eq!(
        format!("{domain:?}"),
        "Domain { size: 256, root_generator: Seven, .. }"
    );
}

/// The same arrays to a plan on the CPU and to one on the device: both take them, or both say the same.
fn both_refuse_alike(rig: &Rig) {
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let family = RootGenerator::Five;
    let plan = rig.everything(family, 5);
    let host = HostPlan::new(family, 5).unwrap();
    let mut buffer = rig.upload(&[Fr::ONE; 96]);
    let mut values = [Fr::ONE; 96];
    let text = |error: &dyn std::fmt::Display| error.to_string();
    for log_n in [0, 1, 2, 3, 5, 6, 31, 32, 63, 64, u32::MAX] {
        for len in [0, 1, 2, 3, 5, 8, 31, 32, 33, 64, 96] {
            let what = format!("2^{log_n}, {len} elements");
            for direction in DIRECTIONS {
                let on_device = Elements::natural(buffer.view_mut().slice(..len));
                let found = plan
                    .transform(launcher, stream, log_n, direction, Scale::OverN, on_device)
                    .map(|elements| elements.len());
                let on_host = HostElements::natural(&mut values[..len]);
                let expected = host
                    .transform(log_n, direction, Scale::OverN, on_host)
                    .map(|elements| elements.len());
                assert_eq!(
                    found.map_err(|error| text(&error)),
                    expected.map_err(|error| text(&error)),
                    "{what}"
                );
            }
            for rows in [0, 1, 32, 33, usize::MAX] {
                let on_device = Elements::natural(buffer.view_mut().slice(..len));
                let found = plan
                    .extend(launcher, stream, log_n, rows, on_device)
                    .map(drop);
                let on_host = HostElements::natural(&mut values[..len]);
                let expected = host.extend(log_n, rows, on_host).map(drop);
                assert_eq!(
                    found.map_err(|error| text(&error)),
                    expected.map_err(|error| text(&error)),
                    "{what}, {rows} rows"
                );
            }
        }
    }
    for (log_n, a, b, rows) in [
        (3, 8, 8, 8),
        (3, 8, 8, 9),
        (3, 8, 7, 8),
        (3, 7, 8, 8),
        (3, 0, 0, 0),
        (0, 1, 1, 1),
        (0, 1, 1, usize::MAX),
        (6, 64, 64, 64),
        (64, 1, 1, 1),
    ] {
        for form in [
            QuotientForm::Coefficients,
            QuotientForm::OddValues,
            QuotientForm::OddProducts,
        ] {
            let (mut on_a, mut on_b) = (
                rig.upload(&vec![Fr::ONE; a.max(1)]),
                rig.upload(&vec![Fr::ONE; b.max(1)]),
            );
            let mut on_c = rig.upload(&vec![Fr::ONE; a.max(1)]);
            let arrays = QuotientArrays {
                a: on_a.view_mut().slice(..a),
                b: on_b.view_mut().slice(..b),
                c: Some(on_c.view_mut().slice(..a)),
                rows,
            };
            let found = plan.quotient(launcher, stream, log_n, form, arrays);
            let expected = host.quotient(log_n, form, vec![Fr::ONE; a], vec![Fr::ONE; b], rows);
            assert_eq!(
                found
                    .map(|scalars| scalars.len())
                    .map_err(|error| text(&error)),
                expected
                    .map(|scalars| scalars.len())
                    .map_err(|error| text(&error)),
                "2^{log_n} {form:?}: {a}, {b}, {rows} rows"
            );
        }
    }
    // What is taken is still computed with.
    let mut data = vec![Fr::ONE; 32];
    let elements = HostElements::natural(&mut data);
    host.transform(5, Direction::Forward, Scale::One, elements)
        .unwrap();
    bit_reverse_permute(&mut data);
    assert!(data[0] == Fr::from(32) && data[1..].iter().all(Fr::is_zero));
}
