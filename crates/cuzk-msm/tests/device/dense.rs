//! Dense sums against the host's, which are checked against `ark-ec`: bases resident and streamed, one scalar vector and
//! several, with scratch in plenty and hardly any.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuzk_field::{Affine, Fp, Fp2, Fr, Scalar};
use cuzk_gpu_mem::{Bus, Event, Stream};
use cuzk_msm::device::{DeviceCurve, Error, HostBases, MsmPlan, Pace, Patient, Scalars, Streams};
use cuzk_msm::{HostMsmPlan, HostScalars, msm};

use crate::order::{UploadsFirst, lazily};
use crate::rig::Rig;
use crate::values::{hostile_bases, hostile_scalars, multiples, scalars};

cuzk_testkit::on_both!(
    every_size,
    hostile,
    g2,
    montgomery_form,
    several_vectors,
    little_scratch,
    few_windows_at_a_time,
    streamed,
    streamed_g2,
    repeated_runs_agree,
    lengths_must_agree,
    peak_memory,
    streamed_at_a_pace,
    streamed_as_early_as_can_be,
    scratch_is_wiped_beside_the_reductions,
);

/// Terms of a sum: the emulator does a million products in Fp a second.
fn size(rig: &Rig) -> usize {
    if rig.is_card { 1 << 18 } else { 70 }
}

/// Sums in exactly the memory that the plan names.
fn run<F: DeviceCurve>(
    rig: &Rig,
    plan: &MsmPlan<F>,
    bases: &[Affine<F>],
    vectors: &[Vec<Scalar>],
) -> Vec<Affine<F>> {
    let device_bases = rig.upload(bases);
    let buffers: Vec<_> = vectors.iter().map(|vector| rig.upload(vector)).collect();
    let views: Vec<_> = buffers
        .iter()
        .map(|buffer| Scalars::Canonical(buffer.view()))
        .collect();
    let mut scratch = rig.room::<u8>(plan.footprint().device as usize);
    let result = rig
        .device()
        .host()
        .pinned("sums", plan.result_len())
        .unwrap();
    let pending = plan
        .run(
            &*rig.launcher,
            &rig.stream,
            device_bases.view(),
            &views,
            scratch.view_mut(),
            result,
        )
        .unwrap();
    pending.wait().unwrap()
}

fn run_streamed<F: DeviceCurve>(
    rig: &Rig,
    plan: &MsmPlan<F>,
    bases: &[Affine<F>],
    vectors: &[Vec<Scalar>],
) -> Vec<Affine<F>> {
    let uploads = rig.device().stream("uploads").unwrap();
    run_at_pace(rig, plan, bases, vectors, &uploads, &Patient).unwrap()
}

fn run_at_pace<F: DeviceCurve>(
    rig: &Rig,
    plan: &MsmPlan<F>,
    bases: &[Affine<F>],
    vectors: &[Vec<Scalar>],
    uploads: &Stream,
    pace: &dyn Pace,
) -> Result<Vec<Affine<F>>, Error> {
    let buffers: Vec<_> = vectors.iter().map(|vector| rig.upload(vector)).collect();
    let views: Vec<_> = buffers
        .iter()
        .map(|buffer| Scalars::Canonical(buffer.view()))
        .collect();
    let mut scratch = rig.room::<u8>(plan.footprint().device as usize);
    let host = rig.device().host();
    let result = host.pinned("sums", plan.result_len()).unwrap();
    let pinned = host.pinned_from("bases", bases).unwrap();
    // Pieces that end within batches.
    let (front, back) = pinned.split_at(bases.len() / 3);
    uploads
        .scope(|scope| {
            let pending = plan.run_streamed(
                &*rig.launcher,
                &rig.stream,
                HostBases {
                    pieces: &[front, back],
                    uploads: scope,
                    pace,
                    bus: &Bus::new(),
                },
                &views,
                scratch.view_mut(),
                result,
            )?;
            pending.wait()
        })
        .unwrap()
}

#[track_caller]
fn check<F: DeviceCurve>(rig: &Rig, bases: &[Affine<F>], vector: &[Scalar], what: &str) {
    let expected = msm(bases, vector).unwrap().to_affine();
    let twin = HostMsmPlan::new(bases.len(), 1);
    let found = twin.run(bases, &[HostScalars::Canonical(vector)]);
    assert_eq!(found.unwrap(), [expected], "{what}, on the host");
    let (info, n) = (rig.device().info(), bases.len());
    let streams = Arc::new(Streams::new(rig.device()).unwrap());
    let plan = MsmPlan::resident_beside(Some(&streams), info, n, 1, u64::MAX).unwrap();
    let found = run(rig, &plan, bases, &[vector.to_vec()]);
    assert_eq!(found, [expected], "{what}, n {n}");
    if rig.is_card {
        let plan = MsmPlan::resident(info, n, 1, u64::MAX).unwrap();
        let found = run(rig, &plan, bases, &[vector.to_vec()]);
        assert_eq!(found, [expected], "{what}, n {n}, on one stream");
    }
}

fn every_size(rig: &Rig) {
    let sizes: &[usize] = if rig.is_card {
        &[
            0, 1, 2, 3, 31, 32, 33, 127, 129, 511, 512, 513, 1024, 8191, 8192, 8193, 14_335,
            14_336, 14_337, 28_673, 131_071, 131_073, 262_144,
        ]
    } else {
        &[0, 1, 2, 33, 300]
    };
    let most = sizes.iter().copied().max().unwrap();
    let bases = multiples::<Fp>(most);
    let all = scalars(most, 1);
    for &n in sizes {
        check(rig, &bases[..n], &all[..n], "random");
    }
}

fn hostile(rig: &Rig) {
    let n = size(rig);
    let bases = multiples::<Fp>(n);
    for (what, vector) in hostile_scalars(n) {
        check(rig, &bases, &vector, what);
    }
    let n = if rig.is_card { 20_000 } else { 20 };
    let random = scalars(n, 4);
    for (what, bases) in hostile_bases::<Fp>(n) {
        check(rig, &bases, &random, what);
        check(
            rig,
            &bases,
            &vec![random[0]; n],
            &format!("{what}, one scalar"),
        );
        check(rig, &bases, &vec![Scalar::ONE; n], &format!("{what}, ones"));
    }
}

fn g2(rig: &Rig) {
    let n = if rig.is_card { 1 << 16 } else { 20 };
    let bases = multiples::<Fp2>(n);
    check(rig, &bases, &scalars(n, 3), "random");
    let n = if rig.is_card { 5000 } else { 8 };
    for (what, vector) in hostile_scalars(n) {
        if rig.is_card || what == "all equal" {
            check(rig, &bases[..n], &vector, what);
        }
    }
    for (what, bases) in hostile_bases::<Fp2>(n) {
        check(rig, &bases, &vec![Scalar::from(6); n], what);
    }
}

fn montgomery_form(rig: &Rig) {
    let n = size(rig) / 2;
    let bases = multiples::<Fp>(n);
    let vector = scalars(n, 5);
    let elements: Vec<Fr> = vector.iter().map(|scalar| Fr::from(*scalar)).collect();
    let plan = MsmPlan::<Fp>::resident(rig.device().info(), n, 1, u64::MAX).unwrap();
    let (device_bases, buffer) = (rig.upload(&bases), rig.upload(&elements));
    let mut scratch = rig.room::<u8>(plan.footprint().device as usize);
    let result = rig
        .device()
        .host()
        .pinned("sums", plan.result_len())
        .unwrap();
    let pending = plan.run(
        &*rig.launcher,
        &rig.stream,
        device_bases.view(),
        &[Scalars::Montgomery(buffer.view())],
        scratch.view_mut(),
        result,
    );
    let found = pending.unwrap().wait().unwrap();
    assert_eq!(found, [msm(&bases, &vector).unwrap().to_affine()]);
    let twin = HostMsmPlan::<Fp>::new(n, 2);
    let both = [
        HostScalars::Montgomery(&elements),
        HostScalars::Canonical(&vector),
    ];
    let on_host = twin.run(&bases, &both).unwrap();
    assert_eq!(on_host, [found[0], found[0]]);
    assert!(twin.run(&bases, &both[..1]).is_err());
    assert!(twin.run(&bases[1..], &both).is_err());
}

/// Vectors for one list of bases.
fn vectors(n: usize) -> Vec<Vec<Scalar>> {
    vec![scalars(n, 1), vec![Scalar::ONE; n], scalars(n, 2)]
}

fn expected<F: DeviceCurve>(bases: &[Affine<F>], vectors: &[Vec<Scalar>]) -> Vec<Affine<F>> {
    let sum = |vector: &Vec<Scalar>| msm(bases, vector).unwrap().to_affine();
    vectors.iter().map(sum).collect()
}

fn several_vectors(rig: &Rig) {
    let n = size(rig) / 3;
    let bases = multiples::<Fp>(n);
    let vectors = vectors(n);
    let info = rig.device().info();
    let streams = Arc::new(Streams::new(rig.device()).unwrap());
    for streams in [None, Some(&streams)] {
        let plan = MsmPlan::resident_beside(streams, info, n, vectors.len(), u64::MAX).unwrap();
        assert_eq!(
            run(rig, &plan, &bases, &vectors),
            expected(&bases, &vectors)
        );
    }
    let plan = MsmPlan::<Fp>::resident(rig.device().info(), n, 0, u64::MAX).unwrap();
    assert_eq!(run(rig, &plan, &bases, &[]), []);
}

/// GP-03: the same sums in less and less memory, until the plan says that it cannot be.
fn little_scratch(rig: &Rig) {
    let n = if rig.is_card { 1 << 17 } else { 40 };
    let bases = multiples::<Fp>(n);
    let vectors = &vectors(n)[..2];
    let expected = expected(&bases, vectors);
    let info = rig.device().info();
    let plan = MsmPlan::<Fp>::resident(info, n, 2, u64::MAX).unwrap();
    assert_eq!(plan.slabs(), (1, 1));
    let mut limit = plan.footprint().device - 1;
    let mut cuts = Vec::new();
    let needed = loop {
        match MsmPlan::resident(info, n, 2, limit) {
            Ok(plan) => {
                assert!(plan.footprint().device <= limit);
                assert_eq!(run(rig, &plan, &bases, vectors), expected, "{limit}");
                cuts.push(plan.slabs());
                limit = plan.footprint().device * 2 / 5;
            }
            Err(Error::TooLittleScratch { needed, .. }) => break needed,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(needed as u64 > limit, "{needed} bytes, of {limit}");
    assert!(cuts.iter().any(|(slabs, _)| *slabs > 1), "{cuts:?}");
}

/// Slabs of some windows each, from planes that the first of a vector makes.
fn few_windows_at_a_time(rig: &Rig) {
    let n = size(rig) / 2;
    let bases = multiples::<Fp>(n);
    let vectors = vectors(n);
    let expected = expected(&bases, &vectors);
    let info = rig.device().info();
    let streams = Arc::new(Streams::new(rig.device()).unwrap());
    for (windows, list) in [(24, 4 * n), (30, 11 * n)] {
        let sizes = [n, vectors.len()];
        let plan =
            MsmPlan::resident_tuned(Some(&streams), info, sizes, windows, list, u64::MAX).unwrap();
        assert!(plan.slabs().0 >= 3 * vectors.len());
        assert_eq!(
            run(rig, &plan, &bases, &vectors),
            expected,
            "{windows} windows"
        );
    }
}

fn streamed(rig: &Rig) {
    let n = size(rig);
    let bases = multiples::<Fp>(n);
    let vectors = &vectors(n)[..2];
    let expected = expected(&bases, vectors);
    let info = rig.device().info();
    let bytes = |points: usize| points * size_of::<Affine<Fp>>();
    let streams = Arc::new(Streams::new(rig.device()).unwrap());
    for (streams, first, largest) in [
        (None, n, n),
        (None, n / 10, n / 2),
        (Some(&streams), n / 10, n / 2),
        (Some(&streams), n / 5, n / 5),
    ] {
        let sizes = [bytes(first), bytes(largest)];
        let plan = MsmPlan::streamed_in(streams, info, n, 2, sizes, u64::MAX).unwrap();
        assert_eq!(
            run_streamed(rig, &plan, &bases, vectors),
            expected,
            "batches of {first} to {largest}"
        );
    }
    let n = size(rig) / 2;
    let hostile = &hostile_bases::<Fp>(n)[2..3];
    for (what, bases) in hostile {
        let sizes = [bytes(n / 4); 2];
        let plan = MsmPlan::streamed_in(Some(&streams), info, n, 1, sizes, u64::MAX).unwrap();
        let vector = vec![Scalar::from(3); n];
        let sum = msm(bases, &vector).unwrap().to_affine();
        assert_eq!(run_streamed(rig, &plan, bases, &[vector]), [sum], "{what}");
    }
    let plan = MsmPlan::streamed(info, 0, 1, u64::MAX).unwrap();
    let empty: &[Affine<Fp>] = &[];
    assert_eq!(
        run_streamed(rig, &plan, empty, &[vec![]]),
        [Affine::INFINITY]
    );
}

/// Asked that often, it says no.
struct Until(usize, AtomicUsize);

impl Pace for Until {
    fn reach(&self, step: &Event) -> Result<(), Error> {
        if self.1.fetch_add(1, Ordering::Relaxed) == self.0 {
            return Err(Error::Stopped);
        }
        Patient.reach(step)
    }
}

/// The host asks before it is too far ahead of the device, and stops when told; the memory serves again.
fn streamed_at_a_pace(rig: &Rig) {
    let n = size(rig);
    let bases = multiples::<Fp>(n);
    let vectors = [scalars(n, 9)];
    let expected = expected(&bases, &vectors);
    let info = rig.device().info();
    let sizes = [n / 20 * size_of::<Affine<Fp>>(); 2];
    let streams = Arc::new(Streams::new(rig.device()).unwrap());
    let uploads = rig.device().stream("uploads").unwrap();
    for streams in [None, Some(&streams)] {
        let plan = MsmPlan::streamed_in(streams, info, n, 1, sizes, u64::MAX).unwrap();
        let until = Until(3, AtomicUsize::new(0));
        let stopped = run_at_pace(rig, &plan, &bases, &vectors, &uploads, &until);
        assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
        assert_eq!(until.1.into_inner(), 4);
        let always = Until(usize::MAX, AtomicUsize::new(0));
        let sums = run_at_pace(rig, &plan, &bases, &vectors, &uploads, &always).unwrap();
        assert_eq!(sums, expected);
        assert!(
            always.1.into_inner() >= 20 - 8,
            "half of a thousand launches"
        );
    }
}

/// Copies come before all else that may run: none overwrites a batch that is still to be computed with.
fn streamed_as_early_as_can_be(rig: &Rig) {
    let n = size(rig);
    let bases = multiples::<Fp>(n);
    let vectors = [scalars(n, 11)];
    let expected = expected(&bases, &vectors);
    let sizes = [n / 7 * size_of::<Affine<Fp>>(); 2];
    let streams = Arc::new(Streams::new(rig.device()).unwrap());
    let uploads = rig.device().stream("uploads").unwrap();
    for streams in [None, Some(&streams)] {
        let info = rig.device().info();
        let plan = MsmPlan::streamed_in(streams, info, n, 1, sizes, u64::MAX).unwrap();
        let _lazy = lazily(rig);
        let pace = UploadsFirst(&uploads);
        let sums = run_at_pace(rig, &plan, &bases, &vectors, &uploads, &pace);
        assert_eq!(sums.unwrap(), expected);
    }
}

/// What is wiped beside the reductions is zero in the end, and no sum is touched by it.
fn scratch_is_wiped_beside_the_reductions(rig: &Rig) {
    let n = size(rig);
    let bases = multiples::<Fp>(n);
    let vector = scalars(n, 10);
    let expected = expected(&bases, std::slice::from_ref(&vector));
    let streams = Arc::new(Streams::new(rig.device()).unwrap());
    let (device_bases, scalars) = (rig.upload(&bases), rig.upload(&vector));
    // Few windows have buckets enough, on a card, that their reduction works in the pipeline's memory.
    let counts: &[u32] = if rig.is_card { &[12, 17, 30] } else { &[32] };
    for &windows in counts {
        let (info, all) = (rig.device().info(), u64::MAX);
        let plan =
            |streams| MsmPlan::resident_tuned(streams, info, [n, 1], windows, 4 * n, all).unwrap();
        for (plan, wipes) in [
            (plan(Some(&streams)).wiping_at_least(1), true),
            (plan(Some(&streams)), false),
            (plan(None).wiping_at_least(1), false),
        ] {
            let bytes = plan.footprint().device as usize;
            let mut scratch = rig.room::<u8>(bytes);
            let result = rig.device().host().pinned("sums", plan.result_len());
            let mut lent = scratch
                .view_mut()
                .lend(&plan.streams_beside(&rig.stream))
                .unwrap();
            let lazy = lazily(rig);
            let pending = plan.run_lent(
                &*rig.launcher,
                &rig.stream,
                device_bases.view(),
                &[Scalars::Canonical(scalars.view())],
                lent.view_mut(),
                result.unwrap(),
            );
            if lazy.is_some() && wipes {
                // On an emulated device that runs no more than it must.
                let wiped = streams.all()[1].record().unwrap();
                rig.stream.record().unwrap().wait().unwrap();
                assert!(
                    !wiped.is_reached().unwrap(),
                    "the stream waits for the wipe"
                );
            }
            drop((lent, lazy));
            let pending = pending.unwrap();
            let wiped_from = pending.wiped_from();
            assert_eq!(pending.wait().unwrap(), expected, "{windows} windows");
            assert_eq!(wiped_from.is_some(), wipes);
            let Some(from) = wiped_from else {
                continue;
            };
            assert!(from < bytes, "{from} of {bytes}");
            let part = (bytes - from).min(1 << 20);
            for start in [from, bytes - part] {
                let mut found = vec![1_u8; part];
                let view = scratch.view().slice(start..start + part);
                rig.stream.download_slice(view, &mut found).unwrap();
                assert!(found.iter().all(|byte| *byte == 0), "{windows} windows");
            }
        }
    }
}

fn streamed_g2(rig: &Rig) {
    let n = if rig.is_card { 20_000 } else { 30 };
    let bases = multiples::<Fp2>(n);
    let vector = scalars(n, 8);
    let sizes = [n / 3 * size_of::<Affine<Fp2>>(); 2];
    let info = rig.device().info();
    let plan = MsmPlan::streamed_in(None, info, n, 1, sizes, u64::MAX).unwrap();
    let sum = msm(bases.as_slice(), &vector).unwrap().to_affine();
    assert_eq!(run_streamed(rig, &plan, &bases, &[vector]), [sum]);
}

fn repeated_runs_agree(rig: &Rig) {
    let (n, times) = if rig.is_card { (1 << 16, 100) } else { (40, 2) };
    let bases = multiples::<Fp>(n);
    let vectors = [scalars(n, 6)];
    let plan = MsmPlan::resident(rig.device().info(), n, 1, u64::MAX).unwrap();
    let first = run(rig, &plan, &bases, &vectors);
    for _ in 1..times {
        assert_eq!(run(rig, &plan, &bases, &vectors), first);
    }
}

fn lengths_must_agree(rig: &Rig) {
    let plan = MsmPlan::<Fp>::resident(rig.device().info(), 5, 1, u64::MAX).unwrap();
    let (bases, short) = (rig.upload(&multiples::<Fp>(5)), rig.upload(&scalars(4, 0)));
    let mut scratch = rig.room::<u8>(plan.footprint().device as usize);
    let host = rig.device().host();
    let mut attempt = |bases, scalars: &[Scalars<'_>], result_len| {
        let result = host.pinned("sums", result_len).unwrap();
        let (launcher, stream) = (&*rig.launcher, &rig.stream);
        let outcome = plan.run(launcher, stream, bases, scalars, scratch.view_mut(), result);
        outcome.unwrap_err().to_string()
    };
    let scalars = Scalars::Canonical(short.view());
    let len = plan.result_len();
    assert_eq!(
        attempt(bases.view(), &[scalars], len),
        "scalars has 4 elements, the plan is for 5"
    );
    assert_eq!(
        attempt(bases.view().slice(1..), &[scalars], len),
        "bases has 4 elements, the plan is for 5"
    );
    assert_eq!(
        attempt(bases.view(), &[], len),
        "scalar vectors has 0 elements, the plan is for 1"
    );
    assert!(MsmPlan::<Fp>::resident(rig.device().info(), 1 << 30, 1, u64::MAX).is_err());
}

/// Bases, scalars and the scratch that the plan names are all that a device holds; streamed bases are in the scratch.
fn peak_memory(rig: &Rig) {
    let n = size(rig);
    let bases = multiples::<Fp>(n);
    let vectors = [scalars(n, 4)];
    let info = rig.device().info();
    let inputs = |points: usize| {
        let bytes = points * size_of::<Affine<Fp>>() + n * size_of::<Scalar>();
        bytes as u64
    };
    let peak = || rig.device().budget().state().peak_committed;
    let sizes = [n / 4 * size_of::<Affine<Fp>>(); 2];
    let streamed = MsmPlan::streamed_in(None, info, n, 1, sizes, u64::MAX).unwrap();
    assert!(streamed.footprint().device >= inputs(n / 2) - inputs(0));
    run_streamed(rig, &streamed, &bases, &vectors);
    let first = inputs(0) + streamed.footprint().device;
    assert_eq!(peak(), first);
    // What is freed counts until it is seen to be.
    let plan = MsmPlan::resident(info, n, 1, u64::MAX).unwrap();
    run(rig, &plan, &bases, &vectors);
    let second = inputs(n) + plan.footprint().device;
    assert!((second..=first + second).contains(&peak()), "{}", peak());
}
