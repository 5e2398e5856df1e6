//! Transforms on a device against the CPU's, arkworks and polynomials evaluated by hand: on the
//! emulator at small sizes, and on the card where there is one.
//!
//! `CUZK_REQUIRE_GPU=1` makes a missing card a failure.

use std::sync::Arc;

use ark_poly::{EvaluationDomain as _, Radix2EvaluationDomain};
use cuzk_field::constants::FR_MODULUS;
use cuzk_field::{Field as _, Fr, RootGenerator, Scalar};
use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::{Device, DeviceBuf, GIB, Pod, Settings, Stream, list};
use cuzk_kernels::Launcher;
use cuzk_ntt::device::{
    DevicePlan, Elements, Error, PlanRequest, Points, Powers, QuotientArrays, QuotientForm, Scale,
};
use cuzk_ntt::{
    Direction, Domain, bit_reverse_permute, quotient_coefficients, quotient_odd_values,
};
use cuzk_testkit::limbs::corners;
use cuzk_testkit::{Words, no_gpu};

const FAMILIES: [RootGenerator; 2] = [RootGenerator::Five, RootGenerator::Seven];
const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Inverse];

/// Where the kernels run, and how large the transforms may be.
struct Rig {
    launcher: Box<dyn Launcher>,
    stream: Stream,
    /// For everything.
    max_log_n: u32,
    /// For one transform at a time.
    large_log_n: u32,
}

impl Rig {
    fn emulated() -> Self {
        let settings = Settings {
            reserve: 0,
            ..Settings::default()
        };
        let device = Device::with_driver(Arc::new(SimDriver::new(GIB)), settings).unwrap();
        let sanitized = option_env!("CUZK_SANITIZER").is_some();
        Self {
            launcher: cuzk_kernels::open(&device).unwrap(),
            stream: device.stream("test").unwrap(),
            max_log_n: if sanitized { 5 } else { 10 },
            large_log_n: if sanitized { 12 } else { 13 },
        }
    }

    fn card() -> Option<Self> {
        if let Err(reason) = list() {
            no_gpu(&reason);
            return None;
        }
        let device = Device::open(&"0".parse().unwrap(), Settings::default()).unwrap();
        Some(Self {
            launcher: cuzk_kernels::open(&device).unwrap(),
            stream: device.stream("test").unwrap(),
            max_log_n: 14,
            large_log_n: 18,
        })
    }

    fn upload<T: Pod>(&self, values: &[T]) -> DeviceBuf<T> {
        upload(&self.stream, values)
    }

    fn download<T: Pod>(&self, buffer: &DeviceBuf<T>) -> Vec<T> {
        download(&self.stream, buffer)
    }

    fn plan(&self, request: &PlanRequest) -> DevicePlan {
        DevicePlan::new(&*self.launcher, &self.stream, request).unwrap()
    }

    fn everything(&self, root_generator: RootGenerator, log_n: u32) -> DevicePlan {
        self.plan(&everything(root_generator, log_n))
    }
}

fn everything(root_generator: RootGenerator, max_log_n: u32) -> PlanRequest {
    let both = |points| DIRECTIONS.map(|direction| (direction, points));
    PlanRequest {
        root_generator,
        max_log_n,
        transforms: [both(Points::Domain), both(Points::OddCoset)].concat(),
        max_table_bytes: u64::MAX,
    }
}

fn upload<T: Pod>(stream: &Stream, values: &[T]) -> DeviceBuf<T> {
    let mut buffer = stream
        .device()
        .alloc("input", values.len(), stream)
        .unwrap();
    stream.upload_slice(values, &mut buffer).unwrap();
    buffer
}

fn download<T: Pod>(stream: &Stream, buffer: &DeviceBuf<T>) -> Vec<T> {
    let mut found = vec![T::zeroed(); buffer.len()];
    stream.download_slice(buffer, &mut found).unwrap();
    found
}

cuzk_testkit::on_both!(
    every_size_order_and_direction,
    hostile_values,
    large_sizes_agree_with_ark,
    odd_cosets,
    extensions_read_no_row_behind_the_last,
    any_coset,
    batches_and_ragged_tiles,
    factored_tables,
    products_of_polynomials,
    quotients,
    refusals,
    many_at_once,
);

struct Random(Words);

impl Random {
    fn new(seed: u64) -> Self {
        Self(Words::new(seed))
    }

    fn fr(&mut self) -> Fr {
        loop {
            let [a, b, c, d] = self.0.limbs();
            if let Some(value) = Fr::from_montgomery_limbs([a, b, c, d >> 1]) {
                return value;
            }
        }
    }

    fn values(&mut self, n: usize) -> Vec<Fr> {
        (0..n).map(|_| self.fr()).collect()
    }
}

/// What the CPU makes of values in natural order, in natural order and unscaled.
fn on_cpu(domain: &Domain, direction: Direction, values: &[Fr]) -> Vec<Fr> {
    let mut data = values.to_vec();
    domain.natural_to_bit_reversed(&mut data, direction);
    bit_reverse_permute(&mut data);
    data
}

fn reversed(values: &[Fr]) -> Vec<Fr> {
    let mut data = values.to_vec();
    bit_reverse_permute(&mut data);
    data
}

/// Both orders of one transform, in natural order.
fn on_device(
    rig: &Rig,
    plan: &DevicePlan,
    log_n: u32,
    direction: Direction,
    scale: Scale,
    values: &[Fr],
) -> [Vec<Fr>; 2] {
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let mut down = rig.upload(values);
    let elements = Elements::natural(down.view_mut());
    plan.transform(launcher, stream, log_n, direction, scale, elements)
        .unwrap();
    let mut up = rig.upload(&reversed(values));
    let elements = Elements::bit_reversed(up.view_mut());
    plan.transform(launcher, stream, log_n, direction, scale, elements)
        .unwrap();
    [reversed(&rig.download(&down)), rig.download(&up)]
}

fn same(found: &[Fr], expected: &[Fr], what: std::fmt::Arguments<'_>) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let wrong = found.iter().zip(expected).position(|(x, y)| x != y);
    assert_eq!(wrong, None, "{what}: the first wrong element");
}

fn every_size_order_and_direction(rig: &Rig) {
    let mut random = Random::new(1);
    for family in FAMILIES {
        let plan = rig.everything(family, rig.max_log_n);
        for log_n in 0..=rig.max_log_n {
            let values = random.values(1 << log_n);
            let domain = Domain::new(1 << log_n, family).unwrap();
            for direction in DIRECTIONS {
                let expected = on_cpu(&domain, direction, &values);
                let over_n: Vec<Fr> = expected
                    .iter()
                    .map(|x| *x * domain.size_inverse())
                    .collect();
                for (scale, expected) in [(Scale::One, &expected), (Scale::OverN, &over_n)] {
                    let found = on_device(rig, &plan, log_n, direction, scale, &values);
                    for (found, order) in found.iter().zip(["to reversed", "to natural"]) {
                        same(
                            found,
                            expected,
                            format_args!("{family:?} 2^{log_n} {direction:?} {scale:?} {order}"),
                        );
                    }
                }
            }
        }
    }
}

fn hostile_values(rig: &Rig) {
    let corners: Vec<Fr> = corners(FR_MODULUS)
        .into_iter()
        .map(|limbs| Fr::from_montgomery_limbs(limbs).unwrap())
        .collect();
    let plan = rig.everything(RootGenerator::Seven, 9);
    let minus_one = -Fr::ONE;
    let mut random = Random::new(2);
    for log_n in [3, 4, 5, 6, 9] {
        let n = 1_usize << log_n;
        let domain = Domain::new(n, RootGenerator::Seven).unwrap();
        let cycled: Vec<Fr> = corners.iter().copied().cycle().take(n).collect();
        let mixed = (0..n)
            .map(|_| corners[random.0.next_word() as usize % corners.len()])
            .collect();
        let alternating = (0..n)
            .map(|i| if i % 2 == 0 { Fr::ZERO } else { minus_one })
            .collect();
        let largest = Fr::from_montgomery_limbs({
            let mut limbs = FR_MODULUS;
            limbs[0] -= 1;
            limbs
        })
        .unwrap();
        for values in [
            cycled,
            mixed,
            alternating,
            vec![largest; n],
            vec![Fr::ZERO; n],
        ] {
            for direction in DIRECTIONS {
                let expected = on_cpu(&domain, direction, &values);
                for found in on_device(rig, &plan, log_n, direction, Scale::One, &values) {
                    same(&found, &expected, format_args!("2^{log_n} {direction:?}"));
                    assert!(found.iter().all(is_canonical));
                }
            }
        }
    }
}

fn is_canonical(x: &Fr) -> bool {
    Fr::from_montgomery_limbs(*x.montgomery_limbs()).is_some()
}

fn large_sizes_agree_with_ark(rig: &Rig) {
    let mut random = Random::new(3);
    for log_n in rig.max_log_n + 1..=rig.large_log_n {
        let plan = rig.plan(&PlanRequest::domain(RootGenerator::Seven, log_n));
        let ark = Radix2EvaluationDomain::<ark_bls12_381::Fr>::new(1 << log_n).unwrap();
        let values = random.values(1 << log_n);
        let mut expected: Vec<_> = values.iter().map(|value| value.to_ark()).collect();
        ark.fft_in_place(&mut expected);
        for found in on_device(rig, &plan, log_n, Direction::Forward, Scale::One, &values) {
            assert!(
                found.iter().zip(&expected).all(|(x, y)| x.to_ark() == *y),
                "2^{log_n}"
            );
        }
        ark.ifft_in_place(&mut expected);
        assert!(values.iter().zip(&expected).all(|(x, y)| x.to_ark() == *y));
        let mut inverse: Vec<_> = values.iter().map(|value| value.to_ark()).collect();
        ark.ifft_in_place(&mut inverse);
        for found in on_device(rig, &plan, log_n, Direction::Inverse, Scale::OverN, &values) {
            assert!(
                found.iter().zip(&inverse).all(|(x, y)| x.to_ark() == *y),
                "inverse, 2^{log_n}"
            );
        }
    }
}

fn odd_cosets(rig: &Rig) {
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let mut random = Random::new(4);
    for family in FAMILIES {
        let top = rig.large_log_n.min(15);
        let plan = rig.everything(family, top);
        for log_n in (0..=rig.max_log_n).chain([top]) {
            let n = 1_usize << log_n;
            let domain = Domain::new(n, family).unwrap();
            let shift = domain.odd_coset_shift().unwrap();
            let coefficients = random.values(n);
            let mut power = Fr::ONE;
            let shifted: Vec<Fr> = coefficients
                .iter()
                .map(|c| {
                    let value = *c * power;
                    power *= shift;
                    value
                })
                .collect();
            let expected = on_cpu(&domain, Direction::Forward, &shifted);

            let mut buffer = rig.upload(&reversed(&coefficients));
            let elements = Elements::bit_reversed(buffer.view_mut());
            plan.odd_values(launcher, stream, log_n, Scale::One, elements)
                .unwrap();
            same(
                &rig.download(&buffer),
                &expected,
                format_args!("{family:?} 2^{log_n}"),
            );
            let elements = Elements::natural(buffer.view_mut());
            plan.odd_coefficients(launcher, stream, log_n, Scale::OverN, elements)
                .unwrap();
            same(
                &reversed(&rig.download(&buffer)),
                &coefficients,
                format_args!("{family:?} 2^{log_n}, back"),
            );
        }
    }
}

fn extensions_read_no_row_behind_the_last(rig: &Rig) {
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let family = RootGenerator::Five;
    let mut random = Random::new(5);
    let plan = rig.everything(family, rig.large_log_n);
    for log_n in (0..=rig.max_log_n)
        .step_by(3)
        .chain([1, 2, 4, rig.large_log_n])
    {
        let n = 1_usize << log_n;
        let domain = Domain::new(n, family).unwrap();
        for rows in [0, 1, n / 2, n - 1, n] {
            let mut values = random.values(n);
            let mut buffer = rig.upload(&values);
            values[rows..].fill(Fr::ZERO);
            domain
                .extend_to_coset(&mut values, domain.odd_coset_shift().unwrap())
                .unwrap();
            let elements = Elements::natural(buffer.view_mut());
            plan.extend(launcher, stream, log_n, rows, elements)
                .unwrap();
            same(
                &rig.download(&buffer),
                &values,
                format_args!("2^{log_n}, {rows} rows"),
            );
        }
    }
}

fn any_coset(rig: &Rig) {
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let family = RootGenerator::Seven;
    let mut random = Random::new(6);
    let plan = rig.plan(&PlanRequest::domain(family, rig.max_log_n));
    let shift = random.fr();
    let powers = Powers::new(stream, shift).unwrap();
    for log_n in 0..=rig.max_log_n {
        let n = 1_usize << log_n;
        let domain = Domain::new(n, family).unwrap();
        let values = random.values(2 * n);
        let mut buffer = rig.upload(&values);
        let elements = Elements::natural(buffer.view_mut());
        let mut coefficients = plan
            .transform(
                launcher,
                stream,
                log_n,
                Direction::Inverse,
                Scale::One,
                elements,
            )
            .unwrap();
        plan.multiply_by_powers(
            launcher,
            stream,
            log_n,
            &powers,
            domain.size_inverse(),
            &mut coefficients,
        )
        .unwrap();
        // There and back, also by the way of natural order.
        let mut natural = plan.reverse(launcher, stream, log_n, coefficients).unwrap();
        let inverse = Powers::new(stream, shift.inverse().unwrap()).unwrap();
        plan.multiply_by_powers(launcher, stream, log_n, &inverse, Fr::ONE, &mut natural)
            .unwrap();
        plan.multiply_by_powers(launcher, stream, log_n, &powers, Fr::ONE, &mut natural)
            .unwrap();
        let coefficients = plan.reverse(launcher, stream, log_n, natural).unwrap();
        plan.transform(
            launcher,
            stream,
            log_n,
            Direction::Forward,
            Scale::One,
            coefficients,
        )
        .unwrap();
        let found = rig.download(&buffer);
        for (found, values) in found.chunks(n).zip(values.chunks(n)) {
            let mut expected = values.to_vec();
            domain.extend_to_coset(&mut expected, shift).unwrap();
            same(found, &expected, format_args!("2^{log_n}"));
        }
    }
}

/// Several transforms side by side, also where their sum is no multiple of a tile.
fn batches_and_ragged_tiles(rig: &Rig) {
    let family = RootGenerator::Seven;
    let mut random = Random::new(7);
    let plan = rig.plan(&PlanRequest::domain(family, rig.large_log_n));
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    for (log_n, batch) in [
        (0, 5),
        (1, 3),
        (2, 600),
        (3, 1),
        (3, 257),
        (5, 67),
        (8, 9),
        (10, 3),
        (11, 2),
        (12, 3),
    ] {
        let n = 1_usize << log_n;
        let domain = Domain::new(n, family).unwrap();
        let values = random.values(batch * n);
        // The element behind the last must stay.
        let guard = random.fr();
        let mut buffer = rig.upload(&[values.as_slice(), &[guard]].concat());
        let elements = Elements::natural(buffer.view_mut().slice(..batch * n));
        plan.transform(
            launcher,
            stream,
            log_n,
            Direction::Forward,
            Scale::One,
            elements,
        )
        .unwrap();
        let found = rig.download(&buffer);
        assert!(found[batch * n] == guard);
        for (number, (found, values)) in found.chunks_exact(n).zip(values.chunks(n)).enumerate() {
            let expected = on_cpu(&domain, Direction::Forward, values);
            same(
                &reversed(found),
                &expected,
                format_args!("2^{log_n}, {number} of {batch}"),
            );
        }
    }
    let mut one = rig.upload(&[Fr::ONE]);
    let empty = Elements::natural(one.view_mut().slice(..0));
    plan.transform(launcher, stream, 4, Direction::Forward, Scale::One, empty)
        .unwrap();
}

/// With little memory for tables, twiddles are products of two.
fn factored_tables(rig: &Rig) {
    let mut random = Random::new(8);
    let log_n = 17.min(rig.large_log_n + 3);
    let whole = everything(RootGenerator::Five, log_n);
    let factored = whole.clone().within(0);
    assert!(factored.table_bytes() < whole.table_bytes());
    let (whole, factored) = (rig.plan(&whole), rig.plan(&factored));
    assert!(factored.table_bytes() < whole.table_bytes());
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let values = random.values(1 << log_n);
    let found = [whole, factored].map(|plan| {
        let mut buffer = rig.upload(&values);
        let elements = Elements::natural(buffer.view_mut());
        let elements = plan
            .extend(launcher, stream, log_n, values.len(), elements)
            .unwrap();
        let elements = plan
            .odd_coefficients(launcher, stream, log_n, Scale::One, elements)
            .unwrap();
        plan.transform(
            launcher,
            stream,
            log_n,
            Direction::Forward,
            Scale::OverN,
            elements,
        )
        .unwrap();
        rig.download(&buffer)
    });
    // Extended, taken back, and evaluated: the values again.
    same(&found[0], &values, format_args!("whole tables"));
    same(&found[1], &values, format_args!("factored tables"));
}

/// Convolution.
fn products_of_polynomials(rig: &Rig) {
    let family = RootGenerator::Seven;
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let mut random = Random::new(9);
    for log_n in [3, 7] {
        let n = 1_usize << log_n;
        let (x, y) = (random.values(n / 2), random.values(n / 2));
        let mut expected = vec![Fr::ZERO; n];
        for (i, x) in x.iter().enumerate() {
            for (j, y) in y.iter().enumerate() {
                expected[i + j] += *x * *y;
            }
        }
        let plan = rig.plan(&PlanRequest::domain(family, log_n));
        let padded = |values: &[Fr]| {
            let mut values = values.to_vec();
            values.resize(n, Fr::ZERO);
            rig.upload(&values)
        };
        let (mut x, mut y) = (padded(&x), padded(&y));
        for buffer in [&mut x, &mut y] {
            let elements = Elements::natural(buffer.view_mut());
            plan.transform(
                launcher,
                stream,
                log_n,
                Direction::Forward,
                Scale::One,
                elements,
            )
            .unwrap();
        }
        cuzk_kernels::ntt_vector::product_in_place(launcher, stream, x.view_mut(), y.view())
            .unwrap();
        let elements = Elements::bit_reversed(x.view_mut());
        plan.transform(
            launcher,
            stream,
            log_n,
            Direction::Inverse,
            Scale::OverN,
            elements,
        )
        .unwrap();
        same(&rig.download(&x), &expected, format_args!("2^{log_n}"));
    }
}

fn quotients(rig: &Rig) {
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let mut random = Random::new(10);
    for family in FAMILIES {
        let plan = rig.everything(family, rig.large_log_n);
        for log_n in (0..=6).chain([9, rig.max_log_n, rig.large_log_n]) {
            let n = 1_usize << log_n;
            let domain = Domain::new(n, family).unwrap();
            let rows = n - n / 4;
            let (a, b) = (random.values(n), random.values(n));
            let zeroed = |values: &[Fr]| {
                let mut values = values.to_vec();
                values[rows..].fill(Fr::ZERO);
                values
            };
            let run = |form: QuotientForm| {
                let (mut a, mut b) = (rig.upload(&a), rig.upload(&b));
                let mut c = rig.upload(&vec![Fr::ONE; n]);
                let arrays = QuotientArrays {
                    a: a.view_mut(),
                    b: b.view_mut(),
                    c: (form.arrays() == 3).then(|| c.view_mut()),
                    rows,
                };
                let result = plan
                    .quotient(launcher, stream, log_n, form, arrays)
                    .unwrap();
                let mut found = vec![Scalar::ZERO; n];
                stream
                    .download_slice(result.into_view(), &mut found)
                    .unwrap();
                found
            };
            let found = run(QuotientForm::Coefficients);
            let expected = quotient_coefficients(&domain, zeroed(&a), zeroed(&b)).unwrap();
            assert!(
                found[..n - 1] == expected,
                "{family:?} 2^{log_n}: coefficients"
            );
            assert!(found[n - 1].is_zero(), "2^{log_n}: the last coefficient");

            let found = run(QuotientForm::OddValues);
            let expected = quotient_odd_values(&domain, zeroed(&a), zeroed(&b)).unwrap();
            assert!(found == expected, "{family:?} 2^{log_n}: odd values");

            let found = run(QuotientForm::OddProducts);
            let shift = domain.odd_coset_shift().unwrap();
            let (mut a, mut b) = (zeroed(&a), zeroed(&b));
            domain.extend_to_coset(&mut a, shift).unwrap();
            domain.extend_to_coset(&mut b, shift).unwrap();
            let expected: Vec<Scalar> = a
                .iter()
                .zip(&b)
                .map(|(a, b)| Scalar::from(*a * *b))
                .collect();
            assert!(found == expected, "{family:?} 2^{log_n}: odd products");
        }
    }
}

fn refusals(rig: &Rig) {
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let plan = rig.plan(&PlanRequest::domain(RootGenerator::Five, 5));
    let mut buffer = rig.upload(&[Fr::ONE; 64]);
    let mut attempt = |log_n, range: std::ops::Range<usize>| {
        let elements = Elements::natural(buffer.view_mut().slice(range));
        plan.transform(
            launcher,
            stream,
            log_n,
            Direction::Forward,
            Scale::One,
            elements,
        )
        .map(drop)
        .unwrap_err()
    };
    assert!(matches!(
        attempt(6, 0..64),
        Error::Size {
            log_n: 6,
            max_log_n: 5
        }
    ));
    for (log_n, range) in [(5, 0..33), (2, 0..3), (1, 0..1), (4, 0..8)] {
        assert!(matches!(attempt(log_n, range), Error::Length { .. }));
    }
    let elements = Elements::bit_reversed(buffer.view_mut());
    let error = plan
        .odd_values(launcher, stream, 5, Scale::One, elements)
        .unwrap_err();
    assert!(matches!(
        error,
        Error::NotPlanned {
            points: Points::OddCoset,
            ..
        }
    ));
    let elements = Elements::natural(buffer.view_mut());
    assert!(plan.extend(launcher, stream, 5, 32, elements).is_err());

    let too_large = PlanRequest::domain(RootGenerator::Five, 31);
    let error = DevicePlan::new(launcher, stream, &too_large).unwrap_err();
    assert!(matches!(error, Error::Size { log_n: 31, .. }));
    // No card has these tables free.
    let mut huge = everything(RootGenerator::Five, 30);
    huge.transforms = huge.transforms.repeat(4);
    let outcome = DevicePlan::new(launcher, stream, &huge).map(drop);
    assert!(
        matches!(
            outcome,
            Err(Error::Kernels(cuzk_kernels::Error::Memory(
                cuzk_gpu_mem::Error::OutOfMemory(_)
            )))
        ),
        "{outcome:?}"
    );
    let form = QuotientForm::Coefficients;
    let (mut a, mut b) = (rig.upload(&[Fr::ONE; 32]), rig.upload(&[Fr::ONE; 16]));
    let arrays = QuotientArrays {
        a: a.view_mut(),
        b: b.view_mut(),
        c: None,
        rows: 32,
    };
    let error = plan
        .quotient(launcher, stream, 5, form, arrays)
        .unwrap_err();
    assert!(matches!(
        error,
        Error::Length {
            what: "b",
            expected: 32,
            found: 16
        }
    ));
}

/// A thousand transforms of mixed sizes, from several threads on streams of their own, with one plan.
fn many_at_once(rig: &Rig) {
    let family = RootGenerator::Seven;
    let on_card = rig.launcher.device().driver().as_cuda().is_some();
    let (threads, each) = if on_card { (8, 125) } else { (4, 10) };
    let top = if on_card { 14 } else { 8 };
    let plan = Arc::new(rig.plan(&PlanRequest::domain(family, top)));
    let launcher = &*rig.launcher;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let plan = Arc::clone(&plan);
            scope.spawn(move || {
                let stream = launcher.device().stream("one of several").unwrap();
                let mut random = Random::new(100 + thread);
                let mut pending = Vec::new();
                for number in 0..each {
                    let log_n = random.0.next_word() as u32 % (top + 1);
                    let values = random.values(1 << log_n);
                    let direction = DIRECTIONS[number % 2];
                    let mut buffer = upload(&stream, &values);
                    let elements = Elements::natural(buffer.view_mut());
                    plan.transform(launcher, &stream, log_n, direction, Scale::One, elements)
                        .unwrap();
                    pending.push((log_n, values, direction, buffer));
                }
                for (log_n, values, direction, buffer) in pending {
                    let domain = Domain::new(1 << log_n, family).unwrap();
                    let expected = on_cpu(&domain, direction, &values);
                    let found = reversed(&download(&stream, &buffer));
                    same(
                        &found,
                        &expected,
                        format_args!("2^{log_n}, thread {thread}"),
                    );
                }
            });
        }
    });
}
