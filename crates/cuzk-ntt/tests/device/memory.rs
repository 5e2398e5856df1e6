//! What plans and arrays take, and what is said where they do not fit.

use cuzk_field::{Field as _, Fr, RootGenerator, Scalar};
use cuzk_gpu_mem::{Device, GIB, Settings};
use cuzk_ntt::device::{DevicePlan, Error, PlanRequest, QuotientArrays, QuotientForm};

use crate::rig::{Rig, everything};

cuzk_testkit::on_both!(refusals_name_the_bytes, a_budget_of_twelve_gib);

/// No card has these tables free, nor the emulated one those of 2^24.
fn refusals_name_the_bytes(rig: &Rig) {
    let mut request = everything(RootGenerator::Five, if rig.is_card { 30 } else { 24 });
    request.transforms = request.transforms.repeat(4);
    let budget = rig.launcher.device().budget();
    let before = budget.state().held();
    let error = DevicePlan::new(&*rig.launcher, &rig.stream, &request).unwrap_err();
    let Error::TooLittleMemory { needed, free } = error else {
        panic!("{error}");
    };
    assert_eq!(needed, request.table_bytes());
    assert!(free < needed && free <= budget.state().limit, "{error}");
    rig.stream.synchronize().unwrap();
    rig.launcher
        .device()
        .trim(cuzk_gpu_mem::TrimPolicy::Streams)
        .unwrap();
    assert_eq!(budget.state().held(), before);
}

/// Two arrays of 2^27 and tables of 2 GiB are a prepared key's quotient; on a card it is made within that limit.
fn a_budget_of_twelve_gib(rig: &Rig) {
    let (log_n, form) = (27, QuotientForm::OddProducts);
    let request = PlanRequest::quotient(RootGenerator::Seven, log_n, form).within(2 * GIB);
    let arrays = (form.arrays() as u64 * size_of::<Fr>() as u64) << log_n;
    assert_eq!(arrays, 8 * GIB);
    assert!(arrays + request.table_bytes() <= 10 * GIB);
    if !rig.is_card {
        return;
    }
    let settings = Settings {
        limit: Some(12 * GIB),
        ..Settings::default()
    };
    let device = Device::open(&"0".parse().unwrap(), settings).unwrap();
    let launcher = cuzk_kernels::open(&device).unwrap();
    let stream = device.stream("test").unwrap();
    let plan = DevicePlan::new(&*launcher, &stream, &request).unwrap();
    let array = || device.alloc::<Fr>("array", 1 << log_n, &stream);
    let (mut a, mut b) = (array().unwrap(), array().unwrap());
    stream.fill(&mut a, 0).unwrap();
    stream.fill(&mut b, 0).unwrap();
    // One in the first row: both are L_0 = (x^n - 1) / (n (x - 1)), and x^n = -1 on the coset.
    for buffer in [&mut a, &mut b] {
        stream
            .upload_slice(&[Fr::ONE], buffer.view_mut().slice(..1))
            .unwrap();
    }
    let arrays = QuotientArrays {
        a: a.view_mut(),
        b: b.view_mut(),
        c: None,
        rows: 1,
    };
    let result = plan
        .quotient(&*launcher, &stream, log_n, form, arrays)
        .unwrap();
    assert!(array().is_err(), "a third array does not fit");
    let root = RootGenerator::Seven.root_of_unity(log_n).unwrap();
    let shift = RootGenerator::Seven.root_of_unity(log_n + 1).unwrap();
    for j in [0, 1, 77, 1 << 20, (1 << log_n) - 1] {
        let n = Fr::from(1_u64 << log_n);
        let below = n * (shift * root.pow(j as u64) - Fr::ONE);
        let value = -(Fr::ONE + Fr::ONE) * below.inverse().unwrap();
        let mut found = [Scalar::ZERO];
        let view = result.as_view().slice(j..=j);
        stream.download_slice(view, &mut found).unwrap();
        assert!(found[0] == Scalar::from(value * value), "value {j}");
    }
}
