//! Transforms against arkworks and the CPU's.

use std::sync::Arc;

use ark_poly::{EvaluationDomain as _, Radix2EvaluationDomain};
use cuzk_field::constants::FR_MODULUS;
use cuzk_field::{Field as _, Fr, RootGenerator};
use cuzk_ntt::device::{Elements, PlanRequest, Scale};
use cuzk_ntt::{Direction, Domain};
use cuzk_testkit::device::{download, upload};
use cuzk_testkit::limbs::corners;

use crate::rig::{
    DIRECTIONS, FAMILIES, Random, Rig, everything, on_cpu, on_device, reversed, same,
};

cuzk_testkit::on_both!(
    every_size_order_and_direction,
    hostile_values,
    batches_and_ragged_tiles,
    factored_tables,
    many_at_once,
);

/// arkworks' transforms, by the roots of either family.
pub(crate) fn ark(family: RootGenerator, log_n: u32) -> Radix2EvaluationDomain<ark_bls12_381::Fr> {
    let root = family.root_of_unity(log_n).unwrap();
    Radix2EvaluationDomain {
        group_gen: root.to_ark(),
        group_gen_inv: root.inverse().unwrap().to_ark(),
        ..Radix2EvaluationDomain::new(1 << log_n).unwrap()
    }
}

/// From one value on (GP-19).
fn every_size_order_and_direction(rig: &Rig) {
    let mut random = Random::new(1);
    for family in FAMILIES {
        let plan = rig.everything(family, rig.large_log_n);
        for log_n in 0..=rig.large_log_n {
            let values = random.values(1 << log_n);
            let n = Fr::from(1_u64 << log_n);
            let over_n = n.inverse().unwrap();
            let ark = ark(family, log_n);
            for direction in DIRECTIONS {
                let mut expected: Vec<_> = values.iter().map(|value| value.to_ark()).collect();
                // What arkworks' inverse has divided by n already.
                let factors = match direction {
                    Direction::Forward => {
                        ark.fft_in_place(&mut expected);
                        [(Scale::One, Fr::ONE), (Scale::OverN, over_n)]
                    }
                    Direction::Inverse => {
                        ark.ifft_in_place(&mut expected);
                        [(Scale::One, n), (Scale::OverN, Fr::ONE)]
                    }
                };
                for (scale, factor) in factors {
                    let expected: Vec<Fr> =
                        expected.iter().map(|x| Fr::from_ark(*x) * factor).collect();
                    let found = on_device(rig, &plan, log_n, direction, scale, &values);
                    for (found, order) in found.iter().zip(["to reversed", "to natural"]) {
                        same(
                            found,
                            &expected,
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

/// A thousand transforms of mixed sizes, from several threads on streams of their own, with one plan.
fn many_at_once(rig: &Rig) {
    let family = RootGenerator::Seven;
    let on_card = rig.is_card;
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
