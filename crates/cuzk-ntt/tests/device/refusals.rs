//! What is refused, and how.

use cuzk_field::{Field as _, Fr, RootGenerator};
use cuzk_ntt::Direction;
use cuzk_ntt::device::{
    DevicePlan, Elements, Error, PlanRequest, Points, QuotientArrays, QuotientForm, Scale,
};

use crate::rig::Rig;

cuzk_testkit::on_both!(refusals);

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
