//! The quotient in its forms against the CPU's.

use cuzk_field::{Field as _, Fr, Scalar};
use cuzk_ntt::device::{QuotientArrays, QuotientForm};
use cuzk_ntt::{Domain, quotient_coefficients, quotient_odd_values};

use crate::rig::{FAMILIES, Random, Rig};

cuzk_testkit::on_both!(quotients);

fn quotients(rig: &Rig) {
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let mut random = Random::new(10);
    for family in FAMILIES {
        let plan = rig.everything(family, rig.large_log_n);
        for log_n in (0..=6).chain([9, rig.max_log_n, rig.large_log_n]) {
            let n = 1_usize << log_n;
            let domain = Domain::new(n, family).unwrap();
            let rows = n - n.div_ceil(4);
            let (a, b) = (random.values(n), random.values(n));
            let zeroed = |values: &[Fr]| {
                let mut values = values.to_vec();
                values[rows..].fill(Fr::ZERO);
                values
            };
            let run = |form: QuotientForm| {
                let (mut a, mut b) = (rig.upload(&a), rig.upload(&b));
                // What lies behind is not read: these are no elements.
                for array in [&mut a, &mut b] {
                    let behind = array.view_mut().slice(rows..);
                    stream.fill(behind, 0xff).unwrap();
                }
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
