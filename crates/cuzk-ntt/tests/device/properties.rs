//! What holds of every transform: linearity, round trips, convolution, what a shift of the values does.

use cuzk_field::{Field as _, Fr, RootGenerator};
use cuzk_kernels::ntt_vector;
use cuzk_ntt::Direction;
use cuzk_ntt::device::{DevicePlan, Elements, Powers, Scale};

use crate::rig::{DIRECTIONS, FAMILIES, Random, Rig, on_device, reversed, same};

cuzk_testkit::on_both!(linearity, round_trips, convolution, shifts);

/// Draws a case: family, size, direction.
struct Cases {
    random: Random,
    plans: [DevicePlan; 2],
    max_log_n: u32,
}

impl Cases {
    const COUNT: usize = 12;

    fn new(rig: &Rig, seed: u64) -> Self {
        let max_log_n = if rig.is_card { 16 } else { 9 };
        Self {
            random: Random::new(seed),
            plans: FAMILIES.map(|family| rig.everything(family, max_log_n)),
            max_log_n,
        }
    }

    fn draw(&mut self) -> (usize, u32, Direction) {
        let word = self.random.0.next_word();
        let log_n = (word >> 8) as u32 % (self.max_log_n + 1);
        let family = word as usize & 1;
        (family, log_n, DIRECTIONS[word as usize >> 1 & 1])
    }
}

/// The transform of x values plus y others is x of the one's and y of the other's, in both orders.
fn linearity(rig: &Rig) {
    let mut cases = Cases::new(rig, 20);
    for _ in 0..Cases::COUNT {
        let (family, log_n, direction) = cases.draw();
        let n = 1 << log_n;
        let (x, y) = (cases.random.fr(), cases.random.fr());
        let (a, b) = (cases.random.values(n), cases.random.values(n));
        let combine = |a: &[Fr], b: &[Fr]| -> Vec<Fr> {
            a.iter().zip(b).map(|(a, b)| *a * x + *b * y).collect()
        };
        let plan = &cases.plans[family];
        let of = |values: &[Fr]| on_device(rig, plan, log_n, direction, Scale::One, values);
        let (sums, of_a, of_b) = (of(&combine(&a, &b)), of(&a), of(&b));
        for order in 0..2 {
            same(
                &sums[order],
                &combine(&of_a[order], &of_b[order]),
                format_args!(
                    "{:?} 2^{log_n} {direction:?}, order {order}",
                    FAMILIES[family]
                ),
            );
        }
    }
}

/// There and back again, from either order, on the domain and on the odd coset.
fn round_trips(rig: &Rig) {
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let mut cases = Cases::new(rig, 21);
    for _ in 0..Cases::COUNT {
        let (family, log_n, direction) = cases.draw();
        let values = cases.random.values(1 << log_n);
        let plan = &cases.plans[family];
        let back = match direction {
            Direction::Forward => Direction::Inverse,
            Direction::Inverse => Direction::Forward,
        };
        let what = format_args!("{:?} 2^{log_n} {direction:?} first", FAMILIES[family]).to_string();

        let mut array = rig.upload(&values);
        let elements = Elements::natural(array.view_mut());
        let elements = plan
            .transform(launcher, stream, log_n, direction, Scale::One, elements)
            .unwrap();
        plan.transform(launcher, stream, log_n, back, Scale::OverN, elements)
            .unwrap();
        same(
            &rig.download(&array),
            &values,
            format_args!("{what}, natural"),
        );

        let elements = Elements::bit_reversed(array.view_mut());
        let elements = plan
            .transform(launcher, stream, log_n, direction, Scale::OverN, elements)
            .unwrap();
        plan.transform(launcher, stream, log_n, back, Scale::One, elements)
            .unwrap();
        same(
            &rig.download(&array),
            &values,
            format_args!("{what}, reversed"),
        );

        let elements = Elements::bit_reversed(array.view_mut());
        let elements = plan
            .odd_values(launcher, stream, log_n, Scale::One, elements)
            .unwrap();
        plan.odd_coefficients(launcher, stream, log_n, Scale::OverN, elements)
            .unwrap();
        same(
            &rig.download(&array),
            &values,
            format_args!("{what}, coset"),
        );
    }
}

/// sum_i values_i x^i
fn at(values: &[Fr], x: Fr) -> Fr {
    values
        .iter()
        .rev()
        .fold(Fr::ZERO, |sum, value| sum * x + *value)
}

/// The product of values is that of polynomials: coefficient by coefficient at small sizes, at a random point at all.
fn convolution(rig: &Rig) {
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let mut cases = Cases::new(rig, 22);
    for _ in 0..Cases::COUNT {
        let (family, log_n, _) = cases.draw();
        let log_n = log_n.max(1);
        let n = 1_usize << log_n;
        let plan = &cases.plans[family];
        let (a, b) = (cases.random.values(n / 2), cases.random.values(n / 2));
        let [mut x, mut y] = [&a, &b].map(|values| {
            let padded = [values.as_slice(), &vec![Fr::ZERO; n / 2]].concat();
            rig.upload(&padded)
        });
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
        ntt_vector::product_in_place(launcher, stream, x.view_mut(), y.view(), None).unwrap();
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
        let product = rig.download(&x);
        let what = format_args!("{:?} 2^{log_n}", FAMILIES[family]).to_string();
        if log_n <= 7 {
            let mut expected = vec![Fr::ZERO; n];
            for (i, a) in a.iter().enumerate() {
                for (j, b) in b.iter().enumerate() {
                    expected[i + j] += *a * *b;
                }
            }
            same(&product, &expected, format_args!("{what}"));
        }
        let point = cases.random.fr();
        assert!(
            at(&product, point) == at(&a, point) * at(&b, point),
            "{what}"
        );
    }
}

/// Coefficients times w^i give the values of the next root.
fn shifts(rig: &Rig) {
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let mut cases = Cases::new(rig, 23);
    for _ in 0..Cases::COUNT {
        let (family, log_n, _) = cases.draw();
        let generator: RootGenerator = FAMILIES[family];
        let plan = &cases.plans[family];
        let coefficients = cases.random.values(1 << log_n);
        let root = generator.root_of_unity(log_n).unwrap();
        let powers = Powers::new(stream, root).unwrap();
        let [mut plain, mut shifted] = [0; 2].map(|_| rig.upload(&reversed(&coefficients)));
        let mut elements = Elements::bit_reversed(shifted.view_mut());
        plan.multiply_by_powers(launcher, stream, log_n, &powers, Fr::ONE, &mut elements)
            .unwrap();
        for buffer in [&mut plain, &mut shifted] {
            let elements = Elements::bit_reversed(buffer.view_mut());
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
        let mut expected = rig.download(&plain);
        expected.rotate_left(1);
        same(
            &rig.download(&shifted),
            &expected,
            format_args!("{generator:?} 2^{log_n}"),
        );
    }
}
