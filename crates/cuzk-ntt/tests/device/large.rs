//! Sizes at which a few values are looked at: those of random polynomials, evaluated by hand.

use cuzk_field::{Field as _, Fr, RootGenerator};
use cuzk_gpu_mem::DeviceBuf;
use cuzk_kernels::ntt_vector;
use cuzk_ntt::Direction;
use cuzk_ntt::device::{Elements, PlanRequest, Points, Scale};

use crate::rig::{FAMILIES, Random, Rig};

cuzk_testkit::on_both!(values_at_random_points);

/// log2 of the coefficients that are drawn.
const LOG_BLOCK: u32 = 6;

/// Places looked at, the ends among them.
const PLACES: u64 = 24;

/// The polynomial whose coefficient i is block[i mod m] s^i: random, of full size, and quickly evaluated.
struct Polynomial {
    block: Vec<Fr>,
    s: Fr,
    log_n: u32,
}

impl Polynomial {
    fn coefficient(&self, i: u64) -> Fr {
        self.block[i as usize % self.block.len()] * self.s.pow(i)
    }

    fn at(&self, x: Fr) -> Fr {
        let y = self.s * x;
        let block = self
            .block
            .iter()
            .rev()
            .fold(Fr::ZERO, |sum, value| sum * y + *value);
        let step = (y.pow(1 << LOG_BLOCK) - Fr::ONE).inverse().unwrap();
        block * (y.pow(1 << self.log_n) - Fr::ONE) * step
    }

    /// Its coefficients, in natural order.
    fn on_device(&self, rig: &Rig) -> DeviceBuf<Fr> {
        let (launcher, stream) = (&*rig.launcher, &rig.stream);
        let mut array = rig
            .launcher
            .device()
            .alloc("polynomial", 1 << self.log_n, stream)
            .unwrap();
        let mut filled = self.block.len();
        let target = array.view_mut().slice(..filled);
        stream.upload_slice(&self.block, target).unwrap();
        while filled < array.len() {
            let (source, rest) = array.view_mut().split_at(filled);
            stream.copy(source.as_view(), rest.slice(..filled)).unwrap();
            filled *= 2;
        }
        let squares: Vec<Fr> = std::iter::successors(Some(self.s), |x| Some(x.square()))
            .take(33)
            .collect();
        let squares = rig.upload(&squares);
        ntt_vector::powers(
            launcher,
            stream,
            self.log_n,
            squares.view(),
            Fr::ONE,
            false,
            array.view_mut(),
        )
        .unwrap();
        array
    }
}

fn reverse(index: u64, log_n: u32) -> u64 {
    index.reverse_bits() >> (u64::BITS - log_n)
}

fn values_at_random_points(rig: &Rig) {
    for (number, &log_n) in rig.huge_log_n.iter().enumerate() {
        // One family at the sizes between, both at the ends.
        let ends = number == 0 || number + 1 == rig.huge_log_n.len();
        let families = if ends {
            &FAMILIES[..]
        } else {
            &FAMILIES[number % 2..][..1]
        };
        for &family in families {
            there_and_back(rig, family, log_n);
        }
    }
}

/// All four transforms on the domain and both on the odd coset.
fn there_and_back(rig: &Rig, family: RootGenerator, log_n: u32) {
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let mut random = Random::new(200 + u64::from(log_n));
    let polynomial = Polynomial {
        block: random.values(1 << LOG_BLOCK),
        s: random.fr(),
        log_n,
    };
    let last = (1_u64 << log_n) - 1;
    let places: Vec<u64> = [0, last]
        .into_iter()
        .chain((2..PLACES).map(|_| random.0.next_word() & last))
        .collect();
    let root = family.root_of_unity(log_n).unwrap();
    let shift = family.root_of_unity(log_n + 1).unwrap();
    let look =
        |array: &DeviceBuf<Fr>, is_reversed: bool, what: &str, expected: &dyn Fn(u64) -> Fr| {
            for &place in &places {
                let index = if is_reversed {
                    reverse(place, log_n)
                } else {
                    place
                } as usize;
                let mut found = [Fr::ZERO];
                let view = array.view().slice(index..=index);
                stream.download_slice(view, &mut found).unwrap();
                assert!(
                    found[0] == expected(place),
                    "{family:?} 2^{log_n}: {what} {place}"
                );
            }
        };
    let value = |j: u64| polynomial.at(root.pow(j));
    let odd_value = |j: u64| polynomial.at(shift * root.pow(j));
    let coefficient = |i: u64| polynomial.coefficient(i);

    let mut array = polynomial.on_device(rig);
    let both = |points| [(Direction::Forward, points), (Direction::Inverse, points)];
    let request = |points| PlanRequest {
        transforms: both(points).to_vec(),
        ..PlanRequest::domain(family, log_n).within(24 << 30)
    };
    {
        let plan = rig.plan(&request(Points::Domain));
        let run = |array: Elements<'_, _>, direction, scale| {
            plan.transform(launcher, stream, log_n, direction, scale, array)
                .map(drop)
                .unwrap();
        };
        run(
            Elements::natural(array.view_mut()),
            Direction::Forward,
            Scale::One,
        );
        look(&array, true, "value", &value);
        let values = Elements::bit_reversed(array.view_mut());
        plan.reverse(launcher, stream, log_n, values).unwrap();
        look(&array, false, "value, reversed,", &value);
        run(
            Elements::natural(array.view_mut()),
            Direction::Inverse,
            Scale::OverN,
        );
        look(&array, true, "coefficient", &coefficient);
        let coefficients = Elements::bit_reversed(array.view_mut());
        plan.transform(
            launcher,
            stream,
            log_n,
            Direction::Forward,
            Scale::One,
            coefficients,
        )
        .unwrap();
        look(&array, false, "value, natural,", &value);
        let values = Elements::natural(array.view_mut());
        plan.reverse(launcher, stream, log_n, values).unwrap();
        let values = Elements::bit_reversed(array.view_mut());
        plan.transform(
            launcher,
            stream,
            log_n,
            Direction::Inverse,
            Scale::OverN,
            values,
        )
        .unwrap();
        look(&array, false, "coefficient, natural,", &coefficient);
        let coefficients = Elements::natural(array.view_mut());
        plan.reverse(launcher, stream, log_n, coefficients).unwrap();
    }
    let plan = rig.plan(&request(Points::OddCoset));
    let coefficients = Elements::bit_reversed(array.view_mut());
    plan.odd_values(launcher, stream, log_n, Scale::One, coefficients)
        .unwrap();
    look(&array, false, "odd value", &odd_value);
    let values = Elements::natural(array.view_mut());
    plan.odd_coefficients(launcher, stream, log_n, Scale::OverN, values)
        .unwrap();
    look(&array, true, "coefficient by odd values", &coefficient);
}
