//! Buckets of every length and with every kind of pair, in one slab and in many.

use cuzk_field::{Affine, Fp, Fp2, Xyzz};
use cuzk_msm::device::DeviceCurve;
use cuzk_msm::device::accumulate::{AccumulatePlan, Existing, Pipeline, PipelineShape, Streams};
use cuzk_testkit::Words;

use crate::rig::Rig;
use crate::values::multiples;

cuzk_testkit::on_both!(
    lengths,
    hot_buckets,
    exceptional_pairs,
    sums_that_are_there,
    slabs,
    wild_entries,
    g2_lengths,
    g2_exceptional_pairs,
    g2_slabs_onto_sums,
    repeated_runs_agree,
    pipeline,
);

const NEGATE: u32 = 1 << 31;

/// A sorted list.
#[derive(Clone)]
struct Sorted {
    entries: Vec<u32>,
    offsets: Vec<u32>,
}

impl Sorted {
    fn new(lengths: &[usize], mut entry: impl FnMut() -> u32) -> Self {
        let mut sorted = Self {
            entries: Vec::new(),
            offsets: vec![0],
        };
        for &length in lengths {
            sorted.entries.extend((0..length).map(|_| entry()));
            sorted.offsets.push(sorted.entries.len() as u32);
        }
        sorted
    }

    fn buckets(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Each bucket's sum, by one addition after another.
    fn expected<F: DeviceCurve>(
        &self,
        bases: &[Affine<F>],
        onto: Option<&[Affine<F>]>,
    ) -> Vec<Affine<F>> {
        let sums: Vec<Xyzz<F>> = (0..self.buckets())
            .map(|k| {
                let mut sum = onto.map_or(Xyzz::INFINITY, |sums| Xyzz::from(sums[k]));
                let range = self.offsets[k] as usize..self.offsets[k + 1] as usize;
                for &entry in &self.entries[range] {
                    let base = bases.get((entry & !NEGATE) as usize);
                    let base = base.copied().unwrap_or(Affine::INFINITY);
                    sum.add_affine(&if entry & NEGATE == 0 { base } else { -base });
                }
                sum
            })
            .collect();
        Xyzz::normalize_all(&sums)
    }
}

/// Runs a plan; `onto` are the sums that are there.
fn run<F: DeviceCurve>(
    rig: &Rig,
    plan: &AccumulatePlan<F>,
    bases: &[Affine<F>],
    sorted: &Sorted,
    onto: Option<&[Affine<F>]>,
) -> Vec<Affine<F>> {
    let (existing, mut sums) = match onto {
        Some(sums) => (Existing::AddTo, rig.upload(sums)),
        None => (Existing::Replace, rig.room(sorted.buckets())),
    };
    let bases = rig.upload(bases);
    let entries = rig.upload(&sorted.entries);
    let offsets = rig.upload(&sorted.offsets);
    let mut scratch = rig.room::<u8>(plan.scratch_bytes());
    plan.run(
        &*rig.launcher,
        &rig.stream,
        bases.view(),
        entries.view(),
        offsets.view(),
        sums.view_mut(),
        existing,
        scratch.view_mut(),
    )
    .unwrap();
    rig.download(&sums)
}

/// Plans with few and many rounds, and the usual one.
fn plans<F: DeviceCurve>(rig: &Rig, sorted: &Sorted) -> Vec<AccumulatePlan<F>> {
    let (info, entries, buckets) = (rig.device().info(), sorted.entries.len(), sorted.buckets());
    let usual = AccumulatePlan::new(info, entries, buckets, usize::MAX).unwrap();
    let with =
        |rounds| AccumulatePlan::with_rounds(info, entries, buckets, rounds, usize::MAX).unwrap();
    vec![usual, with(2), with(3), with(6)]
}

#[track_caller]
fn check<F: DeviceCurve>(
    rig: &Rig,
    plan: &AccumulatePlan<F>,
    bases: &[Affine<F>],
    sorted: &Sorted,
    onto: Option<&[Affine<F>]>,
) {
    let found = run(rig, plan, bases, sorted, onto);
    for (k, (found, expected)) in found.iter().zip(sorted.expected(bases, onto)).enumerate() {
        let length = sorted.offsets[k + 1] - sorted.offsets[k];
        assert_eq!(*found, expected, "bucket {k}, {length} entries, {plan:?}");
    }
}

fn signed(random: &mut Words, bases: usize) -> u32 {
    let entry = random.below(bases) as u32;
    if random.below(2) == 0 {
        entry
    } else {
        entry | NEGATE
    }
}

fn check_lengths<F: DeviceCurve>(rig: &Rig, few: bool) {
    let bases = multiples::<F>(200);
    let mut random = Words::new(1);
    let mut lengths: Vec<usize> = if few {
        vec![0, 1, 2, 3, 4, 5, 7, 8, 9, 17, 33]
    } else {
        (0..40).chain([63, 64, 65, 127, 128, 129]).collect()
    };
    lengths.extend((0..if few { 5 } else { 40 }).map(|_| random.below(70)));
    // Empty buckets at the ends and between.
    lengths.splice(0..0, [0, 0]);
    lengths.extend([0, 0, 0]);
    let sorted = Sorted::new(&lengths, || signed(&mut random, bases.len()));
    for plan in plans::<F>(rig, &sorted) {
        check(rig, &plan, &bases, &sorted, None);
    }
    for lengths in [&[][..], &[0], &[1], &[0, 0, 0], &[2], &[0, 3, 0]] {
        let sorted = Sorted::new(lengths, || signed(&mut random, bases.len()));
        check(rig, &plans::<F>(rig, &sorted)[0], &bases, &sorted, None);
    }
}

fn lengths(rig: &Rig) {
    check_lengths::<Fp>(rig, false);
}

fn g2_lengths(rig: &Rig) {
    check_lengths::<Fp2>(rig, !rig.is_card);
}

/// One bucket with nearly everything, at the front, in the middle and at the end.
fn hot_buckets(rig: &Rig) {
    let bases = multiples::<Fp>(300);
    let mut random = Words::new(2);
    let hot = if rig.is_card { 300_000 } else { 2_500 };
    for lengths in [&[hot, 1, 0, 2][..], &[0, 5, hot, 3, 40], &[1, 1, hot]] {
        let sorted = Sorted::new(lengths, || signed(&mut random, bases.len()));
        for plan in &plans::<Fp>(rig, &sorted)[..3] {
            check(rig, plan, &bases, &sorted, None);
        }
    }
}

/// A table in which equal, opposite and infinite points are frequent.
fn few_points<F: DeviceCurve>() -> Vec<Affine<F>> {
    let [g, two, three]: [Affine<F>; 3] = multiples(3).try_into().unwrap();
    vec![
        g,
        two,
        Affine::INFINITY,
        -g,
        g,
        three,
        Affine::INFINITY,
        -two,
    ]
}

fn check_exceptional<F: DeviceCurve>(rig: &Rig, repeats: usize) {
    let bases = few_points::<F>();
    let mut random = Words::new(3);
    let lengths: Vec<usize> = (0..repeats).map(|i| 2 + i % 11).collect();
    let sorted = Sorted::new(&lengths, || signed(&mut random, bases.len()));
    for plan in &plans::<F>(rig, &sorted)[..3] {
        check(rig, plan, &bases, &sorted, None);
    }
    // One point all over, infinity all over, a point and its opposite in turn.
    for pattern in [&[0][..], &[2], &[0, 3], &[0, NEGATE], &[2 | NEGATE, 0]] {
        let mut turn = pattern.iter().cycle();
        let sorted = Sorted::new(&[33, 2, 64, 1, 5], || *turn.next().unwrap());
        check(rig, &plans::<F>(rig, &sorted)[2], &bases, &sorted, None);
    }
}

fn exceptional_pairs(rig: &Rig) {
    check_exceptional::<Fp>(rig, 400);
}

fn g2_exceptional_pairs(rig: &Rig) {
    check_exceptional::<Fp2>(rig, 60);
}

fn sums_that_are_there(rig: &Rig) {
    let bases = few_points::<Fp>();
    let mut random = Words::new(4);
    let lengths: Vec<usize> = (0..300).map(|_| random.below(12)).collect();
    let sorted = Sorted::new(&lengths, || signed(&mut random, bases.len()));
    let onto: Vec<_> = lengths
        .iter()
        .map(|_| bases[random.below(bases.len())])
        .collect();
    for plan in &plans::<Fp>(rig, &sorted) {
        check(rig, plan, &bases, &sorted, Some(&onto));
    }
    // Nothing to add.
    let sorted = Sorted::new(&[0; 9], || 0);
    check(
        rig,
        &plans::<Fp>(rig, &sorted)[0],
        &bases,
        &sorted,
        Some(&onto[..9]),
    );
}

/// Buckets that cross from one slab into the next, or fill several.
fn check_slabs<F: DeviceCurve>(rig: &Rig, lengths: &[usize], onto: bool) {
    let bases = multiples::<F>(150);
    let mut random = Words::new(5);
    let sorted = Sorted::new(lengths, || signed(&mut random, bases.len()));
    let onto: Option<Vec<_>> = onto.then(|| {
        let sums = lengths.iter().map(|_| bases[random.below(bases.len())]);
        sums.collect()
    });
    let (info, entries) = (rig.device().info(), sorted.entries.len());
    let one =
        AccumulatePlan::<F>::with_rounds(info, entries, lengths.len(), 3, usize::MAX).unwrap();
    assert_eq!(one.slab_count(), 1);
    for parts in [2, 5] {
        let limit = one.scratch_bytes() / parts + (64 << 10);
        let plan =
            AccumulatePlan::<F>::with_rounds(info, entries, lengths.len(), 3, limit).unwrap();
        assert!(plan.slab_count() > 1 && plan.scratch_bytes() <= limit);
        check(rig, &plan, &bases, &sorted, onto.as_deref());
    }
    // A part of a larger list, with room for more than there is.
    let part = Sorted {
        entries: sorted.entries.clone(),
        offsets: sorted.offsets[1..].to_vec(),
    };
    let plan =
        AccumulatePlan::<F>::with_rounds(info, entries + 100, lengths.len() - 1, 2, usize::MAX)
            .unwrap();
    check(
        rig,
        &plan,
        &bases,
        &part,
        onto.as_ref().map(|sums| &sums[1..]),
    );
}

fn slabs(rig: &Rig) {
    let mut random = Words::new(6);
    let mut lengths: Vec<usize> = (0..160).map(|_| random.below(50)).collect();
    check_slabs::<Fp>(rig, &lengths, false);
    lengths.truncate(60);
    lengths.insert(30, 4000);
    check_slabs::<Fp>(rig, &lengths, false);
    check_slabs::<Fp>(rig, &lengths, true);
}

fn g2_slabs_onto_sums(rig: &Rig) {
    let mut random = Words::new(7);
    let mut lengths: Vec<usize> = (0..30).map(|_| random.below(30)).collect();
    lengths.insert(10, 900);
    check_slabs::<Fp2>(rig, &lengths, true);
}

/// Indices that name no base count as infinity, and offsets that descend leave no array.
fn wild_entries(rig: &Rig) {
    let bases = multiples::<Fp>(10);
    let mut random = Words::new(8);
    let sorted = Sorted::new(&[9, 30, 1, 4, 2], || {
        if random.below(2) == 0 {
            random.next_word() as u32 | 16
        } else {
            random.below(10) as u32
        }
    });
    for plan in &plans::<Fp>(rig, &sorted)[..2] {
        check(rig, plan, &bases, &sorted, None);
    }
    let mut wild = sorted.clone();
    for offsets in [
        [0, 40, 9, u32::MAX, 3, 46],
        [u32::MAX; 6],
        [46, 40, 30, 20, 10, 0],
        [7, 3, 1 << 30, 5, 90, 60],
    ] {
        wild.offsets = offsets.to_vec();
        for plan in &plans::<Fp>(rig, &wild)[..3] {
            // The sums say nothing.
            assert_eq!(run(rig, plan, &bases, &wild, None).len(), 5);
            assert_eq!(run(rig, plan, &bases, &wild, Some(&bases[..5])).len(), 5);
        }
    }
}

/// Whatever the order of blocks and threads, and of entries within buckets.
fn repeated_runs_agree(rig: &Rig) {
    let bases = multiples::<Fp>(100);
    let mut random = Words::new(9);
    let lengths: Vec<usize> = (0..30).map(|_| random.below(40)).collect();
    let mut sorted = Sorted::new(&lengths, || signed(&mut random, bases.len()));
    let plan = &plans::<Fp>(rig, &sorted)[2];
    let first = run(rig, plan, &bases, &sorted, None);
    for _ in 0..if rig.is_card { 100 } else { 3 } {
        for range in sorted.offsets.windows(2) {
            let bucket = &mut sorted.entries[range[0] as usize..range[1] as usize];
            bucket.rotate_left(usize::from(bucket.len() > 1));
        }
        assert_eq!(run(rig, plan, &bases, &sorted, None), first);
    }
}

/// Lists pushed one after another into few slots, each with the entries of the next written over its own.
fn pipeline(rig: &Rig) {
    let bases = multiples::<Fp>(100);
    let mut random = Words::new(10);
    let lists: Vec<Sorted> = (0..7)
        .map(|list| {
            let lengths: Vec<usize> = (0..if list % 3 == 2 { 12 } else { 25 })
                .map(|k| if k == list { 150 } else { random.below(20) })
                .collect();
            Sorted::new(&lengths, || signed(&mut random, bases.len()))
        })
        .collect();
    let info = rig.device().info();
    let plans: Vec<AccumulatePlan<Fp>> = lists
        .iter()
        .map(|list| {
            let (entries, buckets) = (list.entries.len(), list.buckets());
            let whole =
                AccumulatePlan::<Fp>::with_rounds(info, entries, buckets, 2, usize::MAX).unwrap();
            let limit = whole.scratch_bytes() / 2 + (16 << 10);
            AccumulatePlan::with_rounds(info, entries, buckets, 2, limit).unwrap()
        })
        .collect();
    let longest = lists.iter().map(|list| list.entries.len()).max().unwrap();
    let bases_buffer = rig.upload(&bases);
    for (lanes, slots) in [(1, 1), (1, 2), (2, 2), (2, 4)] {
        let shape = PipelineShape::new(&plans, lanes, slots);
        let streams = Streams::new(rig.device()).unwrap();
        let mut entries = rig.room::<u32>(longest);
        let mut offsets = rig.room::<u32>(26);
        let mut scratch = rig.room::<u8>(shape.scratch_bytes());
        let total: usize = lists.iter().map(Sorted::buckets).sum();
        let mut sums = rig.room::<Affine<Fp>>(total + 12);
        {
            let bases = bases_buffer.view().lend(&streams.all()).unwrap();
            let mut sums = sums.view_mut().lend(&streams.all()).unwrap();
            let mut scratch = scratch.view_mut().lend(&streams.all()).unwrap();
            let mut pipeline = Pipeline::new(
                &*rig.launcher,
                &rig.stream,
                &streams,
                bases.view(),
                &shape,
                scratch.view_mut(),
            )
            .unwrap();
            let ahead = streams.ahead();
            let mut first = 0;
            for (list, plan) in lists.iter().zip(&plans) {
                let part = first..first + list.buckets();
                first = part.end;
                ahead
                    .upload_slice(
                        &list.entries,
                        entries.view_mut().slice(..list.entries.len()),
                    )
                    .unwrap();
                ahead
                    .upload_slice(
                        &list.offsets,
                        offsets.view_mut().slice(..list.offsets.len()),
                    )
                    .unwrap();
                pipeline
                    .push(
                        plan,
                        entries.view().slice(..list.entries.len()),
                        offsets.view().slice(..list.offsets.len()),
                        sums.view_mut().slice(part),
                        Existing::Replace,
                    )
                    .unwrap();
            }
            // The third list twice into one place, the second time onto the sums of the first.
            for existing in [Existing::Replace, Existing::AddTo] {
                let list = &lists[2];
                ahead
                    .upload_slice(
                        &list.entries,
                        entries.view_mut().slice(..list.entries.len()),
                    )
                    .unwrap();
                ahead
                    .upload_slice(
                        &list.offsets,
                        offsets.view_mut().slice(..list.offsets.len()),
                    )
                    .unwrap();
                pipeline
                    .push(
                        &plans[2],
                        entries.view().slice(..list.entries.len()),
                        offsets.view().slice(..list.offsets.len()),
                        sums.view_mut().slice(first..first + 12),
                        existing,
                    )
                    .unwrap();
            }
            pipeline.join(&rig.stream).unwrap();
        }
        let found = rig.download(&sums);
        let mut expected: Vec<_> = lists
            .iter()
            .flat_map(|list| list.expected(&bases, None))
            .collect();
        let once = lists[2].expected(&bases, None);
        expected.extend(lists[2].expected(&bases, Some(&once)));
        assert_eq!(found, expected, "{lanes} lanes, {slots} slots");
    }
}
