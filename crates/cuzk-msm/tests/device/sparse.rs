//! Sums over witnesses of zeros, ones and a few others, for several base sets, against the host's.

use std::sync::Arc;

use cuzk_field::{Affine, Fp, Fp2, Scalar};
use cuzk_gpu_mem::{Bus, DeviceBuf, Stream};
use cuzk_msm::device::{
    BaseSet, Batches, DeviceCurve, Error, HostBases, Members, Pace, PackTarget, PackedWitness,
    Patient, Scalars, SparsePlan, StreamedSparsePlan, Streams, TermCounts, bitmap,
    count_scratch_bytes, count_terms, count_terms_in, count_terms_in_scratch_bytes, pack, tiles,
};
use cuzk_msm::{
    HostBaseSet, HostMembers, HostScalars, HostSparsePlan, HostWitness, count_terms_on_host, msm,
};

use crate::order::{UploadsFirst, lazily};
use crate::rig::Rig;
use crate::values::{hostile_scalars, multiples, scalars};

cuzk_testkit::on_both!(
    densities,
    witnesses,
    g2,
    many_ones,
    little_scratch,
    streamed,
    streamed_as_early_as_can_be,
    streamed_several_witnesses,
    streamed_g2,
);

struct Witness {
    bits: DeviceBuf<u64>,
    ranks: DeviceBuf<u32>,
    full: DeviceBuf<Scalar>,
}

impl Witness {
    fn pack(rig: &Rig, values: &[Scalar]) -> Self {
        let buffer = rig.upload(values);
        let words = values.len().div_ceil(32);
        let full = values.iter().filter(|v| !v.is_zero() && !v.is_one());
        let mut witness = Self {
            bits: rig.room(words),
            ranks: rig.room(words),
            full: rig.room(full.count()),
        };
        let mut full_count = rig.room(1);
        let mut scratch = rig.room(tiles(values.len()));
        let target = PackTarget {
            bits: witness.bits.view_mut(),
            ranks: witness.ranks.view_mut(),
            full: witness.full.view_mut(),
            full_count: full_count.view_mut(),
        };
        let scalars = Scalars::Canonical(buffer.view());
        let scratch = scratch.view_mut();
        pack(&*rig.launcher, &rig.stream, scalars, target, scratch).unwrap();
        witness
    }

    fn view(&self) -> PackedWitness<'_> {
        PackedWitness {
            bits: self.bits.view(),
            ranks: self.ranks.view(),
            full: self.full.view(),
        }
    }
}

/// Which variables have a base.
type Density<'a> = &'a dyn Fn(usize) -> bool;

/// Base sets one after another in one array, on host and device.
struct Sets<F: DeviceCurve> {
    bases: Vec<Affine<F>>,
    first_bases: Vec<u32>,
    bitmaps: Vec<(DeviceBuf<u32>, DeviceBuf<u32>)>,
    members: Vec<Vec<usize>>,
}

impl<F: DeviceCurve> Sets<F> {
    fn new(rig: &Rig, variables: usize, densities: &[Density<'_>]) -> Self {
        let members: Vec<Vec<usize>> = densities
            .iter()
            .map(|density| (0..variables).filter(|i| density(*i)).collect())
            .collect();
        let mut first_bases = Vec::new();
        let mut first = 0;
        for members in &members {
            first_bases.push(first);
            first += members.len() as u32;
        }
        let bitmaps = densities.iter().map(|density| {
            let (words, ranks) = bitmap((0..variables).map(density));
            (rig.upload(&words), rig.upload(&ranks))
        });
        Self {
            bases: multiples(first as usize),
            first_bases,
            bitmaps: bitmaps.collect(),
            members,
        }
    }

    fn views(&self) -> Vec<BaseSet<'_>> {
        let sets = self.bitmaps.iter().zip(&self.first_bases);
        sets.map(|((words, ranks), first_base)| BaseSet {
            members: Members::Bitmap {
                words: words.view(),
                ranks: ranks.view(),
            },
            first_base: *first_base,
        })
        .collect()
    }

    fn expected(&self, values: &[Scalar]) -> Vec<Affine<F>> {
        let sets = self.members.iter().zip(&self.first_bases);
        sets.map(|(members, first)| {
            let first = *first as usize;
            let picked: Vec<Scalar> = members.iter().map(|i| values[*i]).collect();
            let bases = &self.bases[first..first + members.len()];
            msm(bases, &picked).unwrap().to_affine()
        })
        .collect()
    }
}

fn counts(rig: &Rig, witness: &Witness, sets: &[BaseSet<'_>]) -> Vec<TermCounts> {
    let mut scratch = rig.room::<u8>(count_scratch_bytes(sets.len()));
    let pinned = rig
        .device()
        .host()
        .pinned("counts", 2 * sets.len())
        .unwrap();
    let (launcher, stream) = (&*rig.launcher, &rig.stream);
    let scratch = scratch.view_mut();
    let pending = count_terms(launcher, stream, witness.view(), sets, scratch, pinned);
    pending.unwrap().wait().unwrap()
}

fn run<F: DeviceCurve>(
    rig: &Rig,
    plan: &SparsePlan<F>,
    bases: &[Affine<F>],
    witness: &Witness,
    sets: &[BaseSet<'_>],
) -> Vec<Affine<F>> {
    let bases = rig.upload(bases);
    let mut scratch = rig.room::<u8>(plan.footprint().device as usize);
    let result = rig
        .device()
        .host()
        .pinned("sums", plan.result_len())
        .unwrap();
    let pending = plan.run(
        &*rig.launcher,
        &rig.stream,
        bases.view(),
        witness.view(),
        sets,
        scratch.view_mut(),
        result,
    );
    pending.unwrap().wait().unwrap()
}

#[track_caller]
fn check<F: DeviceCurve>(rig: &Rig, sets: &Sets<F>, values: &[Scalar], what: &str) {
    let witness = Witness::pack(rig, values);
    let views = sets.views();
    let counts = counts(rig, &witness, &views);
    let (info, n) = (rig.device().info(), values.len());
    let streams = Arc::new(Streams::new(rig.device()).unwrap());
    let plan = SparsePlan::beside(Some(&streams), info, n, &counts, u64::MAX).unwrap();
    let found = run(rig, &plan, &sets.bases, &witness, &views);
    assert_eq!(found, sets.expected(values), "{what}, {counts:?}");
    assert_eq!(
        on_host(rig, sets, values, &witness, &counts),
        found,
        "{what}"
    );
    if rig.is_card {
        let plan = SparsePlan::new(info, n, &counts, u64::MAX).unwrap();
        let found = run(rig, &plan, &sets.bases, &witness, &views);
        assert_eq!(found, sets.expected(values), "{what}, on one stream");
    }
}

/// The sums of the plan on the CPU, from a witness packed there, which is that of the device.
fn on_host<F: DeviceCurve>(
    rig: &Rig,
    sets: &Sets<F>,
    values: &[Scalar],
    witness: &Witness,
    counts: &[TermCounts],
) -> Vec<Affine<F>> {
    let packed = HostWitness::pack(HostScalars::Canonical(values)).unwrap();
    assert_eq!(packed.bits(), rig.download(&witness.bits));
    assert_eq!(packed.ranks(), rig.download(&witness.ranks));
    assert_eq!(packed.full(), rig.download(&witness.full));
    let words: Vec<Vec<u32>> = sets
        .bitmaps
        .iter()
        .map(|(words, _)| rig.download(words))
        .collect();
    let views = words.iter().zip(&sets.first_bases);
    let views: Vec<HostBaseSet<'_>> = views
        .map(|(words, first_base)| HostBaseSet {
            members: HostMembers::Bitmap(words),
            first_base: *first_base,
        })
        .collect();
    assert_eq!(count_terms_on_host(&packed, &views), counts);
    let plan = HostSparsePlan::<F>::new(values.len(), counts);
    let mut wrong = counts.to_vec();
    wrong[0].ones += 1;
    let refused = HostSparsePlan::<F>::new(values.len(), &wrong);
    assert!(refused.run(&sets.bases, &packed, &views).is_err());
    plan.run(&sets.bases, &packed, &views).unwrap()
}

/// 1% of full size, half of the others one.
fn mostly_bits(n: usize) -> Vec<Scalar> {
    let random = scalars(n, 7);
    (0..n)
        .map(|i| match i % 100 {
            0 => random[i],
            i if i % 2 == 0 => Scalar::ONE,
            _ => Scalar::ZERO,
        })
        .collect()
}

fn densities(rig: &Rig) {
    let n = if rig.is_card { 100_000 } else { 130 };
    let values = mostly_bits(n);
    let sets: [Density<'_>; 5] = [
        &|_| true,
        &|_| false,
        &|i| i % 2 == 0,
        &|i| i % 61 < 40,
        &|i| i > 40,
    ];
    check::<Fp>(rig, &Sets::new(rig, n, &sets), &values, "mostly bits");
    // A range is the same as its bitmap.
    let witness = Witness::pack(rig, &values);
    let ranges = [BaseSet {
        members: Members::Range(41..n),
        first_base: 0,
    }];
    let counts = counts(rig, &witness, &ranges);
    let plan = SparsePlan::new(rig.device().info(), n, &counts, u64::MAX).unwrap();
    let bases = multiples::<Fp>(n - 41);
    assert_eq!(
        run(rig, &plan, &bases, &witness, &ranges),
        [msm(&bases, &values[41..]).unwrap().to_affine()]
    );
    let plan = SparsePlan::<Fp>::new(rig.device().info(), n, &[], u64::MAX).unwrap();
    assert_eq!(run(rig, &plan, &bases, &witness, &[]), []);
}

fn witnesses(rig: &Rig) {
    let n = if rig.is_card { 20_000 } else { 34 };
    let sets = Sets::<Fp>::new(rig, n, &[&|i| i > 3, &|i| i % 3 == 0]);
    for (what, values) in hostile_scalars(n) {
        check(rig, &sets, &values, what);
    }
}

fn g2(rig: &Rig) {
    let n = if rig.is_card { 20_000 } else { 60 };
    let sets = Sets::<Fp2>::new(rig, n, &[&|i| i % 4 == 0]);
    check(rig, &sets, &mostly_bits(n), "mostly bits");
}

/// So many ones that they are lists of their own.
fn many_ones(rig: &Rig) {
    if rig.is_card {
        let n = 3 << 20;
        let values: Vec<Scalar> = mostly_bits(n);
        let sets = Sets::<Fp>::new(rig, n, &[&|_| true, &|i| i % 3 == 0]);
        check(rig, &sets, &values, "many ones");
    }
}

fn little_scratch(rig: &Rig) {
    let n = if rig.is_card { 50_000 } else { 40 };
    let values = mostly_bits(n);
    let sets = Sets::<Fp>::new(rig, n, &[&|_| true, &|i| i % 2 == 0]);
    let witness = Witness::pack(rig, &values);
    let views = sets.views();
    let counts = counts(rig, &witness, &views);
    let info = rig.device().info();
    let mut limit = u64::MAX;
    let mut plans = 0;
    while let Ok(plan) = SparsePlan::<Fp>::new(info, n, &counts, limit) {
        assert!(plan.footprint().device <= limit);
        let found = run(rig, &plan, &sets.bases, &witness, &views);
        assert_eq!(found, sets.expected(&values), "{limit}");
        limit = plan.footprint().device / 2;
        plans += 1;
    }
    assert!(plans > 1);
}

/// Sums over bases in two pieces on the host, with witnesses over the same sets.
fn run_streamed<F: DeviceCurve>(
    rig: &Rig,
    sets: &Sets<F>,
    batches: &Batches,
    witnesses: &[Witness],
    limit: u64,
) -> cuzk_msm::device::Result<Vec<Affine<F>>> {
    let uploads = rig.device().stream("uploads").unwrap();
    run_at_pace(rig, sets, batches, witnesses, limit, &uploads, &Patient)
}

fn run_at_pace<F: DeviceCurve>(
    rig: &Rig,
    sets: &Sets<F>,
    batches: &Batches,
    witnesses: &[Witness],
    limit: u64,
    uploads: &Stream,
    pace: &dyn Pace,
) -> cuzk_msm::device::Result<Vec<Affine<F>>> {
    let (launcher, stream, host) = (&*rig.launcher, &rig.stream, rig.device().host());
    let views = sets.views();
    let packed: Vec<PackedWitness<'_>> = witnesses.iter().map(Witness::view).collect();
    let variables = witnesses[0].bits.len() * 32;
    let sums = views.len() * packed.len();
    let bytes = count_terms_in_scratch_bytes(batches, sums);
    let mut scratch = rig.room::<u8>(bytes);
    let counts = host.pinned("counts", 2 * sums * batches.len()).unwrap();
    let scratch = scratch.view_mut();
    let pending = count_terms_in(launcher, stream, batches, &packed, &views, scratch, counts);
    let counts = pending?.wait()?;
    let info = rig.device().info();
    let plan =
        StreamedSparsePlan::<F>::new(info, variables, batches, packed.len(), &counts, limit)?;
    assert!(plan.footprint().device <= limit);
    let mut scratch = rig.room::<u8>(plan.footprint().device as usize);
    let result = host.pinned("sums", plan.result_len()).unwrap();
    let pinned = host.pinned_from("bases", &sets.bases).unwrap();
    let (front, back) = pinned.split_at(sets.bases.len() / 3);
    let found = uploads.scope(|scope| {
        plan.run(
            launcher,
            stream,
            HostBases {
                pieces: &[front, back],
                uploads: scope,
                pace,
                bus: &Bus::new(),
            },
            &packed,
            &views,
            scratch.view_mut(),
            result,
        )?
        .wait()
    });
    found.unwrap()
}

#[track_caller]
fn check_streamed<F: DeviceCurve>(
    rig: &Rig,
    sets: &Sets<F>,
    [first, largest]: [usize; 2],
    vectors: &[&[Scalar]],
    what: &str,
) {
    let batches = Batches::new(sets.bases.len(), first, largest);
    let witnesses: Vec<Witness> = vectors.iter().map(|v| Witness::pack(rig, v)).collect();
    let found = run_streamed(rig, sets, &batches, &witnesses, u64::MAX).unwrap();
    let expected: Vec<Affine<F>> = vectors.iter().flat_map(|v| sets.expected(v)).collect();
    assert_eq!(found, expected, "{what}, {} batches", batches.len());
}

/// Copies come before all else that may run: none overwrites a batch that is still to be computed with.
fn streamed_as_early_as_can_be(rig: &Rig) {
    let n = 60;
    let sets = Sets::<Fp>::new(rig, n, &[&|i| i % 3 != 1, &|i| i > 20]);
    let values = mostly_bits(n);
    let witness = [Witness::pack(rig, &values)];
    let uploads = rig.device().stream("uploads").unwrap();
    let sizes = sets.bases.len() / 6;
    let batches = Batches::new(sets.bases.len(), sizes, sizes);
    let _lazy = lazily(rig);
    let pace = UploadsFirst(&uploads);
    let found = run_at_pace(rig, &sets, &batches, &witness, u64::MAX, &uploads, &pace);
    assert_eq!(found.unwrap(), sets.expected(&values));
}

/// Batches that end within sets and within words of a witness, and beyond all sets; every kind of witness.
fn streamed(rig: &Rig) {
    let n = if rig.is_card { 30_000 } else { 70 };
    let sets = Sets::<Fp>::new(rig, n, &[&|i| i % 3 != 1, &|_| false, &|i| i > 40]);
    let half = sets.bases.len() / 2;
    let values = mostly_bits(n);
    for sizes in [[half * 2, half * 2], [half / 4, half], [half / 5 + 1; 2]] {
        check_streamed(rig, &sets, sizes, &[&values], "mostly bits");
    }
    for (what, values) in hostile_scalars(n) {
        if rig.is_card || ["all one", "0, 1, -1", "all zero"].contains(&what) {
            check_streamed(rig, &sets, [half / 3, half], &[&values], what);
        }
    }
    // As little scratch as works.
    let batches = Batches::new(sets.bases.len(), half / 3, half);
    let witness = [Witness::pack(rig, &values)];
    let mut limit = 64 << 20;
    let mut runs = 0;
    loop {
        match run_streamed(rig, &sets, &batches, &witness, limit) {
            Ok(found) => assert_eq!(found, sets.expected(&values), "{limit}"),
            Err(Error::TooLittleScratch { .. }) => break,
            Err(error) => panic!("{error}"),
        }
        runs += 1;
        limit /= 4;
    }
    assert!(runs > 1, "{limit}");
    let empty = Sets::<Fp>::new(rig, n, &[]);
    check_streamed(rig, &empty, [5, 5], &[&values], "no sets");
}

fn streamed_several_witnesses(rig: &Rig) {
    let n = if rig.is_card { 20_000 } else { 40 };
    let sets = Sets::<Fp>::new(rig, n, &[&|i| i > 3, &|i| i % 3 == 0]);
    let (bits, random) = (mostly_bits(n), scalars(n, 3));
    let zeros = vec![Scalar::ZERO; n];
    let third = sets.bases.len() / 3;
    let vectors: [&[Scalar]; 3] = [&bits, &random, &zeros];
    check_streamed(rig, &sets, [third; 2], &vectors, "three witnesses");
}

fn streamed_g2(rig: &Rig) {
    let n = if rig.is_card { 10_000 } else { 40 };
    let sets = Sets::<Fp2>::new(rig, n, &[&|i| i % 4 == 0, &|i| i > n / 2]);
    check_streamed(rig, &sets, [n / 4, n / 3], &[&mostly_bits(n)], "G2");
}
