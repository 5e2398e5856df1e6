//! Values on cosets.

use cuzk_field::{Field as _, Fr, RootGenerator};
use cuzk_ntt::device::{Elements, PlanRequest, Powers, Scale};
use cuzk_ntt::{Direction, Domain};

use crate::rig::{FAMILIES, Random, Rig, on_cpu, reversed, same};

cuzk_testkit::on_both!(
    odd_cosets,
    extensions_read_no_row_behind_the_last,
    any_coset
);

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
            // These are no elements.
            stream.fill(buffer.view_mut().slice(rows..), 0xff).unwrap();
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
